# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.troubleshoot; documented in plugins/modules/troubleshoot.py."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import cache, cached_property
from typing import Any, ClassVar

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, OK, UNKNOWN, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import all_checks
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.gate import FabricGate
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.entry import facts_finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.known import Known
from ansible_collections.rdma.cluster.plugins.plugin_utils._gate.fleet_checks import FLEET_CHECKS, compared
from ansible_collections.rdma.cluster.plugins.plugin_utils._gate.host_checks import HOST_CHECKS, host_findings
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.fleet import measurable_hosts
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.action import RunAction
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import if_sound, is_group, run_id
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.policy import apply_rules, shared_rules
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.stages import COMPLETED, mark_symptoms
from ansible_collections.rdma.cluster.plugins.plugin_utils._troubleshoot.trees import EVERY, MEASURED, TREES
from ansible_collections.rdma.cluster.plugins.plugin_utils._troubleshoot.walk import text, walk

FILE, TEXT_FILE = "troubleshooting.json", "troubleshooting.txt"
#: How many earlier runs are searched for measurements.
RUNS = 100
#: The stage of the findings about a host as a whole.
FIRST = "preflight"


class ActionModule(RunAction):
    _requires_connection = False
    ARGUMENTS: ClassVar[Mapping[str, Any]] = {
        "symptom": {"type": "str", "required": True, "choices": list(TREES)},
        "problems": {"type": "dict", "default": {}},
    }

    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        self._problems = {host: [str(each) for each in found] for host, found in options["problems"].items() if found}
        walked = walk(TREES[options["symptom"]], all_checks(), cache(self._findings))
        measured = {stage: sorted({run for _finding, run in found}) for stage, found in self._measured.items() if found}
        words = "; ".join(f"{stage}: {', '.join(runs)}" for stage, runs in measured.items())
        explained = text(walked, len(self._hosts), words)
        data = walked.to_dict()
        stored = self.folder.write_json(FILE, {**data, "measured_by": measured})
        self.folder.write(TEXT_FILE, explained + "\n")
        return {"explained": explained, "stored": str(stored), "explained_by": data["explained_by"], "path": data["path"]}

    @property
    def _hosts(self) -> list[str]:
        return list(self.variables["ansible_play_hosts_all"])

    @cached_property
    def _measured(self) -> dict[str, list[tuple[Finding, str]]]:
        """Measuring stage → its findings on each host and plane, of the newest earlier run that judged it, with that run's ID."""
        found: dict[str, list[tuple[Finding, str]]] = {stage: [] for stage in MEASURED}
        known: set[tuple[str, str]] = set()
        for run in self.folder.earlier_runs()[:RUNS]:
            summary: Mapping[str, Any] | None = if_sound(run.path / "summary.json")
            if summary is not None and summary.get("check_mode"):
                continue
            for stage in MEASURED:
                for name in (*run.hosts_of(stage), *run.groups_of(stage)):
                    if (stage, name) in known:
                        continue
                    judged = [each for each in run.known_findings(stage, name) if each.check != COMPLETED and each.caused_by is None]
                    if any(each.status != UNKNOWN for each in judged):
                        known.add((stage, name))
                        found[stage] += [(finding, run.path.name) for finding in judged]
        return found

    @cached_property
    def _known(self) -> dict[str, Known]:
        """The hosts with a valid intent and facts of this run."""
        there = [host for host in self._hosts if host not in self._problems and self.intent_of(host) is not None]
        known = measurable_hosts(self.folder, there)
        return {host: each for host, each in known.items() if each.facts is not None or each.problem}

    @cached_property
    def _intents(self) -> dict[str, Intent]:
        return {host: {**each.intent, "allowed": self.allowed_on(host)} for host, each in self._known.items() if each.intent is not None}

    def _findings(self, stage: str) -> list[Finding]:
        """The findings of a stage on all hosts, by the site's own rules, with marks on those that follow from others."""
        if stage == EVERY:
            return [finding for host in self._hosts for finding in self._of_host(host)]
        if stage in MEASURED:
            return [finding for finding, _run in self._measured[stage] if finding.host in self._hosts or is_group(finding.host)]
        by_host = self._by_host(stage)
        today, shared = datetime.now(UTC).date(), shared_rules(self._intents.values())
        ruled: list[Finding] = []
        for host, found in by_host.items():
            rules = self._intents[host]["checks"] if host in self._intents else shared
            ruled += mark_symptoms(apply_rules(found, rules, today))
        return ruled

    def _by_host(self, stage: str) -> dict[str, list[Finding]]:
        """Host or plane → its findings: from comparing hosts, and from its own facts."""
        by_host: dict[str, list[Finding]] = {}

        def add(found: Iterable[Finding]) -> None:
            for finding in found:
                by_host.setdefault(finding.host, []).append(finding)

        if stage == "fabric":
            judged = FabricGate(self.folder, self._known, run_id(), self.plan_text).judge()
            for findings in (*judged.hosts.values(), *judged.planes.values()):
                add(findings)
        if stage in FLEET_CHECKS:
            for findings in compared(stage, self._known, self.folder).values():
                add(findings)
        if stage in HOST_CHECKS:
            for host, intent in self._intents.items():
                if self._known[host].facts is not None:
                    add(host_findings(stage, host, intent, self.folder.read_json(self.folder.host_file("facts", host))))
        return by_host

    def _of_host(self, host: str) -> list[Finding]:
        """Whether a host has a valid intent, answers, and has usable facts."""
        if host in self._problems:
            remedy = "1. Correct it in the inventory. 2. Run again. docs/intent.md has every key."
            seen = "; ".join(self._problems[host])
            return [Finding(FIRST, "intent.value", host, "intent", ERROR, seen, "an intent without mistakes", remedy)]
        known = self._known.get(host)
        if known is None:
            remedy = (
                f"1. On the control node, run `ansible {host} -m ansible.builtin.ping`. 2. Read its console if it does not answer. "
                f"3. To check the other hosts meanwhile, run again with `--limit '!{host}'`."
            )
            seen = "it cannot be reached, or its facts could not be read"
            return [Finding(FIRST, COMPLETED, host, "stage", UNKNOWN, seen, "a host that answers", remedy)]
        if known.problem:
            return [facts_finding(FIRST, host, known.problem)]
        return [Finding(FIRST, COMPLETED, host, "stage", OK, "it answers, and its intent is valid", "a host that answers")]
