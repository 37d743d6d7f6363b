# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The simulated sweeps are what they were before the method that is tried on them, and hold the faults that they name."""

from __future__ import annotations

import hashlib

import pytest

from tests.simulator.score import Score, score, threshold
from tests.simulator.sweeps import (
    DEVELOPMENT_KINDS,
    DEVELOPMENT_SEEDS,
    EXPECTED_GBPS,
    HELD_OUT_KINDS,
    HELD_OUT_SEEDS,
    Sweep,
    Truth,
    simulate,
)


@pytest.mark.parametrize(
    ("seed", "kinds", "digest"),
    [(1, DEVELOPMENT_KINDS, "9a2d25f9077bdd16"), (9, DEVELOPMENT_KINDS, "fe9a5662fd05c0fc"), (100_003, HELD_OUT_KINDS, "a304a35974a4df97")],
)
def test_a_seed_gives_the_same_sweep_for_ever(seed: int, kinds: tuple[str, ...], digest: str) -> None:
    sweep = simulate(seed, kinds)
    assert hashlib.sha256(repr((sweep.rows, sorted(map(repr, sweep.truths)))).encode()).hexdigest()[:16] == digest


def test_nothing_is_developed_on_what_is_held_out() -> None:
    assert not set(DEVELOPMENT_SEEDS) & set(HELD_OUT_SEEDS)
    assert not set(DEVELOPMENT_KINDS) & set(HELD_OUT_KINDS)


@pytest.mark.parametrize("seed", [2, 5, 7])
def test_a_slow_nic_is_slow_with_everybody_and_nobody_else_is(seed: int) -> None:
    sweep = simulate(seed, DEVELOPMENT_KINDS)
    at_fault = {(truth.rail, truth.host) for truth in sweep.truths}
    assert {truth.kind for truth in sweep.truths} == {"nic"}
    for row in sweep.rows:
        met = {(row.rail, row.server), (row.rail, row.client)} & at_fault
        assert row.gbps is not None
        assert row.gbps <= EXPECTED_GBPS
        assert bool(met) is (row.gbps < 0.8 * EXPECTED_GBPS), row


def test_the_score_of_the_threshold() -> None:
    sweep = simulate(2, DEVELOPMENT_KINDS)
    assert score([sweep], lambda given: given.truths) == Score(1, 1, 1)
    assert score([sweep], threshold).right == 1
    assert score([sweep], threshold).verdicts == 1 + len(_partners(sweep, 7, 6))
    empty = Sweep(2, 1, EXPECTED_GBPS, (), frozenset({Truth("nic", 0, 0)}))
    assert (score([empty], threshold).precision, score([empty], threshold).recall) == (0.0, 0.0)


def _partners(sweep: Sweep, rail: int, host: int) -> set[int]:
    return {row.client if row.server == host else row.server for row in sweep.rows if row.rail == rail and host in (row.server, row.client)}
