# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Build one graph from the outputs of several tools."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import first_of
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.graph import AGGREGATION, End, Graph, Link, Node, Port, Twin
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.iblinkinfo import Linkinfo, LinkinfoPort
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.ibnetdiscover import Discovery, FoundEnd, FoundNode, FoundPort
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.names import kind_of, name_of
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.words import rate_gbps

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
        """Add a problem that several things share: their number, and the first of them."""
        if found:
            self.problems.append(f"{what}: {first_of(found, _SHOWN)}")

    def call(self, end: End) -> str:
        node = self.nodes.get(end[0])
        return f"{node.name if node is not None else end[0]} port {end[1]}"


def add_linkinfo(build: Build, linkinfo: Linkinfo, doubles: Collection[str] = ()) -> None:
    """Add the output of iblinkinfo.

    doubles: GUIDs that several nodes have. Each tool keeps those of their cables whose answers came first, so that the tools differ.
    """
    peers = {here[0]: here[1] for link in build.links for here in ((link[0], link[1]), (link[1], link[0]))}
    lids = {node.lid: node.guid for node in build.nodes.values() if node.lid is not None}
    strangers, changed, lost = [], [], []
    for reported in linkinfo.ports:
        end = _place(build, reported.guid or lids.get(reported.lid or 0, ""), reported.number)
        if end is None:
            strangers.append(f"{reported.description or reported.guid} port {reported.number}")
            continue
        if reported.lost:
            lost.append(build.call(end))
        ends = (end[0], peers.get(end, end)[0], reported.end.guid if reported.end is not None else None)
        if reported.answered and (reported.end is not None) != (end in peers) and not any(guid in doubles for guid in ends):
            changed.append(build.call(end))
        _merge_port(build, end, reported)
    build.some("iblinkinfo reports ports that ibnetdiscover did not find: the fabric changed in between", strangers)
    if not doubles:
        build.some("iblinkinfo did not find the node behind ports that are up", lost)
    build.some("ibnetdiscover and iblinkinfo report different links: the fabric changed in between", changed)


def _merge_port(build: Build, end: End, reported: LinkinfoPort) -> None:
    ports = build.nodes[end[0]].ports
    port = ports.get(end[1]) or Port(end[1])
    ports[end[1]] = replace(
        port,
        state=reported.state,
        physical=reported.physical,
        width=reported.width if reported.width is not None else port.width,
        speed=reported.speed if reported.speed is not None else port.speed,
        could_be=reported.could_be,
    )


def _place(build: Build, guid: str, number: int) -> End | None:
    """Return the port in the graph. A tool names it by its node's GUID or, for an HCA, by its own GUID."""
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
    build.some("counters belong to ports that ibnetdiscover did not find", strangers)


SOURCE = "ibnetdiscover"


def fabric_graph(
    plane: str,
    discovery: Discovery,
    *,
    linkinfo: Linkinfo | None = None,
    counters: Counters | None = None,
    names: Mapping[str, str] | None = None,
    problems: Sequence[str] = (),
    doubles: Mapping[str, Sequence[Twin]] | None = None,
) -> Graph:
    """Return the graph of a plane.

    names: the node-name map; problems: known gaps, as sentences; doubles: nodes with one GUID, which discovery and linkinfo have merged
    into one.

    Each of these is a problem, and the graph is then incomplete: a link that only one end reports, a node that is named but not described,
    a difference between the tools, and a discovery without a link.
    """
    build = Build(names or {})
    found_ports: dict[End, FoundPort] = {}
    for node in discovery.nodes:
        _add_node(build, found_ports, node)
    missing = _add_missing(build, found_ports)
    _add_links(build, found_ports, missing)
    _name_aggregation(build)
    build.some(
        f"{len(missing)} nodes are named at the other ends of links but not described: the output is cut off, or they did not answer",
        [build.nodes[guid].name for guid in missing],
    )
    if linkinfo is not None:
        add_linkinfo(build, linkinfo, doubles or ())
    add_counters(build, counters or {})
    if not build.links:
        seen = ", ".join(node.name for node in build.nodes.values()) or "no node"
        build.problems.append(f"the discovery found no link, only {seen}: the port is down, or nothing behind it answered")
    reported = [*problems, *discovery.problems, *(linkinfo.problems if linkinfo is not None else ()), *build.problems]
    nodes = {guid: build.nodes[guid] for guid in sorted(build.nodes)}
    links = [build.links[key] for key in sorted(build.links)]
    twins = {guid: list(found) for guid, found in (doubles or {}).items()}
    return Graph(plane, nodes, links, SOURCE, not reported and not twins, reported, twins)


