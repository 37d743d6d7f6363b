# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who is late, from times and clocks alone."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from roles.collectives.files.torch_straggler import late_ranks


def test_percentiles_are_values_however_few() -> None:
    for count in range(1, 200):
        values = [float(number) for number in range(count)]
        assert late_ranks.percentile(values, 95) == values[math.ceil(0.95 * count) - 1]
        assert (late_ranks.percentile(values, 0), late_ranks.percentile(values, 100)) == (values[0], values[-1])
    assert late_ranks.summary([3.0]) == {"samples": 1, "median": 3.0, "p95": 3.0, "max": 3.0}


@pytest.mark.parametrize(
    ("lateness", "error", "late"),
    [
        pytest.param([0, 20, 1, 2], 5, [1], id="one"),
        pytest.param([0, 20, 1, 2], 18, [], id="within the error and what the rest differ"),
        pytest.param([0, 25, 8, 16], 0, [], id="the rest differ as much"),
        pytest.param([20, 0, 1, 26], 5, [0, 3], id="two of four, as of one host"),
        pytest.param([20, 0, 21, 22], 5, [], id="one is early"),
        pytest.param([0, 7], 5, [1], id="one of two"),
        pytest.param([5, 5, 5], 0, [], id="all at once"),
    ],
)
def test_late_is_who_stands_apart(lateness: list[float], error: float, late: list[int]) -> None:
    assert late_ranks.late_group(lateness, error) == late


def test_chance_is_the_tail_of_the_binomial_distribution() -> None:
    assert late_ranks.chance(3, 0, 0.25) == pytest.approx(1)
    assert late_ranks.chance(3, 2, 0.25) == pytest.approx(3 * 0.25**2 * 0.75 + 0.25**3)
    assert late_ranks.chance(1000, 1000, 0.5) == pytest.approx(0.5**1000)


def noise(chosen: random.Random, steps: int, ranks: int) -> list[list[float]]:
    return [[chosen.expovariate(1.0) ** 2 for _rank in range(ranks)] for _step in range(steps)]


@pytest.mark.parametrize("ranks", [2, 3, 4, 8, 64])
def test_among_equals_hardly_anybody_is_named(ranks: int) -> None:
    """Lateness of heavy tails, 200 runs of 60 steps: 0.2 of them may name somebody at a chance of 0.001."""
    chosen = random.Random(ranks)
    assert sum(bool(late_ranks.judge(noise(chosen, 60, ranks), 0, 1e-3)["late"]) for _run in range(200)) <= 1


@pytest.mark.parametrize("ranks", [2, 4, 8, 64])
def test_late_in_each_step_is_named(ranks: int) -> None:
    chosen = random.Random(ranks)
    rows = [[one + 200 * (rank == 1) for rank, one in enumerate(row)] for row in noise(chosen, 60, ranks)]
    assert late_ranks.judge(rows, 1, 1e-3)["late"] == [1]
    assert late_ranks.judge(rows, 1e6, 1e-3)["late"] == [], "not beyond the error"


def test_late_in_one_half_of_the_run_alone_is_not_named() -> None:
    rows = [[0.0, 0.1, 0.2, 50.0 * (step < 40)] for step in range(60)]
    found = late_ranks.judge(rows, 1, 1e-3)
    assert (found["late"], found["late_steps"], found["enough_steps"]) == ([], [0, 0, 0, 40], True)


def test_few_steps_name_nobody_and_say_so() -> None:
    rows = [[0.0, 0.1, 0.2, 50.0]] * 5
    found = late_ranks.judge(rows, 1, 1e-3)
    assert (found["late"], found["enough_steps"]) == ([], False)
    assert late_ranks.verdict({"clocks": found, "waits": found})["reason"] == "too few steps to decide"


def way(*late: int) -> dict[str, Any]:
    return {"late": list(late), "enough_steps": True}


