# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The drawings of a plan: SVG and GraphML by the drawing of found fabrics, and DOT for Graphviz."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ansible_collections.rdma.cluster.plugins.module_utils._fabric.graph import HOST, SWITCH, Graph, Link, Node, Port
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.draw.svg import graphml, svg
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.design import Cable, Design
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.output.cabling import cables_of_planes

#: The graph of a plan uses names instead of GUIDs, as LLDP does.
SOURCE = "lldp"
TIERS = ("core", "spine", "leaf")


def drawings(design: Design) -> dict[str, str]:
    """Return file name → text: for each plane "PLANE.svg", "PLANE.graphml" and "PLANE.dot"."""
    found = {}
    for plane, cables in cables_of_planes(design).items():
        graph = graph_of(design, plane, cables)
        found[f"{plane}.svg"] = svg(graph, {})
        found[f"{plane}.graphml"] = graphml(graph, {})
        found[f"{plane}.dot"] = "\n".join(_dot(design, plane, cables)) + "\n"
    return found


def graph_of(design: Design, plane: str, cables: list[Cable]) -> Graph:
    """Return the graph of a plane as the fabric stage would find it. A rail of a host is a node, with the rail as its device."""
    ports: dict[str, dict[int, Port]] = {switch.name: {} for switch in design.switches if switch.plane == plane}
    nodes = {name: Node(name, SWITCH, name, ports=its) for name, its in ports.items()}
    links = []
    for cable in cables:
        ends = []
        for plug in (cable.a, cable.b):
            guid, number = (plug.node, plug.port) if plug.rail is None else (f"{plug.node} {plug.rail}", 1)
            if guid not in nodes:
                nodes[guid] = Node(guid, HOST, plug.node, device=plug.rail, ports={})
            nodes[guid].ports[number] = Port(number)
            ends.append((guid, number))
        low, high = sorted(ends)
        links.append(Link(low, high))
    return Graph(plane, nodes, links, SOURCE)


def _dot(design: Design, plane: str, cables: list[Cable]) -> Iterator[str]:
    """Yield the lines of a graph for Graphviz. Parallel cables are one edge with their number."""
    yield f"graph {_quoted(plane)} {{"
    yield "  rankdir=TB; node [shape=box, fontname=sans];"
    for tier in TIERS:
        names = [switch.name for switch in design.switches if switch.plane == plane and switch.tier == tier]
        if names:
            yield f"  {{ rank=same; {' '.join(f'{_quoted(name)};' for name in names)} }}"
    for (low, high), count in Counter((cable.a.node, cable.b.node) for cable in cables).items():
        label = f' [label="{count}"]' if count > 1 else ""
        yield f"  {_quoted(high)} -- {_quoted(low)}{label};"
    yield "}"


def _quoted(name: str) -> str:
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'
