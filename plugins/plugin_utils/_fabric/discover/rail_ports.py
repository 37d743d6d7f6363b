# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rail of each port of a host: by its leaf if each leaf belongs to one rail, else by the order of the host's cards."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ansible_collections.rdma.cluster.plugins.module_utils._fabric.graph import Graph
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.device import Device
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.expected import graph_guid
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.keys import ADDRESS, is_form

#: A leaf belongs to one rail if this share of its ports does. Leaves decide only if all of them do.
PURE = 0.8
PCI = re.compile(r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]")


@dataclass(frozen=True)
class RailPort:
    """A port of a host in a fabric. pci, mac: of the NIC, None if unknown. rail: its number. leaf: name of its switch."""

    host: str
    plane: str
    device: str
    port: int
    leaf: str
    rate_gbps: float | None
    pci: str | None
    link_layer: str
    address: str | None
    rail: int = 0


def find_ports(graphs: Sequence[Graph], facts: Mapping[str, Facts]) -> list[RailPort]:
    """Return the ports of hosts with facts in the fabrics, with their rails; host by host, in the order of PCI addresses.

    A device is found by its GUID; on Ethernet, by the names of host and interface.
    """
    found = {host: sorted(_ports(host, known, graphs), key=lambda port: (port.pci or "", port.device)) for host, known in facts.items()}
    numbered = [replace(port, rail=number) for ports in found.values() for number, port in enumerate(ports)]
    return _by_leaves(numbered)


def _ports(host: str, facts: Facts, graphs: Sequence[Graph]) -> Iterator[RailPort]:
    for name, device in facts.devices.items():
        for number, port in device.ports.items():
            for graph in graphs:
                guid = _guid(graph, host, device, port.netdev or name)
                leaf = None if guid is None else graph.peer(guid, int(number))
                if guid is None or leaf is None or leaf[0] not in graph.nodes:
                    continue
                layer = "infiniband" if port.link_layer == "InfiniBand" else "roce"
                netdev = facts.netdevs.get(port.netdev or "")
                addresses = (netdev.ipv4 or netdev.ipv6 if netdev else None) or []
                yield RailPort(
                    host,
                    graph.plane,
                    name,
                    int(number),
                    graph.nodes[leaf[0]].name,
                    port.rate_gbps,
                    _pci(device.pci.address if device.pci else None),
                    layer,
                    next((each for each in addresses if layer == "roce" and is_form(ADDRESS, each)), None),
                )


def _pci(address: str | None) -> str | None:
    """Return a host's PCI address if it has the right form. It becomes a value of an inventory, where other text could be a template."""
    return address if address and PCI.fullmatch(address) else None


def _guid(graph: Graph, host: str, device: Device, interface: str) -> str | None:
    guid = graph_guid(device.node_guid)
    if guid in graph.nodes:
        return guid
    # As lldp_graph names a host's interface.
    known = f"{host} {interface}"
    return known if graph.source == "lldp" and known in graph.nodes else None


def _by_leaves(ports: Sequence[RailPort]) -> list[RailPort]:
    """Return the ports, numbered by leaf where the leaves decide, else by order. This corrects hosts whose cards have another order."""
    on: dict[tuple[str, str], Counter[int]] = defaultdict(Counter)
    for port in ports:
        on[port.plane, port.leaf][port.rail] += 1
    usual = {leaf: of.most_common(1)[0] for leaf, of in on.items()}
    if any(often < PURE * on[leaf].total() for leaf, (_rail, often) in usual.items()):
        return list(ports)
    by_host: dict[str, list[RailPort]] = defaultdict(list)
    for port in ports:
        by_host[port.host].append(port)
    found: list[RailPort] = []
    for own in by_host.values():
        rails = [usual[port.plane, port.leaf][0] for port in own]
        names = rails if len(set(rails)) == len(rails) else [port.rail for port in own]
        found += [replace(port, rail=rail) for port, rail in zip(own, names, strict=True)]
    return found


def strange(ports: Sequence[RailPort]) -> list[str]:
    """Return sentences about suspicious ports: those on another leaf than nearly all ports of their rail."""
    leaves: dict[tuple[str, int], Counter[str]] = defaultdict(Counter)
    rails: dict[tuple[str, str], Counter[int]] = defaultdict(Counter)
    for port in ports:
        leaves[port.plane, port.rail][port.leaf] += 1
        rails[port.plane, port.leaf][port.rail] += 1
    found = []
    for port in ports:
        rail, often = rails[port.plane, port.leaf].most_common(1)[0]
        if rail != port.rail and often >= PURE * rails[port.plane, port.leaf].total():
            where = f"{port.host} {port.device} ({port.pci or 'no PCI address'})"
            found.append(f"{where} would be rail{port.rail}, but is cabled to {port.leaf}, a leaf of rail{rail}")
    return found
