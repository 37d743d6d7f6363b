# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ibv_devinfo of real machines, read where they lie."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.ibv_devinfo import Devinfo, DevinfoGid, DevinfoPort, parse_ibv_devinfo

CAPTURES = Path(__file__).parents[2].parent / "shared" / "fixtures" / "ibv_devinfo"


def capture(name: str) -> str:
    return (CAPTURES / f"{name}.txt").read_text(encoding="utf-8")


def ethernet(active_mtu_bytes: int, state: str = "ACTIVE", port_lid: int | None = None) -> DevinfoPort:
    return DevinfoPort(state, 4096, active_mtu_bytes, None, port_lid, 0, "Ethernet", None, None, None, None)


def device(transport: str, fw_ver: str, guids: tuple[str, str], ids: tuple[str, int, str | None], port: DevinfoPort) -> Devinfo:
    """A device of one port: its node and system image GUID, and its vendor, part and board."""
    return Devinfo(transport, fw_ver, *guids, ids[0], ids[1], "0x0", ids[2], 1, {"1": port}, None)


def excerpt(fw_ver: str, guid: str, physical_state: str | None, gids: list[DevinfoGid]) -> Devinfo:
    """A device of which dots hide everything between its GUIDs and the end of its port."""
    port = DevinfoPort(None, None, None, None, None, None, None, None, None, physical_state, gids)
    return Devinfo("InfiniBand", fw_ver, guid, guid, None, None, None, None, None, {}, port)


HUAWEI = ("0x02c9", 4119, "HUA0000000004")
CX7 = ("0x02c9", 4129, "MT_0000000838")
I40IW = ("0x8086", 14290, "I40IW Board ID")
CX5_GUIDS = ("f41d:6b03:006f:4743", "f41d:6b03:006f:4743")
WHOLE = {
    "ml-bnxt_re-v-gidtypes-excerpt": {
        "bnxt_re2": excerpt(
            "216.0.220.0",
            "b226:28ff:fed3:b0f0",
            "LinkUp",
            [
                DevinfoGid(0, "fe80:0000:0000:0000:b226:28ff:fed3:b0f0", "IB/RoCE v1"),
                DevinfoGid(1, "fe80:0000:0000:0000:b226:28ff:fed3:b0f0", "RoCE v2"),
            ],
        )
    },
    "ml-cx4lx-bond-server": {
        "mlx5_bond_0": device(
            "InfiniBand",
            "14.26.6000",
            ("506b:4b03:00b1:7cae", "506b:4b03:00b1:7cae"),
            ("0x02c9", 4117, "DEL2810000034"),
            ethernet(4096),
        )
    },
    "ml-cx5-bond": {"mlx5_bond_0": device("InfiniBand", "16.31.1014", CX5_GUIDS, HUAWEI, ethernet(1024))},
    "ml-cx5-roce-2dev": {
        "mlx5_0": device("InfiniBand", "16.31.1014", CX5_GUIDS, HUAWEI, ethernet(1024)),
        "mlx5_1": device("InfiniBand", "16.31.1014", ("f41d:6b03:006f:4744", "f41d:6b03:006f:4743"), HUAWEI, ethernet(1024)),
    },
    "ml-cx7-roce-2dev": {
        "mlx5_2": device("InfiniBand", "28.39.1002", ("a088:c203:007d:a8ca", "a088:c203:007d:a8ca"), CX7, ethernet(1024)),
        "mlx5_3": device("InfiniBand", "28.39.1002", ("a088:c203:007d:a88a", "a088:c203:007d:a88a"), CX7, ethernet(1024)),
    },
    "ml-i40iw-cx5-mixed": {
        "i40iw0": device("iWARP", "0.2", ("3cec:ef0d:51c3:0000", "3cec:ef0d:51c3:0000"), I40IW, ethernet(1024, "DOWN", port_lid=1)),
        "i40iw1": device("iWARP", "0.2", ("3cec:ef0d:51c2:0000", "3cec:ef0d:51c2:0000"), I40IW, ethernet(1024, port_lid=1)),
        "mlx5_0": device(
            "InfiniBand",
            "16.29.2002",
            ("0c42:a103:0054:74ca", "0c42:a103:0054:74ca"),
            ("0x02c9", 4119, "MT_0000000010"),
            DevinfoPort("ACTIVE", 4096, 4096, 8, 196, 0, "InfiniBand", None, None, None, None),
        ),
    },
    "ml-rxe-rx0": {
        "rx0": device("InfiniBand", "0.0.0", ("2a6b:35ff:fe76:0e8a", "2a6b:35ff:fe76:0e8a"), ("0xffffff", 0, None), ethernet(1024))
    },
    "ml-rxe-v-gids-elided": {
        "rxe0": excerpt(
            "0.0.0",
            "0a00:27ff:fe2e:f7a5",
            None,
            [
                DevinfoGid(0, "fe80:0000:0000:0000:0a00:27ff:fe2e:f7a5", "RoCE v2"),
                DevinfoGid(1, "fe80:0000:0000:0000:9bd3:0885:53df:9fc4", "RoCE v2"),
                DevinfoGid(2, "0000:0000:0000:0000:0000:ffff:0a00:0097", "RoCE v2"),
                DevinfoGid(3, "2601:0647:5380:2210:19df:d855:54a9:cc9f", "RoCE v2"),
                DevinfoGid(4, "2601:0647:5380:2210:e3f3:7e57:504b:7e5c", "RoCE v2"),
            ],
        )
    },
}


def test_every_capture_is_expected() -> None:
    assert {path.stem for path in CAPTURES.iterdir()} == WHOLE.keys()


@pytest.mark.parametrize("name", WHOLE)
def test_whole(name: str) -> None:
    assert parse_ibv_devinfo(capture(name)) == WHOLE[name]


def test_what_may_stop_in_an_excerpt_may_not_in_an_output() -> None:
    with pytest.raises(ParseError, match=r"GID\[ 5\]:"):
        parse_ibv_devinfo(capture("ml-rxe-v-gids-elided").replace("....\n", ""))
