# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The long form of nvidia-smi; of two H200 as they were, and a short text in the same form."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.module_utils._errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._nvidia_smi_q import GpuLink, NvidiaGpu, NvidiaSmi, parse_nvidia_smi_q
from tests.unit.garbled import garbled, read_or_refused

H200 = (Path(__file__).parents[2] / "fixtures/h200/nvidia-smi-q.txt").read_text(encoding="utf-8")
GPU = """    Product Name                                       : NVIDIA B300
    Product Architecture                               : Blackwell
    Persistence Mode                                   : Disabled
    Addressing Mode                                    : ATS
    MIG Mode
        Current                                        : Enabled
        Pending                                        : Disabled
    Serial Number                                      : N/A
    GPU UUID                                           : GPU-00000000-1111-2222-3333-444444444444
    Minor Number                                       : 3
    GPU Reset Status
        Reset Required                                 : Yes
    PCI
        GPU Link Info
            PCIe Generation
                Max                                    : 6
                Current                                : 5
            Link Width
                Max                                    : 16x
                Current                                : 8x
    BAR1 Memory Usage
        Total                                          : 256 MiB
    ECC Errors
        Volatile
            SRAM Correctable                           : 7
            DRAM Uncorrectable                         : N/A
    Retired Pages
        Single Bit ECC                                 : 60
        Double Bit ECC                                 : 5
        Pending Page Blacklist                         : Yes
    Remapped Rows
        Correctable Error                              : 2
        Uncorrectable Error                            : 4
        Pending                                        : Yes
        Remapping Failure Occurred                     : Yes
    Processes
        Process ID                                     : 100607
            Type                                       : C
            Name                                       : /opt/a: b
        Process ID                                     : 100838
"""
HEAD = """
==============NVSMI LOG==============

Timestamp                                              : Sun Sep  6 08:21:38 2026
Driver Version                                         : 610.57.04 [Deprecated; will be removed in CUDA 14.0. Use KMD Version instead]
CUDA Version                                           : 13.3 [Deprecated; will be removed in CUDA 14.0. Use CUDA UMD Version instead]
KMD Version                                            : 610.57.04
CUDA UMD Version                                       : 13.3

"""
ATTACHED = "Attached GPUs                                          : {}\n"
SHORT = HEAD + ATTACHED.format(2) + "GPU 00010000:C1:00.0\n" + GPU + "\nGPU 00010000:C2:00.0\n" + GPU + "\n"
LOST = "Unable to determine the device handle for GPU1: 0000:34:00.0: Unknown Error\n"
B300 = NvidiaGpu(
    bus_id="10000:c1:00.0",
    name="NVIDIA B300",
    architecture="Blackwell",
    uuid="GPU-00000000-1111-2222-3333-444444444444",
    serial=None,
    minor_number=3,
    vbios_version=None,
    gsp_firmware_version=None,
    persistence_mode=False,
    addressing_mode="ATS",
    virtualization_mode=None,
    mig_mode=True,
    ecc_mode=None,
    ecc_errors={"Volatile, SRAM Correctable": 7},
    retired_pages_single_bit=60,
    retired_pages_double_bit=5,
    retirement_pending=True,
    remapped_rows_correctable=2,
    remapped_rows_uncorrectable=4,
    remapping_pending=True,
    remapping_failed=True,
    bar1_bytes=256 * 2**20,
    link=GpuLink(generation=5, max_generation=6, device_max_generation=None, host_max_generation=None, width=8, max_width=16),
    reset_required=True,
    recovery_action=None,
    fabric_state=None,
    fabric_status=None,
)
WHOLE = NvidiaSmi("610.57.04", "13.3", 2, [B300, replace(B300, bus_id="10000:c2:00.0")])


