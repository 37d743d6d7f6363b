# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ways through the switches of a fabric's graph, and the tiers that they make."""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.module_utils._fabric_graph import Graph
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric_tiers import hops_of

HOSTS = ("host", "aggregation")


class Ways:
    """Which switches a graph's switches are joined to. Hops are counted from a switch and kept."""

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
        """Each switch that can be reached from one → how many hops away it is."""
        if start not in self._hops:
            self._hops[start] = hops_of([start], self.beside)
        return self._hops[start]

    def tiers_between(self, start: str, goal: str) -> list[list[str]]:
        """The switches on the shortest ways between two, without both: those one hop away, two hops away, …; [] if there is no way."""
        near, far = self.hops(start), self.hops(goal)
        length = near.get(goal, 0)
        tiers: list[list[str]] = [[] for _number in range(max(0, length - 1))]
        for guid, hops in near.items():
            if 0 < hops < length and hops + far.get(guid, length) == length:
                tiers[hops - 1].append(guid)
        return [sorted(tier) for tier in tiers]

    def tiers(self) -> list[list[str]]:
        """All switches by their hops from the hosts: leaves, spines, core; last those that no host can reach, if there are any."""
        hops = hops_of(sorted(self.leaves), self.beside)
        found: list[list[str]] = [[] for _number in range(max(hops.values(), default=-1) + 1)]
        for guid, number in hops.items():
            found[number].append(guid)
        lost = [guid for guid in self.beside if guid not in hops]
        return [sorted(tier) for tier in (*found, lost) if tier]
