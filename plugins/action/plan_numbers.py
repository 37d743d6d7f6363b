# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.plan_numbers; documented in plugins/modules/plan_numbers.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.problem import IntentError
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.read import read_variable
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.topology import PLAN
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.action import RunAction
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.numbers.report import KINDS, report
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.request import NAME

FOLDER = "plan"
NO_REQUEST = (
    "rdma_plan is not set: there is nothing to compute. Write a request, for example\n"
    "  rdma_plan: {hosts: 32, training: {parameters_billions: 7}, uplink: {workload: text}}\n"
    "to a file, and pass it with `-e @FILE`."
)


class ActionModule(RunAction):
    _requires_connection = False
    ARGUMENTS: ClassVar[Mapping[str, Any]] = {"kind": {"type": "str", "required": True, "choices": list(KINDS)}}

    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        self.folder.link_latest()
        if NAME not in self.variables:
            return {"explained": NO_REQUEST, "stored": []}
        kind = options["kind"]
        try:
            text, values = report(kind, read_variable({NAME: self._templated(NAME, None)}, NAME, PLAN))
        except IntentError as error:
            message = str(IntentError(error.problems, "The request cannot be used"))
            return {"failed": True, "msg": message, "problems": [str(each) for each in error.problems]}
        except ValueError as error:
            return {"failed": True, "msg": f"{error}.", "problems": [str(error)]}
        stored = [self.folder.write_json(f"{FOLDER}/{kind}.json", values), self.folder.write(f"{FOLDER}/{kind}.txt", text + "\n")]
        return {"explained": text, "stored": [str(path) for path in stored]}
