# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files of FRR for a host that speaks BGP with its leaves (`hosts_peer`): one frr.conf for all planes of the host.

The host announces on each rail the address of that rail alone, so it never carries traffic of others, and no rail takes the traffic of
another one. It accepts the prefixes of the rail's plane alone. The network manager sets the addresses of the rails, not FRR.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ansible_collections.rdma.cluster.plugins.module_utils._routing.read import LINKDOWN
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.frr import (
    head_lines,
    head_of,
    interface_lines,
    prefix_list_lines,
    route_map_lines,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.model import HostPort, Neighbor, RoutedPlane
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.policy import (
    RESTART_MINUTES,
    MapRule,
    PrefixRule,
    most_prefixes,
    pool_rules,
)

#: A rail of the host: its plane, its session, and the port of the leaf.
HostRail = tuple[RoutedPlane, Neighbor, HostPort]


def render_host(planes: Sequence[RoutedPlane], host: str) -> str:
    """Return frr.conf of a host, with a final line break. planes: those in which it speaks BGP."""
    return "\n".join([*_lines(planes, host), ""])


def render_host_sysctls() -> str:
    """Return the kernel settings of a host as lines of sysctl.d. It passes nothing on, so forwarding stays as it is."""
    return f"{LINKDOWN} = 1\n"


def _rails(planes: Sequence[RoutedPlane], host: str) -> list[HostRail]:
    own = [(plane, plane.hosts[host]) for plane in planes if host in plane.hosts]
    return [(plane, *pair) for plane, router in own for pair in zip(router.neighbors, router.host_ports, strict=True)]


def _lines(planes: Sequence[RoutedPlane], host: str) -> Iterator[str]:
    rails = _rails(planes, host)
    yield head_of(*planes)
    yield from head_lines(host)
    yield "! The kernel drops a port without carrier from a group of next hops, and FRR 8.4.4 does not add it again."
    yield "no zebra nexthop kernel enable"
    yield "!"
    for _plane, each, _port in rails:
        yield from interface_lines(each)
    yield from _bgp(planes[0].hosts[host].asn, planes[0].hosts[host].router_id, rails)
    yield "! OWN-…: the address of one rail, all that the host announces there. POOLS-…: what it accepts, so never a default route."
    for plane in planes:
        yield from prefix_list_lines(f"POOLS-{plane.name}", pool_rules(plane))
    for _plane, _each, port in rails:
        yield from prefix_list_lines(f"OWN-{port.device}", [PrefixRule(5, port.host_prefix)])
    yield "!"
    for plane in planes:
        yield from route_map_lines(f"{plane.name}-IN", MapRule(10, permits=True, prefixes=f"POOLS-{plane.name}"))
    for _plane, _each, port in rails:
        yield from route_map_lines(f"{port.device}-OUT", MapRule(10, permits=True, prefixes=f"OWN-{port.device}"))
    yield "end"


def _bgp(asn: int, router_id: str, rails: Sequence[HostRail]) -> Iterator[str]:
    yield f"router bgp {asn}"
    yield f" bgp router-id {router_id}"
    yield " bgp bestpath as-path multipath-relax"
    yield " ! The address of a rail is a part of its /31, so the host's table has no route of this length."
    yield " no bgp network import-check"
    for plane, each, _port in rails:
        yield f" neighbor {each.port} interface v6only remote-as external"
        if plane.settings["bfd"]:
            yield f" neighbor {each.port} bfd"
        yield f" neighbor {each.port} timers connect 1"
    yield " !"
    yield " address-family ipv4 unicast"
    yield "  ! Nothing is redistributed, so neither the management network nor a default route can be announced."
    yield from (f"  network {port.host_prefix}" for _plane, _each, port in rails)
    for plane, each, port in rails:
        yield f"  neighbor {each.port} route-map {plane.name}-IN in"
        yield f"  neighbor {each.port} route-map {port.device}-OUT out"
        yield f"  neighbor {each.port} maximum-prefix {most_prefixes(plane, leaf=False)} restart {RESTART_MINUTES}"
    yield f"  maximum-paths {max(plane.settings['maximum_paths'] for plane, _each, _port in rails)}"
    yield from (" exit-address-family", "exit", "!")