@pytest.mark.parametrize(
    ("clocks", "waits", "stragglers", "by"),
    [
        ((), (), [], []),
        ((2,), (2,), [2], ["clocks", "waits"]),
        ((2,), (), [2], ["clocks"]),
        ((), (1,), [1], ["waits"]),
        ((2,), (1,), [], []),
        ((1, 2), (2,), [2], ["clocks", "waits"]),
    ],
)
def test_verdict(clocks: tuple[int, ...], waits: tuple[int, ...], stragglers: list[int], by: list[str]) -> None:
    found = late_ranks.verdict({"clocks": way(*clocks), "waits": way(*waits)})
    assert (found["stragglers"], found["by"]) == (stragglers, by)
    assert found["reason"].startswith("contradiction") == (clocks == (2,) and waits == (1,))


DRIFTS = (0, 40e-6, -15e-6, 3e-6)  # of each rank's clock against rank 0's
OFFSETS = (0, 5_000_000_000, -7_000_000_000_000, 123_456_789)
ROUND_TRIPS = (0, 100_000, 60_000, 80_000)


def stamp(rank: int, true_ns: float) -> int:
    return round(true_ns * (1 + DRIFTS[rank]) - OFFSETS[rank])


def reading(rank: int, true_ns: int) -> tuple[int, int, int]:
    """As it comes out where rank 0 answered as late within the exchange as half the round trip allows, less a fifth."""
    return stamp(rank, true_ns), true_ns - stamp(rank, true_ns) + round(0.4 * ROUND_TRIPS[rank]), ROUND_TRIPS[rank] // 2


def a_run(late_ns: dict[int, int], steps: int = 60) -> tuple[list[Any], list[Any]]:
    """Steps of 50 ms: all leave at once, work 3 ms and some noise, the late ones longer, and go on when the last has come."""
    chosen = random.Random(1)
    rows: list[Any] = [[] for _rank in range(4)]
    for step in range(steps):
        start = 10**9 + step * 50_000_000
        came = [start + 3_000_000 + chosen.randrange(20_000) + late_ns.get(rank, 0) for rank in range(4)]
        for rank, at in enumerate(came):
            rows[rank].append((stamp(rank, start), stamp(rank, at), 30_000 + chosen.randrange(2_000), max(came) + 30_000 - at))
    return rows, [(reading(rank, 10**9), reading(rank, 10**9 + steps * 50_000_000)) for rank in range(4)]


def test_the_late_rank_is_found_through_clocks_that_differ_and_drift() -> None:
    found = late_ranks.skew(*a_run({2: 400_000}), 1e-3)
    assert found["verdict"] == {"stragglers": [2], "by": ["clocks", "waits"], "reason": "late in most steps"}
    assert found["clocks"]["error_usec"] == 90, "the two largest halves of a round trip"
    late = [row["late_usec"]["median"] for row in found["ranks"]]
    assert late[2] == pytest.approx(400, abs=90)
    assert max(late[0], late[1], late[3]) <= 90
    assert [row["clock_error_usec"] for row in found["ranks"]] == [0, 50, 30, 40]
    # The time within the collective, taken for how slow a rank is, would name the three others.
    waited = [row["waited_usec"]["median"] for row in found["ranks"]]
    assert waited[2] == 0
    assert min(waited[0], waited[1], waited[3]) > 350
    assert found["ranks"][2]["work_usec"]["median"] == pytest.approx(3410, abs=20)


def test_nobody_is_late_for_a_clock_that_is_wrong_within_its_error() -> None:
    found = late_ranks.skew(*a_run({}), 1e-3)
    assert found["verdict"] == {"stragglers": [], "by": [], "reason": "no rank stands out"}


def test_what_is_late_by_less_than_clocks_can_resolve_is_found_by_waits() -> None:
    found = late_ranks.skew(*a_run({3: 60_000}), 1e-3)
    assert found["clocks"]["late"] == []
    assert found["verdict"]["stragglers"] == [3]
    assert found["verdict"]["by"] == ["waits"]
