# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Measurements between the ranks of a job: latency of pairs, collectives over sizes, and late ranks."""

from __future__ import annotations

import statistics
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from .late_ranks import by_step, skew, summary
from .timers import Cpu

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from .job import Job


def bandwidths(collective: str, size_bytes: int, ranks: int, usec: float) -> tuple[float, float]:
    """algbw and busbw in GB/s (10^9 bytes), as nccl-tests defines them: size is the larger of a rank's two buffers."""
    algbw = size_bytes / usec / 1e3
    return algbw, algbw * (2 if collective == "all_reduce" else 1) * (ranks - 1) / ranks


def partner(rank: int, ranks: int, turn: int) -> int | None:
    """The partner of a rank in each of n-1 turns (n if n is odd) of the circle method; None if it has none in this turn."""
    circle = ranks + ranks % 2 - 1
    other = turn if rank == circle else (2 * turn - rank) % circle
    other = circle if other == rank else other
    return other if other < ranks else None


def exchange(ways: Sequence[Callable[..., Any]], buffer: Any, other: int, group: Any) -> None:
    for send_or_receive in ways:
        send_or_receive(buffer, other, group=group)


def measure_p2p(job: Job, size_bytes: int, turns: int, batch: int = 20, batches: int = 5) -> dict[str, Any]:
    """Half the round trip between pairs of ranks, from batches of ping-pong. All pairs of a turn run at once."""
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
    """The mean of the ranks' times over iterations (as nccl-tests), and their spread. The result of the collective is checked first."""
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
    """The report about late ranks. Each step has two small collectives in a row, a fixed piece of work, and a third collective."""
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
