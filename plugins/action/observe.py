# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.observe; documented in plugins/modules/observe.py."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

from ansible_collections.rdma.cluster.plugins.module_utils._facts import digest
from ansible_collections.rdma.cluster.plugins.plugin_utils._run_folder import RunFolder


class ActionModule(ActionBase):
    TRANSFERS_FILES = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        variables = task_vars or {}
        self.validate_argument_spec({})
        read = self._execute_module(module_name="rdma.cluster.rdma_facts", module_args={}, task_vars=variables)
        if read.get("failed"):
            return {**result, **read}
        tree = read["ansible_facts"]["rdma"]
        folder = RunFolder.current(variables)
        stored = folder.write_json(f"facts/{variables['inventory_hostname']}.json", tree)
        result.update(changed=False, stored=str(stored), ansible_facts={"rdma": digest(tree)})
        return result
