# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The transfers of a run: which hosts use the plugin, their partners on each rail, and which of it is proven already."""

from __future__ import annotations

import hashlib
import ipaddress
import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.plugin import MESH, library_path, preferred_interface
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.plugin_probe import NEWEST, OLDEST
from ansible_collections.rdma.cluster.plugins.module_utils._plugin_transfer.plan import HostPlan, Meeting, TransferPlan
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.nccl.plugin import plugin_is_installed, plugin_name
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.known import Known
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import RunFacts
from ansible_collections.rdma.cluster.plugins.plugin_utils._nccl.derive import compute_rails
from ansible_collections.rdma.cluster.plugins.plugin_utils._nccl.plugin import nccl_version, plugin_use
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.plan.plan import Endpoint, endpoints

PORT = 18590
START_SECONDS, START_SECONDS_PER_BATCH = 30.0, 10.0
SECONDS_PER_HOUR = 3600.0
#: The places of the plan and the results in the run folder, and of the proofs, which outlive the run.
FOLDER, PROOFS = "plugin_transfer", "../proofs/plugin_transfer.json"
PLAN, BLOCKED = f"{FOLDER}/plan.json", f"{FOLDER}/blocked.json"
#: The hosts of the play for which the transfers were planned. The gate judges the transfers of these hosts only.
HOSTS = f"{FOLDER}/hosts.json"

Proofs = dict[str, dict[str, Any]]
"""Subject of a transfer at a host ("node1: rail0 to node2") → {"basis", "measured", "words"}. measured: seconds since 1970."""


@dataclass(frozen=True)
class PluginUser:
    """A host that uses the plugin. sha256: of the library. rails: of role compute, with an RDMA device: rail → endpoint.

    networks: rail → its planned network, None without an address. interface: through which its NCCL uses the library. seconds: the limit
    of a transfer.
    """

    kind: str
    library: str
    sha256: str
    interface: int
    variables: Mapping[str, str]
    rails: Mapping[str, Endpoint]
    networks: Mapping[str, str | None]
    is_mesh: bool
    seconds: float = 0.0

    @property
    def plan(self) -> HostPlan:
        return HostPlan(self.library, self.interface, self.variables)


def plugin_user(intent: Intent, facts: RunFacts) -> PluginUser | None:
    """Return how a host uses the plugin; None if it does not, or if the plugin is not installed as requested."""
    plugin, seen = intent["nccl"]["plugin"], facts.nccl.plugin if facts.nccl else None
    if not plugin_use(intent, facts).used or seen is None or seen.library is None or not plugin_is_installed(plugin, seen):
        return None
    interface = preferred_interface(seen.library, nccl_version(intent, facts)) if seen.library.machine == seen.machine else None
    if interface is None or not OLDEST <= interface <= NEWEST:
        return None
    planned = {rail["name"]: rail["address"] for rail in compute_rails(intent)}
    found = {name: endpoint for name, endpoint in endpoints(intent, facts).items() if name in planned}
    networks = {name: str(ipaddress.ip_interface(address).network) if (address := planned[name]) else None for name in found}
    variables = {name: str(value) for name, value in plugin["variables"].items()}
    is_mesh = (intent.get("fabric") or {}).get("topology") == "mesh"
    path = library_path(plugin_name(plugin))
    seconds = float(plugin["transfer_seconds"])
    return PluginUser(plugin["kind"], path, seen.library.sha256, interface, variables, found, networks, is_mesh, seconds)


