# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The text that perftest's bandwidth tests print (ib_write_bw, ib_read_bw, ib_send_bw; versions 6.06 to 6.29)."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

from ansible_collections.rdma.cluster.plugins.module_utils._errors import ParseError

GBPS_PER_UNIT = {
    "Gb/sec": 1.0,
    # perftest divides by 2^20 under both names; it was renamed in 24.07
    "MB/sec": 2**20 * 8 / 1e9,
    "MiB/sec": 2**20 * 8 / 1e9,
}
"""What one of a printed unit is in 10^9 bit/s."""

_COLUMN = re.compile(r"#\w+|[A-Za-z]\w*(?: \w+)?\[[^\]\s]*\]")
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|nan|inf)", re.IGNORECASE)
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


@dataclass(frozen=True)
class Failure:
    """Why a perftest run is not a result, and the line of its output that says so ("" when it says nothing).

    kind: no_device, refused, port_taken, qp, mtu, retry_exceeded, memory_registration, timeout, zero (it ended well and
    measured nothing) or unknown.
    """

    kind: str
    line: str


def parse_bandwidth(text: str) -> BandwidthResult:
    """Parse the whole standard output of one bandwidth test.

    Lines between the header and the closing dashes that do not begin with a number (warnings, kernel messages) are
    skipped. An output that was cut off in a row, or that holds several tables which differ, is an error.
    Raises ParseError, quoting the line.
    """
    tables = list(_tables(text))
    if not tables:
        raise ParseError(f"no line begins with '#bytes' in perftest's output, which ends {_last_line(text)!r}")
    first_header, first = tables[0]
    for header, result in tables[1:]:
        if result != first:
            raise ParseError(f"two different result tables in one perftest output, the second one under {header!r}")
    if first is None:
        raise ParseError(f"no numbers under the header {first_header!r}")
    return first


def _tables(text: str) -> list[tuple[str, BandwidthResult | None]]:
    """Return each table's header line with its result, None for a table without a row."""
    tables: list[tuple[str, BandwidthResult | None]] = []
    lines = text.splitlines(keepends=True)
    starts = [number for number, line in enumerate(lines) if line.lstrip().startswith("#bytes")]
    for start, end in zip(starts, [*starts[1:], len(lines)]):
        header = lines[start].strip()
        columns = _columns(header)
        rows: list[BandwidthRow] = []
        for line in lines[start + 1 : end]:
            if line.strip().startswith("-----"):
                break
            if line.split() and _NUMBER.match(line.split()[0]):
                rows.append(_row(line, columns))
        tables.append((header, _result(rows, columns)))
    return tables


def _columns(header: str) -> dict[str, tuple[int, str]]:
    """Return the position and the unit ("" if none) of each named column."""
    names = _COLUMN.findall(header)
    if "".join(names).replace(" ", "") != header.replace(" ", "").replace("\t", ""):
        raise ParseError(f"not the header of a perftest bandwidth table: {header!r}")
    columns = {}
    for position, name in enumerate(names):
        title, _bracket, unit = name.partition("[")
        columns[title] = (position, unit.rstrip("]"))
    missing = [name for name in _REQUIRED_COLUMNS if name not in columns]
    units = {columns[name][1] for name in ("BW peak", "BW average") if name in columns}
    if missing or len(units) != 1 or not units <= set(GBPS_PER_UNIT) or columns["MsgRate"][1] != "Mpps":
        raise ParseError(f"not the header of a perftest bandwidth table: {header!r}")
    return columns


def _row(line: str, columns: dict[str, tuple[int, str]]) -> BandwidthRow:
    cells = line.split()
    quoted = line.strip()
    if len(cells) != len(columns) or not line.endswith("\n"):
        raise ParseError(f"a row of {len(cells)} values under {len(columns)} columns, or cut off: {quoted!r}")
    try:
        size_bytes, iterations = (int(cells[columns[name][0]]) for name in _INTEGER_COLUMNS)
        peak, average, message_rate = (float(cells[columns[name][0]]) for name in _REQUIRED_COLUMNS[2:])
    except ValueError as exc:
        raise ParseError(f"not a row of numbers: {quoted!r}") from exc
    if min(size_bytes, iterations) < 0 or not all(0 <= value < math.inf for value in (peak, average, message_rate)):
        raise ParseError(f"a value that no measurement has: {quoted!r}")
    factor = GBPS_PER_UNIT[columns["BW average"][1]]
    return BandwidthRow(size_bytes, iterations, peak * factor or None, average * factor, message_rate)


