# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Garwood's intervals against published tables."""

from __future__ import annotations

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._soak import interval as module
from ansible_collections.rdma.cluster.plugins.plugin_utils._soak.interval import bound_of_none, interval


@pytest.mark.parametrize(
    ("events", "low", "high"),
    # Ulm, Am. J. Epidemiol. 131 (1990), 373, and Garwood's table: the limits of a Poisson mean, 95 %.
    [
        (0, 0.0, 3.689),
        (1, 0.0253, 5.572),
        (2, 0.2422, 7.225),
        (5, 1.623, 11.668),
        (10, 4.795, 18.390),
        (30, 20.241, 42.827),
        (100, 81.36, 121.63),
    ],
)
def test_the_interval_of_published_tables(events: int, low: float, high: float) -> None:
    assert interval(events) == (pytest.approx(low, rel=1e-3), pytest.approx(high, rel=1e-3))


def test_none_seen_has_the_bound_of_the_rule_of_three() -> None:
    assert bound_of_none() == pytest.approx(2.9957, abs=1e-4)


@pytest.mark.parametrize("events", [201, 1000])
def test_the_approximation_of_large_numbers_continues_the_exact_interval(events: int, monkeypatch: pytest.MonkeyPatch) -> None:
    approximate = interval(events)
    monkeypatch.setattr(module, "MOST_EXACT", 10**6)
    assert approximate == pytest.approx(interval(events), rel=1e-5)


def test_a_negative_number_is_refused() -> None:
    with pytest.raises(ValueError, match="got -1"):
        interval(-1)
