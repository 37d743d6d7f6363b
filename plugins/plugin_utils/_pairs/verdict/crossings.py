# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The measurements that cross each element of the fabric, and the gain of calling one of several equal elements bad."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.matrix.matrix import Matrix

#: The minimum share of low crossings of an element between endpoints.
PATH_LOW = 0.8
SENDS, RECEIVES = 0, 1
#: The same for a group of elements, times the expected share of each member.
GROUP_LEAST = 0.5
#: The number of named elements, if the same measurements cross several: these count as one.
NAMED = 4


class Paths(Protocol):
    """The elements that a measurement crosses besides its two endpoints: leaves, spines, links, each with a unique name in the fabric."""

    def elements(self, rail: int, server: int, client: int) -> Iterable[str]:
        """Return the elements between two endpoints of a rail, by their positions in the matrix; empty if unknown."""

    def alternatives(self, element: str) -> int:
        """Return how many things an element stands for, of which each measurement crosses an unknown one: a group of spines; else 1."""


@dataclass(frozen=True)
class Crossing:
    """The number of measurements that cross an element, and the positions of the low ones.

    alternatives: see Paths. ends: of a group, (rail, host, direction) → the number that cross it.
    """

    total: int
    lows: Sequence[int]
    alternatives: int = 1
    ends: Mapping[tuple[int, int, int], int] = field(default_factory=dict)

    def rest(self, lows: Sequence[int]) -> int:
        """Return how many there are without the explained low ones. lows: the unexplained ones."""
        return self.total - len(self.lows) + len(lows)


def crossings(matrix: Matrix, lows: Mapping[int, float], paths: Paths) -> dict[str, Crossing]:
    """Return the elements that low measurements cross. Two elements crossed by the same low ones and as many in total are one."""
    total: Counter[str] = Counter()
    low: dict[str, list[int]] = defaultdict(list)
    often: Counter[tuple[tuple[str, ...], int, int, int]] = Counter()
    for at, (rail, server, client) in enumerate(zip(matrix.rail, matrix.server, matrix.client, strict=True)):
        elements = tuple(paths.elements(rail, server, client))
        often[elements, rail, client, SENDS] += 1
        often[elements, rail, server, RECEIVES] += 1
        for element in elements if at in lows else ():
            low[element].append(at)
    by_group: dict[str, Counter[tuple[int, int, int]]] = {element: Counter() for element in low if paths.alternatives(element) > 1}
    for (elements, rail, host, direction), number in often.items():
        for element in elements:
            total[element] += number if direction == RECEIVES else 0
            if element in by_group:
                by_group[element][rail, host, direction] += number
    alike: dict[tuple[int, ...], list[str]] = defaultdict(list)
    for element, own in low.items():
        alike[(total[element], paths.alternatives(element), *own)].append(element)
    return {
        _joined(names): Crossing(total[names[0]], low[names[0]], paths.alternatives(names[0]), by_group.get(names[0], {}))
        for names in alike.values()
    }


def _joined(names: Sequence[str]) -> str:
    more = f" or {len(names) - NAMED} more" if len(names) > NAMED else ""
    return " or ".join(sorted(names)[:NAMED]) + more


def one_of(crossing: Crossing, matrix: Matrix, weights: Mapping[int, float], lows: Sequence[int]) -> tuple[float, Sequence[int]]:
    """Return the gain of calling one of a group bad, before the price of naming it, and the low ones that it explains.

    lows: the unexplained ones. Either each measurement uses any of the group (by a hash), or all traffic to an endpoint uses the same one
    (by its LID). Then nearly all traffic to some endpoints is low, and the choice of these endpoints has a price.
    """
    n, least = crossing.rest(lows), GROUP_LEAST / crossing.alternatives
    if len(lows) < max(2, least * n):
        return -math.inf, ()
    hashed = sum(weights[at] for at in lows) + _likelihood(len(lows), n)
    routed = _routed(crossing, matrix, weights, lows, least)
    return max((hashed, tuple(lows)), routed)


def _routed(
    crossing: Crossing, matrix: Matrix, weights: Mapping[int, float], lows: Sequence[int], least: float
) -> tuple[float, tuple[int, ...]]:
    to: dict[tuple[int, int], list[int]] = defaultdict(list)
    gone = Counter((matrix.rail[at], matrix.server[at]) for at in crossing.lows)
    for at in lows:
        to[matrix.rail[at], matrix.server[at]].append(at)
    received = (((rail, host), number) for (rail, host, direction), number in crossing.ends.items() if direction == RECEIVES)
    left = {end: number - gone[end] + len(to.get(end, ())) for end, number in received}
    bad = {end: own for end, own in to.items() if len(own) >= PATH_LOW * left[end]}
    known = sum(1 for number in left.values() if number)
    if len(bad) < max(2, least * known):
        return -math.inf, ()
    gain = sum(sum(weights[at] for at in own) + _likelihood(len(own), left[end]) for end, own in bad.items())
    return gain + _likelihood(len(bad), known), tuple(at for own in bad.values() for at in own)


def _likelihood(k: int, n: int) -> float:
    """Return ln of the likelihood of k of n at their own share; 0 if all or none are."""
    return k * math.log(k / n) + (n - k) * math.log1p(-k / n) if 0 < k < n else 0.0
