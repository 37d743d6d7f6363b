# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The finding `nccl.lint` of the nccl stage's gate: what a look at every source of NCCL's variables has found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ansible_collections.rdma.cluster.plugins.module_utils._checks_nccl import STAGE
from ansible_collections.rdma.cluster.plugins.module_utils._findings import ERROR, OK, UNKNOWN, WARNING, Finding

CHECK = "nccl.lint"
_SUBJECT = "NCCL's variables"
#: What a place in the intent of a host begins with.
_INTENT = "rdma_"
_EXPECTED = "variables that NCCL reads, and that agree with the host and each other"


def check_lint(host: str, problems: Sequence[Mapping[str, str]] | None) -> list[Finding]:
    """A finding for each error, unknown and warning, or one that there is none; what is only worth knowing is counted.

    problems: as rdma.cluster.nccl_lint returns them; None: nobody has looked.
    """
    if problems is None:
        remedy = f"Run the nccl stage for {host}, which lints them."
        return [Finding(STAGE, CHECK, host, _SUBJECT, UNKNOWN, "nobody has looked at them", _EXPECTED, remedy)]
    told = [_finding(host, problem) for problem in problems if problem["severity"] in (ERROR, UNKNOWN, WARNING)]
    notes = len(problems) - len(told)
    observed = "nothing is wrong" + (f"; {notes} note{'s' if notes > 1 else ''}" if notes else "")
    return told or [Finding(STAGE, CHECK, host, _SUBJECT, OK, observed, _EXPECTED)]


def _finding(host: str, problem: Mapping[str, str]) -> Finding:
    named = f"{problem['variable']} in " if problem["variable"] else ""
    subject = f"{named}{problem['where']} ({problem['rule']})"
    where = "Of" if problem["where"].startswith(_INTENT) else "On"
    remedy = f"{where} {host}: {problem['remedy'][:1].lower()}{problem['remedy'][1:]}"
    return Finding(STAGE, CHECK, host, subject, problem["severity"], problem["observed"], problem["expected"], remedy)
