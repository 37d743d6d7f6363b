# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""nccl-tests of real clusters, read where it lies. The sums were made of the captures' columns by awk."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._collectives.parse import parse_nccl_tests
from ansible_collections.rdma.cluster.plugins.module_utils._collectives.result import Measured, NcclTestsResult, Rank, Row, Settings
from tests.unit.builders.nccl_texts import H200

FIXTURES = Path(__file__).parents[2].parent / "shared" / "fixtures"
CAPTURES = FIXTURES / "nccl-tests"


def capture(name: str) -> NcclTestsResult:
    return parse_nccl_tests((CAPTURES / f"{name}.txt").read_text(encoding="utf-8"))


#: Rows, sums of the columns size and count, of busbw and time in both halves, and the average that is printed.
SUMS = {
    "aks-b": (16, 11453246120, 2863311530, 44.47, 13738092.40, 1.38997),
    "aks-ndv4-sriov-allreduce": (16, 11453246120, 2863311530, 1804.77, 234190.04, 56.3994),
    "aws-p5-2n-allreduce-mpirun-tag": (7, 4227858432, 1056964608, 2921.49, 50189.13, 52.9753),
    "aws-p5-2n-allreduce-srun-l": (32, 34359738360, 8589934590, 7970.28, 278058.18, None),
    "az-ai-infra-example": (3, 17179870208, 4294967552, 1873.69, 36613.51, 487.265),
    "coreweave-gb200-1rack": (5, 16642998272, 4160749568, 7455.30, 81279.80, 745.53),
    "coreweave-gb200-20rack": (6, 33822867456, 8455716864, 3573.70, 373090.50, 297.808),
    "coreweave-h100-64-sharp": (5, 16642998272, 4160749568, 3731.89, 172845.50, 373.187),
    "deepops-cx5-roce-16gpu": (29, 4294967288, 1073741822, 450.52, 721345.59, 7.76739),
    "deepops-dgxa100-4n": (13, 8588886016, 2147221504, 2945.49, 181572.30, 113.289),
    "sb-a100-allgather": (34, 17179869152, 536870911, 3962.00, 137552.26, 58.2651),
    "sb-a100-allreduce": (34, 17179869180, 4294967295, 4651.50, 260423.84, 68.4048),
    "sb-a100-alltoall": (34, 17179869152, 536870911, 3988.07, 138852.10, 58.6481),
    "sb-a100-broadcast": (34, 17179869180, 4294967295, 4410.81, 150759.78, 64.8653),
}


@pytest.mark.parametrize("name", SUMS)
def test_every_row_is_read(name: str) -> None:
    rows, size, count, busbw, time, average = SUMS[name]
    result = capture(name)
    halves = [half for row in result.rows for half in row.halves]
    assert (len(result.rows), len(halves), result.average_busbw_gbytes_per_s) == (rows, 2 * rows, average)
    assert (sum(row.size_bytes for row in result.rows), sum(row.count for row in result.rows)) == (size, count)
    assert sum(half.busbw_gbytes_per_s or 0.0 for half in halves) == pytest.approx(busbw)
    assert sum(half.time_usec or 0.0 for half in halves) == pytest.approx(time)
    assert (result.truncated, result.out_of_bounds, result.out_of_bounds_ok) == (
        (True, None, None) if average is None else (False, 0, True)
    )
    assert (result.errors, result.runs, result.average_ok) == ((), 1, None)


