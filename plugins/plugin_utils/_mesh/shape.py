# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The shape of a mesh: full, ring, line, star or another graph, its islands, and the hosts without a common cable."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.networkx import nx
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import natural

NONE, ISLANDS, FULL, RING, LINE, STAR, PARTIAL = "none", "islands", "full mesh", "ring", "line", "star", "partial mesh"
Pair = tuple[str, str]
"""Two hosts, the lower one first."""


@dataclass(frozen=True)
class Shape:
    """kind: one of the constants above. islands: groups of hosts that cables connect, the largest first.

    double: pairs with several cables → their number. apart: pairs on one island without a common cable.
    """

    kind: str
    islands: list[list[str]]
    double: dict[Pair, int]
    apart: list[Pair]

    @property
    def words(self) -> str:
        """ "ring of 4 hosts, with 2 cables between n1 and n2"."""
        hosts = sum(map(len, self.islands))
        words = f"{self.kind} of {hosts} hosts"
        if self.kind == NONE:
            words = f"{hosts} hosts without cables"
        elif self.kind == ISLANDS:
            words = f"{len(self.islands)} islands: {'; '.join(', '.join(island) for island in self.islands)}"
        return ", ".join([words, *(f"with {count} cables between {a} and {b}" for (a, b), count in self.double.items())])


def shape_of(hosts: Iterable[str], cables: Iterable[Pair]) -> Shape:
    """Return the shape. hosts: all of them, also those without a cable. cables: the two hosts of each, in any order."""
    ordered = sorted(hosts, key=_order)
    counts = Counter(_pair(*cable) for cable in cables)
    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from(ordered)
    graph.add_edges_from(counts)
    islands = [sorted(each, key=_order) for each in nx.connected_components(graph)]
    islands.sort(key=lambda island: (-len(island), [_order(host) for host in island]))
    double = {pair: count for pair, count in sorted(counts.items(), key=lambda item: [_order(host) for host in item[0]]) if count > 1}
    apart = [pair for island in islands for pair in itertools.combinations(island, 2) if not graph.has_edge(*pair)]
    return Shape(_kind(graph, islands), islands, double, apart)


def _order(host: str) -> tuple[list[tuple[str, int]], str]:
    return natural(host), host


def _pair(one: str, other: str) -> Pair:
    a, b = sorted((one, other), key=_order)
    return a, b


def _kind(graph: nx.Graph[str], islands: Sequence[Sequence[str]]) -> str:
    hosts, edges = graph.number_of_nodes(), graph.number_of_edges()
    if not edges:
        return NONE
    if len(islands) > 1:
        return ISLANDS
    degrees = sorted(degree for _host, degree in graph.degree())
    if edges == hosts * (hosts - 1) // 2:
        return FULL
    if degrees == [2] * hosts:
        return RING
    if edges == hosts - 1:
        return LINE if degrees[-1] == 2 else STAR if degrees[-1] == hosts - 1 else PARTIAL
    return PARTIAL
