# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sweeps that nobody measured over a fabric of leaves and spines, with a fault in the fabric that is known, and some at endpoints.

As sweeps.py, whose noise and gaps are those here too. What is between two endpoints: their leaves; under different leaves also the uplinks
of both and one spine. Written before paths were tried on it: developed on DEVELOPMENT_SEEDS, reported on HELD_OUT_SEEDS; 100001 to 100120
were held out for a first version, and are neither any more.
"""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass

from tests.simulator import sweeps
from tests.simulator.sweeps import Row, Sweep, Truth

DEVELOPMENT_SEEDS = (*range(1, 61), *range(201, 321))
HELD_OUT_SEEDS = range(200_001, 200_121)
PLANS = ("rails", "shared")
"""rails: each rail has leaves of its own; shared: all rails of a host are on one leaf."""
ROUTINGS = ("tables", "destination", "hash")
"""tables: by destination, and known; destination: so too, and unknown; hash: by pair, and unknown."""
HOSTS = (32, 64, 96)
HOSTS_PER_LEAF = (4, 8, 16)
RAILS = (2, 4, 8)
SPINES = (2, 4, 8)
FABRIC_KINDS = ("leaf", "uplinks", "spine")
END_KINDS = ("nic", "receives", "sends", "host", "pair")


@dataclass(frozen=True)
class FabricTruth(Truth):
    """A Truth of kind path. element: "leaf3", "uplinks of leaf3", "spine1"."""

    element: str | None = None


@dataclass(frozen=True)
class FabricSweep:
    """A sweep and the fabric below it. leaf_of[rail][host]: position of a leaf; leaves: how many; routes: where spines are chosen."""

    sweep: Sweep
    plan: str
    routing: str
    leaf_of: tuple[tuple[int, ...], ...]
    leaves: int
    spines: int
    seed: int

    def spine(self, rail: int, server: int, client: int) -> int | None:
        """The spine that the client's data takes; None below one leaf."""
        if self.leaf_of[rail][server] == self.leaf_of[rail][client]:
            return None
        if self.routing == "hash":
            return random.Random(f"{self.seed} {rail} {server} {client}").randrange(self.spines)
        return destination_spine(rail, server, self.spines)


@dataclass(frozen=True)
class _Broken:
    truth: Truth
    factor: float

    def met_by(self, fabric: FabricSweep, rail: int, server: int, client: int) -> bool:
        if not isinstance(self.truth, FabricTruth):
            return sweeps._Fault(self.truth.kind, self.truth, self.factor).met_by(rail, server, client)
        kind, _of, number = self.truth.element.rpartition(" ") if " " in (self.truth.element or "") else ("", "", self.truth.element or "")
        leaves = fabric.leaf_of[rail][server], fabric.leaf_of[rail][client]
        if number.startswith("spine"):
            return fabric.spine(rail, server, client) == int(number.removeprefix("spine"))
        return int(number.removeprefix("leaf")) in leaves and (not kind or leaves[0] != leaves[1])


def destination_spine(rail: int, server: int, spines: int) -> int:
    """The spine of all that goes to an endpoint from other leaves, spread as a fat tree's routing spreads it."""
    return (server + rail) % spines


def simulate_fabric(seed: int) -> FabricSweep:
    """One sweep with a fault in the fabric, now and then two, and up to two at endpoints; the same for the same seed."""
    chance = random.Random(f"fabric {seed}")
    hosts, rails, spines = chance.choice(HOSTS), chance.choice(RAILS), chance.choice(SPINES)
    per_leaf = chance.choice([each for each in HOSTS_PER_LEAF if hosts // each >= 3])
    plan, routing = chance.choice(PLANS), chance.choice(ROUTINGS)
    groups = hosts // per_leaf
    own = groups if plan == "rails" else 0
    leaf_of = tuple(tuple(rail * own + host // per_leaf for host in range(hosts)) for rail in range(rails))
    leaves = groups * (rails if own else 1)
    empty = Sweep(hosts, rails, sweeps.EXPECTED_GBPS, (), frozenset())
    fabric = FabricSweep(empty, plan, routing, leaf_of, leaves, spines, seed)
    broken = _broken(chance, fabric)
    rows = _rows(chance, fabric, broken)
    found = Sweep(hosts, rails, sweeps.EXPECTED_GBPS, rows, frozenset(each.truth for each in broken))
    return FabricSweep(found, plan, routing, leaf_of, leaves, spines, seed)


def _rows(chance: random.Random, fabric: FabricSweep, broken: list[_Broken]) -> tuple[Row, ...]:
    efficiency, missing = chance.uniform(*sweeps.EFFICIENCY), chance.uniform(0, sweeps.MOST_MISSING)
    pairs = {(each.truth.rail, each.truth.host, each.truth.other) for each in broken if each.truth.kind == "pair"}
    rows = []
    for rail in range(fabric.sweep.rails):
        for one, other in itertools.combinations(range(fabric.sweep.hosts), 2):
            server, client = (one, other) if chance.random() < 0.5 else (other, one)
            if chance.random() < missing and (rail, one, other) not in pairs:
                continue
            left = [each.factor for each in broken if each.met_by(fabric, rail, server, client)]
            rows.append(Row(rail, server, client, sweeps._measured(chance, efficiency, left)))
    return tuple(rows)


def _broken(chance: random.Random, fabric: FabricSweep) -> list[_Broken]:
    """Faults that do not hide one another: those at endpoints are of hosts below other leaves than a bad one, one spine at the most."""
    kinds = [chance.choice(FABRIC_KINDS)]
    if chance.random() < 0.3:
        kinds.append(chance.choice([kind for kind in FABRIC_KINDS if kind != "spine" or kinds[0] != "spine"]))
    leaves = chance.sample(range(fabric.leaves), len(kinds))
    found = []
    for kind, leaf in zip(kinds, leaves, strict=True):
        name = f"spine{chance.randrange(fabric.spines)}" if kind == "spine" else f"{'uplinks of ' if kind == 'uplinks' else ''}leaf{leaf}"
        found.append(_Broken(FabricTruth("path", element=name), chance.uniform(*sweeps.FACTOR)))
    bad = {leaf for kind, leaf in zip(kinds, leaves, strict=True) if kind != "spine"}
    free = [host for host in range(fabric.sweep.hosts) if not bad & {of[host] for of in fabric.leaf_of}]
    for _number in range(chance.randint(0, 2)):
        kind, rail = chance.choice(END_KINDS), chance.randrange(fabric.sweep.rails)
        host = free.pop(chance.randrange(len(free)))
        other = next((each for each in free if fabric.leaf_of[rail][each] == fabric.leaf_of[rail][host]), None) if kind == "pair" else None
        if other is not None:
            free.remove(other)
            host, other = min(host, other), max(host, other)
        elif kind == "pair":
            kind = "nic"
        truth = sweeps._truth(kind, rail, host, other)
        found.append(_Broken(truth, chance.uniform(*(sweeps.PAIR_FACTOR if kind == "pair" else sweeps.FACTOR))))
    return found
