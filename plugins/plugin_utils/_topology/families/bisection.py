# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The exact bisection of a plane, also after failures.

The bisection is the least maximum flow from one half of the NICs to the other, over all halves. A maximum flow is a minimum cut, so it is
the least cut over all halves and all sets X of leaves on the sending side. A cut consists of cables of NICs and of T cables between
switches:

    bisection = min over X of  nic_gbps × |NICs in X - half|  +  link_gbps × max(0, T(X) - failed links)

T(X) is a sum over the columns of the layout. In a column the spines and cores are placed on the better side. Only the numbers of leaves
of each size in X count, in each pod. T is concave in them, so at most one full pod has leaves on both sides. A failed switch removes its
cables from T.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.families.layout import CORE, DIRECT, Layout


@dataclass(frozen=True)
class Sizes:
    """The leaves of a plane by size: full leaves, and in the last pod also leaves of the last group and one leaf without one of its NICs.

    full, part, odd: NICs of such a leaf. pods: full pods, of pod_leaves full leaves each. last: number of full, part and odd leaves in the
    last pod.
    """

    full: int
    part: int
    odd: int
    pods: int
    pod_leaves: int
    last: tuple[int, int, int]

    @property
    def nics(self) -> int:
        """Return the NICs of the plane."""
        full, part, odd = self.last
        return self.full * (self.pods * self.pod_leaves + full) + self.part * part + self.odd * odd


def sizes(layout: Layout, lost: str = "") -> Sizes:
    """Return the leaves by size. lost: "leaf" or "nic" for one that has failed, in the last pod."""
    groups, rest = divmod(layout.hosts, layout.per_leaf)
    wide = layout.rails if layout.spread else 1
    parts = wide if rest else 0
    part = rest * (1 if layout.spread else layout.rails)
    pod_leaves = layout.pod_leaves if layout.spines else layout.leaves
    pods, fulls = divmod(groups * wide, pod_leaves)
    if lost and not fulls and not parts:
        pods, fulls = pods - 1, pod_leaves
    odd = 0
    if lost:
        odd = (part if parts else layout.down) - 1 if lost == "nic" else 0
        fulls, parts = (fulls - 1, parts) if not parts or (fulls and lost == "leaf") else (fulls, parts - 1)
    return Sizes(layout.down, part, odd, pods, pod_leaves, (fulls, parts, 1 if odd else 0))


def bisection(
    layout: Layout, dead: int = 0, failed_links: int = 0, *, tiers: Collection[str] = ("spine", "core"), lost: str = "", enough: float = 0
) -> float:
    """Return the bisection in Gb/s after the worst `dead` switches of these tiers and `failed_links` cables between switches fail.

    lost: "leaf" or "nic" for one that has also failed; its NICs do not count. enough: below this value, the result may be higher than the
    bisection.
    """
    by_size = sizes(layout, lost)
    half = by_size.nics // 2
    best = half * layout.nic_gbps
    if not layout.spines:
        return best
    for inside, pods in _sides(by_size, every=failed_links > 0):
        cut = layout.nic_gbps * abs(inside - half)
        if cut < best:
            trunks = _least_trunks(layout, pods, dead, tiers)
            best = min(best, cut + layout.link_gbps * max(0, trunks - failed_links))
            if best < enough:
                break
    return best


#: The pods of one kind: (number, leaves on the sending side, leaves on the other side).
_Pods = tuple[tuple[int, int, int], ...]


def _sides(by_size: Sizes, *, every: bool) -> Iterator[tuple[int, _Pods]]:
    """Yield (NICs in X, pods by kind) for each set X of leaves that may be the least cut.

    every: for all numbers of full pods in X. Without failed links, the cut is concave in this number on both sides of one half of the NICs,
    so it is least for none, for all, or next to one half.
    """
    size, last, half = by_size.pod_leaves, sum(by_size.last), by_size.nics // 2
    pod = by_size.full * size
    ends = [
        (by_size.full * full + by_size.part * part + by_size.odd * odd, full + part + odd)
        for full, part, odd in product(*(range(number + 1) for number in by_size.last))
    ]
    for leaves, (nics, sending) in product(range(size if by_size.pods else 1), ends):
        most = by_size.pods - (1 if leaves else 0)
        rest = by_size.full * leaves + nics
        near = (half - rest) // pod
        for wholes in range(most + 1) if every else sorted({0, most, *(number for number in (near, near + 1) if 0 <= number <= most)}):
            kinds = [(wholes, size, 0), (most - wholes, 0, size), (1 if leaves else 0, leaves, size - leaves), (1, sending, last - sending)]
            yield rest + pod * wholes, tuple(kind for kind in kinds if kind[0] and kind[1] + kind[2])


