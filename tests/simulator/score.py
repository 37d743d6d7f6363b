# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How well verdicts name what is wrong, and what flagging every endpoint below a threshold makes of the same sweeps."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tests.simulator.sweeps import Sweep, Truth

FAIL_BELOW = 0.80


@dataclass(frozen=True)
class Score:
    """Verdicts that are true, all verdicts, and all faults. A verdict is true if it is the fault in all its parts."""

    right: int = 0
    verdicts: int = 0
    faults: int = 0

    def __add__(self, other: Score) -> Score:
        return Score(self.right + other.right, self.verdicts + other.verdicts, self.faults + other.faults)

    @property
    def precision(self) -> float:
        return self.right / self.verdicts if self.verdicts else 0.0

    @property
    def recall(self) -> float:
        return self.right / self.faults if self.faults else 0.0


def score(sweeps: Iterable[Sweep], method: Callable[[Sweep], frozenset[Truth]]) -> Score:
    """Of one method over sweeps."""
    total = Score()
    for sweep in sweeps:
        answer = method(sweep)
        total += Score(len(answer & sweep.truths), len(answer), len(sweep.truths))
    return total


def threshold(sweep: Sweep) -> frozenset[Truth]:
    """The baseline: each NIC of which a measurement failed or is below FAIL_BELOW of what it should be."""
    least = FAIL_BELOW * sweep.expected_gbps
    low = [row for row in sweep.rows if row.gbps is None or row.gbps < least]
    return frozenset(Truth("nic", host, row.rail) for row in low for host in (row.server, row.client))
