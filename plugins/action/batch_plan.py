# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.batch_plan; documented in plugins/modules/batch_plan.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._plan.differences import live_rails
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.action import RunAction

#: The folder of notes on hosts that had no live rail when this run first changed them. Rails that the run itself has set up do not count.
NEW = "batches"


class ActionModule(RunAction):
    _requires_connection = False
    ARGUMENTS: ClassVar[Mapping[str, Any]] = {
        "group": {"type": "str", "required": True},
        "always": {"type": "bool", "default": False},
    }

    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        noted = self.folder.host_file(NEW, self.host)
        is_new = (self.folder.read_if_there(noted) or {}).get("new") is True
        why = "" if is_new else live_rails(self.intent, from_dict(self.all_facts))
        self.folder.write_json(noted, {"new": not why})
        waits = (options["always"] or bool(why)) and not self._task.check_mode
        return {
            "live": bool(why),
            "waits": waits,
            "msg": f"{self.host}: {f'live, changed in a batch: {why}' if why else 'no live rail, changed with the others'}",
            # Ansible reports a change if a host is added to a group.
            **({"add_group": options["group"], "parent_groups": []} if waits else {}),
        }
