# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.pair_results; documented in plugins/modules/pair_results.py."""

from __future__ import annotations

import json
from typing import Any

from ansible.plugins.action import ActionBase

from ansible_collections.rdma.cluster.plugins.plugin_utils._run_folder import RunFolder


class ActionModule(ActionBase):
    TRANSFERS_FILES = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        variables = task_vars or {}
        _validation, options = self.validate_argument_spec(
            {"sweep": {"type": "str", "required": True}, "wait_seconds": {"type": "int", "required": True}}
        )
        collected = self._execute_module(
            module_name="rdma.cluster.perftest_rounds",
            module_args={"state": "collected", "sweep": options["sweep"], "wait_seconds": options["wait_seconds"]},
            task_vars=variables,
        )
        records = collected.pop("results", [])
        host = variables["inventory_hostname"]
        lines = "".join(json.dumps(record, sort_keys=True) + "\n" for record in records)
        stored = RunFolder.current(variables).write(f"pairs/{host}.jsonl", lines)
        return {**result, **collected, "records": len(records), "stored": str(stored)}
