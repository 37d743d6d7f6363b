# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the compact results of many hosts' files into columns, each measurement once.

A line has the cells of a Result (module_utils/_pairs/result.py). A host is trusted only about itself: a client's line counts in the
client's own file, a server's in the server's, and only for a planned meeting. Every other line is ignored, and the host with the file is
named.
"""

from __future__ import annotations

import json
import math
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._pairs.result import (
    CLIENT,
    KIND,
    LINE,
    LINE_CHARACTERS,
    RAIL,
    ROLE,
    ROUND,
    SERVER,
    TEST,
    VALUE,
    are_measurements,
    is_result,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.schedule import rail_schedules

#: The partners did not meet. One end may report that for an attempt that a later one has replaced.
UNMET = frozenset(("dead", "refused", "token", "plan"))
#: The server outlived its client and was stopped. That is not a failure of a client that has measured.
LINGERED = frozenset(("timeout", "signal"))
#: A client knows this only indirectly: the server's own record has the reason.
HEARD = "listen"
#: The number of failures whose line is kept; for the others, only the kind.
LINES_KEPT = 10_000
Row = list[Any]
#: (rail, round, server, client, role) of a line that a host may write.
Meeting = tuple[int, int, int, int, int]


@dataclass(frozen=True)
class Refused:
    """Ignored lines of one host's file. lines: their number. first: the first one, cut. why: its fault."""

    lines: int
    first: str
    why: str

    @property
    def words(self) -> str:
        """The text for a finding."""
        rest = "" if self.lines == 1 else f" and {self.lines - 1} more"
        return f"{self.first!r}{rest}: {self.why}"


class Columns:
    """The measurements of one test while they are read; positions of hosts and rails are those of the first plan."""

    def __init__(self, hosts: int, rails: int, *, by_round: bool) -> None:
        self.rail, self.server, self.client = array("H"), array("H"), array("H")
        self.value = array("d")
        self.failures: dict[int, tuple[str, str]] = {}
        self._last: dict[int, int] = {}
        self._hosts, self._rails, self._by_round = hosts, rails, by_round
        self.begin_sweep()

    def begin_sweep(self) -> None:
        """Begin another sweep, whose measurements replace earlier ones."""
        self._start, self._again = len(self.value), set[int]()

    def drop_superseded(self) -> None:
        """Keep the valid record of each measurement, after the last sweep."""
        if len(self._last) < len(self.value):
            kept = sorted(self._last.values())
            self.failures = {new: self.failures[old] for new, old in enumerate(kept) if old in self.failures}
            for name in ("rail", "server", "client", "value"):
                column = getattr(self, name)
                setattr(self, name, array(column.typecode, [column[at] for at in kept]))
        self._last.clear()

    def add(self, rows: list[Row]) -> None:
        """Add the rows of a client; the last one of a measurement counts."""
        if not rows:
            return
        at, n = len(self.value), self._hosts
        rails, rounds, servers, clients, _tests, _roles, values = list(zip(*rows, strict=False))[: VALUE + 1]
        self.value.extend([math.nan if value is None else value for value in values])
        self.rail.extend(rails)
        self.server.extend(servers)
        self.client.extend(clients)
        keys = [(rail * n + server) * n + client for rail, server, client in zip(rails, servers, clients, strict=True)]
        if self._by_round:
            keys = [key + number * self._rails * n * n for key, number in zip(keys, rounds, strict=True)]
        self._again.update(key for key in keys if self._last.get(key, -1) >= self._start)
        if len(set(keys)) < len(keys):
            self._again.update(key for key, number in Counter(keys).items() if number > 1)
        self._last.update(zip(keys, range(at, at + len(keys)), strict=True))
        if None in values:
            self.failures.update((at + number, self._why(row)) for number, row in enumerate(rows) if row[VALUE] is None)

    def add_failure_of_server(self, row: Row) -> None:
        """Add the failure that a server reports, after the rows of all clients of its sweep."""
        n = self._hosts
        key = (row[RAIL] * n + row[SERVER]) * n + row[CLIENT] + (row[ROUND] * self._rails * n * n if self._by_round else 0)
        at = self._last.get(key, -1)
        if at < self._start:
            self._last[key] = at = len(self.value)
            self.rail.append(row[RAIL])
            self.server.append(row[SERVER])
            self.client.append(row[CLIENT])
            self.value.append(math.nan)
        elif row[KIND] in UNMET | LINGERED or key in self._again or self._has_reason(at):
            return
        self.value[at] = math.nan
        self.failures[at] = self._why(row)

    def _has_reason(self, at: int) -> bool:
        """Return whether a measurement has failed for a reason that the client knows itself."""
        return math.isnan(self.value[at]) and self.failures.get(at, ("", ""))[0] != HEARD

    def _why(self, row: Row) -> tuple[str, str]:
        return str(row[KIND]), str(row[LINE]) if len(self.failures) < LINES_KEPT else ""


