# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a sweep of real hosts took beyond perftest, by what it has left in its run folder."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.result import Result
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.schedule import planned_meetings

SCHEMA = 2


class UnfitError(ValueError):
    """A run says nothing of what a whole, healthy sweep takes; the message says why."""


@dataclass(frozen=True)
class LabSweep:
    """A full sweep in which every planned measurement succeeded.

    run: the run's id. rounds: of its longest rail. All times in seconds:
    perftest: the sum, over the rounds, of the longest that any client's perftest of that round ran, on whichever rail. With
    several tests in a meeting, the longest meeting. The clients' clocks count: a server's perftest, which has to listen before
    the client's may start, runs longer, and its time is not in the files. So what perftest's server needs to start counts
    as overhead, which is too much rather than too little.
    at_most: the longest that any host's runner worked, by its own last word: that of the host that was started first, which waits for
    the others. shortest: the least that any worked: that of the host that was started last, from when on nobody waits for Ansible.
    at_least: the longest chain of meetings that follow one another on a host, from the start of the host at its beginning: what
    clients waited for their partners and what perftest ran. What lies between perftest's end and the next meeting is not in it,
    nor another host's earlier start.
    late: the longest that a client waited in a rail's first round, less the shortest wait of all, which is what a meeting takes
    where both are there: how much later hosts were started than others. Both walls have it in them.
    """

    run: str
    rounds: int
    perftest_seconds: float
    at_most_seconds: float
    shortest_seconds: float
    at_least_seconds: float
    late_seconds: float

    @property
    def overhead(self) -> float:
        """Wall of the sweep over perftest's, from the start of the host that was started last."""
        return self.shortest_seconds / self.perftest_seconds

    @property
    def most_overhead(self) -> float:
        """The same from the start of the first host: Ansible starts them one after another."""
        return max(self.at_most_seconds, self.at_least_seconds) / self.perftest_seconds

    @property
    def least_overhead(self) -> float:
        """The same, at least."""
        return self.at_least_seconds / self.perftest_seconds


def newest(artifacts: Path) -> tuple[LabSweep | None, str]:
    """The newest run that is fit, and an empty word; else None and why the newest that has a plan is not."""
    plans = [plan for plan in artifacts.glob("*/pairs/plan.json") if not plan.parents[1].is_symlink()]
    reasons = []
    for plan in sorted(plans, reverse=True):
        try:
            return read(plan.parents[1]), ""
        except UnfitError as error:
            reasons.append(f"{plan.parents[1].name}: {error}")
    return None, f"no run has a full sweep in which all went well; {reasons[0] if reasons else 'none has measured pairs'}"


def read(run: Path) -> LabSweep:
    """Raises UnfitError."""
    try:
        plan = json.loads((run / "pairs/plan.json").read_text(encoding="utf-8"))
        _check_plan(plan, run.name)
        results = [result for host in plan["hosts"] for result in _results(run / f"pairs/{host}.jsonl")]
        _check_whole(plan, results)
        walls = [_host_seconds(run / f"pairs/{host}.end.json") for host in plan["hosts"]]
    except (OSError, ParseError, KeyError, TypeError, ValueError) as error:
        raise error if isinstance(error, UnfitError) else UnfitError(f"{type(error).__name__} {error}") from error
    longest = rounds_seconds(results)
    return LabSweep(run.name, len(longest), sum(longest.values()), max(walls), min(walls), max(chains(results)), late_seconds(results))


def _check_plan(plan: dict[str, Any], run: str) -> None:
    if plan.get("schema") != SCHEMA:
        raise UnfitError(f"its plan is of schema {plan.get('schema')!r}")
    if plan["schedule"]["kind"] != "full":
        raise UnfitError(f"its schedule is {plan['schedule']['kind']}, not full")
    if plan["sweep"] != run:
        raise UnfitError(f"it went on with sweep {plan['sweep']}, and the time between counts")


def _results(file: Path) -> list[Result]:
    return [Result.from_line(line) for line in file.read_text(encoding="utf-8").splitlines()]


def _check_whole(plan: dict[str, Any], results: Iterable[Result]) -> None:
    """Each planned measurement has to be there, once, and none may have failed, on either end."""
    planned = {(*meeting, test) for meeting in planned_meetings(plan) for test in range(len(plan["tests"]))}
    if not planned:
        raise UnfitError("its plan has no meetings")
    seen = [(each.rail, each.round, each.server, each.client, each.test) for each in results if each.kind is None]
    failed = sum(each.kind is not None for each in results)
    if failed or len(seen) != len(planned) or set(seen) != planned:
        raise UnfitError(f"{len(planned & set(seen))} of {len(planned)} measurements are good, {failed} ends failed")


def _host_seconds(file: Path) -> float:
    """How long a host's runner worked, by its own last word."""
    return float(json.loads(file.read_text(encoding="utf-8"))["seconds"])


def rounds_seconds(results: Iterable[Result]) -> dict[int, float]:
    """Round → its longest meeting's perftest, in seconds, over all rails and pairs."""
    meetings: dict[tuple[int, int, int], float] = {}
    for each in results:
        place = each.round, each.rail, each.client
        meetings[place] = meetings.get(place, 0.0) + each.seconds
    longest: dict[int, float] = {}
    for (number, _rail, _client), seconds in meetings.items():
        longest[number] = max(longest.get(number, 0.0), seconds)
    return longest


def late_seconds(results: Sequence[Result]) -> float:
    """Of LabSweep."""
    first = min(each.round for each in results)
    return max(each.waited for each in results if each.round == first) - min(each.waited for each in results)


def chains(results: Iterable[Result]) -> Iterable[float]:
    """When each measurement ended at the earliest, in seconds after the start of a host from which meetings lead to it."""
    free: dict[tuple[int, int], float] = {}
    for each in sorted(results, key=lambda result: (result.rail, result.round, result.server, result.test)):
        server, client = (each.rail, each.server), (each.rail, each.client)
        end = max(free.get(client, 0.0) + each.waited, free.get(server, 0.0)) + each.seconds
        free[server] = free[client] = end
        yield end
