# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A fabric's graph as GraphML, which Gephi, yEd and networkx read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._fabric_graph import Graph
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric_marks import Ends, bad_links
from ansible_collections.rdma.cluster.plugins.plugin_utils._networkx import nx

NODE = ("kind", "name", "description", "device", "system_guid", "vendor_id", "device_id", "lid")


def graphml(graph: Graph, bad: Mapping[Ends, str] | None = None) -> str:
    """The text, the same for the same fabric: nodes by GUID, links with the port at each end, width, speed and rate_gbps.

    What is not known is left out; bad links have what is wrong with them as "bad", those of bad_links unless given.
    """
    marked = bad_links(graph) if bad is None else bad
    made: nx.MultiGraph[str] = nx.MultiGraph(plane=graph.plane, source=graph.source, complete=graph.complete)
    for guid, node in sorted(graph.nodes.items()):
        made.add_node(guid, **_known({name: getattr(node, name) for name in NODE}))
    for link in sorted(graph.links, key=lambda each: (each.a, each.b)):
        (one, port), (other, other_port) = link.a, link.b
        words = {"width": link.width, "speed": link.speed, "rate_gbps": link.rate_gbps, "bad": marked.get((link.a, link.b))}
        ports = {"source_port": port, "target_port": other_port}
        made.add_edge(one, other, key=f"{one}/{port}", **ports, **_known(words))
    return "\n".join(nx.generate_graphml(made)) + "\n"


def _known(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in attributes.items() if value is not None}
