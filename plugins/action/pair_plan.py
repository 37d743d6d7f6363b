# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.pair_plan; documented in plugins/modules/pair_plan.py."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.plugin_utils._action import RunAction
from ansible_collections.rdma.cluster.plugins.plugin_utils._pair_plan import make_plan, runtime_max_seconds
from ansible_collections.rdma.cluster.plugins.plugin_utils._run_folder import run_id


class ActionModule(RunAction):
    _requires_connection = False

    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        facts = {host: self.variables["hostvars"][host]["ansible_facts"] for host in self.variables["ansible_play_hosts"]}
        plan = make_plan(
            run_id(),
            {host: each["rdma_intent"] for host, each in facts.items()},
            {host: each["rdma"] for host, each in facts.items()},
        )
        self.folder.write_json("pairs/plan.json", plan)
        return {"plan": plan, "token": secrets.token_hex(32), "runtime_max_seconds": runtime_max_seconds(plan)}
