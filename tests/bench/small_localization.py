# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which ports the pairs gate accuses in small fleets.

Run `python -m tests.bench.small_localization [development | held-out | FIRST-LAST] [usual | wide | cards]`. Each fleet is swept, its
suspects are measured again, and the gate judges, all with the product's own plans and files. A healthy port that is accused with its bad
partner is a false accusation, unless there are two hosts: then the cause is unknown.
"""

from __future__ import annotations

import functools
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import STOPPING, WARNING
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.digest import comparable
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.evidence import AGAIN, SWEEP, Evidence
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.fleet import Fleet
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.gate.checks import BANDWIDTH_CHECK
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.gate.gate import PairGate
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.plan.plan import make_plan, tests_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.plan.suspects import meetings, reach, rounds
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.schedule import planned_meetings
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.verdict.low import suspects_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder
from tests.simulator.small_fleets import DEVELOPMENT_SEEDS, HELD_OUT_SEEDS, NOISE, SmallFleet, simulate_small
from tests.unit.builders.hosts import hard, lab_facts, lab_intent
from tests.unit.builders.known import known_of

SETTINGS = {"iterations": 200, "floor_gbps": 0.005, "software_fail_below": 0.4, "latency_command": "none"}
FULL = {"kind": "full"}
Ports = frozenset[tuple[int, int]]


@dataclass
class Accused:
    """Accusations (ports with an error or unknown), those that are true, faulty ports, and faults that any accusation names."""

    right: int = 0
    accused: int = 0
    faulty: int = 0
    named: int = 0
    fleets: int = 0
    faults: int = 0
    warned: int = 0

    def __add__(self, other: Accused) -> Accused:
        return Accused(*(getattr(self, name) + getattr(other, name) for name in self.__dataclass_fields__))

    @property
    def precision(self) -> float:
        return self.right / self.accused if self.accused else 1.0

    @property
    def recall(self) -> float:
        """Of the fleets with a fault those in which an accusation names it."""
        return self.named / self.faults if self.faults else 1.0


@dataclass
class Compared:
    """Of all fleets, by kind, and where it was wrong."""

    total: Accused = field(default_factory=Accused)
    by_kind: dict[str, Accused] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def add(self, fleet: SmallFleet, answer: Judgment) -> None:
        one = Accused(
            len(answer.right),
            len(answer.accused),
            len(fleet.faults),
            int(bool(answer.right)),
            1,
            int(bool(fleet.faults)),
            len(answer.warned),
        )
        self.total += one
        self.by_kind[fleet.kind] = self.by_kind.get(fleet.kind, Accused()) + one
        if answer.accused - answer.right or (fleet.faults and not answer.right):
            what = "false" if answer.accused - answer.right else "missed"
            self.wrong.append(f"{what}: {fleet}: {sorted(answer.accused - answer.right)} {'; '.join(answer.words)}")

    def table(self) -> str:
        rows = [*sorted(self.by_kind.items()), ("all", self.total)]
        lines = [f"{'':<14}{'precision':>10}{'recall':>8}{'accused':>9}{'false':>7}{'faults':>8}{'fleets':>8}{'warnings':>10}"]
        lines += [
            f"{name:<14}{s.precision:>10.4f}{s.recall:>8.4f}{s.accused:>9}{s.accused - s.right:>7}{s.faults:>8}{s.fleets:>8}{s.warned:>10}"
            for name, s in rows
        ]
        return "\n".join([*lines, *self.wrong])


@dataclass(frozen=True)
class Judgment:
    """accused: ports with a finding that stops the gate; right: of those the true ones; warned: ports with a warning."""

    accused: Ports
    right: Ports
    warned: Ports
    words: tuple[str, ...]


@functools.cache
def _known(hosts: int, rails: int, cards: bool) -> Fleet:
    known = {}
    for number in range(1, hosts + 1):
        intent = lab_intent(number, pairs=SETTINGS)
        intent["rails"] = intent["rails"][:rails]
        known[f"node{number}"] = {"intent": intent, "facts": comparable(lab_facts(number))}
    if cards:
        hard(known)
    return Fleet.of(known_of(known))


def judge_small(fleet: SmallFleet, path: Path) -> Judgment:
    """Sweep a fleet, measure its suspects again, and judge; path: an empty folder."""
    known, folder = _known(fleet.hosts, fleet.rails, fleet.noise == "cards"), RunFolder(path)
    settings = next(iter(known.intents.values()))["pairs"]
    tests = tests_of(known.intents[known.hosts[0]])
    _measure(fleet, folder, SWEEP, make_plan("S", hosts=known.hosts, rails=known.rails, of=known.endpoints, tests=tests, schedule=FULL))
    sweep = Evidence.of(folder, SWEEP, known.intents, known.facts)
    assert sweep is not None
    suspects = suspects_of(sweep, settings, {})
    partners = reach(sweep.bandwidth, suspects, known.hosts, sweep.partitions)
    planned = meetings(suspects, sweep.bandwidth, partners, controls=sweep.software)
    if planned:
        schedule = {"kind": "meetings", "rails": rounds(planned, known.hosts, known.rails)}
        plan = make_plan("A", hosts=known.hosts, rails=known.rails, of=known.endpoints, tests=tests[:1], schedule=schedule)
        _measure(fleet, folder, AGAIN, plan)
    gate = PairGate(folder, known, {}, settings, 168, False, 1.8e9, fleet.hosts)
    findings = gate.judge()
    accused, right, warned, words = set(), set(), set(), []
    for host, of_host in findings.items():
        for found in of_host:
            if found.check != BANDWIDTH_CHECK:
                continue
            where = (known.rails.index(found.subject), known.hosts.index(host))
            if found.status == WARNING:
                warned.add(where)
            if found.status in STOPPING:
                accused.add(where)
                words.append(f"{host} {found.subject} {found.status} {found.observed} | {found.expected}")
                if _is_true(fleet, where):
                    right.add(where)
    return Judgment(frozenset(accused), frozenset(right), frozenset(warned), tuple(words))


def _is_true(fleet: SmallFleet, where: tuple[int, int]) -> bool:
    """Whether a port is bad; of two hosts it is unknown which it is."""
    return where in fleet.faults or (fleet.hosts == 2 and any(bad == where[0] for bad, _host in fleet.faults))


def _measure(fleet: SmallFleet, folder: RunFolder, name: str, plan: dict[str, Any]) -> None:
    """Write the results of a plan, as they come from the hosts."""
    folder.write_json(f"{name}/plan.json", plan)
    lines: dict[str, list[str]] = {host: [] for host in plan["hosts"]}
    times: Counter[tuple[int, int, int]] = Counter()
    for rail, number, server, client in planned_meetings(plan):
        where = rail, server, client
        value = fleet.measure("sweep" if name == SWEEP else "again", *where, times[where])
        times[where] += 1
        why = [] if value is not None else ["dead", "timed out"]
        line = [rail, number, server, client, 0, 0, None if value is None else round(value, 6), 1.2, 0.1, *why]
        lines[plan["hosts"][client]].append(json.dumps(line))
    for host, of_host in lines.items():
        folder.write(folder.host_file(name, host, ".jsonl"), "".join(line + "\n" for line in of_host))


def compare_small(seeds: Iterable[int], noise: str = "usual") -> Compared:
    """Judge the fleets of these seeds. noise: a key of NOISE."""
    compared = Compared()
    for seed in seeds:
        fleet = simulate_small(seed, noise)
        with tempfile.TemporaryDirectory(prefix="rdma-small-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as name:
            compared.add(fleet, judge_small(fleet, Path(name)))
    return compared


def small_localization() -> dict[str, float]:
    """Precision and recall on the seeds that were held out."""
    found = {noise: compare_small(HELD_OUT_SEEDS, noise).total for noise in NOISE}
    names = {"usual": "small_fleet", "wide": "small_fleet_wide", "cards": "small_fleet_cards"}
    return {
        f"{names[noise]}_{what}": value
        for noise, total in found.items()
        for what, value in (("precision", total.precision), ("recall", total.recall))
    }


def main(words: Sequence[str]) -> None:
    """Print the tables of what the words ask for."""
    named = {"development": DEVELOPMENT_SEEDS, "held-out": HELD_OUT_SEEDS}
    asked = [word for word in words if word in NOISE]
    word = next((word for word in words if word not in NOISE), "development")
    first, _dash, last = word.partition("-")
    seeds = named.get(word) or range(int(first), int(last or first) + 1)
    for noise in asked or NOISE:
        print(f"{noise} noise, seeds {seeds[0]} to {seeds[-1]}", compare_small(seeds, noise).table(), sep="\n", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
