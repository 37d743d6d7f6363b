# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An inventory proposed from fabrics and facts: hosts with their rails, as YAML for a person to review, correct and use."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._fabric.graph import Graph
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.discover.inventory_text import OneLine, inventory_text
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.discover.rail_ports import RailPort, find_ports, strange
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.draw.layout import host_names
from ansible_collections.rdma.cluster.plugins.plugin_utils._fleet.majority import some
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import natural

Rail = dict[str, Any]


def inventory(graphs: Sequence[Graph], facts: Mapping[str, Facts]) -> str:
    """Return the text. facts: host of the inventory → its facts. A host of the fabric without facts is named in a comment.

    Hosts with the same rails share a group; if all hosts have the same rails, these are written once. The rate of a rail is that of most of
    its ports.
    """
    ports = find_ports(graphs, facts)
    of_host: dict[str, list[RailPort]] = defaultdict(list)
    for port in ports:
        of_host[port.host].append(port)
    usual = _usual_rates(ports)
    by_host = {host: _rails(of_host[host], usual) for host in sorted(facts, key=natural)}
    notes = [*_notes(graphs, facts, by_host), *strange(ports), *_slow(ports)]
    groups: dict[str, list[str]] = defaultdict(list)
    for host, rails in by_host.items():
        # The YAML writer does not know Ansible's own string type.
        groups[json.dumps(rails)].append("".join(host))
    planes = sorted({port.plane for port in ports} or {graph.plane for graph in graphs})
    own: dict[str, Any] = {"vars": {"rdma_fabric": {"topology": "switched", "planes": {plane: {} for plane in planes}}}}
    members: list[tuple[dict[str, Any], dict[str, Any]]] = [
        (_rail_vars(text), {host: {} for host in hosts}) for text, hosts in groups.items()
    ]
    if len(members) == 1:
        own["vars"].update(members[0][0])
        own["hosts"] = members[0][1]
    elif members:
        own["children"] = {
            f"like_{number}": {**({"vars": rail_vars} if rail_vars else {}), "hosts": hosts}
            for number, (rail_vars, hosts) in enumerate(members, start=1)
        }
    else:
        own["hosts"] = {}
    return inventory_text({"all": own}, notes)


def _rail_vars(text: str) -> dict[str, Any]:
    """Return the variables of a group of hosts. text: their rails as JSON."""
    rails = [OneLine(rail) for rail in json.loads(text)]
    return {"rdma_rails": rails} if rails else {}


def _rails(ports: Sequence[RailPort], usual: Mapping[tuple[str, int], float | None]) -> list[Rail]:
    """Return the rails of a host's ports. usual: the rates of all hosts' ports (_usual_rates)."""
    own = sorted((port for port in ports if port.pci is not None), key=lambda port: (port.rail, port.port))
    double = Counter(port.rail for port in own)
    return [_rail(port, usual[port.plane, port.rail], several=double[port.rail] > 1) for port in own]


def _rail(port: RailPort, rate_gbps: float | None, *, several: bool) -> Rail:
    rail: Rail = {"name": f"rail{port.rail}{f'_{port.port}' if several else ''}", "nic": {"pci": port.pci}, "link_layer": port.link_layer}
    if rate_gbps is not None:
        rail["rate_gbps"] = int(rate_gbps) if float(rate_gbps).is_integer() else rate_gbps
    rail["plane"] = port.plane
    return {**rail, **({"address": port.address} if port.address is not None else {})}


def _usual_rates(ports: Sequence[RailPort]) -> dict[tuple[str, int], float | None]:
    rates: dict[tuple[str, int], Counter[float]] = defaultdict(Counter)
    for port in ports:
        rates[port.plane, port.rail].update([port.rate_gbps] if port.rate_gbps else [])
    return {rail: of.most_common(1)[0][0] if of else None for rail, of in rates.items()}


def _slow(ports: Sequence[RailPort]) -> Iterator[str]:
    usual = _usual_rates(ports)
    for port in ports:
        rate_gbps = usual[port.plane, port.rail]
        if rate_gbps is not None and port.rate_gbps is not None and port.rate_gbps != rate_gbps:
            usual_words = f"most of rail{port.rail} run at {rate_gbps:g}, which is proposed"
            yield f"{port.host} {port.device} runs at {port.rate_gbps:g} Gb/s; {usual_words}"


def _notes(graphs: Sequence[Graph], facts: Mapping[str, Facts], by_host: Mapping[str, Sequence[Rail]]) -> Iterator[str]:
    yield "Proposed by rdma.cluster.discover from the current cabling. Compare it with your plan before you use it."
    if not all(graph.complete for graph in graphs):
        yield "Only a part of the fabric could be read, so this proposal may be incomplete."
    unread = [name for graph in graphs for name in host_names(graph) if name not in facts]
    if unread:
        yield f"In the fabric, but not read: {some(list(dict.fromkeys(unread)))}."
    outside = [host for host, rails in by_host.items() if not rails]
    if outside:
        yield f"Read, but without a port in the fabric: {some(outside)}."
    plain = [host for host, rails in by_host.items() if any(rail["link_layer"] == "roce" and "address" not in rail for rail in rails)]
    if plain:
        yield f"RoCE needs an address on each rail. These hosts have rails without one: {some(plain)}."
