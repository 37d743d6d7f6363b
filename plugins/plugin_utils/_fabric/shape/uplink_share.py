# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a fabric's graph leaves to each of many pairs that send across it at once."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence

from ansible_collections.rdma.cluster.plugins.module_utils._fabric.graph import HOST, SWITCH, End, Graph, Link
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.networkx import nx

#: Who sends, and who receives: ports of HCAs.
Pair = tuple[End, End]
#: The leaf that a pair sends from, the one that it sends to, and Gb/s.
Flow = tuple[str, str, float]


def between_switches(graph: Graph) -> list[Link]:
    """The links of a graph that have a switch at both ends."""
    return [link for link in graph.links if all(end[0] in graph.nodes and graph.nodes[end[0]].kind == SWITCH for end in (link.a, link.b))]


def tells_rates(graph: Graph) -> bool:
    """Whether a graph is whole and has the rate of each link of a host or switch."""
    kinds = (SWITCH, HOST)
    cables = (link for link in graph.links if all(end[0] in graph.nodes and graph.nodes[end[0]].kind in kinds for end in (link.a, link.b)))
    return graph.complete and all(link.rate_gbps is not None for link in cables)


def allowed_shares(graph: Graph, pairs: Mapping[str, Sequence[Pair]]) -> dict[str, float | None]:
    """Rail → what is left to each of its pairs, on average, of what it could send alone, while those of all rails send; 1 at the most.

    All that is sent from a leaf shares its uplinks, and all that is sent to it; what passes there shares the switches beyond, as their
    greatest flow has it, which no routing exceeds. None where rates are not told, or there is no way.
    """
    if not tells_rates(graph):
        return dict.fromkeys(pairs)
    rates = {end: link.rate_gbps or 0.0 for link in graph.links for end in (link.a, link.b)}
    flows = [_flow(graph, pair, rates) for of in pairs.values() for pair in of]
    known = [flow for flow in flows if flow is not None]
    if len(known) < len(flows):
        return dict.fromkeys(pairs)
    shares = _of_uplinks(graph, known)
    beyond = _beyond(graph, [(one, other, gbps * share) for (one, other, gbps), share in zip(known, shares, strict=True)])
    left = iter(shares)
    found = {rail: [next(left) for _pair in of] for rail, of in pairs.items()}
    return {rail: (statistics.fmean(of) * beyond or None) if of else None for rail, of in found.items()}


def _flow(graph: Graph, pair: Pair, rates: Mapping[End, float]) -> Flow | None:
    """A pair as it is alone: no faster than the cable of either end."""
    one, other = (graph.peer(*end) for end in pair)
    gbps = min(rates.get(end, 0.0) for end in pair)
    return (one[0], other[0], gbps) if one is not None and other is not None and gbps else None


def _of_uplinks(graph: Graph, flows: Sequence[Flow]) -> list[float]:
    """What the leaves at both ends of each flow leave to it."""
    up: dict[str, float] = defaultdict(float)
    sent: dict[str, float] = defaultdict(float)
    received: dict[str, float] = defaultdict(float)
    for link in between_switches(graph):
        for end in (link.a, link.b):
            up[end[0]] += link.rate_gbps or 0.0
    for one, other, gbps in flows:
        sent[one] += gbps
        received[other] += gbps
    return [min(1.0, up[one] / sent[one], up[other] / received[other]) for one, other, _gbps in flows]


def _beyond(graph: Graph, flows: Sequence[Flow]) -> float:
    """The share of so much that the switches can carry from the leaves that send to those that receive."""
    network: nx.DiGraph[str] = nx.DiGraph()
    for one, other, gbps in flows:
        _add(network, "from", one, gbps)
        _add(network, other, "to", gbps)
    for link in between_switches(graph):
        for here, there in ((link.a[0], link.b[0]), (link.b[0], link.a[0])):
            _add(network, here, there, link.rate_gbps or 0.0)
    total = sum(gbps for _one, _other, gbps in flows)
    return min(1.0, nx.maximum_flow_value(network, "from", "to") / total) if total else 0.0


def _add(network: nx.DiGraph[str], here: str, there: str, gbps: float) -> None:
    """More capacity from one to another."""
    before = network.get_edge_data(here, there, {"capacity": 0.0})["capacity"]
    network.add_edge(here, there, capacity=before + gbps)
