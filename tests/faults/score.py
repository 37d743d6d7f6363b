# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the product makes of a fault, against what the catalogue expects of it."""

from __future__ import annotations

import atexit
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from typing import Any, Protocol

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, NOT_APPLICABLE, OK, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import FLEET, is_group
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.stages import cause_key
from tests.faults.beds import hosts, scenes
from tests.faults.fault import Expected, Fault, NearMiss

RIGHT, PARTLY, MISSED = "named right", "partly", "missed"
Inject = Mapping[str, Any]


class Bed(Protocol):
    """Where faults are injected."""

    def judge(self, faults: Mapping[str, Sequence[Inject]], earlier: Mapping[str, Sequence[Inject]] | None = None) -> list[Finding]:
        """The findings of all hosts. earlier: what was injected when the run before this one read them."""


BEDS: dict[str, Bed] = {**hosts.BEDS, **scenes.BEDS}
atexit.register(hosts.remove_trees)


def forget() -> None:
    """Judge everything again from now on, as after a change of the code."""
    healthy.cache_clear()
    for bed in hosts.BEDS.values():
        bed.forget()


@dataclass(frozen=True)
class Result:
    """The findings of a fault.

    found: the expected ones; missing: those that were expected and not found; symptoms: findings that follow; false: all others.
    repaired: what is still reported by the run after the repair; near: near miss → what it changed, "" if nothing.
    """

    fault: Fault
    found: tuple[Finding, ...]
    missing: tuple[Expected, ...]
    symptoms: tuple[Finding, ...]
    false: tuple[Finding, ...]
    repaired: tuple[Finding, ...] = ()
    near: tuple[tuple[NearMiss, str], ...] = ()

    @property
    def verdict(self) -> str:
        """RIGHT if everything expected was found, PARTLY if some of it, else MISSED."""
        if not self.missing:
            return RIGHT
        return PARTLY if self.found else MISSED

    @property
    def problems(self) -> list[str]:
        """What is not as the catalogue says, a line each; none for a fault that is named right and accuses nobody else."""
        return [
            *(f"missing: {each}" for each in self.missing),
            *(f"false accusation: {brief(each)}" for each in self.false),
            *(f"after the repair: {brief(each)}" for each in self.repaired),
            *(f"near miss ({each.what}): {words}" for each, words in self.near if words),
        ]


def brief(finding: Finding) -> str:
    return f"{finding.check} {finding.status} on {finding.host}, {finding.subject}: {finding.observed}"


def is_bad(finding: Finding) -> bool:
    return finding.status not in (OK, NOT_APPLICABLE)


@cache
def healthy(bed: str) -> tuple[Finding, ...]:
    """What is reported where nothing is broken."""
    return tuple(BEDS[bed].judge({}))


def new(bed: str, findings: Sequence[Finding]) -> list[Finding]:
    """The findings that are bad and not there where nothing is broken."""
    before = {(each.check, each.host, each.subject, each.status) for each in healthy(bed)}
    return [each for each in findings if is_bad(each) and (each.check, each.host, each.subject, each.status) not in before]


def judge(fault: Fault) -> Result:
    """Inject a fault, judge, repair it, judge again, and try its near misses."""
    bed, faults = BEDS[fault.bed], {host: [fault.inject] for host in fault.on}
    found, missing, symptoms, false = compare(new(fault.bed, bed.judge(faults)), fault.expect, fault.may)
    repaired = tuple(each for each in new(fault.bed, bed.judge({}, faults)) if (each.check, each.host) not in fault.after)
    near = tuple((each, _near(fault, each)) for each in fault.near)
    return Result(fault, found, missing, symptoms, false, repaired, near)


def compare(
    findings: Sequence[Finding], expect: Sequence[Expected], may: Sequence[tuple[str, str]], *, tie: bool = False
) -> tuple[tuple[Finding, ...], tuple[Expected, ...], tuple[Finding, ...], tuple[Finding, ...]]:
    """(found, missing, symptoms, false) of the findings of `new`.

    A symptom is allowed by the catalogue, or the product has attributed it to a finding that is expected or allowed. tie: several hosts
    have faults, so that no value may have a majority; a finding of the fleet then names the differences that are expected.
    """
    matches = names if tie else exactly
    found = [each for each in findings if each.caused_by is None and any(matches(each, wanted) for wanted in expect)]
    rest = [each for each in findings if each not in found]
    causes = {cause_key(each) for each in (*found, *(each for each in rest if _may_follow(each, may)))}
    symptoms = [each for each in rest if each.caused_by in causes or _may_follow(each, may)]
    missing = [wanted for wanted in expect if not any(matches(each, wanted) for each in found)]
    return tuple(found), tuple(missing), tuple(symptoms), tuple(each for each in rest if each not in symptoms)


def exactly(finding: Finding, wanted: Expected) -> bool:
    named = (finding.check, finding.status, finding.host) == (wanted.check, wanted.status, wanted.host)
    return named and fnmatchcase(finding.subject, wanted.subject)


def names(finding: Finding, wanted: Expected) -> bool:
    """Whether a finding is the expected one, or that of the fleet on the same difference: without a majority it names all values."""
    return exactly(finding, wanted) or (finding.host == FLEET and finding.check == wanted.check and finding.status in (ERROR, WARNING))


def _may_follow(finding: Finding, may: Sequence[tuple[str, str]]) -> bool:
    """A finding of a plane or of the fleet accuses no host: it follows if that check may follow on any host."""
    return any(check == finding.check and (host == finding.host or is_group(finding.host)) for check, host in may)


def _near(fault: Fault, near: NearMiss) -> str:
    """What a near miss changes in its checks, or accuses; "" if nothing."""
    bed, on = near.bed or fault.bed, near.on or fault.on
    now = new(bed, BEDS[bed].judge({host: [near.inject] for host in on}))
    wrong = [each for each in now if each.check in near.ok or each.check not in near.may]
    return "; ".join(brief(each) for each in wrong)
