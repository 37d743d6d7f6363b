# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Check of the network gate on the routes of rails: the rule by the rail's address, its table, and the routes to its other subnets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Rail
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._net.ip_address import is_ipv6
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_routes import RailRouting, missing_routes, tables_of
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import ResolvedRail, resolve
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import NO_NIC, Check, declare

declare(
    {
        "network.route": Check(
            "network",
            "for each rail with a router, or in a subnet with other rails: the rule that sends packets from its address by its own table, "
            "and the routes",
            "`ip -4 rule show`, `ip -4 route show table all`; with `-6` for IPv6",
            "run the network stage; find what removes them: `ip monitor rule route`",
            follows=NO_NIC,
            sources=(reads.command("ip", "-json", "-4", "rule"), reads.command("ip", "-json", "-4", "route")),
        ),
    }
)

STAGE = "network"


def check_routes(host: str, rails: Sequence[Rail], facts: Facts, *, shared_subnet: bool) -> list[Finding]:
    """Finding `network.route` for each planned rail that needs a table of its own; none for other rails.

    shared_subnet: rdma_fabric.shared_subnet.
    """
    resolved = resolve(rails, facts)
    tables = rail_tables(rails, shared_subnet=shared_subnet)
    return [_route(host, rail, table, facts) for rail, table in zip(resolved, tables, strict=True) if table is not None]


def rail_tables(rails: Sequence[Rail], *, shared_subnet: bool) -> list[int | None]:
    """Return the routing table of each planned rail, None for one that needs none: see `tables_of`."""
    addressed, gateways = [rail["address"] is not None for rail in rails], [rail["gateway"] for rail in rails]
    return tables_of(addressed, gateways, shared_subnet=shared_subnet)


def _route(host: str, rail: ResolvedRail, table: int, facts: Facts) -> Finding:
    planned: Mapping[str, object] = rail.rail
    family = "-6" if is_ipv6(str(planned["address"])) else "-4"
    behind = f" and {planned['gateway']}" if planned["gateway"] else ""
    expected = f"packets from {planned['address']} leave by table {table}, with its subnet{behind}"

    def finding(status: str, observed: str, remedy: str = "") -> Finding:
        return Finding(STAGE, "network.route", host, rail.subject, status, observed, expected, remedy)

    if rail.interface is None:
        return finding(NOT_APPLICABLE, "no interface: see driver.nic")
    if facts.routing is None:
        return finding(
            UNKNOWN,
            "the rules and routes were not read",
            f"Run `ip {family} rule show` and `ip {family} route show table {table}` on {host}.",
        )
    if is_ipv6(str(planned["address"])) and not facts.routing.ipv6:
        why = "the rules and routes of IPv6 were not read, because no RDMA port had an IPv6 address"
        return finding(UNKNOWN, why, f"1. Run the network stage for {host}. 2. Run `ip -6 rule show` there.")
    routing = RailRouting(rail.interface, rail.rail["address"], table, rail.rail["gateway"], tuple(rail.rail["routes"]))
    missing = missing_routes(routing, facts.routing)
    if missing:
        remedy = (
            f"1. Run `ansible-playbook rdma.cluster.network --limit {host}` on the control node. 2. If it happens again, run "
            f"`ip monitor rule route` on {host} to see what removes them."
        )
        return finding(ERROR, "; ".join(missing), remedy)
    return finding(OK, f"rule and {len(routing.planned)} {'route' if len(routing.planned) == 1 else 'routes'} as planned")
