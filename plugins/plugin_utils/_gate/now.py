# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The findings of several stages for all hosts of a run, from the facts that were read last. Nothing is written, and no gate decides."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import date

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.entry import facts_finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.known import Known
from ansible_collections.rdma.cluster.plugins.plugin_utils._gate.fleet_checks import FLEET_CHECKS, compared, merged
from ansible_collections.rdma.cluster.plugins.plugin_utils._gate.host_checks import host_findings
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder, is_group
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.policy import apply_rules, shared_rules


def current_findings(
    stages: Iterable[str], folder: RunFolder, known: Mapping[str, Known], read_plan: Callable[[str], str], today: date
) -> dict[str, list[Finding]]:
    """Return host, plane or fleet → the findings that the gates of these stages would have now, after today's rdma_checks.

    read_plan: returns the text of a cabling plan, or raises ParseError. A host without usable facts is unknown.
    """
    found: dict[str, list[Finding]] = {host: [] for host in known}
    shared = shared_rules(each.intent for each in known.values() if each.intent is not None)
    for stage in stages:
        fleet = compared(stage, known, folder, read_plan) if stage in FLEET_CHECKS else {}
        for name in filter(is_group, fleet):
            found.setdefault(name, []).extend(apply_rules(fleet[name], shared, today))
        for host, each in known.items():
            facts = folder.read_if_there(folder.host_file("facts", host))
            if each.problem or each.intent is None or not facts:
                found[host].append(facts_finding(stage, host, each.problem or "they were not read"))
                continue
            own = host_findings(stage, host, each.intent, facts)
            found[host] += apply_rules(merged(fleet.get(host, []), own), each.intent["checks"], today)
    return found
