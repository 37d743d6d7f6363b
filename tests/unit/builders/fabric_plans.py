# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The graph of a planned fabric, from its cables alone, and its bisection by brute force with maximum flows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from itertools import combinations, product

import networkx as nx

from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.design import Cable, Design


def plane_cables(design: Design, plane: str) -> list[Cable]:
    """The cables that end at a switch of the plane."""
    inside = {switch.name for switch in design.switches if switch.plane == plane}
    return [cable for cable in design.cables if cable.b.node in inside]


def switch_graph(cables: Collection[Cable]) -> nx.Graph[str]:
    """The switches, with the summed rate of their cables as capacity."""
    graph: nx.Graph[str] = nx.Graph()
    for cable in cables:
        graph.add_node(cable.b.node)
        if cable.a.rail is None:
            before = graph.get_edge_data(cable.a.node, cable.b.node, {"capacity": 0.0})["capacity"]
            graph.add_edge(cable.a.node, cable.b.node, capacity=before + cable.gbps)
    return graph


def brute_bisection(cables: Collection[Cable], dead: Collection[str] = (), lost: Collection[Cable] = ()) -> float:
    """The least maximum flow over all halves of the NICs. NICs on one leaf are alike, so only their number on each leaf counts."""
    nics = Counter(cable.b.node for cable in cables if cable.a.rail is not None)
    (rate,) = {cable.gbps for cable in cables if cable.a.rail is not None}
    graph = switch_graph([cable for cable in cables if cable not in set(lost)])
    graph.remove_nodes_from(dead)
    leaves = sorted(nics)
    half = sum(nics.values()) // 2
    best = half * rate
    seen: set[tuple[tuple[int, int], ...]] = set()
    for sending in product(*(range(nics[leaf] + 1) for leaf in leaves)):
        if sum(sending) != half:
            continue
        if not dead and not lost and len({cable.b.node for cable in cables} & set(leaves)) == len(leaves) and _one_pod(graph, leaves):
            key = tuple(sorted(zip(sending, (nics[leaf] for leaf in leaves), strict=True)))
            if key in seen:
                continue
            seen.add(key)
        flow: nx.DiGraph[str] = nx.DiGraph(graph)
        for leaf, number in zip(leaves, sending, strict=True):
            flow.add_edge("from", leaf, capacity=number * rate)
            flow.add_edge(leaf, "to", capacity=(nics[leaf] - number) * rate)
        best = min(best, nx.maximum_flow_value(flow, "from", "to"))
    return float(best)


def _one_pod(graph: nx.Graph[str], leaves: Collection[str]) -> bool:
    """Whether all leaves have the same cables, so that exchanging two of them changes nothing."""
    return len({tuple(sorted((other, data["capacity"]) for other, data in graph[leaf].items())) for leaf in leaves}) == 1


def brute_worst(design: Design, plane: str, dead: int, links: int) -> float:
    """The least bisection over all choices of failed switches above the leaves and of failed cables between switches."""
    cables = plane_cables(design, plane)
    upper = [switch.name for switch in design.switches if switch.plane == plane and switch.tier != "leaf"]
    between = [cable for cable in cables if cable.a.rail is None]
    return min(
        brute_bisection(cables, switches, lost)
        for switches in combinations(upper, min(dead, len(upper)))
        for lost in combinations(between, min(links, len(between)))
    )


def problems(design: Design, ports: int, parts: int) -> Iterator[str]:
    """Whatever no design may have: a port used twice, a port that the switch does not have, an unknown node."""
    plugs = Counter(plug for cable in design.cables for plug in (cable.a, cable.b))
    yield from (f"{plug} is used {number} times" for plug, number in plugs.items() if number > 1)
    switches, hosts = {switch.name for switch in design.switches}, set(design.hosts)
    if len(switches) != len(design.switches):
        yield "two switches have one name"
    for plug in plugs:
        if plug.rail is None and (plug.node not in switches or not 1 <= plug.port <= ports * parts):
            yield f"{plug} is no port of a switch"
        if plug.rail is not None and (plug.node not in hosts or plug.rail != f"rail{plug.port - 1}"):
            yield f"{plug} is no NIC of a host"


def physical_ports(design: Design, parts: int) -> dict[str, int]:
    """Switch → physical ports with a cable."""
    used = {(plug.node, (plug.port - 1) // parts) for cable in design.cables for plug in (cable.a, cable.b) if plug.rail is None}
    return dict(Counter(node for node, _port in used))
