# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The model of a routed plane: its switches, their numbers, addresses and neighbors, and the number of equal paths between them."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import RoutingIntent
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.paths import CORE, HOST, SPINE, Node, equal_paths

#: The prefix length of a host port: two addresses, that of the switch and that of the host (RFC 3021).
PORT_BITS = 31


class RoutingError(ValueError):
    """The cables or the pools cannot be routed. The message has one line for each problem."""


@dataclass(frozen=True)
class Neighbor:
    """A switch, or a host with BGP, at the other end of a cable. port: our interface; its_port: that of the neighbor."""

    port: str
    name: str
    its_port: str


@dataclass(frozen=True)
class HostPort:
    """A leaf's port to a host. address: of the port; host_address: of the host; both with prefix length. device: as in the cabling plan."""

    port: str
    host: str
    device: str
    address: str
    host_address: str

    @property
    def prefix(self) -> str:
        """The subnet of the cable, "10.1.0.66/31"."""
        return str(ipaddress.ip_interface(self.address).network)

    @property
    def host_prefix(self) -> str:
        """The address of the host alone, which a host with BGP announces: "10.1.0.67/32"."""
        return f"{self.host_address.partition('/')[0]}/32"


@dataclass(frozen=True)
class Router:
    """A switch that routes, or a host with BGP.

    number: its position in its tier, from 1; of a host, that of its first /31 in the pool, from 0. loopback: an IPv4 address; of a host,
    that of its first rail. subnet: of a leaf's hosts, None: no leaf. pod: the number of its pod, None: a core, a host, or a plane without
    cores. syntax: the form of its configuration. neighbors and host_ports are in the order of their port numbers. host_ports: of a leaf its
    own; of a host, the ports that its neighbors are at, in the same order. hosts: those with which a leaf has a session.
    identity: the router ID, "": the loopback.
    """

    name: str
    tier: str
    number: int
    asn: int
    loopback: str
    subnet: str | None
    neighbors: tuple[Neighbor, ...]
    host_ports: tuple[HostPort, ...]
    pod: int | None = None
    syntax: str = "frr"
    hosts: tuple[Neighbor, ...] = ()
    identity: str = ""

    @property
    def router_id(self) -> str:
        return self.identity or self.loopback

    @property
    def sessions(self) -> tuple[Neighbor, ...]:
        """All neighbors, switches first."""
        return self.neighbors + self.hosts


@dataclass(frozen=True)
class RoutedPlane:
    """The plan of a plane: all of its routers, in the order of the cabling plan. names: (switch, number of its port) → interface.

    hosts: those that speak BGP (`hosts_peer`), in the order of their ports; none otherwise.
    """

    name: str
    settings: RoutingIntent
    routers: Mapping[str, Router]
    names: Mapping[tuple[str, int], str] = field(default_factory=dict)
    hosts: Mapping[str, Router] = field(default_factory=dict)

    @cached_property
    def speakers(self) -> dict[str, Router]:
        """Return all that speak BGP by name: the switches, and the hosts if they do."""
        return {**self.routers, **self.hosts}

    @cached_property
    def own_prefixes(self) -> dict[str, list[str]]:
        """Return speaker → the prefixes that it announces as its own.

        Those of a switch are its loopback and the subnets of its host ports, those of a host the addresses of its rails.
        """
        return {
            name: [port.host_prefix for port in each.host_ports]
            if each.tier == HOST
            else [f"{each.loopback}/32", *(port.prefix for port in each.host_ports)]
            for name, each in self.speakers.items()
        }

    @cached_property
    def has_cores(self) -> bool:
        return any(router.tier == CORE for router in self.routers.values())

    def cores_of(self, router: Router) -> tuple[Neighbor, ...]:
        """Return the neighbors of a spine that are cores."""
        return tuple(each for each in router.neighbors if router.tier == SPINE and self.routers[each.name].tier == CORE)

    @cached_property
    def paths(self) -> dict[str, dict[str, int]]:
        """Return speaker → switch → the planned number of equal paths to it."""
        return self.paths_by({name: router.sessions for name, router in self.speakers.items()})

    def paths_by(self, neighbors: Mapping[str, Iterable[Neighbor]]) -> dict[str, dict[str, int]]:
        """Return speaker → switch → the number of equal paths to it by some of the sessions. neighbors: those of each speaker."""
        nodes = {
            name: Node(router.tier, router.asn, tuple(each.name for each in neighbors[name])) for name, router in self.speakers.items()
        }
        return equal_paths(nodes)

    def widths(self, name: str) -> dict[str, int]:
        """Return switch → the planned number of equal paths to it. Routers of the upper tiers do not all reach each other."""
        return self.paths[name]
