# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The checks that the gate of each stage runs for all hosts at once to compare them, and the text of a gate's verdict."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import OK, Finding, stopping
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.nccl.nccl import check_nccl_fleet
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.cabling.equal_paths import CHECK as QUEUE_PAIRS
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.cabling.equal_paths import check_queue_pairs, planned_paths
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.managers import CHECK as MANAGER_CHECK
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.managers import check_managers
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.readings import MANAGERS, refused_answers, seen_managers
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.entry import CHECK as FACTS
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.entry import facts_finding, place_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.known import Known
from ansible_collections.rdma.cluster.plugins.plugin_utils._fleet.alike import check_alike, check_duplicates
from ansible_collections.rdma.cluster.plugins.plugin_utils._fleet.clock import check_clocks
from ansible_collections.rdma.cluster.plugins.plugin_utils._fleet.grandmaster import check_grandmasters
from ansible_collections.rdma.cluster.plugins.plugin_utils._fleet.intents import check_fleet
from ansible_collections.rdma.cluster.plugins.plugin_utils._fleet.majority import joined
from ansible_collections.rdma.cluster.plugins.plugin_utils._gate.host_checks import threshold
from ansible_collections.rdma.cluster.plugins.plugin_utils._mesh.reach import check_mesh
from ansible_collections.rdma.cluster.plugins.plugin_utils._nccl.derive import alike_kind, alike_variables, effective_variables
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs import proofs
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.gid_index import check_moved_gids
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.summary import indented
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder, is_group
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.stages import cause_key

FleetCheck = Callable[[Mapping[str, Known]], Mapping[str, list[Finding]]]


def _nccl(hosts: Mapping[str, Known]) -> dict[str, list[Finding]]:
    known = {host: (each.intent, each.facts) for host, each in hosts.items() if each.intent and each.facts}
    variables = {host: alike_variables(*each) for host, each in known.items()}
    variables_alike = check_nccl_fleet(variables, {host: alike_kind(*each) for host, each in known.items()})
    alike = check_alike(hosts, "nccl")
    return joined(variables_alike, {host: findings for host, findings in alike.items() if host in known or is_group(host)})


def _network(hosts: Mapping[str, Known]) -> dict[str, list[Finding]]:
    return joined(check_alike(hosts, "network"), check_duplicates(hosts))


def _host(hosts: Mapping[str, Known]) -> dict[str, list[Finding]]:
    return joined(check_clocks(hosts), check_grandmasters(hosts))


def _preflight(hosts: Mapping[str, Known]) -> dict[str, list[Finding]]:
    return joined(check_fleet(hosts), check_mesh(hosts))


#: Stage → the checks that compare hosts, in one pass. The stages fabric and pairs have their own.
FLEET_CHECKS: dict[str, FleetCheck] = {
    "preflight": _preflight,
    "driver": lambda hosts: check_alike(hosts, "driver"),
    "link": lambda hosts: check_alike(hosts, "link"),
    "host": _host,
    "network": _network,
    "nccl": _nccl,
}


def compared(
    stage: str, hosts: Mapping[str, Known], folder: RunFolder, read_plan: Callable[[str], str] | None = None
) -> dict[str, list[Finding]]:
    """The findings of every host, of FLEET and of planes from comparing hosts, and with the run folder: answers about subnet managers,
    pair proofs.

    read_plan: returns the text of a cabling plan on the control node, or raises ParseError; without it no plan is read. A host
    whose facts break a comparison is unknown. The others are compared without its facts.
    """
    problems: dict[str, str] = {}
    while True:
        usable = {host: replace(each, facts=None) if host in problems else each for host, each in hosts.items()}
        try:
            found = _compared(stage, usable, folder)
        except Exception as error:
            with_facts = [host for host, each in usable.items() if each.facts is not None]
            if not with_facts:
                raise
            culprits = _culprits(lambda some: _compared(stage, some, folder), usable, with_facts)
            problems |= culprits or dict.fromkeys(with_facts, place_of(error))
            continue
        for host, problem in problems.items():
            found[host].append(facts_finding(stage, host, problem))
        if stage == "nccl" and read_plan is not None:
            for host, findings in _queue_pairs(usable, read_plan).items():
                found.setdefault(host, []).extend(findings)
        return found


