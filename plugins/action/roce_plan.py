# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.roce_plan; documented in plugins/modules/roce_plan.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.cabling.equal_paths import forecast_text, planned_paths
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.stored import plan_file
from ansible_collections.rdma.cluster.plugins.plugin_utils._roce.plan import RocePlan, make_plan, plan_text
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.action import RunAction

FOLDER = "plan"


class ActionModule(RunAction):
    _requires_connection = False

    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        intents, unread = self.play_intents()
        if unread:
            return {"failed": True, "msg": unread}
        try:
            plan = make_plan(intents)
            queue_pairs = forecast_text(planned_paths(intents.values(), self.plan_text))
        except (ParseError, ValueError) as error:
            return {"failed": True, "msg": str(error)}
        text = "\n\n".join(part for part in (plan_text(plan), queue_pairs) if part)
        return {"explained": text, "stored": self._store(plan, text)}

    def _store(self, plan: RocePlan, text: str) -> list[str]:
        """Write the profiles, the printed text, and the file of each switch. Returns the paths."""
        profiles = [{"hosts": hosts, "profile": profile} for profile, hosts in plan.profiles]
        stored = [self.folder.write_json(f"{FOLDER}/roce.json", profiles), self.folder.write(f"{FOLDER}/roce.txt", text + "\n")]
        stored += [self.folder.write(plan_file(file.name, file.suffix), file.text) for file in plan.switches]
        return [str(path) for path in stored]
