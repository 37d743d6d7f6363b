# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Findings grouped by cause, with the hosts that share it and one remedy."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import first_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import STAGES
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.stages import cause_key

#: Hosts that a list names at most.
NAMES = 5
#: A step of a remedy: "Run the driver stage for node1". The stage of quality of service is written QoS.
RUN_STAGE = re.compile(rf"\b[Rr]un the (?P<stage>{'|'.join((*STAGES, 'QoS'))}) stage for (?P<host>[\w.-]*\w)")


@dataclass
class Cause:
    """Findings with one cause. hosts: all that share it; follows: the checks of findings that follow from it."""

    check: str
    status: str
    stage: str
    subject: str
    observed: str
    expected: str
    found: list[Finding] = field(default_factory=list)
    follows: list[str] = field(default_factory=list)

    @property
    def hosts(self) -> list[str]:
        return list(dict.fromkeys(each.host for each in self.found))

    @property
    def place(self) -> str:
        return place(names(self.hosts), self.subject)

    @property
    def remedy(self) -> str:
        return shared_remedy(self.found)

    @property
    def reason(self) -> str:
        """By what it is silenced; "" if it is not."""
        return self.found[0].silenced_by or ""


def causes(findings: Iterable[Finding]) -> tuple[list[Cause], list[Finding]]:
    """Return the causes in the order of their first findings, and the findings whose cause is not among them.

    Hosts share a cause if status, subject, values and the findings that follow from it are equal.
    """
    every = list(findings)
    known = {(each.host, cause_key(each)) for each in every if each.caused_by is None}
    follows: dict[tuple[str, str], dict[str, None]] = {}
    own, elsewhere = list[Finding](), list[Finding]()
    for each in every:
        if each.caused_by is None:
            own.append(each)
        elif (each.host, each.caused_by) in known:
            follows.setdefault((each.host, each.caused_by), {})[each.check] = None
        else:
            elsewhere.append(each)
    groups: dict[tuple[object, ...], Cause] = {}
    for each in own:
        also = tuple(follows.get((each.host, cause_key(each)), ()))
        values = (each.check, each.status, each.stage, each.subject, each.observed, each.expected)
        group = groups.setdefault((*values, each.silenced_by or "", also), Cause(*values, follows=list(also)))
        group.found.append(each)
    return list(groups.values()), elsewhere


def names(hosts: Sequence[str]) -> str:
    """The first host names and the number of the others."""
    return first_of(list(dict.fromkeys(hosts)), NAMES)


def place(hosts: str, subject: str) -> str:
    """ "node1, rail0"; "node1" alone where the host is itself the subject."""
    return hosts if subject == hosts else f"{hosts}, {subject}"


def shared_remedy(found: Sequence[Finding]) -> str:
    """The remedy of findings that share a block; if the remedies differ by more than the host's name, with that host."""
    first = found[0]
    if len({finding.remedy.replace(finding.host, "HOST") for finding in found}) == 1:
        return with_command(first.remedy, first.host, [finding.host for finding in found])
    remedy = with_command(first.remedy, first.host, [first.host])
    return f"{remedy} (This is for {first.host}; findings.jsonl of the evidence has the steps of the others.)"


def with_command(remedy: str, host: str, hosts: Sequence[str]) -> str:
    """A remedy that says to run a stage for a host, with the command line for all hosts that share it."""
    match = RUN_STAGE.search(remedy)
    if match is None or match["host"] != host or "ansible-playbook" in remedy:
        return remedy
    listed = list(dict.fromkeys(hosts))
    limit = f" -l {','.join(listed)}" if len(listed) <= NAMES else ""
    command = f"`ansible-playbook rdma.cluster.{match['stage'].lower()}{limit}`"
    return f"{remedy[: match.start('host')]}{names(listed)} ({command}){remedy[match.end('host') :]}"
