# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The hosts that speak BGP with their leaves (`hosts_peer`): their ASNs, sessions and interfaces, and what speaks against them.

A host has one ASN and one router ID in all of its planes: those of its first plane, by name.
"""

from __future__ import annotations

import ipaddress
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent, RoutingIntent
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.cabling.plan import Plan, Spot
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.model import HostPort, Neighbor, RoutedPlane, Router
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.paths import HOST
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.keys import HOST as HOST_NAME
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.keys import NAME, is_form
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.rules.routing import HOST_OFFSET, last_asn

#: (host, rail) → interface.
Interfaces = Mapping[tuple[str, str], str]


def host_problems(settings: RoutingIntent, cabling: Plan, syntaxes: Mapping[str, str]) -> Iterator[str]:
    """Yield why the hosts of a plane cannot speak BGP, a sentence for each offender. syntaxes: of each switch."""
    if not settings["hosts_peer"]:
        return
    # (host, rail) → the ports of its cables.
    ends: dict[tuple[str, str], list[Spot]] = defaultdict(list)
    for link in cabling.links:
        for spot, other in ((link.a, link.b), (link.b, link.a)):
            if spot.device is not None and other.device is None:
                ends[spot.name, spot.device].append(other)
    leaves = dict.fromkeys(spot.name for spots in ends.values() for spot in spots)
    for leaf in leaves:
        if syntaxes[leaf] != "frr":
            yield f"{leaf} has syntax {syntaxes[leaf]}, but hosts_peer is written for FRR alone: set hosts_peer: false, or syntax: frr"
    for (host, device), spots in ends.items():
        if problem := _end_problem(host, device, spots, cabling):
            yield problem


def _end_problem(host: str, device: str, spots: Sequence[Spot], cabling: Plan) -> str:
    """Return why a rail cannot have a session, "" if it can. spots: the ports of its cables."""
    if host in cabling.switches:
        return f"{host} is a host and a switch: with hosts_peer, each needs a name of its own"
    if not is_form(HOST_NAME, host):
        return f"{host!r} cannot be the name of a host that speaks BGP: expected {HOST_NAME.words}"
    if not is_form(NAME, device):
        return f"{host} has a cable at {device!r}: with hosts_peer, the cabling plan names the rail"
    if len(spots) > 1:
        ports = " and ".join(f"{each.name}/{each.port}" for each in spots)
        return f"{host} {device} has cables to {ports}: with hosts_peer, a rail has one cable to one leaf. Make two rails of it"
    return ""


def make_hosts(settings: RoutingIntent, routers: Mapping[str, Router]) -> tuple[dict[str, Router], dict[str, Router]]:
    """Return the switches with their sessions to hosts, and the hosts. Raises ValueError if there is no ASN for a host.

    A host's ASN follows from the number of its first /31 in the pool, so it stays the same when others are added.
    """
    if not settings["hosts_peer"]:
        return dict(routers), {}
    places: dict[str, list[tuple[Router, HostPort]]] = defaultdict(list)
    for router in routers.values():
        for port in router.host_ports:
            places[port.host].append((router, port))
    pool = int(ipaddress.IPv4Network(settings["host_subnets"]).network_address)
    hosts = {}
    for name, spots in places.items():
        ports = tuple(port for _leaf, port in spots)
        first = min(ports, key=lambda port: int(ipaddress.ip_interface(port.address)))
        number = (int(ipaddress.ip_interface(first.address)) - pool) // 2
        asn = settings["asn_base"] + HOST_OFFSET + number
        if asn > (last := last_asn(settings)):
            raise ValueError(f"{name} would have ASN {asn}, after the last one for private use ({last}): use a smaller asn_base")
        sessions = tuple(Neighbor(port.device, leaf.name, port.port) for leaf, port in spots)
        address = first.host_address.partition("/")[0]
        hosts[name] = Router(name, HOST, number, asn, address, None, sessions, ports)
    of_leaf = {
        name: replace(router, hosts=tuple(Neighbor(port.port, port.host, port.device) for port in router.host_ports))
        for name, router in routers.items()
    }
    return of_leaf, hosts


def with_identities(planes: Sequence[RoutedPlane]) -> tuple[list[RoutedPlane], list[str]]:
    """Return the planes with one ASN and one router ID for each host, and the hosts whose ASN another router has, a sentence each."""
    firsts: dict[str, Router] = {}
    for plane in planes:
        for name, host in plane.hosts.items():
            firsts.setdefault(name, host)
    found = []
    problems = []
    for plane in planes:
        hosts = {
            name: replace(host, asn=firsts[name].asn, identity=firsts[name].loopback if host.loopback != firsts[name].loopback else "")
            for name, host in plane.hosts.items()
        }
        found.append(replace(plane, hosts=hosts))
        owners: dict[int, str] = {router.asn: router.name for router in plane.routers.values()}
        for name, host in hosts.items():
            owner = owners.setdefault(host.asn, name)
            if owner != name:
                words = f"plane {plane.name}: {name} and {owner} would both have ASN {host.asn}, so they refuse each other's routes"
                problems.append(f"{words}: give the planes of {name} an asn_base each, 2000000 apart")
    return found, problems


def with_interfaces(plane: RoutedPlane, interfaces: Interfaces) -> RoutedPlane:
    """Return the plane with the interfaces of the hosts' rails. A host that was not read keeps the names of its rails."""

    def of_leaf(each: Neighbor) -> Neighbor:
        return replace(each, its_port=interfaces.get((each.name, each.its_port), each.its_port))

    routers = {name: replace(router, hosts=tuple(map(of_leaf, router.hosts))) for name, router in plane.routers.items()}
    hosts = {
        name: replace(host, neighbors=tuple(replace(each, port=interfaces.get((name, each.port), each.port)) for each in host.neighbors))
        for name, host in plane.hosts.items()
    }
    return replace(plane, routers=routers, hosts=hosts)


def peer_problems(plane: RoutedPlane, intents: Mapping[str, Intent]) -> list[str]:
    """Return the hosts of this run whose rails cannot have a session, a sentence each."""
    found = []
    for name, host in plane.hosts.items():
        rails = {rail["name"]: rail for rail in intents[name]["rails"]} if name in intents else {}
        for port in host.host_ports if rails else ():
            rail = rails.get(port.device)
            if rail is None:
                known = ", ".join(rails)
                found.append(f"{name} has no rail {port.device}: with hosts_peer, the cabling plan names its rails ({known})")
            elif rail["bond"] is not None:
                found.append(f"{name} {port.device} is a bond: with hosts_peer, a rail has one cable to one leaf. Make two rails of it")
    missing = [host for host, intent in intents.items() if host not in plane.hosts and _peers(intent, plane.name)]
    if missing and plane.settings["hosts_peer"]:
        found.append(f"{', '.join(missing[:4])} would speak BGP in plane {plane.name}, but the cabling plan has no cable of it")
    return found


def _peers(intent: Intent, plane: str) -> bool:
    return any(rail["plane"] == plane for rail in intent["rails"])
