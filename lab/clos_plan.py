# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The shape of a routed Clos network of network namespaces: its nodes, their ports and cables, and the planned cabling as text.

A leaf has its uplinks on swp1 to swpS, in the order of the spines, and its hosts from swp33 on. A second rail of the hosts is on swp65 and
up. A spine has leaf N on swpN. So a leaf or a spine that is added later changes no existing cable.

With cores, leaves and spines are divided into pods: each leaf is cabled to the spines of its pod, and each spine has core N on swp(32 + N).
A core has spine N on swpN.

The hosts are namespaces too, or the nodes of a lab. The addresses of such nodes are those of the collection's plan of the routing: each
host port of a leaf has a /31, and the ports of one rail at one leaf are a subnet of their own. A lab can also have the switches and cables
of a given cabling plan (lab/clos_cabling.py). Its inventory then comes from the same plan.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from dataclasses import dataclass

from lab.clos_cabling import HOST_PORT, SWITCH_PORT, Cable, read_cabling
from lab.errors import LabError

#: The first port of a leaf that leads to a host, and the first port of a spine that leads to a core.
FIRST_HOST_PORT = 33
FIRST_CORE_PORT = 33
#: The distance between the ports of two rails, and so the number of ports of one rail at a leaf: a power of 2, for a subnet of its own.
RAIL_PORTS = 32
MOST_LEAVES, MOST_SPINES, MOST_HOSTS, MOST_CORES, MOST_RAILS = 32, 32, 16, 16, 2
MTU_BYTES = 9000
#: The pools of the plane of a lab. QEMU's management network is 10.0.2.0/24.
LOOPBACKS = "10.0.0.0/24"
HOST_SUBNETS = ipaddress.IPv4Network("10.1.0.0/16")
#: The number of addresses of a leaf (/24), and of one rail at a leaf (/26).
LEAF_ADDRESSES, RAIL_ADDRESSES = 256, 2 * RAIL_PORTS


@dataclass(frozen=True)
class ClosShape:
    """leaves × spines switches, and hosts of each leaf with their rails.

    of_lab: the hosts are the nodes of the lab of the same name. cores: 0 for two tiers. pods: leaves and spines are divided into so many.
    given: the text of a cabling plan, whose switches, hosts and cables these are; the numbers are then not used.
    """

    leaves: int = 2
    spines: int = 2
    hosts: int = 1
    cores: int = 0
    pods: int = 1
    rails: int = 1
    of_lab: bool = False
    given: str = ""

    def __post_init__(self) -> None:
        limits = (
            ("leaves", MOST_LEAVES, 1),
            ("spines", MOST_SPINES, 1),
            ("hosts", MOST_HOSTS, 0),
            ("rails", MOST_RAILS, 1),
            ("cores", MOST_CORES, 0),
        )
        for name, most, least in limits:
            if not least <= getattr(self, name) <= most:
                raise LabError(f"A routed Clos has {least} to {most} {name}; got {getattr(self, name)}.")
        if self.pods < 1 or self.leaves % self.pods or self.spines % self.pods or (self.pods > 1 and not self.cores):
            raise LabError(f"{self.pods} pods need cores, and the same number of leaves and of spines each.")

    @property
    def switches(self) -> list[str]:
        if self.given:
            return list(read_cabling(self.given).switches)
        tiers = (("leaf", self.leaves), ("spine", self.spines), ("core", self.cores))
        return [f"{tier}{n}" for tier, count in tiers for n in range(1, count + 1)]

    @property
    def host_names(self) -> list[str]:
        """host1 … of leaf1, then those of leaf2, and so on; node1 … if they are the nodes of a lab."""
        if self.given:
            return read_cabling(self.given).hosts
        return [f"{'node' if self.of_lab else 'host'}{n}" for n in range(1, self.leaves * self.hosts + 1)]

    @property
    def namespaces(self) -> list[str]:
        """The nodes that this network makes."""
        return [*self.switches, *([] if self.of_lab else self.host_names)]

    @property
    def cables(self) -> Iterator[Cable]:
        """Yield all cables: first the uplinks, then those of the hosts."""
        if self.given:
            yield from read_cabling(self.given).cables
            return
        leaves, spines = self.leaves // self.pods, self.spines // self.pods
        for leaf in range(self.leaves):
            for port in range(spines):
                spine = leaf // leaves * spines + port
                yield Cable((f"leaf{leaf + 1}", f"swp{port + 1}"), (f"spine{spine + 1}", f"swp{leaf % leaves + 1}"))
        for spine in range(self.spines if self.cores else 0):
            for core in range(self.cores):
                yield Cable((f"spine{spine + 1}", f"swp{FIRST_CORE_PORT + core}"), (f"core{core + 1}", f"swp{spine + 1}"))
        for index, host in enumerate(self.host_names):
            for rail in range(self.rails):
                leaf, port = self.place(index, rail)
                yield Cable((f"leaf{leaf}", f"swp{port}"), (host, f"{HOST_PORT}{rail}"))

    def place(self, host: int, rail: int) -> tuple[int, int]:
        """Return the numbers of the leaf and the port of a host's rail. host: its position among all, from 0."""
        leaf, position = divmod(host, self.hosts)
        return leaf + 1, FIRST_HOST_PORT + RAIL_PORTS * rail + position

    def cable(self, link: str) -> Cable:
        """Return the cable at a port of a switch, "leaf1/1", or at a host, "host1"; its first end is the named one. Raises LabError."""
        name, _slash, port = link.partition("/")
        ends = (name, f"{SWITCH_PORT}{port}" if port else f"{HOST_PORT}0")
        for cable in self.cables:
            for one, other in ((cable.a, cable.b), (cable.b, cable.a)):
                if one == ends:
                    return Cable(one, other)
        raise LabError(f"There is no cable '{link}'. Name the port of a switch (leaf1/1, spine2/1) or a host (host1).")


