# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What nccl-tests prints (all_reduce_perf and its like, versions 2.0 to 2.19), alone or through `mpirun --tag-output` or `srun -l`.

Sources: src/common.cu and, since 2.18, src/util.cu. Lines of NCCL's log in between are left to _nccl_log.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ansible_collections.rdma.cluster.plugins.module_utils._errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._lines import lines_of
from ansible_collections.rdma.cluster.plugins.module_utils._nccl_line import before_log
from ansible_collections.rdma.cluster.plugins.module_utils._nccl_tests_result import (
    NcclTestsResult,
    Rank,
    Row,
    Settings,
    nccl_version,
    whole_number_of_ranks,
)
from ansible_collections.rdma.cluster.plugins.module_utils._nccl_tests_rows import begins_row, continues_row, read_row

_INTEGER = r"([0-9]{1,20})"
_VERSION = re.compile(r"# nccl-tests version (\S{1,40}) nccl-headers=([0-9]{1,9}) nccl-library=([0-9]{1,9})")
_TEST = re.compile(r"# Collective test starting: (\S{1,200})")
_SETTINGS = re.compile(
    rf"# nThread {_INTEGER} nGpus {_INTEGER} minBytes {_INTEGER} maxBytes {_INTEGER} step: \S+"
    rf"(?: warmup iters: {_INTEGER})?(?: iters: {_INTEGER})?(?: agg iters: [0-9]+)?(?: validation: {_INTEGER})?"
)
_RANK = re.compile(
    r"#\s+Rank\s+([0-9]{1,9})(?:\s+Group\s+(-?[0-9]{1,9}))?\s+Pid\s+([0-9]{1,10}) on\s+(\S{1,1024})"
    r" device\s+([0-9]{1,5}) \[([^][]{1,60})\] (.+)"
)
_COLUMNS = re.compile(r"#\s+size\s+count\s+type\s.*\b(?:cpu)?time\s+algbw\s+busbw\s+(#wrong|error)")
_OUT_OF_BOUNDS = re.compile(rf"# Out of bounds values\s*: {_INTEGER} (OK|FAILED)")
_AVERAGE = re.compile(r"# Avg bus bandwidth\s*: ([0-9.]{1,30}(?:e[+-]?[0-9]{1,3})?|-?nan|-?inf)\s+(?:(OK|FAILED)\s*)?$")
_LEFT_OUT = re.compile(r"(?:^|[\s:>|])\.\.\.\s*$")
#: What nccl-tests itself says when it fails, from the first word that is its own.
_OWN_ERROR = re.compile(
    r"# error: .+|(?<![\w.-])[\w.-]+: Test (?:NCCL|CUDA) failure .+|\.\. [\w.-]+(?: pid [0-9]+)?: Test failure .+"
    r"|(?<![\w.-])[\w.-]+: Test timeout .+|Invalid number of GPUs: .+|Incompatible NCCL versions\. .+"
    r"|Device implementation [0-9]+ is not supported .+|invalid sizes? .+|rank=[0-9]+ #wrong=[1-9][0-9]*|# skipping json output.*"
)
#: What a launcher or the loader says of it.
_LAUNCH_ERROR = re.compile(
    r"srun: error: .+|slurmstepd: error: .+|mpi(?:run|exec) (?:noticed|was unable|detected).+|prterun (?:noticed|was unable|detected).+"
    r"|Primary job\s+terminated.+|There are not enough slots.+|MPI_ABORT was invoked.+|^.*error while loading shared libraries: .+"
    r"|ORTE was unable .+|^.*: command not found|^.*Segmentation fault.*"
)
_MOST_ERRORS = 100
_LONGEST_ERROR = 500


class _Reading:
    """What the lines before have said."""

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
        """One line, with its end."""
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
        for form, told in _COMMENTS if text.endswith("\n") else _COMMENTS_AT_AN_END:
            found = form.search(text)
            if found is not None:
                told(self, found)
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
    warmup, iterations, validation = (None if told is None else int(told) for told in found.groups()[4:])
    reading.settings.append(Settings(threads, gpus, least, most, warmup, iterations, validation))


def _rank(reading: _Reading, found: re.Match[str]) -> None:
    rank, group, pid, host, device, bus_id, name = found.groups()
    number = None if group is None else int(group)
    reading.ranks.append(Rank(int(rank), number, int(pid), host, int(device), bus_id, name.strip()))


def _columns(reading: _Reading, found: re.Match[str]) -> None:
    reading.headers.append(found[1])


def _out_of_bounds(reading: _Reading, found: re.Match[str]) -> None:
    reading.out_of_bounds.append((int(found[1]), found[2] == "OK"))


def _average(reading: _Reading, found: re.Match[str]) -> None:
    try:
        value = float(found[1])
    except ValueError:
        return
    told = value if value - value == 0 else None
    reading.averages.append((told, None if found[2] is None else found[2] == "OK"))


_COMMENTS: tuple[tuple[re.Pattern[str], Callable[[_Reading, re.Match[str]], None]], ...] = (
    (_OUT_OF_BOUNDS, _out_of_bounds),
    (_AVERAGE, _average),
    (_RANK, _rank),
    (_COLUMNS, _columns),
    (_SETTINGS, _settings),
    (_VERSION, _version),
    (_TEST, _test),
)
#: What can be seen to be whole on a line without an end.
_COMMENTS_AT_AN_END = _COMMENTS[:2]


def parse_nccl_tests(text: str) -> NcclTestsResult:
    """Parse the whole output of a run, its log and its launcher's lines included.

    What was cut off is None, and the result says so (truncated, elided); a row that is not whole is left out.
    Raises ParseError for a text in which nccl-tests says nothing.
    """
    reading = _Reading()
    for line in lines_of(text, keepends=True):
        reading.line(line)
    if not (reading.own or reading.rows):
        raise ParseError(f"not the output of nccl-tests: {text[:200]!r}")
    return reading.result()
