# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The bars of localization in the fabric on a part of the simulated sweeps, and what is simulated."""

from __future__ import annotations

import hashlib

from tests.bench.fabric_localization import compare
from tests.simulator.fabrics import DEVELOPMENT_SEEDS, HELD_OUT_SEEDS, simulate_fabric

BAR = 0.95


def test_seeds_that_nothing_was_developed_on() -> None:
    assert not set(DEVELOPMENT_SEEDS) & set(HELD_OUT_SEEDS)
    compared = compare(HELD_OUT_SEEDS[:8])
    assert compared.method.precision >= BAR, compared.table()
    assert compared.method.recall >= BAR, compared.table()


def test_a_seed_gives_the_same_sweep_for_ever() -> None:
    sweep = simulate_fabric(3).sweep
    assert hashlib.sha256(repr((sweep.rows, sorted(map(repr, sweep.truths)))).encode()).hexdigest()[:16] == "941e07e0d44b17e9"