@dataclass(frozen=True)
class RailAddress:
    """The address of a host's rail with its prefix length, the address of the leaf's port, and the subnets of the rail at all leaves."""

    address: str
    gateway: str
    routes: tuple[str, ...]


def shape_of(nodes: int, rails: int, given: str = "") -> ClosShape:
    """Return the network of a lab with this number of nodes: two leaves, half of the nodes at each. Raises LabError.

    given: the text of a cabling plan instead, for exactly these nodes and rails.
    """
    if given:
        names = [f"node{number}" for number in range(1, nodes + 1)]
        read_cabling(given).check_hosts(names, [f"{HOST_PORT}{rail}" for rail in range(rails)])
        return ClosShape(rails=rails, of_lab=True, given=given)
    if nodes % 2 or not 2 <= nodes <= 2 * MOST_HOSTS:
        raise LabError(f"A lab with a routed Clos has an even number of nodes, 2 to {2 * MOST_HOSTS}; got {nodes}.")
    return ClosShape(hosts=nodes // 2, rails=rails, of_lab=True)


def rail_address(shape: ClosShape, host: int, rail: int) -> RailAddress:
    """Return the addresses of a host's rail. host: its position among all, from 0."""
    leaf, port = shape.place(host, rail)
    first = HOST_SUBNETS[(leaf - 1) * LEAF_ADDRESSES + 2 * port]
    start = RAIL_ADDRESSES * (rail + 1)
    routes = tuple(f"{HOST_SUBNETS[number * LEAF_ADDRESSES + start]}/26" for number in range(shape.leaves))
    return RailAddress(f"{first + 1}/31", str(first), routes)


def checked(name: str) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9]{0,9}", name):
        raise LabError(f"A Clos network's name is 1 to 10 lower-case letters and digits, beginning with a letter; got '{name}'.")
    return name


def namespace_of(name: str, node: str) -> str:
    """Return the network namespace of a node. The prefix separates them from those of other programs."""
    return f"rdma-clos-{name}-{node}"


def cabling(shape: ClosShape) -> str:
    """Return the planned cabling in the form of rdma_fabric.planes.NAME.plan."""
    if shape.given:
        return shape.given
    tiers = [f"  {name}: {{tier: {name.rstrip('0123456789')}}}\n" for name in shape.switches]
    links = [f"  - {{from: {_end(*cable.a)}, to: {_end(*cable.b)}}}\n" for cable in shape.cables]
    return "".join(["switches:\n", *tiers, "links:\n", *links])


def _end(node: str, interface: str) -> str:
    return f"{node} {interface}" if interface.startswith(HOST_PORT) else f"{node}/{interface.removeprefix(SWITCH_PORT)}"