def _add_node(build: Build, found_ports: dict[End, FoundPort], found: FoundNode) -> None:
    kind = kind_of(found.kind, found.description)
    known = build.nodes.get(found.guid)
    if known is None:
        name, device = name_of(found.guid, kind, found.description, build.names)
        known = Node(
            guid=found.guid,
            kind=kind,
            name=name,
            description=found.description,
            device=device,
            system_guid=found.system_guid,
            vendor_id=found.vendor_id,
            device_id=found.device_id,
            lid=found.lid,
        )
        build.nodes[found.guid] = known
    elif (known.kind, known.description) != (kind, found.description):
        build.problems.append(f"two nodes have the GUID {found.guid}: {known.description!r} and {found.description!r}")
        return
    for port in found.ports:
        before = found_ports.setdefault((found.guid, port.number), port)
        if before != port:
            build.problems.append(f"two lines on {build.call((found.guid, port.number))} differ")
        known.ports[port.number] = Port(port.number, port.guid, port.lid, port.lmc, width=port.width, speed=port.speed)
        if port.guid is not None:
            build.port_guids[port.guid] = (found.guid, port.number)


def _add_missing(build: Build, found_ports: Mapping[End, FoundPort]) -> list[str]:
    """Return nodes that are only named as the other ends of links: the text was cut off, or the node did not answer."""
    missing: dict[str, FoundEnd] = {}
    for port in found_ports.values():
        if port.end is not None and port.end.guid not in build.nodes:
            missing.setdefault(port.end.guid, port.end)
    for guid, end in missing.items():
        kind = kind_of(end.kind, end.description)
        name, device = name_of(guid, kind, end.description, build.names)
        lid = end.lid if kind == "switch" else None
        build.nodes[guid] = Node(guid, kind, name, end.description, device, lid=lid)
    return list(missing)


def _add_links(build: Build, found_ports: Mapping[End, FoundPort], missing: Collection[str]) -> None:
    alone, contradicted, rated = [], [], []
    for here, port in found_ports.items():
        if port.end is None:
            continue
        there = (port.end.guid, port.end.port)
        key = (here, there) if here < there else (there, here)
        if key in build.links:
            continue
        back = found_ports.get(there)
        back_end = (back.end.guid, back.end.port) if back is not None and back.end is not None else None
        if here == there or (back_end is not None and back_end != here):
            contradicted.append(f"{build.call(here)} names {build.call(there)}")
            continue
        if back_end is None and there[0] not in missing:
            alone.append(build.call(here))
        _add_far_port(build, port.end)
        rates = [
            (each.width, each.speed) for each in (port, back) if each is not None and each.width is not None and each.speed is not None
        ]
        if len(set(rates)) > 1:
            rated.append(build.call(here))
        width, speed = min(rates, key=lambda rate: rate_gbps(*rate) or 0.0) if rates else (port.width, port.speed)
        build.links[key] = Link(*key, width, speed)
    build.some("only one end reports some links", alone)
    build.some("the other ends of links name other ports", contradicted)
    build.some("the ends of links report different widths or speeds", rated)


def _add_far_port(build: Build, end: FoundEnd) -> None:
    """Add the port at the other end, if its own node does not report it."""
    ports = build.nodes[end.guid].ports
    if end.port not in ports:
        host = build.nodes[end.guid].kind != "switch"
        ports[end.port] = Port(end.port, end.port_guid, end.lid if host else None)
        if end.port_guid is not None:
            build.port_guids.setdefault(end.port_guid, (end.guid, end.port))


def _name_aggregation(build: Build) -> None:
    """Name an aggregation node after its switch."""
    for link in build.links.values():
        for end, other in ((link.a, link.b), (link.b, link.a)):
            node = build.nodes[end[0]]
            if node.kind == AGGREGATION and not node.named:
                build.nodes[end[0]] = replace(node, name=f"{build.nodes[other[0]].name} aggregation")
