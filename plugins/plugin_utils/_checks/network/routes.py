# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Check of the network gate on the routes of rails: the rule by the rail's address, its table, and the routes to its other subnets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Rail
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._net.ip_address import is_ipv6
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_network import rail_of
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_routes import (
    RailRouting,
    Routing,
    left_over,
    left_words,
    missing_routes,
    tables_of,
)
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import ResolvedRail, resolve
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import NO_NIC, Check, declare

declare(
    {
        "network.route": Check(
            "network",
            "for each rail with a router, or in a subnet with other rails: the rule that sends packets from its address by its own table, "
            "and the routes. Rules and routes of a former plan, which are left until no job uses the host, are a warning",
            "`ip -4 rule show`, `ip -4 route show table all`; with `-6` for IPv6; the collection's files for the network manager",
            "run the network stage, for a warning while no job runs; find what removes them: `ip monitor rule route`",
            follows=NO_NIC,
            sources=(reads.command("ip", "-json", "-4", "rule"), reads.command("ip", "-json", "-4", "route")),
        ),
    }
)

STAGE = "network"


def check_routes(host: str, rails: Sequence[Rail], facts: Facts, *, shared_subnet: bool) -> list[Finding]:
    """Finding `network.route` for each planned rail that needs a table of its own, and for each with rules or routes of a former plan.

    Also for a rail that left the plan, as long as the host has its files. shared_subnet: rdma_fabric.shared_subnet.
    """
    resolved = resolve(rails, facts)
    tables = rail_tables(rails, shared_subnet=shared_subnet)
    planned = {rail.name: _routing(rail, table) for rail, table in zip(resolved, tables, strict=True)}
    left = _left(planned, facts.routing)
    found = [_route(host, rail, table, facts) for rail, table in zip(resolved, tables, strict=True) if table is not None]
    wrong = {finding.subject for finding in found if finding.status != OK}
    names = {rail.name: rail.subject for rail in resolved}
    stale = {names.get(name, f"{name}, no longer planned"): each for name, each in left.items()}
    kept = [finding for finding in found if finding.subject in wrong or finding.subject not in stale]
    return [*kept, *(_stale(host, subject, each) for subject, each in stale.items() if subject not in wrong)]


def _routing(rail: ResolvedRail, table: int | None) -> RailRouting:
    return RailRouting(rail.interface or "", rail.rail["address"], table, rail.rail["gateway"], tuple(rail.rail["routes"]))


def _left(planned: Mapping[str, RailRouting], seen: Routing | None) -> dict[str, list[str]]:
    """Return rail → the live rules and routes of its former plan in words. planned: by rail; seen: None if they were not read."""
    found: dict[str, list[str]] = {}
    for recorded in (seen.recorded or []) if seen is not None else []:
        name = rail_of(recorded.owner)
        netdev = planned[name].netdev if name in planned else None
        words = left_words(left_over(recorded, seen, list(planned.values()), netdev)) if seen is not None else []
        if words:
            found[name] = [*found.get(name, []), *words]
    return found


def _stale(host: str, subject: str, left: Sequence[str]) -> Finding:
    remedy = (
        f"1. Wait until no job uses {host}. 2. Run `ansible-playbook rdma.cluster.network --limit {host}` on the control node. "
        "It removes them."
    )
    expected = "no rules and routes of a former plan"
    return Finding(STAGE, "network.route", host, subject, WARNING, f"left of a former plan: {'; '.join(left)}", expected, remedy)


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
    routing = _routing(rail, table)
    missing = missing_routes(routing, facts.routing)
    if missing:
        remedy = (
            f"1. Run `ansible-playbook rdma.cluster.network --limit {host}` on the control node. 2. If it happens again, run "
            f"`ip monitor rule route` on {host} to see what removes them."
        )
        return finding(ERROR, "; ".join(missing), remedy)
    if facts.routing.recorded is None:
        remedy = f"Read {host} as root (`become: true`): the files in /etc/NetworkManager/system-connections need it."
        return finding(UNKNOWN, "our files were not read, so rules and routes of a former plan are not known", remedy)
    return finding(OK, f"rule and {len(routing.planned)} {'route' if len(routing.planned) == 1 else 'routes'} as planned")
