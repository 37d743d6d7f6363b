# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compact results of many hosts' files into columns, each measurement once.

A line has the cells of a Result (module_utils/_pairs/result.py).
A host is believed only about itself: a client's line counts in the client's own file, a server's in the server's, and only for a
meeting of the plan. Every other line is refused, and the host whose file holds it is named.
"""

from __future__ import annotations

import json
import math
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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
    is_result,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.schedule import rail_schedules

#: The partners did not meet: one end may say so of an attempt that a later one has made good.
UNMET = frozenset(("dead", "refused", "token", "plan"))
#: The server outlived its client and was ended: that is no failure of a client that has measured.
LINGERED = frozenset(("timeout", "signal"))
#: What a client only hears of: the server's own record says what it was.
HEARD = "listen"
#: Failures of which the line is kept; of the others the kind.
LINES_KEPT = 10_000
Row = list[Any]
#: (rail, round, server, client, role) of a line that a host may write.
Meeting = tuple[int, int, int, int, int]


@dataclass(frozen=True)
class Refused:
    """Lines of one host's file that do not count. lines: how many; first: the first of them, cut; why: what is wrong with it."""

    lines: int
    first: str
    why: str

    @property
    def words(self) -> str:
        """For a finding."""
        rest = "" if self.lines == 1 else f" and {self.lines - 1} more"
        return f"{self.first!r}{rest}: {self.why}"


class Columns:
    """Measurements as they are read; positions of hosts and rails are those of the first plan. refused: host → what does not count."""

    def __init__(self, hosts: Sequence[str], rails: Sequence[str], *, by_round: bool = False) -> None:
        self.hosts, self.rails = hosts, rails
        self.rail, self.server, self.client = array("H"), array("H"), array("H")
        self.value = array("d")
        self.failures: dict[int, tuple[str, str]] = {}
        self.refused: dict[str, Refused] = {}
        self._last: dict[int, int] = {}
        self._by_round = by_round

    def add_sweep(self, plan: Mapping[str, Any], files: Mapping[str, Path], test: str) -> None:
        """Add what the hosts' files of a sweep hold of a test; a client's line counts, its last one if there are several.

        files: host → its file. A server's failure makes the measurement one that failed, unless the two did not meet, the client has
        tried again since, or has measured well with a server that only did not end.
        """
        wanted = [each["name"] for each in plan["tests"]].index(test)
        start, again, servers = len(self.value), set[int](), list[Row]()
        meetings = _Meetings(plan)
        for host, file in files.items():
            rows = self._translated(plan, self._own_rows(meetings, host, file))
            rows = [row for row in rows if row[TEST] == wanted]
            servers += [row for row in rows if row[ROLE] and row[VALUE] is None]
            self._add([row for row in rows if not row[ROLE]], start, again)
        for row in servers:
            self._add_failure_of_server(row, start, again)

    def drop_superseded(self) -> None:
        """Keep of each measurement the one that counts."""
        if len(self._last) < len(self.value):
            kept = sorted(self._last.values())
            self.failures = {new: self.failures[old] for new, old in enumerate(kept) if old in self.failures}
            for name in ("rail", "server", "client", "value"):
                column = getattr(self, name)
                setattr(self, name, array(column.typecode, [column[at] for at in kept]))
        self._last.clear()

    def _own_rows(self, meetings: _Meetings, host: str, file: Path) -> list[Row]:
        """Return the rows of a host's file that count; the other ones are noted as refused."""
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
        """Rows with the positions of the first plan."""
        hosts, rails = plan["hosts"], [rail["name"] for rail in plan["rails"]]
        if list(hosts) == list(self.hosts) and rails == list(self.rails):
            return rows
        at_host, at_rail = {name: at for at, name in enumerate(self.hosts)}, {name: at for at, name in enumerate(self.rails)}
        for row in rows:
            row[RAIL], row[SERVER], row[CLIENT] = at_rail[rails[row[RAIL]]], at_host[hosts[row[SERVER]]], at_host[hosts[row[CLIENT]]]
        return rows

    def _add(self, rows: list[Row], start: int, again: set[int]) -> None:
        if not rows:
            return
        at, n = len(self.value), len(self.hosts)
        rails, rounds, servers, clients, _tests, _roles, values = list(zip(*rows, strict=False))[: VALUE + 1]
        self.value.extend([math.nan if value is None else value for value in values])
        self.rail.extend(rails)
        self.server.extend(servers)
        self.client.extend(clients)
        keys = [(rail * n + server) * n + client for rail, server, client in zip(rails, servers, clients, strict=True)]
        if self._by_round:
            keys = [key + number * len(self.rails) * n * n for key, number in zip(keys, rounds, strict=True)]
        again.update(key for key in keys if self._last.get(key, -1) >= start)
        if len(set(keys)) < len(keys):
            again.update(key for key, number in Counter(keys).items() if number > 1)
        self._last.update(zip(keys, range(at, at + len(keys)), strict=True))
        if None in values:
            self.failures.update((at + number, self._why(row)) for number, row in enumerate(rows) if row[VALUE] is None)

    def _add_failure_of_server(self, row: Row, start: int, again: set[int]) -> None:
        n = len(self.hosts)
        key = (row[RAIL] * n + row[SERVER]) * n + row[CLIENT] + (row[ROUND] * len(self.rails) * n * n if self._by_round else 0)
        at = self._last.get(key, -1)
        if at < start:
            self._last[key] = at = len(self.value)
            self.rail.append(row[RAIL])
            self.server.append(row[SERVER])
            self.client.append(row[CLIENT])
            self.value.append(math.nan)
        elif row[KIND] in UNMET | LINGERED or key in again or self._has_reason(at):
            return
        self.value[at] = math.nan
        self.failures[at] = self._why(row)

    def _has_reason(self, at: int) -> bool:
        """Whether a measurement has failed for a reason that the client knows by itself."""
        return math.isnan(self.value[at]) and self.failures.get(at, ("", ""))[0] != HEARD

    def _why(self, row: Row) -> tuple[str, str]:
        return str(row[KIND]), str(row[LINE]) if len(self.failures) < LINES_KEPT else ""


