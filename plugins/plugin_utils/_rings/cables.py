# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The load of each cable in each direction: the flows of hops, spread evenly over equal shortest paths."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.shape.tiers import hops_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.view import End, View
from ansible_collections.rdma.cluster.plugins.plugin_utils._rings.hops import Hop, Route, Unknown

#: A cable in one direction: the port that sends, and the port that receives.
Direction = tuple[End, End]


@dataclass
class PlaneLoad:
    """The load of one plane. flows: cable and direction → flows; crossings: route → switch above the leaves → flows through it.

    hops: the number of hops; away: the number of those between two leaves. Fractions come from equal paths, and are expected values.
    """

    flows: dict[Direction, Fraction] = field(default_factory=lambda: defaultdict(Fraction))
    crossings: dict[Route, dict[str, Fraction]] = field(default_factory=dict)
    hops: int = 0
    away: int = 0


@dataclass(frozen=True)
class Busiest:
    """The busiest cable between switches. mean: of all loaded ones, each direction counted by itself; loaded: their number."""

    direction: Direction
    flows: Fraction
    mean: Fraction
    loaded: int

    @property
    def imbalance(self) -> float:
        """The busiest cable's load as a multiple of the mean."""
        return float(self.flows / self.mean)


class Paths:
    """The equal shortest paths between the switches of a plane. Hosts and routers forward nothing."""

    def __init__(self, view: View) -> None:
        self.view = view
        self._cables: dict[str, list[Direction]] = defaultdict(list)
        for link in view.links:
            if view.is_switch(link.a[0]) and view.is_switch(link.b[0]):
                self._cables[link.a[0]].append((link.a, link.b))
                self._cables[link.b[0]].append((link.b, link.a))
        self._neighbors = {guid: sorted({there[0] for _here, there in self._cables[guid]}) for guid in view.switches}
        self._distances: dict[str, dict[str, int]] = {}
        self._shares: dict[tuple[str, str], dict[Direction, Fraction] | None] = {}

    def shares(self, source: str, target: str) -> dict[Direction, Fraction] | None:
        """Return cable and direction → its share of a flow between two switches, None without a path.

        Each switch spreads over all its cables on shortest paths, as ECMP does on average. Parallel cables are several paths.
        """
        pair = source, target
        if pair not in self._shares:
            self._shares[pair] = self._spread(source, target)
        return self._shares[pair]

    def _spread(self, source: str, target: str) -> dict[Direction, Fraction] | None:
        if target not in self._distances:
            self._distances[target] = hops_of([target], self._neighbors)
        distance = self._distances[target]
        if source not in distance:
            return None
        found: dict[Direction, Fraction] = {}
        at = {source: Fraction(1)}
        for left in range(distance[source], 0, -1):
            after: dict[str, Fraction] = defaultdict(Fraction)
            for switch, share in at.items():
                cables = [each for each in self._cables[switch] if distance.get(each[1][0]) == left - 1]
                for each in cables:
                    found[each] = share / len(cables)
                    after[each[1][0]] += share / len(cables)
            at = after
        return found


def loads(hops: Iterable[Hop], paths: Mapping[str, Paths]) -> tuple[dict[str, PlaneLoad], list[Unknown]]:
    """Return plane → its load, and the hops without a path. paths: by plane."""
    found: dict[str, PlaneLoad] = {}
    unknown: list[Unknown] = []
    # Many channels have the same hops.
    for hop, count in Counter(hops).items():
        plane, route = hop.source.plane, hop.route
        leaf, far = hop.source.switch_end[0], hop.target.switch_end[0]
        shares = paths[plane].shares(leaf, far)
        if shares is None:
            why = f"the graph of plane {plane} has no path from {paths[plane].view.name(leaf)} to {paths[plane].view.name(far)}"
            unknown.append(Unknown(f"{route.words}, {hop.source.host} to {hop.target.host}", why))
            continue
        load = found.setdefault(plane, PlaneLoad())
        load.hops += count
        load.away += count if leaf != far else 0
        load.flows[hop.source.end, hop.source.switch_end] += count
        load.flows[hop.target.switch_end, hop.target.end] += count
        crossed = load.crossings.setdefault(route, {})
        for (here, there), share in shares.items():
            load.flows[here, there] += count * share
            if there[0] != far:
                crossed[there[0]] = crossed.get(there[0], Fraction(0)) + count * share
    return found, unknown


def busiest(load: PlaneLoad, view: View) -> Busiest | None:
    """Return the busiest cable between switches, None if no flow leaves its leaf."""
    between = {direction: flows for direction, flows in load.flows.items() if all(view.is_switch(end[0]) for end in direction)}
    if not between:
        return None
    worst = min(between, key=lambda direction: (-between[direction], view.name(direction[0][0]), direction))
    return Busiest(worst, between[worst], sum(between.values(), Fraction(0)) / len(between), len(between))
