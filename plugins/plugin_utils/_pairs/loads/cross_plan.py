# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Pairs across rails: rail i of a host with rail j of another, as a plan of the pair runner.

A column of the plan has one port of each host. The hosts' ports are shifted against each other: host h has its rail v + shift(h) in column
v. So each port is in one column, is never used by two columns at once, and meets ports of other rails.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.loads.spines_plan import across
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.plan.plan import Endpoint, make_plan, meeting, tests_of

#: A port may have this many times the requested partners, if rails or leaves are not covered otherwise.
MOST_TIMES = 2
Rounds = list[list[list[int]]]


@dataclass(frozen=True)
class CrossPort:
    """A port that takes part. host: its position. leaf: the switch of its cable, None if unknown. key: its partition, None on RoCE."""

    host: int
    rail: str
    leaf: str | None = None
    key: int | None = None


@dataclass(frozen=True)
class Requirement:
    """Data must flow at least once from a rail to another (kind "rail"), or from a leaf to another ("leaf")."""

    kind: str
    sends: str
    receives: str

    def __str__(self) -> str:
        return f"{self.sends} to {self.receives}"


@dataclass(frozen=True)
class CrossSchedule:
    """columns: the ports of each one, in the order of hosts. rounds: column → rounds of [sends, receives], in positions of hosts.

    uncovered: the requirements that no meeting covers.
    """

    columns: Sequence[Sequence[CrossPort]]
    rounds: Sequence[Rounds]
    uncovered: Sequence[Requirement]


def shifts(hosts: int, rails: int) -> list[int]:
    """Return the shift of each host. The differences between two hosts are all numbers from 1 to rails - 1, if there are enough hosts.

    With fewer hosts than rails, the shifts are a difference cover: a few numbers whose differences modulo `rails` are all others.
    """
    if hosts >= rails:
        return [host % rails for host in range(hosts)]
    cover = [0]
    while len(known := _differences(cover, rails)) < rails - 1:
        cover.append(max(range(1, rails), key=lambda each: (len(_differences([*cover, each], rails) - known), -each)))
    return [cover[host % len(cover)] for host in range(hosts)]


def _differences(numbers: Sequence[int], rails: int) -> set[int]:
    return {(one - other) % rails for one in numbers for other in numbers} - {0}


def cross_schedule(ports: Sequence[CrossPort], rails: Sequence[str], reach: set[tuple[str, str]], partners: int) -> CrossSchedule:
    """Return the meetings of these ports. The same input gives the same meetings.

    rails: the names of the rails of one fabric. reach: (rail, other rail), in both orders, whose ports reach each other. partners: the
    number of meetings of each port; up to MOST_TIMES as many if that covers more. In a round, no port is used twice. Each ordered pair of
    rails and of leaves is covered if two ports of one column allow it.
    """
    return _Scheduler(ports, rails, reach, partners).schedule()


