# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._pci import functions
from ansible_collections.rdma.cluster.plugins.module_utils._pci.functions import PciFunction, PciHop, PciLink
from tests.unit.builders.config_space import config_space
from tests.unit.builders.garbled import read_or_refused
from tests.unit.builders.trees import mlx5_machine, write_tree

PARSERS = [getattr(functions, name) for name in dir(functions) if name.startswith("parse_")]
ROOT_PORT = "/sys/devices/pci0000:00/0000:00:01.0"
NIC = f"{ROOT_PORT}/0000:01:00.0"


@pytest.mark.parametrize(
    ("text", "gtps"),
    [
        ("16.0 GT/s PCIe\n", 16.0),
        ("8 GT/s\n", 8.0),
        ("2.5 GT/s PCIe", 2.5),
        ("64.0 GT/s PCIe", 64.0),
        ("Unknown\n", None),
        ("Unknown speed\n", None),
    ],
)
def test_link_speed(text: str, gtps: float | None) -> None:
    assert functions.parse_link_speed(text) == gtps


@pytest.mark.parametrize(
    ("text", "width"),
    [("16\n", 16), *((str(lanes), lanes) for lanes in (1, 2, 4, 8, 12, 32)), *((other, None) for other in ("0\n", "5", "63", "255"))],
)
def test_link_width(text: str, width: int | None) -> None:
    assert functions.parse_link_width(text) == width


@pytest.mark.parametrize(("text", "node"), [("0\n", 0), ("3", 3), ("-1\n", None)])
def test_numa_node(text: str, node: int | None) -> None:
    assert functions.parse_numa_node(text) == node


def test_id() -> None:
    assert functions.parse_id("0x15B3\n") == "0x15b3"


@pytest.mark.parametrize(
    ("parser", "text"),
    [
        (functions.parse_link_speed, "16.0"),
        (functions.parse_link_speed, "16.0 GT"),
        (functions.parse_link_width, "x16"),
        (functions.parse_numa_node, "one"),
        (functions.parse_id, "15b3"),
    ],
)
def test_another_text_is_an_error_that_quotes_it(parser, text: str) -> None:
    with pytest.raises(ParseError, match=f"'{text}'"):
        parser(text)


@pytest.mark.parametrize("parser", PARSERS)
@given(text=st.text() | st.from_regex(r"-?[0-9x.]* ?(GT/s)?( PCIe)?"))
def test_nothing_but_a_parse_error_escapes(parser, text: str) -> None:
    assert read_or_refused(parser, text)


@pytest.mark.parametrize(
    ("device", "function"),
    [
        (NIC, NIC),
        (f"{NIC}/virtio1", NIC),
        (f"{NIC}/mlx5_core.rdma.0", NIC),
        (
            "/sys/devices/pci0000:00/0000:00:0e.0/pci10000:e0/10000:e0:01.0/10000:e1:00.0",
            "/sys/devices/pci0000:00/0000:00:0e.0/pci10000:e0/10000:e0:01.0/10000:e1:00.0",
        ),
        ("/sys/devices/platform/soc/ethernet", None),
        ("/sys/devices/pci0000:00", None),
    ],
)
def test_finds_the_function_of_a_device(tmp_path: Path, device: str, function: str | None) -> None:
    write_tree(tmp_path, f"{device}/uevent: x\n/sys/class/net/eth0/device -> {device}")

    assert functions.find_function(SysRoot(str(tmp_path)), "/sys/class/net/eth0/device") == function


def test_an_interface_without_device_has_no_function(tmp_path: Path) -> None:
    assert functions.find_function(SysRoot(str(tmp_path)), "/sys/class/net/lo/device") is None


def test_reads_a_function_and_the_narrowest_link_above_it(tmp_path: Path) -> None:
    sys = SysRoot(str(mlx5_machine(tmp_path)))

    assert functions.PciReader(sys).function(functions.find_function(sys, "/sys/class/infiniband/mlx5_0/device") or "") == PciFunction(
        address="0000:3d:00.0",
        vendor_id="0x15b3",
        device_id="0x1021",
        numa_node=0,
        speed_gtps=32.0,
        width=16,
        max_speed_gtps=32.0,
        max_width=16,
        narrowest=PciLink("0000:3b:00.0", 32.0, 8),
        hops=[hop("0000:3c:00.0", 16), hop("0000:3b:00.0", 8), hop("0000:3a:01.0", 16)],
    )


