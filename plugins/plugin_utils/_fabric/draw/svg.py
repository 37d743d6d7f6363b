# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A fabric as SVG: tiers of switches as rows, hosts below their leaves, bad links red with a tooltip."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._fabric.graph import Graph
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.draw.layout import (
    HEIGHT,
    MARGIN,
    WIDTH,
    Box,
    Layout,
    host_names,
    lay_out,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.draw.marks import Ends, bad_links, end_words, link_words
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.networkx import nx

STYLE = """
text{font:10px sans-serif;fill:#1f2933}
.head{font-size:17px;font-weight:bold}.side{fill:#616e7c}.bad-text{fill:#b71c1c}
.switch{fill:#dbe7f5;stroke:#34619b}.host{fill:#f5f5f2;stroke:#8a8a80}.frame{fill:none;stroke:#c9c9c0}
.cable{stroke:#7f98b2}.bundle{stroke:#9fb3c8}
.bad{stroke:#d32f2f;stroke-width:2.4}.at-bad{stroke:#d32f2f;stroke-width:2}.box-bad{fill:#fde0dc;stroke:#d32f2f;stroke-width:2}
"""
#: A longer name is cut at the front, because the end distinguishes nodes.
NAME_CHARACTERS = 9
#: The number of bad links listed in words below the drawing, and the height of a line.
LISTED, LINE = 40, 16
ROWS = ("leaves", "spines", "core")


def svg(graph: Graph, bad: Mapping[Ends, str] | None = None) -> str:
    """Return the drawing. bad: ends of a link → its fault; the default is bad_links."""
    marked = bad_links(graph) if bad is None else bad
    layout = lay_out(graph)
    words = [f"{link_words(graph, link)}: {marked[link.a, link.b]}" for link in graph.links if (link.a, link.b) in marked]
    notes = [*graph.problems[:LISTED], *words[:LISTED], *([f"and {len(words) - LISTED} more"] if len(words) > LISTED else [])]
    height = layout.height + LINE * (len(notes) + 1) * bool(notes)
    size = f'width="{layout.width:.0f}" height="{height:.0f}" viewBox="0 0 {layout.width:.0f} {height:.0f}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
        f"<style>{STYLE}</style>",
        f'<rect width="{layout.width:.0f}" height="{height:.0f}" fill="#ffffff"/>',
        *_head(graph, len(marked)),
        *_between_switches(graph, layout, marked),
        *_bundles(graph, layout),
        *_rows(layout),
        *_switches(graph, layout, marked),
        *_hosts(graph, layout, marked),
        *_bad_to_hosts(graph, layout, marked),
        *_notes(notes, layout.height),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _head(graph: Graph, bad: int) -> Iterator[str]:
    hosts, switches = host_names(graph), sum(node.kind == "switch" for node in graph.nodes.values())
    seen = f"{_count(len(hosts), 'host')}, {_count(sum(map(len, hosts.values())), 'HCA')}, {_count(switches, 'switch', 'switches')}"
    yield f'<text class="head" x="{MARGIN}" y="26">Fabric {escape(graph.plane)}</text>'
    yield f'<text class="side" x="{MARGIN}" y="44">{seen}, {_count(len(graph.links), "link")}, of which {bad} bad{_partial(graph)}</text>'


def _partial(graph: Graph) -> str:
    return "" if graph.complete else "; only a part of the fabric could be read"


def _count(number: int, one: str, many: str | None = None) -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


def _rows(layout: Layout) -> Iterator[str]:
    for number, (y, _switches) in enumerate(reversed(layout.tiers)):
        name = ROWS[number] if number < len(ROWS) else f"tier {number + 1}"
        yield f'<text class="side" x="{MARGIN}" y="{y - 8:.0f}">{name}</text>'


def _between_switches(graph: Graph, layout: Layout, bad: Mapping[Ends, str]) -> Iterator[str]:
    """Yield one line for all cables between two switches, thicker for more cables. Each bad cable is a line of its own on top."""
    often: Counter[tuple[str, str]] = Counter()
    red: list[str] = []
    for link in graph.links:
        pair = tuple(sorted((link.a[0], link.b[0]), key=lambda guid: layout.switches[guid].y if guid in layout.switches else 0.0))
        if pair[0] not in layout.switches or pair[1] not in layout.switches:
            continue
        often[pair[0], pair[1]] += 1
        if (link.a, link.b) in bad:
            words = f"{link_words(graph, link)}: {bad[link.a, link.b]}"
            red.append(_line(layout.switches[pair[0]], layout.switches[pair[1]], "bad", 0, words))
    yield f'<g stroke-opacity="{max(0.12, min(0.6, 60 / max(1, len(often)))):.2f}">'
    for (upper, lower), number in sorted(often.items()):
        name = f"{graph.nodes[upper].name} to {graph.nodes[lower].name}: {_count(number, 'cable')}"
        yield _line(layout.switches[upper], layout.switches[lower], "cable", min(0.6 + 0.4 * number, 4), name)
    yield "</g>"
    yield from red


def _line(upper: Box, lower: Box, kind: str, width: float, words: str) -> str:
    (x, y), (to_x, to_y) = upper.bottom, lower.top
    thick = f' stroke-width="{width:.1f}"' if width else ""
    return f'<line class="{kind}" x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}"{thick}><title>{escape(words)}</title></line>'


def _bundles(graph: Graph, layout: Layout) -> Iterator[str]:
    """Yield one line from each leaf to the frame of its hosts, for all of their cables."""
    host_of = _host_of(graph)
    below: dict[str, list[str]] = {guid: [] for guid in layout.switches}
    for link in graph.links:
        for one, other in ((link.a[0], link.b[0]), (link.b[0], link.a[0])):
            if one in below and other in host_of:
                below[one].append(host_of[other])
    for group in layout.groups:
        x, y, wide, high = group.frame
        if group.hosts:
            yield f'<rect class="frame" x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{high:.1f}" rx="4"/>'
        own = set(group.hosts)
        for leaf in group.leaves:
            number = sum(name in own for name in below[leaf])
            if number:
                from_x, from_y = layout.switches[leaf].bottom
                line = f'x1="{from_x:.1f}" y1="{from_y:.1f}" x2="{from_x:.1f}" y2="{y:.1f}" stroke-width="{min(1 + number / 8, 6):.1f}"'
                title = f"{graph.nodes[leaf].name}: {_count(number, 'host port')}"
                yield f'<line class="bundle" {line}><title>{escape(title)}</title></line>'


def _switches(graph: Graph, layout: Layout, bad: Mapping[Ends, str]) -> Iterator[str]:
    at_bad = Counter(guid for ends in bad for guid, _port in ends)
    for guid, box in layout.switches.items():
        node = graph.nodes[guid]
        words = [node.name, guid, *([str(node.description)] if node.description not in (None, "", node.name) else [])]
        words += [f"{_count(at_bad[guid], 'bad link')}"] if at_bad[guid] else []
        yield _box(box, "switch at-bad" if at_bad[guid] else "switch", node.name, "\n".join(words))


def _hosts(graph: Graph, layout: Layout, bad: Mapping[Ends, str]) -> Iterator[str]:
    at_bad = {guid for ends in bad for guid, _port in ends}
    cables: dict[str, list[str]] = {}
    for link in graph.links:
        for end, other in ((link.a, link.b), (link.b, link.a)):
            cables.setdefault(end[0], []).append(f"{end_words(graph, end)} to {end_words(graph, other)}")
    for name, guids in host_names(graph).items():
        words = [name, *(cable for guid in guids for cable in cables.get(guid, [f"{graph.nodes[guid].device or guid}: no link"]))]
        yield _box(layout.hosts[name], "host box-bad" if at_bad & set(guids) else "host", name, "\n".join(words))


def _bad_to_hosts(graph: Graph, layout: Layout, bad: Mapping[Ends, str]) -> Iterator[str]:
    """Yield the bad links between a leaf and a host."""
    host_of = _host_of(graph)
    for link in graph.links:
        ends = sorted((link.a, link.b), key=lambda end: end[0] not in layout.switches)
        upper, lower = layout.switches.get(ends[0][0]), host_of.get(ends[1][0])
        if (link.a, link.b) in bad and upper is not None and lower is not None:
            yield _line(upper, layout.hosts[lower], "bad", 0, f"{link_words(graph, link)}: {bad[link.a, link.b]}")


def _host_of(graph: Graph) -> dict[str, str]:
    """Return GUID of an HCA → name of its host."""
    return {guid: name for name, guids in host_names(graph).items() for guid in guids}


def _box(box: Box, kind: str, name: str, words: str) -> str:
    short = name if len(name) <= NAME_CHARACTERS else "…" + name[1 - NAME_CHARACTERS :]
    rect = f'<rect class="{kind}" x="{box.x:.1f}" y="{box.y:.1f}" width="{WIDTH}" height="{HEIGHT}" rx="3"/>'
    text = f'<text x="{box.x + WIDTH / 2:.1f}" y="{box.y + 15:.1f}" text-anchor="middle">{escape(short)}</text>'
    return f"<g><title>{escape(words)}</title>{rect}{text}</g>"


def _notes(notes: list[str], y: float) -> Iterator[str]:
    for number, words in enumerate(notes):
        yield f'<text class="bad-text" x="{MARGIN}" y="{y + LINE * (number + 0.5):.1f}">{escape(words)}</text>'


NODE = ("kind", "name", "description", "device", "system_guid", "vendor_id", "device_id", "lid")


def graphml(graph: Graph, bad: Mapping[Ends, str] | None = None) -> str:
    """Return the GraphML text, the same for the same fabric: nodes by GUID, links with the port at each end, width, speed and rate_gbps.

    Unknown values are omitted. Bad links have their fault as "bad"; the default is bad_links.
    """
    marked = bad_links(graph) if bad is None else bad
    made: nx.MultiGraph[str] = nx.MultiGraph(plane=graph.plane, source=graph.source, complete=graph.complete)
    for guid, node in sorted(graph.nodes.items()):
        made.add_node(guid, **_known({name: getattr(node, name) for name in NODE}))
    for link in sorted(graph.links, key=lambda each: (each.a, each.b)):
        (one, port), (other, other_port) = link.a, link.b
        words = {"width": link.width, "speed": link.speed, "rate_gbps": link.rate_gbps, "bad": marked.get((link.a, link.b))}
        ports = {"source_port": port, "target_port": other_port}
        made.add_edge(one, other, key=f"{one}/{port}", **ports, **_known(words))
    return "\n".join(nx.generate_graphml(made)) + "\n"


def _known(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in attributes.items() if value is not None}
