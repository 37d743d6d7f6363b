# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.explain; documented in plugins/modules/explain.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ansible_collections.rdma.cluster.plugins.plugin_utils._explain.explain import explain
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.entry import EXPECTED, FactsError, admitted
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.action import RunAction


class ActionModule(RunAction):
    ARGUMENTS: ClassVar[Mapping[str, Any]] = {"problems": {"type": "list", "elements": "str", "default": []}}

    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        failure = self._read_once()
        if failure is not None:
            return failure
        problems = options["problems"]
        intent = None if problems else self.intent_of(self.host)
        text = explain(self.host, intent, self.all_facts, problems)
        stored = self.folder.write(self.folder.host_file("explain", self.host, ".txt"), text + "\n")
        return {"explained": text, "stored": str(stored)}

    def _read_once(self) -> dict[str, Any] | None:
        """Read the host unless this run has read it: observe does not read a host with a bad intent. Returns a failure or None."""
        file = self.folder.host_file("facts", self.host)
        if self.folder.read_if_there(file) is not None:
            return None
        read = self.module("rdma_facts")
        if read.get("failed") or read.get("unreachable"):
            return read
        try:
            tree = admitted((read.get("ansible_facts") or {}).get("rdma"))
        except FactsError as error:
            return {"failed": True, "msg": f"{self.host}: its facts are refused: {error}. Expected {EXPECTED}."}
        self.folder.write_json(file, tree)
        return None
