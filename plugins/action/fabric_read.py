# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.fabric_read; documented in plugins/modules/fabric_read.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.readings import (
    GRAPHS,
    LLDP,
    LOADED,
    MANAGERS,
    ethernet,
    folder_of,
    ports_of,
    reader,
    reading_of,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.evidence import SWEEP
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.action import RunAction


class ActionModule(RunAction):
    ARGUMENTS: ClassVar[Mapping[str, Any]] = {"what": {"type": "str", "required": True, "choices": [GRAPHS, MANAGERS, LOADED]}}

    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        what, facts, stored = options["what"], from_dict(self.all_facts), []
        if what == LOADED and self.folder.read_if_there(f"{SWEEP}/plan.json") is None:
            return {"stored": [], "msg": "This run measured nothing, so there was no load."}
        for plane, (device, port) in ports_of(self.intent, facts, what).items():
            if reader(self.folder, what, plane, self.variables["ansible_play_hosts"]) != self.host:
                continue
            asked = {"plane": plane, "device": device, "port": port, "graph": what != MANAGERS, "counters": ["errors", "data"]}
            answer = self.module("fabric_facts", **asked)
            if answer.get("unreachable"):
                return answer
            reading = reading_of(what, plane, self.host, answer)
            stored.append(self.folder.write_json(self.folder.host_file(folder_of(what, plane), self.host), reading.to_dict()))
        interfaces = sorted({str(rail.netdev) for rails in ethernet(self.intent, facts).values() for rail in rails})
        if what == GRAPHS and interfaces and not self._has(LLDP):
            answer = self.module("fabric_facts", source="lldp", name=self.host, interfaces=interfaces)
            if answer.get("unreachable"):
                return answer
            reading = reading_of(what, LLDP, self.host, answer)
            stored.append(self.folder.write_json(self.folder.host_file(LLDP, self.host), reading.to_dict()))
        return {"stored": [str(path) for path in stored]}

    def _has(self, folder: str) -> bool:
        return (self.folder.path / self.folder.host_file(folder, self.host)).exists()
