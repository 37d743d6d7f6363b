# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cables of a routed Clos network of the lab by LLDP: read in each node by lldpcli, and compared with the cabling plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Completed, SubprocessRunner
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.graph import Graph, merged
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.lldp import lldp_graph, parse_lldpcli, read_lldp
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.cabling.plan import parse_plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.judge import Asked, judge
from lab.clos import Clos

PLANE = "fab"
#: As read_lldp runs it on a host.
SHOW = ("lldpcli", "show", "neighbors", "-f", "json0")


@dataclass(frozen=True)
class NodeRunner:
    """Runs each command inside a node."""

    network: Clos
    node: str

    def run(self, argv: Sequence[str], *, timeout_seconds: float = 30.0) -> Completed:
        return SubprocessRunner().run(self.network.argv(self.node, argv), timeout_seconds=timeout_seconds)


def of_hosts(network: Clos) -> Graph:
    """Return the graph that the hosts read, as the fabric stage joins it."""
    return merged(PLANE, [read_lldp(NodeRunner(network, host), PLANE, host, 10) for host in network.shape.host_names])


def of_switches(network: Clos) -> Graph:
    """Return the graph of what the switches print."""
    switches = network.shape.switches
    return lldp_graph(PLANE, {name: parse_lldpcli(network.run(name, *SHOW)) for name in switches}, switches)


def ends(graph: Graph) -> set[tuple[str, ...]]:
    """Return both ends of each cable: {("host1 rail0", "leaf1 swp33")}."""
    named = [[(graph.nodes[guid].name, graph.nodes[guid].ports[number].label) for guid, number in (link.a, link.b)] for link in graph.links]
    return {tuple(sorted(f"{name} {label}" for name, label in both)) for both in named}


def cabling(network: Clos) -> dict[str, list[str]]:
    """Return subject → the texts of the findings on the graph and its cables, by the readings of hosts and switches together."""
    graph = merged(PLANE, [of_hosts(network), of_switches(network)])
    texts: dict[str, list[str]] = {}
    for each in judge(graph, Asked(plan=parse_plan(network.folder.cabling.read_text()))).findings:
        if each.check in ("fabric.graph", "fabric.cabling"):
            texts.setdefault(each.subject, []).append(f"{each.observed}. {each.remedy}" if each.remedy else each.observed)
    return texts
