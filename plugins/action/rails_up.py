# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.rails_up; documented in plugins/modules/rails_up.py."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, ClassVar

from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._plan.differences import states
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.action import RunAction

LOOK_SECONDS = 5.0


class ActionModule(RunAction):
    ARGUMENTS: ClassVar[Mapping[str, Any]] = {
        "rails": {"type": "list", "elements": "str"},
        "timeout_seconds": {"type": "int", "default": 0},
    }

    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        deadline = time.monotonic() + options["timeout_seconds"]
        wanted = options["rails"] or []
        while True:
            read = self.module("rdma_facts", gather_subset=["min"])
            if read.get("failed") or read.get("unreachable"):
                return {**read, "failed": True}
            seen = states(self.intent["rails"], from_dict(read["ansible_facts"]["rdma"]))
            up = [name for name, state in seen.items() if state == "ACTIVE"]
            missing = [name for name in wanted if name not in up]
            if not missing or self._task.check_mode:
                return {"up": up}
            if time.monotonic() >= deadline:
                return {"failed": True, "up": up, "msg": self._words(missing, seen, options["timeout_seconds"])}
            time.sleep(LOOK_SECONDS)

    def _words(self, missing: list[str], seen: Mapping[str, str], seconds: int) -> str:
        each = ", ".join(f"{name} ({seen.get(name, 'no longer planned')})" for name in missing)
        return f"{self.host}: these rails are not up after {seconds} s: {each}."
