# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ibstat and ibstatus of real machines, read where they lie; skipped where they are not."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._ibstat import (
    IbstatDevice,
    IbstatPort,
    IbstatusPort,
    parse_ibstat,
    parse_ibstatus,
)
from ansible_collections.rdma.cluster.plugins.module_utils._infiniband import Rate

FIXTURES = Path(__file__).parents[2].parent / "shared" / "fixtures"
CAPTURES = FIXTURES / "ibstat"
STATUS_CAPTURES = FIXTURES / "ibstatus"
pytestmark = pytest.mark.skipif(not CAPTURES.is_dir(), reason=f"the captures are not at {CAPTURES}")


def capture(name: str) -> str:
    return (CAPTURES / f"{name}.txt").read_text(encoding="utf-8")


def guid(digits: str) -> str:
    return ":".join((digits[:4], digits[4:8], digits[8:12], digits[12:]))


def ethernet(rate_gbps: float, port_guid: str | None) -> IbstatPort:
    """A RoCE port that is up."""
    return IbstatPort("ACTIVE", "LinkUp", rate_gbps, None, 0, None, 0x00010000, guid(port_guid) if port_guid else None, "Ethernet")


def infiniband(rate_gbps: float, base_lid: int, sm_lid: int, mask: int, port_guid: str, *, lmc: int = 0) -> IbstatPort:
    """An InfiniBand port that is up."""
    return IbstatPort("ACTIVE", "LinkUp", rate_gbps, base_lid, lmc, sm_lid, mask, guid(port_guid), "InfiniBand")


def device(hca: tuple[str | None, str | None, str | None], node_guid: str, sys_image_guid: str, *ports: IbstatPort) -> IbstatDevice:
    """A device of a type, a firmware and a hardware version, its ports numbered from 1."""
    numbered = {str(number): port for number, port in enumerate(ports, start=1)}
    return IbstatDevice(hca[0], len(ports), hca[1], hca[2], guid(node_guid), guid(sys_image_guid), numbered)