def hop(address: str, width: int) -> PciHop:
    return PciHop(address, 32.0, width, 32.0, width, None, None, None)


@pytest.mark.parametrize(
    ("port", "nic", "narrowest"),
    [
        (("16.0 GT/s PCIe", "16"), ("16.0 GT/s PCIe", "16"), PciLink("0000:01:00.0", 16.0, 16)),
        (("16.0 GT/s PCIe", "8"), ("16.0 GT/s PCIe", "16"), PciLink("0000:00:01.0", 16.0, 8)),
        (("8.0 GT/s PCIe", "8"), ("5.0 GT/s PCIe", "16"), PciLink("0000:00:01.0", 8.0, 8)),
        (("16.0 GT/s PCIe", "8"), ("Unknown", "0"), PciLink("0000:00:01.0", 16.0, 8)),
        (("16.0 GT/s PCIe", "63"), ("Unknown", "16"), None),
    ],
)
def test_the_narrowest_link_is_that_of_least_bandwidth(
    tmp_path: Path,
    port: tuple[str, str],
    nic: tuple[str, str],
    narrowest: PciLink | None,
) -> None:
    for path, (speed, width) in ((ROOT_PORT, port), (NIC, nic)):
        write_tree(tmp_path, f"{path}/current_link_speed: {speed}\n{path}/current_link_width: {width}")

    assert functions.PciReader(SysRoot(str(tmp_path))).function(NIC).narrowest == narrowest


def test_equal_products_of_speed_and_width_carry_unequal_payloads(tmp_path: Path) -> None:
    write_tree(tmp_path, f"{NIC}/current_link_speed: 32.0 GT/s PCIe\n{NIC}/current_link_width: 16")
    write_tree(tmp_path, f"{ROOT_PORT}/current_link_speed: 64.0 GT/s PCIe\n{ROOT_PORT}/current_link_width: 8")

    assert functions.PciReader(SysRoot(str(tmp_path))).function(NIC).narrowest == PciLink("0000:00:01.0", 64.0, 8)


def test_what_a_function_does_not_report_is_none(tmp_path: Path) -> None:
    root_port = PciHop("0000:00:01.0", None, None, None, None, None, None, None)
    expected = PciFunction("0000:01:00.0", None, None, None, None, None, None, None, None, None, None, None, [root_port])

    assert functions.PciReader(SysRoot(str(tmp_path))).function(NIC) == expected


def write_config(root: Path, function: str, data: bytes) -> None:
    folder = root / function.lstrip("/")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config").write_bytes(data)


def test_payload_and_acs_of_the_bridges_above(tmp_path: Path) -> None:
    upstream = f"{ROOT_PORT}/0000:01:00.0"
    downstream = f"{upstream}/0000:02:00.0"
    nic = f"{downstream}/0000:03:00.0"
    write_config(tmp_path, ROOT_PORT, config_space(header_type=1, port_type=4, capability=1, acs=0x1D))
    write_config(tmp_path, upstream, config_space(header_type=1, port_type=5, capability=2, acs=None))
    write_config(tmp_path, downstream, config_space(header_type=1, port_type=6, capability=2, acs=0))
    write_config(tmp_path, nic, config_space(capability=2, control=0x2020))

    function = functions.PciReader(SysRoot(str(tmp_path))).function(nic)

    assert (function.mps_bytes, function.mps_max_bytes, function.mrrs_bytes) == (256, 512, 512)
    assert [(found.address, found.mps_bytes, found.mps_max_bytes, found.acs) for found in function.hops] == [
        ("0000:02:00.0", 256, 512, []),
        ("0000:01:00.0", 256, 512, None),
        ("0000:00:01.0", 256, 256, ["SrcValid", "ReqRedir", "CmpltRedir", "UpstreamFwd"]),
    ]


