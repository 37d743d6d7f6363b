# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The fabric as if all reported faults were fixed. A fault that remains has a cause of its own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.cabling.wanted import Wanted
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.view import End, View, tiers_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import natural

TIERS = ("leaf", "spine", "core")


@dataclass(frozen=True)
class Shape:
    """Switches, and the bandwidth between them. Switches have readable names; rates are in Gb/s.

    joined: switch → other switch → rates of the cables. hosts: leaf → rates of the cables to its hosts. known: whether all rates are known.
    """

    tier: Mapping[str, str]
    joined: Mapping[str, Mapping[str, tuple[float, ...]]]
    hosts: Mapping[str, tuple[float, ...]]
    known: bool

    def of_tier(self, tier: str) -> list[str]:
        return sorted((switch for switch, its in self.tier.items() if its == tier), key=natural)

    def above(self, switch: str) -> list[str]:
        """Return the connected switches of the next tier."""
        return self._above.get(switch, [])

    def below(self, switch: str) -> list[str]:
        return self._below.get(switch, [])

    @cached_property
    def _above(self) -> dict[str, list[str]]:
        return {switch: self._beside(switch, 1) for switch in self.tier}

    @cached_property
    def _below(self) -> dict[str, list[str]]:
        return {switch: self._beside(switch, -1) for switch in self.tier}

    @cached_property
    def _order(self) -> dict[str, int]:
        return {switch: at for at, switch in enumerate(sorted(self.tier, key=natural))}

    def _beside(self, switch: str, step: int) -> list[str]:
        wanted = TIERS.index(self.tier[switch]) + step
        others = self.joined.get(switch, {})
        return sorted(
            (other for other in others if other in self.tier and TIERS.index(self.tier[other]) == wanted), key=self._order.__getitem__
        )

    def gbps(self, switch: str, others: Iterable[str]) -> float:
        return sum(sum(self.joined.get(switch, {}).get(other, ())) for other in others)


def shape(view: View, wanted: Wanted | None = None, slow: Collection[End] = (), odd: Collection[End] = ()) -> Shape:
    """Return the fabric as found. With wanted cables: as if all of them existed, plus found cables without a wanted end.

    slow: ends of links reported as slow, which count at the rate of similar links. odd: ends of links reported as misplaced, which do not
    count.
    """
    planned = wanted.peers if wanted is not None else {}
    peers = {**{a: b for a, b in view.peers.items() if not ({a, b} & planned.keys() or a in odd or b in odd)}, **planned}
    others = {} if wanted is None else {guid: wanted.names[guid] for guid in wanted.switches if guid not in view.nodes}
    tier = tiers_of(peers.items(), view, others)
    reader = _Rates(view, tier, slow)
    joined: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    hosts: dict[str, list[float]] = defaultdict(list)
    name = {**others, **{guid: view.name(guid) for guid in view.switches}}
    for (guid, number), there in sorted(peers.items()):
        if guid not in name:
            continue
        gbps = reader.gbps((guid, number), there)
        if there[0] in name:
            joined[name[guid]][name[there[0]]].append(gbps)
        elif there[0] not in view.nodes or view.is_host(there[0]):
            hosts[name[guid]].append(gbps)
    return Shape(
        {name[guid]: its for guid, its in tier.items()},
        {switch: {other: tuple(sorted(rates)) for other, rates in found.items()} for switch, found in joined.items()},
        {switch: tuple(sorted(rates)) for switch, rates in hosts.items()},
        reader.known,
    )


class _Rates:
    """Rates of cables. A missing or slow cable has the rate of similar ones."""

    def __init__(self, view: View, tier: Mapping[str, str], slow: Collection[End]) -> None:
        self.view, self.tier, self.slow = view, tier, slow
        self.known = True
        self.usual = view.usual_gbps

    def gbps(self, here: End, there: End) -> float:
        kind = tuple(sorted(self._side(end) for end in (here, there)))
        link = self.view.link_at.get(here)
        rate = link.rate_gbps if link is not None else None
        right = self.view.peers.get(here) == there and here not in self.slow
        gbps = rate if right and rate is not None else self.usual.get(kind, rate)
        if gbps is None:
            self.known = False
        return gbps or 0.0

    def _side(self, end: End) -> str:
        return self.tier.get(end[0], "host" if not self.view.is_switch(end[0]) else "switch")


def matrix(shape: Shape, lower: str) -> Iterator[tuple[list[str], list[str]]]:
    """Yield the groups of connected switches of a tier and the next one; for "leaf": leaves and their spines."""
    left = set(shape.of_tier(lower))
    while left:
        rows, columns, at = set(), set(), [min(left, key=natural)]
        while at:
            row = at.pop()
            if row in rows:
                continue
            rows.add(row)
            for column in shape.above(row):
                if column not in columns:
                    columns.add(column)
                    at += shape.below(column)
        left -= rows
        yield sorted(rows, key=natural), sorted(columns, key=natural)
