# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.mesh_plan; documented in plugins/modules/mesh_plan.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import nic_label
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.problem import IntentError
from ansible_collections.rdma.cluster.plugins.plugin_utils._mesh.answers import read_answers
from ansible_collections.rdma.cluster.plugins.plugin_utils._mesh.given import SECTIONS, Given, read_given
from ansible_collections.rdma.cluster.plugins.plugin_utils._mesh.plan import PoolError
from ansible_collections.rdma.cluster.plugins.plugin_utils._mesh.proposal import Proposal, propose
from ansible_collections.rdma.cluster.plugins.plugin_utils._mesh.sight import sights
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.action import RunAction
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.forged import nothing_done
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.own_names import own_names

FOLDER = "plan"
NO_MESH = "No host of the play has rdma_fabric.mesh: there is no mesh to plan."


class ActionModule(RunAction):
    _requires_connection = False

    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        self.folder.link_latest()
        hostvars, hosts = self.variables["hostvars"], self.variables["ansible_play_hosts"]
        for host in hosts:
            if forged := own_names(self._raw_facts(hostvars[host])):
                return {"failed": True, "msg": nothing_done(host, forged)}
        given_variables = {host: {name: hostvars[host][name] for name in SECTIONS if name in hostvars[host]} for host in hosts}
        try:
            given = read_given(given_variables, self.variables["groups"]["all"])
            if given is None:
                return {"explained": NO_MESH, "stored": []}
            proposal = self._propose(given)
        except IntentError as error:
            return {"failed": True, "msg": str(error), "problems": [str(problem) for problem in error.problems]}
        except PoolError as error:
            return {"failed": True, "msg": f"rdma_fabric.mesh.pool: {error}"}
        return {"explained": proposal.text, "stored": self._store(proposal)}

    def _propose(self, given: Given) -> Proposal:
        """The proposal for the given cables, or for those that link_peers has found in this run."""
        if given.cables is not None:
            return propose(given, given.cables, {})
        named = {host: [nic_label(rail["nic"]) for rail in rails] for host, rails in given.rails.items()}
        seen = sights(read_answers(self.folder, given.rails), named)
        return propose(given, seen.cables, seen.without_cable, seen.notes)

    def _store(self, proposal: Proposal) -> list[str]:
        """Write the inventory, the difference, the printed text and the cables. Returns the paths."""
        cables = [
            {
                "name": each.name,
                "ends": [str(end) for end in each.ends],
                "subnet": str(each.network),
                "addresses": list(each.addresses),
                "kept": each.kept,
            }
            for each in proposal.cables
        ]
        stored = [
            self.folder.write(f"{FOLDER}/mesh.yml", proposal.inventory),
            self.folder.write(f"{FOLDER}/mesh.diff", proposal.difference),
            self.folder.write(f"{FOLDER}/mesh.txt", proposal.text + "\n"),
            self.folder.write_json(f"{FOLDER}/mesh.json", {"shape": proposal.shape.kind, "cables": cables}),
        ]
        return [str(path) for path in stored]
