# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All measurements of one test of a sweep, in columns: the input of the verdicts.

4.2 million of them (1024 hosts, 8 rails) take 100 MB here, and would take ten times as much as objects.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.matrix.reader import Columns, Reader, Refused

NAN = math.nan


@dataclass(frozen=True)
class Failure:
    """Why a measurement failed: the kind (_pair_result), and the line of output that shows it (empty after a few thousand failures)."""

    kind: str
    line: str = ""


@dataclass(frozen=True)
class Matrix:
    """Measurements by position: rail[m], server[m], client[m] are positions in rails and hosts.

    In the columns the data flows from `client` to `server`, independent of perftest's roles: for ib_read_*, where the client reads from the
    server, `client` is the host that served (is_read). value: 10^9 bit/s, or µs for a latency test. ratio: of the expected value, more is
    better. Both are NaN if it failed. failures: position → why. missing: the planned (rail, server, client) without a record, as in the
    columns. unjudged: (rail, host) → its good measurements that were omitted because their expected value is unknown; each counts at both
    ends. refused: host → the ignored lines of its file. is_bidirectional: data flowed both ways at once, so no direction can be
    distinguished.
    """

    hosts: Sequence[str]
    rails: Sequence[str]
    rail: array[int]
    server: array[int]
    client: array[int]
    ratio: array[float]
    value: array[float] = field(default_factory=lambda: array("d"))
    failures: Mapping[int, Failure] = field(default_factory=dict)
    missing: Sequence[tuple[int, int, int]] = ()
    unjudged: Mapping[tuple[int, int], int] = field(default_factory=dict)
    refused: Mapping[str, Refused] = field(default_factory=dict)
    is_latency: bool = False
    is_read: bool = False
    is_bidirectional: bool = False

    def __len__(self) -> int:
        return len(self.ratio)

    @classmethod
    def of(cls, hosts: Sequence[str], rails: Sequence[str], rows: Iterable[tuple[int, int, int, float | None]]) -> Matrix:
        """Return a matrix of (rail, server, client, ratio or None) rows; the value is the ratio."""
        columns = list(zip(*rows, strict=True)) or [(), (), (), ()]
        ratio = array("d", [NAN if each is None else each for each in columns[3]])
        rail, server, client = (array("H", column) for column in columns[:3])
        return cls(hosts, rails, rail, server, client, ratio=ratio, value=ratio)

    @classmethod
    def read(
        cls, sweeps: Sequence[tuple[Mapping[str, Any], Mapping[str, Path]]], tests: Sequence[str], *, by_round: bool = False
    ) -> dict[str, Matrix]:
        """Return each test's results from (plan, host → its file), sweep after sweep; a later measurement replaces an earlier one.

        Hosts and rails are those of the first plan; those of a later plan are found by name. ratio is the raw value (for a latency 1 ÷
        value) until with_limits, with_expected or with_level. A line that its host may not write, or that is not a result, does not affect
        other hosts: it is ignored and noted. by_round: two hosts may measure the same in several rounds, and each of these counts.

        Raises KeyError for a host or rail of a later plan that the first one does not have. Raises ValueError for a test that a plan does
        not have.
        """
        first = sweeps[0][0]
        reader = Reader(list(first["hosts"]), [rail["name"] for rail in first["rails"]], tests, by_round=by_round)
        for plan, files in sweeps:
            reader.add_sweep(plan, files)
        reader.drop_superseded()
        return {each["name"]: cls._of_test(reader, each) for each in first["tests"] if each["name"] in tests}

    @classmethod
    def _of_test(cls, reader: Reader, how: Mapping[str, Any]) -> Matrix:
        columns: Columns = reader.columns[how["name"]]
        is_latency, is_read = how["command"].endswith("_lat"), how["command"].startswith("ib_read_")
        return cls(
            hosts=reader.hosts,
            rails=reader.rails,
            rail=columns.rail,
            server=columns.client if is_read else columns.server,
            client=columns.server if is_read else columns.client,
            ratio=array("d", [1 / value for value in columns.value]) if is_latency else columns.value,
            value=columns.value,
            failures={position: Failure(*why) for position, why in columns.failures.items()},
            refused=reader.refused,
            is_latency=is_latency,
            is_read=is_read,
            is_bidirectional=bool(how.get("bidirectional")),
        )

    def with_limits(self, limits: Sequence[Sequence[float | None]]) -> Matrix:
        """Fill ratio from limits[rail][host] (unit of value): a pair reaches the limit of its smaller end, or the greater latency of both.

        A good measurement with an unknown limit at one end is omitted, and counted as unjudged at both; a failed one stays.
        """
        known = [[NAN if limit is None else limit for limit in row] for row in limits]
        ends = ((known[rail][server], known[rail][client]) for rail, server, client in self._where())
        if self.is_latency:
            slower = (one if one > other or math.isnan(one) else other for one, other in ends)
            return self._filled(array("d", [limit / value for limit, value in zip(slower, self.value, strict=True)]))
        least = (one if one < other or math.isnan(one) else other for one, other in ends)
        return self._filled(array("d", [value / limit for limit, value in zip(least, self.value, strict=True)]))

    def with_expected(self, expected: Callable[[int, int, int], float | None]) -> Matrix:
        """Fill ratio from expected(rail, server, client), in the unit of value; None: unknown."""
        limits = (expected(*where) for where in self._where())
        pairs = ((NAN if limit is None else limit, value) for limit, value in zip(limits, self.value, strict=True))
        return self._filled(array("d", [limit / value if self.is_latency else value / limit for limit, value in pairs]))

    def with_level(self) -> Matrix:
        """Fill ratio from the fleet's own level, the upper quartile of all (of latencies the lower): for devices without a line rate."""
        known = sorted(value for value in self.value if not math.isnan(value))
        if not known:
            return self._filled(self.value)
        level = known[len(known) // 4] if self.is_latency else known[(3 * len(known)) // 4]
        return self.with_expected(lambda _rail, _server, _client: level)

    def with_missing(self, planned: Iterable[tuple[int, int, int, int]], count: int | None = None) -> Matrix:
        """Note which of the planned (rail, round, server, client) meetings have no record; server and client are perftest's.

        Call this before with_limits, which omits some recorded ones. count: the number of planned meetings, if known. If as many
        measurements are recorded, none is missing, and planned is not iterated.
        """
        if count == len(self):
            return replace(self, missing=())
        hosts = len(self.hosts)
        is_open = bytearray(len(self.rails) * hosts * hosts)
        per_server, per_client = (1, hosts) if self.is_read else (hosts, 1)
        for rail, _round, server, client in planned:
            is_open[rail * hosts * hosts + server * per_server + client * per_client] = 1
        for rail, server, client in self._where():
            is_open[(rail * hosts + server) * hosts + client] = 0
        missing = []
        at = is_open.find(1)
        while at >= 0:
            rail, pair = divmod(at, hosts * hosts)
            missing.append((rail, *divmod(pair, hosts)))
            at = is_open.find(1, at + 1)
        return replace(self, missing=missing)

    def endpoints(self) -> Iterable[tuple[int, int]]:
        """Return (rail, host) of both ends of each measurement."""
        yield from zip(self.rail, self.server, strict=True)
        yield from zip(self.rail, self.client, strict=True)

    def _where(self) -> Iterator[tuple[int, int, int]]:
        return zip(self.rail, self.server, self.client, strict=True)

    def _filled(self, ratio: array[float]) -> Matrix:
        """Return the matrix with this ratio, without good measurements that have none."""
        matrix = replace(self, ratio=ratio)
        lost = [at for at, (each, value) in enumerate(zip(ratio, self.value, strict=True)) if math.isnan(each) and not math.isnan(value)]
        return matrix._without(lost) if lost else matrix

    def _without(self, lost: Sequence[int]) -> Matrix:
        unjudged = Counter(self.unjudged)
        for ends in (self.server, self.client):
            unjudged.update((self.rail[at], ends[at]) for at in lost)
        left_out = frozenset(lost)
        return replace(self.part([at for at in range(len(self)) if at not in left_out]), unjudged=unjudged)

    def part(self, kept: Sequence[int]) -> Matrix:
        """Return the measurements at some positions."""
        failures = {new: self.failures[old] for new, old in enumerate(kept) if old in self.failures}
        columns = {name: getattr(self, name) for name in ("rail", "server", "client", "ratio", "value")}
        chosen: dict[str, Any] = {name: array(column.typecode, [column[at] for at in kept]) for name, column in columns.items()}
        return replace(self, failures=failures, **chosen)
