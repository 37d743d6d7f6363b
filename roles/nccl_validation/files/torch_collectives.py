# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Times what collectives cost between the ranks of a job, and says which rank comes late to them. Needs Python 3.9 and PyTorch 2.

    torchrun --nproc-per-node=8 torch_collectives.py --output result.json
    srun --ntasks-per-node=8 --gpus-per-node=8 python3 torch_collectives.py
    mpirun -x MASTER_ADDR=node1 python3 torch_collectives.py

NCCL between GPUs, gloo where no rank has one. Every rank runs this file; the one numbered 0 prints a text and writes the JSON. A
training loop imports Times and timed_collective. docs/straggler.md says what each figure means, and what it cannot tell.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import math
import os
import re
import socket
import statistics
import sys
import time
from collections import deque
from datetime import timedelta
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

# Launcher, its variables for rank and number of ranks, and those that may hold the rank within the host. What starts another stands
# first: torchrun runs under srun, and the processes of an mpirun inherit the variables of the Slurm job around it.
LAUNCHERS = (
    ("torchrun", "RANK", "WORLD_SIZE", ("LOCAL_RANK",)),
    ("Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", ("OMPI_COMM_WORLD_LOCAL_RANK",)),
    ("PMI", "PMI_RANK", "PMI_SIZE", ("MPI_LOCALRANKID", "SLURM_LOCALID")),
    ("Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", ("SLURM_LOCALID",)),
)
# PyTorch 2.13 has new names for two of them, and warns of the old ones.
COLLECTIVES = {
    "all_reduce": ("all_reduce",),
    "all_gather": ("all_gather_single", "all_gather_into_tensor"),
    "reduce_scatter": ("reduce_scatter_single", "reduce_scatter_tensor"),
    "all_to_all": ("all_to_all_single",),
}


class Place(NamedTuple):
    """Where a rank stands, and where rank 0 listens: the address is None where the launcher does not tell."""

    launcher: str
    rank: int
    ranks: int
    local_rank: int
    address: str | None


def place(environment: Mapping[str, str]) -> Place:
    """The variables that torchrun, Open MPI 4 and 5, MPICH's and Intel's hydra, and srun set for each process; ValueError if none did."""
    for launcher, rank, ranks, local in LAUNCHERS:
        if rank in environment and ranks in environment:
            within = [environment[name] for name in local if name in environment] or ["0"]
            return Place(launcher, int(environment[rank]), int(environment[ranks]), int(within[0]), _address(environment))
    raise ValueError("no rank in the environment: start this with torchrun, srun or mpirun")


def _address(environment: Mapping[str, str]) -> str | None:
    if "MASTER_ADDR" in environment:
        return environment["MASTER_ADDR"]
    if "OMPI_COMM_WORLD_SIZE" in environment:
        return "127.0.0.1" if environment.get("OMPI_COMM_WORLD_LOCAL_SIZE") == environment["OMPI_COMM_WORLD_SIZE"] else None
    return first_host(environment["SLURM_STEP_NODELIST"]) if "SLURM_STEP_NODELIST" in environment else None


def first_host(nodes: str) -> str:
    """The first of Slurm's node list: `gpu[03-04,07],login` is gpu03."""
    return re.sub(r"\[([^],-]+)[^]]*\]", r"\1", re.split(r",(?![^[]*\])", nodes)[0])


def percentile(values: Sequence[float], percent: float) -> float:
    """By the nearest rank: always one of the values, however few; of fewer than 20 values the 95th percentile is the largest."""
    return sorted(values)[max(0, math.ceil(len(values) * percent / 100) - 1)]


def summary(values: Sequence[float]) -> dict[str, float]:
    three = {"median": statistics.median(values), "p95": percentile(values, 95), "max": max(values)}
    return {"samples": len(values), **{name: round(value, 3) for name, value in three.items()}}


def bandwidths(collective: str, size_bytes: int, ranks: int, usec: float) -> tuple[float, float]:
    """algbw and busbw in GB/s (10^9 bytes), as nccl-tests defines them: size is the larger of a rank's two buffers."""
    algbw = size_bytes / usec / 1e3
    return algbw, algbw * (2 if collective == "all_reduce" else 1) * (ranks - 1) / ranks


def partner(rank: int, ranks: int, turn: int) -> int | None:
    """Who meets whom in each of n-1 turns (n, if n is odd) of the circle method; None has nobody in this turn."""
    circle = ranks + ranks % 2 - 1
    other = turn if rank == circle else (2 * turn - rank) % circle
    other = circle if other == rank else other
    return other if other < ranks else None


