# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ethernet planes: what hosts were told by LLDP, joined to one graph of each plane."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ansible_collections.rdma.cluster.plugins.module_utils._fabric.graph import Graph, Link, merged
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.entry import Reading
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.expected import Known
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.readings import LLDP, ethernet, readings
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.view import Expected
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder

SILENT = "no neighbour told its name by LLDP on any of its rails"


@dataclass
class Ports:
    """An Ethernet plane. of_hosts: host → why it does not tell its neighbours; why_not: why there is no graph."""

    expected: list[Expected] = field(default_factory=list)
    graph: Graph | None = None
    read_at: float = 0.0
    why_not: str | None = None
    of_hosts: dict[str, str] = field(default_factory=dict)


def ethernet_planes(folder: RunFolder, hosts: Known) -> dict[str, Ports]:
    """Each plane that hosts have RoCE rails of hardware on. A host tells of its own interfaces alone."""
    told = readings(folder, LLDP)
    found: dict[str, Ports] = {}
    for host, known in hosts.items():
        if known["intent"] and known["facts"]:
            for plane, rails in ethernet(known["intent"], known["facts"]).items():
                ports = found.setdefault(plane, Ports())
                for rail in rails:
                    role = str(rail.rail.get("role") or "compute")
                    rate_gbps = rail.rail.get("rate_gbps")
                    ports.expected.append(
                        Expected(host, rail.name, f"{host} {rail.netdev}", rail.netdev, rate_gbps=rate_gbps, plane=plane, role=role)
                    )
    for plane, ports in found.items():
        _join(plane, ports, told)
    return found


def _join(plane: str, ports: Ports, told: Mapping[str, Reading]) -> None:
    rails = {str(each.guid) for each in ports.expected}
    graphs = []
    for host in dict.fromkeys(each.host for each in ports.expected):
        reading = told.get(host)
        graph = _of_rails(reading.graph, rails) if reading is not None and reading.graph is not None else None
        if reading is None or graph is None or (graph.problems and not graph.nodes):
            ports.of_hosts[host] = "; ".join(graph.problems) if graph is not None else "it was not asked for its neighbours"
        else:
            graphs.append(graph)
            ports.read_at = max(ports.read_at, reading.read_at)
    if not graphs:
        ports.why_not = "no host tells its neighbours by LLDP"
    elif not any(graph.links for graph in graphs):
        ports.why_not = SILENT
    else:
        graph = merged(plane, graphs)
        silent = (
            [f"{len(ports.of_hosts)} hosts do not tell their neighbours: {', '.join(list(ports.of_hosts)[:4])}"] if ports.of_hosts else []
        )
        ports.graph = replace(graph, complete=graph.complete and not silent, problems=[*graph.problems, *silent])


def _of_rails(graph: Graph, rails: set[str]) -> Graph:
    """What a host's rails are plugged into: its other interfaces are none of this plane's."""
    links: list[Link] = [link for link in graph.links if {link.a[0], link.b[0]} & rails]
    ends = {end[0] for link in links for end in (link.a, link.b)}
    return replace(graph, nodes={guid: node for guid, node in graph.nodes.items() if guid in ends}, links=links)
