# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Oversubscription judged: one pair alone against all at once, beside what the graph allows."""

from __future__ import annotations

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.loads.spines import Measured, oversubscription


@pytest.mark.parametrize(
    ("each_gbps", "allowed", "status"),
    [
        (390.0, 1.0, "ok"),
        (352.0, 1.0, "ok"),
        (350.0, 1.0, "warning"),
        (190.0, 0.5, "ok"),
        (390.0, 0.5, "ok"),
        (150.0, 0.5, "warning"),
        (100.0, 0.5, "error"),
        (None, 0.5, "unknown"),
        (390.0, None, "unknown"),
    ],
)
def test_it_is_measured_beside_the_graphs(each_gbps: float | None, allowed: float | None, status: str) -> None:
    found = oversubscription("plane default", "rail0", Measured(390.0, [each_gbps] * 4), allowed)
    assert (found.stage, found.check, found.status) == ("pairs", "pair.oversubscription", status)
    assert bool(found.remedy) is (status != "ok")


def test_it_says_both_figures() -> None:
    found = oversubscription("plane default", "rail0", Measured(390.0, [100.0, 95.0]), 0.5)
    assert found.observed == "one pair alone 390 Gb/s, 2 pairs at once 25% of it each: 4:1"
    assert found.expected == "at most 2:1, by the graph"


@pytest.mark.parametrize(
    ("measured", "observed"),
    [
        (Measured(390.0, [390.0, None, 390.0]), "1 of 3 simultaneous pairs were not measured"),
        (Measured(None, [390.0, 390.0]), "the single pair was not measured"),
    ],
    ids=["at once", "alone"],
)
def test_what_is_not_whole_is_unknown(measured: Measured, observed: str) -> None:
    found = oversubscription("plane default", "rail0", measured, 1.0)
    assert (found.status, found.observed) == ("unknown", observed)
    assert "-e rdma_measure=true" in found.remedy