def _result(rows: list[BandwidthRow], columns: dict[str, tuple[int, str]]) -> BandwidthResult | None:
    if not rows:
        return None
    last = rows[-1]
    return BandwidthResult(
        last.size_bytes,
        last.iterations,
        last.peak_gbps,
        last.average_gbps,
        last.message_rate_mpps,
        unit=columns["BW average"][1],
        rows=tuple(rows),
    )


_SIGNS = tuple(
    (kind, re.compile(pattern))
    for kind, pattern in (
        ("retry_exceeded", r"Failed status(?: 12\b|-.*\(12\))"),
        ("no_device", r"Unable to find the Infiniband/RoCE device|IB device .* not found|No IB devices found"),
        ("no_device", r"Did not detect devices|Couldn't get context for the device"),
        ("port_taken", r"Couldn't listen to port"),
        ("refused", r"Couldn't connect to |Unable to init the socket connection|Unable to connect \(retries"),
        ("refused", r"Unable to open file descriptor for socket connection"),
        ("memory_registration", r"Couldn't allocate MR|[Ff]ailed to create mr\b|Failed to create MR\b"),
        ("mtu", r"Couldn't set Eth MTU|Invalid MTU - |Requested mtu is higher than active mtu"),
        ("qp", r"Failed to modify QP|[Uu]nable to create QP|Failed to create QP|Couldn't create rdma (?:new|old) QP"),
        ("qp", r"Unable to Connect the HCA's through the link|Requested QP size might be too big"),
        ("timeout", r"Did not get Message for \d+ Seconds"),
    )
)
_NOISE = re.compile(r"^\s*(?:$|-----|\*\*\*|WARNING|Conflicting CPU frequency)")


def find_failure(stdout: str, stderr: str, exit_code: int | None) -> Failure | None:
    """Return why a bandwidth test gave no result, None if it gave one. Arguments as in classify_failure."""
    return _unmeasured(stdout) if exit_code == 0 else classify_failure(stdout, stderr, exit_code)


def classify_failure(stdout: str, stderr: str, exit_code: int | None) -> Failure:
    """Return why a bandwidth test that gave no result gave none.

    exit_code is None when the test was never started or not waited for, negative when a signal ended it.
    The decisive line is the earliest sign of the most specific kind; for an unknown failure, the first line of stderr;
    for a timeout without a sign, what it said last.
    """
    if exit_code == 0:
        return _unmeasured(stdout) or Failure("unknown", "")
    lines = [line.strip() for line in [*stderr.splitlines(), *stdout.splitlines()]]
    for kind, pattern in _SIGNS:
        for line in lines:
            if pattern.search(line):
                return Failure(kind, line)
    telling = [line for line in lines if not _NOISE.match(line)]
    if exit_code is None or exit_code < 0 or exit_code == 124:  # 124: coreutils' timeout
        return Failure("timeout", telling[-1] if telling else "")
    complaints = [line.strip() for line in stderr.splitlines() if not _NOISE.match(line)]
    return Failure("unknown", complaints[0] if complaints else (telling[-1] if telling else ""))


def _unmeasured(stdout: str) -> Failure | None:
    try:
        result = parse_bandwidth(stdout)
    except ParseError as exc:
        return Failure("unknown", str(exc))
    if any(row.average_gbps == 0 for row in result.rows):
        return Failure("zero", _row_line(stdout))
    return None


def _row_line(stdout: str) -> str:
    """Return the first row whose average is zero, as printed."""
    lines = stdout.splitlines()
    start = next(number for number, line in enumerate(lines) if line.lstrip().startswith("#bytes"))
    position = _columns(lines[start].strip())["BW average"][0]
    rows = [line.strip() for line in lines[start + 1 :] if line.split() and _NUMBER.match(line.split()[0])]
    return next((line for line in rows if float(line.split()[position]) == 0), "")


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""
