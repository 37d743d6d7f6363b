# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.pair_results; documented in plugins/modules/pair_results.py."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from ansible_collections.rdma.cluster.plugins.plugin_utils._action import RunAction


class ActionModule(RunAction):
    ARGUMENTS: ClassVar[Mapping[str, Any]] = {"sweep": {"type": "str", "required": True}, "wait_seconds": {"type": "int", "required": True}}

    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        collected = self.module("perftest_rounds", state="collected", **options)
        records = collected.pop("results", [])
        lines = "".join(json.dumps(record, sort_keys=True) + "\n" for record in records)
        stored = self.folder.write(self.folder.host_file("pairs", self.host, ".jsonl"), lines)
        return {**collected, "records": len(records), "stored": str(stored)}
