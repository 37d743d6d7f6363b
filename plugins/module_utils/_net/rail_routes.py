# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A rail's own routing table, with a rule that sends what leaves from the rail's address through it.

The main table of Linux chooses by destination alone. Where several rails reach the same destination, through routers or in one subnet, all
packets would leave by one of them, whatever their source address is. With a table and a rule for each rail, a packet leaves by the rail
whose address it has. Sources: ip-rule(8), ip-route(8); net/ipv4/fib_rules.c and net/ipv6/fib6_rules.c of Linux; the
output is that of iproute2 6.1.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import CommandError, Runner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._net.ip_address import ip_of, is_ipv6
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_steps import Step

#: The tables of the rails, one each by its position in the intent. A rule has the priority of its table's number.
FIRST_TABLE, TABLES = 1000, range(1000, 1064)
MAIN = 254
DEFAULT, DEFAULT_IPV6 = "0.0.0.0/0", "::/0"
RULES_COMMAND = ("ip", "-json", "-4", "rule", "show")
ROUTES_COMMAND = ("ip", "-json", "-4", "route", "show", "table", "all")
IPV6_RULES_COMMAND = ("ip", "-json", "-6", "rule", "show")
IPV6_ROUTES_COMMAND = ("ip", "-json", "-6", "route", "show", "table", "all")
_COMMANDS = {4: (RULES_COMMAND, ROUTES_COMMAND), 6: (IPV6_RULES_COMMAND, IPV6_ROUTES_COMMAND)}
#: The protocol of routes that an administrator, or a network manager by its files, has set.
STATIC = "static"
PATH_CHANGES = "changes the path of packets from the rail's address"
#: The keys of a rule that selects by source alone.
_RULE_KEYS = frozenset({"priority", "src", "srclen", "table", "protocol"})
_NAMES = {"main": MAIN, "default": 253, "local": 255}


@dataclass(frozen=True)
class PolicyRule:
    """A rule by source address: packets from it use a table. source: one address or a network, "192.168.100.1/32"."""

    priority: int
    source: str
    table: int


@dataclass(frozen=True)
class TableRoute:
    """A route. network: "0.0.0.0/0" or "::/0" for the default route; gateway: None for a directly connected network."""

    network: str
    gateway: str | None
    netdev: str
    table: int
    source: str | None = None


@dataclass(frozen=True)
class Recorded:
    """What the files of ours for one owner set: rules of rails' tables, and routes, whose netdev is "" because the files do not name it.

    owner: a rail, or "rail0@vlan" for its VLAN.
    """

    owner: str
    rules: list[PolicyRule]
    routes: list[TableRoute]


@dataclass(frozen=True)
class Routing:
    """The rules by source, and the static routes and those of the rails' tables.

    Without a rule that leads to such a table, and without recorded routes, no routes are read. ipv6: whether those of IPv6 were read too.
    recorded: what the files of ours on the host set; None if they may not be read.
    """

    rules: list[PolicyRule]
    routes: list[TableRoute]
    ipv6: bool = False
    recorded: list[Recorded] | None = field(default_factory=list)


def parse_rules(text: str) -> list[PolicyRule]:
    """Return the rules by source alone in the output of RULES_COMMAND or its like for IPv6. Raises ParseError for another form."""
    try:
        by_source = [each for each in json.loads(text or "[]") if set(each) <= _RULE_KEYS and each.get("src", "all") != "all"]
        return [_policy_rule(each) for each in by_source]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as exc:
        raise ParseError(f"not the JSON of `{' '.join(RULES_COMMAND)}`: {exc!r} in {quoted(text)}") from exc


def parse_table_routes(text: str, default: str = DEFAULT) -> list[TableRoute]:
    """Return the static routes of the main table, and all of the rails' tables, in the output of ROUTES_COMMAND or its like for IPv6.

    Routes with several next hops, which routing daemons set, are left out. default: the network of a default route, which the output
    does not name. Raises ParseError for another form.
    """
    try:
        return [_table_route(each, default) for each in json.loads(text or "[]") if _is_of_rails(each)]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as exc:
        raise ParseError(f"not the JSON of `{' '.join(ROUTES_COMMAND)}`: {exc!r} in {quoted(text)}") from exc


def _policy_rule(each: Mapping[str, Any]) -> PolicyRule:
    source = ipaddress.ip_network(f"{each['src']}/{each['srclen']}" if "srclen" in each else each["src"])
    return PolicyRule(int(each["priority"]), str(source), _table(each["table"]))


def _is_of_rails(each: Mapping[str, Any]) -> bool:
    """Return whether a route is in a rail's table, or a static one of the main table."""
    table = _table(each.get("table", "main"))
    is_kept = table in TABLES or (table == MAIN and each.get("protocol") == STATIC)
    return is_kept and "dev" in each and each.get("type", "unicast") == "unicast"


