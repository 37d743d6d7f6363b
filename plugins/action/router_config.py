# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.router_config: runs the module of this name with the plan of the run folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ansible_collections.rdma.cluster.plugins.module_utils._host.load import busy_words
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.stored import planned_texts, vendor_files
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.known import known_hosts
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.action import RunAction


class ActionModule(RunAction):
    ARGUMENTS: ClassVar[Mapping[str, Any]] = {"replace_allowed": {"type": "bool", "default": False}}

    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        plan, vendor = planned_texts(self.folder, self.host), vendor_files(self.folder, self.host)
        if plan is None and vendor:
            # The switch is read by the tasks that follow, and never written.
            msg = f"{self.host} does not have `syntax: frr`: your network team applies {' and '.join(vendor)} of the run folder"
            return {"changed": False, "changes": [], "refused": "", "installed": True, "msg": msg}
        if plan is None:
            return {
                "failed": True,
                "msg": f"This run has no plan for {self.host}. Its name must be that of a switch in the cabling plan of a plane with "
                "`routing`, or of a host there with `hosts_peer` whose rails were found. Call rdma.cluster.routing_plan before.",
            }
        return self.module("router_config", **plan, busy=self._busy(), replace_allowed=options["replace_allowed"])

    def _busy(self) -> list[str]:
        """Return the hosts in use, in words. A host whose facts were not read in this run counts as in use."""
        known = known_hosts(self.folder, self.folder.stored_hosts("intent"))
        loads = {host: each.facts.load if each.facts is not None else None for host, each in known.items()}
        words = {host: busy_words(load) for host, load in loads.items()}
        return [f"{host}: {each}" for host, each in words.items() if each]