class _Meetings:
    """Who may write which lines of a sweep; schedules that rails share are made once."""

    def __init__(self, plan: Mapping[str, Any]) -> None:
        self._hosts = {host: index for index, host in enumerate(plan["hosts"])}
        self._schedules = rail_schedules(plan)
        self.tests = len(plan["tests"])

    def of(self, host: str) -> frozenset[Meeting]:
        """Return what a host of the plan may speak of."""
        own = self._hosts[host]
        met = {id(schedule): schedule.of(own) for schedule in {id(each): each for each in self._schedules}.values()}
        return frozenset(self._lines(own, [met[id(schedule)] for schedule in self._schedules]))

    @staticmethod
    def _lines(own: int, rails: Iterable[Mapping[int, tuple[int, bool]]]) -> Iterator[Meeting]:
        for rail, meetings in enumerate(rails):
            for number, (other, serving) in meetings.items():
                yield (rail, number, own, other, 1) if serving else (rail, number, other, own, 0)


def _lines(file: Path) -> list[str]:
    """Return the lines of a file. A last line that was cut off is left out."""
    text = file.read_text(encoding="utf-8", errors="replace")
    lines = [line for line in text.split("\n") if line]
    return lines[:-1] if lines and not text.endswith("\n") and _parsed(lines[-1:]) is None else lines


def _parsed(lines: Sequence[str]) -> list[Any] | None:
    """Return what each line holds, None where that cannot be read in one go."""
    try:
        rows = list(json.loads(f"[{','.join(lines)}]"))
    except (ValueError, RecursionError):
        return None
    return rows if len(rows) == len(lines) else None


def _all_fit(rows: list[Any], may_write: frozenset[Meeting], tests: int) -> bool:
    """Say whether all of a file's rows count: the short way for a file without fault, which thousands of hosts have."""
    return (
        all(map(is_result, rows))
        and may_write.issuperset((rail, number, server, client, role) for rail, number, server, client, _test, role, *_rest in rows)
        and all(row[TEST] < tests for row in rows)
    )


def _judged(line: str, may_write: frozenset[Meeting], tests: int) -> tuple[Row | None, str]:
    """Return the row of a line that counts, else why it does not."""
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