def _table_route(each: Mapping[str, Any], default: str) -> TableRoute:
    network = default if each["dst"] == "default" else str(ipaddress.ip_network(each["dst"]))
    return TableRoute(network, each.get("gateway"), each["dev"], _table(each.get("table", "main")), each.get("prefsrc"))


def _table(name: str) -> int:
    """Return the number of a table; -1 for a name of the administrator's (rt_tables), which is not one of ours."""
    return _NAMES.get(name, int(name) if name.isdecimal() else -1)


def read_routing(runner: Runner, families: Collection[int] = (4,), recorded: Sequence[Recorded] | None = ()) -> Routing | None:
    """Query the running system; None without an iproute2 that answers in the known form. families: 4, and 6 if IPv6 matters.

    The routes of a family are read if a rule leads to a rail's table, or files of ours record routes of this family.
    """
    found = Routing([], [], ipv6=6 in families, recorded=None if recorded is None else list(recorded))
    known = {6 if is_ipv6(route.network) else 4 for each in recorded or () for route in each.routes}
    try:
        for family in families:
            rules_command, routes_command = _COMMANDS[family]
            done = runner.run(rules_command)
            if done.rc:
                return None
            rules = parse_rules(done.stdout)
            found.rules.extend(rules)
            if family in known or any(rule.table in TABLES for rule in rules):
                done = runner.run(routes_command)
                if done.rc:
                    return None
                found.routes.extend(parse_table_routes(done.stdout, DEFAULT_IPV6 if family == 6 else DEFAULT))
    except (CommandError, ParseError):
        return None
    return found


def known_routing(runner: Runner, families: Collection[int], recorded: Sequence[Recorded]) -> Routing:
    """Return the rules and routes as `read_routing` does. Raises ApplyError if they cannot be read."""
    seen = read_routing(runner, families, recorded)
    if seen is None:
        raise ApplyError("`ip -json rule show` or `ip -json route show` fails, so the routes of the rails are not known.")
    return seen


@dataclass(frozen=True)
class RailRouting:
    """What is planned for a rail. table: its number, None for a rail that needs none; routes: further subnets behind the gateway."""

    netdev: str
    address: str | None
    table: int | None = None
    gateway: str | None = None
    routes: tuple[str, ...] = ()

    @property
    def rules(self) -> list[PolicyRule]:
        """The rule that the rail needs."""
        if self.table is None or self.address is None:
            return []
        return [PolicyRule(self.table, _host_network(self.address), self.table)]

    @property
    def planned(self) -> list[TableRoute]:
        """The routes that the rail needs: its own table with its subnet and its router, and in the main table what is behind it."""
        if self.address is None:
            return []
        found = []
        if self.table is not None:
            subnet = str(ipaddress.ip_interface(self.address).network)
            found.append(TableRoute(subnet, None, self.netdev, self.table, self.source))
            if self.gateway is not None:
                default = DEFAULT_IPV6 if is_ipv6(self.address) else DEFAULT
                found.append(TableRoute(default, self.gateway, self.netdev, self.table))
        return [*found, *(TableRoute(each, self.gateway, self.netdev, MAIN) for each in self.routes if self.gateway is not None)]

    def missing(self, seen: Routing) -> Routing:
        """Return the planned rules and routes that the running system lacks."""
        return Routing(
            [rule for rule in self.rules if rule not in seen.rules], [route for route in self.planned if route not in seen.routes]
        )

    @property
    def source(self) -> str | None:
        """The rail's address without its prefix length."""
        return None if self.address is None else ip_of(self.address)


def routing_differences(rails: Sequence[RailRouting], seen: Routing) -> dict[str, list[tuple[str, str]]]:
    """Return interface → the missing and the outdated rules and routes as texts (current, planned)."""
    found = {rail.netdev: [(step.was, step.planned) for step in rail_steps(rail, seen)] for rail in rails}
    return {netdev: each for netdev, each in found.items() if each}


def left_over(recorded: Recorded, seen: Routing, planned: Sequence[RailRouting], netdev: str | None) -> Routing:
    """Return the live rules and routes which our files record, and which no rail needs any more.

    Only what is recorded is ours: rules and routes of others stay, whatever their number. planned: all rails of the host. netdev: the
    interface of the owner; None if it is no longer planned. Of such an owner, only the routes of its own table are known to be its own.
    """
    rules = {rule for rail in planned for rule in rail.rules}
    # `ip route replace` replaces the former route to the same network.
    replaced = {(route.network, route.netdev, route.table) for rail in planned for route in rail.planned}
    routes = [
        route
        for route in seen.routes
        if (route.table in TABLES if netdev is None else route.netdev == netdev)
        and replace(route, netdev="") in recorded.routes
        and (route.network, route.netdev, route.table) not in replaced
    ]
    return Routing([rule for rule in seen.rules if rule in recorded.rules and rule not in rules], routes)


