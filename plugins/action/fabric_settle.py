# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.fabric_settle; documented in plugins/modules/fabric_settle.py."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, ClassVar

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import stopping
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.link.pkey import check_pkeys
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.action import RunAction
from ansible_collections.rdma.cluster.plugins.plugin_utils._subnet_manager.plan import managers_of, waiting

LOOK_SECONDS = 2.0


class ActionModule(RunAction):
    ARGUMENTS: ClassVar[Mapping[str, Any]] = {"timeout_seconds": {"type": "int", "default": 60}}

    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        changed = any(self._changed(host) for host in managers_of(self.intent))
        if self._task.check_mode or not (changed or waiting(self.intent, from_dict(self.all_facts))):
            return {"read": False}
        deadline = time.monotonic() + options["timeout_seconds"]
        while True:
            read = self.module("rdma_facts", gather_subset=["min"])
            if read.get("failed") or read.get("unreachable"):
                return read
            seen = from_dict(read["ansible_facts"]["rdma"])
            if not waiting(self.intent, seen) and not stopping(check_pkeys(self.host, self.intent, seen)):
                return {"read": True, "settled": True}
            if time.monotonic() >= deadline:
                return {"read": True, "settled": False}
            time.sleep(LOOK_SECONDS)

    def _changed(self, host: str) -> bool:
        """Whether the role subnet_manager has changed a host in this run."""
        result = self.variables["hostvars"].get(host, {}).get("__subnet_manager_result") or {}
        return bool(result.get("changed"))
