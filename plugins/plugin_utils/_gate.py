# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which checks the gate of each stage asks, and how its verdict reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._checks_driver import check_driver
from ansible_collections.rdma.cluster.plugins.module_utils._checks_host import check_host
from ansible_collections.rdma.cluster.plugins.module_utils._checks_link import check_link
from ansible_collections.rdma.cluster.plugins.module_utils._checks_nccl import check_nccl, check_nccl_fleet
from ansible_collections.rdma.cluster.plugins.module_utils._checks_network import check_network
from ansible_collections.rdma.cluster.plugins.module_utils._checks_preflight import check_preflight
from ansible_collections.rdma.cluster.plugins.module_utils._facts import digest
from ansible_collections.rdma.cluster.plugins.module_utils._findings import Finding, stopping
from ansible_collections.rdma.cluster.plugins.plugin_utils._driver import needed_modules
from ansible_collections.rdma.cluster.plugins.plugin_utils._host import sysctl_settings
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent_fleet import check_fleet
from ansible_collections.rdma.cluster.plugins.plugin_utils._nccl import check_gid_index, nccl_files, nccl_variables
from ansible_collections.rdma.cluster.plugins.plugin_utils._run_folder import RunFolder
from ansible_collections.rdma.cluster.plugins.plugin_utils._stage_findings import not_looked_at

HostCheck = Callable[[str, Mapping[str, Any], Mapping[str, Any]], list[Finding]]
#: What the gate knows of a host when it compares hosts: its normalised intent and its facts, None where there are none.
Known = Mapping[str, Mapping[str, Any]]
FleetCheck = Callable[[Known], Mapping[str, list[Finding]]]

#: Checks on one host: (host, intent, facts) → findings.
HOST_CHECKS: dict[str, HostCheck] = {
    "preflight": lambda host, _intent, facts: check_preflight(host, facts),
    "driver": lambda host, intent, facts: check_driver(host, intent["rails"], facts, needed_modules(intent)),
    "link": lambda host, intent, facts: check_link(host, intent["rails"], facts),
    "fabric": lambda host, intent, _facts: not_looked_at("fabric", host, intent),
    "host": lambda host, intent, facts: check_host(host, intent, facts, sysctl_settings(intent)),
    "network": lambda host, intent, facts: check_network(host, intent["rails"], facts),
    "qos": lambda host, intent, _facts: not_looked_at("qos", host, intent),
    "gpu": lambda host, intent, _facts: not_looked_at("gpu", host, intent),
    "nccl": lambda host, intent, facts: [*check_nccl(host, nccl_files(intent, facts), facts), *check_gid_index(host, intent, facts)],
    "collectives": lambda host, intent, _facts: not_looked_at("collectives", host, intent),
}

#: Checks that compare hosts, in one pass; the pairs stage has its own, which judges measurements.
FLEET_CHECKS: dict[str, FleetCheck] = {
    "preflight": check_fleet,
    "nccl": lambda hosts: check_nccl_fleet(
        {host: nccl_variables(known["intent"], known["facts"]) for host, known in hosts.items() if known["intent"] and known["facts"]},
        {host: [rail["name"] for rail in known["intent"]["rails"]] for host, known in hosts.items() if known["intent"] and known["facts"]},
    ),
}


def known_hosts(folder: RunFolder, stage: str) -> dict[str, dict[str, Any]]:
    """Intent and facts of every host that has begun a stage, out of the files of the run; the digest, one host at a time."""
    known = {}
    for host in folder.hosts_of(stage):
        facts = folder.read_if_there(folder.host_file("facts", host))
        known[host] = {"intent": folder.read_if_there(folder.host_file("intent", host)), "facts": digest(facts) if facts else None}
    return known


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
