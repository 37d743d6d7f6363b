# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The times of a training loop's own collectives."""

from __future__ import annotations

import contextlib
import json
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from .late_ranks import by_step, judge, percentile, shorter, summary
from .timers import Cpu, Gpu, load_torch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence


class Times:
    """The times of a training loop's collectives, timed without stopping the GPU. All ranks create one at the same place and call step().

    Every `every` steps each rank sends its last `keep` times of each name over gloo to rank 0, for the calls that are finished on all
    ranks. Rank 0 passes the comparison to `tell`. Without calibrate() the error is unknown, so no rank is named.
    """

    def __init__(self, every: int = 100, keep: int = 512, tell: Callable[[dict[str, Any]], Any] | None = None) -> None:
        torch, self.dist = load_torch()
        on_gpu = torch.cuda.is_available() and self.dist.get_backend() != "gloo"
        self.timer = Gpu(torch.cuda.current_device()) if on_gpu else Cpu()
        self.every, self.keep, self.tell = every, keep, tell or (lambda report: print(json.dumps(report), flush=True))
        self.control = self.dist.new_group(backend="gloo")
        self.steps = self.lost = self.calls = self.own_ns = 0
        self.error_usec: float | None = None
        self.numbers: dict[str, int] = {}
        self.kept: dict[str, deque[tuple[int, float]]] = {}
        self.pending: deque[tuple[str, Any, Any]] = deque()

    def calibrate(self, count: int = 50) -> float:
        """The spread of the ranks' times (95th percentile, usec) of a small all-reduce that follows another, so that no rank is late."""
        token = self.timer.torch.zeros(1, device=self.timer.device)
        found: list[Any] = [None] * self.dist.get_world_size()
        self.dist.all_gather_object(found, self.timer.spans(lambda: self.dist.all_reduce(token), count), group=self.control)
        self.error_usec = percentile([max(step) - min(step) for step in by_step(found)], 95)
        return self.error_usec

    def harvest(self) -> None:
        """Collect the times of finished calls without waiting. If more than 4 `keep` calls are pending, the oldest are dropped."""
        while self.pending and (len(self.pending) > 4 * self.keep or self.timer.done(self.pending[0][2])):
            name, before, after = self.pending.popleft()
            number = self.numbers[name] = self.numbers.get(name, 0) + 1
            if self.timer.done(after):
                self.kept.setdefault(name, deque(maxlen=self.keep)).append((number, self.timer.usec(before, after)))
            else:
                self.lost += 1

    def through_on_all(self) -> dict[str, int]:
        """The last call of each name that is finished on all ranks, because the host of a waiting rank runs ahead of its GPU."""
        found: list[Any] = [None] * self.dist.get_world_size()
        self.dist.all_gather_object(found, self.numbers, group=self.control)
        return {name: min(numbers[name] for numbers in found) for name in set.intersection(*map(set, found))}

    def take(self, last: Mapping[str, int]) -> dict[str, dict[int, float]]:
        """The times of each name up to its call in `last`. Later times stay for the next comparison."""
        taken = {name: {number: usec for number, usec in times if number <= last.get(name, 0)} for name, times in self.kept.items()}
        for name, times in self.kept.items():
            self.kept[name] = deque(((number, usec) for number, usec in times if number not in taken[name]), maxlen=self.keep)
        return taken

    def step(self) -> dict[str, Any] | None:
        """Call this at the end of each training step. At every `every`th step all ranks meet here, and rank 0 returns the report."""
        before = time.monotonic_ns()
        self.harvest()
        self.own_ns += time.monotonic_ns() - before
        self.steps += 1
        if self.steps % self.every:
            return None
        own = {"times": self.take(self.through_on_all()), "lost": self.lost, "ns": self.own_ns / max(1, self.calls)}
        found: list[Any] | None = [None] * self.dist.get_world_size() if self.dist.get_rank() == 0 else None
        self.dist.gather_object(own, found, group=self.control)
        self.calls = self.own_ns = 0
        report = {"schema": 1, "step": self.steps, **window(found, self.error_usec)} if found else None
        if report:
            self.tell(report)
        return report


def window(found: Sequence[Mapping[str, Any]], error: float | None, false_alarm: float = 1e-3) -> dict[str, Any]:
    """The comparison of the ranks' data (times: {name: {number of the call: usec}}, lost, ns) for the calls that all ranks have."""
    names: dict[str, Any] = {}
    for name in sorted(set.intersection(*(set(own["times"]) for own in found))):
        calls = sorted(set.intersection(*(set(own["times"][name]) for own in found)))
        if calls:
            times = [[own["times"][name][call] for own in found] for call in calls]
            ranks = [{"rank": rank, "usec": summary(column)} for rank, column in enumerate(by_step(times))]
            names[name] = {"ranks": ranks, "waits": judge(shorter(times), error, false_alarm) if error is not None else None}
    return {"names": names, "lost": [own["lost"] for own in found], "overhead_usec_per_call": [round(own["ns"] / 1e3, 3) for own in found]}


@contextlib.contextmanager
def timed_collective(name: str, times: Times) -> Iterator[None]:
    """Measures the work of the stream in this block, from the collective to its end, without work that was queued before. Wait for an
    asynchronous collective within the block. All ranks use the same names in the same order."""
    entered = time.monotonic_ns()
    before = times.timer.mark()
    inside = time.monotonic_ns()
    try:
        yield
    finally:
        left = time.monotonic_ns()
        times.pending.append((name, before, times.timer.mark()))
        times.calls += 1
        if len(times.pending) > 4 * times.keep:
            times.harvest()
        times.own_ns += time.monotonic_ns() - left + inside - entered
