# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tiers, bisection, and the HCAs that hosts plan."""

from __future__ import annotations

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.expected import expected_hcas
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.shape.bisection import _min_cut, bisection
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.shape.repaired import shape
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.view import Expected, View
from tests.unit.builders.fabrics import Fabric, leafspine, rail
from tests.unit.builders.known import known_of


def three_tiers(pods: int = 2) -> Fabric:
    """Pods of two leaves and two spines; spine N of each pod is joined to core N by two cables."""
    fabric = Fabric()
    for core in (1, 2):
        fabric.node(f"core{core}", "switch")
    for pod in range(pods):
        for number in (1, 2):
            leaf, spine = f"leaf{2 * pod + number}", f"spine{2 * pod + number}"
            fabric.node(leaf, "switch")
            fabric.node(spine, "switch")
            for host in (1, 2, 3, 4):
                name = f"node{8 * pod + 4 * number + host - 4} mlx5_0"
                fabric.node(name, "host")
                fabric.join((name, 1), (leaf, host))
            for cable in (1, 2, 3, 4):
                fabric.join((spine, 4 + cable), (f"core{number}", 4 * pod + cable))
        for leaf in (1, 2):
            for spine in (1, 2):
                for cable in (1, 2):
                    fabric.join((f"leaf{2 * pod + leaf}", 2 * spine + 2 + cable), (f"spine{2 * pod + spine}", 2 * leaf - 2 + cable))
    return fabric


def tiers(fabric: Fabric, planned: dict[str, str] | None = None) -> dict[str, str]:
    view = View(fabric.graph(), planned_tiers={fabric.guid(name): tier for name, tier in (planned or {}).items()})
    return {view.name(guid): tier for guid, tier in view.tiers.items()}


@pytest.mark.parametrize("fabric", [leafspine(), rail(), three_tiers()], ids=["leafspine", "rail", "three"])
def test_tiers_are_reported_by_hops_from_hosts(fabric: Fabric) -> None:
    found = tiers(fabric)
    assert found == {name: name.rstrip("0123456789") for name, its in fabric.nodes.items() if its["kind"] == "switch"}


def test_a_spine_with_a_host_is_a_spine() -> None:
    fabric = leafspine()
    fabric.node("manager mlx5_0", "host")
    fabric.join(("manager mlx5_0", 1), ("spine1", 60))
    assert tiers(fabric)["spine1"] == "spine"


def test_a_leaf_that_has_lost_its_hosts_is_a_leaf() -> None:
    fabric = leafspine()
    for number in range(1, 9):
        fabric.remove(f"node{number} mlx5_0")
    assert tiers(fabric)["leaf1"] == "leaf"


def test_the_tier_of_the_plan_wins() -> None:
    assert tiers(leafspine(), {"spine2": "core"})["spine2"] == "core"


def test_bisection_of_two_tiers_in_closed_form_is_the_least_cut() -> None:
    for fabric, gbps in ((leafspine(), 6400.0), (rail(spines=2), 6400.0), (rail(), 12800.0)):
        its = shape(View(fabric.graph()))
        found = bisection(its)
        assert found is not None
        leaves = its.of_tier("leaf")
        assert (found.gbps, found.way) == (gbps, "closed form for two tiers")
        assert _min_cut(its, leaves[: len(leaves) // 2], leaves[len(leaves) // 2 :]) == pytest.approx(gbps)


def test_bisection_of_three_tiers_is_the_least_cut() -> None:
    fabric = three_tiers()
    found = bisection(shape(View(fabric.graph())))
    assert found is not None
    assert (found.gbps, found.hosts_gbps, found.way) == (3200.0, 3200.0, "least cut between the halves")
    for end in [end for end in fabric.cables if end[0] == "spine1" and end[1] > 4]:
        fabric.cut(end)
    thinner = bisection(shape(View(fabric.graph())))
    assert thinner is not None
    assert thinner.gbps == 1600.0


def test_a_leaf_alone_has_no_bisection() -> None:
    assert bisection(shape(View(leafspine(1, 0).graph()))) is None


def test_expected_hcas_come_of_intent_and_facts() -> None:
    rails = [
        {"name": "rail0", "nic": {"pci": "0000:21:00.0"}, "link_layer": "infiniband", "plane": "compute", "rate_gbps": 400},
        {"name": "storage", "nic": {"pci": "0000:41:00.0"}, "link_layer": "roce", "plane": "default", "rate_gbps": None},
    ]
    device = {"node_guid": "0002:c903:00f9:bfa0", "pci": {"address": "0000:21:00.0"}, "ports": {"1": {"netdev": None}}}
    known = {
        "node1": {"intent": {"rails": rails}, "facts": {"devices": {"mlx5_0": device}, "netdevs": {}}},
        "node2": {"intent": {"rails": rails}, "facts": None},
        "node3": {"intent": None, "facts": None},
    }
    assert expected_hcas(known_of(known)) == {
        "compute": [
            Expected("node1", "rail0", "0x0002c90300f9bfa0", "mlx5_0", 1, 400, "compute"),
            Expected("node2", "rail0", None, None, 1, 400, "compute"),
        ]
    }
    device["function"] = "vf"
    assert expected_hcas(known_of({"node1": known["node1"]})) == {}
