# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find nodes that have the same GUID.

ibnetdiscover and iblinkinfo merge them into one node, and keep one of their cables (libibnetdisc, rdma-core 44).

The sign is a port that is up without a reported node behind it. A directed route, which uses only port numbers, finds that node.
"""

from __future__ import annotations

from collections import deque

from ansible_collections.rdma.cluster.plugins.module_utils._fabric.graph import End, Twin
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.iblinkinfo import Linkinfo
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.ibnetdiscover import Discovery
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.smpquery import NodeInfo, parse_nodedesc, parse_nodeinfo
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.tools import Tools

#: The maximum number of queried ports, and of ports that do not answer: each takes the tool's timeout.
ASKED_PORTS, SILENT_PORTS = 8, 2
#: The maximum number of hops of a directed route (IBA 14.2.2).
MOST_HOPS = 62

Peers = dict[End, End]


def find_doubles(reader: Tools, discovery: Discovery, linkinfo: Linkinfo, port: int | None) -> dict[str, list[Twin]]:
    """Return GUID → the nodes that have it, each behind another port. port: of the querying HCA, None for its first one with a link.

    A missing answer adds no problem: the lost ports are reported anyway.
    """
    peers = {(node.guid, at.number): (at.end.guid, at.end.port) for node in discovery.nodes for at in node.ports if at.end is not None}
    # iblinkinfo may have kept the cable of another of them.
    kept = {(at.end.guid, at.end.port): (at.guid, at.number) for at in linkinfo.ports if at.end is not None and at.end.guid and at.guid}
    switches = {node.guid for node in discovery.nodes if node.kind == "switch"}
    lost = [end for end in _lost(linkinfo) if end[0] in switches]
    routes = _routes(discovery.start, port, peers, switches) if lost else {}
    found: dict[str, list[Twin]] = {}
    before, silent = len(reader.problems), 0
    for end in [end for end in lost if end[0] in routes][:ASKED_PORTS]:
        if silent == SILENT_PORTS:
            break
        there = _behind(reader, routes, end)
        silent += there is None
        if there is None or there.guid in found:
            continue
        others = (peers.get((there.guid, there.port)), kept.get((there.guid, there.port)), kept.get((there.port_guid, there.port)))
        other = next((each for each in others if each not in (None, end)), None)
        if other is None or other[0] not in routes:
            continue
        again = _behind(reader, routes, other)
        if again is not None and again.guid == there.guid:
            found[there.guid] = [Twin(_description(reader, routes, each), each) for each in sorted((end, other))]
    del reader.problems[before:]
    return found


def _lost(linkinfo: Linkinfo) -> list[End]:
    """Return the ports that are up without a node behind them, the first one of each switch first."""
    of_switch: dict[str, int] = {}
    ranked = []
    for port in linkinfo.ports:
        if port.lost and port.guid is not None:
            of_switch[port.guid] = of_switch.get(port.guid, 0) + 1
            ranked.append((of_switch[port.guid], (port.guid, port.number)))
    return [end for _rank, end in sorted(ranked)]


def _routes(start: str | None, port: int | None, peers: Peers, switches: set[str]) -> dict[str, list[int]]:
    """Return switch → the ports that lead to it from the querying HCA, with the fewest hops."""
    first = [(end, there) for end, there in sorted(peers.items()) if end[0] == start and port in (None, end[1]) and there[0] in switches]
    found: dict[str, list[int]] = {}
    if not first:
        return found
    (_guid, leaving), (leaf, _port) = first[0]
    found[leaf] = [leaving]
    hops: dict[str, list[End]] = {}
    for (guid, number), there in sorted(peers.items()):
        hops.setdefault(guid, []).append((there[0], number))
    waiting = deque([leaf])
    while waiting:
        here = waiting.popleft()
        for there_guid, number in hops.get(here, ()) if len(found[here]) < MOST_HOPS - 1 else ():
            if there_guid in switches and there_guid not in found:
                found[there_guid] = [*found[here], number]
                waiting.append(there_guid)
    return found


def _behind(reader: Tools, routes: dict[str, list[int]], end: End) -> NodeInfo | None:
    """Return the node behind a switch's port; None also if the route leads to another switch than in the graph."""
    own = reader.run("smpquery", ["nodeinfo", "-D", _words(routes[end[0]])], parse_nodeinfo)
    if own is None or own.guid != end[0]:
        return None
    return reader.run("smpquery", ["nodeinfo", "-D", _words([*routes[end[0]], end[1]])], parse_nodeinfo)


def _description(reader: Tools, routes: dict[str, list[int]], end: End) -> str:
    return reader.run("smpquery", ["nodedesc", "-D", _words([*routes[end[0]], end[1]])], parse_nodedesc) or ""


def _words(route: list[int]) -> str:
    return ",".join(["0", *(str(port) for port in route)])
