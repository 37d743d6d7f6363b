# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The progress of a sweep, from its plan and the results so far: one line for a person."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.result import Result
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.schedule import rail_schedules
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder

#: A result is slow if it is worse than the median of its rail and test by this factor, once there are enough of them.
SLOW_FACTOR = 2.0
SLOW_RESULTS = 5
#: Values are counted by their logarithm, with this many steps for a factor of two: a step is 4 %.
STEPS = 16
#: The rate is that of the results of the last seconds.
RATE_SECONDS = 120.0


class Tally:
    """The results of a sweep so far. The progress of hosts not yet read is estimated from the rounds of those that were.

    A meeting that failed at one end and succeeded at the other counts as both; that is rare.
    """

    def __init__(self, plan: Mapping[str, Any]) -> None:
        self._tests = [str(test["command"]) for test in plan["tests"]]
        self._endpoints = [[address is not None for address in rail["addresses"]] for rail in plan["rails"]]
        self._schedules = [each.schedule for each in rail_schedules(dict(plan))]
        self._hosts = len(plan["hosts"])
        self._rounds: dict[int, Counter[int]] = {}
        self._measured = 0
        self._failed: set[tuple[int, ...]] = set()
        self._values: dict[tuple[int, int], Counter[int]] = {}
        self._seen: deque[tuple[float, float]] = deque()

    def add(self, host: int, lines: Iterable[str]) -> None:
        """Add further lines of a host's file, if any. Lines that are not results of the plan are ignored."""
        rounds = self._rounds.setdefault(host, Counter())
        for line in lines:
            try:
                result = Result.from_line(line)
            except ParseError:
                continue
            if result.rail >= len(self._schedules) or result.test >= len(self._tests):
                continue
            rounds[result.rail] = max(rounds[result.rail], result.round + 1)
            if result.value is None:
                self._failed.add((result.rail, result.round, result.server, result.client, result.test))
            else:
                self._measured += 1
                self._values.setdefault((result.rail, result.test), Counter())[math.floor(math.log2(result.value) * STEPS)] += 1

    def line(self, now: float) -> str:
        """Return the progress of the sweep. now: of a monotonic clock, in seconds."""
        total = sum(schedule.meetings for schedule in self._schedules) * len(self._tests)
        counted = self._measured + len(self._failed)
        partly = len(self._rounds) < self._hosts
        done = min(total, max(counted, round(self._by_rounds())) if partly else counted)
        words = [f"pairs: {'about ' if partly else ''}{max(0, done - len(self._failed))} of {total} measured"]
        words += [f"{len(self._failed)} failed"] if self._failed else []
        slow = sum(self._slow(values, self._tests[test]) for (_rail, test), values in self._values.items())
        words += [f"{slow} slow so far"] if slow else []
        left = self._left_seconds(now, done, total)
        return ", ".join([*words, *([f"about {_duration(left)} left"] if left else [])])

    def _by_rounds(self) -> float:
        """Return the number of finished meetings, if all hosts are as far as the average of those read."""
        done = 0.0
        for rail, (schedule, there) in enumerate(zip(self._schedules, self._endpoints, strict=True)):
            asked = [rounds[rail] for host, rounds in self._rounds.items() if there[host]]
            if asked and schedule.rounds:
                done += sum(asked) / len(asked) / schedule.rounds * schedule.meetings * len(self._tests)
        return done

    @staticmethod
    def _slow(values: Counter[int], command: str) -> int:
        """Return how many values of a rail and test are much worse than their median."""
        count = values.total()
        if count < SLOW_RESULTS:
            return 0
        median, step = _median(values), math.log2(SLOW_FACTOR) * STEPS
        latency = command.endswith("_lat")
        return sum(number for value, number in values.items() if (value > median + step if latency else value < median - step))

    def _left_seconds(self, now: float, done: float, total: int) -> float | None:
        """Return the remaining time by the rate of the last results; None before there is one, and at the end."""
        if done:
            self._seen.append((now, done))
        while len(self._seen) > 2 and now - self._seen[1][0] >= RATE_SECONDS:
            self._seen.popleft()
        if not self._seen or done <= self._seen[0][1] or done >= total:
            return None
        then, before = self._seen[0]
        return (total - done) * (now - then) / (done - before)


def _median(values: Counter[int]) -> int:
    left = values.total() // 2
    for value, number in sorted(values.items()):
        left -= number
        if left < 0:
            return value
    raise ValueError("the median of an empty set")


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{max(10, round(seconds, -1)):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


PLANS = ("pairs/plan.json", "pairs/*/plan.json")


class PairWatch:
    """The sweep that this run planned last. Only new lines of each host's file are read."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._tally: Tally | None = None
        self._files: dict[int, Path] = {}
        self._read: dict[int, int] = {}

    def line(self, now: float) -> str | None:
        """Return the progress of the sweep, None if unknown. now: of a monotonic clock, in seconds."""
        try:
            if self._tally is None:
                self._tally = self._begin()
            if self._tally is None:
                return None
            for position, file in self._files.items():
                if file.exists():
                    self._tally.add(position, self._new_lines(position, file))
            return self._tally.line(now) if self._read else None
        except (OSError, ValueError, LookupError, TypeError):
            return None

    def _begin(self) -> Tally | None:
        plans = [path for pattern in PLANS for path in self._folder.path.glob(pattern)]
        if not plans:
            return None
        name = max(plans, key=lambda path: path.stat().st_mtime).relative_to(self._folder.path)
        plan = self._folder.read_json(str(name))
        for position, host in enumerate(plan["hosts"]):
            self._files[position] = self._folder.path / self._folder.host_file(str(name.parent), host, ".jsonl")
        return Tally(plan)

    def _new_lines(self, position: int, file: Path) -> list[str]:
        """Return the complete new lines; an incomplete one is read next time."""
        with file.open("rb") as stream:
            stream.seek(self._read.get(position, 0))
            data = stream.read()
        whole = data[: data.rfind(b"\n") + 1]
        self._read[position] = self._read.get(position, 0) + len(whole)
        return whole.decode("utf-8", "replace").splitlines()
