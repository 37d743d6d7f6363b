# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._gpu.gpus import (
    Gpu,
    GpuDriver,
    GpuInformation,
    parse_gpu_information,
    parse_nvrm_version,
    read_gpu_driver,
    read_gpus,
)
from ansible_collections.rdma.cluster.plugins.module_utils._pci.functions import PciReader
from tests.unit.builders.garbled import read_or_refused
from tests.unit.builders.trees import write_tree

# Of a machine with an H200 and the open driver; the UUID is changed.
OPEN = """NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (builder@host)
GCC version:  gcc version 15.3.0 (GCC)
"""
PROPRIETARY = """NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 18:56:32 UTC 2023
GCC version:  gcc version 12.3.0 (Ubuntu 12.3.0-1ubuntu1~22.04)
"""
UUID = "GPU-01234567-89ab-cdef-0123-456789abcdef"
H200 = f"""Model: \t\t NVIDIA H200
IRQ:   \t\t 41
GPU UUID: \t {UUID}
Video BIOS: \t 96.00.a5.00.1a
Bus Type: \t PCIe
DMA Size: \t 52 bits
DMA Mask: \t 0xfffffffffffff
Bus Location: \t 0000:1b:00.0
Device Minor: \t 0
GPU Firmware: \t 580.159.04
GPU Excluded:\t No
"""


@pytest.mark.parametrize(
    ("text", "driver"),
    [
        (OPEN, GpuDriver("580.159.04", open=True)),
        (OPEN.replace("x86_64", "aarch64").replace("580.159.04", "540.4.0"), GpuDriver("540.4.0", open=True)),
        (PROPRIETARY, GpuDriver("535.129.03", open=False)),
        (PROPRIETARY.replace("535.129.03 ", "535.54"), GpuDriver("535.54", open=False)),
        (PROPRIETARY.replace("\n", "\r\n"), GpuDriver("535.129.03", open=False)),
        ("\n\tGCC version: x\n    " + OPEN, GpuDriver("580.159.04", open=True)),
    ],
    ids=["open", "open, ARM", "proprietary", "of two numbers", "CRLF", "other lines before"],
)
def test_nvrm_version(text: str, driver: GpuDriver) -> None:
    assert parse_nvrm_version(text) == driver


@pytest.mark.parametrize("text", ["", "cat: /proc/driver/nvidia/version: No such file or directory", OPEN[:60], PROPRIETARY[:48]])
def test_what_is_no_version_is_quoted(text: str) -> None:
    with pytest.raises(ParseError, match="not a version of NVIDIA's driver") as caught:
        parse_nvrm_version(text)
    assert repr(text) in str(caught.value)


def test_gpu_information() -> None:
    assert parse_gpu_information(H200) == GpuInformation("NVIDIA H200", UUID, "0000:1b:00.0")


@pytest.mark.parametrize(
    ("text", "information"),
    [
        (H200.replace("\n", "\r\n"), GpuInformation("NVIDIA H200", UUID, "0000:1b:00.0")),
        (H200.replace(UUID, "GPU-????????-????-????-????-????????????"), GpuInformation("NVIDIA H200", None, "0000:1b:00.0")),
        (H200.replace(f"GPU UUID: \t {UUID}\n", ""), GpuInformation("NVIDIA H200", None, "0000:1b:00.0")),
        (H200.replace("NVIDIA H200", "Unknown"), GpuInformation(None, UUID, "0000:1b:00.0")),
        (H200.replace("0000:1b:00.0", "0000:1B.00.0"), GpuInformation("NVIDIA H200", UUID, "0000:1b:00.0")),
        ("Model: \t\t NVIDIA A100: PCIe\n", GpuInformation("NVIDIA A100: PCIe", None, None)),
    ],
    ids=["CRLF", "not set up", "without UUID", "no name", "the address of old drivers", "one line"],
)
def test_gpu_information_that_lacks_something(text: str, information: GpuInformation) -> None:
    assert parse_gpu_information(text) == information


@pytest.mark.parametrize("text", ["", "Failed to open the device", "Node: 250\nStatus: online"])
def test_what_is_no_information_is_quoted(text: str) -> None:
    with pytest.raises(ParseError, match="not the driver's information on a GPU") as caught:
        parse_gpu_information(text)
    assert repr(text) in str(caught.value)


def test_an_address_that_is_none_is_quoted() -> None:
    with pytest.raises(ParseError, match="not a PCI address: '0000:1b'"):
        parse_gpu_information(H200[: H200.index(":00.0")])


LINES = st.lists(st.sampled_from([*H200.splitlines(), *OPEN.splitlines(), *PROPRIETARY.splitlines(), "", "²", "\0", "Bus Location: ٣"]))


@given(text=st.text() | LINES.map("\n".join), cut=st.integers(0, 600), junk=st.text(max_size=5))
def test_nothing_but_a_parse_error_escapes(text: str, cut: int, junk: str) -> None:
    for parser in (parse_nvrm_version, parse_gpu_information):
        assert read_or_refused(parser, text[:cut] + junk + text[cut + 1 :])


