# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the output of nccl-tests (all_reduce_perf and others, versions 2.0 to 2.19), alone or through `mpirun --tag-output` or `srun -l`.

Sources: src/common.cu and, since 2.18, src/util.cu. Lines of NCCL's log in between are left to _nccl/log/log.py.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import lines_of
from ansible_collections.rdma.cluster.plugins.module_utils._collectives.result import (
    Measured,
    NcclTestsResult,
    Rank,
    Row,
    Settings,
    nccl_version,
    whole_number_of_ranks,
)
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.log.lines import before_log

_TYPE = r"(?:u?int(?:8|32|64)?|u?char|half|b?float(?:16)?|double|fp?8_?e[0-9]m[0-9])"
_START = re.compile(rf"(?<![^\s:|>\]])([0-9]{{1,20}})[ \t]+([0-9]{{1,20}})[ \t]+({_TYPE})(?=\s|$)")
_NUMBER = re.compile(r"[0-9]{1,30}(?:\.[0-9]{1,10})?(?:e[+-]?[0-9]{1,3})?|-?nan|inf|N/A")
_WRONG = re.compile(r"[0-9]{1,20}|[0-9](?:\.[0-9]{1,10})?e[+-][0-9]{1,3}|N/A|-?nan|inf")
_COUNT = re.compile(r"[0-9]{1,20}|[0-9](?:\.[0-9]{1,10})?e\+[0-9]{1,2}")
_REDOP = re.compile(r"[a-z][a-z0-9_]{0,20}")
_ROOT = re.compile(r"-?[0-9]{1,7}")
_TIME_OF_DAY = re.compile(r"\s[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}\s*$")
#: If only the in-place half was run, blanks take the place of the other one.
_ONLY_IN_PLACE = re.compile(r"\s{30,}")
_HALF = 4
_HALF_WITH_ITERATIONS = 8
_RESTS = (_HALF, 2 * _HALF, 2 * _HALF_WITH_ITERATIONS)


def begins_row(line: str) -> bool:
    """Return whether a row starts on a line, after a possible prefix of a launcher."""
    return _START.search(line) is not None


def continues_row(line: str) -> bool:
    """Return whether a line holds only a possible rest of a torn row: a half or both. A cell in two parts cannot be repaired."""
    cells = _TIME_OF_DAY.sub("", line).split()
    return len(cells) in _RESTS and all(_NUMBER.fullmatch(cell) for cell in cells)


def read_row(line: str, deviations: bool | None) -> Row | None:
    """Return the row on a line, None if it is incomplete.

    deviations: whether the header has "error", as before version 2.13, None if unknown.
    """
    start = _START.search(line)
    if start is None:
        return None
    rest = _TIME_OF_DAY.sub("", line[start.end() :])
    cells = rest.split()
    split = _split(cells, _ONLY_IN_PLACE.search(rest) is not None)
    if split is None:
        return None
    names, halves = split
    if not all(_is_half(half) for half in halves):
        return None
    redop = names[0] if names and _REDOP.fullmatch(names[0]) else None
    root = int(names[-1]) if names and _ROOT.fullmatch(names[-1]) else None
    if len(names) != (redop is not None) + (root is not None):
        return None
    size, count, type_ = start.groups()
    measured = [_measured(half, deviations) for half in halves]
    return Row(int(size), int(count), type_, redop, root, measured[0] if len(measured) == 2 else None, measured[-1])


def _split(cells: list[str], only_in_place: bool) -> tuple[list[str], list[list[str]]] | None:
    """Return the cells between the type and the first time, and the halves, without the figures of single iterations."""
    for width in (_HALF, _HALF_WITH_ITERATIONS):
        names = len(cells) - width * (1 if only_in_place else 2)
        if 0 <= names <= 2:
            data = cells[names:]
            return cells[:names], [data[at : at + _HALF] for at in range(0, len(data), width)]
    return None


def _is_half(cells: list[str]) -> bool:
    return all(_NUMBER.fullmatch(cell) for cell in cells[:3]) and _WRONG.fullmatch(cells[3]) is not None


def _measured(cells: list[str], deviations: bool | None) -> Measured:
    time, algbw, busbw = (_number(cell) for cell in cells[:3])
    last = cells[3]
    if deviations is None:
        deviations = "e-" in last or last == "0e+00"
    if deviations:
        return Measured(time, algbw, busbw, None, _number(last))
    return Measured(time, algbw, busbw, int(float(last)) if _COUNT.fullmatch(last) else None)


