# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.fabric_discover; documented in plugins/modules/fabric_discover.py."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.graph import Graph
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.discover.inventory import inventory
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.draw.marks import bad_links
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.draw.svg import graphml, svg
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.entry import FactsError, admitted
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.keys import NAME, is_form
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.action import RunAction


class ActionModule(RunAction):
    _requires_connection = False
    ARGUMENTS: ClassVar[Mapping[str, Any]] = {
        "graphs": {"type": "list", "elements": "dict", "required": True},
        "planes": {"type": "list", "elements": "str"},
    }

    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        # The writers of files do not accept Ansible's own text types.
        plain, planes = json.loads(json.dumps([options["graphs"], options["planes"]]))
        if planes is not None and len(planes) != len(plain):
            return {
                "failed": True,
                "msg": f"planes has {len(planes)} names, but graphs has {len(plain)} graphs; expected one name for each graph.",
            }
        read = list(map(_graph, plain))
        refused = [each for each in read if isinstance(each, str)]
        if refused and (planes is None or len(refused) == len(read)):
            return {"failed": True, "msg": f"A host has returned no graph of a fabric: {refused[0]}"}
        # The graph comes from a host. The plane's name comes from the playbook.
        named = [_of_plane(each, None if planes is None else planes[index]) for index, each in enumerate(read)]
        graphs = sorted(named, key=lambda graph: graph.plane)
        if not graphs:
            return {"failed": True, "msg": "There is no fabric: no host has returned one. The link stage reports whether a port is up."}
        twice = sorted({one.plane for one, other in itertools.pairwise(graphs) if one.plane == other.plane})
        wrong = [graph.plane for graph in graphs if not is_form(NAME, graph.plane)]
        if wrong:
            # The plane's name becomes part of a file name.
            return {"failed": True, "msg": f"A plane cannot be called {quoted(wrong[0])}: expected {NAME.words}."}
        if twice:
            return {"failed": True, "msg": f"There is more than one graph of plane {', '.join(twice)}; give each plane once."}
        written = [self.folder.write_json("fabric.json", {"schema": 1, "planes": [graph.to_dict() for graph in graphs]})]
        bad = {}
        for graph in graphs:
            marked = bad_links(graph)
            bad[graph.plane] = len(marked)
            written.append(self.folder.write(f"fabric/{graph.plane}.graphml", graphml(graph, marked)))
            written.append(self.folder.write(f"fabric/{graph.plane}.svg", svg(graph, marked)))
        facts, strange = self._facts()
        written.append(self.folder.write("fabric/inventory.yml", inventory(graphs, facts)))
        problems = [*(f"{graph.plane}: {problem}" for graph in graphs for problem in graph.problems), *strange]
        return {"stored": [str(path) for path in written], "bad_links": bad, "problems": problems}

    def _facts(self) -> tuple[dict[str, Facts], list[str]]:
        """The facts that this run has read of the hosts of the play, and why the facts of other hosts are refused.

        rdma_facts has set them, or observe has checked and stored them.
        """
        found: dict[str, Facts] = {}
        refused = []
        for host in self.variables["ansible_play_hosts_all"]:
            try:
                stored = self.folder.read_if_there(self.folder.host_file("facts", host))
                facts = self._raw_facts(self.variables["hostvars"][host]).get("rdma")
                if stored is not None or facts is not None:
                    found[host] = from_dict(stored if stored is not None else admitted(json.loads(json.dumps(facts))))
            except (FactsError, ParseError) as error:
                refused.append(f"{host}: its facts are refused: {error}. It is missing in the proposed inventory.")
        return found, refused


def _graph(item: Any) -> Graph | str:
    """The graph that a host has returned, or why it is invalid."""
    try:
        return Graph.from_dict(item)
    except ParseError as error:
        return str(error)


def _of_plane(read: Graph | str, plane: str | None) -> Graph:
    """The graph with the name of its plane. A refused graph becomes an empty graph with the reason."""
    if isinstance(read, str):
        return Graph(str(plane), {}, [], "ibnetdiscover", False, [f"its reader's answer is refused: {read}"])
    return read if plane is None else replace(read, plane=plane)
