# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.routing_plan; documented in plugins/modules/routing_plan.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.model import RoutedPlane, RoutingError
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.planes import plan_text, routed_planes
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.render import router_files
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.stored import plan_file
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.action import RunAction


class ActionModule(RunAction):
    _requires_connection = False

    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        intents, unread = self.play_intents()
        if unread:
            return {"failed": True, "msg": unread}
        try:
            planes = routed_planes(intents, self.plan_text)
        except (RoutingError, ParseError) as error:
            return {"failed": True, "msg": str(error)}
        return {"explained": plan_text(planes), "stored": [path for plane in planes for path in self._store(plane)]}

    def _store(self, plane: RoutedPlane) -> list[str]:
        """Write the files of each switch. Returns the paths."""
        return [
            str(self.folder.write(plan_file(name, suffix), text))
            for name, router in plane.routers.items()
            for suffix, text in router_files(plane, router).items()
        ]