def _number(cell: str) -> float | None:
    """Return the number; None for N/A, and for values that are not measurements (nan, inf)."""
    value = math.nan if cell == "N/A" else float(cell)
    return value if math.isfinite(value) else None


_INTEGER = r"([0-9]{1,20})"
_VERSION = re.compile(r"# nccl-tests version (\S{1,40}) nccl-headers=([0-9]{1,9}) nccl-library=([0-9]{1,9})")
_TEST = re.compile(r"# Collective test starting: (\S{1,200})")
_SETTINGS = re.compile(
    rf"# nThread {_INTEGER} nGpus {_INTEGER} minBytes {_INTEGER} maxBytes {_INTEGER} step: \S+"
    rf"(?: warmup iters: {_INTEGER})?(?: iters: {_INTEGER})?(?: agg iters: [0-9]+)?(?: validation: {_INTEGER})?"
)
_RANK = re.compile(
    r"#\s+Rank\s+([0-9]{1,9})(?:\s+Group\s+(-?[0-9]{1,9}))?\s+Pid\s+([0-9]{1,10}) on\s+(\S{1,1024})"
    r" device\s+([0-9]{1,5}) \[([^][]{1,60})\](?: (.+)|[ \t]*$)"
)
_COLUMNS = re.compile(r"#\s+size\s+count\s+type\s.*\b(?:cpu)?time\s+algbw\s+busbw\s+(#wrong|error)")
_OUT_OF_BOUNDS = re.compile(rf"# Out of bounds values\s*: {_INTEGER} (OK|FAILED)")
_AVERAGE = re.compile(r"# Avg bus bandwidth\s*: ([0-9.]{1,30}(?:e[+-]?[0-9]{1,3})?|-?nan|-?inf)\s+(?:(OK|FAILED)\s*)?$")
_LEFT_OUT = re.compile(r"(?:^|[\s:>|])\.\.\.\s*$")
#: The error messages of nccl-tests itself, from its own first word on.
_OWN_ERROR = re.compile(
    r"# error: .+|(?<![\w.-])[\w.-]+: Test (?:NCCL|CUDA) failure .+|\.\. [\w.-]+(?: pid [0-9]+)?: Test failure .+"
    r"|(?<![\w.-])[\w.-]+: Test timeout .+|Invalid number of GPUs: .+|Incompatible NCCL versions\. .+"
    r"|Device implementation [0-9]+ is not supported .+|invalid sizes? .+|rank=[0-9]+ #wrong=[1-9][0-9]*|# skipping json output.*"
)
#: The error messages of a launcher or the loader.
_LAUNCH_ERROR = re.compile(
    r"srun: error: .+|slurmstepd: error: .+|mpi(?:run|exec) (?:noticed|was unable|detected).+|prterun (?:noticed|was unable|detected).+"
    r"|Primary job\s+terminated.+|There are not enough slots.+|MPI_ABORT was invoked.+|^.*error while loading shared libraries: .+"
    r"|ORTE was unable .+|^.*: command not found|^.*Segmentation fault.*"
)
_MOST_ERRORS = 100
_LONGEST_ERROR = 500


