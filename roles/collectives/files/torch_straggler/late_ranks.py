# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Finds late ranks from times and clocks, without PyTorch."""

from __future__ import annotations

import math
import statistics
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def percentile(values: Sequence[float], percent: float) -> float:
    """The percentile by the nearest-rank method, which is always one of the values. With fewer than 20 values, the 95th is the largest."""
    return sorted(values)[max(0, math.ceil(len(values) * percent / 100) - 1)]


def summary(values: Sequence[float]) -> dict[str, float]:
    three = {"median": statistics.median(values), "p95": percentile(values, 95), "max": max(values)}
    return {"samples": len(values), **{name: round(value, 3) for name, value in three.items()}}


def late_group(lateness: Sequence[float], error: float) -> list[int]:
    """The late ranks of one step: those behind the widest gap, at most half of all. The gap must be wider than the spread of the other
    ranks plus the measurement error."""
    order = sorted(range(len(lateness)), key=lateness.__getitem__)
    width, cut = max((lateness[order[at]] - lateness[order[at - 1]], at) for at in range(1, len(order)))
    apart = width > error + lateness[order[cut - 1]] - lateness[order[0]] and 2 * (len(order) - cut) <= len(order)
    return sorted(order[cut:]) if apart else []


def chance(trials: int, hits: int, share: float) -> float:
    """The probability of at least that many hits if each of up to 1000 trials hits with this share (tail of the binomial distribution)."""
    return math.fsum(math.comb(trials, k) * share**k * (1 - share) ** (trials - k) for k in range(hits, trials + 1))


def judge(lateness: Sequence[Sequence[float]], error: float, false_alarm: float) -> dict[str, Any]:
    """The ranks (columns) that are late in most steps (rows) of each half of the run, more often than by chance among equal ranks.

    false_alarm is the upper bound of the probability that any rank is named although all are equal and the steps independent.
    """
    ranks, groups = len(lateness[0]), [late_group(row, error) for row in lateness]
    counts = [sum(rank in group for group in groups) for rank in range(ranks)]
    share = max(1.0, statistics.mean([len(group) for group in groups if group] or [1])) / ranks
    halves = groups[: len(groups) // 2], groups[len(groups) // 2 :]
    mostly = [all(2 * sum(rank in group for group in half) > len(half) for half in halves) for rank in range(ranks)]
    late = [rank for rank in range(ranks) if mostly[rank] and ranks * chance(len(groups), counts[rank], share) < false_alarm]
    enough = ranks * chance(len(groups), len(groups), 1 / ranks) < false_alarm
    return {"late": late, "error_usec": round(error, 3), "late_steps": counts, "steps": len(groups), "enough_steps": enough}


def verdict(ways: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The late ranks by both methods, or by the only method that finds any. If the methods contradict each other, there are none."""
    found = {name: way["late"] for name, way in ways.items() if way["late"]}
    late = sorted(set.intersection(*map(set, found.values()))) if found else []
    reason = "no rank stands out" if all(way["enough_steps"] for way in ways.values()) else "too few steps to decide"
    if found:
        reason = "late in most steps" if late else f"contradiction: {found}"
    return {"stragglers": late, "by": sorted(found) if late else [], "reason": reason}


def on_clock_of_0(stamp: int, before: Sequence[int], after: Sequence[int]) -> float:
    """A time stamp (ns) on rank 0's clock. before and after: (own time, offset, error) in ns; the drift between them counts as constant."""
    return stamp + before[1] + (stamp - before[0]) / max(1, after[0] - before[0]) * (after[1] - before[1])


def by_step(rows: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """One row for each rank, transposed to one row for each step. (zip() with a check of the lengths needs Python 3.10.)"""
    return list(zip_longest(*rows))


def shorter(times: Sequence[Sequence[float]]) -> list[list[float]]:
    """How much less time than the longest each rank spent in the collective. The last rank does not wait, so its time is shortest."""
    return [[max(step) - one for one in step] for step in times]


def skew(rows: Sequence[Any], clocks: Sequence[Any], false_alarm: float) -> dict[str, Any]:
    """The report about late ranks. rows: for each rank and step, in ns, (end of the previous collective, start of this one, time in one
    without work before it, time in this one); clocks: for each rank the two readings of on_clock_of_0."""
    arrivals = by_step([[on_clock_of_0(row[1], *clocks[rank]) / 1e3 for row in own] for rank, own in enumerate(rows)])
    late = [[one - min(step) for one in step] for step in arrivals]
    times = by_step([[row[3] / 1e3 for row in own] for own in rows])
    idle = by_step([[row[2] / 1e3 for row in own] for own in rows])
    errors = [max(before[2], after[2]) / 1e3 for before, after in clocks]
    ways = {
        "clocks": judge(late, sum(sorted(errors)[-2:]), false_alarm),
        "waits": judge(shorter(times), percentile([max(step) - min(step) for step in idle], 95), false_alarm),
    }
    table: list[dict[str, Any]] = [{"rank": rank, "clock_error_usec": round(error, 3)} for rank, error in enumerate(errors)]
    for rank, row in enumerate(table):
        row["late_usec"] = summary([step[rank] for step in late])
        row["waited_usec"] = summary([step[rank] - min(step) for step in times])
        row["work_usec"] = summary([(came - left) / 1e3 for left, came, *_rest in rows[rank]])
    return {"ranks": table, **ways, "verdict": verdict(ways)}
