# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The bandwidth that a fabric's graph allows each of many pairs that send across it at once."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence

from ansible_collections.rdma.cluster.plugins.module_utils._fabric.graph import HOST, SWITCH, End, Graph, Link
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.networkx import nx

#: Sender and receiver: ports of HCAs.
Pair = tuple[End, End]
#: The sender's leaf, the receiver's leaf, and Gb/s.
Flow = tuple[str, str, float]


def between_switches(graph: Graph) -> list[Link]:
    """Return the links between two switches."""
    return [link for link in graph.links if all(end[0] in graph.nodes and graph.nodes[end[0]].kind == SWITCH for end in (link.a, link.b))]


def has_rates(graph: Graph) -> bool:
    """Return whether a graph is complete and has the rate of each link of a host or switch."""
    kinds = (SWITCH, HOST)
    cables = (link for link in graph.links if all(end[0] in graph.nodes and graph.nodes[end[0]].kind in kinds for end in (link.a, link.b)))
    return graph.complete and all(link.rate_gbps is not None for link in cables)


def allowed_shares(graph: Graph, pairs: Mapping[str, Sequence[Pair]]) -> dict[str, float | None]:
    """Return rail → the average share of its single-pair rate that each pair keeps while the pairs of all rails send; at most 1.

    All traffic from a leaf shares its uplinks, and so does all traffic to it. The switches above are shared up to their maximum flow, which
    no routing exceeds. None if rates are unknown, or there is no path.
    """
    if not has_rates(graph):
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
    """Return the flow of a single pair: no faster than the cable of either end."""
    one, other = (graph.peer(*end) for end in pair)
    gbps = min(rates.get(end, 0.0) for end in pair)
    return (one[0], other[0], gbps) if one is not None and other is not None and gbps else None


def _of_uplinks(graph: Graph, flows: Sequence[Flow]) -> list[float]:
    """Return the share that the uplinks at both ends of each flow allow."""
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
    """Return the share that the switches can carry from the sending to the receiving leaves."""
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
    """Add capacity from one node to another."""
    before = network.get_edge_data(here, there, {"capacity": 0.0})["capacity"]
    network.add_edge(here, there, capacity=before + gbps)
