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
from dataclasses import dataclass
from functools import cached_property

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent, RoutingIntent
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.cabling.plan import Plan, PlannedLink, Spot
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.keys import HOST, is_form
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.rules.routing import LEAF_OFFSET, last_asn

LEAF, SPINE = "leaf", "spine"
#: The prefix length of a host port: two addresses, that of the switch and that of the host (RFC 3021).
PORT_BITS = 31


class RoutingError(ValueError):
    """The cables or the pools cannot be routed. The message has one line for each problem."""


@dataclass(frozen=True)
class Neighbor:
    """A switch at the other end of an uplink. port: our interface; its_port: that of the neighbor."""

    port: str
    name: str
    its_port: str


@dataclass(frozen=True)
class HostPort:
    """A leaf's port to a host. address: of the port; host_address: of the host; both with prefix length. device: as in the cabling plan."""

    port: str
    host: str
    device: str
    address: str
    host_address: str

    @property
    def prefix(self) -> str:
        """The subnet of the cable, "10.1.0.66/31"."""
        return str(ipaddress.ip_interface(self.address).network)


@dataclass(frozen=True)
class Router:
    """A switch that routes. number: its position in its tier, from 1. loopback: an IPv4 address. subnet: of a leaf's hosts, None: a spine.

    neighbors and host_ports are in the order of their port numbers.
    """

    name: str
    tier: str
    number: int
    asn: int
    loopback: str
    subnet: str | None
    neighbors: tuple[Neighbor, ...]
    host_ports: tuple[HostPort, ...]


@dataclass(frozen=True)
class RoutedPlane:
    """The plan of a plane: all of its routers by name, spines and leaves in the order of the cabling plan."""

    name: str
    settings: RoutingIntent
    routers: Mapping[str, Router]

    @cached_property
    def own_prefixes(self) -> dict[str, list[str]]:
        """Return router → the prefixes that it announces as its own: its loopback, and the subnets of its host ports."""
        return {name: [f"{each.loopback}/32", *(port.prefix for port in each.host_ports)] for name, each in self.routers.items()}

    def widths(self, name: str) -> dict[str, int]:
        """Return other router → the planned number of equal paths to it. A switch of the same tier is reached by the other tier alone.

        No leaf announces what it has learned, so no path goes up twice: spines do not reach each other, and are not in the result of one.
        """
        direct = Counter(each.name for each in self.routers[name].neighbors)
        if self.routers[name].tier == SPINE:
            return dict(direct)
        found = Counter(direct)
        for spine, cables in direct.items():
            for leaf in {each.name for each in self.routers[spine].neighbors} - {name}:
                found[leaf] += cables
        return dict(found)


def make_plan(name: str, settings: RoutingIntent, cabling: Plan) -> RoutedPlane:
    """Return the plan of a plane. Raises RoutingError with all problems of its cables and pools."""
    planner = _Planner(settings, cabling)
    problems = list(planner.problems())
    if problems:
        raise RoutingError("\n".join(f"plane {name}: {problem}" for problem in problems))
    plane = RoutedPlane(name, settings, {router.name: router for router in planner.routers()})
    widest = max((width for router in plane.routers for width in plane.widths(router).values()), default=0)
    if widest > settings["maximum_paths"]:
        expected = f"rdma_fabric.planes.{name}.routing.maximum_paths is {settings['maximum_paths']}, but {widest} equal paths are planned"
        raise RoutingError(f"plane {name}: {expected}: set it to at least {widest}, or leave it out")
    return plane


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

    def tier(self, name: str) -> str | None:
        return self.cabling.switches[name].tier

    def offset(self, name: str) -> int:
        """Return the position of a switch in the ASNs and loopbacks: spines from 1, leaves from LEAF_OFFSET + 1."""
        return self.numbers[name] + (LEAF_OFFSET if self.tier(name) == LEAF else 0)

    def asn(self, name: str) -> int:
        shared = self.tier(name) == SPINE and self.settings["spine_asn"] == "shared"
        return self.settings["asn_base"] + (0 if shared else self.offset(name))

    def interface(self, port: int) -> str:
        return f"{self.settings['port_prefix']}{port}"

    # Problems, each a sentence that names its offender.

    def problems(self) -> Iterator[str]:
        wrong = list(self._names())
        if wrong:
            yield from wrong
            return
        for name in self.cabling.switches:
            yield from self._numbers(name)
        for link in self.cabling.links:
            yield from self._cable(link)

    def _names(self) -> Iterator[str]:
        cabled = {spot.name for link in self.cabling.links for spot in (link.a, link.b) if spot.device is None}
        for name, switch in self.cabling.switches.items():
            if not is_form(HOST, name):
                yield f"{name!r} cannot be the name of a switch that routes: expected {HOST.words}"
            elif switch.tier not in (LEAF, SPINE):
                yield f"{name} has {'no tier' if switch.tier is None else f'tier {switch.tier}'}: a routed plane has leaves and spines"
            elif name not in cabled:
                yield f"{name} has no cable"

    def _numbers(self, name: str) -> Iterator[str]:
        offset, asn, last = self.offset(name), self.asn(name), last_asn(self.settings)
        if self.tier(name) == SPINE and offset > LEAF_OFFSET:
            yield f"{name} is spine number {offset}, expected at most {LEAF_OFFSET}"
        if asn > last:
            yield f"{name} would have ASN {asn}, after the last one for private use ({last}): use a smaller asn_base"
        if offset >= self.loopbacks.num_addresses:
            yield f"loopbacks {self.loopbacks} has no address for {name}: it needs at least {offset + 1} addresses"
        if self.tier(name) == LEAF and self.numbers[name] > self._leaves():
            known = f"host_subnets {self.hosts} has {self._leaves()} subnets of /{self._leaf_bits()}"
            yield f"{known}, but {name} is leaf number {self.numbers[name]}"

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
            if len(tiers) == 1:
                yield f"{where} joins two {tiers.pop()} switches: in a routed plane, leaves are cabled to spines only"
        elif self.tier(switches[0].name) != LEAF:
            yield f"{where} joins a host to a spine: hosts are cabled to leaves"
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
                tuple(
                    Neighbor(self.interface(spot.port), other.name, self.interface(other.port))
                    for spot, other in spots
                    if other.device is None
                ),
                tuple(self._host_port(spot, other) for spot, other in spots if other.device is not None),
            )

    def _subnet(self, name: str) -> str | None:
        if self.tier(name) != LEAF:
            return None
        size = 2 ** (32 - self._leaf_bits())
        return f"{self.hosts[(self.numbers[name] - 1) * size]}/{self._leaf_bits()}"

    def _host_port(self, spot: Spot, other: Spot) -> HostPort:
        first = ipaddress.IPv4Network(str(self._subnet(spot.name)))[2 * spot.port]
        return HostPort(self.interface(spot.port), other.name, str(other.device), f"{first}/{PORT_BITS}", f"{first + 1}/{PORT_BITS}")


def rail_problems(plane: RoutedPlane, intents: Mapping[str, Intent]) -> list[str]:
    """Return the rails whose address or gateway is not that of their leaf's port, a sentence each.

    A rail is found by its name, if the cabling plan names its host's end so. A host without an intent in this run is skipped.
    """
    found = []
    for router in plane.routers.values():
        for port in router.host_ports:
            intent = intents.get(port.host)
            rail = next((rail for rail in intent["rails"] if rail["name"] == port.device), None) if intent is not None else None
            gateway = port.address.partition("/")[0]
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
