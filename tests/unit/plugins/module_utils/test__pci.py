# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.module_utils import _pci
from ansible_collections.rdma.cluster.plugins.module_utils._errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._pci import PciFunction, PciLink
from ansible_collections.rdma.cluster.plugins.module_utils._sysroot import SysRoot
from tests.unit.trees import mlx5_machine, write_tree

PARSERS = [getattr(_pci, name) for name in dir(_pci) if name.startswith("parse_")]
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
    assert _pci.parse_link_speed(text) == gtps


@pytest.mark.parametrize(("text", "width"), [("16\n", 16), ("1", 1), ("0\n", None), ("255", None), ("63", None)])
def test_link_width(text: str, width: int | None) -> None:
    assert _pci.parse_link_width(text) == width


@pytest.mark.parametrize(("text", "node"), [("0\n", 0), ("3", 3), ("-1\n", None)])
def test_numa_node(text: str, node: int | None) -> None:
    assert _pci.parse_numa_node(text) == node


def test_id() -> None:
    assert _pci.parse_id("0x15B3\n") == "0x15b3"


@pytest.mark.parametrize(
    ("parser", "text"),
    [
        (_pci.parse_link_speed, "16.0"),
        (_pci.parse_link_speed, "16.0 GT"),
        (_pci.parse_link_width, "x16"),
        (_pci.parse_numa_node, "one"),
        (_pci.parse_id, "15b3"),
    ],
)
def test_another_text_is_an_error_that_quotes_it(parser, text: str) -> None:
    with pytest.raises(ParseError, match=f"'{text}'"):
        parser(text)


@pytest.mark.parametrize("parser", PARSERS)
@given(text=st.text() | st.from_regex(r"-?[0-9x.]* ?(GT/s)?( PCIe)?"))
def test_nothing_but_a_parse_error_escapes(parser, text: str) -> None:
    with contextlib.suppress(ParseError):
        parser(text)


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

    assert _pci.find_function(SysRoot(str(tmp_path)), "/sys/class/net/eth0/device") == function


def test_an_interface_without_device_has_no_function(tmp_path: Path) -> None:
    assert _pci.find_function(SysRoot(str(tmp_path)), "/sys/class/net/lo/device") is None


def test_reads_a_function_and_the_narrowest_link_above_it(tmp_path: Path) -> None:
    sys = SysRoot(str(mlx5_machine(tmp_path)))

    assert _pci.read_function(sys, _pci.find_function(sys, "/sys/class/infiniband/mlx5_0/device") or "") == PciFunction(
        address="0000:3d:00.0",
        vendor_id="0x15b3",
        device_id="0x1021",
        numa_node=0,
        speed_gtps=32.0,
        width=16,
        max_speed_gtps=32.0,
        max_width=16,
        narrowest=PciLink("0000:3b:00.0", 32.0, 8),
    )


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

    assert _pci.read_function(SysRoot(str(tmp_path)), NIC).narrowest == narrowest


def test_what_a_function_does_not_tell_is_none(tmp_path: Path) -> None:
    expected = PciFunction("0000:01:00.0", None, None, None, None, None, None, None, None)

    assert _pci.read_function(SysRoot(str(tmp_path)), NIC) == expected
