# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The wanted links of a fabric: the cables of a plan or of an earlier graph, by the GUIDs of a discovered one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from ansible_collections.rdma.cluster.plugins.module_utils._fabric.graph import Graph
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.cabling.plan import Plan, Spot
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.view import End, View, rest_of


@dataclass(frozen=True)
class Wanted:
    """peers: both directions of each cable. names: node → readable name. hosts: HCA → its host. switches: the nodes that are switches.

    A node that is not in the discovered graph is stored by its GUID if known, else by its name. ambiguous: planned names that several nodes
    have.
    """

    peers: Mapping[End, End]
    names: Mapping[str, str]
    hosts: Mapping[str, str]
    switches: frozenset[str]
    tiers: Mapping[str, str] = field(default_factory=dict)
    ambiguous: tuple[str, ...] = ()

    def end(self, end: End) -> str:
        """Return the readable name of a port, like View.end."""
        guid, number = end
        return self.names[guid] if guid not in self.switches and number == 1 else f"{self.names[guid]} port {number}"


def of_plan(plan: Plan, view: View) -> Wanted:
    """Return the cables of a plan. A switch is found by GUID, else by name; an HCA by host and device."""
    finder = _Finder(plan, view)
    peers: dict[End, End] = {}
    for link in plan.links:
        a, b = finder.end(link.a), finder.end(link.b)
        peers[a], peers[b] = b, a
    switches = {finder.switch(name): name for name in plan.switches}
    cabled = {guid for guid, _number in peers}
    tiers = {guid: tier for guid, name in switches.items() if (tier := plan.switches[name].tier) is not None}
    names = {**finder.names, **switches}
    return Wanted(
        peers,
        names,
        {key: host for key, host in finder.hosts.items() if key in cabled},
        frozenset(switches),
        tiers,
        tuple(finder.ambiguous),
    )


def of_graph(before: Graph, view: View) -> Wanted:
    """Return the cables of an earlier graph, with the current names."""
    earlier = View(before, list(view.expected.values()))
    names = {guid: view.name(guid) if guid in view.nodes else earlier.name(guid) for guid in earlier.nodes}
    hosts = {guid: view.host(guid) if guid in view.nodes else earlier.host(guid) for guid in earlier.hcas}
    return Wanted(earlier.peers, names, hosts, frozenset(earlier.switches), earlier.tiers)


class _Finder:
    """The nodes of a graph by the names of a plan."""

    def __init__(self, plan: Plan, view: View) -> None:
        self.plan, self.view = plan, view
        self.names: dict[str, str] = {}
        self.hosts: dict[str, str] = {}
        self.ambiguous: list[str] = []
        self._switches: dict[str, str] = {}
        self._by_name: dict[str, list[str]] = defaultdict(list)
        self._hcas: dict[tuple[str, str], list[str]] = defaultdict(list)
        self._of_host: dict[str, list[str]] = defaultdict(list)
        for guid in view.switches:
            self._by_name[view.nodes[guid].name].append(guid)
        for guid in view.hcas:
            host = view.host(guid)
            self._of_host[host].append(guid)
            rest = rest_of(view.nodes[guid])
            planned = view.planned(guid)
            for device in {view.nodes[guid].device, rest, planned.device if planned else None, planned.rail if planned else None} - {
                None,
                "",
            }:
                self._hcas[host, str(device)].append(guid)

    def switch(self, name: str) -> str:
        if name not in self._switches:
            self._switches[name] = self._find_switch(name)
        return self._switches[name]

    def _find_switch(self, name: str) -> str:
        guid = self.plan.switches[name].guid
        if guid is not None:
            return guid
        found = self._by_name.get(name, [])
        if len(found) > 1:
            self.ambiguous.append(name)
        return found[0] if found else f"switch {name}"

    def end(self, spot: Spot) -> End:
        if spot.device is None:
            key = self.switch(spot.name)
            self.names[key] = spot.name
            return key, spot.port
        found = self._hcas.get((spot.name, spot.device), [])
        if len(found) > 1 and f"{spot.name} {spot.device}" not in self.ambiguous:
            self.ambiguous.append(f"{spot.name} {spot.device}")
        alone = self._of_host.get(spot.name, [])
        key = found[0] if found else alone[0] if len(alone) == 1 and not self._is_identified(alone[0]) else f"HCA {spot.name} {spot.device}"
        self.names[key], self.hosts[key] = f"{spot.name} {spot.device}", spot.name
        return key, spot.port

    def _is_identified(self, guid: str) -> bool:
        """Return whether an HCA shows which HCA of its host it is."""
        node = self.view.nodes[guid]
        return bool(node.device or rest_of(node))
