# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.driver_plan; documented in plugins/modules/driver_plan.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ansible_collections.rdma.cluster.plugins.plugin_utils._action import RunAction
from ansible_collections.rdma.cluster.plugins.plugin_utils._driver_plan import plan


class ActionModule(RunAction):
    _requires_connection = False
    ARGUMENTS: ClassVar[Mapping[str, Any]] = {
        "reload_allowed": {"type": "bool", "default": False},
        "reboot_allowed": {"type": "bool", "default": False},
        "group": {"type": "str"},
    }

    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        decided = plan(self.intent, self.all_facts, reboot_allowed=options["reboot_allowed"])
        if decided["refused"] is None:
            return {"plan": decided, "msg": f"{self.host}: {decided['change']}. {decided['why']}", **self._group(decided, options)}
        return {"plan": decided, "failed": not self._task.check_mode, "msg": f"{self.host}: refused. {decided['refused']}"}

    def _group(self, decided: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
        """The group that a host joins which has to be started again, and may be; Ansible reports that as a change."""
        reload = decided["reload"]["needed"] and decided["reload"]["live"] and options["reload_allowed"]
        reboot = decided["reboot"]["needed"] and options["reboot_allowed"]
        return {"add_group": options["group"], "parent_groups": []} if options["group"] and (reload or reboot) else {}
