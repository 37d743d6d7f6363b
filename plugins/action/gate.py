# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.gate; documented in plugins/modules/gate.py."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

from ansible_collections.rdma.cluster.plugins.module_utils._findings import Finding, stopping, worst
from ansible_collections.rdma.cluster.plugins.plugin_utils._gate import HOST_CHECKS, STAGES, judge_pairs, not_measured, verdict
from ansible_collections.rdma.cluster.plugins.plugin_utils._run_folder import RunFolder


class ActionModule(ActionBase):
    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        variables = task_vars or {}
        _validation, options = self.validate_argument_spec(
            {
                "stage": {"type": "str", "required": True, "choices": list(STAGES)},
                "scope": {"type": "str", "required": True, "choices": ["fleet", "host"]},
            }
        )
        folder = RunFolder.current(variables)
        work = self._fleet if options["scope"] == "fleet" else self._host
        result.update(changed=False, run_folder=str(folder.path), stage=options["stage"])
        result.update(work(options["stage"], folder, variables))
        return result

    def _fleet(self, stage: str, folder: RunFolder, variables: dict[str, Any]) -> dict[str, Any]:
        """Checks that compare hosts: writes the findings of each, fails nobody."""
        if stage in HOST_CHECKS or self._task.check_mode:
            return {"msg": f"{stage} gate: nothing to compare between hosts."}
        by_host = judge_pairs(folder, variables["ansible_facts"]["rdma_intent"]["pairs"])
        for host, findings in by_host.items():
            folder.write_findings(stage, host, findings)
        return {"msg": f"{stage} gate: {len(by_host)} hosts compared."}

    def _host(self, stage: str, folder: RunFolder, variables: dict[str, Any]) -> dict[str, Any]:
        """This host's findings: recorded, and fatal for it unless in check mode."""
        host = variables["inventory_hostname"]
        findings = self._findings(stage, host, folder, variables)
        failed = bool(stopping(findings)) and not self._task.check_mode
        return {
            "failed": failed,
            "msg": verdict(stage, host, findings),
            "status": worst(findings),
            "offenders": [finding.to_dict() for finding in stopping(findings)],
        }

    def _findings(self, stage: str, host: str, folder: RunFolder, variables: dict[str, Any]) -> list[Finding]:
        facts = variables["ansible_facts"]
        if stage in HOST_CHECKS:
            findings = HOST_CHECKS[stage](host, facts["rdma_intent"], facts["rdma"])
        elif self._task.check_mode:
            findings = [not_measured(stage, host)]
        else:
            return folder.read_findings(stage, host)
        folder.write_findings(stage, host, findings)
        return findings
