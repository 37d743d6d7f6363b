# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a finding costs: the story of a slow fabric in numbers, and the summary sorted by it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.cost import GpuHour, StepTimes, losses, lost_per_day, read_gpu_hour
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.summary import offender_lines, warning_lines

#: 256 GPUs in 32 hosts, 2 for an hour of one.
JOB = GpuHour(2.0, 8, 32)


def slow(host: str, ratio: float | None, status: str = "error", **more: Any) -> Finding:
    return Finding("pairs", "pair.bandwidth", host, "rail0", status, "slow", "fast", "Check the cable.", rate_ratio=ratio, **more)


def test_the_published_story_cost_10_000_and_not_200_000() -> None:
    """256 GPUs lost 21 % (1650 of 2100 tokens per second) for four days: 5,266 GPU hours. At 2 for an hour they cost 10,533.

    The published 200,000 would be 38 for an hour. Even all 24,576 GPU hours of the four days would be 8.14 each.
    """
    days = 4 * lost_per_day(1650 / 2100, JOB).per_day
    assert days == pytest.approx(10_533, abs=1)
    assert days / 2 == pytest.approx(5_266, abs=1)
    assert 200_000 / (days / 2) == pytest.approx(37.98, abs=0.01)
    assert pytest.approx(8.14, abs=0.01) == 200_000 / (256 * 96)


def test_the_formula_has_its_numbers() -> None:
    loss = lost_per_day(0.5, JOB)
    assert loss.words("$") == "at most $6,144 a day: (1 - 0.5) × 32 hosts × 8 GPUs × $ 2 × 24 h"
    assert loss.words("EUR").startswith("at most EUR 6,144 a day")


def test_a_step_that_also_computes_loses_less() -> None:
    """2 s of compute and 0.56 s of communication without overlap: at half the rate a step takes 3.12 s instead of 2.56 s."""
    job = GpuHour(2.0, 8, 32, step=StepTimes(2.0, 0.56, 0.0))
    loss = lost_per_day(0.5, job)
    assert loss.per_day == pytest.approx((1 - 2.56 / 3.12) * 256 * 2 * 24)
    assert loss.formula == "(1 - step of 2.56 s / 3.12 s) × 32 hosts × 8 GPUs × $ 2 × 24 h"
    assert not loss.at_most
    assert lost_per_day(0.5, GpuHour(2.0, 8, 32, step=StepTimes(2.0, 0.56, 0.67))).per_day == 0
    assert lost_per_day(0.0, job).per_day == 256 * 2 * 24


@pytest.mark.parametrize("ratio", [-0.1, 1.1, float("nan")])
def test_impossible_values_are_refused(ratio: float) -> None:
    with pytest.raises(ValueError, match="a ratio of rates is from 0 to 1"):
        lost_per_day(ratio, JOB)
    with pytest.raises(ValueError, match="a price from 0"):
        GpuHour(float("nan"), 8, 32)
    with pytest.raises(ValueError, match="compute time above 0"):
        StepTimes(0, 1, 0)


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0.01, 10), st.floats(0, 10), st.floats(0, 1))
def test_a_lower_rate_never_costs_less_and_the_limit_holds(
    one: float, other: float, compute: float, communication: float, overlap: float
) -> None:
    job = GpuHour(2.0, 8, 32, step=StepTimes(compute, communication, overlap))
    low, high = sorted((one, other))
    assert lost_per_day(low, job).per_day >= lost_per_day(high, job).per_day - 1e-6
    assert -1e-6 <= lost_per_day(low, job).per_day <= lost_per_day(low, JOB).per_day + 1e-6
    assert lost_per_day(low, JOB).per_day <= 256 * 2 * 24


def test_only_slow_and_active_findings_have_a_cost_the_largest_first() -> None:
    found = [
        slow("node1", 0.9, "warning"),
        slow("node2", 0.5),
        slow("node3", 0.2, silenced_by="ticket 12"),
        slow("node4", 0.99, "ok"),
        slow("node5", None),
    ]
    assert [(finding.host, loss.per_day) for finding, loss in losses(found, JOB)] == [
        ("node2", pytest.approx(6144)),
        ("node1", pytest.approx(1228.8)),
    ]


# The summary


def test_errors_are_sorted_by_cost_only_with_a_price() -> None:
    found = [slow("node1", None, caused_by=None), slow("node2", 0.9), slow("node3", 0.5)]
    found[1] = Finding("pairs", "pair.bandwidth", "node2", "rail1", "error", "90", "100", rate_ratio=0.9)
    found[2] = Finding("pairs", "pair.bandwidth", "node3", "rail1", "error", "50", "100", rate_ratio=0.5)
    heads = [line.split(",")[0].strip() for line in offender_lines(found, JOB) if line.startswith("  node")]
    assert heads == ["node3", "node2", "node1"]
    assert [line for line in offender_lines(found, JOB) if "costs:" in line] == [
        "    costs:    at most $6,144 a day: (1 - 0.5) × 32 hosts × 8 GPUs × $ 2 × 24 h",
        "    costs:    at most $1,229 a day: (1 - 0.9) × 32 hosts × 8 GPUs × $ 2 × 24 h",
    ]
    plain = offender_lines(found)
    assert [line.split(",")[0].strip() for line in plain if line.startswith("  node")] == ["node1", "node2", "node3"]
    assert not any("costs:" in line for line in plain)


def test_hosts_that_share_an_error_cost_what_the_slowest_costs() -> None:
    """A job waits for its slowest host: two hosts at half the rate do not cost twice as much."""
    lines = offender_lines([slow("node1", 0.5), slow("node2", 0.6)], JOB)
    assert [line for line in lines if "costs:" in line] == [
        "    costs:    at most $6,144 a day: (1 - 0.5) × 32 hosts × 8 GPUs × $ 2 × 24 h"
    ]


def test_warnings_have_a_cost_too() -> None:
    found = [slow("node1", 0.94, "warning")]
    assert "    costs:    at most $737 a day: (1 - 0.94) × 32 hosts × 8 GPUs × $ 2 × 24 h" in warning_lines(found, JOB)
    assert not any("costs:" in line for line in warning_lines(found))


# The record of a run


def test_without_a_number_of_hosts_the_job_has_those_of_the_run() -> None:
    record = {"price": 2.0, "gpus_per_host": 8, "job_hosts": None, "currency": "$", "step": None}
    found = [slow("node1", 0.5), slow("node2", None), slow("plane default", None)]
    assert read_gpu_hour(record, found) == GpuHour(2.0, 8, 2)
    step = {"compute_seconds": 2.0, "communication_seconds": 0.5, "overlap": 0.0}
    assert read_gpu_hour({**record, "job_hosts": 64, "step": step}, found) == GpuHour(2.0, 8, 64, step=StepTimes(2.0, 0.5, 0.0))
    assert read_gpu_hour(None, found) is None