def removal(netdev: str, left: Routing) -> list[Step]:
    """Return the steps that remove what is left over. The rule goes first, so that its table is not used while it loses its routes."""
    rules = [Step(netdev, _rule_words(rule), "no such rule", _rule("del", rule), PATH_CHANGES) for rule in left.rules]
    return [*rules, *(Step(netdev, f"route to {_words(route)}", "no such route", _delete(route), PATH_CHANGES) for route in left.routes)]


def left_words(left: Routing) -> list[str]:
    """Return what is left over, in words."""
    return [*map(_rule_words, left.rules), *(f"route to {_words(route)}" for route in left.routes)]


def rail_steps(
    rail: RailRouting, seen: Routing, *, former: Collection[str] = (), live: bool = False, left: Routing | None = None
) -> list[Step]:
    """Return the steps that bring a rail's rule and routes to the plan. What is missing is added before what is outdated goes.

    A rule is outdated if it has the number of a rail's table, its source is the rail's address or a former one, and it is not planned.
    Rules of others stay, whatever their number. former: addresses that our files gave the rail before, "192.168.100.9/24". live: whether
    the interface has the rail's address already, so that packets may be under way. left: what is left over of the rail's former plan.
    """
    harm = PATH_CHANGES if live else ""
    missing = rail.missing(seen)
    steps = [
        Step(rail.netdev, f"no route to {_words(route)}", f"route to {_words(route)}", _set(route, seen), harm) for route in missing.routes
    ]
    steps += [Step(rail.netdev, f"no rule for {rule.source}", _rule_words(rule), _rule("add", rule), harm) for rule in missing.rules]
    sources = {_host_network(text) for text in (*former, *([rail.address] if rail.address else []))}
    outdated = [
        rule
        for rule in seen.rules
        if rule.table in TABLES and rule.priority == rule.table and rule.source in sources and rule not in rail.rules
    ]
    left = left or Routing([], [])
    return [*steps, *removal(rail.netdev, Routing([*outdated, *(rule for rule in left.rules if rule not in outdated)], left.routes))]


def _host_network(address: str) -> str:
    """Return the network of an address alone: "192.168.100.1/24" → "192.168.100.1/32"."""
    return f"{ip_of(address)}/{128 if is_ipv6(address) else 32}"


def _rule_words(rule: PolicyRule) -> str:
    return f"rule: from {rule.source} by table {rule.table}"


def _words(route: TableRoute) -> str:
    via = f" by {route.gateway}" if route.gateway else ""
    return f"{route.network}{via}" + ("" if route.table == MAIN else f" in table {route.table}")


def _set(route: TableRoute, seen: Routing) -> tuple[str, ...]:
    """Return the command that sets a route. In the main table it replaces no route by another interface: `add` fails beside one."""
    known = ((each.network, each.netdev, each.table) for each in seen.routes)
    verb = "replace" if route.table != MAIN or (route.network, route.netdev, MAIN) in known else "add"
    # Routes of IPv6 have no scope.
    via = ("via", route.gateway) if route.gateway else () if is_ipv6(route.network) else ("scope", "link")
    source = ("src", route.source) if route.source else ()
    table = () if route.table == MAIN else ("table", str(route.table))
    return (*_ip_command(route.network), "route", verb, route.network, *via, "dev", route.netdev, *source, *table, "proto", STATIC)


def _delete(route: TableRoute) -> tuple[str, ...]:
    """Return the command that removes a route, and no other one to the same network."""
    via = ("via", route.gateway) if route.gateway else ()
    table = () if route.table == MAIN else ("table", str(route.table))
    return (*_ip_command(route.network), "route", "del", route.network, *via, "dev", route.netdev, *table, "proto", STATIC)


def _rule(verb: str, rule: PolicyRule) -> tuple[str, ...]:
    command = _ip_command(rule.source)
    return (*command, "rule", verb, "from", rule.source, "lookup", str(rule.table), "priority", str(rule.priority))


def _ip_command(network: str) -> tuple[str, ...]:
    return ("ip", "-6") if is_ipv6(network) else ("ip",)


def missing_routes(rail: RailRouting, seen: Routing) -> list[str]:
    """Return what a rail lacks, in words."""
    missing = rail.missing(seen)
    rules = [f"no rule from {rule.source} to table {rule.table}" for rule in missing.rules]
    return [*rules, *(f"no route to {_words(route)}" for route in missing.routes)]


def tables_of(addressed: Collection[bool], gateways: Sequence[str | None], *, shared_subnet: bool) -> list[int | None]:
    """Return the table of each rail of a host, None for one that needs none. addressed: whether each has an address, in the plan's order.

    A rail needs a table if it has a router, and if several rails share a subnet.
    """
    several = shared_subnet and sum(addressed) > 1
    return [
        FIRST_TABLE + index if has and (several or gateways[index] is not None) and FIRST_TABLE + index in TABLES else None
        for index, has in enumerate(addressed)
    ]
