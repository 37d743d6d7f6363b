# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The links that a drawing of a fabric marks: not up, slower than both ends support, or slower than similar links."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ansible_collections.rdma.cluster.plugins.module_utils._fabric.graph import Graph, Link
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.links.faults import UP, Faults, faults
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.links.links import words
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.view import View

#: A link by its two ends, (GUID, port), the smaller first.
Ends = tuple[tuple[str, int], tuple[str, int]]
#: If more than this share of the links of a kind could be faster, the reason is their cabling, not a fault of single links.
MOST = 0.5


def bad_links(graph: Graph) -> dict[Ends, str]:
    """Return the ends of each bad link → its fault, in the order of the links. The findings of the fabric stage have more detail."""
    view = View(graph)
    found = [(link, faults(view, link)) for link in graph.links]
    common = _could_be_usually(view, found)
    wrong = {(link.a, link.b): list(_wrong(view, link, each, shows_could_be=view.kind(link) not in common)) for link, each in found}
    return {ends: "; ".join(of) for ends, of in wrong.items() if of}


def link_words(graph: Graph, link: Link) -> str:
    """ "leaf1 port 14 to node17 mlx5_3 port 1, 4X NDR"."""
    speed = f", {rate_words(link)}" if link.width or link.speed else ""
    return f"{end_words(graph, link.a)} to {end_words(graph, link.b)}{speed}"


def end_words(graph: Graph, end: tuple[str, int]) -> str:
    """ "node17 mlx5_3 port 1"; a GUID if there is no such node."""
    node = graph.nodes.get(end[0])
    name = end[0] if node is None else " ".join(part for part in (node.name, node.device) if part)
    return f"{name} port {graph.port_name(*end)}"


def rate_words(link: Link) -> str:
    """ "4X NDR", "? NDR"."""
    return f"{link.width}X" * bool(link.width) + "?" * (not link.width) + f" {link.speed or '?'}"


def _wrong(view: View, link: Link, found: Faults, *, shows_could_be: bool) -> Iterator[str]:
    for end, port in found.not_up:
        physical = "" if port.physical in UP else f"/{port.physical}"
        yield f"{end_words(view.graph, end)} is {port.state or port.physical}{physical}"
    if shows_could_be and found.could_be is not None:
        yield f"{rate_words(link)}, both ends support {words(found.could_be)}"
    gbps, usual_gbps = link.rate_gbps, view.usual_gbps.get(view.kind(link))
    if found.usual is not None and gbps is not None and usual_gbps is not None and gbps < usual_gbps:
        yield f"{rate_words(link)} ({gbps:g} Gb/s), similar links run at {usual_gbps:g} Gb/s"


def _could_be_usually(view: View, found: list[tuple[Link, Faults]]) -> set[tuple[str, ...]]:
    """Return the kinds of links of which most could be faster, as their ports report."""
    all_of, could_be = Counter[tuple[str, ...]](), Counter[tuple[str, ...]]()
    for link, each in found:
        all_of[view.kind(link)] += 1
        could_be[view.kind(link)] += each.could_be is not None
    return {kind for kind, number in could_be.items() if number > MOST * all_of[kind]}
