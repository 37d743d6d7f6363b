# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who is measured again before the gate fails: each suspect with two good partners, on its rail and on another one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.matrix.matrix import Matrix
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.verdict.verdict import Verdict

PARTNERS = 2
#: With more of them the trouble is not that of single suspects, and measuring again is a sweep of its own.
MOST = 32

#: (rail, server, client): names.
Meeting = tuple[str, str, str]


class Measured(Protocol):
    """The ports of a sweep: a matrix has them, and so has the record of its verdicts."""

    @property
    def hosts(self) -> Sequence[str]:
        """The names that positions of hosts stand for."""

    @property
    def rails(self) -> Sequence[str]:
        """The names that positions of rails stand for."""

    def endpoints(self) -> Iterable[tuple[int, int]]:
        """(rail, host) of every measured port."""


@dataclass(frozen=True)
class Reach:
    """Who can be met: rail → hosts that may be measured again; good: hosts (rail → those) that nothing is said against.

    partitions: (rail, host) → the partition of its port; those of different ones do not meet.
    """

    available: dict[str, list[str]]
    good: dict[str, list[str]]
    partitions: Mapping[tuple[str, str], int | None] = field(default_factory=dict)

    def apart(self, rail: str, hosts: Iterable[str]) -> bool:
        """Whether hosts are in different partitions on a rail."""
        return len({self.partitions.get((rail, host)) for host in hosts}) > 1


def reach(
    measured: Measured, verdicts: Iterable[Verdict], available: Collection[str], partitions: Mapping[tuple[str, str], int | None]
) -> Reach:
    """available: hosts that may be measured again; partitions: as Reach has them."""
    accused = {(verdict.rail, host) for verdict in verdicts for host in (verdict.host, verdict.other) if host is not None}
    there: dict[str, dict[str, None]] = {}
    good: dict[str, dict[str, None]] = {}
    for rail, host in dict.fromkeys(measured.endpoints()):
        name = measured.hosts[host]
        if name in available:
            there.setdefault(measured.rails[rail], {})[name] = None
            if not {(rail, host), (None, host)} & accused:
                good.setdefault(measured.rails[rail], {})[name] = None
    return Reach({rail: list(of) for rail, of in there.items()}, {rail: list(of) for rail, of in good.items()}, partitions)


def meetings(verdicts: Sequence[Verdict], matrix: Matrix, of: Reach, *, controls: bool = False) -> list[Meeting]:
    """Each suspect with PARTNERS good ones, on its rail and on another; none if there are more than MOST suspects.

    controls: for devices that scatter. Then every pair measures both ways, on each of these rails two pairs of good hosts measure as
    well, so that suspects can be compared with them, and what would be measured twice only is measured four times.
    """
    if len(verdicts) > MOST:
        return []
    planned = dict.fromkeys(meeting for verdict in verdicts for meeting in _of(verdict, matrix, of))
    more: list[Meeting] = []
    if controls:
        planned.update(dict.fromkeys((rail, client, server) for rail, server, client in list(planned)))
        planned.update(dict.fromkeys(_controls(list(planned), of)))
        more = _once_more(planned, verdicts, matrix)
    # The matrix has who receives and who sends; a client that reads receives.
    return [(rail, sender, receiver) if matrix.is_read else (rail, receiver, sender) for rail, receiver, sender in (*planned, *more)]


def _of(verdict: Verdict, matrix: Matrix, of: Reach) -> Iterator[Meeting]:
    if verdict.kind == "path":
        yield from _of_path(verdict, matrix, of)
    rail = None if verdict.rail is None else matrix.rails[verdict.rail]
    hosts = [matrix.hosts[host] for host in (verdict.host, verdict.other) if host is not None]
    if verdict.kind == "rail" and rail is not None:
        hosts = of.available.get(rail, [])[:1]
    if verdict.kind == "pair":
        one, other = hosts
        for name in _rails(rail, hosts, of)[: None if rail is None else 1]:
            yield from ((name, one, other), (name, other, one))
    for host in hosts:
        for name in _rails(rail, [host], of):
            yield from _with_partners(name, host, hosts, of, verdict.direction)


