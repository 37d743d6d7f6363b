# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._pci.config import PciConfig, PcieCapability, read_config
from tests.unit.builders.config_space import ACS, PCIE, config_space, decoded_config, put
from tests.unit.builders.garbled import read_or_refused

NIC = "/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0"
GONE = PciConfig(gone=True, header_type=None, pcie=None, extended=None, acs=None)


def changed(offset: int, *words: int) -> bytes:
    data = bytearray(config_space())
    put(data, offset, *words)
    return bytes(data)


def test_a_network_card() -> None:
    assert decoded_config(config_space(capability=2)) == PciConfig(
        gone=False,
        header_type=0,
        pcie=PcieCapability("endpoint", 512, 256, 4096, 32.0, 16, 32.0, 16),
        extended=[0x01, 0x0E, 0x0D],
        acs=[],
    )


def test_a_port_of_a_switch_that_guards_its_devices() -> None:
    found = decoded_config(config_space(header_type=0x81, port_type=6, control=0, link_status=0x7083, acs=0x1D))
    assert (found.header_type, found.acs) == (1, ["SrcValid", "ReqRedir", "CmpltRedir", "UpstreamFwd"])
    assert found.pcie == PcieCapability("downstream port", 128, 128, 128, 32.0, 16, 8.0, 8)


@pytest.mark.parametrize(
    ("code", "speed_gtps", "width"), [(0x011, 2.5, 1), (0x022, 5.0, 2), (0x0C4, 16.0, 12), (0x206, 64.0, 32), (0x107, 128.0, 16)]
)
def test_links(code: int, speed_gtps: float, width: int) -> None:
    pcie = decoded_config(config_space(link_status=code)).pcie
    assert pcie is not None
    assert (pcie.speed_gtps, pcie.width) == (speed_gtps, width)


@pytest.mark.parametrize(
    ("bit", "name"),
    list(enumerate(["SrcValid", "TransBlk", "ReqRedir", "CmpltRedir", "UpstreamFwd", "EgressCtrl", "DirectTrans"])),
)
def test_each_control_of_acs(bit: int, name: str) -> None:
    assert decoded_config(config_space(acs=1 << bit)).acs == [name]


def test_without_acs() -> None:
    found = decoded_config(config_space(acs=None))
    assert (found.acs, found.extended) == (None, [0x01, 0x0E])


@pytest.mark.parametrize("size", [64, 96, 110])
def test_what_may_not_be_read_is_none(size: int) -> None:
    assert decoded_config(config_space(size=size)) == PciConfig(gone=False, header_type=0, pcie=None, extended=None, acs=None)


def test_without_the_extended_space() -> None:
    found = decoded_config(config_space(size=256))
    assert found.pcie is not None
    assert (found.extended, found.acs) == (None, None)


def test_a_capability_that_is_cut_off() -> None:
    found = decoded_config(config_space(size=ACS + 6))
    assert (found.extended, found.acs) == ([0x01, 0x0E, 0x0D], None)


@pytest.mark.parametrize("size", [64, 256, 4096])
def test_a_function_that_fell_off_the_bus(size: int) -> None:
    assert decoded_config(b"\xff" * size) == GONE


def test_a_virtual_function_has_no_ids_of_its_own_and_is_there() -> None:
    found = decoded_config(changed(0, 0xFFFF, 0xFFFF))
    assert not found.gone
    assert found.pcie is not None


@pytest.mark.parametrize(
    "offset_and_words",
    [(0x06, 0), (0x34, 0), (0x34, 0x3C), (0x40, 0x4001), (0x40, 0x00FF), (0x40, 0x0001)],
    ids=["no list", "empty list", "into the header", "in a circle", "all bits set", "ends before"],
)
def test_a_list_that_does_not_lead_to_pci_express(offset_and_words: tuple[int, int]) -> None:
    assert decoded_config(changed(*offset_and_words)).pcie is None


@pytest.mark.parametrize(
    ("words", "extended"),
    [((0, 0), []), ((0xFFFF, 0xFFFF), []), ((0x0001, 0x1001), [0x01]), ((0x0001, 0x0041), [0x01]), ((0x0000, 0x2301), [0x00, 0x0D])],
    ids=["none", "all bits set", "in a circle", "into the other list", "begins with one of no meaning"],
)
def test_the_extended_list(words: tuple[int, int], extended: list[int]) -> None:
    assert decoded_config(changed(0x100, *words)).extended == extended


