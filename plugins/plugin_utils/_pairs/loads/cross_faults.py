# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What explains slow pairs across rails: paths between leaves or rails, not the ports, which are healthy on their own rails."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

#: A place explains slow pairs if at least this share of its pairs is slow, and at least so many of them; else each pair is named alone.
LEAST_SHARE, FEWEST = 0.8, 2
#: More slow pairs than this that no place explains are one fault: a spine, which a hash selects for some pairs of every place.
MOST_ALONE = 4
#: Beside them, a place is named only if fewer places than this are expected to have so many slow pairs by chance.
MOST_CHANCE = 0.01
#: The kinds of places, the narrowest first: it is named if both explain the same pairs.
KINDS = ("leaves", "port", "rails", "from", "to", "host", "all")


@dataclass(frozen=True)
class CrossEnd:
    """A port of a measured pair. leaf: the name of its switch, None if unknown."""

    host: str
    rail: str
    leaf: str | None = None

    def __str__(self) -> str:
        return f"{self.host} {self.rail}"


@dataclass(frozen=True)
class CrossResult:
    """One pair. share: of what both ports reach on their own rails; 0 if it failed. why: the kind of its failure, "" if it did not."""

    sends: CrossEnd
    receives: CrossEnd
    share: float
    why: str = ""

    @property
    def places(self) -> Iterator[tuple[str, ...]]:
        """Yield the places that it crosses, each as (kind, names…)."""
        if self.sends.leaf is not None and self.receives.leaf is not None:
            yield "leaves", self.sends.leaf, self.receives.leaf
            yield "from", self.sends.leaf
            yield "to", self.receives.leaf
        yield "rails", self.sends.rail, self.receives.rail
        for end in (self.sends, self.receives):
            yield "port", end.host, end.rail
            yield "host", end.host
        yield ("all",)


@dataclass(frozen=True)
class CrossFault:
    """What explains slow pairs. place: (kind, names…); the kind "pair" is one that nothing else explains,
    and "spread" are many such pairs. shares: of these pairs."""

    place: tuple[str, ...]
    slow: Sequence[CrossResult]
    pairs: int

    @property
    def share(self) -> float:
        """The median share of the slow pairs."""
        return statistics.median(each.share for each in self.slow)


def cross_faults(results: Sequence[CrossResult], fail_below: float) -> list[CrossFault]:
    """Return the fewest places that explain the pairs below this share, the one with the most slow pairs first.

    A place is a leaf's uplinks in one direction, the way from one leaf to another, from one rail to another, of one port or of a host, or
    all of them. A port or host here means its route or its way to other rails: only ports that are healthy on their own rail take part.
    """
    of: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for number, each in enumerate(results):
        for place in each.places:
            of[place].append(number)
    slow = {number for number, each in enumerate(results) if each.share < fail_below}
    bad = {place: sum(number in slow for number in numbers) for place, numbers in of.items()}
    of = {place: numbers for place, numbers in of.items() if bad[place] >= max(FEWEST, LEAST_SHARE * len(numbers))}
    found = []
    while slow and (best := _best(of, slow, bad)) is not None:
        found.append(CrossFault(best, [results[number] for number in of[best] if number in slow], len(of[best])))
        slow -= set(of[best])
    alone = [results[number] for number in sorted(slow)]
    if len(alone) > MOST_ALONE:
        chance = len(alone) / len(results)
        sure = [each for each in found if len(bad) * _by_chance(each, chance) < MOST_CHANCE]
        small = [one for each in found if each not in sure for one in each.slow]
        return [*sure, CrossFault(("spread",), [*small, *alone], len(results))]
    return [*found, *(CrossFault(("pair", str(each.sends), str(each.receives)), [each], 1) for each in alone)]


def _by_chance(fault: CrossFault, chance: float) -> float:
    """Return at most how probable it is that so many pairs of a place are slow, if each pair is slow with this chance."""
    return math.comb(fault.pairs, len(fault.slow)) * chance ** len(fault.slow)


def _best(of: Mapping[tuple[str, ...], Sequence[int]], slow: set[int], bad: Mapping[tuple[str, ...], int]) -> tuple[str, ...] | None:
    """Return the place that explains the most slow pairs, among equal ones the narrowest; None if none does.

    bad: the number of slow pairs of each place at first.
    """
    best: tuple[tuple[int, float, int], tuple[str, ...]] | None = None
    for place, numbers in of.items():
        count = sum(number in slow for number in numbers)
        rank = (count, bad[place] / len(numbers), -KINDS.index(place[0]))
        if count >= FEWEST and (best is None or rank > best[0]):
            best = rank, place
    return None if best is None else best[1]
