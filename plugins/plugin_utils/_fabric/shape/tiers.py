# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The roles of switches: leaf, spine or core, by their hops from hosts. The plan overrides this."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterable, Mapping

from ansible_collections.rdma.cluster.plugins.module_utils._fabric.graph import Graph

TIERS = ("leaf", "spine", "core")
#: A switch with hosts counts as a spine if each of its neighbors, at least two, has this many times its hosts.
FEW = 2


def tiers(
    neighbors: Mapping[str, Iterable[str]], hosts: Mapping[str, int], names: Mapping[str, str], planned: Mapping[str, str]
) -> dict[str, str]:
    """Return the tier of each switch that is reachable from hosts.

    neighbors: switch → connected switches. hosts: switch → its cables to hosts. names: switch → its readable name. planned: switch → its
    tier in the plan. A switch without hosts three hops away is a core switch, unless it is named like the leaves: then it is a leaf that
    has lost its hosts. A spine may have a host or two, for example one with a subnet manager.
    """
    counts = {switch: hosts.get(switch, 0) for switch in neighbors}
    leaves = {
        switch
        for switch, count in counts.items()
        if planned.get(switch, "leaf") == "leaf" and count and not _is_spine(switch, counts, neighbors)
    }
    leaves |= {switch for switch, tier in planned.items() if tier == "leaf" and switch in neighbors}
    hops = hops_of(leaves, neighbors)
    leaves |= _without_hosts(hops, names)
    hops = hops_of(leaves, neighbors)
    found = {switch: TIERS[min(hop, len(TIERS) - 1)] for switch, hop in hops.items()}
    return {**found, **{switch: tier for switch, tier in planned.items() if switch in neighbors}}


def _is_spine(switch: str, counts: Mapping[str, int], neighbors: Mapping[str, Iterable[str]]) -> bool:
    beside = set(neighbors[switch])
    return len(beside) > 1 and all(counts.get(other, 0) >= FEW * counts[switch] for other in beside)


def hops_of(starts: Iterable[str], neighbors: Mapping[str, Iterable[str]]) -> dict[str, int]:
    """Return each switch reachable from `starts` → hops to the nearest of them, near ones first."""
    hops = dict.fromkeys(starts, 0)
    queue = deque(hops)
    while queue:
        switch = queue.popleft()
        for other in neighbors[switch]:
            if other not in hops:
                hops[other] = hops[switch] + 1
                queue.append(other)
    return hops


def _without_hosts(hops: Mapping[str, int], names: Mapping[str, str]) -> set[str]:
    """Return switches two hops above leaves whose names equal those of leaves, except for the number."""
    stems = {tier: Counter(_stem(names[switch]) for switch, hop in hops.items() if hop == tier) for tier in (0, 1)}
    far = [switch for switch, hop in hops.items() if hop == len(TIERS) - 1]
    return {switch for switch in far if (stem := _stem(names[switch])) and stems[0][stem] and not stems[1][stem]}


def _stem(name: str) -> str:
    return re.sub(r"[0-9]+", "", name) if not name.startswith("0x") else ""


HOSTS = ("host", "aggregation")


class Ways:
    """The connections between a graph's switches. Hop counts from a switch are cached."""

    def __init__(self, graph: Graph) -> None:
        self.beside: dict[str, set[str]] = {guid: set() for guid, node in graph.nodes.items() if node.kind not in HOSTS}
        self.leaves: set[str] = set()
        for link in graph.links:
            (one, _port), (other, _other_port) = link.a, link.b
            for here, there in ((one, other), (other, one)):
                if here in self.beside and there in self.beside:
                    self.beside[here].add(there)
                elif here in self.beside and there in graph.nodes and graph.nodes[there].kind == "host":
                    self.leaves.add(here)
        self._hops: dict[str, dict[str, int]] = {}

    def hops(self, start: str) -> dict[str, int]:
        """Return each switch reachable from `start` → its number of hops."""
        if start not in self._hops:
            self._hops[start] = hops_of([start], self.beside)
        return self._hops[start]

    def tiers_between(self, start: str, goal: str) -> list[list[str]]:
        """Return the switches on the shortest paths between two switches, without both.

        The lists have those one hop away, two hops away, …; [] without a path.
        """
        near, far = self.hops(start), self.hops(goal)
        length = near.get(goal, 0)
        tiers: list[list[str]] = [[] for _number in range(max(0, length - 1))]
        for guid, hops in near.items():
            if 0 < hops < length and hops + far.get(guid, length) == length:
                tiers[hops - 1].append(guid)
        return [sorted(tier) for tier in tiers]

    def tiers(self) -> list[list[str]]:
        """Return all switches by their hops from the hosts: leaves, spines, core; at the end those that no host can reach, if any."""
        hops = hops_of(sorted(self.leaves), self.beside)
        found: list[list[str]] = [[] for _number in range(max(hops.values(), default=-1) + 1)]
        for guid, number in hops.items():
            found[number].append(guid)
        lost = [guid for guid in self.beside if guid not in hops]
        return [sorted(tier) for tier in (*found, lost) if tier]
