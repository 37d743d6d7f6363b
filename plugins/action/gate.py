# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.gate; documented in plugins/modules/gate.py."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any, ClassVar

from ansible.utils.display import Display

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding, stopping, worst
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import STAGES
from ansible_collections.rdma.cluster.plugins.plugin_utils._collectives.gate import CollectiveGate
from ansible_collections.rdma.cluster.plugins.plugin_utils._collectives.plan import FILE as COLLECTIVE_PROOFS
from ansible_collections.rdma.cluster.plugins.plugin_utils._collectives.plan import CollectivePlan
from ansible_collections.rdma.cluster.plugins.plugin_utils._drill.stored import longest
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.gate import FabricGate
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.entry import facts_finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.known import Known, known_hosts
from ansible_collections.rdma.cluster.plugins.plugin_utils._fleet.intents import differing
from ansible_collections.rdma.cluster.plugins.plugin_utils._gate.fleet_checks import FLEET_CHECKS, compared, merged, verdict
from ansible_collections.rdma.cluster.plugins.plugin_utils._gate.host_checks import HOST_CHECKS, host_findings, threshold
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.problem import IntentError
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.read import read_variable
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.topology import PLAN
from ansible_collections.rdma.cluster.plugins.plugin_utils._mesh.judge import check_cables
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs import proofs as pairs_proofs
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.fleet import Fleet, measurable_hosts
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.gate.gate import PairGate
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.loads.cross import check_cross
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.loads.fabric import judge_load
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.loads.isolation import check_isolation
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.loads.spines import check_spines
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.path_mtu import check_path_mtu
from ansible_collections.rdma.cluster.plugins.plugin_utils._plugin_transfer.judge import judge_transfers
from ansible_collections.rdma.cluster.plugins.plugin_utils._plugin_transfer.plan import BLOCKED, HOSTS, Transfers, read_proofs
from ansible_collections.rdma.cluster.plugins.plugin_utils._plugin_transfer.plan import PROOFS as TRANSFER_PROOFS
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.cost import FILE as COST_FILE
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.action import RunAction
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import PLANE, is_group, run_id
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.policy import REPORT, STOP, apply_rules, decide, shared_rules
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.stages import is_under_way, lost, mark_symptoms, up_to
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.numbers.training import gpu_hour

display = Display()
#: The variable with the request for a plan.
PLAN_NAME = "rdma_plan"

#: The policy if hosts have different policies, or none of them has an intent.
STRICTEST = {"policy": STOP, "max_failed_percent": None}


