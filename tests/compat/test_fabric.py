# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Captures of real fabrics: ibnetdiscover, sminfo and LLDP."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._fabric.build import fabric_graph
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.graph import Graph
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.ibnetdiscover import parse_ibnetdiscover
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.lldp import lldp_graph, parse_lldpcli
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.managers import SmInfo, parse_sminfo

FIXTURES = Path(__file__).parents[2].parent / "shared" / "fixtures"


def capture(name: str) -> str:
    return (FIXTURES / name).read_text(encoding="utf-8")


def test_a_real_ndr_fabric() -> None:
    graph = fabric_graph("default", parse_ibnetdiscover(capture("ibnetdiscover/topograph-ndr-dgx-large.txt")))
    assert (graph.complete, graph.problems) == (True, [])
    assert Counter(node.kind for node in graph.nodes.values()) == {"host": 542, "aggregation": 40, "switch": 40}
    assert len(graph.links) == 2228 / 2
    assert {(link.width, link.speed, link.rate_gbps) for link in graph.links} == {(4, "NDR", 400.0)}
    leaf = graph.nodes["0x2c5eab0300b87b40"]
    assert (leaf.name, leaf.lid, graph.peer(leaf.guid, 1)) == ("A09-P1-IBLEAF-04-04", 73, ("0xe09d7303007a4bd8", 1))
    assert {node.device for node in graph.hosts()["b05-p1-dgx-05-c05"]} >= {"HCA-6"}
    assert sum(not node.named for node in graph.nodes.values()) == 69
    assert all(node.name.endswith(" aggregation") for node in graph.nodes.values() if node.kind == "aggregation")
    tree = json.dumps(graph.to_dict())
    assert Graph.from_dict(json.loads(tree)) == graph


def test_a_director_with_extras_whose_author_left_a_node_out() -> None:
    graph = fabric_graph("default", parse_ibnetdiscover(capture("ibnetdiscover/sb-topo-aware-faked.txt")))
    assert graph.problems == [
        "1 nodes are named at the other ends of links but not described: the output is cut off, or they did not answer: "
        "rmd70-0101-0908-01ib1-A/S01 aggregation"
    ]
    assert (len(graph.links), len(graph.leaves()), len(graph.hosts())) == (18, 5, 10)
    assert graph.nodes["0x0ff08c432172aa1a"].name == "rmd70-0101-0908-01ib1-A/L01"


def test_a_generated_fat_tree() -> None:
    graph = fabric_graph("default", parse_ibnetdiscover(capture("ibsim-net/cyberang3l-k4n3-Full.topo")))
    assert (graph.complete, len(graph.nodes), len(graph.links), len(graph.leaves())) == (True, 208, 384, 32)


def test_sminfo() -> None:
    assert parse_sminfo(capture("sminfo/ibsim-lab-sminfo.txt")) == SmInfo(1, "0x0002c90000000011", "MASTER", 0, 186)


def test_lldp_of_a_host() -> None:
    (near,) = parse_lldpcli(capture("lldp/sichek-bjg45.json"))
    assert (near.interface, near.system, near.chassis_id, near.port_id, near.vlan) == (
        "ens11f0",
        "bj08-m1-a10-40-swl017",
        "0c:4f:9b:c4:18:61",
        "25GE1/0/39",
        1,
    )
    graph = lldp_graph("eth", {"node1": [near]})
    assert graph.peer("node1 ens11f0", 1) == ("0c:4f:9b:c4:18:61", 1000039)
    assert graph.port_name("0c:4f:9b:c4:18:61", 1000039) == "25GE1/0/39"


@pytest.mark.parametrize(
    "name", ["suzieq-numbered-spine01", "suzieq-unnumbered-exit01", "suzieq-unnumbered-leaf04", "suzieq-unnumbered-spine02"]
)
def test_lldp_of_switches(name: str) -> None:
    seen = parse_lldpcli(capture(f"lldp/{name}.json"))
    assert len(seen) >= 4
    assert all(near.system and near.chassis_id and near.port_id for near in seen)
    switch = name.rsplit("-", 1)[1]
    graph = lldp_graph("eth", {switch: seen}, switches={switch})
    assert graph.problems == []
    # exit01 has a cable from one of its own ports to another.
    assert len(graph.links) == len({near.interface for near in seen}) - (switch == "exit01")
    assert "edge01" not in {node.name for node in graph.nodes.values() if node.kind == "switch"}
