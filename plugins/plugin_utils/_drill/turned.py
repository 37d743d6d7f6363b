# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What has answered a fault of a host: findings and alerts that are worse than before it, when, and when they were quiet again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import is_group

#: The higher, the worse. What is silenced or ok is quiet.
RANKS = {WARNING: 1, UNKNOWN: 1, ERROR: 2}
#: A finding by its host, check and subject.
Key = tuple[str, str, str]


@dataclass(frozen=True)
class Turned:
    """A finding that is worse than before the fault. seconds: from the fault until it was first seen."""

    host: str
    check: str
    subject: str
    status: str
    seconds: float


@dataclass(frozen=True)
class Alert:
    """An alert that fires. rail: its label, None without one. seconds: from the fault until it was first seen firing."""

    name: str
    host: str
    rail: str | None
    seconds: float = 0.0

    @property
    def key(self) -> tuple[str, str, str | None]:
        """Return what distinguishes it from other alerts."""
        return self.name, self.host, self.rail


@dataclass
class Answers:
    """What has answered one fault so far. resolved, quiet: seconds after the end of the fault; None if not so yet.

    asked: whether alerts were read. problem: why they could not be read. left: findings that are still worse than before the fault.
    """

    turned: list[Turned] = field(default_factory=list)
    alerts: list[Alert] = field(default_factory=list)
    asked: bool = False
    problem: str = ""
    quiet: float | None = None
    resolved: float | None = None
    left: list[Turned] = field(default_factory=list)


def is_about(finding: Finding | Turned, rail: str) -> bool:
    """Return whether a finding's subject names a rail: "rail 1 (rail1, 0000:21:00.0, ens2)"."""
    return rail in re.split(r"[\s(),]+", finding.subject)


def _key(each: Finding | Turned) -> Key:
    """Return what stays of a finding while its status changes."""
    return each.host, each.check, each.subject


def ranks(findings: Iterable[Finding]) -> dict[Key, int]:
    """Return how bad each finding is, the worst for each key."""
    found: dict[Key, int] = {}
    for each in findings:
        key = _key(each)
        rank = 0 if each.silenced_by is not None else RANKS.get(each.status, 0)
        found[key] = max(found.get(key, 0), rank)
    return found


def worse(before: Mapping[Key, int], findings: Iterable[Finding], seconds: float) -> list[Turned]:
    """Return the findings that are worse than before; one that was not there before counts as ok then."""
    return [
        Turned(each.host, each.check, each.subject, each.status, round(seconds, 1))
        for each in findings
        if each.silenced_by is None and RANKS.get(each.status, 0) > before.get(_key(each), 0)
    ]


def added(known: list[Turned], now: Iterable[Turned]) -> list[Turned]:
    """Return all that has turned, each as it was first seen."""
    have = {_key(each) for each in known}
    return [*known, *(each for each in now if _key(each) not in have)]


@dataclass(frozen=True)
class Verdict:
    """The judgement of one fault. gate, alert: what has seen it first; None if nothing has. others: what else has turned, besides it.

    false: what has turned on other hosts, in words. A finding of a plane or of the fleet accuses no host, so it may see the fault.
    """

    gate: Turned | None
    alert: Alert | None
    others: list[str]
    false: list[str]


def judge_answers(host: str, rail: str, checks: Iterable[str], answers: Answers) -> Verdict:
    """Judge what has answered a fault of a rail. checks: those that must see it."""
    wanted = set(checks)
    own = [each for each in answers.turned if each.host == host or is_group(each.host)]
    gate = next((each for each in own if each.check in wanted and is_about(each, rail)), None)
    alert = next((each for each in answers.alerts if each.host == host and each.rail in (rail, None)), None)
    others = list(dict.fromkeys(each.check for each in own if each is not gate))
    false = [f"{each.check} of {each.host}: {each.subject}" for each in answers.turned if each not in own]
    false += [f"alert {each.name} of {each.host}{f' {each.rail}' if each.rail else ''}" for each in answers.alerts if each.host != host]
    return Verdict(gate, alert, others, false)


def verdict_words(name: str, checks: Iterable[str], verdict: Verdict, answers: Answers) -> str:
    """Return the result of a step, in one line."""
    if verdict.gate is None:
        parts = [f"NOT SEEN by a gate ({' or '.join(checks)})"]
    else:
        parts = [f"gate {verdict.gate.check} ({verdict.gate.status}) after {verdict.gate.seconds:.0f} s"]
    parts.append(_alert_words(verdict.alert, answers))
    if answers.quiet is not None:
        parts.append(f"the gates were quiet {answers.quiet:.0f} s after the end")
    if verdict.others:
        parts.append(f"also seen: {', '.join(verdict.others)}")
    if verdict.false:
        parts.append(f"FALSE on other hosts: {', '.join(verdict.false)}")
    return f"{name}: {'; '.join(parts)}."


def _alert_words(alert: Alert | None, answers: Answers) -> str:
    if not answers.asked:
        return "alert not asked"
    if answers.problem:
        return f"alert unknown: {answers.problem}"
    if alert is None:
        return "NO ALERT"
    end = "did not end in time" if answers.resolved is None else f"ended after {answers.resolved:.0f} s"
    return f"alert {alert.name} after {alert.seconds:.0f} s, {end}"


def summary(verdicts: Mapping[str, tuple[Verdict, Answers]]) -> str:
    """Return how many faults were seen, in one line: "2 of 3 faults were seen by a gate, the slowest after 12 s; …"."""
    if not verdicts:
        return "No fault was made."
    gates = [verdict.gate for verdict, _answers in verdicts.values() if verdict.gate is not None]
    slowest = f", the slowest after {max(each.seconds for each in gates):.0f} s" if gates else ""
    parts = [f"{len(gates)} of {len(verdicts)} faults were seen by a gate{slowest}"]
    asked = [verdict for verdict, answers in verdicts.values() if answers.asked]
    alerts = [verdict.alert for verdict in asked if verdict.alert is not None]
    slowest = f", the slowest after {max(each.seconds for each in alerts):.0f} s" if alerts else ""
    parts.append(f"{len(alerts)} of {len(asked)} by an alert{slowest}" if asked else "alerts were not asked")
    false = sum(len(verdict.false) for verdict, _answers in verdicts.values())
    parts.append(f"{false} false answers on other hosts" if false else "none false")
    return f"{'; '.join(parts)}. Draining was not asked."


def answers_of(data: Mapping[str, Any]) -> Answers:
    """Return the record that asdict has made of Answers."""
    turned, left = ([Turned(**each) for each in data[name]] for name in ("turned", "left"))
    alerts = [Alert(**each) for each in data["alerts"]]
    return Answers(turned, alerts, data["asked"], data["problem"], data["quiet"], data["resolved"], left)
