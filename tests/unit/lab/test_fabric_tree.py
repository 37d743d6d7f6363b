# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The stand-in in a container's /sys, read as the collection reads a host."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._pci.functions import PciReader
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.device import Device, port_guid, read_devices
from lab import fabric_tree
from lab.fabric_plan import Shape, make
from tests.unit.lab.portinfo import COUNTERS, PKEYS, PORTINFO, UNCONFIGURED

HCA = make(Shape("rail", 4, 2)).hcas[1]


def write(base: Path, files: dict[str, str], links: dict[str, str]) -> None:
    for name, text in files.items():
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        (base / name).write_text(text)
    for name, target in links.items():
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        (base / name).symlink_to(target)


def machine(root: Path, portinfo: str, counters: str | None) -> SysRoot:
    """A root with mlx5_1, as mount.sh puts the two trees together."""
    write(root / "sys", *fabric_tree.fixed({"mlx5_1": 1}))
    files = {**fabric_tree.identity(HCA), **fabric_tree.port(HCA, portinfo, PKEYS, counters)}
    device = root / "sys" / fabric_tree.device_link(1).removeprefix("/sys/") / "infiniband/mlx5_1"
    write(device, files, {"device": fabric_tree.device_link(1)})
    return SysRoot(str(root))


def read(sys: SysRoot) -> Device:
    return read_devices(sys, {}, PciReader(sys))["mlx5_1"]


def test_an_hca_is_read_as_one_of_hardware(tmp_path: Path) -> None:
    device = read(machine(tmp_path, PORTINFO, COUNTERS))
    assert (device.driver, device.software, device.node_type, device.function) == ("mlx5_core", False, "CA", "pf")
    assert device.node_guid == "a088:c203:0000:0020"
    assert device.pci is not None
    assert (device.pci.address, device.pci.vendor_id, device.pci.width) == ("0000:31:00.0", "0x15b3", 16)
    assert [hop.address for hop in device.pci.hops] == ["0000:30:00.0"]


def test_a_port_says_what_the_simulated_one_says(tmp_path: Path) -> None:
    port = read(machine(tmp_path, PORTINFO, COUNTERS)).ports["1"]
    assert (port.state, port.physical_state, port.link_layer, port.lid, port.sm_lid) == ("ACTIVE", "LinkUp", "InfiniBand", 4, 1)
    assert (port.rate_gbps, port.width, port.speed) == (200.0, 4, "HDR")
    assert port.pkeys == {"0": 0x7FFF, "1": 0x8101}
    assert port_guid(port) == "0xa088c20300000021"
    assert port.counters == {"symbol_error": 7, "link_downed": 0, "VL15_dropped": 0, "port_xmit_data": 720}


def test_before_there_is_a_subnet_manager(tmp_path: Path) -> None:
    port = read(machine(tmp_path, UNCONFIGURED, None)).ports["1"]
    assert (port.state, port.lid, port.sm_lid, port.counters) == ("INIT", None, None, {})
    assert [gid.gid for gid in port.gids] == ["fe80:0000:0000:0000:a088:c203:0000:0021"]


@pytest.mark.parametrize(
    ("width", "speed", "extended", "expected"),
    [
        ("4X", "10.0 Gbps", "53.125 Gbps", "200 Gb/sec (4X HDR)"),
        ("1X", "10.0 Gbps", "25.78125 Gbps", "25 Gb/sec (1X EDR)"),
        ("4X", "10.0 Gbps", "No Extended Speed", "40 Gb/sec (4X QDR)"),
        ("1X", "2.5 Gbps", "No Extended Speed", "2.5 Gb/sec (1X SDR)"),
    ],
)
def test_a_rate_in_the_words_of_the_kernel(width: str, speed: str, extended: str, expected: str) -> None:
    answer = {"LinkWidthActive": width, "LinkSpeedActive": speed, "LinkSpeedExtActive": extended}
    assert fabric_tree.rate(answer) == expected


def test_modules_are_reported_as_parts_of_the_kernel() -> None:
    files = fabric_tree.built_in()
    assert b"kernel/drivers/infiniband/ib_core.ko\n" in files["modules.builtin"]
    assert b"\0mlx5_ib.file=drivers/infiniband/mlx5_ib\0" in files["modules.builtin.modinfo"]
