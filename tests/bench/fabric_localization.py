# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How well verdicts name what of the fabric is wrong: python -m tests.bench.fabric_localization [development | held-out | FIRST-LAST]"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ansible_collections.rdma.cluster.plugins.module_utils._fabric.graph import Graph, Link, Node, Port
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.verdict.paths import End, FabricPaths, Routes
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.verdict.verdict import Verdict, localize
from tests.bench.localization import matrix_of
from tests.simulator.fabrics import DEVELOPMENT_SEEDS, HELD_OUT_SEEDS, FabricSweep, FabricTruth, destination_spine, simulate_fabric
from tests.simulator.score import Score
from tests.simulator.sweeps import Truth

LEAF, SPINE, HCA = 0x1 << 32, 0x2 << 32, 0x3 << 32
#: Ports of a leaf from here on lead to spines.
UPLINKS = 100


def _guid(number: int) -> str:
    return f"0x{number:016x}"


def _lid(rail: int, host: int) -> int:
    return 1 + rail * 1024 + host


def graph_of(fabric: FabricSweep) -> tuple[Graph, list[list[End | None]], Routes | None]:
    """The simulated fabric as it would be discovered, where the hosts' HCAs are in it, and its forwarding tables where they are known."""
    nodes = {_guid(LEAF + leaf): _switch(LEAF + leaf, f"leaf{leaf}") for leaf in range(fabric.leaves)}
    nodes.update({_guid(SPINE + spine): _switch(SPINE + spine, f"spine{spine}") for spine in range(fabric.spines)})
    links = [
        Link((_guid(LEAF + leaf), UPLINKS + spine), (_guid(SPINE + spine), 1 + leaf), 4, "NDR")
        for leaf in range(fabric.leaves)
        for spine in range(fabric.spines)
    ]
    ends: list[list[End | None]] = []
    routes: dict[str, dict[int, int]] = {guid: {} for guid in nodes}
    for rail, of in enumerate(fabric.leaf_of):
        ends.append([])
        for host, leaf in enumerate(of):
            guid = _guid(HCA + rail * 1024 + host)
            links.append(Link((_guid(LEAF + leaf), rail * 1024 + host + 1000), (guid, 1), 4, "NDR"))
            ends[-1].append((guid, 1))
            name = f"node{host} mlx5_{rail}"
            ports = {1: Port(number=1, lid=_lid(rail, host))}
            nodes[guid] = Node(
                guid=guid,
                kind="host",
                name=f"node{host}",
                description=name,
                device=f"mlx5_{rail}",
                system_guid=guid,
                vendor_id=None,
                device_id=None,
                lid=None,
                ports=ports,
            )
            up = UPLINKS + destination_spine(rail, host, fabric.spines)
            for other in range(fabric.leaves):
                routes[_guid(LEAF + other)][_lid(rail, host)] = rail * 1024 + host + 1000 if other == leaf else up
            for spine in range(fabric.spines):
                routes[_guid(SPINE + spine)][_lid(rail, host)] = 1 + leaf
    graph = Graph(plane="default", nodes=nodes, links=links, source="ibnetdiscover", complete=True, problems=[])
    return graph, ends, routes if fabric.routing == "tables" else None


def _switch(number: int, name: str) -> Node:
    guid = _guid(number)
    return Node(
        guid=guid,
        kind="switch",
        name=name,
        description=name,
        device=None,
        system_guid=guid,
        vendor_id=None,
        device_id=None,
        lid=None,
        ports={},
    )


def named(fabric: FabricSweep) -> frozenset[Truth]:
    """The verdicts on a simulated sweep, as faults."""
    graph, ends, routes = graph_of(fabric)
    return frozenset(map(_truth, localize(matrix_of(fabric.sweep), paths=FabricPaths(graph, ends, routes))))


def _truth(verdict: Verdict) -> Truth:
    if verdict.kind == "path":
        return FabricTruth("path", element=verdict.element)
    return Truth(verdict.kind, verdict.host, verdict.rail, verdict.direction, verdict.other)


def meant(fabric: FabricSweep) -> dict[Truth, str]:
    """Each fault as it can be named → its kind: without tables, a spine can only be named as one of them."""
    spines = [f"spine{number}" for number in range(fabric.spines)]
    more = f" and {len(spines) - 4} more" if len(spines) > 4 else ""
    group = FabricTruth("path", element=f"one of {', '.join(spines[:4])}{more}")
    found: dict[Truth, str] = {}
    for truth in fabric.sweep.truths:
        element = truth.element if isinstance(truth, FabricTruth) else None
        if element is None:
            found[truth] = "endpoint"
        elif element.startswith("spine"):
            found[truth if fabric.routing == "tables" else group] = f"spine, {fabric.routing}"
        else:
            found[truth] = element.split(" ", maxsplit=1)[0].rstrip("0123456789")
    return found


@dataclass
class Compared:
    """Scores by kind of fault, and where the method was wrong."""

    method: Score = field(default_factory=Score)
    by_kind: dict[str, Score] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def add(self, seed: int, fabric: FabricSweep) -> None:
        answer, truths = named(fabric), meant(fabric)
        self.method += Score(len(answer & truths.keys()), len(answer), len(truths))
        for truth in answer | truths.keys():
            kind = truths.get(truth, "false")
            one = Score(int(truth in answer and truth in truths), int(truth in answer), int(truth in truths))
            self.by_kind[kind] = self.by_kind.get(kind, Score()) + one
        if answer != truths.keys():
            missed, false = ([_words(each) for each in of] for of in (truths.keys() - answer, answer - truths.keys()))
            where = f"{fabric.sweep.hosts} hosts, {fabric.sweep.rails} rails, {fabric.leaves} leaves, {fabric.spines} spines"
            self.wrong.append(f"seed {seed}, {where}, {fabric.plan}, {fabric.routing}: missed {sorted(missed)}, false {sorted(false)[:6]}")

    def table(self) -> str:
        lines = [f"{'':<20}{'precision':>10}{'recall':>8}{'right':>7}{'verdicts':>9}{'faults':>7}"]
        rows = [("all", self.method), *sorted(self.by_kind.items())]
        lines += [f"{name:<20}{s.precision:>10.4f}{s.recall:>8.4f}{s.right:>7}{s.verdicts:>9}{s.faults:>7}" for name, s in rows]
        return "\n".join([*lines, *self.wrong])


def _words(truth: Truth) -> str:
    if isinstance(truth, FabricTruth):
        return str(truth.element)
    return f"{truth.kind} {truth.host} {truth.rail} {truth.direction} {truth.other}"


def compare(seeds: Iterable[int]) -> Compared:
    """The verdicts on simulated sweeps over simulated fabrics."""
    compared = Compared()
    for seed in seeds:
        compared.add(seed, simulate_fabric(seed))
    return compared


def main(words: Sequence[str]) -> None:
    """Print what the words ask for; without any, the seeds that the method was developed on."""
    word = words[0] if words else "development"
    seeds: Sequence[int] | None = {"development": DEVELOPMENT_SEEDS, "held-out": HELD_OUT_SEEDS}.get(word)
    if seeds is None:
        first, _dash, last = word.partition("-")
        seeds = range(int(first), int(last or first) + 1)
    print(f"{len(seeds)} sweeps\n{compare(seeds).table()}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
