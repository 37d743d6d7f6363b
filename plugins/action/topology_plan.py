# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.topology_plan; documented in plugins/modules/topology_plan.py."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleError

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.problem import IntentError
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.action import RunAction
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.design import Candidate, Design
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.families.choose import NoPlanError, plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.numbers.report import decision_text
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.output.cabling import cable_plans
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.output.stored import read_design, to_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.output.table import comparison, plan_text
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.request import NAME, read_request
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.wishes import PlanRequest

FOLDER = "plan"
NO_REQUEST = (
    "rdma_plan is not set: there is no request for a plan. Write one, for example\n"
    "  rdma_plan: {hosts: 32, switch: {model: qm9700}}\n"
    "to a file, and pass it with `-e @FILE`."
)


class ActionModule(RunAction):
    _requires_connection = False

    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        self.folder.link_latest()
        if NAME not in self.variables:
            return {"explained": NO_REQUEST, "stored": []}
        try:
            request, file = read_request({NAME: self._templated(NAME, None)})
            candidates = plan(request, None if file is None else self._existing(file))
        except IntentError as error:
            words = "\n".join(f"  - {problem}" for problem in error.problems)
            return {"failed": True, "msg": f"The request cannot be planned:\n{words}", "problems": [str(each) for each in error.problems]}
        except ParseError as error:
            return {"failed": True, "msg": str(error)}
        except NoPlanError as error:
            table = "\n".join(comparison(error.candidates))
            return {"failed": True, "msg": f"{error}\n\n{table}", "problems": [str(error)]}
        return {"explained": _text(request, candidates), "stored": self._store(request, candidates)}

    def _existing(self, name: str) -> Design:
        """The design in a plan/topology.json on the control node. Raises ParseError."""
        try:
            return read_design(json.loads(Path(self.local_file(name)).read_text(encoding="utf-8")))
        except (AnsibleError, OSError, ValueError) as error:
            raise ParseError(f"rdma_plan.existing: {name} cannot be read: {' '.join(str(error).split())[:300]}") from error

    def _store(self, request: PlanRequest, candidates: Sequence[Candidate]) -> list[str]:
        """Write the comparison, the printed text, and the cable plan of each plane. Returns the paths."""
        design = next(candidate.design for candidate in candidates if candidate.chosen)
        stored = [
            self.folder.write_json(f"{FOLDER}/topology.json", to_dict(request, candidates)),
            self.folder.write(f"{FOLDER}/topology.txt", _text(request, candidates) + "\n"),
        ]
        if design is not None:
            plans = cable_plans(design)
            stored += [self.folder.write(f"{FOLDER}/cabling/{plane}.yml", text) for plane, text in plans.items()]
        return [str(path) for path in stored]


def _text(request: PlanRequest, candidates: Sequence[Candidate]) -> str:
    """The plan, and the comparison by prices and training if these are given."""
    return "\n\n".join(part for part in (plan_text(request, candidates), decision_text(request, candidates)) if part)
