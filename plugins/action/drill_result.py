# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.drill_result; documented in plugins/modules/drill_result.py."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import OK
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.nccl.outage import check_outage
from ansible_collections.rdma.cluster.plugins.plugin_utils._drill.drill import Drill
from ansible_collections.rdma.cluster.plugins.plugin_utils._drill.host_drill import RESULTS, HostDrill
from ansible_collections.rdma.cluster.plugins.plugin_utils._drill.hosts import HostStep
from ansible_collections.rdma.cluster.plugins.plugin_utils._drill.judge import outage_words
from ansible_collections.rdma.cluster.plugins.plugin_utils._drill.plan import Step
from ansible_collections.rdma.cluster.plugins.plugin_utils._drill.record import MADE
from ansible_collections.rdma.cluster.plugins.plugin_utils._drill.stored import basis_of, longest, store
from ansible_collections.rdma.cluster.plugins.plugin_utils._drill.turned import summary, verdict_words
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.known import known_hosts
from ansible_collections.rdma.cluster.plugins.plugin_utils._nccl.derive import effective_variables
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.action import RunAction


class ActionModule(RunAction):
    _requires_connection = False
    ARGUMENTS: ClassVar[Mapping[str, Any]] = {
        "step": {"type": "int"},
        "of": {"type": "str", "choices": ["switches", "hosts"], "default": "switches"},
    }

    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        if options["of"] == "hosts":
            hosts = HostDrill(self.folder)
            return self._summary(hosts) if options["step"] is None else self._answers(hosts, options["step"])
        drill = Drill(self.folder, self.plan_text)
        return self._all(drill) if options["step"] is None else self._step(drill, options["step"])

    def _step(self, drill: Drill, number: int) -> dict[str, Any]:
        """Record a step. It fails if the fabric is not as it was, so that no further fault is made."""
        step, outage = drill.step(number), drill.outage(number)
        kept = self.folder.read_if_there(RESULTS) or {}
        self.folder.write_json(RESULTS, {**kept, "schema": 1, "steps": drill.record()})
        words = outage_words(step.name, outage)
        if not outage.problem:
            intent = next(iter(drill.intents.values()))
            store(self.folder, step.plane, basis_of(intent, step.plane), (step.name, outage.longest_ms / 1000), time.time())
        bad = drill.not_restored(number)
        answer = {"outage_ms": None if outage.problem else outage.longest_ms, "problem": outage.problem, "explained": words}
        if not bad:
            return answer
        return {**answer, **_not_restored(step, words, bad)}

    def _answers(self, drill: HostDrill, number: int) -> dict[str, Any]:
        """Record what has answered a fault of a host. It fails if the hosts are not as they were, so that no further fault is made."""
        step = drill.step(number)
        if not drill.is_made(number):
            words = f"{step.name}: the fault was not made."
            return {"failed": True, "msg": words, "explained": words}
        drill.write_results()
        words = verdict_words(step.name, step.checks, drill.verdict(number), drill.answers(number))
        bad = drill.not_restored(number)
        return {"explained": words, **(_not_restored(step, words, bad) if bad else {})}

    def _summary(self, drill: HostDrill) -> dict[str, Any]:
        """List what has answered all faults, and count it."""
        verdicts = {drill.step(number).name: (drill.verdict(number), drill.answers(number)) for number in drill.done()}
        lines = [
            verdict_words(name, drill.step(number).checks, *verdicts[name]) for number, name in zip(drill.done(), verdicts, strict=True)
        ]
        return {"explained": "\n".join([*lines, summary(verdicts)])}

    def _all(self, drill: Drill) -> dict[str, Any]:
        """Compare the longest outage with the time for which NCCL retries on each host."""
        done = [number for number, step in enumerate(drill.steps, 1) if drill.noted(number, MADE, step.switch) is not None]
        lines = [outage_words(drill.step(number).name, drill.outage(number)) for number in done]
        return {"explained": "\n".join([*lines, *dict.fromkeys(self._nccl(drill))])}

    def _nccl(self, drill: Drill) -> Iterator[str]:
        known = known_hosts(self.folder, drill.intents)
        for host, intent in drill.intents.items():
            outage, facts = longest(self.folder, intent, max_age_hours=self.proof_max_age_hours), known[host].facts
            if outage is None or facts is None:
                continue
            for finding in check_outage(host, {**intent, "outage": outage}, effective_variables(intent, facts)):
                advice = "" if finding.status == OK else f" {finding.remedy}"
                yield f"{finding.check} on {host}: {finding.observed}.{advice}"


def _not_restored(step: Step | HostStep, words: str, bad: Sequence[str]) -> dict[str, Any]:
    """Return the failure of a step after which something is not as before."""
    steps = f"On {step.place}, `systemctl list-timers 'rdma-drill-restore-*'` shows whether a timer still waits to end the fault."
    text = "\n".join([words, f"NOT RESTORED after {step.name}; no further fault is made:", *(f"- {each}" for each in bad), steps])
    return {"failed": True, "msg": text, "explained": text}
