# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The pairs of each round.

The schedules themselves are part of the pair runner; this module has what plans need in addition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.schedule import (
    Meetings,
    RailSchedule,
    Schedule,
    make_schedule,
    own_meetings,
    partitions,
    partner,
    rail_schedules,
    round_count,
    serves,
)

__all__ = [
    "Meetings",
    "RailSchedule",
    "Schedule",
    "make_schedule",
    "own_meetings",
    "pairs_of_round",
    "partitions",
    "partner",
    "plan_meetings",
    "plan_rounds",
    "planned_meetings",
    "rail_schedules",
    "round_count",
    "serves",
]


def pairs_of_round(schedule: Schedule, round_number: int) -> Iterator[tuple[int, int]]:
    """Yield the pairs of a round as (server, client)."""
    return schedule.pairs(round_number)


def plan_rounds(plan: Mapping[str, Any]) -> int:
    """Return how many rounds a plan's longest rail has. Raises ValueError."""
    return max((each.schedule.rounds for each in rail_schedules(plan)), default=0)


def plan_meetings(plan: Mapping[str, Any]) -> int:
    """Return how many meetings a plan has on all rails, each of all its tests. Raises ValueError."""
    return sum(each.schedule.meetings for each in rail_schedules(plan))


def planned_meetings(plan: Mapping[str, Any]) -> Iterator[tuple[int, int, int, int]]:
    """Yield all (rail, round, server, client) of a plan, in positions of its rails and hosts. Raises ValueError."""
    for rail, each in enumerate(rail_schedules(plan)):
        for number in range(each.schedule.rounds):
            for server, client in each.pairs(number):
                yield rail, number, server, client
