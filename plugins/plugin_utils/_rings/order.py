# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The order of hosts in which a ring leaves its leaf as seldom as possible."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median_low


@dataclass(frozen=True)
class Order:
    """before, after: all hosts. moved: the hosts to move, "out of order"; crossings: at each level, leaves first, before and after.

    unplaced: hosts without a leaf in the graph; they are last in `after`, and count for no crossing.
    """

    before: tuple[str, ...]
    after: tuple[str, ...]
    moved: tuple[str, ...]
    crossings: tuple[tuple[int, int], ...]
    unplaced: tuple[str, ...] = ()

    @property
    def better(self) -> bool:
        """Whether the new order has fewer crossings."""
        return self.before != self.after


def crossings(order: Sequence[str], above: Mapping[str, Sequence[str]], level: int) -> int:
    """Return how often a ring over these hosts changes the element of a level: 0 is the leaf. above: host → its elements, leaf first.

    A host whose branch of the tree has no such level counts with its highest element.
    """
    elements = [above[host][min(level, len(above[host]) - 1)] for host in order if host in above]
    return sum(one != other for one, other in zip(elements, elements[1:] + elements[:1], strict=True))


def best_order(before: Sequence[str], above: Mapping[str, Sequence[str]]) -> Order:
    """Return the order with the fewest crossings at every level: the hosts of one leaf together, and the leaves of one spine group.

    A ring over hosts of k leaves has at least k crossings if k is more than 1, and 0 otherwise. With the hosts of each leaf together it
    has exactly these. The same holds for each higher level of a tree, so one order reaches all these limits. Leaves keep the order of their
    hosts' median places. If the present order reaches the limits, it is kept.
    """
    unplaced = tuple(host for host in before if host not in above)
    placed = [host for host in before if host in above]
    levels = range(max((len(above[host]) for host in placed), default=0))
    after = _together(placed, above)
    old, new = ([crossings(order, above, level) for level in levels] for order in (placed, after))
    if old == new:
        return Order(tuple(before), tuple(before), (), tuple(zip(old, new, strict=True)), unplaced)
    kept = _kept(placed, after, above)
    moved = tuple(host for host in placed if host not in kept)
    return Order(tuple(before), (*after, *unplaced), moved, tuple(zip(old, new, strict=True)), unplaced)


def _together(placed: Sequence[str], above: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the hosts sorted by the elements above them, the highest first, each element at the median place of its hosts."""
    places: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for place, host in enumerate(placed):
        branch = tuple(reversed(above[host]))
        for level in range(1, len(branch) + 1):
            places[branch[:level]].append(place)

    def key(host: str) -> list[tuple[int, str]]:
        branch = tuple(reversed(above[host]))
        return [(median_low(places[branch[:level]]), branch[level - 1]) for level in range(1, len(branch) + 1)]

    return sorted(placed, key=key)


#: The number of kept hosts, those at a place of their leaf, and the last host.
_Kept = tuple[int, int, str | None]


def _kept(before: Sequence[str], after: Sequence[str], above: Mapping[str, Sequence[str]]) -> set[str]:
    """Return the most hosts that have the same sequence in both orders; of several such sets, one with the most at places of their leaf.

    It is the heaviest increasing subsequence of the new places, by a tree of prefix maxima.
    """
    place = {host: at for at, host in enumerate(after, start=1)}
    leaf_at = [above[host][0] for host in after]
    previous: dict[str, str | None] = {}
    best: list[_Kept] = [(0, 0, None)] * (len(after) + 1)
    for now, host in enumerate(before):
        count, at_home, previous[host] = _maximum(best, place[host] - 1)
        found = count + 1, at_home + (leaf_at[now] == above[host][0]), host
        at = place[host]
        while at <= len(after):
            best[at] = max(best[at], found, key=lambda each: each[:2])
            at += at & -at
    kept: set[str] = set()
    host_or_none = _maximum(best, len(after))[2]
    while host_or_none is not None:
        kept.add(host_or_none)
        host_or_none = previous[host_or_none]
    return kept


def _maximum(best: Sequence[_Kept], at: int) -> _Kept:
    """Return the maximum of all places up to this one."""
    found: _Kept = (0, 0, None)
    while at:
        found = max(found, best[at], key=lambda each: each[:2])
        at -= at & -at
    return found
