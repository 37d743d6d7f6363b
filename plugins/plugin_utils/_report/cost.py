# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a finding costs: the GPU hours that a job loses in a day, because one rate is below the expected one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import STOPPING, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import is_group

FILE = "gpu_hour.json"
HOURS_PER_DAY = 24


@dataclass(frozen=True)
class StepTimes:
    """A training step if all is well, in seconds. overlap: the part of the compute time that can hide communication, from 0 to 1."""

    compute_seconds: float
    communication_seconds: float
    overlap: float

    def __post_init__(self) -> None:
        if not (self.compute_seconds > 0 and self.communication_seconds >= 0 and 0 <= self.overlap <= 1):
            raise ValueError(f"a compute time above 0, a communication time from 0 and an overlap from 0 to 1 are needed; got {self}")

    def seconds(self, rate_ratio: float = 1.0) -> float:
        """Return the time of a step if the network has a part of its rate: compute + max(0, communication / ratio - overlap × compute)."""
        return self.compute_seconds + max(0.0, self.communication_seconds / rate_ratio - self.overlap * self.compute_seconds)


@dataclass(frozen=True)
class GpuHour:
    """What a job's GPUs cost. price: of an hour of one GPU; job_hosts: hosts of the job; step: None if its times are not known."""

    price: float
    gpus_per_host: int
    job_hosts: int
    currency: str = "$"
    step: StepTimes | None = None

    def __post_init__(self) -> None:
        if not (math.isfinite(self.price) and self.price >= 0 and self.gpus_per_host >= 1 and self.job_hosts >= 1):
            raise ValueError(f"a price from 0, GPUs and hosts from 1 are needed; got {self.price}, {self.gpus_per_host}, {self.job_hosts}")


@dataclass(frozen=True)
class Loss:
    """What a slow rate costs. per_day: in the currency; formula: with its numbers; at_most: whether the loss can be smaller."""

    per_day: float
    formula: str
    at_most: bool

    def words(self, currency: str) -> str:
        """Return the loss for a person: "at most $5,120 a day: (1 - 0.50) × 4 hosts × …"."""
        amount = f"{currency}{self.per_day:,.0f}" if len(currency) == 1 else f"{currency} {self.per_day:,.0f}"
        return f"{'at most ' if self.at_most else ''}{amount} a day: {self.formula}"


def lost_per_day(rate_ratio: float, job: GpuHour) -> Loss:
    """Return what a job loses in a day if its network has a part of its rate.

    rate_ratio: measured / expected rate, from 0 to 1. All hosts of a job wait for its slowest one, so the loss is that of the whole job:
    (1 - ratio) × hosts × GPUs of a host × price of a GPU hour × 24 h. That is an upper limit, because a step also computes. With the times
    of a step, the ratio in the formula is step time / slower step time. Example: a ratio of 0.786 (1650 of 2100 tokens per second),
    32 hosts with 8 GPUs, 2 for an hour: 2,633 a day. Raises ValueError for another ratio.
    """
    if not 0 <= rate_ratio <= 1:
        raise ValueError(f"a ratio of rates is from 0 to 1; got {rate_ratio}")
    kept, words = rate_ratio, f"{rate_ratio:.3g}"
    if job.step is not None and rate_ratio > 0:
        before, after = job.step.seconds(), job.step.seconds(rate_ratio)
        kept, words = before / after, f"step of {before:.3g} s / {after:.3g} s"
    factors = f"{job.job_hosts} hosts × {job.gpus_per_host} GPUs × {job.currency} {job.price:g} × {HOURS_PER_DAY} h"
    amount = (1 - kept) * job.job_hosts * job.gpus_per_host * job.price * HOURS_PER_DAY
    return Loss(amount, f"(1 - {words}) × {factors}", job.step is None)


def losses(findings: Iterable[Finding], job: GpuHour) -> list[tuple[Finding, Loss]]:
    """Return each finding that has a rate and is not ok with its loss, the largest first. Findings without a rate have no known cost."""
    costly = [
        (finding, lost_per_day(finding.rate_ratio, job))
        for finding in findings
        if finding.rate_ratio is not None and finding.status in (*STOPPING, WARNING) and finding.silenced_by is None
    ]
    return sorted(costly, key=lambda pair: -pair[1].per_day)


def cost_words(found: Sequence[Finding], job: GpuHour | None) -> str:
    """Return the cost of findings that share a block, by the lowest rate of them; "" without a price or a rate."""
    ratios = [finding.rate_ratio for finding in found if finding.rate_ratio is not None]
    return lost_per_day(min(ratios), job).words(job.currency) if job is not None and ratios else ""


def by_cost(found: Sequence[Finding]) -> float:
    """Return a sort key for groups of findings: the lowest rate first, groups without a rate last."""
    return min((finding.rate_ratio for finding in found if finding.rate_ratio is not None), default=math.inf)


def read_gpu_hour(stored: Mapping[str, Any] | None, findings: Iterable[Finding]) -> GpuHour | None:
    """Return the price of a run from its gpu_hour.json, None if there is none. Without job_hosts, the job has all hosts of the run."""
    if not stored:
        return None
    hosts = stored["job_hosts"] or len({finding.host for finding in findings if not is_group(finding.host)}) or 1
    step = None if stored["step"] is None else StepTimes(**stored["step"])
    return GpuHour(stored["price"], stored["gpus_per_host"], hosts, stored["currency"], step)