def test_two_h200() -> None:
    errors = dict.fromkeys(
        [
            *(f"{since}, SRAM Correctable" for since in ("Volatile", "Aggregate")),
            *(f"{since}, SRAM Uncorrectable Parity" for since in ("Volatile", "Aggregate")),
            *(f"{since}, SRAM Uncorrectable SEC-DED" for since in ("Volatile", "Aggregate")),
            *(f"{since}, DRAM Correctable" for since in ("Volatile", "Aggregate")),
            *(f"{since}, DRAM Uncorrectable" for since in ("Volatile", "Aggregate")),
            *(f"Aggregate Uncorrectable SRAM Sources, SRAM {source}" for source in ("L2", "SM", "Microcontroller", "PCIE", "Other")),
        ],
        0,
    )
    first = NvidiaGpu(
        bus_id="0000:00:06.0",
        name="NVIDIA H200",
        architecture="Hopper",
        uuid="GPU-00000000-0000-0000-0000-000000000000",
        serial="0000000000000",
        minor_number=0,
        vbios_version="96.00.A5.00.1A",
        gsp_firmware_version="580.159.04",
        persistence_mode=True,
        addressing_mode="None",
        virtualization_mode="Pass-Through",
        mig_mode=False,
        ecc_mode=True,
        ecc_errors=errors,
        retired_pages_single_bit=None,
        retired_pages_double_bit=None,
        retirement_pending=None,
        remapped_rows_correctable=0,
        remapped_rows_uncorrectable=0,
        remapping_pending=False,
        remapping_failed=False,
        bar1_bytes=256 * 2**30,
        link=GpuLink(5, 5, 5, None, 16, 16),
        reset_required=None,
        recovery_action="None",
        fabric_state="Completed",
        fabric_status="Success",
    )
    second = replace(first, bus_id="0000:00:07.0", minor_number=1)
    assert parse_nvidia_smi_q(H200) == NvidiaSmi("580.159.04", "13.0", 2, [first, second])


def test_what_a_newer_driver_calls_its_versions() -> None:
    assert parse_nvidia_smi_q(SHORT) == WHOLE


def test_a_process_does_not_hide_what_stands_above_it() -> None:
    text = SHORT.replace("            Type ", "            Product Name                               : x\n            Type ")
    assert parse_nvidia_smi_q(text) == WHOLE


def test_one_section_alone_leaves_the_others_unknown() -> None:
    text = HEAD + ATTACHED.format(1) + "GPU 00000000:01:00.0\n    Retired Pages\n        Pending Page Blacklist            : No\n"
    only = parse_nvidia_smi_q(text).gpus[0]
    assert (only.bus_id, only.retirement_pending, only.name, only.ecc_errors) == ("0000:01:00.0", False, None, {})
    assert only.link == GpuLink(None, None, None, None, None, None)


def test_without_gpus() -> None:
    assert parse_nvidia_smi_q(HEAD + ATTACHED.format(0)) == NvidiaSmi("610.57.04", "13.3", 0, [])


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("\n", "\n\n"),
        lambda text: text.replace("\n", "\n  "),
        lambda text: text.replace("    ", "\t"),
        lambda text: "# nvidia-smi -q\n" + text + "[root@node1 ~]# \n",
        lambda text: text.rstrip(),
        lambda text: text.replace(" : ", ": "),
    ],
    ids=["crlf", "blank-lines", "indented", "tabs", "prompts", "stripped", "colons"],
)
def test_blanks_and_other_lines_do_not_matter(spoil: Callable[[str], str]) -> None:
    assert parse_nvidia_smi_q(spoil(SHORT)) == WHOLE


def test_mig_devices_are_in_some_gpus_alone() -> None:
    mig = "    MIG Device\n        Index                                          : 0\n"
    text = SHORT.replace("    Serial Number", mig + "    Serial Number", 1)
    assert parse_nvidia_smi_q(text) == WHOLE
    with pytest.raises(ParseError, match="Remapping Failure Occurred"):
        parse_nvidia_smi_q(text.rpartition("    Processes")[0])


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("", "''"),
        ("No devices were found\n", "No devices were found"),
        ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n", "NVIDIA-SMI has failed"),
        (HEAD, "NVSMI LOG"),
        (SHORT.replace(ATTACHED.format(2), ATTACHED.format("²")), "NVSMI LOG"),
        (SHORT.replace(ATTACHED.format(2), ATTACHED.format(8)), "100838"),
        (LOST + SHORT.replace(ATTACHED.format(2), ATTACHED.format(3)), "0000:34:00.0"),
        (SHORT.replace("C2:00.0", "C1:00.0"), "twice"),
        (SHORT.rpartition("    Processes")[0], "Remapping Failure Occurred"),
        (SHORT.rpartition("    Product Name")[0], "GPU 00010000:C2:00.0"),
    ],
    ids=range(10),
)
def test_another_text_is_refused(text: str, quoted: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_nvidia_smi_q(text)
    assert quoted in str(caught.value)


@given(st.integers(0, len(SHORT.splitlines())))
def test_output_that_ends_early_is_refused_unless_only_processes_are_missing(count: int) -> None:
    with contextlib.suppress(ParseError):
        assert parse_nvidia_smi_q("".join(SHORT.splitlines(keepends=True)[:count])) == WHOLE


@given(garbled(SHORT) | garbled(HEAD + ATTACHED.format(1)))
def test_nothing_but_a_parse_error_escapes(text: str) -> None:
    assert read_or_refused(parse_nvidia_smi_q, text)
