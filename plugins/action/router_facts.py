# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.router_facts: runs the module of this name and stores its answer for the gate of the fabric."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.stored import stored_answer, stored_name
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.action import RunAction


class ActionModule(RunAction):
    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        answer = self.module("router_facts")
        if answer.get("unreachable"):
            return answer
        stored = stored_answer(answer)
        path = self.folder.write_json(stored_name(self.host), stored)
        return {"stored": [str(path)], "problem": stored["problem"]}
