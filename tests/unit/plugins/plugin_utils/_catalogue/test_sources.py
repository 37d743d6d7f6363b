# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""No check is blind: each source of each check is taken away from a healthy host in each way, and no finding of the check stays `ok`.

The hosts are stand-ins; the gathering, the checks and the comparisons of hosts are the real ones.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, CommandError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.managers import SmInfo
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.counters import since
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import STAGES, all_checks
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.sources import KERNEL, NOTHING, RESULT, Source
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.manager_views import Seen
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.managers import check_managers
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.digest import comparable
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._gate.fleet_checks import FLEET_CHECKS
from ansible_collections.rdma.cluster.plugins.plugin_utils._gate.host_checks import HOST_CHECKS
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.read import normalize
from ansible_collections.rdma.cluster.plugins.plugin_utils._subnet_manager.plan import PRIORITY
from tests.unit.builders.blind_hosts import GARBLED, MISSING, WAYS, Damage, Host, Reading, has_read, read
from tests.unit.builders.blind_trees import hosts
from tests.unit.builders.known import known_of

#: What rdma_facts turns into its own failure, which names what could not be read.
REFUSED = (OSError, ParseError, CommandError, ApplyError)
#: What of garbled text a finding may quote: then it says what it read.
SHOWN = "%%garbled%%"
ME, OTHERS = "node1", ("node2", "node3")


@dataclass(frozen=True)
class Judged:
    """What the gates say of one host by stage, or why its facts were refused."""

    findings: Mapping[str, list[Finding]]
    refused: str = ""

    def of(self, check: str) -> list[Finding]:
        return [finding for found in self.findings.values() for finding in found if finding.check == check]

    def stops(self, stages: list[str]) -> list[Finding]:
        """What stops one of these gates."""
        return [each for stage in stages for each in self.findings.get(stage, ()) if each.status in (ERROR, UNKNOWN)]


