# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which checks the gate of each stage asks, and how its verdict reads."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._checks_driver import check_driver
from ansible_collections.rdma.cluster.plugins.module_utils._checks_link import check_link
from ansible_collections.rdma.cluster.plugins.module_utils._checks_network import check_network
from ansible_collections.rdma.cluster.plugins.module_utils._findings import NOT_APPLICABLE, Finding, stopping
from ansible_collections.rdma.cluster.plugins.plugin_utils._driver import needed_modules
from ansible_collections.rdma.cluster.plugins.plugin_utils._pair_checks import check_pairs, collect
from ansible_collections.rdma.cluster.plugins.plugin_utils._run_folder import RunFolder

#: The order of the build.
STAGES = ("driver", "link", "network", "pairs")

HostCheck = Callable[[str, Mapping[str, Any], Mapping[str, Any]], list[Finding]]

#: Checks on one host: (host, intent, facts) → findings.
HOST_CHECKS: dict[str, HostCheck] = {
    "driver": lambda host, intent, facts: check_driver(host, intent["rails"], facts, needed_modules(intent)),
    "link": lambda host, intent, facts: check_link(host, intent["rails"], facts),
    "network": lambda host, intent, facts: check_network(host, intent["rails"], facts),
}


def judge_pairs(folder: RunFolder, settings: Mapping[str, Any]) -> dict[str, list[Finding]]:
    """The fleet's part of the pairs gate: all hosts' records in one pass; the merged results go to pairs/results.json."""
    plan = folder.read_json("pairs/plan.json")
    records = []
    for host in plan["hosts"]:
        file = folder.path / "pairs" / f"{host}.jsonl"
        if file.exists():
            records += [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    results = collect(plan, records)
    folder.write_json("pairs/results.json", [result.to_dict() for result in results])
    return check_pairs(plan, results, settings, plan["hosts"])


def not_measured(stage: str, host: str) -> Finding:
    """What the gate of a measuring stage says in check mode, in which nothing is measured."""
    return Finding(stage, "pair.bandwidth", host, "all rails", NOT_APPLICABLE, "nothing is measured in check mode", "a measurement")


def verdict(stage: str, host: str, findings: list[Finding]) -> str:
    """What the gate says of a host: one line if all is well, else each offender with what to do."""
    bad = stopping(findings)
    if not bad:
        return f"{stage} gate: {host} passes, {len(findings)} checks."
    lines = [f"{stage} gate: {host} does not pass, {len(bad)} of {len(findings)} checks:"]
    for finding in bad:
        lines += [
            f"  {finding.status} {finding.check}: {host}, {finding.subject}",
            f"    seen:     {finding.observed}",
            f"    expected: {finding.expected}",
            f"    do:       {finding.remedy}",
        ]
    return "\n".join(lines)
