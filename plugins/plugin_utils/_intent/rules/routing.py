# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Conflicts of rdma_fabric.planes.NAME.routing with itself, with other planes, with the management network and with the rails."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import FabricIntent, Plane, Rail, RoutingIntent
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.rules.roce import Problem
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.routing import PRIVATE_16, PRIVATE_32

#: Leaf number N has asn_base + LEAF_OFFSET + N, so that spines and leaves can be added without a change of the others.
LEAF_OFFSET = 100
#: In a plane with cores, spines have the numbers up to this one, and core number N has CORE_OFFSET + N.
CORE_OFFSET = 64
#: The host whose first /31 has number N in `host_subnets` has asn_base + HOST_OFFSET + N.
HOST_OFFSET = 1_000_000
POOLS = ("loopbacks", "host_subnets")


def last_asn(routing: RoutingIntent) -> int:
    """Return the last ASN for private use in the range of asn_base. Raises ValueError if asn_base is not for private use."""
    for first, last in (PRIVATE_16, PRIVATE_32):
        if first <= routing["asn_base"] <= last:
            return last
    raise ValueError(f"{routing['asn_base']} is not for private use")


def routing_problems(fabric: FabricIntent, rails: Sequence[Rail]) -> Iterator[Problem]:
    """Yield problems by paths below rdma_fabric. rails: [] if they are invalid."""
    taken: list[tuple[str, ipaddress.IPv4Network]] = []
    for name, plane in fabric["planes"].items():
        routing = plane["routing"]
        if routing is None:
            continue
        where = f"planes.{name}.routing"
        for key, message, expected in (*_plane(fabric, plane, name, rails), *_numbers(routing)):
            yield f"{where}{key}", message, expected
        for pool in POOLS:
            network = ipaddress.IPv4Network(routing[pool])  # type: ignore[literal-required]
            for other, known in taken:
                if network.overlaps(known):
                    yield f"{where}.{pool}", f"is {network}, which overlaps {known}, {other}", "a network of its own"
            yield from ((f"{where}.{pool}", *words) for words in _management(fabric, network))
            taken.append((f"{pool} of plane {name}", network))


def _plane(fabric: FabricIntent, plane: Plane, name: str, rails: Sequence[Rail]) -> Iterator[Problem]:
    if plane["plan"] is None:
        message = "is given without `plan`: the neighbors of a switch are those of its planned cables"
        yield "", message, f"rdma_fabric.planes.{name}.plan"
    if plane["subnet_manager"] is not None:
        yield "", "is given, but the plane has a subnet_manager, so it is InfiniBand", "one of the two"
    if fabric["topology"] != "switched":
        yield "", f"is given, but rdma_fabric.topology is {fabric['topology']}", "nothing, or topology: switched"
    infiniband = [rail["name"] for rail in rails if rail["plane"] == name and rail["link_layer"] == "infiniband"]
    if infiniband:
        yield "", f"is given, but {', '.join(infiniband)} of this plane is InfiniBand", "RoCE rails, or no routing"


def _numbers(routing: RoutingIntent) -> Iterator[Problem]:
    base = routing["asn_base"]
    private = f"{PRIVATE_16[0]} to {PRIVATE_16[1]}, or {PRIVATE_32[0]} to {PRIVATE_32[1]}"
    try:
        last = last_asn(routing)
    except ValueError as error:
        yield ".asn_base", f"is {base}: {error} (RFC 6996)", private
    else:
        if base + LEAF_OFFSET >= last:
            message = f"is {base}, which leaves no ASN for leaves: theirs begin at {base + LEAF_OFFSET + 1}, and the last one is {last}"
            yield ".asn_base", message, f"at most {last - LEAF_OFFSET - 1}, or {PRIVATE_32[0]}"
        if routing["hosts_peer"] and base + HOST_OFFSET >= last:
            message = f"is true, but the ASNs of hosts begin at asn_base + {HOST_OFFSET}, and asn_base is {base}"
            yield (
                ".hosts_peer",
                message,
                f"hosts_peer: false, or an asn_base of 32 bits, {PRIVATE_32[0]} to {PRIVATE_32[1] - HOST_OFFSET - 1}",
            )
    pool = ipaddress.IPv4Network(routing["host_subnets"])
    if pool.prefixlen > routing["leaf_prefix_length"]:
        message = f"is {routing['leaf_prefix_length']}, but host_subnets {pool} is smaller"
        yield ".leaf_prefix_length", message, f"{pool.prefixlen} to 30"


def _management(fabric: FabricIntent, network: ipaddress.IPv4Network) -> Iterator[tuple[str, str]]:
    subnet = (fabric["management"] or {}).get("subnet")
    if subnet is None or ":" in subnet or not network.overlaps(ipaddress.IPv4Network(subnet)):
        return
    yield f"is {network}, which overlaps {subnet}: the management network must not be in the fabric", "a network of its own"
