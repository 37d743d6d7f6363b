# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A site's rules on single checks, and its policy for the hosts that do not pass a stage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, WARNING, Finding, stopping

STOP, QUARANTINE, REPORT = "stop", "quarantine", "report"


def shared_rules(intents: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The rules of rdma_checks that all hosts have. They apply to a plane; a rule that only some hosts have does not."""
    first, *others = [intent["checks"] for intent in intents] or [{}]
    return {check: rule for check, rule in first.items() if all(other.get(check) == rule for other in others)}


def apply_rules(findings: Iterable[Finding], rules: Mapping[str, Mapping[str, Any]], today: date) -> list[Finding]:
    """The findings after the intent's rdma_checks: severity swaps error and warning, a silence holds until its last day.

    rules: check ID → {"severity", "threshold", "silenced_by", "reason", "until"}. The severity of an unknown does not change.
    """
    return [_ruled(finding, rules[finding.check], today) if finding.check in rules else finding for finding in findings]


def _ruled(finding: Finding, rule: Mapping[str, Any], today: date) -> Finding:
    if finding.status in (ERROR, WARNING) and rule.get("severity"):
        finding = replace(finding, status=rule["severity"])
    if not rule.get("silenced_by") or not stopping([finding]):
        return finding
    if today <= date.fromisoformat(rule["until"]):
        return replace(finding, silenced_by=f"{rule['silenced_by']} until {rule['until']}: {rule['reason']}")
    return replace(finding, observed=f"{finding.observed} (silenced by {rule['silenced_by']} until {rule['until']}, which has passed)")


@dataclass(frozen=True)
class Decision:
    """Whether the build continues after a stage. out: host → why it does not pass; hosts: the number of hosts in the run.

    planes: plane → its fault as a whole.
    """

    stage: str
    policy: str
    limit_percent: float
    hosts: int
    out: dict[str, str]
    stops: bool
    planes: dict[str, str] = field(default_factory=dict)
    check_mode: bool = False

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def words(self) -> str:
        """The decision in one line."""
        if self.planes:
            names = ", ".join(self.planes)
            out = f", nor do {len(self.out)} of {self.hosts} hosts: {', '.join(self.out)}" if self.out else ""
            do = "does" if len(self.planes) == 1 else "do"
            whole = "excluding hosts cannot fix that. The build stops" if self.stops else self._gentle
            return f"{self.stage} gate: {names} {do} not pass{out}; {whole}."
        if not self.out:
            return f"{self.stage} gate: all {self.hosts} hosts pass."
        share = f"{len(self.out)} of {self.hosts} hosts do not pass ({percent(len(self.out), self.hosts):.3g} %)"
        names = ", ".join(self.out)
        if self.stops:
            return f"{self.stage} gate: {share}; policy {self.policy} allows {self.limit_percent:g} %. The build stops: {names}."
        if self.policy == QUARANTINE and not self.check_mode:
            return f"{self.stage} gate: {share}; policy quarantine allows {self.limit_percent:g} %. The build continues without {names}."
        return f"{self.stage} gate: {share}: {names}; {self._gentle}."

    @property
    def _gentle(self) -> str:
        return "check mode stops no host" if self.check_mode else "the policy report stops no host"


def decide(
    stage: str,
    settings: Mapping[str, Any],
    hosts: int,
    out: Mapping[str, str],
    planes: Mapping[str, str] | None = None,
    *,
    check_mode: bool,
) -> Decision:
    """The decision for the hosts that do not pass, by the policy's limit. A plane that does not pass exceeds any limit.

    settings: the intent's rdma_gate, {"policy", "max_failed_percent"}; stop means a limit of 0. The policy report and check mode never
    stop, so that check mode finds all drift.
    """
    policy = settings["policy"]
    limit = float(settings["max_failed_percent"] or 0) if policy == QUARANTINE else 0.0
    beyond = bool(planes) or (bool(out) and (percent(len(out), hosts) > limit or len(out) >= hosts))
    stops = beyond and policy != REPORT and not check_mode
    return Decision(stage, policy, limit, hosts, dict(out), stops, dict(planes or {}), check_mode)


def percent(part: int, whole: int) -> float:
    return 100.0 * part / whole if whole else 100.0