class Reader:
    """Reads the files of sweeps, each line once, into the columns of some tests. refused: host → its ignored lines."""

    def __init__(self, hosts: Sequence[str], rails: Sequence[str], tests: Iterable[str], *, by_round: bool = False) -> None:
        self.hosts, self.rails = hosts, rails
        self.columns = {test: Columns(len(hosts), len(rails), by_round=by_round) for test in tests}
        self.refused: dict[str, Refused] = {}

    def add_sweep(self, plan: Mapping[str, Any], files: Mapping[str, Path]) -> None:
        """Add the hosts' files of a sweep. A client's line counts; if there are several, its last one.

        files: host → its file. If a server reports a failure, the measurement has failed. There are three exceptions: the two did not meet,
        the client has tried again since, or the client has a good measurement and the server only did not end.

        Raises ValueError for a test that the plan does not have.
        """
        numbers = [each["name"] for each in plan["tests"]]
        columns = {numbers.index(test): each for test, each in self.columns.items()}
        for each in columns.values():
            each.begin_sweep()
        servers, meetings = list[Row](), _Meetings(plan)
        for host, file in files.items():
            clients: dict[int, list[Row]] = {number: [] for number in range(len(numbers))}
            for row in self._translated(plan, self._own_rows(meetings, host, file)):
                if not row[ROLE]:
                    clients[row[TEST]].append(row)
                elif row[VALUE] is None and row[TEST] in columns:
                    servers.append(row)
            for number, each in columns.items():
                each.add(clients[number])
        for row in servers:
            columns[row[TEST]].add_failure_of_server(row)

    def drop_superseded(self) -> None:
        """Keep the valid record of each measurement, after the last sweep."""
        for each in self.columns.values():
            each.drop_superseded()

    def _own_rows(self, meetings: _Meetings, host: str, file: Path) -> list[Row]:
        """Return the valid rows of a host's file; the others are noted as ignored."""
        lines = _lines(file)
        may_write, tests = meetings.of(host), meetings.tests
        rows = _parsed(lines)
        if rows is not None and _all_fit(rows, may_write, tests):
            return rows
        rows, refused = [], list[tuple[str, str]]()
        for line in lines:
            row, why = _judged(line, may_write, tests)
            if row is None:
                refused.append((line, why))
            else:
                rows.append(row)
        if refused:
            before = self.refused.get(host)
            first, why = (_printable(refused[0][0]), refused[0][1]) if before is None else (before.first, before.why)
            self.refused[host] = Refused(len(refused) + (0 if before is None else before.lines), first, why)
        return rows

    def _translated(self, plan: Mapping[str, Any], rows: list[Row]) -> list[Row]:
        """Return rows with the positions of the first plan."""
        hosts, rails = plan["hosts"], [rail["name"] for rail in plan["rails"]]
        if list(hosts) == list(self.hosts) and rails == list(self.rails):
            return rows
        at_host, at_rail = {name: at for at, name in enumerate(self.hosts)}, {name: at for at, name in enumerate(self.rails)}
        for row in rows:
            row[RAIL], row[SERVER], row[CLIENT] = at_rail[rails[row[RAIL]]], at_host[hosts[row[SERVER]]], at_host[hosts[row[CLIENT]]]
        return rows


class _Meetings:
    """The lines that each host of a sweep may write. Schedules shared by rails are computed once."""

    def __init__(self, plan: Mapping[str, Any]) -> None:
        self._hosts = {host: index for index, host in enumerate(plan["hosts"])}
        self._schedules = rail_schedules(plan)
        self.tests = len(plan["tests"])

    def of(self, host: str) -> frozenset[Meeting]:
        """Return the meetings on which a host of the plan may report."""
        own = self._hosts[host]
        met = {id(schedule): schedule.of(own) for schedule in {id(each): each for each in self._schedules}.values()}
        return frozenset(self._lines(own, [met[id(schedule)] for schedule in self._schedules]))

    @staticmethod
    def _lines(own: int, rails: Iterable[Mapping[int, tuple[int, bool]]]) -> Iterator[Meeting]:
        for rail, meetings in enumerate(rails):
            for number, (other, serving) in meetings.items():
                yield (rail, number, own, other, 1) if serving else (rail, number, other, own, 0)


def _lines(file: Path) -> list[str]:
    """Return the lines of a file, without an incomplete last line."""
    text = file.read_text(encoding="utf-8", errors="replace")
    lines = [line for line in text.split("\n") if line]
    return lines[:-1] if lines and not text.endswith("\n") and _parsed(lines[-1:]) is None else lines


def _parsed(lines: Sequence[str]) -> list[Any] | None:
    """Return the content of each line, None if they cannot all be parsed at once."""
    try:
        rows = list(json.loads(f"[{','.join(lines)}]"))
    except (ValueError, RecursionError):
        return None
    return rows if len(rows) == len(lines) else None


def _all_fit(rows: list[Any], may_write: frozenset[Meeting], tests: int) -> bool:
    """Return whether all rows of a file are valid: the fast path for a file without fault, as thousands of hosts have."""
    measured = [row for row in rows if isinstance(row, list) and len(row) == KIND]
    others = [row for row in rows if not isinstance(row, list) or len(row) != KIND] if len(measured) < len(rows) else []
    return (
        all(map(is_result, others))
        and are_measurements(measured)
        and may_write.issuperset((rail, number, server, client, role) for rail, number, server, client, _test, role, *_rest in others)
        and may_write.issuperset(zip(*(map(itemgetter(cell), measured) for cell in (RAIL, ROUND, SERVER, CLIENT, ROLE)), strict=True))
        and all(row[TEST] < tests for row in rows)
    )


def _judged(line: str, may_write: frozenset[Meeting], tests: int) -> tuple[Row | None, str]:
    """Return the row of a valid line, else why it is ignored."""
    rows = _parsed([line])
    if rows is None or not is_result(rows[0]):
        return None, "not a measurement result"
    row = rows[0]
    if (row[RAIL], row[ROUND], row[SERVER], row[CLIENT], row[ROLE]) not in may_write:
        return None, "not a measurement planned for this host"
    return (row, "") if row[TEST] < tests else (None, "not a planned test")


def _printable(line: str) -> str:
    text = "".join(letter if letter.isprintable() else " " for letter in line[: LINE_CHARACTERS + 1])
    return text if len(text) <= LINE_CHARACTERS else text[: LINE_CHARACTERS - 1] + "…"
