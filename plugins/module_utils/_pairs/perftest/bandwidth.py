# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The text that perftest's bandwidth tests print (ib_write_bw, ib_read_bw, ib_send_bw; versions 6.06 to 6.29)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.perftest.table import Columns, cells_of, only_table, split_header

GBPS_PER_UNIT = {
    "Gb/sec": 1.0,
    # perftest divides by 2^20 under both names; it was renamed in 24.07
    "MB/sec": 2**20 * 8 / 1e9,
    "MiB/sec": 2**20 * 8 / 1e9,
}
"""How many 10^9 bit/s one printed unit is."""

_INTEGER_COLUMNS = ("#bytes", "#iterations")
_REQUIRED_COLUMNS = ("#bytes", "#iterations", "BW peak", "BW average", "MsgRate")


@dataclass(frozen=True)
class BandwidthRow:
    """One line of the result table. Rates are 10^9 bit/s, the message rate 10^6 messages/s.

    iterations is the total over the queue pairs. peak_gbps is None where perftest did not measure a peak (it prints 0).
    With -b all rates are the sum of both directions.
    """

    size_bytes: int
    iterations: int
    peak_gbps: float | None
    average_gbps: float
    message_rate_mpps: float


@dataclass(frozen=True)
class BandwidthResult(BandwidthRow):
    """A whole result: the numbers of its last row (with -a, the largest size), the unit as printed, and every row."""

    unit: str
    rows: tuple[BandwidthRow, ...] = field(repr=False)


def parse_bandwidth(text: str) -> BandwidthResult:
    """Parse the whole standard output of one bandwidth test.

    Lines between the header and the closing dashes that do not begin with a number (warnings, kernel messages) are
    skipped. An output that is cut off within a row, or that holds several different tables, is an error.
    Raises ParseError, quoting the line.
    """
    table, rows = only_table(text, _columns, _row)
    return bandwidth_result(rows, table.columns["BW average"][1])


def bandwidth_result(rows: list[BandwidthRow], unit: str) -> BandwidthResult:
    """Return the result of its rows (at least one)."""
    last = rows[-1]
    return BandwidthResult(
        last.size_bytes,
        last.iterations,
        last.peak_gbps,
        last.average_gbps,
        last.message_rate_mpps,
        unit=unit,
        rows=tuple(rows),
    )


def bandwidth_row(integers: tuple[int, int], rates: tuple[float, float, float], unit: str, quoted: str) -> BandwidthRow:
    """Return a row of (bytes, iterations) and (peak, average, message rate). Raises ParseError for values that cannot be measured."""
    if min(integers) < 0 or not all(0 <= value < math.inf for value in rates):
        raise ParseError(f"a value that no measurement has: {quoted!r}")
    factor = GBPS_PER_UNIT[unit]
    peak, average, message_rate = rates
    return BandwidthRow(*integers, peak * factor or None, average * factor, message_rate)


@lru_cache(maxsize=8)
def _columns(header: str) -> Columns:
    columns = split_header(header, "bandwidth")
    missing = [name for name in _REQUIRED_COLUMNS if name not in columns]
    units = {columns[name][1] for name in ("BW peak", "BW average") if name in columns}
    if missing or len(units) != 1 or not units <= set(GBPS_PER_UNIT) or columns["MsgRate"][1] != "Mpps":
        raise ParseError(f"not the header of a perftest bandwidth table: {header!r}")
    return columns


def _row(line: str, columns: Columns) -> BandwidthRow:
    cells = cells_of(line, columns)
    quoted = line.strip()
    try:
        size_bytes, iterations = (int(cells[columns[name][0]]) for name in _INTEGER_COLUMNS)
        peak, average, message_rate = (float(cells[columns[name][0]]) for name in _REQUIRED_COLUMNS[2:])
    except ValueError as exc:
        raise ParseError(f"not a row of numbers: {quoted!r}") from exc
    return bandwidth_row((size_bytes, iterations), (peak, average, message_rate), columns["BW average"][1], quoted)
