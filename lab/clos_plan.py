# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The shape of a routed Clos network of network namespaces: its nodes, their ports and cables, and the planned cabling as text.

A leaf has its uplinks on swp1 to swpS, in the order of the spines, and its hosts from swp33 on. A spine has leaf N on swpN. So a leaf or a
spine that is added later changes no existing cable.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lab.errors import LabError

#: The first port of a leaf that leads to a host.
FIRST_HOST_PORT = 33
MOST_LEAVES, MOST_SPINES, MOST_HOSTS = 32, 32, 16
#: The interface of a host.
HOST_PORT = "rail0"
MTU_BYTES = 9000


@dataclass(frozen=True)
class ClosShape:
    """leaves × spines switches, and hosts of each leaf."""

    leaves: int = 2
    spines: int = 2
    hosts: int = 1

    def __post_init__(self) -> None:
        for name, most, least in (("leaves", MOST_LEAVES, 1), ("spines", MOST_SPINES, 1), ("hosts", MOST_HOSTS, 0)):
            if not least <= getattr(self, name) <= most:
                raise LabError(f"A routed Clos has {least} to {most} {name}; got {getattr(self, name)}.")

    @property
    def switches(self) -> list[str]:
        return [*(f"leaf{n}" for n in range(1, self.leaves + 1)), *(f"spine{n}" for n in range(1, self.spines + 1))]

    @property
    def host_names(self) -> list[str]:
        """host1 … of leaf1, then those of leaf2, and so on."""
        return [f"host{n}" for n in range(1, self.leaves * self.hosts + 1)]

    @property
    def cables(self) -> Iterator[Cable]:
        """Yield all cables: first the uplinks, then those of the hosts."""
        for leaf in range(1, self.leaves + 1):
            for spine in range(1, self.spines + 1):
                yield Cable((f"leaf{leaf}", f"swp{spine}"), (f"spine{spine}", f"swp{leaf}"))
        for index, host in enumerate(self.host_names):
            leaf, port = divmod(index, self.hosts)
            yield Cable((f"leaf{leaf + 1}", f"swp{FIRST_HOST_PORT + port}"), (host, HOST_PORT))

    def cable(self, link: str) -> Cable:
        """Return the cable at a port of a switch, "leaf1/1", or at a host, "host1"; its first end is the named one. Raises LabError."""
        name, _slash, port = link.partition("/")
        ends = {name, HOST_PORT} if not port else {name, f"swp{port}"}
        for cable in self.cables:
            for one, other in ((cable.a, cable.b), (cable.b, cable.a)):
                if set(one) == ends:
                    return Cable(one, other)
        raise LabError(f"There is no cable '{link}'. Name the port of a switch (leaf1/1, spine2/1) or a host (host1).")


@dataclass(frozen=True)
class Cable:
    """a, b: (node, interface)."""

    a: tuple[str, str]
    b: tuple[str, str]


def checked(name: str) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9]{0,9}", name):
        raise LabError(f"A Clos network's name is 1 to 10 lower-case letters and digits, beginning with a letter; got '{name}'.")
    return name


def namespace_of(name: str, node: str) -> str:
    """Return the network namespace of a node. The prefix separates them from those of other programs."""
    return f"rdma-clos-{name}-{node}"


def cabling(shape: ClosShape) -> str:
    """Return the planned cabling in the form of rdma_fabric.planes.NAME.plan."""
    tiers = [f"  {name}: {{tier: {'leaf' if name.startswith('leaf') else 'spine'}}}\n" for name in shape.switches]
    links = [f"  - {{from: {_end(*cable.a)}, to: {_end(*cable.b)}}}\n" for cable in shape.cables]
    return "".join(["switches:\n", *tiers, "links:\n", *links])


def _end(node: str, interface: str) -> str:
    return f"{node} {interface}" if interface == HOST_PORT else f"{node}/{interface.removeprefix('swp')}"
