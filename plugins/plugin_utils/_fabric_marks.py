# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a drawing of a fabric marks: links that are not up, or slower than they could be or than the others of their kind."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from ansible_collections.rdma.cluster.plugins.module_utils._fabric_graph import Graph, Link

#: A link by its two ends, (GUID, port), the lesser first.
Ends = tuple[tuple[str, int], tuple[str, int]]
WELL = (None, "ACTIVE")
UP = (None, "LinkUp")
#: The links of a kind have a usual rate where more than half of them have it.
MOST = 0.5


def bad_links(graph: Graph) -> dict[Ends, str]:
    """The ends of each bad link → what is wrong with it, in the order of the links. The findings of the fabric stage say more."""
    usual, common = _usual_rates(graph), _could_be_usually(graph)
    found = {}
    for link in graph.links:
        kind = _kind(graph, link)
        found[link.a, link.b] = "; ".join(dict.fromkeys(_wrong(graph, link, usual[kind], tells_could_be=kind not in common)))
    return {ends: words for ends, words in found.items() if words}


def link_words(graph: Graph, link: Link) -> str:
    """ "leaf1 port 14 to node17 mlx5_3 port 1, 4X NDR"."""
    speed = f", {rate_words(link)}" if link.width or link.speed else ""
    return f"{end_words(graph, link.a)} to {end_words(graph, link.b)}{speed}"


def end_words(graph: Graph, end: tuple[str, int]) -> str:
    """ "node17 mlx5_3 port 1"; a GUID where there is no such node."""
    node = graph.nodes.get(end[0])
    name = end[0] if node is None else " ".join(part for part in (node.name, node.device) if part)
    return f"{name} port {graph.port_name(*end)}"


def rate_words(link: Link) -> str:
    """ "4X NDR", "? NDR"."""
    return f"{link.width}X" * bool(link.width) + "?" * (not link.width) + f" {link.speed or '?'}"


def _wrong(graph: Graph, link: Link, usual_gbps: float | None, *, tells_could_be: bool) -> Iterator[str]:
    for guid, number in (link.a, link.b):
        node = graph.nodes.get(guid)
        port = node.ports.get(number) if node is not None else None
        if port is None:
            continue
        if port.state not in WELL or port.physical not in UP:
            yield f"{end_words(graph, (guid, number))} is {port.state or port.physical}" + (
                "" if port.physical in UP else f"/{port.physical}"
            )
        if tells_could_be and port.could_be is not None:
            yield f"{rate_words(link)}, could be {' '.join(_could_be(port.could_be))}"
    if usual_gbps is not None and link.rate_gbps is not None and link.rate_gbps < usual_gbps:
        yield f"{rate_words(link)} ({link.rate_gbps:g} Gb/s), others of its kind {usual_gbps:g} Gb/s"


def _could_be_usually(graph: Graph) -> set[tuple[str, ...]]:
    """The kinds of link most of which could be faster by what their ports tell: that is their cabling, as 4X in ports for 12X."""
    all_of, could_be = Counter[tuple[str, ...]](), Counter[tuple[str, ...]]()
    for link in graph.links:
        ports = (graph.nodes[guid].ports.get(number) for guid, number in (link.a, link.b) if guid in graph.nodes)
        all_of[_kind(graph, link)] += 1
        could_be[_kind(graph, link)] += any(port is not None and port.could_be is not None for port in ports)
    return {kind for kind, number in could_be.items() if number > MOST * all_of[kind]}


def _could_be(could_be: tuple[int | None, str | None]) -> Iterator[str]:
    width, speed = could_be
    if width:
        yield f"{width}X"
    if speed:
        yield speed


def _kind(graph: Graph, link: Link) -> tuple[str, ...]:
    return tuple(sorted(graph.nodes[guid].kind if guid in graph.nodes else "" for guid, _port in (link.a, link.b)))


def _usual_rates(graph: Graph) -> dict[tuple[str, ...], float | None]:
    """Kind of link → the rate that most of them have."""
    rates: dict[tuple[str, ...], Counter[float]] = defaultdict(Counter)
    for link in graph.links:
        rates[_kind(graph, link)].update([link.rate_gbps] if link.rate_gbps else [])
    common = {kind: of.most_common(1)[0] if of else (0.0, 0) for kind, of in rates.items()}
    return {kind: rate if often > MOST * rates[kind].total() else None for kind, (rate, often) in common.items()}
