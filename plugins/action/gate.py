# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.gate; documented in plugins/modules/gate.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ansible_collections.rdma.cluster.plugins.module_utils._findings import Finding, stopping, worst
from ansible_collections.rdma.cluster.plugins.plugin_utils._action import RunAction
from ansible_collections.rdma.cluster.plugins.plugin_utils._gate import HOST_CHECKS, STAGES, judge_pairs, not_measured, verdict


class ActionModule(RunAction):
    _requires_connection = False
    ARGUMENTS: ClassVar[Mapping[str, Any]] = {
        "stage": {"type": "str", "required": True, "choices": list(STAGES)},
        "scope": {"type": "str", "required": True, "choices": ["fleet", "host"]},
    }

    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        ask = self._fleet if options["scope"] == "fleet" else self._host
        return {"stage": options["stage"], **ask(options["stage"])}

    def _fleet(self, stage: str) -> dict[str, Any]:
        """Checks that compare hosts: writes the findings of each, fails nobody."""
        if stage in HOST_CHECKS or self._task.check_mode:
            return {"msg": f"{stage} gate: nothing to compare between hosts."}
        by_host = judge_pairs(self.folder, self.variables["ansible_facts"]["rdma_intent"]["pairs"])
        for host, findings in by_host.items():
            self.folder.write_findings(stage, host, findings)
        return {"msg": f"{stage} gate: {len(by_host)} hosts compared."}

    def _host(self, stage: str) -> dict[str, Any]:
        """This host's findings: recorded, and fatal for it unless in check mode."""
        findings = self._findings(stage)
        return {
            "failed": bool(stopping(findings)) and not self._task.check_mode,
            "msg": verdict(stage, self.host, findings),
            "status": worst(findings),
            "offenders": [finding.to_dict() for finding in stopping(findings)],
        }

    def _findings(self, stage: str) -> list[Finding]:
        facts = self.variables["ansible_facts"]
        if stage in HOST_CHECKS:
            findings = HOST_CHECKS[stage](self.host, facts["rdma_intent"], facts["rdma"])
        elif self._task.check_mode:
            findings = [not_measured(stage, self.host)]
        else:
            return self.folder.read_findings(stage, self.host)
        self.folder.write_findings(stage, self.host, findings)
        return findings
