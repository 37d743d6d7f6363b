# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.drill_result; documented in plugins/modules/drill_result.py."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import OK
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.nccl.outage import check_outage
from ansible_collections.rdma.cluster.plugins.plugin_utils._drill.drill import MADE, Drill
from ansible_collections.rdma.cluster.plugins.plugin_utils._drill.judge import outage_words
from ansible_collections.rdma.cluster.plugins.plugin_utils._drill.stored import basis_of, longest, store
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.known import known_hosts
from ansible_collections.rdma.cluster.plugins.plugin_utils._nccl.derive import effective_variables
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.action import RunAction


class ActionModule(RunAction):
    _requires_connection = False
    ARGUMENTS: ClassVar[Mapping[str, Any]] = {"step": {"type": "int"}}

    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        drill = Drill(self.folder, self.plan_text)
        return self._all(drill) if options["step"] is None else self._step(drill, options["step"])

    def _step(self, drill: Drill, number: int) -> dict[str, Any]:
        """Record a step. It fails if the fabric is not as it was, so that no further fault is made."""
        step, outage = drill.step(number), drill.outage(number)
        self.folder.write_json("drill/results.json", {"schema": 1, "steps": drill.record()})
        words = outage_words(step.name, outage)
        if not outage.problem:
            intent = next(iter(drill.intents.values()))
            store(self.folder, step.plane, basis_of(intent, step.plane), (step.name, outage.longest_ms / 1000), time.time())
        bad = drill.not_restored(number)
        answer = {"outage_ms": None if outage.problem else outage.longest_ms, "problem": outage.problem, "explained": words}
        if not bad:
            return answer
        steps = f"On {step.switch}, `systemctl list-timers 'rdma-drill-restore-*'` shows whether a timer still waits to end the fault."
        text = "\n".join([words, f"NOT RESTORED after {step.name}; no further fault is made:", *(f"- {each}" for each in bad), steps])
        return {**answer, "failed": True, "msg": text, "explained": text}

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