def late_group(lateness: Sequence[float], error: float) -> list[int]:
    """The ranks that stand apart in one step: behind the widest gap, at most half of all, the gap wider than the rest differ among
    themselves and the error of the measurement together."""
    order = sorted(range(len(lateness)), key=lateness.__getitem__)
    width, cut = max((lateness[order[at]] - lateness[order[at - 1]], at) for at in range(1, len(order)))
    apart = width > error + lateness[order[cut - 1]] - lateness[order[0]] and 2 * (len(order) - cut) <= len(order)
    return sorted(order[cut:]) if apart else []


def chance(trials: int, hits: int, share: float) -> float:
    """The chance of that many hits or more, if each of up to 1000 trials hits with this share: the tail of the binomial distribution."""
    return math.fsum(math.comb(trials, k) * share**k * (1 - share) ** (trials - k) for k in range(hits, trials + 1))


def judge(lateness: Sequence[Sequence[float]], error: float, false_alarm: float) -> dict[str, Any]:
    """Which ranks (columns) are late in most steps (rows) of each half of the run, more often than chance would have it among equals.

    false_alarm bounds the probability that any rank at all is named although all are alike and the steps independent.
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
    """Whom both ways of looking name, or the one that names somebody; two that name different ranks name nobody."""
    found = {name: way["late"] for name, way in ways.items() if way["late"]}
    late = sorted(set.intersection(*map(set, found.values()))) if found else []
    reason = "nobody stands apart from the rest" if all(way["enough_steps"] for way in ways.values()) else "too few steps to tell"
    if found:
        reason = "late in most steps" if late else f"contradiction: {found}"
    return {"stragglers": late, "by": sorted(found) if late else [], "reason": reason}


def on_clock_of_0(stamp: int, before: Sequence[int], after: Sequence[int]) -> float:
    """A time stamp (ns) on rank 0's clock; before and after: (own time, offset, error) in ns, the drift between them taken as constant."""
    return stamp + before[1] + (stamp - before[0]) / max(1, after[0] - before[0]) * (after[1] - before[1])


def by_step(rows: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """One row a rank turned into one row a step. (zip() that tells different lengths from equal ones needs Python 3.10.)"""
    return list(zip_longest(*rows))


def shorter(times: Sequence[Sequence[float]]) -> list[list[float]]:
    """How much less than the longest each rank spent in the collective: who comes last waits for nobody, and is through first."""
    return [[max(step) - one for one in step] for step in times]


def skew(rows: Sequence[Any], clocks: Sequence[Any], false_alarm: float) -> dict[str, Any]:
    """rows: for each rank and step, in ns, (left the collective before, came to this one, time in one without work before it, time in
    this one); clocks: for each rank the two readings of on_clock_of_0."""
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


def load_torch() -> tuple[Any, Any]:
    """What follows needs PyTorch, what stands above does not."""
    try:
        return importlib.import_module("torch"), importlib.import_module("torch.distributed")
    except ImportError as error:
        raise SystemExit(f"torch is not installed for {sys.executable} ({error}): pip install torch") from error


class Cpu:
    """Times calls that return when they are done."""

    hidden: bool | None = None

    def __init__(self) -> None:
        self.torch, self.dist = load_torch()
        self.device = self.torch.device("cpu")

    def mark(self) -> Any:
        """Nanoseconds of the clock that nothing slews while we measure."""
        return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)

    def usec(self, before: Any, after: Any) -> float:
        return float(after - before) / 1e3

    def done(self, mark: Any) -> bool:
        return bool(mark)

    def finish(self) -> None:
        """Nothing is under way when a call has returned."""

    def lead(self, operation: Callable[[], Any], count: int) -> None:  # noqa: ARG002
        """A call that is not counted brings the ranks together; where calls are queued, the queue is held until count of them are in it."""
        operation()

    def spans(self, operation: Callable[[], Any], count: int = 1, lead: bool = True) -> list[float]:
        """Microseconds of each of count calls, one behind the other."""
        if lead:
            self.lead(operation, count)
        marks = [self.mark()]
        for _each in range(count):
            operation()
            marks.append(self.mark())
        if lead and self.hidden is not None:
            self.hidden = self.hidden and not self.done(marks[0])
        self.finish()
        return [self.usec(marks[at], marks[at + 1]) for at in range(count)]


