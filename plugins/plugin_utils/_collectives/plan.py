# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who takes part in collectives, what of them is proven, and how a run of them is started: pure, from intent, facts and proofs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._collectives.command import ALONE, PROGRAMS
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.devices import missing_entries, parse_list
from ansible_collections.rdma.cluster.plugins.module_utils._net.session import session_address
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.nccl.nccl import HCA
from ansible_collections.rdma.cluster.plugins.plugin_utils._collectives.expected import Expectations
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import RunFacts
from ansible_collections.rdma.cluster.plugins.plugin_utils._nccl.derive import effective_variables, kept_variables
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.fleet import Fleet
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.proofs import Basis, Proofs, Standing, standing

#: Beside the runs, in the form of the proofs of pairs; in the place of a rail stands the operation.
FILE = "../proofs/collectives.json"
#: A file of the run folder: the ladder; and a folder: a file for each host that was run alone.
LADDER, ALONE_FOLDER, BLOCKED = "collectives.json", "collectives", "collectives/blocked.json"
#: Why a proof does not hold for several hosts.
ALONE_ONLY = "only run alone"
#: How the names of the variables of NCCL's log begin.
LOG = "NCCL_DEBUG"
#: Of rdma_collectives, what does not change what a run shows.
_NO_MATTER = ("repeats", "timeout_seconds", "address", "also")


@dataclass(frozen=True)
class CollectivePlan:
    """What can be said before anything is run. proofs: of earlier runs; now: seconds since 1970."""

    fleet: Fleet
    proofs: Proofs
    now: float
    max_age_hours: float

    @cached_property
    def expectations(self) -> Expectations:
        return Expectations(self.fleet)

    @cached_property
    def able(self) -> list[str]:
        """The hosts with GPUs, of those whose intent and facts are known."""
        return [host for host in self.fleet.hosts if self.expectations.gpus(host)]

    def operation(self, host: str) -> str:
        return str(self.fleet.intents[host]["collectives"]["operation"])

    @cached_property
    def standings(self) -> dict[str, Standing]:
        """What the records say of each host that could be run."""
        return {host: self._standing(host) for host in self.able}

    def _standing(self, host: str) -> Standing:
        proof = self.proofs.get(host, {}).get(self.operation(host))
        if proof is not None and not proof.partners and len(self.able) > 1:
            return Standing(proof, ALONE_ONLY)
        return standing(proof, self.basis(host), self.now, self.max_age_hours)

    def basis(self, host: str) -> Basis:
        """What a host's runs depend on: that of its compute rails' measurements, and what NCCL is told there."""
        intent, facts = self.fleet.intents[host], self.fleet.facts[host]
        compute = {rail["name"] for rail in intent["rails"] if rail["role"] == "compute"}
        rails = {name: of for name, of in self.fleet.bases[host].items() if name in compute}
        settings = {key: value for key, value in intent["collectives"].items() if key not in _NO_MATTER}
        gpus = None if facts.gpus is None else [{"address": gpu.address} for gpu in facts.gpus]
        nccl = facts.nccl and {name: value for name, value in asdict(facts.nccl).items() if value is not None}
        return {
            "rails": _hash(rails),
            "gpu": _hash([gpus, facts.gpudirect and asdict(facts.gpudirect), intent.get("gpudirect")]),
            "nccl": _hash([_told(intent, facts), intent["nccl"]["version"], nccl]),
            "intent": _hash(settings),
        }

    def chosen(self, anew: bool | None, left_out: Collection[str] = ()) -> list[str]:
        """Who is to be run, known good ones first: all (anew), or those without a valid proof and as many that have one beside them.

        None of them: anew is False, or all are proven.
        """
        there = [host for host in self.able if host not in left_out]
        if anew is False:
            return []
        if anew:
            return there
        new = [host for host in there if not self.standings[host].valid]
        proven = [host for host in there if self.standings[host].valid]
        return [*proven[: max(2, len(new))], *new] if new else []

    def address(self, host: str) -> str:
        """Where a launcher reaches a host."""
        told = self.fleet.intents[host]["collectives"]["address"]
        return str(told or session_address(self.fleet.facts[host].session) or host)

    def subject(self, hosts: Sequence[str], operation: str) -> str:
        """What findings call a run."""
        return f"{PROGRAMS[operation]} on {f'{len(hosts)} hosts' if len(hosts) > 1 else 'one host'}"

    def missing_devices(self, host: str) -> tuple[str, str]:
        """What NCCL_IB_HCA names in a run on a host and the host does not have, and where that is set; two "" where nothing is missing."""
        intent, facts = self.fleet.intents[host], self.fleet.facts[host]
        environment = intent["collectives"]["environment"]
        value = str(environment[HCA]) if HCA in environment else effective_variables(intent, facts).get(HCA)
        if value is None:
            return "", ""
        missing = missing_entries(parse_list(value), facts.devices)
        in_intent = f"rdma_nccl.variables.{HCA}" if HCA in intent["nccl"]["variables"] and HCA not in kept_variables(intent, facts) else ""
        where = f"rdma_collectives.environment.{HCA}" if HCA in environment else in_intent or intent["nccl"]["conf_file"]
        words = f"{HCA}={value} names {', '.join(missing)}; the host has {', '.join(sorted(facts.devices)) or 'no devices'}"
        return (words, where) if missing else ("", "")

    def arguments(self, hosts: Sequence[str], launcher: str, operation: str) -> dict[str, Any]:
        """What rdma.cluster.nccl_test is given for a run on these hosts. launcher: the host on which it is started."""
        settings = self.fleet.intents[launcher]["collectives"]
        gpus = min(self.expectations.gpus(host) for host in hosts)
        several = len(hosts) > 1
        of_launcher = {
            "launcher": settings["launcher"],
            "program": settings["launcher_program"],
            "launcher_arguments": settings["launcher_arguments"],
            "interface": settings["interface"] or self.fleet.intents[launcher]["nccl"]["socket_ifname"],
            "allow_root": settings["allow_root"],
            "hosts": [self.address(host) for host in hosts],
        }
        return {
            "operation": operation,
            "gpus": gpus,
            **(of_launcher if several else {"launcher": ALONE}),
            "folder": settings["folder"] or _installed(self.fleet.intents[launcher]),
            "environment": {name: str(value) for name, value in settings["environment"].items()},
            **{key: settings[key] for key in ("min_bytes", "max_bytes", "iterations", "timeout_seconds")},
            "host": launcher,
            "subject": self.subject(hosts, operation),
            "expected": self.expectations.expected(hosts, operation, gpus),
        }


def _installed(intent: Intent) -> str | None:
    """Where rdma_nccl.install has put nccl-tests, None if it installs none."""
    tests = (intent["nccl"].get("install") or {}).get("tests")
    return f"{tests['folder']}/build" if tests else None


def _told(intent: Intent, facts: RunFacts) -> dict[str, str]:
    """What NCCL is told on a host, without its log, which a run sets for itself."""
    return {name: value for name, value in effective_variables(intent, facts).items() if not name.startswith(LOG)}


def _hash(data: Mapping[str, Any] | Sequence[Any]) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:16]
