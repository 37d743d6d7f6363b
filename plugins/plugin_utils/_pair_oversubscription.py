# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Oversubscription as it is measured: one pair alone against all pairs across the spines at once, beside what the graph allows."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, WARNING, Finding

STAGE, CHECK = "pairs", "pair.oversubscription"
#: What all pairs at once may reach less than the graph allows: a fabric without adaptive routing does not spread its flows evenly.
WARN_BELOW, FAIL_BELOW = 0.9, 0.7
EXPECTED = "as much as the uplinks allow"


@dataclass(frozen=True)
class Measured:
    """In 10^9 bit/s: one pair alone, and each of all pairs at once; pairs that failed are None."""

    alone_gbps: float | None
    together_gbps: Sequence[float | None]

    @property
    def share(self) -> float | None:
        """What a pair has left, on average, when all measure at once; None where that was not measured."""
        known = [each for each in self.together_gbps if each is not None]
        return statistics.fmean(known) / self.alone_gbps if known and len(known) == len(self.together_gbps) and self.alone_gbps else None


def oversubscription(host: str, subject: str, measured: Measured, allowed: float | None) -> Finding:
    """The finding `pair.oversubscription`. host: "plane default"; subject: the rail; allowed: of these pairs, as allowed_shares has it."""
    expected = EXPECTED if allowed is None else f"{_ratio(allowed)} at the most, as the graph has it"
    if measured.share is None or allowed is None:
        why = "the graph does not tell what it allows" if measured.share is not None else _not_whole(measured)
        remedy = "Look at pairs/spines of the run folder and at the fabric stage's findings, then measure again with -e rdma_measure=true."
        return Finding(STAGE, CHECK, host, subject, UNKNOWN, why, expected, remedy)
    alone = f"{measured.alone_gbps:.3g} Gb/s"
    seen = f"one pair alone {alone}, {len(measured.together_gbps)} pairs at once {measured.share:.0%} of it each: {_ratio(measured.share)}"
    reached = measured.share / allowed
    if reached >= WARN_BELOW:
        return Finding(STAGE, CHECK, host, subject, OK, seen, expected)
    remedy = (
        "See whether flows are spread over the spines: the counters of the leaves' uplinks (fabric.balance), the routing engine of the "
        "subnet manager or ECMP and adaptive routing of the switches; then congestion control."
    )
    return Finding(STAGE, CHECK, host, subject, ERROR if reached < FAIL_BELOW else WARNING, seen, expected, remedy)


def not_measured(host: str, subject: str, why: str) -> Finding:
    """The same where there is nothing to be measured."""
    return Finding(STAGE, CHECK, host, subject, NOT_APPLICABLE, why, EXPECTED)


def _not_whole(measured: Measured) -> str:
    lost = sum(each is None for each in measured.together_gbps)
    return f"{lost} of {len(measured.together_gbps)} pairs were not measured at once" if lost else "the pair that is alone was not measured"


def _ratio(share: float) -> str:
    """ "2:1" of a half."""
    return f"{1 / share:.2g}:1" if share else "nothing"