@dataclass(frozen=True)
class Transfers:
    """The transfers of a fleet. users: the hosts that use the plugin, in the play's order. proofs: of earlier runs; now: since 1970."""

    users: Mapping[str, PluginUser]
    proofs: Proofs = field(default_factory=dict)
    now: float = 0.0
    max_age_hours: float = math.inf

    @classmethod
    def of(cls, known: Mapping[str, Known], proofs: Proofs, now: float, max_age_hours: float) -> Transfers:
        """Return the transfers of the hosts with intent and facts."""
        users = {host: plugin_user(each.intent, each.facts) for host, each in known.items() if each.intent and each.facts}
        return cls({host: user for host, user in users.items() if user is not None}, proofs, now, max_age_hours)

    @cached_property
    def meetings(self) -> list[Meeting]:
        """All transfers. In a mesh each host sends to all hosts with a direct cable, else to the next one that it reaches."""
        hosts, found = list(self.users), []
        for at, host in enumerate(hosts):
            behind = [hosts[(at + step) % len(hosts)] for step in range(1, len(hosts))]
            reached = [(other, rails) for other in behind if (rails := self._shared(host, other))]
            for other, rails in reached if self.users[host].is_mesh else reached[:1]:
                found += [self._meeting(host, other, one, two) for one, two in rails]
        return found

    def _shared(self, one: str, other: str) -> list[tuple[str, str]]:
        """Return the rails on which a host sends to another one: (its own, that of the other).

        nccl-mesh-plugin selects the NIC itself, by the first subnet that both hosts share, so one transfer is enough. Another plugin is
        tried on each rail, by the rail's device.
        """
        here, there = self.users[one], self.users[other]
        if here.kind == MESH or here.is_mesh:
            known = {there.networks[name]: name for name in reversed(list(there.rails)) if there.networks[name] is not None}
            same = [(name, known[here.networks[name]]) for name in here.rails if here.networks[name] in known]
            return same[:1] if here.kind == MESH else same
        return [(name, name) for name in here.rails if name in there.rails]

    def _meeting(self, one: str, other: str, own: str, rail: str) -> Meeting:
        here, there = self.users[one].rails[own], self.users[other].rails[rail]
        return Meeting(one, other, own, str(here["device"]), str(there["device"]), str(there["address"]))

    def of_host(self, host: str) -> list[Meeting]:
        """Return the transfers in which a host takes part."""
        return [each for each in self.meetings if host in (each.sender, each.receiver)]

    def basis(self, meeting: Meeting) -> str:
        """Return what the result of a transfer depends on, as a hash."""
        ends = [self.users[host] for host in (meeting.sender, meeting.receiver)]
        parts = [asdict(meeting), *([each.sha256, each.interface, dict(each.variables)] for each in ends)]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]

    def proof(self, host: str, meeting: Meeting) -> Mapping[str, Any] | None:
        """Return the proof of a transfer at one of its hosts, if nothing that it depends on has changed; it may be too old."""
        proof = self.proofs.get(f"{host}: {subject(host, meeting)}")
        return proof if proof is not None and proof["basis"] == self.basis(meeting) else None

    def is_young(self, proof: Mapping[str, Any]) -> bool:
        """Return whether a proof is young enough to be valid."""
        return bool(self.now - proof["measured"] <= self.max_age_hours * SECONDS_PER_HOUR)

    def is_proven(self, meeting: Meeting) -> bool:
        """Return whether both hosts have a valid proof of a transfer."""
        proofs = (self.proof(host, meeting) for host in (meeting.sender, meeting.receiver))
        return all(proof is not None and self.is_young(proof) for proof in proofs)

    def chosen(self, measure: bool | None, left_out: Collection[str]) -> list[Meeting]:
        """Return the transfers to make: all (True), none (False), or those without a valid proof; never with a host of left_out."""
        possible = [each for each in self.meetings if each.sender not in left_out and each.receiver not in left_out]
        if measure is None:
            return [each for each in possible if not self.is_proven(each)]
        return possible if measure else []

    def plan(self, run: str, meetings: Sequence[Meeting], forks: int) -> TransferPlan:
        """Return the plan for the hosts. forks: the number of hosts that Ansible starts at once."""
        hosts = [host for host in self.users if any(host in (each.sender, each.receiver) for each in meetings)]
        start_seconds = START_SECONDS + START_SECONDS_PER_BATCH * math.ceil(len(hosts) / max(1, forks))
        seconds = max((self.users[host].seconds for host in hosts), default=0.0)
        return TransferPlan(run, PORT, start_seconds, seconds, {host: self.users[host].plan for host in hosts}, tuple(meetings))


def subject(host: str, meeting: Meeting) -> str:
    """Return the name of a transfer in the findings of one of its hosts: "rail0 to node2", "from node2"."""
    return f"{meeting.rail} to {meeting.receiver}" if host == meeting.sender else f"from {meeting.rail} of {meeting.sender}"


def read_proofs(data: Any) -> Proofs:
    """Return the proofs of a file; {} if there is none, or it is damaged."""
    if not isinstance(data, Mapping):
        return {}
    keys = {"basis": str, "measured": (int, float), "words": str}
    return {
        str(name): dict(proof)
        for name, proof in data.items()
        if isinstance(proof, Mapping) and all(isinstance(proof.get(key), kind) for key, kind in keys.items())  # type: ignore[arg-type]
    }
