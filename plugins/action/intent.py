# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.intent; documented in plugins/modules/intent.py."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

from ansible_collections.rdma.cluster.plugins.plugin_utils._intent import SECTIONS, IntentError, normalise
from ansible_collections.rdma.cluster.plugins.plugin_utils._run_folder import RunFolder


class ActionModule(ActionBase):
    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        variables = task_vars or {}
        self.validate_argument_spec({})
        given = {name: self._templar.template(variables[name]) for name in ("rdma_rails", *SECTIONS) if name in variables}
        folder = RunFolder.current(variables)
        result.update(changed=False, run_folder=str(folder.path))
        try:
            result["ansible_facts"] = {"rdma_intent": normalise(given)}
        except IntentError as error:
            result.update(failed=True, msg=str(error), problems=error.problems)
        return result
