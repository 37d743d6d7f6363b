# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Several views of one plane as one graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ansible_collections.rdma.cluster.plugins.module_utils._fabric_graph import End, Graph, Link, Node

_SHOWN = 3


def merged(plane: str, graphs: Sequence[Graph]) -> Graph:
    """Of hosts that each know their own neighbours, or of two that looked at one fabric."""
    nodes: dict[str, Node] = {}
    links: dict[tuple[End, End], Link] = {}
    for graph in graphs:
        for guid, node in graph.nodes.items():
            known = nodes.get(guid)
            nodes[guid] = node if known is None else replace(known, ports={**node.ports, **known.ports})
        for link in graph.links:
            links.setdefault((link.a, link.b), link)
    problems = [problem for graph in graphs for problem in graph.problems]
    problems += shared_ends(nodes, links)
    if graphs and not links:
        problems.append("no host saw a link of its own")
    source = graphs[0].source if graphs else "lldp"
    complete = bool(graphs) and not problems and all(graph.complete for graph in graphs)
    ordered = {guid: replace(nodes[guid], ports=dict(sorted(nodes[guid].ports.items()))) for guid in sorted(nodes)}
    return Graph(plane, ordered, [links[key] for key in sorted(links)], source, complete, problems)


def shared_ends(nodes: Mapping[str, Node], links: Iterable[tuple[End, End]]) -> list[str]:
    """A problem if several links end at one port, which takes one cable."""
    ends = Counter(end for link in links for end in link)
    twice = sorted(f"{nodes[end[0]].name} port {end[1]}" for end, count in ends.items() if count > 1)
    return [f"several links end at one port: {', '.join(twice[:_SHOWN])}"] if twice else []
