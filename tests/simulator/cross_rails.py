# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Simulated measurements across rails with known faults, and how well the faults are named."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import permutations
from random import Random

from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.loads.cross_faults import CrossEnd, CrossResult, cross_faults
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.loads.cross_plan import CrossPort, cross_schedule
from tests.simulator.score import FAIL_BELOW, Score

#: The share that a faulty place leaves, and the spread of healthy pairs.
FAULTY, SPREAD = 0.4, 0.03
#: The kinds of faults; "none" is a healthy fabric.
KINDS = ("leaves", "from", "to", "rails", "port", "spread", "none")
#: The share of pairs that a hash puts on a faulty spine.
HASHED = 0.25


@dataclass(frozen=True)
class CrossSweep:
    """The results of a simulated run, and the places at fault as (kind, names…)."""

    results: list[CrossResult]
    truths: frozenset[tuple[str, ...]]


def cross_sweep(hosts: int, kind: str, faults: int, seed: int, *, per_leaf: int = 8, rails: int = 8, partners: int = 4) -> CrossSweep:
    """Return a sweep of a rail-optimized fabric with so many faults of a kind."""
    chance = Random(seed)
    names = [f"rail{number}" for number in range(rails)]
    ports = [CrossPort(host, rail, f"leaf{host // per_leaf}-{rail}") for host in range(hosts) for rail in names]
    planned = cross_schedule(ports, names, set(permutations(names, 2)), partners)
    pairs = []
    for of, rounds in zip(planned.columns, planned.rounds, strict=True):
        at = {port.host: CrossEnd(f"node{port.host}", port.rail, port.leaf) for port in of}
        pairs += [(at[one], at[other]) for turn in rounds for one, other in turn]
    places = sorted({place for one, other in pairs for place in CrossResult(one, other, 1).places if place[0] == kind})
    truths = frozenset(chance.sample(places, faults) if places else [("spread",)] if kind == "spread" else [])
    results = []
    for one, other in pairs:
        bad = truths & set(CrossResult(one, other, 1).places) if places else truths and chance.random() < HASHED
        share = FAULTY if bad else 1.0
        results.append(CrossResult(one, other, share * chance.gauss(1, SPREAD)))
    return CrossSweep(results, truths)


def cross_score(sweeps: list[CrossSweep]) -> Score:
    """Return the score of cross_faults. A verdict is right if it is exactly a place at fault.

    A pair alone is right only if it is the one measured pair of a place at fault.
    """
    total = Score()
    for sweep in sweeps:
        crossed = Counter(place for each in sweep.results for place in each.places)
        right, found = set[tuple[str, ...]](), cross_faults(sweep.results, FAIL_BELOW)
        for each in found:
            single = {place for place in each.slow[0].places if crossed[place] == 1} if each.place[0] == "pair" else {each.place}
            right |= single & sweep.truths
        total += Score(len(right), len(found), len(sweep.truths))
    return total
