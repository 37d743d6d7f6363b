# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""nvidia-smi as CSV and as a list of GPUs."""

from __future__ import annotations

import pytest
from hypothesis import given

from ansible_collections.rdma.cluster.plugins.module_utils._errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._nvidia_smi import (
    ListedGpu,
    parse_bus_id,
    parse_nvidia_smi_list,
    parse_nvidia_smi_query_csv,
    told,
)
from tests.unit.garbled import garbled, read_or_refused

CSV = """index, name, pci.bus_id, memory.total [MiB], power.draw [W], ecc.mode.current, pcie.link.gen.current, compute_cap
0, NVIDIA H200, 00000000:1B:00.0, 143771 MiB, 76.32 W, Enabled, 5, 9.0
1, NVIDIA H200, 00000000:43:00.0, 143771 MiB, [N/A], [Not Supported], [Unknown Error], 9.0
"""
NO_UNITS = CSV.replace("143771 MiB", "143771").replace("76.32 W", "76.32")
LISTED = """GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-00000000-1111-2222-3333-444444444444)
  MIG 3g.20gb     Device  0: (UUID: MIG-00000000-1111-5222-8333-000000000001)
  MIG 1g.5gb+me   Device  1: (UUID: MIG-GPU-00000000-1111-2222-3333-444444444444/1/0)
GPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-00000000-1111-2222-3333-555555555555)
"""
LOST = "Unable to determine the device handle for GPU1: 0000:34:00.0: Unknown Error\n"


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("00000000:1B:00.0", "0000:1b:00.0"),
        (" 0000:C1:00.0\n", "0000:c1:00.0"),
        ("0000000A:00:1E.7", "000a:00:1e.7"),
        ("00010000:E1:00.0", "10000:e1:00.0"),
    ],
)
def test_a_bus_id_is_as_sysfs_has_it(text: str, address: str) -> None:
    assert parse_bus_id(text) == address


@pytest.mark.parametrize(
    "text", ["", "1B:00.0", "00000000:1B:00", "00000000:1B:00.8", "00000000:1B:00.0 x", "\u0660\u0660\u0660\u0660:1B:00.0", "[N/A]"]
)
def test_another_text_is_no_bus_id(text: str) -> None:
    with pytest.raises(ParseError, match="not a PCI bus id") as caught:
        parse_bus_id(text)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [None, "", "N/A", "[N/A]", "[Not Supported]", "[Unknown Error]", "Unknown Error", "[GPU requires reset]", "GPU is lost", "ERR!", "[?]"],
)
def test_nothing_is_told(text: str | None) -> None:
    assert told(text) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [("None", "None"), ("0", "0"), ("13.3 [Deprecated; will be removed in CUDA 14.0. Use CUDA UMD Version instead]", "13.3")],
)
def test_something_is_told(text: str, value: str) -> None:
    assert told(text) == value


@pytest.mark.parametrize("text", [CSV, NO_UNITS, CSV.replace("\n", "\r\n"), CSV.replace(", ", ","), "\n" + CSV.replace("\n", "\n\n  ")])
def test_csv_with_and_without_units(text: str) -> None:
    assert parse_nvidia_smi_query_csv(text) == [
        {
            "index": "0",
            "name": "NVIDIA H200",
            "pci.bus_id": "0000:1b:00.0",
            "memory.total": "143771",
            "power.draw": "76.32",
            "ecc.mode.current": "Enabled",
            "pcie.link.gen.current": "5",
            "compute_cap": "9.0",
        },
        {
            "index": "1",
            "name": "NVIDIA H200",
            "pci.bus_id": "0000:43:00.0",
            "memory.total": "143771",
            "power.draw": None,
            "ecc.mode.current": None,
            "pcie.link.gen.current": None,
            "compute_cap": "9.0",
        },
    ]


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("", "''"),
        ("No devices were found\n", "No devices were found"),
        (
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the driver is installed.",
            "NVIDIA-SMI has failed",
        ),
        ('Field "pci.busid" is not a valid field to query.\n', "pci.busid"),
        (CSV.partition("\n")[2], "0, NVIDIA H200"),
        (CSV.partition("\n")[0], "index, name"),
        (CSV + LOST, "Unable to determine"),
        (LOST + CSV, "Unable to determine"),
        (CSV.rpartition(", 9.0")[0], "[Not Supported], [Unknown Error]"),
        (CSV.replace("00000000:43:00.0", "43:00.0"), "43:00.0"),
    ],
    ids=range(10),
)
def test_another_text_is_no_csv(text: str, quoted: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_nvidia_smi_query_csv(text)
    assert quoted in str(caught.value)


@pytest.mark.parametrize(
    "text", [LISTED, LISTED.replace("\n", "\r\n"), "$ nvidia-smi -L\n\n" + LISTED.replace("\n", "\n\n  "), LISTED.rstrip()]
)
def test_gpus_are_listed_with_their_mig_devices(text: str) -> None:
    assert parse_nvidia_smi_list(text) == [
        ListedGpu(
            index=0,
            name="NVIDIA A100-SXM4-40GB",
            uuid="GPU-00000000-1111-2222-3333-444444444444",
            mig_uuids=["MIG-00000000-1111-5222-8333-000000000001", "MIG-GPU-00000000-1111-2222-3333-444444444444/1/0"],
        ),
        ListedGpu(index=1, name="NVIDIA H100 80GB HBM3", uuid="GPU-00000000-1111-2222-3333-555555555555", mig_uuids=[]),
    ]


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("", "''"),
        ("No devices found.\n", "No devices found."),
        (LISTED.replace("GPU 1:", "GPU 2:"), "GPU 2: NVIDIA H100"),
        (LISTED + LISTED, "GPU 0: NVIDIA A100"),
        (LISTED + LOST, "0000:34:00.0"),
        (LISTED[:-10], "555"),
        (LISTED.partition("000000000001")[0], "MIG 3g.20gb"),
        (LISTED.partition("\n")[2], "MIG 3g.20gb"),
    ],
    ids=range(8),
)
def test_another_text_is_no_list(text: str, quoted: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_nvidia_smi_list(text)
    assert quoted in str(caught.value)


@given(garbled(CSV) | garbled(NO_UNITS))
def test_nothing_but_a_parse_error_escapes_from_csv(text: str) -> None:
    assert read_or_refused(parse_nvidia_smi_query_csv, text)


@given(garbled(LISTED))
def test_nothing_but_a_parse_error_escapes_from_the_list(text: str) -> None:
    assert read_or_refused(parse_nvidia_smi_list, text)
