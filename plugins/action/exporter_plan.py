# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.exporter_plan; documented in plugins/modules/exporter_plan.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.plugin_utils._report.exporter import ExporterError, exporter_config
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.action import RunAction


class ActionModule(RunAction):
    _requires_connection = False

    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        intent = self.intent
        family = ((self.all_facts.get("stack") or {}).get("distribution") or {}).get("family")
        try:
            config = exporter_config(self.folder, self.host, intent, family)
        except ExporterError as error:
            return {"failed": True, "msg": str(error)}
        wanted = intent["metrics"]
        return {
            "config": config.to_text(),
            "interval_seconds": wanted["interval_seconds"],
            "packages": [] if wanted["textfile_dir"] else ["prometheus-node-exporter"],
        }
