# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.intent; documented in plugins/modules/intent.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from ansible.errors import AnsibleError

from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import clean
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import STAGES
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.problem import IntentError, IntentProblem, findings
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.read import normalize
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.table import OURS
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.action import RunAction
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import run_id
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.lock import LockedError, claim, lock_file
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.own_names import PREFIX, refused, remedy
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.stages import under_way


class ActionModule(RunAction):
    _requires_connection = False
    ARGUMENTS: ClassVar[Mapping[str, Any]] = {"stage": {"type": "str", "choices": list(STAGES)}}

    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        stage = options["stage"]
        if self._task.run_once and (forged := self._forged()):
            return self.refuse(forged)
        begun = {"stage": stage} if stage else {}
        if stage:
            self.folder.write_findings(stage, self.host, [under_way(stage, self.host)])
        try:
            self._lock()
            self.note_settings()
            intent = normalize(self._given())
        except LockedError as error:
            return {**begun, "failed": True, "msg": str(error)}
        except IntentError as error:
            if stage:
                self.folder.write_findings(stage, self.host, findings(self.host, error.problems, stage))
            return {**begun, "failed": True, "msg": str(error), "problems": [str(problem) for problem in error.problems]}
        self.folder.write_json(self.folder.host_file("intent", self.host), intent)
        return {**begun, "ansible_facts": {"rdma_intent": intent}}

    def refuse(self, names: Sequence[str]) -> dict[str, Any]:
        """The same as a problem of the intent, so that playbooks that only read can go on."""
        return {**super().refuse(names), "problems": [f"{refused(names)}. {remedy(self.host)}"]}

    def _given(self) -> dict[str, Any]:
        """The host's variables of this collection, templated. Raises IntentError if one cannot be templated."""
        given, problems = {}, []
        for name in self.variables:
            if name.startswith(PREFIX) and name not in OURS:
                try:
                    given[name] = self._templar.template(self.variables[name])
                except AnsibleError as error:
                    problems.append(
                        IntentProblem(name, f"cannot be templated: {clean(str(error))}", "intent.value", "a template that can be resolved")
                    )
        if problems:
            raise IntentError(problems)
        return given

    def _lock(self) -> None:
        """Lock the inventory if this run changes hosts. Runs in check mode take no lock."""
        sources = self.variables.get("ansible_inventory_sources")
        if sources and not self._task.check_mode:
            claim(lock_file(sources), run_id(), sources, self.folder.path)
        self.folder.link_latest()