PORT = "/sys/devices/pci0000:17/0000:17:01.0"
MODALIAS = "pci:v000010DEd00002335sv000010DEsd000018BFbc03sc02i00"


def function(address: str, modalias: str) -> str:
    return f"""
        /sys/bus/pci/devices/{address} -> ../../../devices/pci0000:17/0000:17:01.0/{address}
        {PORT}/{address}/vendor: 0x10de
        {PORT}/{address}/numa_node: 1
        {PORT}/{address}/modalias: {modalias}
    """


def machine(root: Path, *lines: str) -> SysRoot:
    """One H200 that the driver knows, beside an NVSwitch, the sound of a display card, and a NIC."""
    text = function("0000:1b:00.0", MODALIAS)
    text += function("0000:1c:00.0", MODALIAS.replace("bc03sc02", "bc06sc80"))
    text += function("0000:1d:00.1", MODALIAS.replace("bc03sc02", "bc04sc03"))
    text += function("0000:1e:00.0", MODALIAS.replace("v000010DE", "v000015B3").replace("bc03sc02", "bc02sc00"))
    text += f"\n/proc/driver/nvidia/version: {OPEN}\n/proc/driver/nvidia/gpus/0000:1b:00.0/information: " + H200.replace("\n", "\\n")
    return SysRoot(str(write_tree(root, text + "\n" + "\n".join(lines))))


def test_a_gpu_and_its_driver(tmp_path: Path) -> None:
    sys = machine(tmp_path)

    gpus, driver = read_gpus(sys)

    pci = PciReader(sys).function(f"{PORT}/0000:1b:00.0")
    assert gpus == [Gpu("0000:1b:00.0", "NVIDIA H200", UUID, 1, pci)]
    assert (pci.vendor_id, pci.numa_node, [hop.address for hop in pci.hops]) == ("0x10de", 1, ["0000:17:01.0"])
    assert driver == read_gpu_driver(sys) == GpuDriver("580.159.04", open=True)


def test_a_reader_is_shared(tmp_path: Path) -> None:
    sys = machine(tmp_path)
    reader = PciReader(sys)

    gpus, _driver = read_gpus(sys, reader)

    assert gpus[0].pci is reader.function(f"{PORT}/0000:1b:00.0")


def test_display_cards_count_and_virtual_functions_do_not(tmp_path: Path) -> None:
    virtual = f"{PORT}/0000:1b:00.4/physfn -> ../0000:1b:00.0"
    sys = machine(tmp_path, function("0000:1f:00.0", MODALIAS.replace("sc02", "sc00")), function("0000:1b:00.4", MODALIAS), virtual)

    gpus, _driver = read_gpus(sys)

    assert [(gpu.address, gpu.model) for gpu in gpus] == [("0000:1b:00.0", "NVIDIA H200"), ("0000:1f:00.0", None)]


def test_a_gpu_without_a_driver(tmp_path: Path) -> None:
    sys = SysRoot(str(write_tree(tmp_path, function("0000:1b:00.0", MODALIAS))))

    gpus, driver = read_gpus(sys)

    assert driver is None
    assert [(gpu.address, gpu.model, gpu.uuid, gpu.numa_node) for gpu in gpus] == [("0000:1b:00.0", None, None, 1)]


def test_a_tree_of_old_has_no_modalias(tmp_path: Path) -> None:
    base = "/sys/bus/pci/devices"
    lines = [f"{base}/0000:0{number}:00.0/vendor: {vendor}\n{base}/0000:0{number}:00.0/class: {kind}" for number, vendor, kind in
             [(1, "0x10de", "0x030200"), (2, "0x10de", "0x030000"), (3, "0x10de", "0x068000"), (4, "0x1002", "0x030000")]]  # fmt: skip

    gpus, _driver = read_gpus(SysRoot(str(write_tree(tmp_path, "\n".join(lines)))))

    assert [gpu.address for gpu in gpus] == ["0000:01:00.0", "0000:02:00.0"]


def test_a_gpu_that_only_the_driver_knows(tmp_path: Path) -> None:
    sys = machine(tmp_path, "/proc/driver/nvidia/gpus/0000:9b:00.0/information: ")

    gpus, _driver = read_gpus(sys)

    assert gpus[1] == Gpu("0000:9b:00.0", None, None, None, None)


def test_a_machine_without(tmp_path: Path) -> None:
    assert read_gpus(SysRoot(str(tmp_path))) == ([], None)


def test_an_error_names_the_file(tmp_path: Path) -> None:
    sys = machine(tmp_path, "/proc/driver/nvidia/gpus/0000:1b:00.0/information: garbled")
    with pytest.raises(ParseError, match=r"^/proc/driver/nvidia/gpus/0000:1b:00\.0/information: not the driver's"):
        read_gpus(sys)
