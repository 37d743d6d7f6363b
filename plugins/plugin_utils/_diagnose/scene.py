# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The input of a cause's test: one host of an error line, its facts and intent, and the log."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, NOT_APPLICABLE, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.device import Device
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.log import JobLog, Occurrence
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import RunFacts, from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._gate.host_checks import HOST_CHECKS
from ansible_collections.rdma.cluster.plugins.plugin_utils._recorder.record import HostRecord

CONFIRMED, NOT_CHECKABLE, EXCLUDED = VERDICTS = ("confirmed", "not checkable", "excluded")
_NOTHING = from_dict(None)


class Answer(NamedTuple):
    """The answer of a test. verdict: one of VERDICTS; seen: the evidence, or why there is none."""

    verdict: str
    seen: str


@dataclass(frozen=True)
class Known:
    """A host of the inventory: its facts, None if it was not read, and its normalized intent, None if there is none."""

    name: str
    facts: RunFacts | None = None
    intent: Intent | None = None


@dataclass(frozen=True)
class Scene:
    """One host of an occurrence. others: the other hosts that the line concerns, by name; job: all hosts of the job, by name.

    records: what the hosts of the play recorded around the failure; empty if that was not read.
    """

    host: Known
    occurrence: Occurrence
    log: JobLog
    others: Mapping[str, Known] = field(default_factory=dict)
    job: Mapping[str, Known] = field(default_factory=dict)
    records: Sequence[HostRecord] = ()

    @property
    def facts(self) -> RunFacts:
        """The facts of the host; empty if it was not read."""
        return self.host.facts or _NOTHING

    @property
    def devices(self) -> Mapping[str, Device] | None:
        """The RDMA devices of the host; None if it was not read."""
        return self.host.facts.devices if self.host.facts else None

    def field_values(self, name: str) -> tuple[str, ...]:
        """The values of a field of the line."""
        return tuple(self.occurrence.fields.get(name, ()))

    def variable(self, name: str) -> Iterator[tuple[str, str]]:
        """The values of a variable of NCCL and their sources: the log, which has the effective values, else the host's files."""
        values = self.log.context.variables.get(name)
        if values:
            yield from ((value, "the log") for value in values)
            return
        yield from ((variables[name], path) for path, variables in sorted((self.facts.nccl_files or {}).items()) if name in variables)


def addresses(facts: RunFacts) -> dict[str, list[str]]:
    """The addresses of each interface, also of bonds, VLANs and bridges: "192.168.100.1/24", "2001:db8:100::1/64"."""
    found = {name: each.addresses or [] for name, each in (facts.interfaces or {}).items()}
    return {**found, **{name: each.addresses or [] for name, each in facts.netdevs.items()}}


Test = Callable[[Scene], Answer]


class Cause(NamedTuple):
    """A possible cause. says: the cause in words; test: whether it holds; remedy: command and host; of_log: only the log shows it."""

    says: str
    test: Test
    remedy: str
    of_log: bool = False


def confirmed(seen: str) -> Answer:
    return Answer(CONFIRMED, seen)


def excluded(seen: str) -> Answer:
    return Answer(EXCLUDED, seen)


def unknown(why: str) -> Answer:
    return Answer(NOT_CHECKABLE, why)


def not_checkable(why: str) -> Test:
    """The test of a cause that neither facts nor log can show."""
    return lambda _scene: unknown(why)


def judged(stage: str, *checks: str, must_apply: bool = False) -> Test:
    """The test that runs checks of a gate with the current facts.

    must_apply: a finding that is not applicable, for example counters without an earlier reading, excludes nothing.
    """

    def test(scene: Scene) -> Answer:
        facts, intent = scene.host.facts, scene.host.intent
        if facts is None or intent is None:
            return unknown("the host was not read" if facts is None else "there is no intent to compare with")
        try:
            findings = HOST_CHECKS[stage](scene.host.name, intent, facts)
        except Exception as error:  # noqa: BLE001 (whatever a host's data does)
            return unknown(f"the facts lack what the {stage} stage needs: {error}")
        return _of_findings([finding for finding in findings if finding.check in checks], must_apply)

    return test


def _of_findings(findings: list[Finding], must_apply: bool) -> Answer:
    wrong = [finding for finding in findings if finding.status in (ERROR, WARNING)]
    if wrong:
        return confirmed("; ".join(f"{finding.subject}: {finding.observed}, expected {finding.expected}" for finding in wrong[:3]))
    open_ones = [finding for finding in findings if finding.status in ((UNKNOWN, NOT_APPLICABLE) if must_apply else (UNKNOWN,))]
    if open_ones or not findings:
        why = list(dict.fromkeys(f"{finding.subject}: {finding.observed}" for finding in open_ones))
        return unknown("; ".join(why[:3]) or "nothing was checked")
    checks = sorted({finding.check for finding in findings})
    return excluded(f"{checks[0]}: {findings[0].observed}" if len(findings) == 1 else f"no fault found by {', '.join(checks)}")