class _Scheduler:
    """Places meetings: first those that cover a requirement, then others until each port has its partners."""

    def __init__(self, ports: Sequence[CrossPort], rails: Sequence[str], reach: set[tuple[str, str]], partners: int) -> None:
        self.reach, self.partners, self.most = reach, partners, MOST_TIMES * partners
        hosts = sorted({port.host for port in ports})
        shift = dict(zip(hosts, shifts(len(hosts), len(rails)), strict=True))
        self.columns: list[list[CrossPort]] = [[] for _rail in rails]
        for port in sorted(ports, key=lambda each: each.host):
            self.columns[(rails.index(port.rail) - shift[port.host]) % len(rails)].append(port)
        self.column = {port: number for number, of in enumerate(self.columns) for port in of}
        self.busy: dict[CrossPort, set[int]] = {port: set() for port in ports}
        self.sent: Counter[CrossPort] = Counter()
        self.met: set[tuple[CrossPort, CrossPort]] = set()
        self.rounds: list[dict[int, list[list[int]]]] = [defaultdict(list) for _column in self.columns]

    def schedule(self) -> CrossSchedule:
        uncovered = dict.fromkeys(self._requirements())
        for each in list(uncovered):
            if each in uncovered and (pair := self._pair_for(each)) is not None:
                for done in self._place(*pair, self.most):
                    uncovered.pop(done, None)
        for number in range(self.partners):
            for of in self.columns:
                for pair in self._fill(of, number):
                    for done in self._place(*pair, number + 1):
                        uncovered.pop(done, None)
        rounds = [[of[number] for number in sorted(of)] for of in self.rounds]
        return CrossSchedule(self.columns, rounds, list(uncovered))

    def _requirements(self) -> Iterator[Requirement]:
        yield from (Requirement("rail", *pair) for pair in sorted(self.reach))
        below: dict[str, set[str]] = defaultdict(set)
        for port in self.busy:
            if port.leaf is not None:
                below[port.leaf].add(port.rail)
        for one in sorted(below):
            for other in sorted(below):
                if one != other and any((rail, there) in self.reach for rail in below[one] for there in below[other]):
                    yield Requirement("leaf", one, other)

    @cached_property
    def _having(self) -> dict[tuple[str, str], dict[int, list[CrossPort]]]:
        """(kind, name) → column → the ports of a rail or leaf."""
        found: dict[tuple[str, str], dict[int, list[CrossPort]]] = defaultdict(lambda: defaultdict(list))
        for port, number in self.column.items():
            found["rail", port.rail][number].append(port)
            if port.leaf is not None:
                found["leaf", port.leaf][number].append(port)
        return found

    def _pair_for(self, wanted: Requirement) -> tuple[CrossPort, CrossPort] | None:
        """Return the sender and the receiver with the fewest meetings that cover a requirement."""
        senders, receivers = self._having[wanted.kind, wanted.sends], self._having[wanted.kind, wanted.receives]
        best: tuple[int, int, CrossPort, CrossPort] | None = None
        for number in sorted(senders.keys() & receivers.keys()):
            here = [each for each in receivers[number] if self._load(each) < self.most]
            for one in senders[number] if here else ():
                if self._load(one) < self.most:
                    for other in here:
                        loads = self._load(one) + self._load(other), number
                        if (best is None or loads < best[:2]) and self._may_meet(one, other) and (one, other) not in self.met:
                            best = (*loads, one, other)
        return None if best is None else best[2:]

    def _load(self, port: CrossPort) -> int:
        return len(self.busy[port])

    def _may_meet(self, one: CrossPort, other: CrossPort) -> bool:
        return one.host != other.host and one.key == other.key and (one.rail, other.rail) in self.reach

    def _place(self, sends: CrossPort, receives: CrossPort, before: int) -> Sequence[Requirement]:
        """Place a meeting in the first round before this one in which both ports are free. Return what it covers, () if there is none."""
        taken = self.busy[sends] | self.busy[receives]
        number = next((each for each in range(before) if each not in taken), None)
        if number is None:
            return ()
        self.rounds[self.column[sends]][number].append([sends.host, receives.host])
        for port in (sends, receives):
            self.busy[port].add(number)
        self.sent[sends] += 1
        self.met.add((sends, receives))
        covered = [Requirement("rail", sends.rail, receives.rail)]
        if sends.leaf is not None and receives.leaf is not None:
            covered.append(Requirement("leaf", sends.leaf, receives.leaf))
        return covered

    def _fill(self, ports: Sequence[CrossPort], number: int) -> Iterator[tuple[CrossPort, CrossPort]]:
        """Yield pairs of the ports of a column that are free in a round, rotated so that rounds differ; who sent less sends."""
        turn = number % len(ports) if ports else 0
        order = [*ports[turn:], *ports[:turn]]
        free = [port.rail if self._is_free(port, number) else None for port in order]
        for pair in across(free):
            one, other = sorted((order[each] for each in pair), key=lambda port: (2 * self.sent[port] - self._load(port), port.host))
            if self._may_meet(one, other) and not {(one, other), (other, one)} & self.met:
                yield one, other

    def _is_free(self, port: CrossPort, number: int) -> bool:
        return number not in self.busy[port] and self._load(port) < self.partners


def cross_plan(
    name: str,
    hosts: Sequence[str],
    planes: Mapping[str, CrossSchedule],
    *,
    of: Mapping[str, Mapping[str, Endpoint]],
    intent: Intent,
    forks: int,
) -> dict[str, Any]:
    """Return the plan of these planes. hosts: those of the schedules' positions. of: host → rail → endpoint.

    intent: of a host, for the test, which is unidirectional and measures bandwidth only.
    """
    test = tests_of({**intent, "pairs": {**intent["pairs"], "bidirectional": False}})[0]
    endpoints: dict[str, dict[str, Endpoint]] = {host: {} for host in hosts}
    columns, rails = [], []
    for plane, schedule in planes.items():
        for number, (ports, rounds) in enumerate(zip(schedule.columns, schedule.rounds, strict=True)):
            columns.append(column_name(plane, number))
            rails.append([[meeting(test, *pair) for pair in turn] for turn in rounds])
            for port in ports:
                endpoints[hosts[port.host]][columns[-1]] = of[hosts[port.host]][port.rail]
    schedule_of_plan = {"kind": "meetings", "rails": rails}
    return make_plan(name, hosts=hosts, rails=columns, of=endpoints, tests=[test], schedule=schedule_of_plan, forks=forks)


def column_name(plane: str, number: int) -> str:
    """Return the plan's name of a column, which is no rail: it has ports of several rails."""
    return f"{plane} cross {number}"