class ActionModule(RunAction):
    _requires_connection = False
    ARGUMENTS: ClassVar[Mapping[str, Any]] = {
        "stage": {"type": "str", "required": True, "choices": list(STAGES)},
        "scope": {"type": "str", "required": True, "choices": ["fleet", "host", "decide"]},
        "fail_host": {"type": "bool", "default": True},
        "batch": {"type": "bool", "default": False},
    }

    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        self.options = options
        ask = {"fleet": self._fleet, "host": self._host, "decide": self._decide}[options["scope"]]
        return {"stage": options["stage"], "scope": options["scope"], **ask(options["stage"])}

    def _fleet(self, stage: str) -> dict[str, Any]:
        """Compare hosts and write the findings of each. Fails no host."""
        judges = {"pairs": self._judge_pairs, "fabric": self._judge_fabric, "collectives": self._judge_collectives}
        if stage not in judges and stage not in FLEET_CHECKS:
            return {"msg": f"{stage} gate: nothing to compare between hosts."}
        known = (known_hosts if stage in FLEET_CHECKS else measurable_hosts)(self.folder, self.folder.hosts_of(stage))
        by_host = judges[stage](known) if stage in judges else compared(stage, known, self.folder, self.plan_text)
        if stage == "nccl":
            for host, findings in self._judge_transfers(known).items():
                by_host[host] = [*by_host.get(host, ()), *findings]
        for host, each in known.items():
            if each.problem:
                by_host[host] = [*by_host.get(host, ()), facts_finding(stage, host, each.problem)]
        groups = {host: by_host.pop(host) for host in [*by_host] if is_group(host)}
        if stage in FLEET_CHECKS:
            # Another batch of hosts may have had findings that this one does not have.
            self._write_groups(stage, {name: groups.get(name, []) for name in {*self.folder.groups_of(stage), *groups}})
        for host, findings in by_host.items():
            self.folder.write_findings(stage, host, findings, of="fleet")
        return {"msg": f"{stage} gate: {len(by_host)} hosts compared."}

    def _judge_fabric(self, known: Mapping[str, Known]) -> dict[str, list[Finding]]:
        """Judge the graph of each plane. Findings about a whole plane belong to no host, so they are recorded here."""
        found = FabricGate(self.folder, known, run_id(), self.plan_text).judge()
        self._write_planes("fabric", found.planes)
        for host, findings in check_cables(known, self.folder).items():
            found.hosts[host] += findings
        return found.hosts

    def _write_planes(self, stage: str, planes: Mapping[str, list[Finding]]) -> None:
        self._write_groups(stage, {f"{PLANE}{plane}": findings for plane, findings in planes.items()})

    def _write_groups(self, stage: str, groups: Mapping[str, list[Finding]]) -> None:
        """Write the findings of planes and of the fleet. No host's gate adds them to its own."""
        for name, findings in groups.items():
            self.folder.write_findings(stage, name, self._ruled(stage, findings))

    def _ruled(self, stage: str, findings: Iterable[Finding]) -> list[Finding]:
        """Apply today's rdma_checks to the findings: the host's own rules, or for a plane the rules that all hosts share."""
        today, rules = datetime.now(UTC).date(), self._rules(stage)
        return [each for finding in findings for each in apply_rules([finding], rules(finding.host), today)]

    def _rules(self, stage: str) -> Callable[[str], Mapping[str, Any]]:
        """The function that returns the rules of a host or group. A rule that only some hosts have does not apply to a group."""

        @cache
        def of(host: str) -> Mapping[str, Any]:
            if not is_group(host):
                return dict((self.intent_of(host) or {"checks": {}})["checks"])
            return shared_rules(self._intents(stage).values())

        return of

    def _intents(self, stage: str) -> dict[str, Mapping[str, Any]]:
        """The intents of all hosts that have begun a stage."""
        intents = {host: self.intent_of(host) for host in self.folder.hosts_of(stage)}
        return {host: intent for host, intent in intents.items() if intent is not None}

    def _judge_pairs(self, known: Mapping[str, Known]) -> dict[str, list[Finding]]:
        """Judge measurements and proofs, also for hosts that were lost while they were measured."""
        fleet = Fleet.of(known)
        proofs = pairs_proofs.read(self.folder.read_if_there(pairs_proofs.FILE))
        settings = {**self.intent["pairs"], **self._thresholds()}
        check_mode, planned = bool(self._task.check_mode), len(self.variables["ansible_play_hosts_all"])
        loads = [*judge_load(self.folder, known), *check_spines(self.folder, fleet), *check_isolation(self.folder, fleet)]
        loads += check_cross(self.folder, fleet)
        loads += check_path_mtu(self.folder, fleet)
        doubts = [each for each in loads if stopping(self._ruled("pairs", [each.finding]))]
        found = PairGate(self.folder, fleet, proofs, settings, self.proof_max_age_hours, check_mode, time.time(), planned, doubts).judge()
        planes: dict[str, list[Finding]] = {}
        for finding in (each.finding for each in loads):
            if is_group(finding.host):
                planes.setdefault(finding.host.removeprefix(PLANE), []).append(finding)
            else:
                found.setdefault(finding.host, []).append(finding)
        self._write_planes("pairs", planes)
        self._write_lost("pairs", found)
        return found

    def _judge_collectives(self, known: Mapping[str, Known]) -> dict[str, list[Finding]]:
        """Judge the runs and proofs, also for hosts that were lost during a run."""
        proofs = pairs_proofs.read(self.folder.read_if_there(COLLECTIVE_PROOFS))
        plan = CollectivePlan(Fleet.of(known), proofs, time.time(), self.proof_max_age_hours)
        planned = len(self.variables["ansible_play_hosts_all"])
        found = CollectiveGate(self.folder, plan, bool(self._task.check_mode), planned).judge()
        self._write_lost("collectives", found)
        return found

    def _judge_transfers(self, known: Mapping[str, Known]) -> dict[str, list[Finding]]:
        """Judge the data that hosts have moved through the network plugin, and record the proofs."""
        planned = self.folder.read_if_there(HOSTS)
        known = known if planned is None else {host: each for host, each in known.items() if host in planned}
        before = read_proofs(self.folder.read_if_there(TRANSFER_PROOFS))
        transfers = Transfers.of(known, before, time.time(), self.proof_max_age_hours)
        blocked = self.folder.read_if_there(BLOCKED) or {}
        found = judge_transfers(self.folder, known, transfers, blocked, check_mode=bool(self._task.check_mode))
        if found.proofs != before:
            self.folder.write_json(TRANSFER_PROOFS, found.proofs)
        return found.findings

    def _write_lost(self, stage: str, found: Mapping[str, list[Finding]]) -> None:
        """Write the findings of hosts that are no longer in the play, because their own gate will not run."""
        for host in set(found) - set(self.variables["ansible_play_hosts"]):
            self.folder.write_findings(stage, host, [*self.folder.read_findings(stage, host), *found[host]])

    def _thresholds(self) -> dict[str, float]:
        """The thresholds of rdma_checks that replace those of rdma_pairs."""
        below, usec = threshold(self.intent, "pair.bandwidth"), threshold(self.intent, "pair.latency")
        fractions = {} if below is None else {"software_fail_below": below, "fail_below": below}
        return {**fractions, **({} if usec is None else {"latency_fail_usec": usec})}

    def _host(self, stage: str) -> dict[str, Any]:
        """Record this host's findings. They fail the host, except in check mode or with the policy `report`."""
        findings = self._marked(stage, self._ruled(stage, self._findings(stage)))
        self.folder.write_findings(stage, self.host, findings)
        gentle = self._task.check_mode or self.intent["gate"]["policy"] == REPORT or not self.options["fail_host"]
        return {
            "failed": bool(stopping(findings)) and not gentle,
            "msg": verdict(stage, self.host, findings),
            "status": worst(findings),
            "offenders": [finding.to_dict() for finding in stopping(findings)],
        }

    def _marked(self, stage: str, findings: list[Finding]) -> list[Finding]:
        """The findings, with a mark on those that follow from an error of this or an earlier stage."""
        if not stopping(findings):
            return findings
        earlier = [each for before in up_to(stage) if before != stage for each in self.folder.read_findings(before, self.host)]
        return mark_symptoms(findings, earlier)

    def _findings(self, stage: str) -> list[Finding]:
        compared = self.folder.read_findings(stage, self.host, of="fleet")
        if stage not in HOST_CHECKS:
            return compared or [lost(stage, self.host, "the hosts were not compared: scope fleet of the gate has not run")]
        intent: Intent = {**self.intent, "allowed": self.allowed}
        if stage == "nccl" and (outage := longest(self.folder, intent, max_age_hours=self.proof_max_age_hours)) is not None:
            intent["outage"] = outage
        return merged(compared, host_findings(stage, self.host, intent, self.all_facts))

    def _decide(self, stage: str) -> dict[str, Any]:
        """Decide whether the build goes on, from all hosts of the play and those that are still in it and pass this stage."""
        playing = set(self.variables["ansible_play_hosts"])
        gone = [host for host in self.variables["ansible_play_hosts_all"] if host not in playing]
        out = {host: self._why(stage, host) for host in gone}
        out.update(self._offences(stage))
        hosts = len(self.variables["ansible_play_hosts_all"])
        planes = {plane: _words(found) for plane in self.folder.groups_of(stage) if (found := self._offence(stage, plane))}
        intents = self._intents(stage)
        differ = differing("gate", intents)
        if differ:
            # If hosts have different policies, no host can be excluded.
            out.update(dict.fromkeys(intents, f"intent.alike: rdma_gate: {differ}"))
        policy = next((intent["gate"] for intent in intents.values()), STRICTEST) if not differ else STRICTEST
        decision = decide(stage, policy, hosts, out, planes, check_mode=self._task.check_mode)
        self.folder.write_json(f"gates/{stage}.json", decision.to_dict())
        self._note_gpu_hour()
        words = f"{stage} gate: rdma_gate: {differ}. Set the same rdma_gate for all hosts of the run. " if differ else ""
        return {"failed": decision.stops, "msg": words + decision.words, "decision": decision.to_dict()}

    def _note_gpu_hour(self) -> None:
        """Record the price of a GPU hour (rdma_plan.gpu_hour) for the summary, once in a run."""
        if (self.folder.path / COST_FILE).is_file():
            return
        given = None if PLAN_NAME in self._raw_facts(self.variables) else self.variables["hostvars"][self.host].get(PLAN_NAME)
        if not isinstance(given, Mapping) or given.get("gpu_hour") is None:
            return
        try:
            self.folder.write_json(COST_FILE, gpu_hour(read_variable({PLAN_NAME: given}, PLAN_NAME, PLAN)))
        except (IntentError, ValueError) as error:
            display.warning(f"The summary shows no costs, because rdma_plan is not valid. {error}")

    def _offences(self, stage: str) -> dict[str, str]:
        """The hosts that do not pass a stage, each with its first stopping finding."""
        hosts = self.folder.hosts_of(stage)
        if self.options["batch"]:
            hosts = [host for host in hosts if not is_under_way(self.folder.read_findings(stage, host))]
        return {host: _words(found) for host in hosts if (found := self._offence(stage, host))}

    def _offence(self, stage: str, host: str) -> Finding | None:
        return next(iter(stopping(self.folder.read_findings(stage, host))), None)

    def _why(self, stage: str, host: str) -> str:
        """Why a host is no longer in the play. If this stage lost it for an unknown reason, a finding is written."""
        for earlier in reversed(up_to(stage)):
            if found := self._offence(earlier, host):
                return f"{earlier} stage, {_words(found)}"
        finding = lost(stage, host, "it is no longer in the play, for an unknown reason")
        self.folder.write_findings(stage, host, [finding])
        return _words(finding)


def _words(finding: Finding) -> str:
    return f"{finding.check}: {finding.observed}"
