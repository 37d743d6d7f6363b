# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The figures of the fabric stage: reading, and all findings on a generated fabric of 2048 HCAs on 96 switches."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.cabling.plan import parse_plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.judge import Asked, judge
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.links.counters import LIMITS
from tests.bench import fabric_parse
from tests.bench.bars import Line, figure
from tests.bench.fabric_localization import compare
from tests.simulator.fabrics import HELD_OUT_SEEDS
from tests.unit.builders.fabrics import rail

LOCALIZATION = ("python", "-m", "tests.bench.fabric_localization", "held-out")
FABRIC = ("python", "-m", "tests.bench.figures", "fabric")
RUNS = 3


def findings_s() -> float:
    """The best of RUNS: a plan, rails, an earlier graph and a baseline of counters, and a spine that is slow."""
    fabric = rail(hosts=256, rails=8, spines=32, cables=1, per_leaf=32)
    for end in fabric.cables:
        fabric.count(end, **dict.fromkeys(LIMITS, 3))
    plan, expected, before = parse_plan(fabric.plan_text()), fabric.expected(), fabric.graph()
    baseline = judge(before, Asked(seconds=1.0, run="a")).baseline
    for end in [end for end in fabric.cables if end[0] == "spine7"]:
        fabric.slow(end, 4, "HDR")
    graph = fabric.graph()
    taken = []
    for _run in range(RUNS):
        start = time.perf_counter()
        judged = judge(graph, Asked(plan, expected, 1.0, before=before, before_run="a", baseline=baseline, seconds=3601.0, run="b"))
        taken.append(time.perf_counter() - start)
    bad = [finding.subject for finding in judged.findings if finding.status not in ("ok", "not_applicable")]
    if len(graph.nodes) != 2048 + 96 or bad != ["spine7"]:
        raise RuntimeError(f"something else was measured: {len(graph.nodes)} nodes, findings on {bad}")
    return min(taken)


def fabric(folder: Path) -> Iterator[Line]:
    """Reading such a fabric, in a process of its own, judging it, and naming what of simulated fabrics is wrong."""
    yield from fabric_parse.parse(folder)
    yield figure("fabric_findings_s_2048", findings_s(), FABRIC, note="2048 HCAs, 96 switches, plan, earlier graph and counters")
    localized = compare(HELD_OUT_SEEDS).method
    note = f"{localized.faults} leaves, spines, uplinks and endpoints in {len(HELD_OUT_SEEDS)} simulated sweeps"
    yield figure("fabric_localization_precision", localized.precision, LOCALIZATION, note=note)
    yield figure("fabric_localization_recall", localized.recall, LOCALIZATION, note=note)
