# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a planned router announces and accepts, in a form that all renderers share: peer groups, prefix lists and route-maps.

A leaf announces only its own prefixes. A spine announces to cores only what it has learned from its leaves, so no path goes up, down and
up again. For this it marks what comes from cores with a community.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.model import PORT_BITS, Neighbor, RoutedPlane, Router
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.paths import LEAF, SPINE

GROUP, CORES = "FABRIC", "CORES"
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
    """Return the peer groups of a router: that of its leaves and spines, and on a spine that of its cores if it has some."""
    cores = plane.cores_of(router)
    others = tuple(each for each in router.neighbors if each not in cores)
    groups = [PeerGroup(GROUP, others, _most_prefixes(plane, leaf=router.tier == SPINE))]
    return [*groups, *([PeerGroup(CORES, cores, _most_prefixes(plane, leaf=False))] if cores else [])]


def _most_prefixes(plane: RoutedPlane, *, leaf: bool) -> int:
    """Return the most prefixes that a neighbor may send: by the sizes of the pools, so that it stays the same when switches are added.

    leaf: the neighbor is a leaf, which sends its loopback and its host ports; any other sends those of many leaves.
    """
    settings = plane.settings
    if leaf:
        return int(1 + 2 ** (PORT_BITS - settings["leaf_prefix_length"]))
    loopbacks, hosts = (ipaddress.IPv4Network(pool) for pool in (settings["loopbacks"], settings["host_subnets"]))
    return int(loopbacks.num_addresses + 2 ** max(0, PORT_BITS - hosts.prefixlen))


def prefix_lists(plane: RoutedPlane, router: Router) -> dict[str, list[PrefixRule]]:
    """Return the prefix lists by name. OWN: what the router announces as its own. POOLS: what it accepts, so never a default route."""
    own = [PrefixRule(5, f"{router.loopback}/32")]
    if router.subnet is not None:
        own.append(PrefixRule(10, router.subnet, PORT_BITS, PORT_BITS))
    settings = plane.settings
    pools = [PrefixRule(5, settings["loopbacks"], 32), PrefixRule(10, settings["host_subnets"], PORT_BITS, PORT_BITS)]
    return {OWN: own, POOLS: pools}


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
        yield group.outbound, [*denied, MapRule(10, permits=True, prefixes=OWN if router.tier == LEAF else POOLS)]
