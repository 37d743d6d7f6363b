# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The matrix of nvidia-smi topo -m: of two H200 as it was, and own ones in the form of drivers with and without NIC numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.module_utils._errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._nvidia_smi_topo import Topology, parse_nvidia_smi_topo
from tests.unit.garbled import garbled, read_or_refused

H200 = (Path(__file__).parents[2] / "fixtures/h200/nvidia-smi-topo-m.txt").read_text(encoding="utf-8")
MATRIX = """\t\x1b[4mGPU0\tGPU1\tNIC0\tNIC1\tNIC2\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m
GPU0\t X \tNV18\tPIX\tSYS\tNODE\t0-31,64-95\t0\t\tN/A
GPU1\tNV18\t X \tSYS\tPXB\tSYS\t32-63,96-127\t1\t\tN/A
NIC0\tPIX\tSYS\t X \tSYS\tPHB\t\t\t\t
NIC1\tSYS\tPXB\tSYS\t X \tSYS\t\t\t\t
NIC2\tNODE\tSYS\tPHB\tSYS\t X \t\t\t\t
"""
LEGEND = """
Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)
  NV#  = Connection traversing a bonded set of # NVLinks
"""
NIC_LEGEND = """
NIC Legend:

  NIC0: mlx5_0
  NIC1: rocep4s0f1
  NIC2: mlx5_bond_0

"""
SHOWN = MATRIX + LEGEND + NIC_LEGEND
NAMES = ["GPU0", "GPU1", "NIC0", "NIC1", "NIC2"]
CELLS = ["X NV18 PIX SYS NODE", "NV18 X SYS PXB SYS", "PIX SYS X SYS PHB", "SYS PXB SYS X SYS", "NODE SYS PHB SYS X"]
WHOLE = Topology(
    gpus=["GPU0", "GPU1"],
    nics=["NIC0", "NIC1", "NIC2"],
    distances={(name, other): cell for name, row in zip(NAMES, CELLS) for other, cell in zip(NAMES, row.split())},
    cpu_affinity={"GPU0": "0-31,64-95", "GPU1": "32-63,96-127"},
    numa_affinity={"GPU0": 0, "GPU1": 1},
    nic_names={"NIC0": "mlx5_0", "NIC1": "rocep4s0f1", "NIC2": "mlx5_bond_0"},
)
OLD = """\tGPU0\tGPU1\tmlx5_0\tmlx5_1\tCPU Affinity
GPU0\t X \tNV2\tNODE\tSOC\t0-23
GPU1\tNV2\t X \tSOC\tPIX\t24-47
mlx5_0\tNODE\tSOC\t X \tSOC\t
mlx5_1\tSOC\tPIX\tSOC\t X \t
"""


def test_two_h200() -> None:
    assert parse_nvidia_smi_topo(H200) == Topology(
        gpus=["GPU0", "GPU1"],
        nics=[],
        distances={("GPU0", "GPU0"): "X", ("GPU0", "GPU1"): "NV18", ("GPU1", "GPU0"): "NV18", ("GPU1", "GPU1"): "X"},
        cpu_affinity={"GPU0": "0-31", "GPU1": "0-31"},
        numa_affinity={"GPU0": 0, "GPU1": 0},
        nic_names={},
    )


def test_gpus_and_nics() -> None:
    assert parse_nvidia_smi_topo(SHOWN) == WHOLE


def test_old_drivers_name_the_devices_in_the_table() -> None:
    topology = parse_nvidia_smi_topo(OLD + LEGEND)
    assert (topology.gpus, topology.nics) == (["GPU0", "GPU1"], ["mlx5_0", "mlx5_1"])
    assert topology.nic_names == {"mlx5_0": "mlx5_0", "mlx5_1": "mlx5_1"}
    assert (topology.distances["GPU0", "mlx5_1"], topology.distances["mlx5_1", "GPU1"]) == ("SOC", "PIX")
    assert (topology.cpu_affinity, topology.numa_affinity) == ({"GPU0": "0-23", "GPU1": "24-47"}, {})


@pytest.mark.parametrize("text", [MATRIX, MATRIX + LEGEND], ids=["no-legend", "no-nic-legend"])
def test_without_the_legend_the_nics_have_no_names(text: str) -> None:
    topology = parse_nvidia_smi_topo(text)
    assert topology.nic_names == {}
    assert topology.distances == WHOLE.distances


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("\n", "\n  "),
        lambda text: text.replace("\t\t\t\t", "").replace("\t\t", "\t").replace("\t", "    "),
        lambda text: text.replace("\x1b[4m", "").replace("\x1b[0m", ""),
        lambda text: "$ nvidia-smi topo -m\n" + text + "$ ls\n",
        lambda text: text.partition("\n\nNIC Legend")[0].rpartition("\n\nLegend")[0] + "\n\nNIC Legend" + text.partition("NIC Legend")[2],
        lambda text: text.replace("NODE\t0-31", "NODE\n\t0-31").replace("NIC2\tCPU", "NIC2\nCPU").replace("GPU NUMA ID", "GPU NUMA\nID"),
        lambda text: text.replace("\nGPU", "\n\nGPU").replace("\nNIC1\t", "\n\nNIC1\t"),
        lambda text: text.replace("\nGPU1\tNV18\t X \t", "\nGPU1NV18X").replace("GPU0\tGPU1\tNIC0", "GPU0GPU1NIC0"),
    ],
    ids=["crlf", "indented", "blanks-for-tabs", "no-escapes", "prompts", "nic-legend-alone", "wrapped", "blank-lines", "run-together"],
)
def test_the_blanks_do_not_matter(spoil: Callable[[str], str]) -> None:
    assert parse_nvidia_smi_topo(spoil(SHOWN)) == WHOLE


