# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.pair_plan; documented in plugins/modules/pair_plan.py."""

from __future__ import annotations

import secrets
from typing import Any

from ansible.plugins.action import ActionBase

from ansible_collections.rdma.cluster.plugins.plugin_utils._pair_plan import make_plan, runtime_max_seconds
from ansible_collections.rdma.cluster.plugins.plugin_utils._run_folder import RunFolder, run_id


class ActionModule(ActionBase):
    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        variables = task_vars or {}
        self.validate_argument_spec({})
        facts = {host: variables["hostvars"][host]["ansible_facts"] for host in variables["ansible_play_hosts"]}
        plan = make_plan(
            run_id(),
            {host: each["rdma_intent"] for host, each in facts.items()},
            {host: each["rdma"] for host, each in facts.items()},
        )
        RunFolder.current(variables).write_json("pairs/plan.json", plan)
        result.update(changed=False, plan=plan, token=secrets.token_hex(32), runtime_max_seconds=runtime_max_seconds(plan))
        return result
