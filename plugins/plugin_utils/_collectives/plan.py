# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The participants of collectives, their proofs, and the arguments of a run; derived from intent, facts and proofs only."""

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

#: Beside the runs, in the form of the pairs' proofs, with the operation in place of the rail.
FILE = "../proofs/collectives.json"
#: In the run folder: the file of the ladder, the folder with a file for each single-host run, and the file of busy hosts.
LADDER, ALONE_FOLDER, BLOCKED = "collectives.json", "collectives", "collectives/blocked.json"
#: Why a proof is not valid for several hosts.
ALONE_ONLY = "only run alone"
#: The prefix of the variables of NCCL's log.
LOG = "NCCL_DEBUG"
#: Keys of rdma_collectives that do not affect the result of a run.
_NO_MATTER = ("repeats", "timeout_seconds", "address", "also")


@dataclass(frozen=True)
class CollectivePlan:
    """The plan before any run. proofs: of earlier runs. now: seconds since 1970."""

    fleet: Fleet
    proofs: Proofs
    now: float
    max_age_hours: float

    @cached_property
    def expectations(self) -> Expectations:
        return Expectations(self.fleet)

    @cached_property
    def able(self) -> list[str]:
        """The hosts with GPUs among those with known intent and facts."""
        return [host for host in self.fleet.hosts if self.expectations.gpus(host)]

    def operation(self, host: str) -> str:
        return str(self.fleet.intents[host]["collectives"]["operation"])

    @cached_property
    def standings(self) -> dict[str, Standing]:
        """The standing of each able host by the records."""
        return {host: self._standing(host) for host in self.able}

    def _standing(self, host: str) -> Standing:
        proof = self.proofs.get(host, {}).get(self.operation(host))
        if proof is not None and not proof.partners and len(self.able) > 1:
            return Standing(proof, ALONE_ONLY)
        return standing(proof, self.basis(host), self.now, self.max_age_hours)

    def basis(self, host: str) -> Basis:
        """Return the basis of a host's runs: that of its compute rails' measurements, and NCCL's settings."""
        intent, facts = self.fleet.intents[host], self.fleet.facts[host]
        compute = {rail["name"] for rail in intent["rails"] if rail["role"] == "compute"}
        rails = {name: of for name, of in self.fleet.bases[host].items() if name in compute}
        settings = {key: value for key, value in intent["collectives"].items() if key not in _NO_MATTER}
        gpus = None if facts.gpus is None else [{"address": gpu.address} for gpu in facts.gpus]
        nccl = facts.nccl and {name: value for name, value in asdict(facts.nccl).items() if value is not None}
        return {
            "rails": _hash(rails),
            "gpu": _hash([gpus, facts.gpudirect and asdict(facts.gpudirect), intent.get("gpudirect")]),
            "nccl": _hash([_planned_nccl(intent, facts), intent["nccl"]["version"], nccl]),
            "intent": _hash(settings),
        }

    def chosen(self, remeasure: bool | None, left_out: Collection[str] = ()) -> list[str]:
        """Return the hosts to run, known good ones first: all (`remeasure`), or those without a valid proof and as many with one.

        No host if `remeasure` is False, or if all are proven.
        """
        there = [host for host in self.able if host not in left_out]
        if remeasure is False:
            return []
        if remeasure:
            return there
        new = [host for host in there if not self.standings[host].valid]
        proven = [host for host in there if self.standings[host].valid]
        return [*proven[: max(2, len(new))], *new] if new else []

    def address(self, host: str) -> str:
        """Return the address of a host for the launcher."""
        planned = self.fleet.intents[host]["collectives"]["address"]
        return str(planned or session_address(self.fleet.facts[host].session) or host)

    def subject(self, hosts: Sequence[str], operation: str) -> str:
        """Return the name of a run in findings."""
        return f"{PROGRAMS[operation]} on {f'{len(hosts)} hosts' if len(hosts) > 1 else 'one host'}"

    def missing_devices(self, host: str) -> tuple[str, str]:
        """Return the devices in NCCL_IB_HCA that a host does not have, and where the variable is set; two "" if none is missing."""
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
        """Return the arguments of rdma.cluster.nccl_test for a run on these hosts. launcher: the host that starts it."""
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
    """Return the nccl-tests folder of rdma_nccl.install, None if it installs none."""
    tests = (intent["nccl"].get("install") or {}).get("tests")
    return f"{tests['folder']}/build" if tests else None


def _planned_nccl(intent: Intent, facts: RunFacts) -> dict[str, str]:
    """Return NCCL's settings on a host, without its log, which each run sets."""
    return {name: value for name, value in effective_variables(intent, facts).items() if not name.startswith(LOG)}


def _hash(data: Mapping[str, Any] | Sequence[Any]) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:16]
