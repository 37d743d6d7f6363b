# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.link_peers; documented in plugins/modules/link_peers.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import nic_label
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.problem import IntentError
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.read import read_sections
from ansible_collections.rdma.cluster.plugins.plugin_utils._mesh.answers import FOLDER, answer_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.action import RunAction


class ActionModule(RunAction):
    ARGUMENTS: ClassVar[Mapping[str, Any]] = {}

    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        try:
            rails = self._rails()
        except IntentError as error:
            return {"failed": True, "msg": str(error), "problems": [str(problem) for problem in error.problems]}
        nics = [nic_label(rail["nic"]) for rail in rails if rail["link_layer"] == "roce" and "guid" not in rail["nic"]]
        if not nics:
            return {"stored": []}
        result = self.module("link_peers", nics=nics)
        if result.get("unreachable"):
            return result
        answer = answer_of(self.host, result)
        return {"stored": [str(self.folder.write_json(self.folder.host_file(FOLDER, self.host), answer.to_dict()))]}

    def _rails(self) -> list[Mapping[str, Any]]:
        """The rails of the intent of this run; before a plan, those of the inventory, which need no address."""
        intent = self.intent_of(self.host)
        if intent is not None:
            return list(intent["rails"])
        given = self._templar.template(self.variables.get("rdma_rails"))
        rails: list[Mapping[str, Any]] = read_sections({"rdma_rails": given}, ["rdma_rails"])["rdma_rails"]
        return rails
