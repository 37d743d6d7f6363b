# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Findings on a host's way through a stage."""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.module_utils._findings import UNKNOWN, Finding

COMPLETED = "stage.completed"
AT_GATE = "every task of the stage done, and the host at its gate"


def under_way(stage: str, host: str) -> Finding:
    """What stands in the evidence from a host's first task of a stage until its gate: all that is left of a host that is lost."""
    return lost(stage, host, "the host has not come to its gate: a task failed, it could not be reached, or the run was ended")


def lost(stage: str, host: str, why: str) -> Finding:
    """A host that did not come to its gate, and why."""
    remedy = f"Mend this on {host} and run again; what the stage had done before stays done."
    return Finding(stage, COMPLETED, host, "stage", UNKNOWN, why, AT_GATE, remedy)


def is_under_way(findings: list[Finding]) -> bool:
    """Whether the findings of a host are no more than that it has begun."""
    return len(findings) == 1 and findings[0].check == COMPLETED
