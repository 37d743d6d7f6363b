# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The program's options, its order of work, and its result."""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .job import COLLECTIVES, Job
from .measures import measure_collective, measure_p2p, measure_skew
from .place import place

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


ABOUT = "Measures collectives between the ranks of a job, and reports which rank comes late to them."


def options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=ABOUT)
    add = parser.add_argument
    add("--output", type=Path, help="JSON file, written by rank 0")
    add("--ranks", type=int, help="expected number of ranks; fail if it differs")
    add("--master", help="address of rank 0, if the launcher does not set it")
    add("--backend", choices=("auto", "nccl", "gloo"), default="auto")
    add("--timeout", type=float, default=300.0, help="seconds after which a rank that does not answer is an error")
    add("--collectives", nargs="*", choices=tuple(COLLECTIVES), default=tuple(COLLECTIVES))
    add("--begin", type=float, default=1024, help="smallest size in bytes, for example 1e9")
    add("--end", type=float, default=64 * 2**20)
    add("--factor", type=int, default=4)
    add("--iterations", type=int, default=20)
    add("--p2p-bytes", type=int, default=8)
    add("--p2p-turns", type=int, default=15, help="number of partners of each rank")
    add("--steps", type=int, default=60, help="steps of the search for late ranks, at most 1000; 0 skips it")
    add("--work", type=int, help="size of the square matrix that is multiplied in each step")
    add("--false-alarm", type=float, default=1e-3, help="maximum probability of naming a rank if all are equal")
    add("--delay-rank", type=int, default=-1, help="for tests of this program: this rank sleeps in each step")
    add("--delay-ms", type=float, default=20.0)
    chosen = parser.parse_args(arguments)
    if chosen.factor < 2 or chosen.iterations < 1 or not 0 <= chosen.steps <= 1000 or chosen.begin > chosen.end:
        parser.error("expected --factor of at least 2, --iterations of at least 1, --steps of at most 1000, --begin not above --end")
    return chosen


def sizes(begin: float, end: float, factor: int, ranks: int) -> list[int]:
    """The sizes in bytes from begin to end. Each has at least one number for each rank."""
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


def text_lines(result: Mapping[str, Any]) -> Iterator[str]:
    """The result as lines of text."""
    yield f"{result['ranks']} ranks, {result['backend']}, PyTorch {result['torch']}, started by {result['launcher']}"
    if result["launch_hidden"] is False:
        yield "some times include the cost of launching, because the queue was empty"
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
            f"{at.ranks} ranks by {at.launcher}, expected {chosen.ranks or 'at least two'}: check that the launcher uses the right MPI"
        )
    if at.address is None:
        raise SystemExit(f"{at.launcher} does not set the address of rank 0: use --master ADDRESS, or set MASTER_ADDR for every rank")
    port = os.environ.get("MASTER_PORT", "29500")
    os.environ.update(RANK=str(at.rank), WORLD_SIZE=str(at.ranks), MASTER_ADDR=at.address, MASTER_PORT=port)
    began = time.time()
    job = Job(at, chosen.backend, chosen.timeout)
    head = {"schema": 1, "started_epoch": round(began), "launcher": at.launcher, "torch": job.torch.__version__, "backend": job.backend}
    result = {**head, "ranks": job.ranks, "members": job.members, "dtype": "float32", **measure(job, chosen)}
    if job.rank == 0:
        print("\n".join(text_lines(result)), flush=True)
        if chosen.output:
            partial = chosen.output.with_suffix(".partial")
            partial.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
            partial.replace(chosen.output)
    job.dist.barrier(group=job.control)
    job.dist.destroy_process_group()
    return int(any(row.get("wrong") for rows in result["collectives"].values() for row in rows))