def test_a_virtual_function_has_the_settings_of_its_physical_one(tmp_path: Path) -> None:
    virtual = f"{ROOT_PORT}/0000:01:00.2"
    write_config(tmp_path, NIC, config_space(capability=2, control=0x5040))
    write_config(tmp_path, virtual, config_space(capability=2, control=0))
    write_tree(tmp_path, f"{virtual}/physfn -> ../0000:01:00.0")

    function = functions.PciReader(SysRoot(str(tmp_path))).function(virtual)

    assert (function.address, function.mps_bytes, function.mrrs_bytes) == ("0000:01:00.2", 512, 4096)


def test_a_function_that_fell_off_the_bus_reports_no_payload(tmp_path: Path) -> None:
    write_config(tmp_path, NIC, b"\xff" * 4096)
    write_tree(tmp_path, f"{NIC}/current_link_speed: Unknown\n{NIC}/current_link_width: 63")

    function = functions.PciReader(SysRoot(str(tmp_path))).function(NIC)

    assert (function.speed_gtps, function.width, function.mps_bytes, function.mrrs_bytes) == (None, None, None, None)


def test_a_reader_reads_what_functions_have_in_common_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = mlx5_machine(tmp_path)
    sys = SysRoot(str(root))
    paths = [functions.find_function(sys, f"/sys/class/infiniband/{name}/device") or "" for name in ("mlx5_0", "mlx5_1")]
    write_config(tmp_path, str(Path(paths[0]).parent), config_space())
    expected = [functions.PciReader(sys).function(path) for path in paths]
    opened: Counter[str] = Counter()

    read_bytes, host_open = SysRoot.read_bytes, os.open

    def counted(self: SysRoot, path: str) -> bytes | None:
        opened[path] += 1
        return read_bytes(self, path)

    def counted_open(path: str, flags: int) -> int:
        opened[path] += 1
        return host_open(path, flags)

    monkeypatch.setattr(SysRoot, "read_bytes", counted)
    monkeypatch.setattr(os, "open", counted_open)
    reader = functions.PciReader(sys)

    assert [reader.function(path) for path in [*paths, *paths]] == [*expected, *expected]
    assert {path for path, count in opened.items() if count > 1} == set()
    assert len(opened) > 30


VF = f"{ROOT_PORT}/0000:01:00.2"
KINDS = {
    "physical": ("", NIC, ("pf", None)),
    "physical, with its ids": (f"{NIC}/vendor: 0x15b3\n{NIC}/device: 0x1021", NIC, ("pf", None)),
    "virtual": (f"{VF}/physfn -> ../0000:01:00.0", VF, ("vf", "0000:01:00.0")),
    "virtual, seen by a virtual machine": (f"{NIC}/vendor: 0x15b3\n{NIC}/device: 0x101e", NIC, ("vf", None)),
    "another maker's id": (f"{NIC}/vendor: 0x8086\n{NIC}/device: 0x101e", NIC, ("pf", None)),
    "subfunction": ("", f"{NIC}/mlx5_core.sf.4", ("sf", None)),
    "part of a subfunction": ("", f"{NIC}/mlx5_core.sf.12/mlx5_core.rdma.2", ("sf", None)),
    "part of a physical one": ("", f"{NIC}/mlx5_core.rdma.0", ("pf", None)),
    "part of a virtual machine's": ("", f"{NIC}/virtio1", ("pf", None)),
    "no PCI device": ("", "/sys/devices/platform/soc/ethernet", (None, None)),
}


@pytest.mark.parametrize(("lines", "device", "kind"), KINDS.values(), ids=KINDS)
def test_the_kind_of_a_function(tmp_path: Path, lines: str, device: str, kind: tuple[str | None, str | None]) -> None:
    write_tree(tmp_path, f"{lines}\n{device}/uevent: x\n/sys/class/infiniband/mlx5_0/device -> {device}")

    assert functions.read_function_kind(SysRoot(str(tmp_path)), "/sys/class/infiniband/mlx5_0/device") == kind


def test_a_software_device_is_no_function(tmp_path: Path) -> None:
    assert functions.read_function_kind(SysRoot(str(tmp_path)), "/sys/class/infiniband/rxe0/device") == (None, None)