CX3 = ("MT4099", "2.42.5000", "1")
CX4 = ("MT4115", "12.23.1020", "0")
CX5_IB = ("MT4119", "16.28.2006", "0")
CX5_105 = ("MT4119", "16.35.1012", "0")
CX5_103 = ("MT4119", "16.32.2004", "0")
CX6DX = ("MT4125", "22.36.1010", "0")
WHOLE = {
    "ml-cx3-mlx4-roce-2port-dl380": {
        "mlx4_0": device(
            CX3, "f452140300676ba0", "f452140300676ba3", ethernet(10.0, "f65214fffe676ba1"), ethernet(10.0, "f65214fffe676ba2")
        )
    },
    "ml-cx3-mlx4-roce-2port-dl580": {
        "mlx4_0": device(
            CX3, "f452140300864940", "f452140300864943", ethernet(10.0, "f65214fffe864941"), ethernet(10.0, "f65214fffe864942")
        )
    },
    "ml-cx3-vpi-mixed-polling-disabled": {
        "mlx4_0": device(
            CX3,
            "e41d2d03007b4080",
            "e41d2d03007b4083",
            IbstatPort("DOWN", "Polling", 10.0, None, 0, None, 0x02594868, "e41d:2d03:007b:4081", "InfiniBand"),
            IbstatPort("DOWN", "Disabled", 40.0, None, 0, None, 0x00010000, "e61d:2dff:fe7b:4082", "Ethernet"),
        )
    },
    "ml-cx4-ib-plus-cx4lx-bond": {
        "mlx5_2": device(CX4, "248a07030049d338", "248a07030049d338", infiniband(100.0, 13, 1, 0x2659E848, "248a07030049d338")),
        "mlx5_3": device(CX4, "248a07030049d339", "248a07030049d338", infiniband(40.0, 38, 36, 0x2659E848, "248a07030049d339", lmc=1)),
        "mlx5_bond_0": device(("MT4117", "14.23.1020", "0"), "7cfe900300cb743a", "7cfe900300cb743a", ethernet(10.0, "7efe90fffecb743a")),
    },
    "ml-cx5-ib-edr": {
        "mlx5_0": device(CX5_IB, "98039b03006c7912", "98039b03006c7912", infiniband(40.0, 38, 4, 0x2651E848, "98039b03006c7912")),
        "mlx5_1": device(CX5_IB, "98039b03006c7913", "98039b03006c7912", infiniband(40.0, 134, 224, 0x2651E848, "98039b03006c7913")),
    },
    "ml-cx5-roce-4dev-storage105": {
        "mlx5_0": device(CX5_105, "e8ebd30300558946", "e8ebd30300558946", ethernet(25.0, "eaebd3fffe558946")),
        "mlx5_1": device(CX5_105, "e8ebd30300558947", "e8ebd30300558946", ethernet(25.0, "eaebd3fffe558947")),
        "mlx5_2": device(CX6DX, "946dae0300d05002", "946dae0300d05002", ethernet(100.0, "966daefffed05002")),
        "mlx5_3": device(CX6DX, "946dae0300d05003", "946dae0300d05002", ethernet(100.0, "966daefffed05003")),
    },
    "ml-cx5-roce-storage103": {
        "mlx5_0": device(CX5_103, "e8ebd303003a1d0c", "e8ebd303003a1d0c", ethernet(25.0, "eaebd3fffe3a1d0c")),
        "mlx5_1": device(CX5_103, "e8ebd303003a1d0d", "e8ebd303003a1d0c", ethernet(25.0, "eaebd3fffe3a1d0d")),
        "mlx5_2": device(CX6DX, "946dae0300d06d72", "946dae0300d06d72", ethernet(100.0, "966daefffed06d72")),
        "mlx5_3": device(CX6DX, "946dae0300d06d73", "946dae0300d06d72", ethernet(100.0, "966daefffed06d73")),
    },
    "ml-cx6-roce-arm64": {
        "roceP1p1s0f1": device(("MT4123", "20.32.1010", "0"), "b8cef603002d1707", "b8cef603002d1706", ethernet(100.0, "bacef6fffe2d1707"))
    },
    "ml-rxe0": {"rxe0": device((None, None, None), "4a51c5fffef6e159", "4a51c5fffef6e159", ethernet(2.5, "4a51c5fffef6e159"))},
}
CX7_H100 = ("MT4129", "28.41.1000", "0")
CX7_DOWN = ("MT4129", "28.39.1002", "0")
DOWN_GUIDS = {"mlx5_11": "a088c20300bb3514", "mlx5_5": "a088c20300adeb20"}
LARGE = {
    "gpud-ibstat.47.0.a100.all.active.0": {
        "mlx5_0": device(("MT4126", "22.35.2302", "0"), "1e918efffe7a03a0", "b83fd20300b6eb16", ethernet(200.0, "1c918efffe7a03a0")),
        "mlx5_8": device(
            ("MT4126", "28.37.1014", "0"),
            "4c1037318e9cd20a",
            "946dae030093e0ba",
            infiniband(200.0, 1396, 83, 0xA651EC48, "4c1037318e9cd20a"),
        ),
    },
    "gpud-ibstat.47.0.h100.all.active.2": {
        "mlx5_0": device(CX7_H100, "58a2e10300a7820e", "58a2e10300a7820e", infiniband(400.0, 128, 1, 0xA751E848, "58a2e10300a7820e")),
        "mlx5_9": device(CX7_H100, "a088c20300da62c2", "a088c20300da62c2", infiniband(400.0, 2015, 1, 0xA751E848, "a088c20300da62c2")),
        "mlx5_bond_0": device(("MT41692", "32.38.3056", "1"), "58a2e10300760398", "58a2e10300760398", ethernet(200.0, "201d97fffe0056cf")),
    },
    **{
        name: {
            "mlx5_0": device(CX7_DOWN, "a088c20300adeab8", "a088c20300adeab8", ethernet(400.0, "a288c2fffeadeab8")),
            "mlx5_2": device(("MT4125", "22.39.1002", "0"), "b83fd203002a1a1d", "b83fd203002a1a1c", ethernet(100.0, None)),
            "mlx5_9": device(CX7_DOWN, "a088c20300adeb60", "a088c20300adeb60", ethernet(400.0, "a288c2fffeadeb60")),
            **{
                down: device(CX7_DOWN, digits, digits, IbstatPort("DOWN", why, 40.0, None, 0, None, 0x00010000, None, "Ethernet"))
                for (down, digits), why in zip(DOWN_GUIDS.items(), states, strict=True)
            },
        }
        for name, states in {
            "gpud-ibstat.47.0.h100.some.down.with.polling.1": ("Polling", "Disabled"),
            "gpud-ibstat.47.0.some.down.1": ("Disabled", "Disabled"),
        }.items()
    },
}
#: Number of devices, and how many ports there are of a link layer, rate and state.
COUNTS = {
    "gpud-ibstat.47.0.a100.all.active.0": {("Ethernet", 200.0, "ACTIVE"): 1, ("InfiniBand", 200.0, "ACTIVE"): 8},
    "gpud-ibstat.47.0.h100.all.active.2": {("InfiniBand", 400.0, "ACTIVE"): 8, ("Ethernet", 200.0, "ACTIVE"): 1},
    "gpud-ibstat.47.0.h100.some.down.with.polling.1": {
        ("Ethernet", 400.0, "ACTIVE"): 6,
        ("Ethernet", 100.0, "ACTIVE"): 4,
        ("Ethernet", 40.0, "DOWN"): 2,
    },
    "gpud-ibstat.47.0.some.down.1": {
        ("Ethernet", 400.0, "ACTIVE"): 6,
        ("Ethernet", 100.0, "ACTIVE"): 4,
        ("Ethernet", 40.0, "DOWN"): 2,
    },
}
LIDS = {
    "gpud-ibstat.47.0.a100.all.active.0": [None, 1369, 1372, 1374, 1379, 1383, 1387, 1392, 1396],
    "gpud-ibstat.47.0.h100.all.active.2": [128, 534, 972, 1775, 1494, 717, 774, 2015, None],
    "gpud-ibstat.47.0.h100.some.down.with.polling.1": [None] * 12,
    "gpud-ibstat.47.0.some.down.1": [None] * 12,
}
REFUSED = {"ml-cx6-truncated": "Hardware version: 0", "stas-grep-mlx5": "CA 'mlx5_0'"}


