# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The re-measurement before the gate fails: each suspect with two good partners, on its rail and on another one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.matrix.matrix import Matrix
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.verdict.verdict import Verdict

PARTNERS = 2
#: With more suspects the fault is not that of single ones, and a re-measurement would be a full sweep.
MOST = 32

#: (rail, server, client): names.
Meeting = tuple[str, str, str]


class Measured(Protocol):
    """The ports of a sweep: provided by a matrix, and by the record of its verdicts."""

    @property
    def hosts(self) -> Sequence[str]:
        """The host names by position."""

    @property
    def rails(self) -> Sequence[str]:
        """The rail names by position."""

    def endpoints(self) -> Iterable[tuple[int, int]]:
        """Return (rail, host) of every measured port."""


@dataclass(frozen=True)
class Reach:
    """The available hosts: rail → hosts that may be re-measured. good: rail → hosts without a verdict.

    partitions: (rail, host) → the partition of its port. Ports of different partitions cannot reach each other.
    """

    available: dict[str, list[str]]
    good: dict[str, list[str]]
    partitions: Mapping[tuple[str, str], int | None] = field(default_factory=dict)

    def apart(self, rail: str, hosts: Iterable[str]) -> bool:
        """Return whether hosts are in different partitions on a rail."""
        return len({self.partitions.get((rail, host)) for host in hosts}) > 1


def reach(
    measured: Measured, verdicts: Iterable[Verdict], available: Collection[str], partitions: Mapping[tuple[str, str], int | None]
) -> Reach:
    """Return the reach. available: hosts that may be re-measured. partitions: as in Reach."""
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
    """Return each suspect with PARTNERS good partners, on its rail and on another; none if there are more than MOST suspects.

    controls: for devices that scatter. Then every pair is measured in both directions, and meetings with only two measurements get four.
    Two pairs of good hosts on each of these rails are measured for comparison.
    """
    if len(verdicts) > MOST:
        return []
    planned = dict.fromkeys(meeting for verdict in verdicts for meeting in _of(verdict, matrix, of))
    more: list[Meeting] = []
    if controls:
        planned.update(dict.fromkeys((rail, client, server) for rail, server, client in list(planned)))
        planned.update(dict.fromkeys(_controls(list(planned), of)))
        more = _once_more(planned, verdicts, matrix)
    # The matrix has receiver and sender; in a read, the client receives.
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
    """Yield two pairs of good hosts on each rail, both ways, because a single pair may be lucky; disjoint with four good hosts.

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
    """Return the meetings of accused pairs, and of accused ports with only one partner on their rail that has not failed in the sweep."""
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
    """Yield the first of its own measurements unchanged: no other pair is known to use the same path."""
    named = ((matrix.rails[matrix.rail[at]], matrix.hosts[matrix.server[at]], matrix.hosts[matrix.client[at]]) for at in verdict.evidence)
    there = [each for each in named if {each[1], each[2]} <= set(of.available.get(each[0], []))]
    yield from there[:PARTNERS]


def _rails(rail: str | None, hosts: Collection[str], of: Reach) -> list[str]:
    """Return the rails for re-measuring all of the hosts: that of the verdict and another one; for a verdict on all rails, all.

    Rails are measured at the same time, so many of them take no longer than two.
    """
    order = dict.fromkeys([*([] if rail is None else [rail]), *of.good, *of.available])
    found = [name for name in order if set(hosts) <= set(of.available.get(name, [])) and not of.apart(name, hosts)]
    return found if rail is None else found[:PARTNERS]


def _with_partners(rail: str, host: str, hosts: Sequence[str], of: Reach, direction: str | None) -> Iterator[Meeting]:
    """Yield meetings in which the host receives from the first partner and sends to the second (or only) one; or one direction."""
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
    """Return the schedule of kind "meetings": rail → round → [server, client], positions in hosts; no host twice in a round of a rail."""
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
