# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.observe; documented in plugins/modules/observe.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._facts import digest
from ansible_collections.rdma.cluster.plugins.plugin_utils._action import RunAction


class ActionModule(RunAction):
    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        read = self.module("rdma_facts")
        if read.get("failed") or read.get("unreachable"):
            return read
        tree = read["ansible_facts"]["rdma"]
        stored = self.folder.write_json(f"facts/{self.host}.json", tree)
        return {"stored": str(stored), "ansible_facts": {"rdma": digest(tree)}}
