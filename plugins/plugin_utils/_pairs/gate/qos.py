# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The pairs gate's part about quality of service: the traffic of a sweep, and the load after it, against each host's RoCE profile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.evidence import LOAD, Evidence
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.fleet import Fleet
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.gate.qos_proof import Payloads, check_traffic, payloads
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.loads.qos import Capacity, check_load
from ansible_collections.rdma.cluster.plugins.plugin_utils._roce.profile import roce_profile
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder


@dataclass(frozen=True)
class QosGate:
    """sweep: this run's, None if it has measured nothing; capacity: what an endpoint's line takes."""

    folder: RunFolder
    fleet: Fleet
    sweep: Evidence | None
    capacity: Capacity

    @cached_property
    def profiles(self) -> Mapping[str, Mapping[str, Any]]:
        """host → its RoCE profile; a host whose traffic is not marked is left out."""
        known = {host: roce_profile(intent) for host, intent in self.fleet.intents.items()}
        return {host: profile for host, profile in known.items() if profile is not None}

    @cached_property
    def sent(self) -> Payloads:
        """What perftest sent from and to each endpoint."""
        return {} if self.sweep is None else payloads(self.sweep.plan["tests"][0], self.sweep.measured)

    @cached_property
    def loads(self) -> Mapping[str, list[Finding]]:
        """host → what is said of the load on its rails, if it was the target of one."""
        evidence = None if self.sweep is None else Evidence.of(self.folder, LOAD, self.fleet.intents, self.fleet.facts)
        found: dict[str, list[Finding]] = {}
        if evidence is not None:
            priorities = {host: profile["priority"] for host, profile in self.profiles.items()}
            for finding in check_load(evidence.plan, evidence.measured, evidence.counters(), priorities, self.capacity):
                found.setdefault(finding.host, []).append(finding)
        return found

    def traffic(self, host: str, measured: Sequence[str], counters: Mapping[str, Any]) -> Iterator[Finding]:
        """Whether what was sent on a host's RoCE rails was counted in its own priority. counters: rail → as counters.risen has it."""
        if host in self.profiles:
            roce = {rail["name"] for rail in self.fleet.intents[host]["rails"] if rail["link_layer"] == "roce"}
            yield from check_traffic(host, [rail for rail in measured if rail in roce], self.profiles[host], counters, self.sent)

    def load(self, host: str) -> list[Finding]:
        """What the load that a host was the target of has shown."""
        return self.loads.get(host, [])
