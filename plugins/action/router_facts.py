# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.router_facts: runs the module of this name and stores its answer for the gate of the fabric."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import OK
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.model import RoutedPlane
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.planes import host_interfaces, routed_planes
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.stored import routing_findings, stored_answer, stored_name
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.known import known_hosts
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.action import RunAction

LOOK_SECONDS = 1.0


class ActionModule(RunAction):
    ARGUMENTS: ClassVar[Mapping[str, Any]] = {"settle_seconds": {"type": "int", "default": 0}}

    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        deadline = time.monotonic() + options["settle_seconds"]
        while True:
            answer = self.module("router_facts")
            if answer.get("unreachable"):
                return answer
            stored = stored_answer(answer)
            path = self.folder.write_json(stored_name(self.host), stored)
            if time.monotonic() >= deadline or self._is_settled():
                return {"stored": [str(path)], "problem": stored["problem"]}
            time.sleep(LOOK_SECONDS)

    @cached_property
    def _planned(self) -> tuple[list[RoutedPlane], dict[str, Intent]]:
        """The routed planes and the intents of the run, which stay the same while the routers are read again and again."""
        known = known_hosts(self.folder, self.folder.stored_hosts("intent"))
        intents = {host: each.intent for host, each in known.items() if each.intent is not None}
        return routed_planes(intents, self.plan_text, host_interfaces(known)), intents

    def _is_settled(self) -> bool:
        """Return whether all of this router's planes were as planned when each router was last read. They are read side by side."""
        planes, intents = self._planned
        own = [plane for plane in planes if self.host in plane.speakers]
        return all(each.status == OK for plane in own for each in routing_findings(self.folder, plane, planes, intents))
