# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The bars of localization on a part of the simulated sweeps, and the large fleet's measuring on a small one."""

from __future__ import annotations

import pytest

from tests.bench.localization import compare, verdict_1024x8
from tests.simulator.sweeps import DEVELOPMENT_KINDS, HELD_OUT_KINDS

BAR = 0.98


@pytest.mark.parametrize("kinds", [DEVELOPMENT_KINDS, HELD_OUT_KINDS], ids=["kinds developed on", "other kinds"])
def test_seeds_that_nothing_was_developed_on(kinds: tuple[str, ...]) -> None:
    compared = compare(range(100_001, 100_009), kinds)
    assert compared.method.precision >= BAR, compared.table()
    assert compared.method.recall >= BAR, compared.table()
    assert compared.baseline.precision < 0.1


def test_the_large_fleets_measuring() -> None:
    answer = verdict_1024x8(hosts=404, rails=6)
    assert answer["results"] == 404 * 403 // 2 * 6
    assert sorted(map(str, answer["verdicts"])) == ["['host', None, 17, False]", "['nic', 3, 400, False]", "['nic', 5, 401, True]"]
    assert answer["bytes_per_result"] <= 120
    assert 0 < answer["seconds"] < 60
    assert 0 < answer["mib"] < 2048
