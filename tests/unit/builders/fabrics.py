# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fabrics of any size, and what can be wrong with them. They are generated: no capture of a real one."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._fabric.graph import Graph, Link, Node, Port, Twin
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.view import Expected

End = tuple[str, int]


@dataclass
class Fabric:
    """Nodes by name ("leaf1", "node1 mlx5_0"), cables by names and ports; GUIDs that are not given are drawn from a seed.

    doubles: a node that others have the GUID of → each of them, and the switch's port that leads to it.
    """

    seed: int = 1
    nodes: dict[str, dict[str, Any]] = field(default_factory=dict)
    cables: dict[End, End] = field(default_factory=dict)
    rates: dict[frozenset[End], tuple[int, str]] = field(default_factory=dict)
    ports: dict[End, dict[str, Any]] = field(default_factory=dict)
    planned: dict[End, End] = field(default_factory=dict)
    complete: bool = True
    problems: list[str] = field(default_factory=list)
    doubles: dict[str, dict[str, End]] = field(default_factory=dict)

    def node(self, name: str, kind: str, guid: str | None = None) -> None:
        drawn = f"0x{random.Random(f'{self.seed} {name}').randrange(1 << 62, 1 << 63):016x}"
        self.nodes[name] = {"guid": guid or drawn, "kind": kind, "name": name.split(maxsplit=1)[0]}

    def join(self, a: End, b: End) -> None:
        self.cables[a], self.cables[b] = b, a

    def cut(self, a: End) -> End:
        b = self.cables.pop(a)
        del self.cables[b]
        return b

    def swap(self, a: End, c: End) -> None:
        """Exchange the far ends of two cables."""
        b, d = self.cut(a), self.cut(c)
        self.join(a, d)
        self.join(c, b)

    def remove(self, name: str) -> None:
        for end in [end for end in self.cables if end[0] == name]:
            if end in self.cables:
                self.cut(end)
        del self.nodes[name]

    def slow(self, a: End, width: int = 2, speed: str = "NDR", could_be: tuple[int | None, str | None] | None = None) -> None:
        self.rates[frozenset((a, self.cables[a]))] = (width, speed)
        for end in (a, self.cables[a]):
            self.ports.setdefault(end, {}).update(could_be=could_be)

    def count(self, end: End, **counters: int) -> None:
        self.ports.setdefault(end, {})["counters"] = {**self.ports.get(end, {}).get("counters", {}), **counters}

    def guid(self, name: str) -> str:
        return str(self.nodes[name]["guid"])

    def graph(self, shuffled: int | None = None) -> Graph:
        """The graph; shuffled: the seed of another order of nodes and links."""
        names, cables = list(self.nodes), [(a, b) for a, b in self.cables.items() if a < b]
        if shuffled is not None:
            random.Random(shuffled).shuffle(names)
            random.Random(shuffled).shuffle(cables)
        nodes = {self.guid(name): self._node(name) for name in names}
        links = [self._link(a, b) for a, b in cables]
        doubles = {
            self.guid(name): [Twin(twin, (self.guid(end[0]), end[1])) for twin, end in its.items()] for name, its in self.doubles.items()
        }
        return Graph("default", nodes, links, "ibnetdiscover", self.complete, list(self.problems), doubles)

    def _node(self, name: str) -> Node:
        device = name.partition(" ")[2]
        reported = {end[1]: {"number": end[1], **values} for end, values in self.ports.items() if end[0] == name}
        for end in self.cables:
            if end[0] == name:
                reported.setdefault(end[1], {"number": end[1]})
        ports = {number: Port(**values) for number, values in sorted(reported.items())}
        its = self.nodes[name]
        if its["kind"] == "host":
            ports = {number: replace(port, guid=its.get("port_guid", its["guid"])) for number, port in (ports or {1: Port(1)}).items()}
        return Node(its["guid"], its["kind"], its["name"], name, device or None, lid=its.get("lid"), ports=ports)

    def _link(self, a: End, b: End) -> Link:
        width, speed = self.rates.get(frozenset((a, b)), (4, "NDR"))
        low, high = sorted([(self.guid(a[0]), a[1]), (self.guid(b[0]), b[1])])
        return Link(low, high, width, speed)

    def expected(self) -> list[Expected]:
        """Every HCA as its host plans it: rail 3 is mlx5_3."""
        return [
            Expected(name.split()[0], f"rail{name.rsplit('_', 1)[1]}", its["guid"], name.split()[1], rate_gbps=400.0)
            for name, its in self.nodes.items()
            if its["kind"] == "host"
        ]

    def plan_text(self) -> str:
        """The file that plans it as it is now."""
        switches = [f"  {name}: {{guid: '{its['guid']}'}}" for name, its in self.nodes.items() if its["kind"] == "switch"]
        links = [f"  - {{from: {self._spot(a)}, to: {self._spot(b)}}}" for a, b in self.cables.items() if a < b]
        return "\n".join(["switches:", *switches, "links:", *links, ""])

    def _spot(self, end: End) -> str:
        return end[0] if self.nodes[end[0]]["kind"] == "host" else f"{end[0]}/{end[1]}"


def _spines(fabric: Fabric, leaves: int, spines: int, cables: int, first_port: int) -> None:
    for spine in range(1, spines + 1):
        fabric.node(f"spine{spine}", "switch")
        for leaf in range(1, leaves + 1):
            for cable in range(cables):
                fabric.join((f"leaf{leaf}", first_port + (spine - 1) * cables + cable), (f"spine{spine}", (leaf - 1) * cables + cable + 1))


def leafspine(leaves: int = 4, spines: int = 4, hosts_per_leaf: int = 8, cables: int = 2, seed: int = 1) -> Fabric:
    """Hosts with one HCA, leaf after leaf; each leaf has so many cables to each spine."""
    fabric = Fabric(seed)
    for leaf in range(1, leaves + 1):
        fabric.node(f"leaf{leaf}", "switch")
        for port in range(1, hosts_per_leaf + 1):
            name = f"node{(leaf - 1) * hosts_per_leaf + port} mlx5_0"
            fabric.node(name, "host")
            fabric.join((name, 1), (f"leaf{leaf}", port))
    _spines(fabric, leaves, spines, cables, hosts_per_leaf + 1)
    return fabric


def rail(hosts: int = 16, rails: int = 4, spines: int = 4, cables: int = 4, per_leaf: int | None = None, *, seed: int = 1) -> Fabric:
    """Rail-optimised: HCA mlx5_R of each host is on a leaf of rail R; a leaf takes per_leaf hosts, all unless given."""
    fabric, per_leaf = Fabric(seed), per_leaf or hosts
    groups = -(-hosts // per_leaf)
    for leaf in range(1, rails * groups + 1):
        fabric.node(f"leaf{leaf}", "switch")
    for host in range(hosts):
        for number in range(rails):
            name = f"node{host + 1} mlx5_{number}"
            fabric.node(name, "host")
            fabric.join((name, 1), (f"leaf{host // per_leaf * rails + number + 1}", host % per_leaf + 1))
    _spines(fabric, rails * groups, spines, cables, per_leaf + 1)
    return fabric