def test_every_capture_is_expected() -> None:
    assert {path.stem for path in CAPTURES.iterdir()} == WHOLE.keys() | LARGE.keys() | REFUSED.keys()


@pytest.mark.parametrize("name", WHOLE)
def test_whole(name: str) -> None:
    assert parse_ibstat(capture(name)) == WHOLE[name]


@pytest.mark.parametrize("name", LARGE)
def test_large(name: str) -> None:
    devices = parse_ibstat(capture(name))
    assert {known: devices[known] for known in LARGE[name]} == LARGE[name]
    ports = [device.ports["1"] for device in devices.values()]
    assert Counter((port.link_layer, port.rate_gbps, port.state) for port in ports) == COUNTS[name]
    assert [port.base_lid for port in ports] == LIDS[name]
    assert [(device.number_of_ports, len(device.ports)) for device in devices.values()] == [(1, 1)] * len(LIDS[name])


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_ibstat(capture(name))
    assert repr(REFUSED[name]) in str(caught.value)


def test_ibstatus() -> None:
    assert [path.name for path in STATUS_CAPTURES.iterdir()] == ["gpud-ibstatus.39.0.a100.all.active.0.txt"]
    devices = parse_ibstatus((STATUS_CAPTURES / "gpud-ibstatus.39.0.a100.all.active.0.txt").read_text(encoding="utf-8"))
    lids = [0x33BF, 0x33BE, 0x33CB, 0x33DC, 0x33F5, 0x33F4, 0x33F6, 0x33F9]
    assert devices == {
        **{
            f"mlx5_{number}": {
                "1": IbstatusPort(
                    f"fe80:0000:0000:0000:0015:5dff:fd34:11{last}", lid, 1, "ACTIVE", "LinkUp", Rate(200.0, 4, "HDR"), "InfiniBand"
                )
            }
            for number, (last, lid) in enumerate(zip(("eb", "ec", "ed", "ee", "ef", "f0", "f1", "f2"), lids, strict=True))
        },
        "mlx5_8": {"1": IbstatusPort(None, None, None, "ACTIVE", "LinkUp", Rate(40.0, 4, "QDR"), "Ethernet")},
    }
