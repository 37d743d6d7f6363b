# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.pair_plan; documented in plugins/modules/pair_plan.py."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any, ClassVar

from ansible.module_utils.parsing.convert_bool import boolean

from ansible_collections.rdma.cluster.plugins.module_utils._load import busy_words
from ansible_collections.rdma.cluster.plugins.plugin_utils._action import RunAction
from ansible_collections.rdma.cluster.plugins.plugin_utils._gate import known_hosts
from ansible_collections.rdma.cluster.plugins.plugin_utils._pair_plan import make_plan, runtime_max_seconds
from ansible_collections.rdma.cluster.plugins.plugin_utils._run_folder import run_id


class ActionModule(RunAction):
    _requires_connection = False
    ARGUMENTS: ClassVar[Mapping[str, Any]] = {"hosts": {"type": "list", "elements": "str", "required": True}}

    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        known = {host: each for host, each in known_hosts(self.folder, "pairs").items() if host in options["hosts"] and each["facts"]}
        blocked = {host: words for host, each in known.items() if (words := busy_words(each["facts"]["load"])) and not self._allowed(host)}
        self.folder.write_json("pairs/blocked.json", blocked)
        free = {host: each for host, each in known.items() if host not in blocked and host in self.variables["ansible_play_hosts"]}
        if len(free) < 2:
            return {"hosts": [], "blocked": blocked, "msg": f"Fewer than two hosts may be measured; at work: {blocked or 'none'}."}
        plan = make_plan(
            run_id(), {host: each["intent"] for host, each in free.items()}, {host: each["facts"] for host, each in free.items()}
        )
        self.folder.write_json("pairs/plan.json", plan)
        return {
            "hosts": plan["hosts"],
            "blocked": blocked,
            "plan": plan,
            "token": secrets.token_hex(32),
            "runtime_max_seconds": runtime_max_seconds(plan),
        }

    def _allowed(self, host: str) -> bool:
        """Whether this host may be measured while it is at work."""
        return bool(boolean(self.variables["hostvars"][host].get("rdma_load_allowed", False)))
