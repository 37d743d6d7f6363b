# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Check of the network gate on hosts that forward by several equal routes: the kernel must hash the ports of packets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import NOT_APPLICABLE, OK, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._net.planes import FORWARDING, HASH_POLICY, MultipathRoute, Planes
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import ResolvedRail, resolve
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.network.management import rail_under

CHECK, STAGE = "network.multipath", "network"
declare(
    {
        CHECK: Check(
            "network",
            "IPv4 routes with several next hops through RoCE rails, on a host that forwards: the kernel must select the next hop by ports "
            "too; not applicable to a host that does not forward; no finding without such routes",
            "rtnetlink; `/proc/sys/net/ipv4/fib_multipath_hash_policy`; `/proc/sys/net/ipv4/ip_forward`",
            "set `net.ipv4.fib_multipath_hash_policy: 1` in `rdma_host.sysctl`, or disable forwarding",
            sources=(reads.file("/proc/net/route"), reads.kernel("RTM_GETROUTE"), reads.file(HASH_POLICY), reads.file(FORWARDING)),
        ),
    }
)

KEY = "net.ipv4.fib_multipath_hash_policy"
FORWARD = "net.ipv4.ip_forward"
SUBJECT = "routes with several next hops"
EXPECTED = f"{KEY} is 1 or 3, so that each queue pair's UDP source port counts"
#: Ports are hashed by policy 1 (layer 4), and by 3, whose fields are chosen by fib_multipath_hash_fields. 0 and 2 use addresses: 2 looks
#: into tunnels, of which RoCE is none.
_HASH_PORTS = (1, 3)


def check_multipath(host: str, intent: Intent, facts: Facts) -> list[Finding]:
    """Return the finding network.multipath; none without routes with several next hops through RoCE rails.

    All queue pairs of two addresses differ in their UDP source port only (RoCEv2, IBTA annex A17). If a host that forwards does not hash
    ports, all of them take one path. A host's own queue pairs do not depend on the hash: the kernel looks up the next hop by the addresses
    and the interface of the GID alone (Linux, drivers/infiniband/core/addr.c; drivers/infiniband/sw/rxe/rxe_net.c). Linux switches have
    no rails and are not hosts of the inventory: fabric.bgp checks those of a routed plane.
    """
    planes = facts.planes
    if planes is None or planes.multipath is None:
        seen = "the routes were not read" + (f": {planes.way_error}" if planes is not None and planes.way_error else "")
        return [Finding(STAGE, CHECK, host, SUBJECT, UNKNOWN, seen, EXPECTED, f"Run `ip -4 route show table all` on {host}.")]
    routes = list(_through_rails(planes.multipath, resolve(intent["rails"], facts), facts))
    return [_judged(host, planes, routes)] if routes else []


def _through_rails(routes: Sequence[MultipathRoute], rails: Sequence[ResolvedRail], facts: Facts) -> Iterator[MultipathRoute]:
    for route in routes:
        through = [rail_under(netdev, rails, facts) for netdev in route.netdevs]
        if any(rail is not None and rail.rail["link_layer"] == "roce" for rail in through):
            yield route


def _over(routes: Sequence[MultipathRoute]) -> str:
    first = routes[0]
    more = f" and {len(routes) - 1} more" if len(routes) > 1 else ""
    return f"{first.network}{more} over {', '.join(dict.fromkeys(first.netdevs))}"


def _judged(host: str, planes: Planes, routes: Sequence[MultipathRoute]) -> Finding:
    over, policy = _over(routes), planes.hash_policy
    for key, value in ((KEY, policy), (FORWARD, planes.forwarding)):
        if value is None:
            unread = f"{key} was not read; {over}"
            return Finding(STAGE, CHECK, host, SUBJECT, UNKNOWN, unread, EXPECTED, f"Run `sysctl {key}` on {host}.")
    observed = f"{KEY} is {policy}; {over}"
    if policy in _HASH_PORTS:
        return Finding(STAGE, CHECK, host, SUBJECT, OK, observed, EXPECTED)
    if not planes.forwarding:
        observed = f"{observed}: the kernel selects the next hop of a queue pair by addresses and interface, whatever the hash"
        return Finding(STAGE, CHECK, host, SUBJECT, NOT_APPLICABLE, observed, EXPECTED)
    remedy = (
        f"1. If {host} must not forward, disable it as planes.forward says. 2. If RoCE traffic passes {host}, set `{KEY}: 1` in its "
        f"rdma_host.sysctl, and run the host stage. 3. Without the collection, run `sysctl -w {KEY}=1` on {host}, and write it to a file "
        "in /etc/sysctl.d."
    )
    observed = f"{observed}, and {FORWARD} is 1: all queue pairs of two addresses that pass this host take one path"
    return Finding(STAGE, CHECK, host, SUBJECT, WARNING, observed, EXPECTED, remedy)