@pytest.mark.parametrize(
    ("offset", "word", "field"),
    [
        (PCIE + 4, 7, "mps_max_bytes"),
        (PCIE + 8, 0x50C0, "mps_bytes"),
        (PCIE + 8, 0x6020, "mrrs_bytes"),
        (PCIE + 12, 0x0100, "max_speed_gtps"),
        (PCIE + 12, 0x03F5, "max_width"),
        (PCIE + 18, 0x010F, "speed_gtps"),
        (PCIE + 18, 0x0005, "width"),
        (PCIE + 2, 0x00F2, "port_type"),
    ],
)
def test_a_code_that_means_nothing_is_none(offset: int, word: int, field: str) -> None:
    pcie = decoded_config(changed(offset, word)).pcie
    assert pcie is not None
    assert [name for name, value in vars(pcie).items() if value is None] == [field]


@pytest.mark.parametrize("port_type", [9, 10])
def test_a_part_of_the_root_complex_has_no_link(port_type: int) -> None:
    pcie = decoded_config(config_space(port_type=port_type)).pcie
    assert pcie is not None
    assert (pcie.max_speed_gtps, pcie.max_width, pcie.speed_gtps, pcie.width) == (None, None, None, None)
    assert (pcie.mps_bytes, pcie.mrrs_bytes) == (256, 4096)


@pytest.mark.parametrize("data", [b"\x86\x80", b"cat: config: No such file or directory\n"])
def test_too_few_bytes_are_quoted(data: bytes) -> None:
    with pytest.raises(ParseError, match=f"{len(data)} bytes '{data[:16].hex(' ')}'"):
        decoded_config(data)


@given(data=st.binary(min_size=1, max_size=4096))
def test_random_bytes(data: bytes) -> None:
    assert read_or_refused(decoded_config, data)


@given(
    cut=st.integers(1, 4096),
    places=st.lists(st.tuples(st.sampled_from([0x06, 0x34, 0x40, 0x41, 0x60, 0x61, 0x9D, *range(0x100, 0x104), ACS]), st.integers(0, 255))),
)
def test_garbled_bytes(cut: int, places: list[tuple[int, int]]) -> None:
    data = bytearray(config_space(acs=0x7F))
    for offset, value in places:
        data[offset] = value
    assert read_or_refused(decoded_config, bytes(data[:cut]))


def tree(root: Path, data: bytes) -> SysRoot:
    file = root / NIC.lstrip("/") / "config"
    file.parent.mkdir(parents=True)
    file.write_bytes(data)
    return SysRoot(str(root))


def test_little_of_the_file_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lengths: list[int] = []
    pread = os.pread

    def counted(file: int, length: int, offset: int) -> bytes:
        lengths.append(length)
        return pread(file, length, offset)

    monkeypatch.setattr(os, "pread", counted)
    found = read_config(tree(tmp_path, config_space(acs=1)), NIC)
    assert found is not None
    assert found.acs == ["SrcValid"]
    assert sum(lengths) <= 128


def test_a_tree_without_the_file(tmp_path: Path) -> None:
    assert read_config(SysRoot(str(tmp_path)), NIC) is None


def test_a_captured_file_without_content(tmp_path: Path) -> None:
    assert read_config(tree(tmp_path, b""), NIC) is None


def test_a_folder_in_place_of_the_file(tmp_path: Path) -> None:
    (tmp_path / NIC.lstrip("/") / "config").mkdir(parents=True)
    assert read_config(SysRoot(str(tmp_path)), NIC) is None


def test_an_error_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sys = tree(tmp_path, b"\x86\x80")
    with pytest.raises(ParseError, match=f"^{NIC}/config: not a configuration space: 2 bytes '86 80'"):
        read_config(sys, NIC)

    def refuse(path: str, flags: int) -> int:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(PermissionError) as caught:
        read_config(sys, NIC)
    assert caught.value.filename == f"{NIC}/config"
