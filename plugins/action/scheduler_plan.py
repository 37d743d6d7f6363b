# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.scheduler_plan; documented in plugins/modules/scheduler_plan.py."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.plugin_utils._run.action import RunAction
from ansible_collections.rdma.cluster.plugins.plugin_utils._scheduler.plan import (
    difference,
    plan_text,
    scheduler_plan,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._scheduler.proven import (
    SchedulerError,
    compute_planes,
    known_of_runs,
    stored_planes,
    unproven,
)

FOLDER = "plan/scheduler"
TREE = f"{FOLDER}/tree.json"


class ActionModule(RunAction):
    _requires_connection = False

    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        intents, unread = self.play_intents()
        if unread:
            return {"failed": True, "msg": unread}
        known = known_of_runs(self.folder, intents)
        planes = stored_planes(self.folder, compute_planes(intents.values()), known)
        why_not = unproven(self.folder, known, time.time(), self.proof_max_age_hours)
        last: tuple[str, dict[str, Any]] | None = self.folder.earlier(TREE)
        try:
            plan = scheduler_plan(intents, planes, why_not, last[1] if last is not None else {})
        except SchedulerError as error:
            return {"failed": True, "msg": str(error)}
        changed = difference(plan.files, self._texts(last[0], plan.files)) if last is not None else ""
        text = plan_text(plan, len(intents), last[0] if last is not None else None, changed)
        written = {**plan.files, "scheduler.txt": f"{text}\n", "scheduler.diff": changed}
        stored = [self.folder.write(f"{FOLDER}/{name}", content) for name, content in written.items()]
        stored.append(self.folder.write_json(TREE, plan.to_dict()))
        return {"explained": text, "stored": [str(path) for path in stored], "left_out": dict(plan.left_out)}

    def _texts(self, run: str, names: Mapping[str, str]) -> dict[str, str]:
        """The files of an earlier run."""
        files = {name: self.folder.path.parent / run / FOLDER / name for name in names}
        return {name: file.read_text(encoding="utf-8") for name, file in files.items() if file.exists()}
