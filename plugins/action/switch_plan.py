# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.switch_plan; documented in plugins/modules/switch_plan.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.stored import plan_file
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.sheets.sheet import make_sheets
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.sheets.text import ports_csv, sheet_text
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.action import RunAction


class ActionModule(RunAction):
    _requires_connection = False

    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        intents, unread = self.play_intents()
        if unread:
            return {"failed": True, "msg": unread}
        try:
            sheets = make_sheets(intents, self.plan_text)
        except (ParseError, ValueError) as error:
            return {"failed": True, "msg": str(error)}
        stored = [
            str(self.folder.write(plan_file(name, suffix), text))
            for name, sheet in sheets.items()
            for suffix, text in ((".sheet.txt", sheet_text(sheet)), (".ports.csv", ports_csv(sheet)))
        ]
        if not sheets:
            return {
                "explained": "No switch is planned: no Ethernet plane has a cabling plan, and rdma_roce.switches is empty.",
                "stored": [],
            }
        words = "its ports, addresses, VLANs, neighbors and QoS"
        return {"explained": f"The sheet of each switch ({words}): switch-NAME.sheet.txt in plan/ of the run folder.", "stored": stored}
