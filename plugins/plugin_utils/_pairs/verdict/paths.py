# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The elements that a measurement crosses, from the fabric's graph: leaves, their uplinks, spines and cables, as crossings.Paths.

Only forwarding tables show which of several spines a path uses. Without them the spines of a path are one element with a known number of
members; blame.py decides whether one bad member explains the measurements.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache

from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import first_of
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.graph import Graph
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.shape.tiers import Ways
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import natural

#: A port of a node: its GUID and port number.
End = tuple[str, int]
#: Forwarding tables: switch GUID → destination LID → output port.
Routes = Mapping[str, Mapping[int, int]]
#: More hops than these are a loop in the forwarding tables.
MOST_HOPS = 16
#: The number of named members of a group.
NAMED = 4


class FabricPaths:
    """ends[rail][host]: the port of the HCA, by the positions of a matrix, None if it is not in the graph."""

    def __init__(
        self, graph: Graph, ends: Sequence[Sequence[End | None]], routes: Routes | None = None, *, bidirectional: bool = False
    ) -> None:
        self.graph, self.ends, self.routes, self.bidirectional = graph, ends, routes or {}, bidirectional
        self._names = switch_names(graph)
        self._ways = Ways(graph)
        self._groups: dict[str, list[str]] = {}
        self._leaf = [[None if end is None else graph.peer(*end) for end in of] for of in ends]
        self._between = cache(self._tiers)

    def elements(self, rail: int, server: int, client: int) -> tuple[str, ...]:
        """Return the elements between two endpoints of a rail; data flows from client to server. Empty if one is not in the graph."""
        sends, receives = self._leaf[rail][client], self._leaf[rail][server]
        if sends is None or receives is None:
            return ()
        leaves = (self._names[sends[0]],) if sends[0] == receives[0] else (self._names[sends[0]], self._names[receives[0]])
        if len(leaves) == 1:
            return leaves
        ways = self._way(rail, sends[0], receives[0], server)
        if self.bidirectional:
            ways = tuple(dict.fromkeys((*ways, *self._way(rail, receives[0], sends[0], client))))
        return (*leaves, *(f"uplinks of {leaf}" for leaf in leaves), *ways)

    def alternatives(self, element: str) -> int:
        """Return how many switches an element stands for, of which each measurement crosses an unknown one; 1 for any other element."""
        return len(self._groups.get(element, (element,)))

    def _way(self, rail: int, start: str, goal: str, host: int) -> tuple[str, ...]:
        """Return the elements between two leaves on the path to a host: by the tables, else by what is possible."""
        routed = self._routed(start, goal, self._lid(self.ends[rail][host])) if self.routes else None
        return self._between(start, goal) if routed is None else routed

    def _lid(self, end: End | None) -> int | None:
        node = self.graph.nodes.get(end[0]) if end is not None else None
        port = node.ports.get(end[1]) if node is not None and end is not None else None
        return None if port is None else port.lid

    def _routed(self, start: str, goal: str, lid: int | None) -> tuple[str, ...] | None:
        """Return switches and cables by the tables; None if they do not lead there."""
        found: list[str] = []
        at = start
        for _hop in range(MOST_HOPS):
            out = self.routes.get(at, {}).get(lid) if lid is not None else None
            arrived = None if out is None else self.graph.peer(at, out)
            if out is None or arrived is None or arrived[0] not in self.routes:
                return None
            found.append(self._cable((at, out), arrived))
            if arrived[0] == goal:
                return tuple(found)
            at = arrived[0]
            found.append(self._names[at])
        return None

    def _cable(self, one: End, other: End) -> str:
        first, second = sorted(f"{self._names[guid]}/{port}" for guid, port in (one, other))
        return f"cable {first} to {second}"

    def _tiers(self, start: str, goal: str) -> tuple[str, ...]:
        return tuple(self._group(tier) for tier in self._ways.tiers_between(start, goal))

    def _group(self, switches: Sequence[str]) -> str:
        """Return a unique name for a tier of a path, with its number of switches."""
        names = sorted((self._names[guid] for guid in switches), key=natural)
        if len(names) == 1:
            return names[0]
        name = f"one of {first_of(names, NAMED)}"
        if self._groups.setdefault(name, names) != names:
            name = f"one of {', '.join(names)}"
            self._groups[name] = names
        return name


def switch_names(graph: Graph) -> dict[str, str]:
    """Return GUID → a unique name."""
    often = Counter(node.name for node in graph.nodes.values() if node.kind == "switch")
    return {guid: node.name if often[node.name] == 1 else f"{node.name} ({guid})" for guid, node in graph.nodes.items()}