def _least_trunks(layout: Layout, pods: _Pods, dead: int, tiers: Collection[str]) -> int:
    """Return the least number of cables between switches in a cut, after the worst `dead` switches failed."""
    options = _column_options(layout, pods, dead, tiers)
    best = {0: 0}
    # The columns are equal. At most `dead` of them have failures.
    touched = min(dead, layout.spines)
    for _column in range(touched):
        step: dict[int, int] = {}
        for (used, value), (more, column) in product(best.items(), options.items()):
            if used + more <= dead:
                step[used + more] = min(step.get(used + more, value + column), value + column)
        best = step
    return min(best.values()) + (layout.spines - touched) * options[0]


def _column_options(layout: Layout, pods: _Pods, dead: int, tiers: Collection[str]) -> dict[int, int]:
    """Return failed switches in a column → the least number of cables of the column in a cut."""
    found: dict[int, int] = {}
    cores = min(dead, layout.cores) if layout.reach == CORE and "core" in tiers else 0
    spines = min(dead, sum(count for count, _inside, _outside in pods)) if "spine" in tiers else 0
    for lower, upper in product(range(spines + 1), range(cores + 1)):
        if lower + upper <= dead:
            value = _column(layout, pods, lower, upper)
            found[lower + upper] = min(found.get(lower + upper, value), value)
    return found


def _column(layout: Layout, pods: _Pods, spines: int, cores: int) -> int:
    """Return the least cables of one column in a cut if `spines` spines (the worst ones) and `cores` cores of it have failed."""
    if layout.reach == DIRECT:
        return _direct_column(layout, pods, spines)
    if layout.reach != CORE:
        _count, inside, outside = pods[0]
        return 0 if spines else min(inside, outside) * layout.links
    up = layout.core_links * (layout.cores - cores)
    least = []
    # The cores are all on one side: a spine on the other side costs its uplinks, a spine on their side its leaves across.
    for far in (1, 2):
        costs = [(min(kind[far] * layout.links, kind[3 - far] * layout.links + up), kind[0]) for kind in pods]
        least.append(_without_largest(costs, spines))
    return min(least)


def _without_largest(costs: Sequence[tuple[int, int]], removed: int) -> int:
    """Return the sum of (value, count) without the `removed` largest values."""
    total = 0
    for value, count in sorted(costs, reverse=True):
        gone = min(removed, count)
        removed -= gone
        total += value * (count - gone)
    return total


def _direct_column(layout: Layout, pods: _Pods, spines: int) -> int:
    """The same for spines that are joined directly. Over all choices of failed spines, and of the side of each spine."""
    kinds = [(count, inside * layout.links, outside * layout.links) for count, inside, outside in pods]
    best: int | None = None
    for gone in product(*(range(min(spines, count) + 1) for count, _in, _out in kinds)):
        if sum(gone) != min(spines, sum(count for count, _in, _out in kinds)):
            continue
        left = [count - less for (count, _in, _out), less in zip(kinds, gone, strict=True)]
        number = sum(left)
        # Within a kind the cost is concave in the number of spines on the sending side, so all of a kind are on one side.
        for side in product(*((0, count) if count else (0,) for count in left)):
            sending = sum(side)
            cost = sending * (number - sending) * layout.core_links
            cost += sum(
                chosen * outside + (count - chosen) * inside
                for chosen, count, (_count, inside, outside) in zip(side, left, kinds, strict=True)
            )
            best = cost if best is None else min(best, cost)
    return best or 0
