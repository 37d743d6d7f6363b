# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.path_mtu; documented in plugins/modules/path_mtu.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ansible_collections.rdma.cluster.plugins.module_utils._pairs.path_mtu import Probed
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.path_mtu import FOLDER, PLAN, rails_to_probe
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.action import RunAction


class ActionModule(RunAction):
    ARGUMENTS: ClassVar[Mapping[str, Any]] = {}

    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        plan = self.folder.read_if_there(PLAN) or {}
        planned = [rail for rail, hosts in plan.items() if self.host in hosts]
        if not planned:
            return {"rails": {}}
        rails = rails_to_probe(plan, self.host)
        done = self.module("path_mtu", rails=rails) if rails else {"rails": {}}
        if done.get("failed") or done.get("unreachable") or self._task.check_mode:
            return done
        alone = {rail: Probed(0).to_dict() for rail in planned}
        self.folder.write_json(self.folder.host_file(FOLDER, self.host), {**alone, **done["rails"]})
        return {"rails": done["rails"]}
