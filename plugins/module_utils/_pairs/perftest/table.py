# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tables that perftest prints: a header line that begins with #bytes, then rows of numbers up to a line of dashes.

Formats: perftest_parameters.h (RESULT_FMT…, REPORT_FMT…), versions 6.06 to 6.29. The order and number of columns depend on
options, so rows are read by the names in their header.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import lines_of

Columns = Mapping[str, tuple[int, str]]
"""The position and the unit ("" if none) of each named column."""
Row = TypeVar("Row")

#: Longer than any line of perftest.
_LONGEST_LINE = 2048
NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|nan|inf)", re.IGNORECASE)
_COLUMN = re.compile(r"#\w+|tps average|\d+(?:\.\d+)?% percentile\[usec\]|[A-Za-z]\w*(?: \w+)?\[[^\]\s]*\]")


@dataclass(frozen=True)
class Table:
    """One table: the header line, its columns, and the lines of its rows (with their line ends)."""

    header: str
    columns: Columns
    lines: tuple[str, ...]


def is_header(line: str) -> bool:
    """Return whether a line begins a table."""
    return line.lstrip().startswith("#bytes")


def tables(text: str, columns_of: Callable[[str], Columns]) -> list[Table]:
    """Return the tables of one output.

    Lines that do not begin with a number (warnings, kernel messages) are not rows. A header followed by single samples
    (-H, -U) is left out: perftest prints it again after them. Raises ParseError as columns_of does.
    """
    lines = lines_of(text, _LONGEST_LINE, keepends=True)
    starts = [number for number, line in enumerate(lines) if is_header(line)]
    found = []
    for start, end in zip(starts, [*starts[1:], len(lines)]):
        rows: list[str] | None = []
        for line in lines[start + 1 : end]:
            stripped = line.strip()
            if stripped.startswith("#, "):
                rows = None
            if rows is None or stripped.startswith("-----"):
                break
            if NUMBER.match(stripped):
                rows.append(line)
        if rows is not None:
            header = lines[start].strip()
            found.append(Table(header, columns_of(header), tuple(rows)))
    return found


def split_header(header: str, what: str) -> Columns:
    """Return the columns that a header names. Raises ParseError if it contains anything else."""
    names = _COLUMN.findall(header)
    if "".join(names).replace(" ", "") != header.replace(" ", "").replace("\t", ""):
        raise ParseError(f"not the header of a perftest {what} table: {header!r}")
    columns = {}
    for position, name in enumerate(names):
        title, _bracket, unit = name.partition("[")
        columns[title] = (position, unit.rstrip("]"))
    if len(columns) != len(names):
        raise ParseError(f"a column stands twice in the header of a perftest {what} table: {header!r}")
    return columns


def cells_of(line: str, columns: Columns) -> list[str]:
    """Return a row's values. Raises ParseError if their number differs from that of the columns, or the line is cut off."""
    cells = line.split()
    if len(cells) != len(columns) or not line.endswith("\n"):
        raise ParseError(f"a row of {len(cells)} values under {len(columns)} columns, or cut off: {line.strip()!r}")
    return cells


def only_table(text: str, columns_of: Callable[[str], Columns], row_of: Callable[[str, Columns], Row]) -> tuple[Table, list[Row]]:
    """Return the one table of an output, and its parsed rows.

    Raises ParseError for an output without a table or without a row, or with several different tables. The same table
    twice (two ends that write to one terminal) counts once.
    """
    found = tables(text, columns_of)
    if not found:
        raise ParseError(f"no line begins with '#bytes' in perftest's output, which ends {_last_line(text)!r}")
    read = [[row_of(line, table.columns) for line in table.lines] for table in found]
    for table, rows in zip(found[1:], read[1:]):
        if rows != read[0] or table.columns != found[0].columns:
            raise ParseError(f"two different result tables in one perftest output, the second one under {table.header!r}")
    if not read[0]:
        raise ParseError(f"no numbers under the header {found[0].header!r}")
    return found[0], read[0]


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""