def _queue_pairs(hosts: Mapping[str, Known], read_plan: Callable[[str], str]) -> dict[str, list[Finding]]:
    """The findings nccl.queue_pairs. A plan that cannot be read is a finding of the fabric stage."""
    known = {host: (each.intent, each.facts) for host, each in hosts.items() if each.intent and each.facts}
    try:
        planes = planned_paths((intent for intent, _facts in known.values()), read_plan)
    except ParseError:
        return {}
    # Without a plan of several paths, which is the usual case, the variables of the hosts need not be derived.
    if not any(planes.values()):
        return {}
    return {
        host: check_queue_pairs(host, intent, effective_variables(intent, facts), planes, threshold(intent, QUEUE_PAIRS))
        for host, (intent, facts) in known.items()
    }


def _culprits(compare: Callable[[Mapping[str, Known]], object], hosts: Mapping[str, Known], with_facts: Sequence[str]) -> dict[str, str]:
    """Host → how its facts break a comparison: the hosts that break it alone, else the one without which it works."""
    alone = {host: _problem(compare, {host: hosts[host]}) for host in with_facts}
    found = {host: problem for host, problem in alone.items() if problem}
    for host in () if found else with_facts:
        rest = {name: replace(each, facts=None) if name == host else each for name, each in hosts.items()}
        if not _problem(compare, rest):
            return {host: _problem(compare, hosts)}
    return found


def _problem(compare: Callable[[Mapping[str, Known]], object], hosts: Mapping[str, Known]) -> str:
    try:
        compare(hosts)
    except Exception as error:  # noqa: BLE001 (whatever a host's data does)
        return place_of(error)
    return ""


def _compared(stage: str, hosts: Mapping[str, Known], folder: RunFolder) -> dict[str, list[Finding]]:
    found = {host: list(findings) for host, findings in FLEET_CHECKS[stage](hosts).items()}
    if stage == "link":
        for host, findings in check_managers(hosts, seen_managers(folder)).items():
            found.setdefault(host, []).extend(findings)
        for host, findings in refused_answers(folder, stage, MANAGER_CHECK, MANAGERS).items():
            found.setdefault(host, []).extend(findings)
    if stage == "network":
        for host, findings in check_moved_gids(hosts, proofs.read(folder.read_if_there(proofs.FILE))).items():
            found[host] += findings
    return found


def merged(compared: Sequence[Finding], own: Sequence[Finding]) -> list[Finding]:
    """All findings of a host, each check once for each subject where the host and the comparison say the same.

    A finding of its own that is ok gives way to one of a comparison on the same check and subject. So does the one on its facts: both
    judges read the same facts, and either may be the first to find them unusable.
    """
    known = {(each.check, each.subject) for each in compared}
    return [*compared, *(each for each in own if not _gives_way(each) or (each.check, each.subject) not in known)]


def _gives_way(own: Finding) -> bool:
    return own.status == OK or own.check == FACTS


def verdict(stage: str, host: str, findings: list[Finding]) -> str:
    """The gate's verdict on a host: one line if it passes, else each failed check with its remedy."""
    bad = stopping(findings)
    if not bad:
        return f"{stage} gate: {host} passes, {len(findings)} checks."
    lines = [f"{stage} gate: {host} does not pass, {len(bad)} of {len(findings)} checks:"]
    printed = {cause_key(finding) for finding in bad if finding.caused_by is None}
    for finding in bad:
        if finding.caused_by is not None:
            where = "" if finding.caused_by in printed else ", which an earlier stage reported"
            lines.append(f"  {finding.status} {finding.check}: {finding.subject}: follows from {finding.caused_by}{where}")
            continue
        lines += [
            f"  {finding.status} {finding.check}: {host}, {finding.subject}",
            f"    seen:     {indented(finding.observed)}",
            f"    expected: {indented(finding.expected)}",
            f"    do:       {indented(finding.remedy)}",
        ]
    return "\n".join(lines)
