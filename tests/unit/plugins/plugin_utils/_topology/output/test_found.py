# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A found fabric against the best plan for its hardware: figures by hand, failures against the graph without the part, hostile names."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.graph import Graph, Port
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.view import View
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.families.choose import plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.output.found import (
    FoundPlane,
    difference,
    found_page,
    found_plane,
    found_text,
    wishes_of,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.output.page import html, markdown
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.request import read_request
from tests.unit.builders.fabrics import leafspine


def graph(free: int = 0, **shape: int) -> Graph:
    """A fabric whose switches also have so many free ports."""
    found = leafspine(**{"leaves": 2, "spines": 2, **shape}).graph()
    for node in found.nodes.values():
        if node.kind == "switch":
            last = max(node.ports)
            node.ports.update({number: Port(number) for number in range(last + 1, last + free + 1)})
    return found


def lines(plane: FoundPlane) -> list[str]:
    request, _file = read_request({"rdma_plan": wishes_of(plane, {})})
    return difference(plane, next(candidate for candidate in plan(request) if candidate.chosen))


def test_the_figures_of_an_oversubscribed_fabric() -> None:
    plane = found_plane(View(graph(free=2)))
    # 8 hosts of 400 Gb/s below each leaf, and 4 uplinks of 400.
    assert (plane.hosts, plane.ports_per_host, plane.port_gbps, plane.switch_ports) == (16, 1, 400, 14)
    assert (plane.gbps, plane.share, plane.ratio, plane.imbalance) == (1600, 0.5, (2, 2), 1)
    # Two more cables of 400 Gb/s from each leaf.
    assert plane.more == (2, 2400)
    assert plane.single == ("leaf1", "leaf2")
    found = lines(plane)
    assert "one more spine with 2 cables to each leaf: bisection 2,400 Gb/s, 800 Gb/s more" in found
    assert "differs: oversubscription of a leaf 2:1, planned 1:1" in found
    assert "differs: half of the hosts send 50% of their rate to the other half, planned 100%" in found


def test_a_fabric_as_planned_differs_in_nothing() -> None:
    plane = found_plane(View(graph(leaves=4, spines=2, hosts_per_leaf=4, cables=2)))
    assert (plane.switch_ports, plane.share) == (8, 1.0)
    assert lines(plane)[-1] == "it differs in nothing that is compared"


def test_uneven_cables_are_named() -> None:
    whole = graph(leaves=4, spines=2, hosts_per_leaf=4, cables=2)
    names = {guid: node.name for guid, node in whole.nodes.items()}
    cut = next(link for link in whole.links if {names[link.a[0]], names[link.b[0]]} == {"leaf1", "spine1"})
    plane = found_plane(View(replace(whole, links=[link for link in whole.links if link != cut])))
    assert plane.imbalance == 2
    assert "differs: unequal links between leaves and spines, planned equal" in lines(plane)


@pytest.mark.parametrize("part", ["spine1", "leaf1 to spine2, one cable"])
def test_a_failure_is_the_fabric_without_the_part(part: str) -> None:
    whole = graph(leaves=4, spines=2, hosts_per_leaf=4, cables=2)
    (cut,) = [each for each in found_plane(View(whole)).cuts if each.part == part]
    names = {guid: node.name for guid, node in whole.nodes.items()}
    ends = set(part.removesuffix(", one cable").split(" to "))
    gone = [link for link in whole.links if ends <= {names[link.a[0]], names[link.b[0]]}]
    left = replace(whole, links=[link for link in whole.links if link not in (gone[:1] if "cable" in part else gone)])
    after = found_plane(View(left))
    assert (cut.gbps, cut.hosts_cut) == (after.gbps, 0)
    assert after.gbps is not None
    assert after.gbps < 3200


def test_a_graph_that_is_not_whole_is_refused() -> None:
    with pytest.raises(ParseError, match="not complete, or has no switch"):
        found_plane(View(replace(graph(), complete=False)))


def test_names_of_a_fabric_are_text_in_every_form() -> None:
    made = graph()
    hostile = "<script>alert(1)</script>|`x`"
    made.nodes.update({guid: replace(node, name=hostile) for guid, node in made.nodes.items() if node.name == "leaf1"})
    plane = found_plane(View(made))
    found = {"default": (plane, difference(plane, None, "no plan"), "run")}
    assert hostile in found_text(found)
    page, text = html(found_page(found)), markdown(found_page(found))
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "<script>" not in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {line.replace("\\|", "").count("|") for line in rows} == {8}
