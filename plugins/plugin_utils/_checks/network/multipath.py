# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Check of the network gate on hosts with several equal routes: a Linux switch must hash the ports of packets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import NOT_APPLICABLE, OK, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._net.planes import HASH_POLICY, MultipathRoute
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import ResolvedRail, resolve
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.network.management import rail_under

CHECK, STAGE = "network.multipath", "network"
declare(
    {
        CHECK: Check(
            "network",
            "IPv4 routes with several next hops on a host without rails that forwards (a Linux switch): the kernel must select the next "
            "hop by ports too; not applicable to routes through RoCE rails; no finding without such routes",
            "rtnetlink; `/proc/sys/net/ipv4/fib_multipath_hash_policy`",
            "set `net.ipv4.fib_multipath_hash_policy: 1` in `rdma_host.sysctl`",
            sources=(reads.file("/proc/net/route"), reads.kernel("RTM_GETROUTE"), reads.file(HASH_POLICY)),
        ),
    }
)

KEY = "net.ipv4.fib_multipath_hash_policy"
SUBJECT = "routes with several next hops"
EXPECTED = f"{KEY} is 1 or 3, so that each queue pair's UDP source port counts"
#: Ports are hashed by policy 1 (layer 4), and by 3, whose fields are chosen by fib_multipath_hash_fields. 0 and 2 use addresses: 2 looks
#: into tunnels, of which RoCE is none.
_HASH_PORTS = (1, 3)


def check_multipath(host: str, intent: Intent, facts: Facts) -> list[Finding]:
    """Return the finding network.multipath; none without routes with several next hops for RoCE traffic.

    All queue pairs of two addresses differ in their UDP source port only (RoCEv2, IBTA annex A17). If a Linux switch does not hash ports,
    all of them take one path. A host's own queue pairs do not depend on the hash: the kernel looks up the next hop by the addresses and the
    interface of the GID alone (Linux, drivers/infiniband/core/addr.c; drivers/infiniband/sw/rxe/rxe_net.c).
    """
    planes, rails = facts.planes, resolve(intent["rails"], facts)
    if planes is None or planes.multipath is None:
        seen = "the routes were not read" + (f": {planes.way_error}" if planes is not None and planes.way_error else "")
        return [Finding(STAGE, CHECK, host, SUBJECT, UNKNOWN, seen, EXPECTED, f"Run `ip -4 route show table all` on {host}.")]
    routes = list(_through_rails(planes.multipath, rails, facts)) if rails else planes.multipath if planes.forwarding else []
    return [_judged(host, planes.hash_policy, routes, has_rails=bool(rails))] if routes else []


def _through_rails(routes: Sequence[MultipathRoute], rails: Sequence[ResolvedRail], facts: Facts) -> Iterator[MultipathRoute]:
    for route in routes:
        through = [rail_under(netdev, rails, facts) for netdev in route.netdevs]
        if any(rail is not None and rail.rail["link_layer"] == "roce" for rail in through):
            yield route


def _over(routes: Sequence[MultipathRoute]) -> str:
    first = routes[0]
    more = f" and {len(routes) - 1} more" if len(routes) > 1 else ""
    return f"{first.network}{more} over {', '.join(dict.fromkeys(first.netdevs))}"


def _judged(host: str, policy: int | None, routes: Sequence[MultipathRoute], *, has_rails: bool) -> Finding:
    over = _over(routes)
    if policy is None:
        return Finding(STAGE, CHECK, host, SUBJECT, UNKNOWN, f"{KEY} was not read; {over}", EXPECTED, f"Run `sysctl {KEY}` on {host}.")
    observed = f"{KEY} is {policy}; {over}"
    if policy in _HASH_PORTS:
        return Finding(STAGE, CHECK, host, SUBJECT, OK, observed, EXPECTED)
    if has_rails:
        observed = f"{observed}: the kernel selects the next hop of a queue pair by addresses and interface, whatever the hash"
        return Finding(STAGE, CHECK, host, SUBJECT, NOT_APPLICABLE, observed, EXPECTED)
    remedy = (
        f"1. If RoCE traffic passes {host}, set `{KEY}: 1` in its rdma_host.sysctl, and run the host stage. "
        f"2. Without the collection, run `sysctl -w {KEY}=1` on {host}, and write it to a file in /etc/sysctl.d."
    )
    observed = f"{observed}: all queue pairs of two addresses that pass this host take one path"
    return Finding(STAGE, CHECK, host, SUBJECT, WARNING, observed, EXPECTED, remedy)
