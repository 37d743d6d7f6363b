# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan of a routed plane: the ASN, loopback, subnet and neighbors of each switch, from the planned cables and the intent alone.

A switch's number is its position among the switches of its tier in the cabling plan. ASN, loopback and subnet follow from the number. So a
switch that is added at the end of its tier changes only the switches that it is cabled to.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent, RoutingIntent
from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import hint
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.cabling.plan import Plan, PlannedLink, Spot
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.networkx import nx
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.hosts import host_problems, make_hosts
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.model import (
    PORT_BITS,
    HostPort,
    Neighbor,
    RoutedPlane,
    Router,
    RoutingError,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.paths import CORE, LEAF, SPINE, TIERS
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.keys import HOST, is_form
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.rules.routing import CORE_OFFSET, LEAF_OFFSET, last_asn
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.routing import MOST_NVUE_PATHS

#: The pairs of tiers that a cable may join.
ADJACENT = ({LEAF, SPINE}, {SPINE, CORE})


def make_plan(name: str, settings: RoutingIntent, cabling: Plan) -> RoutedPlane:
    """Return the plan of a plane. Raises RoutingError with all problems of its cables and pools."""
    planner = _Planner(settings, cabling)
    problems = list(planner.problems())
    if problems:
        raise RoutingError("\n".join(f"plane {name}: {problem}" for problem in problems))
    try:
        routers, hosts = make_hosts(settings, {router.name: router for router in planner.routers()})
    except ValueError as error:
        raise RoutingError(f"plane {name}: {error}") from error
    plane = RoutedPlane(name, settings, routers, planner.names(), hosts)
    if unreached := _unreached(plane):
        raise RoutingError("\n".join(f"plane {name}: {problem}" for problem in unreached))
    widest = max((width for router in plane.speakers for width in plane.widths(router).values()), default=0)
    if widest > settings["maximum_paths"]:
        expected = f"rdma_fabric.planes.{name}.routing.maximum_paths is {settings['maximum_paths']}, but {widest} equal paths are planned"
        raise RoutingError(f"plane {name}: {expected}: set it to at least {widest}, or leave it out")
    return plane


def _unreached(plane: RoutedPlane) -> list[str]:
    """Return the leaves without a path between them, a sentence for each pod: with cores, all pods need cables to common ones."""
    leaves = [router for router in plane.routers.values() if router.tier == LEAF]
    found: dict[tuple[int | None, int | None], str] = {}
    for leaf in leaves if plane.has_cores else ():
        for other in leaves:
            if other.name not in plane.widths(leaf.name) and other.name != leaf.name:
                words = f"{leaf.name} (pod {leaf.pod}) has no path to {other.name} (pod {other.pod}): cable both pods to the same cores"
                found.setdefault((leaf.pod, other.pod), words)
    return list(found.values())


class _Planner:
    """The numbers of the switches, and what follows from them."""

    def __init__(self, settings: RoutingIntent, cabling: Plan) -> None:
        self.settings, self.cabling = settings, cabling
        self.numbers: dict[str, int] = {}
        counts: Counter[str | None] = Counter()
        for switch in cabling.switches.values():
            counts[switch.tier] += 1
            self.numbers[switch.name] = counts[switch.tier]
        self.loopbacks = ipaddress.IPv4Network(settings["loopbacks"])
        self.hosts = ipaddress.IPv4Network(settings["host_subnets"])
        self.has_cores = counts[CORE] > 0
        self.pods = self._pods() if self.has_cores else {}

    def tier(self, name: str) -> str | None:
        return self.cabling.switches[name].tier

    def offset(self, name: str) -> int:
        """Return the position of a switch in the ASNs and loopbacks: spines from 1, then cores, then leaves."""
        return self.numbers[name] + {LEAF: LEAF_OFFSET, CORE: CORE_OFFSET}.get(str(self.tier(name)), 0)

    def asn(self, name: str) -> int:
        tier, offset = self.tier(name), self.offset(name)
        if tier != LEAF and self.settings["spine_asn"] == "shared":
            # The first pod keeps the ASN of a plane without cores, so that cores can be added later.
            offset = CORE_OFFSET if tier == CORE else self.pods.get(name, 1) - 1
        return self.settings["asn_base"] + offset

    def _pods(self) -> dict[str, int]:
        """Return leaf and spine → the number of its pod: the switches that cables join without a core, numbered by their first spine."""
        graph: Any = nx.Graph()
        graph.add_nodes_from(name for name in self.cabling.switches if self.tier(name) in (LEAF, SPINE))
        ends = ((link.a.name, link.b.name) for link in self.cabling.links if link.a.device is None and link.b.device is None)
        graph.add_edges_from((one, other) for one, other in ends if one in graph and other in graph)
        order = {name: number for number, name in enumerate(self.cabling.switches)}

        def first(pod: set[str]) -> tuple[bool, int]:
            spines = [order[name] for name in pod if self.tier(name) == SPINE]
            return not spines, min(spines or (order[name] for name in pod))

        pods = sorted(nx.connected_components(graph), key=first)
        return {name: number for number, pod in enumerate(pods, 1) for name in pod}

    def of_switch(self, name: str, key: str) -> Any:
        """Return a setting of a switch: its own, or that of the plane."""
        switch: Mapping[str, Any] = self.settings["switches"].get(name) or {}
        settings: Mapping[str, Any] = self.settings
        own = switch.get(key)
        return own if own is not None else settings[key]

    def interface(self, spot: Spot) -> str:
        """Return the name of a port. SONiC names it by its first lane, from 0."""
        lanes = self.of_switch(spot.name, "port_lanes")
        return f"{self.of_switch(spot.name, 'port_prefix')}{spot.port if lanes is None else (spot.port - 1) * lanes}"

    def names(self) -> dict[tuple[str, int], str]:
        spots = (spot for link in self.cabling.links for spot in (link.a, link.b) if spot.device is None)
        return {(spot.name, spot.port): self.interface(spot) for spot in spots}

    # Problems, each a sentence that names its offender.

    def problems(self) -> Iterator[str]:
        wrong = list(self._names())
        if wrong:
            yield from wrong
            return
        for name in self.cabling.switches:
            yield from self._numbers(name)
            yield from self._syntax(name)
        for link in self.cabling.links:
            yield from self._cable(link)
        yield from host_problems(self.settings, self.cabling, {name: self.of_switch(name, "syntax") for name in self.cabling.switches})

    def _names(self) -> Iterator[str]:
        for name in self.settings["switches"]:
            if name not in self.cabling.switches:
                yield f"routing.switches has {name}, which is not in the cabling plan: {hint(name, self.cabling.switches, 'switches')}"
        cabled = {spot.name for link in self.cabling.links for spot in (link.a, link.b) if spot.device is None}
        for name, switch in self.cabling.switches.items():
            if not is_form(HOST, name):
                yield f"{name!r} cannot be the name of a switch that routes: expected {HOST.words}"
            elif switch.tier not in TIERS:
                yield f"{name} has no tier: a routed plane has leaves, spines and, above several pods, cores"
            elif name not in cabled:
                yield f"{name} has no cable"

    def _numbers(self, name: str) -> Iterator[str]:
        offset, asn, last = self.offset(name), self.asn(name), last_asn(self.settings)
        most_spines = CORE_OFFSET if self.has_cores else LEAF_OFFSET
        if self.tier(name) == SPINE and offset > most_spines:
            yield f"{name} is spine number {offset}, expected at most {most_spines}{' in a plane with cores' if self.has_cores else ''}"
        if self.tier(name) == CORE and offset > LEAF_OFFSET:
            yield f"{name} is core number {self.numbers[name]}, expected at most {LEAF_OFFSET - CORE_OFFSET}"
        if asn > last:
            yield f"{name} would have ASN {asn}, after the last one for private use ({last}): use a smaller asn_base"
        if offset >= self.loopbacks.num_addresses:
            yield f"loopbacks {self.loopbacks} has no address for {name}: it needs at least {offset + 1} addresses"
        if self.tier(name) == LEAF and self.numbers[name] > self._leaves():
            known = f"host_subnets {self.hosts} has {self._leaves()} subnets of /{self._leaf_bits()}"
            yield f"{known}, but {name} is leaf number {self.numbers[name]}"

    def _syntax(self, name: str) -> Iterator[str]:
        """Yield what the operating system of a switch cannot do."""
        syntax, prefix, lanes = (self.of_switch(name, key) for key in ("syntax", "port_prefix", "port_lanes"))
        if syntax == "sonic":
            if prefix != "Ethernet" or lanes is None:
                has = f"port_prefix {prefix} and {'no port_lanes' if lanes is None else f'port_lanes {lanes}'}"
                yield f"{name} has {has}, but SONiC names a port Ethernet and its first lane: set port_prefix: Ethernet, and port_lanes"
            if self.settings["bfd"]:
                why = "SONiC starts the BFD daemon of FRR only together with its management framework"
                yield f"{name} has syntax sonic and the plane has bfd: {why}. Set bfd: false. Then BGP notices a silent cable after 9 s"
        elif lanes is not None:
            yield f"{name} has port_lanes {lanes}, but syntax {syntax}: only SONiC names ports by their lanes"
        if syntax == "nvue" and self.settings["maximum_paths"] > MOST_NVUE_PATHS:
            yield f"maximum_paths is {self.settings['maximum_paths']}, but NVUE ({name}) has at most {MOST_NVUE_PATHS}"

    def _leaf_bits(self) -> int:
        return self.settings["leaf_prefix_length"]

    def _leaves(self) -> int:
        return int(2 ** (self._leaf_bits() - self.hosts.prefixlen))

    def _cable(self, link: PlannedLink) -> Iterator[str]:
        where = f"line {link.line} of the cabling plan: {link.a} to {link.b}"
        switches = [spot for spot in (link.a, link.b) if spot.device is None]
        if not switches:
            yield f"{where} joins two hosts: in a routed plane each cable has a switch"
        elif len(switches) == 2:
            tiers = {self.tier(spot.name) for spot in switches}
            if tiers not in ADJACENT:
                joined = f"two {tiers.pop()} switches" if len(tiers) == 1 else "a leaf and a core"
                yield f"{where} joins {joined}: in a routed plane, leaves are cabled to spines only, and spines to leaves and cores"
        elif self.tier(switches[0].name) != LEAF:
            yield f"{where} joins a host to a {self.tier(switches[0].name)}: hosts are cabled to leaves"
        elif switches[0].port >= 2 ** (PORT_BITS - self._leaf_bits()):
            subnet = f"but a leaf's subnet has /{self._leaf_bits()}: use a smaller leaf_prefix_length"
            yield f"{where} needs the /31 number {switches[0].port}, {subnet}"

    # The plan. It is only made of cables and pools without problems.

    def routers(self) -> Iterator[Router]:
        ends: dict[str, list[tuple[Spot, Spot]]] = {name: [] for name in self.cabling.switches}
        for link in self.cabling.links:
            for spot, other in ((link.a, link.b), (link.b, link.a)):
                if spot.device is None:
                    ends[spot.name].append((spot, other))
        for name, spots in ends.items():
            spots.sort(key=lambda each: each[0].port)
            yield Router(
                name,
                str(self.tier(name)),
                self.numbers[name],
                self.asn(name),
                str(self.loopbacks[self.offset(name)]),
                self._subnet(name),
                tuple(Neighbor(self.interface(spot), other.name, self.interface(other)) for spot, other in spots if other.device is None),
                tuple(self._host_port(spot, other) for spot, other in spots if other.device is not None),
                self.pods.get(name),
                self.of_switch(name, "syntax"),
            )

    def _subnet(self, name: str) -> str | None:
        if self.tier(name) != LEAF:
            return None
        size = 2 ** (32 - self._leaf_bits())
        return f"{self.hosts[(self.numbers[name] - 1) * size]}/{self._leaf_bits()}"

    def _host_port(self, spot: Spot, other: Spot) -> HostPort:
        first = ipaddress.IPv4Network(str(self._subnet(spot.name)))[2 * spot.port]
        return HostPort(self.interface(spot), other.name, str(other.device), f"{first}/{PORT_BITS}", f"{first + 1}/{PORT_BITS}")


def rail_problems(plane: RoutedPlane, intents: Mapping[str, Intent]) -> list[str]:
    """Return the rails whose address or gateway is not that of their leaf's port, or that have a VLAN, a sentence each.

    A rail is found by its name, if the cabling plan names its host's end so. A host without an intent in this run is skipped.
    """
    found = []
    for router in plane.routers.values():
        for port in router.host_ports:
            intent = intents.get(port.host)
            rail = next((rail for rail in intent["rails"] if rail["name"] == port.device), None) if intent is not None else None
            gateway = port.address.partition("/")[0]
            if rail is not None and rail["vlan"] is not None:
                observed = f"{port.host} {port.device} has VLAN {rail['vlan']['id']}"
                found.append(f"{observed}, but {router.name} {port.port} routes and expects no tag: remove `vlan` from the rail")
            if rail is not None and (rail["address"], rail["gateway"]) != (port.host_address, gateway):
                observed = f"{port.host} {port.device} has address {rail['address']} and gateway {rail['gateway']}"
                found.append(f"{observed}, but at {router.name} {port.port} it needs address {port.host_address} and gateway {gateway}")
    return found


def twice(planes: Sequence[RoutedPlane]) -> list[str]:
    """Return the switches that are in more than one plane, a sentence each: a switch has one configuration."""
    of: dict[str, list[str]] = {}
    for plane in planes:
        for name in plane.routers:
            of.setdefault(name, []).append(plane.name)
    return [f"{name} is in planes {' and '.join(names)}: a switch has one configuration" for name, names in of.items() if len(names) > 1]
