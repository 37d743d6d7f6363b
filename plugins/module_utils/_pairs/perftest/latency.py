# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The text that perftest's latency tests print (ib_write_lat, ib_read_lat, ib_send_lat; versions 6.06 to 6.29)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.perftest.table import Columns, cells_of, only_table, split_header

FIELDS = {
    "t_min": "min_usec",
    "t_max": "max_usec",
    "t_typical": "typical_usec",
    "t_avg": "average_usec",
    "t_stdev": "stdev_usec",
    "99% percentile": "percentile_99_usec",
    "99.9% percentile": "percentile_99_9_usec",
    "tps average": "transactions_per_second",
}
"""Column title → field of the result."""


@dataclass(frozen=True)
class LatencyRow:
    """One line of the result table, in µs; None: perftest does not print it (with -D, all but the average).

    Half a round trip for write and send, a whole one for read. typical_usec is the median. stdev_usec is None also where
    perftest's sum of squares overflowed.
    """

    size_bytes: int
    iterations: int
    min_usec: float | None = None
    max_usec: float | None = None
    typical_usec: float | None = None
    average_usec: float | None = None
    stdev_usec: float | None = None
    percentile_99_usec: float | None = None
    percentile_99_9_usec: float | None = None
    transactions_per_second: float | None = None

    @property
    def usec(self) -> float:
        """The value to compare: the typical latency, with -D the average."""
        value = self.average_usec if self.typical_usec is None else self.typical_usec
        if value is None:
            raise ParseError("a latency table with neither t_typical nor t_avg")
        return value


@dataclass(frozen=True)
class LatencyResult(LatencyRow):
    """A whole result: the numbers of its last row (with -a, the largest size), and every row."""

    rows: tuple[LatencyRow, ...] = field(default=(), repr=False)


def parse_latency(text: str) -> LatencyResult:
    """Parse the whole standard output of one latency test, as parse_bandwidth does. Raises ParseError, quoting the line."""
    return latency_result(only_table(text, _columns, _row)[1])


def latency_result(rows: list[LatencyRow]) -> LatencyResult:
    """Return the result of its rows (at least one)."""
    return LatencyResult(**vars(rows[-1]), rows=tuple(rows))


def latency_row(integers: tuple[int, int], values: Mapping[str, float], quoted: str) -> LatencyRow:
    """Return a row of (bytes, iterations) and values by their field. Raises ParseError for values that cannot be measured."""
    measured = {name: value for name, value in values.items() if name != "stdev_usec" or not math.isnan(value)}
    if min(integers) < 0 or not all(0 <= value < math.inf for value in measured.values()):
        raise ParseError(f"a value that no measurement has: {quoted!r}")
    size_bytes, iterations = integers
    return LatencyRow(size_bytes, iterations, **measured)


@lru_cache(maxsize=8)
def _columns(header: str) -> Columns:
    columns = split_header(header, "latency")
    timed = all(
        unit == ("usec" if FIELDS[name] != "transactions_per_second" else "") for name, (_at, unit) in columns.items() if name in FIELDS
    )
    headline = "t_typical" in columns or "t_avg" in columns
    if not {"#bytes", "#iterations"} <= set(columns) or not headline or not timed:
        raise ParseError(f"not the header of a perftest latency table: {header!r}")
    return columns


def _row(line: str, columns: Columns) -> LatencyRow:
    cells = cells_of(line, columns)
    quoted = line.strip()
    try:
        integers = int(cells[columns["#bytes"][0]]), int(cells[columns["#iterations"][0]])
        values = {FIELDS[title]: float(cells[place]) for title, (place, _unit) in columns.items() if title in FIELDS}
    except ValueError as exc:
        raise ParseError(f"not a row of numbers: {quoted!r}") from exc
    return latency_row(integers, values, quoted)