class Gpu(Cpu):
    """Times by events on the stream, so without the cost of launching where the queue is held; hidden tells whether all of every series
    was queued before the first began."""

    def __init__(self, index: int) -> None:
        super().__init__()
        self.hidden = True
        self.device = self.torch.device("cuda", index)
        self.torch.cuda.set_device(index)

    def mark(self) -> Any:
        event = self.torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def usec(self, before: Any, after: Any) -> float:
        return float(before.elapsed_time(after)) * 1e3

    def done(self, mark: Any) -> bool:
        return bool(mark.query())

    def finish(self) -> None:
        self.torch.cuda.synchronize()

    def lead(self, operation: Callable[[], Any], count: int) -> None:
        operation()
        self.finish()
        before = time.monotonic_ns()
        operation()
        launch_ns = time.monotonic_ns() - before
        self.finish()
        # Cycles at about 2 GHz; private to PyTorch, which tests itself with it. Without it `hidden` tells.
        if hasattr(self.torch.cuda, "_sleep"):
            self.torch.cuda._sleep(2 * min(max(2 * launch_ns * (count + 2), 1_000_000), 500_000_000))
        operation()


class Job:
    """This rank among the others: `control` is a gloo group for small talk, `group` the one that is measured."""

    def __init__(self, at: Place, backend: str, timeout_seconds: float) -> None:
        self.torch, self.dist = load_torch()
        self.rank, self.ranks = at.rank, at.ranks
        timeout = timedelta(seconds=timeout_seconds)
        self.dist.init_process_group("gloo", timeout=timeout)
        self.control = self.group = self.dist.group.WORLD
        gpus = self.torch.cuda.device_count() if self.dist.is_nccl_available() and backend != "gloo" else 0
        index = at.local_rank % gpus if gpus else None
        gpu = self.torch.cuda.get_device_properties(index) if gpus else None
        uuid = gpu and str(getattr(gpu, "uuid", f"{os.environ.get('CUDA_VISIBLE_DEVICES')} {index}"))
        own = {"rank": at.rank, "host": socket.gethostname(), "gpu": gpu and gpu.name, "uuid": uuid}
        self.members = self.everybody(own)
        self.backend = chosen_backend(self.members, backend)
        self.timer = Cpu() if index is None else Gpu(index)
        if self.backend == "nccl":
            self.group = self.dist.new_group(backend="nccl", timeout=timeout)
        else:
            self.torch.set_num_threads(1)

    def everybody(self, own: Any) -> list[Any]:
        found: list[Any] = [None] * self.ranks
        self.dist.all_gather_object(found, own, group=self.control)
        return found

    def operation(self, collective: str, size_bytes: int) -> tuple[Callable[[], Any], Any, Any]:
        """A call of the collective on float32, its input, and its output (for all_reduce the same)."""
        count, device = size_bytes // 4, self.timer.device
        large = self.torch.zeros(count, device=device)
        other = self.torch.zeros(count if collective == "all_to_all" else count // self.ranks, device=device)
        source, target = {"all_reduce": (large, large), "all_gather": (other, large)}.get(collective, (large, other))
        function = getattr(self.dist, [name for name in COLLECTIVES[collective] if hasattr(self.dist, name)][0])  # noqa: RUF015
        buffers = (large,) if collective == "all_reduce" else (target, source)
        return (lambda: function(*buffers, group=self.group)), source, target

    def read_clocks(self, exchanges: int = 50) -> tuple[int, int, int]:
        """(own time, offset of rank 0's clock, its error) in ns by the quickest of some exchanges with rank 0, one rank after another. The
        error is half the round trip: rank 0 read its clock somewhere within it."""
        stamp, clock = self.torch.zeros(1, dtype=self.torch.int64), Cpu()
        trips = [(0, clock.mark(), clock.mark())] if self.rank == 0 else []
        for other in [one for one in range(1, self.ranks) if self.rank in (0, one)] * exchanges:
            if self.rank == 0:
                self.dist.recv(stamp, src=other, group=self.control)
                stamp[0] = clock.mark()
                self.dist.send(stamp, dst=other, group=self.control)
            else:
                asked = clock.mark()
                self.dist.send(stamp, dst=0, group=self.control)
                self.dist.recv(stamp, src=0, group=self.control)
                answered = clock.mark()
                trips.append((answered - asked, (asked + answered) // 2, int(stamp[0])))
        self.dist.barrier(group=self.control)
        trip, own, theirs = min(trips)
        return own, theirs - own if self.rank else 0, (trip + 1) // 2


def chosen_backend(members: Sequence[Mapping[str, Any]], wanted: str) -> str:
    """nccl if every rank has a GPU of its own, gloo if none has one (or it is asked for); SystemExit for anything else."""
    bare = [member["rank"] for member in members if member["uuid"] is None]
    if wanted == "gloo" or (wanted == "auto" and len(bare) == len(members)):
        return "gloo"
    if bare:
        raise SystemExit(f"no GPU, or a PyTorch without NCCL, on ranks {bare}: --backend gloo measures without GPUs")
    gpus = [(member["host"], member["uuid"]) for member in members]
    if len(set(gpus)) < len(gpus):
        raise SystemExit(f"several ranks on one GPU: {sorted({gpu for gpu in gpus if gpus.count(gpu) > 1})}")
    return "nccl"


def exchange(ways: Sequence[Callable[..., Any]], buffer: Any, other: int, group: Any) -> None:
    for send_or_receive in ways:
        send_or_receive(buffer, other, group=group)


def measure_p2p(job: Job, size_bytes: int, turns: int, batch: int = 20, batches: int = 5) -> dict[str, Any]:
    """Halves of round trips: batches of ping-pong between pairs of ranks, all pairs of a turn at once."""
    buffer = job.torch.zeros(max(1, size_bytes // 4), device=job.timer.device)
    own: list[tuple[int, int, float, float]] = []
    for turn in range(min(turns, job.ranks + job.ranks % 2 - 1)):
        job.dist.barrier(group=job.control)
        other = partner(job.rank, job.ranks, turn)
        if other is None:
            continue
        ways = [job.dist.send, job.dist.recv][:: 1 if job.rank < other else -1] * batch
        spans = job.timer.spans(partial(exchange, ways, buffer, other, job.group), batches)
        if job.rank < other:
            own.append((job.rank, other, statistics.median(spans) / batch / 2, min(spans) / batch / 2))
    found = [{"ranks": [a, b], "usec": round(c, 3), "least_usec": round(d, 3)} for part in job.everybody(own) for a, b, c, d in part]
    return {"what": "half of a round trip", "bytes": buffer.numel() * 4, "batch": batch, "batches": batches, "pairs": found}


def measure_collective(job: Job, collective: str, size_bytes: int, iterations: int) -> dict[str, Any]:
    """Over iterations: the mean of the ranks' times (as nccl-tests), and how far they differ; what comes out is checked first."""
    size_bytes -= size_bytes % (4 * job.ranks)
    try:
        call, source, target = job.operation(collective, size_bytes)
        source.fill_(float(job.rank))
        call()
    except (RuntimeError, NotImplementedError) as error:
        return {"bytes": size_bytes, "unsupported": str(error).splitlines()[0]}
    expected = job.torch.arange(job.ranks, device=target.device, dtype=target.dtype).reshape(-1, 1)
    in_parts = collective in ("all_gather", "all_to_all")
    bad = target.reshape(job.ranks, -1) != expected if in_parts else target != expected.sum()
    wrong = sum(job.everybody(int(bad.sum())))
    source.zero_()
    steps = by_step(job.everybody(job.timer.spans(call, iterations)))
    usec = summary([statistics.mean(step) for step in steps])
    spread = statistics.median([max(step) - min(step) for step in steps])
    algbw, busbw = (float(f"{one:.5g}") for one in bandwidths(collective, size_bytes, job.ranks, usec["median"]))
    row = {"usec": usec, "spread_usec": round(spread, 3), "algbw_gbytes": algbw, "busbw_gbytes": busbw}
    return {"bytes": size_bytes, **row, "wrong": wrong}


def measure_skew(job: Job, chosen: argparse.Namespace) -> dict[str, Any]:
    """Each step: two small collectives one behind the other, a fixed piece of work, a third collective."""
    call, *_buffers = job.operation("all_reduce", 4 * job.ranks)
    work = chosen.work if chosen.work is not None else 4096 if job.backend == "nccl" else 256
    matrix, clock = job.torch.ones(work, work, device=job.timer.device), Cpu()
    job.timer.spans(lambda: matrix @ matrix, 3)
    before, own = job.read_clocks(), []
    for _each in range(chosen.steps):
        idle = job.timer.spans(call)[0]
        left = clock.mark()
        matrix @ matrix
        job.timer.finish()
        if job.rank == chosen.delay_rank:
            time.sleep(chosen.delay_ms / 1e3)
        came = clock.mark()
        own.append((left, came, round(idle * 1e3), round(job.timer.spans(call, lead=False)[0] * 1e3)))
    everybody = job.everybody((own, (before, job.read_clocks())))
    return skew([rows for rows, _clocks in everybody], [clocks for _rows, clocks in everybody], chosen.false_alarm)


class Times:
    """The times of a training loop's collectives, taken without stopping the GPU. All ranks make one, at the same place, and call step().

    Every `every` steps each rank sends its last `keep` times of each name over gloo to rank 0, which compares the calls that are through on
    all and gives the result to tell(). Without calibrate() it cannot know how small a difference means nothing, and names nobody.
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
        """How far the ranks' times of one small all-reduce differ (95th percentile, usec) where it follows upon another: nobody is late."""
        token = self.timer.torch.zeros(1, device=self.timer.device)
        found: list[Any] = [None] * self.dist.get_world_size()
        self.dist.all_gather_object(found, self.timer.spans(lambda: self.dist.all_reduce(token), count), group=self.control)
        self.error_usec = percentile([max(step) - min(step) for step in by_step(found)], 95)
        return self.error_usec

    def harvest(self) -> None:
        """Takes the times of what is through, and waits for nothing; of more than 4 `keep` that are not, the oldest are given up."""
        while self.pending and (len(self.pending) > 4 * self.keep or self.timer.done(self.pending[0][2])):
            name, before, after = self.pending.popleft()
            number = self.numbers[name] = self.numbers.get(name, 0) + 1
            if self.timer.done(after):
                self.kept.setdefault(name, deque(maxlen=self.keep)).append((number, self.timer.usec(before, after)))
            else:
                self.lost += 1

    def step(self) -> dict[str, Any] | None:
        """At the end of each training step; at every `every`th all ranks meet here, and the result is rank 0's."""
        before = time.monotonic_ns()
        self.harvest()
        self.own_ns += time.monotonic_ns() - before
        self.steps += 1
        if self.steps % self.every:
            return None
        own = {"times": {name: dict(times) for name, times in self.kept.items()}, "lost": self.lost, "ns": self.own_ns / max(1, self.calls)}
        found: list[Any] | None = [None] * self.dist.get_world_size() if self.dist.get_rank() == 0 else None
        self.dist.gather_object(own, found, group=self.control)
        self.kept.clear()
        self.calls = self.own_ns = 0
        report = {"schema": 1, "step": self.steps, **window(found, self.error_usec)} if found else None
        if report:
            self.tell(report)
        return report


def window(found: Sequence[Mapping[str, Any]], error: float | None, false_alarm: float = 1e-3) -> dict[str, Any]:
    """Compares what the ranks (times: {name: {number of the call: usec}}, lost, ns) tell of the calls that all of them have."""
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
    """Times what the stream does within: from where it gets to the collective, so without what was queued before, to its end. An
    asynchronous one is to be waited for within. All ranks use the same names, in the same order."""
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


def options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add = parser.add_argument
    add("--output", type=Path, help="JSON, written by rank 0")
    add("--ranks", type=int, help="fail unless there are so many")
    add("--master", help="address of rank 0, where the launcher does not tell it")
    add("--backend", choices=("auto", "nccl", "gloo"), default="auto")
    add("--timeout", type=float, default=300.0, help="seconds until a rank that does not answer is an error")
    add("--collectives", nargs="*", choices=tuple(COLLECTIVES), default=tuple(COLLECTIVES))
    add("--begin", type=float, default=1024, help="bytes (1e9 will do)")
    add("--end", type=float, default=64 * 2**20)
    add("--factor", type=int, default=4)
    add("--iterations", type=int, default=20)
    add("--p2p-bytes", type=int, default=8)
    add("--p2p-turns", type=int, default=15, help="with how many others each rank is measured")
    add("--steps", type=int, default=60, help="of the search for late ranks, at most 1000; 0 for none")
    add("--work", type=int, help="side of the matrix that is multiplied in each step")
    add("--false-alarm", type=float, default=1e-3, help="highest probability of naming anybody where all are alike")
    add("--delay-rank", type=int, default=-1, help="a test of this program: this rank sleeps in each step")
    add("--delay-ms", type=float, default=20.0)
    chosen = parser.parse_args(arguments)
    if chosen.factor < 2 or chosen.iterations < 1 or not 0 <= chosen.steps <= 1000 or chosen.begin > chosen.end:
        parser.error("--factor from 2, --iterations from 1, --steps to 1000, --begin up to --end")
    return chosen


def sizes(begin: float, end: float, factor: int, ranks: int) -> list[int]:
    """Bytes from begin to end, in each of them at least one number for each rank."""
    found = [max(int(begin), 4 * ranks)]
    while found[-1] * factor <= end:
        found.append(found[-1] * factor)
    return found


def measure(job: Job, chosen: argparse.Namespace) -> dict[str, Any]:
    steps = sizes(chosen.begin, chosen.end, chosen.factor, job.ranks)
    p2p = measure_p2p(job, chosen.p2p_bytes, chosen.p2p_turns)
    collectives = {name: [measure_collective(job, name, one, chosen.iterations) for one in steps] for name in chosen.collectives}
    hidden = job.everybody(job.timer.hidden)
    late = measure_skew(job, chosen) if chosen.steps else None
    return {"launch_hidden": None if None in hidden else all(hidden), "p2p": p2p, "collectives": collectives, "skew": late}


def told(result: Mapping[str, Any]) -> Iterator[str]:
    """The result as lines for people."""
    yield f"{result['ranks']} ranks, {result['backend']}, PyTorch {result['torch']}, started by {result['launcher']}"
    if result["launch_hidden"] is False:
        yield "the cost of launching is within some of the times: the queue ran dry"
    for pair in sorted(result["p2p"]["pairs"], key=lambda pair: -pair["usec"])[:8]:
        yield "p2p {ranks}: {usec:.1f} us, half of a round trip (the slowest pairs first)".format(**pair)
    text = "{bytes:>12} bytes {usec[median]:>10.1f} us, p95 {usec[p95]:>10.1f}, algbw {algbw_gbytes:>8.3f} GB/s, busbw {busbw_gbytes:>8.3f}"
    for name, rows in result["collectives"].items():
        for row in rows:
            yield f"{name:<14} " + (
                f"not measured: {row['unsupported']}" if "unsupported" in row else text.format(**row) + f", {row['wrong']} wrong"
            )
    late = result["skew"] or {"ranks": [], "verdict": {"stragglers": [], "reason": "not looked for"}}
    for row in late["ranks"]:
        who = "rank {rank:>4}: {late_usec[median]:>10.1f} us late (± {clock_error_usec:.1f}), waited {waited_usec[median]:>10.1f} us"
        yield who.format(**row)
    yield f"stragglers: {late['verdict']['stragglers'] or 'none'}: {late['verdict']['reason']}"


def main(arguments: Sequence[str] | None = None) -> int:
    chosen = options(arguments)
    try:
        at = place({**os.environ, **({"MASTER_ADDR": chosen.master} if chosen.master else {})})
    except ValueError as error:
        raise SystemExit(str(error)) from error
    if at.ranks < 2 or chosen.ranks not in (None, at.ranks):
        raise SystemExit(
            f"{at.ranks} ranks by {at.launcher}, expected {chosen.ranks or 'two at least'}: is the launcher's MPI the right one?"
        )
    if at.address is None:
        raise SystemExit(f"{at.launcher} does not tell where rank 0 is: --master ADDRESS, or MASTER_ADDR for every rank")
    port = os.environ.get("MASTER_PORT", "29500")
    os.environ.update(RANK=str(at.rank), WORLD_SIZE=str(at.ranks), MASTER_ADDR=at.address, MASTER_PORT=port)
    began = time.time()
    job = Job(at, chosen.backend, chosen.timeout)
    head = {"schema": 1, "started_epoch": round(began), "launcher": at.launcher, "torch": job.torch.__version__, "backend": job.backend}
    result = {**head, "ranks": job.ranks, "members": job.members, "dtype": "float32", **measure(job, chosen)}
    if job.rank == 0:
        print("\n".join(told(result)), flush=True)
        if chosen.output:
            partial = chosen.output.with_suffix(".partial")
            partial.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
            partial.replace(chosen.output)
    job.dist.barrier(group=job.control)
    job.dist.destroy_process_group()
    return int(any(row.get("wrong") for rows in result["collectives"].values() for row in rows))


if __name__ == "__main__":
    sys.exit(main())
