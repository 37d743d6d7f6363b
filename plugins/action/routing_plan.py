# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.routing_plan; documented in plugins/modules/routing_plan.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.hosts import Interfaces
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.model import RoutedPlane, RoutingError
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.planes import host_interfaces, plan_text, routed_planes
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.render import host_files, router_files
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.stored import host_plan_file, plan_file
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.known import known_hosts
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.action import RunAction


class ActionModule(RunAction):
    _requires_connection = False

    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        intents, unread = self.play_intents()
        if unread:
            return {"failed": True, "msg": unread}
        known = known_hosts(self.folder, intents)
        interfaces = host_interfaces(known)
        try:
            planes = routed_planes(intents, self.plan_text, interfaces)
        except (RoutingError, ParseError) as error:
            return {"failed": True, "msg": str(error)}
        paths = [path for plane in planes for path in self._store(plane)]
        return {"explained": plan_text(planes), "stored": [*paths, *self._store_hosts(planes, interfaces)]}

    def _store(self, plane: RoutedPlane) -> list[str]:
        """Write the files of each switch. Returns the paths."""
        return [
            str(self.folder.write(plan_file(name, suffix), text))
            for name, router in plane.routers.items()
            for suffix, text in router_files(plane, router).items()
        ]

    def _store_hosts(self, planes: Sequence[RoutedPlane], interfaces: Interfaces) -> list[str]:
        """Write the files of each host that speaks BGP and whose interfaces are known in this run. Returns the paths."""
        hosts = dict.fromkeys(host for plane in planes for host in plane.hosts)
        rails = {host: [port.device for plane in planes if host in plane.hosts for port in plane.hosts[host].host_ports] for host in hosts}
        known = [host for host in hosts if all((host, rail) in interfaces for rail in rails[host])]
        return [
            str(self.folder.write(host_plan_file(host, suffix), text))
            for host in known
            for suffix, text in host_files(planes, host).items()
        ]
