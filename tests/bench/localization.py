# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How well verdicts name what is wrong: python -m tests.bench.localization [development | held-out | SEED… | FIRST-LAST]"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.matrix.matrix import Matrix
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.verdict.verdict import Verdict, localize
from tests.bench import verdict_fleet
from tests.child import environment
from tests.simulator.score import Score, score, threshold
from tests.simulator.sweeps import DEVELOPMENT_KINDS, DEVELOPMENT_SEEDS, HELD_OUT_KINDS, HELD_OUT_SEEDS, Sweep, Truth, simulate

ROOT = Path(__file__).parents[2]


@dataclass
class Compared:
    """Scores of the method and of the threshold, the method's by kind of fault, and where it was wrong."""

    method: Score = field(default_factory=Score)
    baseline: Score = field(default_factory=Score)
    by_kind: dict[str, Score] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def add(self, seed: int, sweep: Sweep) -> None:
        answer = named(sweep)
        self.method += score([sweep], lambda _sweep: answer)
        self.baseline += score([sweep], threshold)
        for truth in answer | sweep.truths:
            kind = f"{'host ' if truth.rail is None else ''}{truth.direction}" if truth.direction else truth.kind
            one = Score(int(truth in answer & sweep.truths), int(truth in answer), int(truth in sweep.truths))
            self.by_kind[kind] = self.by_kind.get(kind, Score()) + one
        if answer != sweep.truths:
            self.wrong.append(
                f"seed {seed}, {sweep.hosts} hosts: missed {_words(sweep.truths - answer)}, false {_words(answer - sweep.truths)}"
            )

    def table(self) -> str:
        rows = [("method", self.method), *sorted(self.by_kind.items()), ("threshold", self.baseline)]
        lines = [f"{'':<16}{'precision':>10}{'recall':>8}{'right':>7}{'verdicts':>9}{'faults':>7}"]
        lines += [f"{name:<16}{s.precision:>10.4f}{s.recall:>8.4f}{s.right:>7}{s.verdicts:>9}{s.faults:>7}" for name, s in rows]
        return "\n".join([*lines, *self.wrong])


def _words(truths: Iterable[Truth]) -> str:
    return ", ".join(sorted(f"{each.kind} {each.host} {each.rail} {each.direction} {each.other}" for each in truths)) or "none"


def matrix_of(sweep: Sweep) -> Matrix:
    """A simulated sweep as verdicts take it."""
    rows = ((row.rail, row.server, row.client, None if row.gbps is None else row.gbps / sweep.expected_gbps) for row in sweep.rows)
    return Matrix.of([f"node{number}" for number in range(sweep.hosts)], [f"rail{number}" for number in range(sweep.rails)], rows)


def _truth(verdict: Verdict) -> Truth:
    return Truth(verdict.kind, verdict.host, verdict.rail, verdict.direction, verdict.other)


def named(sweep: Sweep) -> frozenset[Truth]:
    """The verdicts on a simulated sweep, as faults."""
    return frozenset(map(_truth, localize(matrix_of(sweep))))


def compare(seeds: Iterable[int], kinds: Sequence[str]) -> Compared:
    """The method and the threshold on the same sweeps."""
    compared = Compared()
    for seed in seeds:
        compared.add(seed, simulate(seed, kinds))
    return compared


def localization() -> dict[str, float]:
    """On what the method was not developed on, seeds with both sets of kinds: its precision and recall, and the threshold's."""
    parts = [compare(HELD_OUT_SEEDS, kinds) for kinds in (DEVELOPMENT_KINDS, HELD_OUT_KINDS)]
    method, baseline = parts[0].method + parts[1].method, parts[0].baseline + parts[1].baseline
    return {
        "localization_precision": method.precision,
        "localization_recall": method.recall,
        "threshold_precision": baseline.precision,
        "threshold_recall": baseline.recall,
    }


def verdict_1024x8(hosts: int = 1024, rails: int = 8) -> dict[str, Any]:
    """Read and judge a full sweep's files in a process of its own: {"seconds", "cpu_seconds", "mib", "results", "bytes_per_result", …}."""
    with tempfile.TemporaryDirectory(prefix="rdma-verdict-") as name:
        written = verdict_fleet.write(Path(name), hosts, rails)
        argv = [sys.executable, "-m", "tests.bench.verdict_fleet", name]
        done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT, env=environment())
    answer: dict[str, Any] = json.loads(done.stdout)
    return {**answer, "bytes_per_result": written["bytes"] / written["results"]}


def _seeds(words: Sequence[str]) -> list[int]:
    found: list[int] = []
    for word in words:
        first, _dash, last = word.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def main(words: Sequence[str]) -> None:
    """Print what the words ask for; without any, the seeds and kinds that the method was developed on."""
    sets: dict[str, list[tuple[Sequence[int], Sequence[str]]]]
    sets = {"development": [(DEVELOPMENT_SEEDS, DEVELOPMENT_KINDS)], "held-out": [(HELD_OUT_SEEDS, DEVELOPMENT_KINDS)]}
    sets["held-out"].append((HELD_OUT_SEEDS, HELD_OUT_KINDS))
    word = words[0] if words else "development"
    for seeds, kinds in sets.get(word) or [(_seeds(words), DEVELOPMENT_KINDS), (_seeds(words), HELD_OUT_KINDS)]:
        print(f"{len(seeds)} sweeps, faults of {', '.join(kinds)}\n{compare(seeds, kinds).table()}\n", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
