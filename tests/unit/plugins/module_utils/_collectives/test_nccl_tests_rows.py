# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rows of nccl-tests' table, in the widths of its source."""

from __future__ import annotations

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._collectives.parse import begins_row, continues_row, read_row
from ansible_collections.rdma.cluster.plugins.module_utils._collectives.result import Measured, Row

OUT, IN = Measured(15.28, 68.64, 68.64, 0), Measured(14.83, 70.71, 70.71, 0)
DATA = "    15.28   68.64   68.64       0    14.83   70.71   70.71       0"
ITERATIONS = "    15.28   68.64   68.64       0    14.90    16.02    16.02     1.21"
ITERATIONS += "    14.83   70.71   70.71       0    14.50    15.02    15.02     0.91"
START = "     1048576        262144     float"


@pytest.mark.parametrize(
    ("line", "redop", "root"),
    [
        (f"{START}     sum      -1{DATA}", "sum", -1),
        (f"{START}    none       0{DATA}", "none", 0),
        (f"{START}     sum{DATA}", "sum", None),
        (f"{START}       3{DATA}", None, 3),
        (f"{START}{DATA}", None, None),
        (f"{START}     sum      -1{DATA}  2026-11-20 09:29:38", "sum", -1),
        (f"{START}     sum      -1{ITERATIONS}", "sum", -1),
        (f"{START}     sum      -1{ITERATIONS}  2026-11-20 09:29:38", "sum", -1),
    ],
    ids=["both", "neither reduces", "no root", "no redop", "none of both", "time of day", "iterations", "iterations and time"],
)
def test_columns_that_versions_and_collectives_have(line: str, redop: str | None, root: int | None) -> None:
    assert read_row(line, deviations=False) == Row(1048576, 262144, "float", redop, root, OUT, IN)


def test_only_the_half_in_place() -> None:
    line = f"{START}     sum      -1{' ' * 32}    14.83   70.71   70.71       0"
    assert read_row(line, deviations=False) == Row(1048576, 262144, "float", "sum", -1, None, IN)


@pytest.mark.parametrize("cells", range(1, 13))
def test_a_row_that_lacks_cells_is_none(cells: int) -> None:
    line = f"{START}     sum      -1{DATA}"
    assert read_row(" ".join(line.split()[:cells]), deviations=False) is None


@pytest.mark.parametrize("type_", ["int8", "uint64", "half", "double", "bfloat16", "f8e4m3", "fp8_e5m2"])
def test_types(type_: str) -> None:
    row = read_row(f"     1048576        262144  {type_:>8}     sum      -1{DATA}", deviations=False)
    assert row is not None
    assert row.type == type_


def test_large_figures_as_c_shortens_them() -> None:
    row = read_row(f"{START}     sum      -1  1.3e+07    1e+03   123456   2e+06    13849.6    4.85    4.85     N/A", deviations=False)
    assert row == Row(1048576, 262144, "float", "sum", -1, Measured(1.3e7, 1000.0, 123456.0, 2000000), Measured(13849.6, 4.85, 4.85, None))


@pytest.mark.parametrize(
    ("cell", "deviations", "wrong", "deviation"),
    [
        ("2e-07", None, None, 2e-07),
        ("0e+00", None, None, 0.0),
        ("1e+06", None, 1000000, None),
        ("1e+06", True, None, 1e6),
        ("0", None, 0, None),
    ],
    ids=["small", "none", "many", "known to be a deviation", "a number"],
)
def test_without_a_header_the_form_reports_a_deviation(
    cell: str, deviations: bool | None, wrong: int | None, deviation: float | None
) -> None:
    row = read_row(f"{START}     sum    15.28   68.64   68.64  {cell}    15.28   68.64   68.64  {cell}", deviations)
    assert row is not None
    assert row.in_place == Measured(15.28, 68.64, 68.64, wrong, deviation)


@pytest.mark.parametrize(
    "line", ["took 12 34 seconds", "1048576 262144 floats", "1048576 262144", "# size count type", "12x 262144 float"], ids=str
)
def test_prose_begins_no_row(line: str) -> None:
    assert not begins_row(line)


def test_the_rest_of_a_row_is_a_half_or_both() -> None:
    half = "  15.28   68.64   68.64       0"
    assert [continues_row(text) for text in (half, half * 2, half * 4, half[:-8], "now 1 2 3", "")] == [
        True,
        True,
        True,
        False,
        False,
        False,
    ]
