# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan of a simulated InfiniBand fabric: switches, HCAs and cables, all derived from a few numbers.

Pure: nothing here reads the machine. Names are common ones ("leaf1", "spine1", "node17 mlx5_3"). GUIDs depend only on the order, so the
same numbers always give the same fabric.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from lab.errors import LabError

KINDS = ("rail", "leafspine")
#: ibsim of Debian 12 (0.10) does not support NDR; a port that supports HDR also supports slower speeds.
SPEED, WIDTH = "HDR", 4
#: The ports of an NVIDIA Quantum-2 switch.
SWITCH_PORTS = 64
MAX_HCAS, MAX_RAILS = 4096, 16
SWITCH_GUIDS, HCA_GUIDS, GUID_STEP = 0x506B4B0300000000, 0xA088C20300000000, 0x10


@dataclass(frozen=True)
class Switch:
    """A switch; `tier` is leaf or spine."""

    name: str
    tier: str
    guid: int


@dataclass(frozen=True)
class Hca:
    """One port of a host; `name` is "HOST DEVICE", which is also its node description."""

    name: str
    guid: int


@dataclass(frozen=True, order=True)
class End:
    """One end of a cable; ports count from 1."""

    node: str
    port: int

    def __str__(self) -> str:
        return f"{self.node}/{self.port}"


@dataclass(frozen=True)
class Trunk:
    """`count` parallel cables on consecutive ports of both sides."""

    a: End
    b: End
    count: int = 1

    def cables(self) -> Iterator[tuple[End, End]]:
        for i in range(self.count):
            yield End(self.a.node, self.a.port + i), End(self.b.node, self.b.port + i)


@dataclass(frozen=True)
class Shape:
    """The numbers of a fabric. uplinks: of a leaf, to all spines together. `spines` and `uplinks` None: non-blocking."""

    kind: str
    hosts: int
    rails: int
    spines: int | None = None
    uplinks: int | None = None
    ports: int = SWITCH_PORTS


@dataclass(frozen=True)
class FabricPlan:
    """A whole fabric."""

    shape: Shape
    switches: tuple[Switch, ...]
    hcas: tuple[Hca, ...]
    trunks: tuple[Trunk, ...]

    @property
    def nodes(self) -> tuple[Switch | Hca, ...]:
        return (*self.switches, *self.hcas)

    def cables(self) -> Iterator[tuple[End, End]]:
        for trunk in self.trunks:
            yield from trunk.cables()

    def guid(self, name: str) -> int:
        """Return the node GUID of a switch or an HCA. Raises LabError if the fabric has none of this name."""
        for node in self.nodes:
            if node.name == name:
                return node.guid
        raise LabError(f"The fabric has no '{name}': its nodes are {self.switches[0].name} … and '{self.hcas[0].name}' ….")

    def port_guid(self, end: End) -> int:
        """Return the GUID by which tools name a port: for an HCA, ibsim uses the node GUID plus the port's number."""
        is_switch = any(switch.name == end.node for switch in self.switches)
        return self.guid(end.node) + (0 if is_switch else end.port)


def make(shape: Shape) -> FabricPlan:
    """Return the whole plan. Raises LabError for impossible numbers.

    rail: each rail has its own leaves, and HCA N of a host (mlx5_N) is on a leaf of rail N. leafspine: all HCAs of a host are on one leaf,
    and there are at least two leaves. Hosts fill half of a leaf's ports. Every leaf has the same number of cables to every spine.
    """
    _check(shape)
    per_leaf = shape.ports // 2 if shape.kind == "rail" else shape.ports // 2 // shape.rails
    leaves = max(math.ceil(shape.hosts / per_leaf), 1 if shape.kind == "rail" else 2)
    per_leaf = math.ceil(shape.hosts / leaves)
    # Rounding up may leave the last leaves without hosts.
    leaves = math.ceil(shape.hosts / per_leaf)
    down = per_leaf if shape.kind == "rail" else per_leaf * shape.rails
    total = leaves * shape.rails if shape.kind == "rail" else leaves
    up = shape.uplinks or down
    spines = shape.spines or max(2, math.ceil(total * up / shape.ports))
    parallel = math.ceil(up / spines)
    if parallel * spines > shape.ports - down:
        parallel = (shape.ports - down) // spines
    if parallel < 1 or parallel * total > shape.ports:
        raise LabError(f"{total} leaves with {up} uplinks each do not fit on {spines} spines of {shape.ports} ports.")
    switches = _switches("leaf", total, 0) + _switches("spine", spines, total)
    hosts, trunks = _hosts(shape, leaves, per_leaf)
    for leaf in range(total):
        for spine in range(spines):
            at = End(f"leaf{leaf + 1}", down + 1 + spine * parallel)
            trunks.append(Trunk(at, End(f"spine{spine + 1}", 1 + leaf * parallel), parallel))
    return FabricPlan(shape, switches, hosts, tuple(trunks))


def _check(shape: Shape) -> None:
    if shape.kind not in KINDS:
        raise LabError(f"A fabric's plan is {' or '.join(KINDS)}; got '{shape.kind}'.")
    if not 1 <= shape.rails <= MAX_RAILS:
        raise LabError(f"A host has 1 to {MAX_RAILS} rails; got {shape.rails}.")
    if shape.hosts < 2 or shape.hosts * shape.rails > MAX_HCAS:
        raise LabError(f"A fabric has 2 hosts at least and {MAX_HCAS} HCAs at most; got {shape.hosts} hosts of {shape.rails} rails.")
    if not 2 * shape.rails <= shape.ports <= 254:
        raise LabError(f"A switch has {2 * shape.rails} (two for each rail) to 254 ports; got {shape.ports}.")
    if (shape.spines is not None and shape.spines < 1) or (shape.uplinks is not None and shape.uplinks < 1):
        raise LabError("A fabric has one spine and a leaf one uplink at least.")


def _switches(tier: str, count: int, before: int) -> tuple[Switch, ...]:
    return tuple(Switch(f"{tier}{i + 1}", tier, SWITCH_GUIDS + (before + i + 1) * GUID_STEP) for i in range(count))


def _hosts(shape: Shape, leaves: int, per_leaf: int) -> tuple[tuple[Hca, ...], list[Trunk]]:
    """Return the HCAs, and the cable of each."""
    hcas: list[Hca] = []
    trunks: list[Trunk] = []
    for host in range(shape.hosts):
        group, place = divmod(host, per_leaf)
        for rail in range(shape.rails):
            name = f"node{host + 1} mlx5_{rail}"
            hcas.append(Hca(name, HCA_GUIDS + (len(hcas) + 1) * GUID_STEP))
            on_rail = shape.kind == "rail"
            leaf = rail * leaves + group if on_rail else group
            port = place + 1 if on_rail else place * shape.rails + rail + 1
            trunks.append(Trunk(End(name, 1), End(f"leaf{leaf + 1}", port)))
    return tuple(hcas), trunks


def end(word: str) -> End:
    """Return the end of a link in a text: "leaf1/33", "node17 mlx5_3" (its only port) or "leaf1" (port 0: the whole node)."""
    found = re.fullmatch(r"(?P<node>[^/\"]+?)(/(?P<port>[1-9]\d{0,2}))?", word)
    if not found:
        raise LabError(f"A link is named by one of its ends, as leaf1/33 or 'node17 mlx5_3'; got '{word}'.")
    node, port = found["node"], found["port"]
    return End(node, int(port) if port else 1 if " " in node else 0)
