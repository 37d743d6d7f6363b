# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rate of errors of each port of a soak, and which port of a pair they belong to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ansible_collections.rdma.cluster.plugins.module_utils._rdma.counters import CABLE_ERRORS, FLAPS, MODULE, PCIE
from ansible_collections.rdma.cluster.plugins.plugin_utils._soak.interval import bound_of_none, interval
from ansible_collections.rdma.cluster.plugins.plugin_utils._soak.slices import PortSlice

#: These counters show a fault of the port's own cable, card or slot. All others may rise at both ends of a pair.
OWN = FLAPS | CABLE_ERRORS | MODULE | PCIE
#: With so many partners that had errors together with it, a port is to blame, and its partners are not.
FEWEST_PARTNERS = 2
BILLION = 10**9
#: (rail, host).
Port = tuple[str, str]


@dataclass(frozen=True)
class Burst:
    """The errors of a port in one slice. at: its start, in seconds since 1970."""

    number: int
    at: float
    errors: int
    partner: str


@dataclass
class Tally:
    """One port. packets and slices: of the slices that count. others: of the slices that another port of this rail spoils.

    names: counter → its increase, of both ends. blamed: whether it is found by several partners. unknown: why slices do not count → how
    many they are. uncounted_errors: the errors of those slices.
    """

    packets: int = 0
    slices: int = 0
    others: int = 0
    bursts: list[Burst] = field(default_factory=list)
    names: dict[str, int] = field(default_factory=dict)
    blamed: bool = False
    unknown: dict[str, int] = field(default_factory=dict)
    uncounted_errors: int = 0
    failures: dict[str, int] = field(default_factory=dict)

    @property
    def errors(self) -> int:
        return sum(each.errors for each in self.bursts)

    @property
    def partners(self) -> list[str]:
        """Return the partners with which it had errors."""
        return list(dict.fromkeys(each.partner for each in self.bursts))

    @property
    def interval(self) -> tuple[float, float] | None:
        """Return the lowest and the highest rate that fit, in errors per 10^9 packets; None without packets. See interval()."""
        if not self.packets:
            return None
        low, high = interval(self.errors) if self.errors else (0.0, bound_of_none())
        return low / self.packets * BILLION, high / self.packets * BILLION

    @property
    def rate(self) -> float:
        """Return the observed errors per 10^9 packets."""
        return self.errors / self.packets * BILLION


@dataclass(frozen=True)
class _Meeting:
    """Two ports in one slice. shared: the errors that either end may have caused."""

    number: int
    ends: tuple[PortSlice, ...]

    @property
    def rail(self) -> str:
        return self.ends[0].rail

    @property
    def shared(self) -> int:
        """Return the largest increase of one counter: one lost packet raises several counters, so their sum counts it twice."""
        return max((by for end in self.ends for name, by in end.errors.items() if name not in OWN), default=0)

    @property
    def places(self) -> list[Port]:
        """Return both ports, also if the lines of one are missing."""
        return [(self.rail, host) for host in dict.fromkeys((self.ends[0].host, self.ends[0].partner))]


def tallies(ports: Iterable[PortSlice]) -> dict[Port, Tally]:
    """Return the tally of each port: the errors of its own, and those of its pairs that are not another port's."""
    meetings = _meetings(ports)
    blamed = culprits(meetings)
    found: defaultdict[Port, Tally] = defaultdict(Tally)
    for meeting in meetings:
        for end in meeting.ends:
            tally = found[end.rail, end.host]
            tally.blamed = (end.rail, end.host) in blamed
            if end.failure:
                tally.failures[end.failure] = tally.failures.get(end.failure, 0) + 1
            _add(tally, end, meeting, blamed)
    return dict(found)


def _meetings(ports: Iterable[PortSlice]) -> list[_Meeting]:
    pairs: defaultdict[tuple[int, str, frozenset[str]], list[PortSlice]] = defaultdict(list)
    for port in ports:
        pairs[port.number, port.rail, frozenset((port.host, port.partner))].append(port)
    return [_Meeting(number, tuple(ends)) for (number, _rail, _hosts), ends in pairs.items()]


def culprits(meetings: Sequence[_Meeting]) -> set[Port]:
    """Return the ports that had errors with several partners, the one with most partners first. Errors that it explains count once."""
    left = [meeting for meeting in meetings if meeting.shared]
    found: set[Port] = set()
    while left:
        partners: defaultdict[Port, set[Port]] = defaultdict(set)
        errors: defaultdict[Port, int] = defaultdict(int)
        for meeting in left:
            one, other = meeting.places
            for port, partner in ((one, other), (other, one)):
                partners[port].add(partner)
                errors[port] += meeting.shared
        worst = max(partners, key=lambda port: (len(partners[port]), errors[port], port))
        if len(partners[worst]) < FEWEST_PARTNERS:
            break
        found.add(worst)
        left = [meeting for meeting in left if worst not in meeting.places]
    return found


def _add(tally: Tally, end: PortSlice, meeting: _Meeting, blamed: set[Port]) -> None:
    own = max((by for name, by in end.errors.items() if name in OWN), default=0)
    here, there = (end.rail, end.host) in blamed, (end.rail, end.partner) in blamed
    is_others = bool(meeting.shared) and there and not here
    count = own if is_others else max(own, meeting.shared)
    if end.unknown or end.packets is None:
        tally.unknown[end.unknown] = tally.unknown.get(end.unknown, 0) + 1
        tally.uncounted_errors += count
        return
    if is_others and not own:
        tally.others += 1
        return
    tally.slices += 1
    tally.packets += end.packets
    if count:
        tally.bursts.append(Burst(end.number, end.at, count, end.partner))
        for name, by in _names(end, meeting, shared=not is_others):
            tally.names[name] = tally.names.get(name, 0) + by


def _names(end: PortSlice, meeting: _Meeting, *, shared: bool) -> Iterator[tuple[str, int]]:
    yield from ((name, by) for name, by in end.errors.items() if name in OWN)
    if shared:
        yield from ((name, by) for each in meeting.ends for name, by in each.errors.items() if name not in OWN)


def worst_first(found: Mapping[Port, Tally]) -> list[tuple[Port, Tally]]:
    """Return the ports with errors, the highest rate first."""
    with_errors = [(port, each) for port, each in found.items() if each.errors]
    return sorted(with_errors, key=lambda item: -item[1].rate)
