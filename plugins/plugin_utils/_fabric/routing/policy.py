# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a planned router announces and accepts, in a form that all renderers share: peer groups, prefix lists and route-maps.

A leaf announces only its own prefixes and the addresses of its hosts. It accepts from a host only the address of that port. A spine
announces to cores only what it has learned from its leaves, so no path goes up, down and up again. For this it marks what comes from cores
with a community.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.model import PORT_BITS, Neighbor, RoutedPlane, Router
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.paths import LEAF, SPINE

GROUP, CORES, HOSTS = "FABRIC", "CORES", "HOSTS"
OWN, POOLS, FROM_CORES = "OWN", "POOLS", "FROM-CORES"
#: The mark of routes from cores. It has no meaning outside of this fabric: its first half is an ASN for private use.
COMMUNITY = "64512:1"
#: The minutes after which a session that exceeded its maximum of prefixes is tried again.
RESTART_MINUTES = 5


@dataclass(frozen=True)
class PeerGroup:
    """Neighbors with the same route-maps, NAME-IN and NAME-OUT. most_prefixes: the most that one of them may send."""

    name: str
    neighbors: tuple[Neighbor, ...]
    most_prefixes: int

    @property
    def inbound(self) -> str:
        return f"{self.name}-IN"

    @property
    def outbound(self) -> str:
        return f"{self.name}-OUT"


@dataclass(frozen=True)
class PrefixRule:
    """A permitted prefix of a prefix list. least, most: the limits of the length, None: that of the prefix alone."""

    number: int
    prefix: str
    least: int | None = None
    most: int | None = None


@dataclass(frozen=True)
class MapRule:
    """A rule of a route-map. prefixes, community: the lists that must match, None: any. sets: the community that it sets."""

    number: int
    permits: bool
    prefixes: str | None = None
    community: str | None = None
    sets: str | None = None


def peer_groups(plane: RoutedPlane, router: Router) -> list[PeerGroup]:
    """Return the peer groups of a router: its leaves and spines; on a spine its cores, on a leaf its hosts with BGP, if it has some."""
    cores = plane.cores_of(router)
    others = tuple(each for each in router.neighbors if each not in cores)
    groups = [PeerGroup(GROUP, others, most_prefixes(plane, leaf=router.tier == SPINE))]
    return [
        *groups,
        *([PeerGroup(CORES, cores, most_prefixes(plane, leaf=False))] if cores else []),
        *([PeerGroup(HOSTS, router.hosts, 1)] if router.hosts else []),
    ]


def most_prefixes(plane: RoutedPlane, *, leaf: bool) -> int:
    """Return the most prefixes that a neighbor may send: by the sizes of the pools, so that it stays the same when switches are added.

    leaf: the neighbor is a leaf, which sends its loopback and its host ports; any other sends those of many leaves.
    """
    settings = plane.settings
    # With hosts_peer, each port has its /31 and the host's /32.
    of_port = 2 if settings["hosts_peer"] else 1
    if leaf:
        return int(1 + of_port * 2 ** (PORT_BITS - settings["leaf_prefix_length"]))
    loopbacks, hosts = (ipaddress.IPv4Network(pool) for pool in (settings["loopbacks"], settings["host_subnets"]))
    return int(loopbacks.num_addresses + of_port * 2 ** max(0, PORT_BITS - hosts.prefixlen))


def prefix_lists(plane: RoutedPlane, router: Router) -> dict[str, list[PrefixRule]]:
    """Return the prefix lists by name. OWN: what the router announces as its own. POOLS: what it accepts, so never a default route."""
    own = [PrefixRule(5, f"{router.loopback}/32")]
    if router.subnet is not None:
        own.append(PrefixRule(10, router.subnet, PORT_BITS, _longest(plane)))
    return {OWN: own, POOLS: pool_rules(plane), **{host_list(each): [PrefixRule(5, prefix)] for each, prefix in host_prefixes(router)}}


def pool_rules(plane: RoutedPlane) -> list[PrefixRule]:
    """Return the rules that permit all prefixes of a plane and nothing else."""
    settings = plane.settings
    return [PrefixRule(5, settings["loopbacks"], 32), PrefixRule(10, settings["host_subnets"], PORT_BITS, _longest(plane))]


def _longest(plane: RoutedPlane) -> int | None:
    """Return the largest prefix length below a subnet: that of a port; None, up to a single address, if hosts announce theirs."""
    return None if plane.settings["hosts_peer"] else PORT_BITS


def host_prefixes(router: Router) -> Iterator[tuple[Neighbor, str]]:
    """Yield the hosts with BGP of a leaf, each with the one prefix that it may announce."""
    of_port = {port.port: port.host_prefix for port in router.host_ports}
    return ((each, of_port[each.port]) for each in router.hosts)


def host_list(neighbor: Neighbor) -> str:
    """Return the name of the prefix list of a leaf's port to a host with BGP."""
    return f"HOST-{neighbor.port}"


def community_lists(plane: RoutedPlane, router: Router) -> dict[str, str]:
    """Return the community lists by name, each with the one community that it permits."""
    return {FROM_CORES: COMMUNITY} if plane.cores_of(router) else {}


def route_maps(plane: RoutedPlane, router: Router) -> Iterator[tuple[str, list[MapRule]]]:
    """Yield the route-maps by name. What no rule permits is denied."""
    yield OWN, [MapRule(10, permits=True, prefixes=OWN)]
    for group in peer_groups(plane, router):
        cores = group.name == CORES
        yield group.inbound, [MapRule(10, permits=True, prefixes=POOLS, sets=COMMUNITY if cores else None)]
        denied = [MapRule(5, permits=False, community=FROM_CORES)] if cores else []
        up = router.tier == LEAF and group.name != HOSTS
        yield group.outbound, [*denied, MapRule(10, permits=True, prefixes=OWN if up else POOLS)]
