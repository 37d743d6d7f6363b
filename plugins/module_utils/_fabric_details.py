# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What further tools tell of a fabric's ports, put into a graph that is being built: states, what links could be, and counters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ansible_collections.rdma.cluster.plugins.module_utils._fabric_graph import End, Link, Node, Port
from ansible_collections.rdma.cluster.plugins.module_utils._iblinkinfo import Linkinfo, LinkinfoPort

#: (GUID of the node, or of an HCA's port; port) → counter → value
Counters = Mapping[tuple[str, int], Mapping[str, int]]
_SHOWN = 3
_ALL_PORTS = 255


class Build:
    """The parts of the graph so far."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = names
        self.nodes: dict[str, Node] = {}
        self.links: dict[tuple[End, End], Link] = {}
        self.problems: list[str] = []
        self.port_guids: dict[str, End] = {}

    def some(self, what: str, found: Sequence[str]) -> None:
        """A problem that many things have: their number, and the first of them."""
        if found:
            more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
            self.problems.append(f"{what}: {', '.join(found[:_SHOWN])}{more}")

    def call(self, end: End) -> str:
        node = self.nodes.get(end[0])
        return f"{node.name if node is not None else end[0]} port {end[1]}"


def add_linkinfo(build: Build, linkinfo: Linkinfo, *, doubles: bool) -> None:
    """doubles: whether nodes of one GUID are known: the tools lose cables of theirs."""
    lids = {node.lid: node.guid for node in build.nodes.values() if node.lid is not None}
    linked = {end for link in build.links for end in link}
    strangers, changed, lost = [], [], []
    for told in linkinfo.ports:
        end = _place(build, told.guid or lids.get(told.lid or 0, ""), told.number)
        if end is None:
            strangers.append(f"{told.description or told.guid} port {told.number}")
            continue
        if told.lost:
            lost.append(build.call(end))
        if told.answered and (told.end is not None) != (end in linked):
            changed.append(build.call(end))
        _merge_port(build, end, told)
    build.some("iblinkinfo tells of ports that ibnetdiscover did not find: the fabric changed in between", strangers)
    if not doubles:
        build.some("iblinkinfo was not told who is behind ports that are up", lost)
    build.some("ibnetdiscover and iblinkinfo do not tell the same of links: the fabric changed in between", changed)


def _merge_port(build: Build, end: End, told: LinkinfoPort) -> None:
    ports = build.nodes[end[0]].ports
    port = ports.get(end[1]) or Port(end[1])
    ports[end[1]] = replace(
        port,
        state=told.state,
        physical=told.physical,
        width=told.width if told.width is not None else port.width,
        speed=told.speed if told.speed is not None else port.speed,
        could_be=told.could_be,
    )


def _place(build: Build, guid: str, number: int) -> End | None:
    """Where in the graph a port is that a tool names by its node's GUID or, an HCA's, by its own."""
    end = build.port_guids.get(guid)
    if end is not None and end[1] == number:
        return end
    return (guid, number) if guid in build.nodes else None


def add_counters(build: Build, counters: Counters) -> None:
    strangers = []
    for (guid, number), values in counters.items():
        if number == _ALL_PORTS:
            continue
        end = _place(build, guid, number)
        if end is None:
            strangers.append(f"{guid} port {number}")
            continue
        ports = build.nodes[end[0]].ports
        port = ports.get(number) or Port(number)
        ports[number] = replace(port, counters={**port.counters, **values})
    build.some("counters are told of ports that ibnetdiscover did not find", strangers)
