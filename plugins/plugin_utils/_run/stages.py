# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Findings on a host's progress through a stage, and findings that follow from another one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, UNKNOWN, Finding, stopping
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import CHECKS, STAGES, Check, declare

declare(
    {
        "stage.completed": Check(
            "every",
            "whether each host that began a stage reached its gate",
            "the run itself",
            "check the failed task, or why the host is unreachable",
            fixed=True,
            sources=(reads.RUN,),
        ),
    }
)

COMPLETED = "stage.completed"
AT_GATE = "every task of the stage done, and the host at its gate"
#: The subject of a finding on a rail: "rail 0 (rail0, 0000:21:00.0, ens1)".
RAIL = re.compile(r"rail \d+ \(([^,)]+)[,)]")
#: Checks whose subject is the name of a rail.
ON_RAILS = ("pair.bandwidth", "network.path_mtu")


def under_way(stage: str, host: str) -> Finding:
    """The finding from a host's first task of a stage until its gate, which remains if the host is lost."""
    return lost(stage, host, "the host did not reach its gate: a task failed, it is unreachable, or the run was ended")


def lost(stage: str, host: str, why: str, remedy: str = "") -> Finding:
    """The finding of a host that did not reach its gate. remedy: the remedy, if it is known."""
    remedy = remedy or f"Fix the cause on {host}, then run the same command again. Completed work is kept."
    return Finding(stage, COMPLETED, host, "stage", UNKNOWN, why, AT_GATE, remedy)


def is_under_way(findings: list[Finding]) -> bool:
    """Whether a host's only finding is that it has begun the stage."""
    return len(findings) == 1 and findings[0].check == COMPLETED


def cause_key(finding: Finding) -> str:
    """The name of this finding in `caused_by` of findings that follow from it."""
    return f"{finding.check} on {finding.subject}"


def mark_symptoms(findings: Sequence[Finding], earlier: Iterable[Finding] = ()) -> list[Finding]:
    """One host's findings, with `caused_by` for those that follow from an error on the same rail.

    earlier: all findings of the host's earlier stages in this run. The catalogue defines which check follows from which. A finding on
    several rails follows only if each of them has such an error. A silenced error explains nothing, because the summary does not
    print it as an error.
    """
    known = [*earlier, *findings]
    rails = {match[1] for each in known if (match := RAIL.match(each.subject))}
    rails |= {each.subject for each in known if each.check in ON_RAILS}
    errors: dict[tuple[str, str], Finding] = {}
    for each in known:
        if each.status == ERROR and each.silenced_by is None:
            for rail in _rails_of(each, rails):
                errors.setdefault((each.check, rail), each)
    return [_marked(each, rails, errors) for each in findings]


def _marked(finding: Finding, rails: set[str], errors: dict[tuple[str, str], Finding]) -> Finding:
    check = CHECKS.get(finding.check)
    if check is None or not stopping([finding]):
        return finding
    causes = check.follows if finding.status == UNKNOWN else check.repeats
    concerned = _rails_of(finding, rails)
    found = [next((errors[name, rail] for name in causes if (name, rail) in errors), None) for rail in concerned]
    if not found or found[0] is None or None in found:
        return finding
    return replace(finding, caused_by=cause_key(found[0]))


def _rails_of(finding: Finding, rails: set[str]) -> list[str]:
    """The names of a finding's rails: from its subject, else from its observation."""
    match = RAIL.match(finding.subject)
    if match:
        return [match[1]]
    if finding.subject in rails:
        return [finding.subject]
    return [rail for rail in sorted(rails) if re.search(rf"(?<![\w.-]){re.escape(rail)}(?![\w.-])", finding.observed)]


def up_to(stage: str) -> tuple[str, ...]:
    """The stages up to and including this one."""
    return STAGES[: STAGES.index(stage) + 1]
