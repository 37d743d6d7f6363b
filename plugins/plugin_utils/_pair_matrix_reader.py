# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compact results of many hosts' files into columns, each measurement once.

A line is [rail, round, server, client, test, role, value, seconds, waited], a failed one has null, kind and line at its end.
"""

from __future__ import annotations

import json
import math
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._errors import ParseError

RAIL, ROUND, SERVER, CLIENT, TEST, ROLE, VALUE, KIND, LINE = 0, 1, 2, 3, 4, 5, 6, 9, 10
GOOD_FIELDS, FAILED_FIELDS = 9, 11
#: The partners did not meet: one end may say so of an attempt that a later one has made good.
UNMET = frozenset(("dead", "refused", "token", "plan"))
#: The server outlived its client and was ended: that is no failure of a client that has measured.
LINGERED = frozenset(("timeout", "signal"))
#: What a client only hears of: the server's own record says what it was.
HEARD = "listen"
#: Failures of which the line is kept; of the others the kind.
LINES_KEPT = 10_000
Row = list[Any]


class Columns:
    """Measurements as they are read; positions of hosts and rails are those of the first plan."""

    def __init__(self, hosts: Sequence[str], rails: Sequence[str], *, by_round: bool = False) -> None:
        self.hosts, self.rails = hosts, rails
        self.rail, self.server, self.client = array("H"), array("H"), array("H")
        self.value = array("d")
        self.failures: dict[int, tuple[str, str]] = {}
        self._last: dict[int, int] = {}
        self._by_round = by_round

    def add_sweep(self, plan: Mapping[str, Any], files: Iterable[Path], test: str) -> None:
        """What the hosts' files of a sweep hold of a test; a client's line counts, its last one if there are several.

        A server's failure makes the measurement one that failed, unless the two did not meet, the client has tried again since, or has
        measured well with a server that only did not end.
        """
        wanted = [each["name"] for each in plan["tests"]].index(test)
        start, again, servers = len(self.value), set[int](), list[Row]()
        for file in files:
            rows = [row for row in self._translated(plan, _read(file), file) if row[TEST] == wanted]
            servers += [row for row in rows if row[ROLE] and row[VALUE] is None]
            self._add([row for row in rows if not row[ROLE]], start, again, file)
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

    def _translated(self, plan: Mapping[str, Any], rows: list[Row], file: Path) -> list[Row]:
        """Rows with the positions of the first plan."""
        hosts, rails = plan["hosts"], [rail["name"] for rail in plan["rails"]]
        _check_positions(rows, len(hosts), len(rails), file)
        if list(hosts) == list(self.hosts) and rails == list(self.rails):
            return rows
        at_host, at_rail = {name: at for at, name in enumerate(self.hosts)}, {name: at for at, name in enumerate(self.rails)}
        for row in rows:
            row[RAIL], row[SERVER], row[CLIENT] = at_rail[rails[row[RAIL]]], at_host[hosts[row[SERVER]]], at_host[hosts[row[CLIENT]]]
        return rows

    def _add(self, rows: list[Row], start: int, again: set[int], file: Path) -> None:
        if not rows:
            return
        at, n = len(self.value), len(self.hosts)
        rails, rounds, servers, clients, _tests, _roles, values = list(zip(*rows, strict=False))[: VALUE + 1]
        try:
            self.value.extend([math.nan if value is None else value for value in values])
        except TypeError as exc:
            raise ParseError(f"{file}: a value is no number: {exc}") from exc
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


def _read(file: Path) -> list[Row]:
    """The lines of a file. A last line that was cut off is left out."""
    text = file.read_text(encoding="utf-8", errors="replace")
    lines = [line for line in text.split("\n") if line]
    if lines and not text.endswith("\n"):
        lines = lines[:-1] if _is_cut(lines[-1]) else lines
    try:
        rows = json.loads(f"[{','.join(lines)}]")
    except ValueError as exc:
        raise ParseError(f"{file}: a line is no JSON: {next((line for line in lines if _is_cut(line)), '')!r}") from exc
    for row in rows:
        if not isinstance(row, list) or len(row) < GOOD_FIELDS or (row[VALUE] is None and len(row) < FAILED_FIELDS):
            raise ParseError(f"{file}: no result: {json.dumps(row)}")
    return list(rows)


def _is_cut(line: str) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return True
    return False


def _check_positions(rows: list[Row], hosts: int, rails: int, file: Path) -> None:
    for column, most in ((RAIL, rails), (SERVER, hosts), (CLIENT, hosts)):
        found = {
            row[column] for row in rows if not isinstance(row[column], int) or isinstance(row[column], bool) or not 0 <= row[column] < most
        }
        if found:
            raise ParseError(f"{file}: the plan has no position {sorted(map(str, found))[0]} ({'rail' if column == RAIL else 'host'})")