#: redop and root of all rows; the first and the last row: time, algbw, busbw out of place, the same in place, and wrong or deviation.
ROWS = {
    "aks-b": ("sum", -1, (82.21, 0.0, 0.0, 79.73, 0.0, 0.0, None), (5111454.0, 1.68, 3.15, 5220040.0, 1.65, 3.09, None)),
    "aks-ndv4-sriov-allreduce": (
        "sum", -1, (99.09, 0.0, 0.0, 36.48, 0.0, 0.0, None),
        (86026.0, 99.85, 187.22, 86106.0, 99.76, 187.05, None),
    ),
    "aws-p5-2n-allreduce-mpirun-tag": (
        "sum", -1, (15.51, 0.0, 0.0, 15.52, 0.0, 0.0, 0),
        (9197.5, 233.49, 437.79, 9195.2, 233.54, 437.89, 0),
    ),
    "aws-p5-2n-allreduce-srun-l": ("sum", -1, (69.12, 0.0, 0.0, 72.43, 0.0, 0.0, 0), (66132.0, 259.78, 487.09, 66109.0, 259.87, 487.26, 0)),
    "az-ai-infra-example": ("sum", -1, (0.02, 0.0, 0.0, 0.01, 0.0, 0.0, 0), (18285.0, 939.58, 936.93, 18292.6, 939.19, 936.54, 0)),
    "coreweave-gb200-1rack": (
        "sum", -1, (1806.7, 297.16, 586.06, 1835.9, 292.43, 576.74, 0),
        (20299.0, 423.16, 834.57, 20006.0, 429.37, 846.82, 0),
    ),
    "coreweave-gb200-20rack": (
        "sum", -1, (7108.4, 75.53, 150.95, 7145.8, 75.13, 150.16, 0),
        (84625.0, 203.01, 405.74, 84828.0, 202.53, 404.77, 0),
    ),
    "coreweave-h100-64-sharp": (
        "sum", -1, (2984.6, 179.88, 356.01, 2979.7, 180.18, 356.6, 0),
        (43980.0, 195.31, 386.56, 44094.0, 194.81, 385.56, 0),
    ),
    "deepops-cx5-roce-16gpu": (
        "sum", None, (2193.5, 0.0, 0.0, 132.2, 0.0, 0.0, 2e-7),
        (175667.0, 12.22, 22.92, 176189.0, 12.19, 22.85, 5e-7),
    ),
    "deepops-dgxa100-4n": (
        "sum", None, (135.3, 7.75, 15.02, 132.7, 7.9, 15.31, 7e-7),
        (43557.0, 98.61, 191.05, 43440.0, 98.87, 191.56, 1e-6),
    ),
    "sb-a100-allgather": (None, None, (34.27, 0.0, 0.0, 33.57, 0.0, 0.0, None), (33646.0, 255.31, 223.39, 32669.0, 262.94, 230.07, None)),
    "sb-a100-allreduce": ("sum", None, (35.2, 0.0, 0.0, 34.05, 0.0, 0.0, None), (63896.0, 134.44, 235.26, 63959.0, 134.3, 235.03, None)),
    "sb-a100-alltoall": (None, None, (1.63, 0.0, 0.0, 1.38, 0.0, 0.0, None), (33508.0, 256.36, 224.31, 33234.0, 258.47, 226.16, None)),
    "sb-a100-broadcast": (None, 0, (34.61, 0.0, 0.0, 34.33, 0.0, 0.0, None), (36896.0, 232.81, 232.81, 36599.0, 234.7, 234.7, None)),
}  # fmt: skip


def whole(row: Row) -> tuple[float | None, ...]:
    """Time, algbw and busbw of both halves, then what the last column of each has, which is the same in these rows."""
    halves = [half for half in (row.out_of_place, row.in_place) if half is not None]
    figures = [value for half in halves for value in (half.time_usec, half.algbw_gbytes_per_s, half.busbw_gbytes_per_s)]
    last = {half.wrong if half.deviation is None else half.deviation for half in halves}
    assert len(last) == 1
    return (*figures, last.pop())


@pytest.mark.parametrize("name", ROWS)
def test_first_and_last_row(name: str) -> None:
    redop, root, first, last = ROWS[name]
    rows = capture(name).rows
    assert {(row.type, row.redop, row.root) for row in rows} == {("float", redop, root)}
    assert (whole(rows[0]), whole(rows[-1])) == (first, last)


#: Whether something before the end is missing, how many ranks took part and how many are listed, and the options.
HEADS = {
    "aks-b": (True, None, 0, None),
    "aws-p5-2n-allreduce-mpirun-tag": (True, None, 0, None),
    "coreweave-gb200-1rack": (True, None, 1, None),
    "coreweave-gb200-20rack": (True, None, 1, None),
    "coreweave-h100-64-sharp": (True, None, 0, Settings(1, 1, 4, 2147483648, 50, 50, 1)),
    "deepops-dgxa100-4n": (True, None, 0, None),
    "sb-a100-allgather": (False, 8, 8, Settings(1, 8, 1, 8589934592, 5, 20, 0)),
    "sb-a100-broadcast": (False, 8, 8, Settings(1, 8, 1, 8589934592, 5, 20, 0)),
}


@pytest.mark.parametrize("name", HEADS)
def test_heads_that_are_there_and_that_are_not(name: str) -> None:
    result = capture(name)
    assert (result.elided, result.nranks, len(result.ranks), result.settings) == HEADS[name]


def test_ranks() -> None:
    assert capture("coreweave-gb200-20rack").ranks == (Rank(1439, 0, 21082, "slurm-gb200-218-073", 3, "0x01", "NVIDIA GB200"),)
    assert capture("sb-a100-alltoall").ranks == tuple(
        Rank(number, None, 167261, "localhost", number, "0x00", "A100-SXM4-40GB") for number in range(8)
    )


def test_the_largest_size_of_two_hosts_of_aws() -> None:
    row = capture("aws-p5-2n-allreduce-srun-l").rows[-1]
    halves = (Measured(66132.0, 259.78, 487.09, 0), Measured(66109.0, 259.87, 487.26, 0))
    assert row == Row(17179869184, 4294967296, "float", "sum", -1, *halves)


@pytest.mark.parametrize("file", sorted(path.name for path in H200.glob("*perf*") if path.suffix != ".md"))
def test_our_copies_are_the_captures(file: str) -> None:
    assert (H200 / file).read_bytes() == (FIXTURES / "h200" / file).read_bytes()