class Fleet:
    """One healthy host of a kind, with two like it beside it."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.healthy: Reading = read(host)
        self.intent = {**normalize(host.variables), "allowed": {"pcie_mrrs": True}}
        self.earlier = copy.deepcopy(self.healthy.facts)
        self.earlier["boot"]["uptime_seconds"] -= 3600.0
        self._others = {name: self._other(number) for number, name in enumerate(OTHERS, 2)}
        self._judged: dict[tuple[Source, str], Judged] = {}
        self.well = self._judge(self.healthy.facts)

    def _other(self, number: int) -> dict[str, Any]:
        facts = copy.deepcopy(self.healthy.facts)
        facts["boot"].update(hostname=f"node{number}", machine_id=f"{number:032x}")
        rails = [{**rail, **_moved(rail, number)} for rail in self.host.variables["rdma_rails"]]
        for interface in (facts["interfaces"] or {}).values():
            interface["ipv4"] = [_address(each, number) for each in interface["ipv4"] or ()]
        for name, device in facts["devices"].items():
            device["node_guid"] = device["node_guid"][:-4] + f"{number}00{name[-1]}"
            for port in device["ports"].values():
                port["lid"] = (port["lid"] or 0) + 10 * number
                port["rocev2"] = {_address(address, number): index for address, index in port["rocev2"].items()}
        return {"intent": normalize({**self.host.variables, "rdma_rails": rails}), "facts": comparable(facts)}

    def judged(self, source: Source, way: str) -> Judged:
        """With a source taken away."""
        if (source, way) not in self._judged:
            self._judged[source, way] = self._damaged(Damage(source, way))
        return self._judged[source, way]

    def _damaged(self, damage: Damage) -> Judged:
        try:
            facts = read(self.host, damage).facts
        except REFUSED as error:
            return Judged({}, str(error))
        return self._judge(facts)

    def _judge(self, facts: dict[str, Any]) -> Judged:
        facts["since"] = since(self.earlier, facts, "R1")
        found = {stage: list(check(ME, self.intent, from_dict(facts))) for stage, check in HOST_CHECKS.items()}
        known = {ME: {"intent": self.intent, "facts": comparable(facts)}, **self._others}
        for stage, compare in FLEET_CHECKS.items():
            found[stage] = [*found.get(stage, ()), *compare(known_of(known))[ME]]
        master = SmInfo(1, "0xa088c20300000000", "MASTER", PRIORITY, 99)
        found["link"] += check_managers(known_of(known), {"blue": Seen([master])})[ME]
        return Judged(found)


def _moved(rail: Mapping[str, Any], number: int) -> dict[str, Any]:
    return {"address": _address(rail["address"], number)} if "address" in rail else {}


def _address(address: str, number: int) -> str:
    return address.replace(".1/", f".{number}/") if "/" in address else f"{address[:-1]}{number}"


@pytest.fixture(scope="module")
def fleets(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Fleet]:
    return {name: Fleet(host) for name, host in hosts(tmp_path_factory.mktemp("hosts")).items()}


@dataclass(frozen=True)
class Combination:
    check: str
    source: Source
    way: str

    def __str__(self) -> str:
        return f"{self.check}-{self.source.words}-{self.way}"


#: What is known to be blind and not fixed yet: the fix of an entry removes it. Check → its sources.
STILL_BLIND: dict[str, str] = {}


def combinations() -> Iterator[Combination]:
    """Of everything that a host alone reports."""
    for check, declared in all_checks().items():
        for source in declared.sources:
            if source.kind not in (NOTHING, RESULT):
                yield from (Combination(check, source, way) for way in WAYS[source.kind])


def proving(fleets: Mapping[str, Fleet], check: str, source: Source) -> list[Fleet]:
    """The hosts on which the check is ok and the source was read."""
    well = [fleet for fleet in fleets.values() if any(each.status == OK for each in fleet.well.of(check))]
    return [fleet for fleet in well if has_read(source, fleet.healthy.had)]


def wrong(fleet: Fleet, each: Combination) -> list[str]:
    """What is said wrongly where a source is taken away."""
    judged = fleet.judged(each.source, each.way)
    if judged.refused:
        return [] if _names(judged.refused, each.source) else [f"refused without naming the source: {judged.refused}"]
    means = {MISSING: each.source.absent_means, GARBLED: each.source.garbled_means}.get(each.way)
    stages = [stage for stage in STAGES if stage in judged.findings]
    found = []
    for before in fleet.well.of(each.check):
        if before.status != OK or not fnmatchcase(before.subject, each.source.about):
            continue
        now = same(before, judged.of(each.check))
        if now is None:
            upto = stages[: stages.index(before.stage) + 1]
            if not judged.stops(upto):
                found.append(f"{before.subject}: nothing is said, and no gate up to {before.stage} stops")
        elif means or (each.way == GARBLED and SHOWN in now.observed):
            continue
        elif now.status not in (UNKNOWN, NOT_APPLICABLE) or not now.observed:
            found.append(f"{before.subject}: {now.status}, {now.observed!r}")
    return found


def same(before: Finding, after: list[Finding]) -> Finding | None:
    """The finding on the same subject, which names the interface only where that is known; or the one on all subjects."""
    first = before.subject.split(",")[0]
    return next((each for each in after if each.subject.split(",")[0] == first), after[0] if len(after) == 1 else None)


def _names(words: str, source: Source) -> bool:
    """Whether an error names the source: the last part of its path, or the command."""
    return source.kind == KERNEL or any(part in words for each in source.all for name in each.names for part in _parts(name))


def _parts(name: str) -> list[str]:
    """What of a pattern a message about it must have."""
    return [max(name.split("*"), key=len)]


def test_every_check_says_where_it_reads() -> None:
    assert [check for check, declared in all_checks().items() if not declared.sources] == []


def _marked(each: Combination) -> Any:
    blind = STILL_BLIND.get(each.check) == each.source.words
    return pytest.param(each, id=str(each), marks=[pytest.mark.xfail(reason="not fixed yet", strict=True)] if blind else [])


@pytest.mark.parametrize("each", [*map(_marked, combinations())])
def test_what_cannot_be_read_is_not_ok(fleets: Mapping[str, Fleet], each: Combination) -> None:
    hosts_of_it = proving(fleets, each.check, each.source)
    assert hosts_of_it, "on no healthy host is the check ok and the source read: the declaration is not true, or a host is missing"
    assert [f"{fleet.host.name}: {words}" for fleet in hosts_of_it for words in wrong(fleet, each)] == []
