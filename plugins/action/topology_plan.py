# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.topology_plan; documented in plugins/modules/topology_plan.py."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleError

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.problem import IntentError
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.action import RunAction
from ansible_collections.rdma.cluster.plugins.plugin_utils._scheduler.proven import StoredPlane, no_graph, stored_planes
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.design import Candidate
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.families.choose import NoPlanError, plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.output.files import files_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.output.found import (
    FoundPlane,
    difference,
    found_page,
    found_plane,
    found_text,
    wishes_of,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.output.growth import growth_csv, refusal
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.output.page import html, markdown
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.output.stored import Existing, read_existing
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.output.table import comparison
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.request import NAME, read_request
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.wishes import PlanRequest

FOLDER = "plan"
STORED = f"{FOLDER}/topology.json"
#: The value of rdma_plan.existing for the newest earlier plan.
LATEST = "latest"
FROM_FABRIC = "from_fabric"
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
        given = self._templated(NAME, None)
        try:
            if isinstance(given, Mapping) and given.get(FROM_FABRIC) is True:
                return self._from_fabric({key: value for key, value in given.items() if key != FROM_FABRIC})
            request, file = read_request({NAME: given})
            existing, source = (None, "") if file is None else self._existing(file, request)
            return self._plan(request, existing, source)
        except IntentError as error:
            message = str(IntentError(error.problems, "The request cannot be planned"))
            return {"failed": True, "msg": message, "problems": [str(each) for each in error.problems]}
        except ParseError as error:
            return {"failed": True, "msg": str(error)}

    def _plan(self, request: PlanRequest, existing: Existing | None, source: str) -> dict[str, Any]:
        """Plan the request, and write its files. source: the file or the run of the existing fabric."""
        try:
            candidates = plan(request, None if existing is None else existing.design)
        except NoPlanError as error:
            words, stored = str(error), []
            if existing is not None:
                words, would = refusal(request, existing.design)
                if would is not None:
                    stored = [str(self.folder.write(f"{FOLDER}/growth.csv", growth_csv(would, request)))]
            table = "\n".join(comparison(error.candidates))
            return {"failed": True, "msg": f"{words}\n\n{table}", "problems": [words], "stored": stored}
        written = files_of(request, candidates, existing, source)
        stored = [str(self.folder.write(f"{FOLDER}/{name}", text)) for name, text in written.files.items()]
        return {"explained": written.text, "stored": stored}

    def _existing(self, name: str, request: PlanRequest) -> tuple[Existing, str]:
        """The existing fabric, and the file or the run that it is from. Raises ParseError."""
        if name == LATEST:
            found = self.folder.earlier(STORED, read_existing)
            if found is None:
                raise ParseError(f"rdma_plan.existing is {LATEST}, and no earlier run beside {self.folder.path} has planned a fabric")
            run, existing = found
            source = f"run {run}"
        else:
            try:
                existing = read_existing(json.loads(Path(self.local_file(name)).read_text(encoding="utf-8")))
            except (AnsibleError, OSError, ValueError, RecursionError) as error:
                raise ParseError(f"rdma_plan.existing: {name} cannot be read: {' '.join(str(error).split())[:300]}") from error
            source = name
        if (before := len(existing.design.hosts)) > request.hosts:
            raise ParseError(
                f"rdma_plan.hosts is {request.hosts}, and the existing fabric has {before}: {before - request.hosts} too few. Write at "
                f"least {before}."
            )
        return existing, source

    def _from_fabric(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Compare the stored fabrics with the best plan for their hardware. Raises ParseError, IntentError."""
        graphs = self._graphs()
        if not graphs:
            return {"failed": True, "msg": no_graph("of a fabric")}
        found: dict[str, tuple[FoundPlane, list[str], str]] = {}
        for name, stored in graphs.items():
            plane = found_plane(stored.view)
            best, why_not = _best(plane, given)
            found[name] = plane, difference(plane, best, why_not), stored.run
        text, page = found_text(found), found_page(found)
        files = {"found.txt": f"{text}\n", "found.md": markdown(page), "found.html": html(page)}
        return {"explained": text, "stored": [str(self.folder.write(f"{FOLDER}/{name}", each)) for name, each in files.items()]}

    def _graphs(self) -> dict[str, StoredPlane]:
        """The newest complete graph of each plane of all runs, by name."""
        runs = [self.folder, *self.folder.earlier_runs()]
        names = {path.parent.name for run in runs for path in run.path.glob("fabric/*/graph.json")}
        return stored_planes(self.folder, sorted(names), {})


def _best(plane: FoundPlane, given: Mapping[str, Any]) -> tuple[Candidate | None, str]:
    """The best plan for the hardware of a plane, and why there is none."""
    try:
        request, _file = read_request({NAME: wishes_of(plane, given)})
        return next(candidate for candidate in plan(request) if candidate.chosen), ""
    except (NoPlanError, ParseError) as error:
        return None, str(error)
