# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Parts of the report on the fabric: each cable has its own name, and a cable that a finding names is red."""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html.parts import cables, drawings, leaves
from tests.unit.builders.small_fabrics import fabric


def test_each_cable_has_its_own_name() -> None:
    graph = fabric(6)
    assert len(cables([graph])) == len(graph.links)


def test_each_host_node_has_a_leaf() -> None:
    graph = fabric(6)
    names = {node.name for node in graph.nodes.values() if node.kind == "switch"}
    found = leaves([graph])
    assert found
    assert set(found.values()) <= names


def test_a_cable_that_a_finding_names_is_bad() -> None:
    graph = fabric(6)
    description = next(node.description for node in graph.nodes.values() if node.kind != "switch")
    finding = Finding("fabric", "fabric.cabling", "node1", "node1", "error", f"swapped: {description} is on leaf2", "as planned")
    [before], [after] = drawings([graph]), drawings([graph], [finding])
    assert {fault for _link, fault in after.bad} - {fault for _link, fault in before.bad} == {"fabric.cabling: node1"}