def _controls(planned: Iterable[Meeting], of: Reach) -> Iterator[Meeting]:
    """Two pairs of good hosts on each rail, both ways: one of them may be lucky. They are disjoint if there are four good hosts.

    If there is no pair of good hosts on any of these rails, those of another rail are measured.
    """
    rails = list(dict.fromkeys(meeting[0] for meeting in planned))
    pairs = {rail: _good_pairs(rail, of) for rail in dict.fromkeys((*rails, *of.good))}
    if rails and not any(pairs[rail] for rail in rails):
        rails = [rail for rail, good in pairs.items() if good][:1]
    for rail in rails:
        for pair in pairs[rail]:
            yield from ((rail, *pair), (rail, *pair[::-1]))


def _good_pairs(rail: str, of: Reach) -> list[tuple[str, str]]:
    good = of.good.get(rail, [])
    groups = ([each for each in good if not of.apart(rail, (host, each))] for host in good)
    hosts = next((group for group in groups if len(group) > 1), [])
    return [(pair[0], pair[1]) for pair in (hosts[:2], hosts[2:4] if len(hosts) > 3 else hosts[::2]) if len(pair) > 1]


def _once_more(planned: Collection[Meeting], verdicts: Iterable[Verdict], matrix: Matrix) -> list[Meeting]:
    """The meetings of accused pairs, and of accused ports that have one partner on their rail which has not failed in the sweep."""
    ports = {
        (None if verdict.rail is None else matrix.rails[verdict.rail], matrix.hosts[host]): verdict.failed and verdict.kind != "pair"
        for verdict in verdicts
        for host in (verdict.host, verdict.other)
        if host is not None
    }
    dead = {where for where, failed in ports.items() if failed}
    pairs = {
        frozenset((matrix.hosts[verdict.host], matrix.hosts[verdict.other]))
        for verdict in verdicts
        if verdict.host is not None and verdict.other is not None
    }
    partners: dict[tuple[str, str], set[str]] = {}
    for rail, *ends in planned:
        for one, other in (ends, ends[::-1]):
            if {(rail, one), (None, one)} & ports.keys():
                partners.setdefault((rail, one), set()).update(() if {(rail, other), (None, other)} & dead else {other})
    alone = {where for where, others in partners.items() if len(others) == 1}
    return [each for each in planned if frozenset(each[1:]) in pairs or {(each[0], host) for host in each[1:]} & alone]


def _of_path(verdict: Verdict, matrix: Matrix, of: Reach) -> Iterator[Meeting]:
    """The first of its own measurements, as they were: no other pair is known to go the same way."""
    named = ((matrix.rails[matrix.rail[at]], matrix.hosts[matrix.server[at]], matrix.hosts[matrix.client[at]]) for at in verdict.evidence)
    there = [each for each in named if {each[1], each[2]} <= set(of.available.get(each[0], []))]
    yield from there[:PARTNERS]


def _rails(rail: str | None, hosts: Collection[str], of: Reach) -> list[str]:
    """The rails on which all of the hosts are measured again: that of the verdict and another one; of a verdict on all rails all of them.

    Rails are measured side by side, so that many of them take no longer than two.
    """
    order = dict.fromkeys([*([] if rail is None else [rail]), *of.good, *of.available])
    found = [name for name in order if set(hosts) <= set(of.available.get(name, [])) and not of.apart(name, hosts)]
    return found if rail is None else found[:PARTNERS]


def _with_partners(rail: str, host: str, hosts: Sequence[str], of: Reach, direction: str | None) -> Iterator[Meeting]:
    """It receives from the first partner and sends to the second one, or to the only one; a suspect of one direction does that alone."""
    good, available = (
        [each for each in there if each not in hosts and not of.apart(rail, (host, each))]
        for there in (of.good.get(rail, []), of.available[rail])
    )
    partners = (good or available)[:PARTNERS]
    if direction != "sends":
        yield from ((rail, host, partner) for partner in (partners if direction else partners[:1]))
    if direction != "receives":
        yield from ((rail, partner, host) for partner in (partners if direction else partners[-1:]))


def rounds(planned: Iterable[Meeting], hosts: Sequence[str], rails: Sequence[str]) -> list[list[list[list[int]]]]:
    """The schedule of kind "meetings": rail → round → [server, client], positions in hosts; nobody twice in a round of a rail."""
    at = {host: position for position, host in enumerate(hosts)}
    table: dict[str, list[list[list[int]]]] = {rail: [] for rail in rails}
    for rail, server, client in planned:
        pair = [at[server], at[client]]
        free = (each for each in table[rail] if not {*pair} & {host for meeting in each for host in meeting})
        into = next(free, None)
        if into is None:
            table[rail].append(into := [])
        into.append(pair)
    return [table[rail] for rail in rails]