@pytest.mark.parametrize(
    ("cells", "cpu", "numa"),
    [
        ("0-31\t0\t\tN/A", "0-31", 0),
        ("\t1\t\tN/A", None, 1),
        ("0-31\t\t\tN/A", "0-31", None),
        ("0-31\tN/A\t\tN/A", "0-31", None),
        ("0-31\t0-1\t\tN/A", "0-31", None),
        ("N/A\tN/A\t\tN/A", None, None),
        ("0-31\t0", "0-31", 0),
        ("", None, None),
    ],
)
def test_affinities_that_are_not_told(cells: str, cpu: str | None, numa: int | None) -> None:
    topology = parse_nvidia_smi_topo(SHOWN.replace("0-31,64-95\t0\t\tN/A", cells))
    assert (topology.cpu_affinity["GPU0"], topology.numa_affinity["GPU0"]) == (cpu, numa)
    assert (topology.cpu_affinity["GPU1"], topology.numa_affinity["GPU1"]) == ("32-63,96-127", 1)


def test_affinities_that_ran_together_are_not_guessed() -> None:
    topology = parse_nvidia_smi_topo(SHOWN.replace("NODE\t0-31,64-95\t0\t\tN/A", "NODE    0-31,64-950    N/A"))
    assert (topology.cpu_affinity["GPU0"], topology.numa_affinity["GPU0"]) == (None, None)


def test_one_gpu() -> None:
    topology = parse_nvidia_smi_topo("\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \t0-19\t0\t\tN/A\n")
    assert (topology.gpus, topology.distances, topology.cpu_affinity) == (["GPU0"], {("GPU0", "GPU0"): "X"}, {"GPU0": "0-19"})


def test_gpus_need_not_begin_at_0_nor_have_one_digit() -> None:
    names = ["GPU1", "GPU10", "GPU11"]
    rows = "".join("\t".join([name, *("X" if name == other else "NV6" for other in names)]) + "\n" for name in names)
    topology = parse_nvidia_smi_topo("\t" + "\t".join(names) + "\n" + rows)
    assert topology.gpus == names
    assert topology.distances["GPU10", "GPU11"] == "NV6"


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("", "''"),
        ("Failed to initialize NVML: Driver/library version mismatch\n", "Driver/library version mismatch"),
        ("Preparing host buffer and memcpy to GPU0...\n", "memcpy to GPU0"),
        ("GPU00000001:00:00.0\n", "GPU00000001:00:00.0"),
        (" \tGPU0\tGPU1\t\n GPU0\tX\tOK\t\n GPU1\tOK\tX\t\n\nLegend:\n\n  X    = Self\n  OK   = Status Ok\n", "OK"),
        ("\tGPU0\tGPU1\n", "GPU1"),
        (MATRIX.rpartition("NIC2")[0], "NIC1\\tSYS"),
        (MATRIX.rpartition("SYS")[0], "NIC2\\tNODE"),
        (MATRIX.replace("NIC2\tCPU", "CPU"), "GPU0\\t X \\tNV18\\tPIX\\tSYS\\tNODE"),
        (MATRIX.replace("GPU1\tNV18\t X ", "GPU1\tNV18\tNV18"), "GPU1\\tNV18\\tNV18"),
        (MATRIX.replace("GPU1\tNV18", "GPU1\tX"), "GPU1\\tX"),
        (MATRIX.replace("\tNV18\tPIX", "\t...\tPIX"), "..."),
        (SHOWN.partition("  NIC2: mlx5")[0], "NIC1: rocep4s0f1"),
    ],
    ids=range(13),
)
def test_another_text_is_refused(text: str, quoted: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_nvidia_smi_topo(text)
    assert quoted in str(caught.value)


@given(st.integers(0, SHOWN.index("NIC2\tNODE\tSYS\tPHB\tSYS\t X")))
def test_a_matrix_that_was_cut_off_is_refused(end: int) -> None:
    with pytest.raises(ParseError):
        parse_nvidia_smi_topo(SHOWN[:end])


@given(garbled(SHOWN) | garbled(OLD) | garbled(H200))
def test_nothing_but_a_parse_error_escapes(text: str) -> None:
    assert read_or_refused(parse_nvidia_smi_topo, text)