class _Reading:
    """The state of parsing after the previous lines."""

    def __init__(self) -> None:
        self.version: tuple[str, str, str] | None = None
        self.tests: dict[str, None] = {}
        self.settings: list[Settings] = []
        self.ranks: list[Rank] = []
        self.headers: list[str] = []
        self.rows: list[Row] = []
        self.torn = ""
        self.out_of_bounds: list[tuple[int, bool]] = []
        self.averages: list[tuple[float | None, bool | None]] = []
        self.errors: dict[str, None] = {}
        self.own = False
        self.elided = False
        self.ranks_end = True

    def line(self, line: str) -> None:
        """Read one line, with its end."""
        head = before_log(line)
        text = line if head is None else head
        if line.endswith("\n"):
            self.ranks_end = not ("#" in text and _RANK.search(text))
        if "#" in text and self._comment(text):
            self._drop_torn()
        elif begins_row(text):
            self._drop_torn()
            self._row(text, whole=line.endswith("\n"))
        elif self.torn and continues_row(text):
            self._row(f"{self.torn} {text}", whole=line.endswith("\n"))
        elif head is None:
            self._other(text)

    def _row(self, text: str, whole: bool) -> None:
        row = read_row(text, self.headers[-1] == "error" if self.headers else None)
        if row is None or not whole:
            self.torn = text.rstrip("\n")
        else:
            self.rows.append(row)
            self.torn = ""

    def _drop_torn(self) -> None:
        self.elided |= bool(self.torn)
        self.torn = ""

    def _comment(self, text: str) -> bool:
        for form, read in _COMMENTS if text.endswith("\n") else _COMMENTS_AT_AN_END:
            found = form.search(text)
            if found is not None:
                read(self, found)
                self.own = True
                return True
        return False

    def _other(self, text: str) -> None:
        own = _OWN_ERROR.search(text)
        found = own or _LAUNCH_ERROR.search(text)
        self.own |= own is not None
        if found is not None and len(self.errors) < _MOST_ERRORS:
            self.errors[found.group().strip()[:_LONGEST_ERROR]] = None
        self.elided |= _LEFT_OUT.search(text) is not None

    def result(self) -> NcclTestsResult:
        version, headers, library = self.version or (None, "0", "0")
        ranks = tuple(self.ranks)
        nranks = whole_number_of_ranks(ranks) if self.ranks_end else None
        runs = max(len(self.settings), len(self.headers), 1)
        average, average_ok = self.averages[0] if len(self.averages) == 1 else (None, None)
        return NcclTestsResult(
            version=version,
            headers_version=nccl_version(int(headers)),
            library_version=nccl_version(int(library)),
            test=next(iter(self.tests)) if len(self.tests) == 1 else None,
            settings=self.settings[0] if len(set(self.settings)) == 1 else None,
            ranks=ranks,
            nranks=nranks,
            rows=tuple(self.rows),
            average_busbw_gbytes_per_s=average,
            average_ok=average_ok,
            out_of_bounds=sum(count for count, _well in self.out_of_bounds) if self.out_of_bounds else None,
            out_of_bounds_ok=all(well for _count, well in self.out_of_bounds) if self.out_of_bounds else None,
            errors=tuple(self.errors),
            runs=runs,
            truncated=min(len(self.averages), len(self.out_of_bounds)) < runs,
            elided=self.elided or not self.settings or nranks is None or bool(self.rows and not self.headers),
        )


def _version(reading: _Reading, found: re.Match[str]) -> None:
    reading.version = (found[1], found[2], found[3])


def _test(reading: _Reading, found: re.Match[str]) -> None:
    reading.tests[found[1].rpartition("/")[2]] = None


def _settings(reading: _Reading, found: re.Match[str]) -> None:
    threads, gpus, least, most = map(int, found.groups()[:4])
    warmup, iterations, validation = (None if number is None else int(number) for number in found.groups()[4:])
    reading.settings.append(Settings(threads, gpus, least, most, warmup, iterations, validation))


def _rank(reading: _Reading, found: re.Match[str]) -> None:
    rank, group, pid, host, device, bus_id, name = found.groups()
    number = None if group is None else int(group)
    reading.ranks.append(Rank(int(rank), number, int(pid), host, int(device), bus_id, (name or "").strip()))


def _columns(reading: _Reading, found: re.Match[str]) -> None:
    reading.headers.append(found[1])


def _out_of_bounds(reading: _Reading, found: re.Match[str]) -> None:
    reading.out_of_bounds.append((int(found[1]), found[2] == "OK"))


def _average(reading: _Reading, found: re.Match[str]) -> None:
    try:
        value = float(found[1])
    except ValueError:
        return
    mean = value if value - value == 0 else None
    reading.averages.append((mean, None if found[2] is None else found[2] == "OK"))


_COMMENTS: tuple[tuple[re.Pattern[str], Callable[[_Reading, re.Match[str]], None]], ...] = (
    (_OUT_OF_BOUNDS, _out_of_bounds),
    (_AVERAGE, _average),
    (_RANK, _rank),
    (_COLUMNS, _columns),
    (_SETTINGS, _settings),
    (_VERSION, _version),
    (_TEST, _test),
)
#: The comments that are recognizably complete on a line without an end.
_COMMENTS_AT_AN_END = _COMMENTS[:2]


def parse_nccl_tests(text: str) -> NcclTestsResult:
    """Parse the whole output of a run, with its log and its launcher's lines.

    Truncated values are None, and the result shows it (truncated, elided); an incomplete row is omitted. Raises ParseError for a text
    without output of nccl-tests.
    """
    reading = _Reading()
    for line in lines_of(text, keepends=True):
        reading.line(line)
    if not (reading.own or reading.rows):
        raise ParseError(f"not the output of nccl-tests: {quoted(text)}")
    return reading.result()
