# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The values of a planned fabric: switches, cables, figures, and the candidates that were compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

#: The plane of a fabric that joins all NICs.
FABRIC = "fabric"


@dataclass(frozen=True, slots=True)
class Switch:
    """A switch. tier: "leaf", "spine" or "core". plane: "fabric" or "rail0". number: from 1, within its tier and plane."""

    name: str
    tier: str
    plane: str
    number: int
    model: str


@dataclass(frozen=True, order=True, slots=True)
class Plug:
    """One end of a cable. node: a host or a switch. port: from 1.

    rail: "rail3" at a host, None at a switch. On a switch with split ports, part q of port p has the number (p - 1) × parts + q, and a port
    that is not split has the number of its first part.
    """

    node: str
    port: int
    rail: str | None = None


@dataclass(frozen=True, slots=True)
class Cable:
    """A cable. a: the lower end (a host, or the switch of the lower tier). gbps: 10^9 bit/s per direction."""

    a: Plug
    b: Plug
    gbps: float


@dataclass(frozen=True, slots=True)
class Design:
    """A fabric with all its cables. hosts: node1, node2, … planes: "fabric", or "rail0", "rail1", …"""

    family: str
    hosts: tuple[str, ...]
    planes: tuple[str, ...]
    switches: tuple[Switch, ...]
    cables: tuple[Cable, ...]


@dataclass(frozen=True, slots=True)
class Failure:
    """The cost of one failure. part: "spine", "leaf-spine cable", … count: parts of this kind in the design.

    hosts_cut: hosts that lose all NICs. nics_cut: NICs without a link to their leaf. bisection_gbps: of the rest, all planes together.
    plane_share: bisection left in the plane of the failure, as a share of the plane without failures.
    """

    part: str
    example: str
    count: int
    hosts_cut: int
    nics_cut: int
    bisection_gbps: float
    plane_share: float


@dataclass(frozen=True, slots=True)
class Measures:
    """Figures of a design, exact unless named an estimate. Bandwidths in 10^9 bit/s per direction.

    switches: tier → number. cables: "host-leaf", "leaf-spine", "spine-core", "spine-spine", "host-host" → number. free_ports: tier →
    physical ports without a cable on the fullest switch of the tier. bisection_gbps: the least bandwidth between two halves of the NICs (of
    the hosts in a mesh or ring), over all halves, summed over the planes. plane_bisection_gbps: of one plane. wanted_gbps: the requested
    bisection of one plane. worst_gbps: bisection of a plane after the requested failures. ratio: tier → bandwidth below / bandwidth above
    of a full switch. imbalance: largest / smallest number of links between a leaf and a spine of its pod. diameter: switches (in a mesh or
    ring: hosts that forward) on the longest of the shortest paths. latency_ns: estimate over this path. failures: the N-1 table, the
    worst first.
    """

    switches: Mapping[str, int]
    cables: Mapping[str, int]
    free_ports: Mapping[str, int]
    bisection_gbps: float
    plane_bisection_gbps: float
    wanted_gbps: float
    ratio: Mapping[str, float]
    imbalance: float
    worst_gbps: float
    diameter: int
    latency_ns: float
    failures: tuple[Failure, ...] = ()

    @property
    def switch_count(self) -> int:
        """Return the number of all switches."""
        return sum(self.switches.values())

    @property
    def cable_count(self) -> int:
        """Return the number of all cables."""
        return sum(self.cables.values())


@dataclass(frozen=True, slots=True)
class Candidate:
    """A family in the comparison. design: for the hosts of today; measures_later: of the same fabric with all hosts that are planned.

    cost: the compared price, None without prices. chosen: whether it is the cheapest one that holds all bounds. why_not: the reason if it
    is not chosen. hosts_at_most: the most hosts of this family, None if it has no such limit.
    """

    family: str
    design: Design | None = None
    measures: Measures | None = None
    measures_later: Measures | None = None
    cost: float | None = None
    chosen: bool = False
    why_not: str | None = None
    hosts_at_most: int | None = None
