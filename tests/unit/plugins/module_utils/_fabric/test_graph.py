# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The graph: its helpers, its form as JSON, and how names for people come about."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.build import fabric_graph
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.graph import Graph, Link, Node, Port, merged
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.iblinkinfo import parse_iblinkinfo
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.ibnetdiscover import Discovery, parse_ibnetdiscover
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.ibqueryerrors import parse_ibqueryerrors
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.names import kind_of, name_of
from tests.unit.builders.fabric_texts import LEAF1, LEAF2, NODE1_MLX5_0, NODE1_MLX5_1, SPINE1, SPINE2, fabric_text, rail_fabric


def whole() -> Graph:
    return fabric_graph(
        "rail0",
        parse_ibnetdiscover(fabric_text("cut-ibnetdiscover")),
        linkinfo=parse_iblinkinfo(fabric_text("cut-iblinkinfo-l")),
        counters=parse_ibqueryerrors(fabric_text("cut-ibqueryerrors")).counters,
    )


def test_helpers() -> None:
    graph = whole()
    assert (graph.complete, graph.problems, graph.source, len(graph.nodes), len(graph.links)) == (True, [], "ibnetdiscover", 8, 8)
    assert graph.peer(LEAF1, 1) == (NODE1_MLX5_0, 1)
    assert graph.peer(LEAF2, 7) is None
    assert graph.neighbors(LEAF2) == [SPINE1, NODE1_MLX5_1, "0xe09d730300000120"]
    assert [node.name for node in graph.leaves()] == ["leaf1", "leaf2"]
    assert {name: [node.device for node in nodes] for name, nodes in graph.hosts().items()} == {
        "node1": ["mlx5_0", "mlx5_1"],
        "node2": ["mlx5_0", "mlx5_1"],
    }


def test_what_each_tool_adds_to_a_port() -> None:
    ports = whole().nodes[LEAF1].ports
    assert (ports[5].state, ports[5].physical, ports[5].width, ports[5].speed, ports[5].could_be) == (
        "ACTIVE",
        "LinkUp",
        4,
        "HDR",
        (12, None),
    )
    assert ports[5].counters == {"SymbolErrorCounter": 7, "LinkDownedCounter": 3}
    assert (ports[3].state, ports[3].width, ports[3].counters) == ("DOWN", None, {})
    hca = whole().nodes[NODE1_MLX5_1].ports[1]
    assert (hca.guid, hca.lid, hca.state, hca.counters) == ("0xe09d730300000111", 6, "ACTIVE", {"PortXmitWait": 12345})


def test_json_and_back() -> None:
    graph = whole()
    assert Graph.from_dict(json.loads(json.dumps(graph.to_dict()))) == graph


def test_counters_that_are_zero_come_back() -> None:
    counters = {"SymbolErrorCounter": 0, "LinkDownedCounter": 3, "PortRcvErrors": 0, "VL15Dropped": 0}
    ports = {1: Port(1, counters=counters), 2: Port(2, counters=dict.fromkeys(counters, 0)), 3: Port(3)}
    graph = Graph("x", {LEAF1: Node(LEAF1, "switch", "leaf1", ports=ports)}, [], "ibnetdiscover")
    tree = graph.to_dict()
    assert [port.get("counters") for port in tree["nodes"][LEAF1]["ports"].values()] == [[0, 0, 3], [0], None]
    assert Graph.from_dict(tree) == graph


@pytest.mark.parametrize("change", [{"schema": 2}, {"nodes": {"x": {}}}, {"nodes": []}, {"links": [[1]]}, {"problems": None}], ids=str)
def test_other_trees_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(ParseError, match=r"not (a graph|the tree of a graph)"):
        Graph.from_dict({**whole().to_dict(), **change})


def test_order_of_nodes_does_not_matter() -> None:
    found = parse_ibnetdiscover(fabric_text("ibnetdiscover"))
    shuffled = list(found.nodes)
    random.Random(1).shuffle(shuffled)
    assert fabric_graph("x", Discovery(shuffled, [], None)) == fabric_graph("x", found)


def test_the_rate_of_a_link_is_the_kernels() -> None:
    rates = {
        speed: Link((LEAF1, 1), (SPINE1, 1), 4, speed).rate_gbps for speed in ("SDR", "QDR", "FDR10", "FDR", "EDR", "HDR", "NDR", "XDR")
    }
    assert rates == {"SDR": 10, "QDR": 40, "FDR10": 40, "FDR": 56, "EDR": 100, "HDR": 200, "NDR": 400, "XDR": 800}
    assert Link((LEAF1, 1), (SPINE1, 1), None, "NDR").rate_gbps is None


@pytest.mark.parametrize(
    ("kind", "description", "name", "device"),
    [
        ("host", "node17 mlx5_3", "node17", "mlx5_3"),
        ("host", "node17 HCA-4", "node17", "HCA-4"),
        ("host", "a08-p1-dgx-04-c01 ibp11s0f0", "a08-p1-dgx-04-c01", "ibp11s0f0"),
        ("host", "gb200-03 ibP22p3s0", "gb200-03", "ibP22p3s0"),
        ("host", "MT4129 ConnectX7   Mellanox Technologies", "0x1", None),
        ("host", "localhost HCA-1", "localhost HCA-1", "HCA-1"),
        ("host", "", "0x1", None),
        ("host", None, "0x1", None),
        ("switch", "MF0;leaf3:MQM9701/U1", "leaf3", None),
        ("switch", "MF0;core1:MCS8500/L01/U1", "core1/L01", None),
        ("switch", "MF0;leaf3:MQM9701/U2", "leaf3/U2", None),
        ("switch", " 5FB0406-spine-IB02 ", "5FB0406-spine-IB02", None),
        ("switch", "Quantum Mellanox Technologies", "0x1", None),
        ("switch", "Infiniscale-IV Mellanox Technologies", "0x1", None),
        ("switch", "leaf1 swp1", "leaf1 swp1", None),
    ],
)
def test_names(kind: str, description: str | None, name: str, device: str | None) -> None:
    assert name_of("0x1", kind, description, {}) == (name, device)


def test_the_map_goes_first() -> None:
    assert name_of("0x1", "switch", "MF0;x:Y/U1", {"0x1": "leaf3"}) == ("leaf3", None)
    assert name_of("0x1", "host", "Mellanox Technologies", {"0x1": "node17 mlx5_3"}) == ("node17", "mlx5_3")
    assert name_of("0x1", "host", "old mlx5_3", {"0x1": "node17"}) == ("node17", "mlx5_3")


def test_unnamed_hcas_are_not_one_host_but_for_their_system() -> None:
    def hca(guid: str, name: str, system: str) -> Node:
        return Node(guid, "host", name, system_guid=system)

    nodes = [
        hca("0x1", "0x1", "0xa"),
        hca("0x2", "0x2", "0xa"),
        hca("0x3", "node3", "0xb"),
        hca("0x4", "0x4", "0xb"),
        hca("0x5", "0x5", "0xc"),
    ]
    hosts = Graph("x", {node.guid: node for node in nodes}, [], "ibnetdiscover").hosts()
    assert {name: [node.guid for node in found] for name, found in hosts.items()} == {
        "node3": ["0x3", "0x4"],
        "0x1": ["0x1", "0x2"],
        "0x5": ["0x5"],
    }


def test_an_aggregation_node_is_no_host_and_has_its_switchs_name() -> None:
    text = fabric_text("ibnetdiscover").replace("node1 mlx5_0", "Mellanox Technologies Aggregation Node")
    graph = fabric_graph("x", parse_ibnetdiscover(text))
    assert (graph.nodes[NODE1_MLX5_0].kind, graph.nodes[NODE1_MLX5_0].name) == ("aggregation", "leaf1 aggregation")
    assert sorted(graph.hosts()) == ["node1", "node2"]
    assert [node.device for node in graph.hosts()["node1"]] == ["mlx5_1"]
    assert kind_of("switch", "Aggregation Node") == "switch"


def test_tools_that_do_not_agree() -> None:
    graph = fabric_graph(
        "x",
        parse_ibnetdiscover(fabric_text("ibnetdiscover")),
        linkinfo=parse_iblinkinfo(fabric_text("cut-iblinkinfo-l")),
        counters={("0xdead", 1): {"SymbolErrorCounter": 1}, (SPINE2, 255): {"SymbolErrorCounter": 1}},
    )
    assert graph.problems == [
        "ibnetdiscover and iblinkinfo report different links: the fabric changed in between: leaf2 port 7, spine2 port 3",
        "counters belong to ports that ibnetdiscover did not find: 0xdead port 1",
    ]
    assert not graph.complete


def test_two_views_are_one_graph() -> None:
    graph = whole()
    half = Graph(
        "x",
        {guid: node for guid, node in graph.nodes.items() if guid != SPINE2},
        [link for link in graph.links if SPINE2 not in (link.a[0], link.b[0])],
        "ibnetdiscover",
    )
    both = merged("rail0", [half, graph])
    assert (list(both.nodes), both.links, both.complete) == (list(graph.nodes), graph.links, True)
    assert not merged("rail0", []).complete
    wrong = Graph("x", graph.nodes, [Link((LEAF1, 1), (NODE1_MLX5_1, 1))], "ibnetdiscover")
    assert merged("x", [graph, wrong]).problems == ["several links end at the same port: leaf1 port 1, node1 port 1"]


#: ibnetdiscover on a host whose cable is cut (ibsim 0.10, rdma-core 44), without its comments on the topology file.
ALONE = """vendid=0x0
devid=0x0
sysimgguid=0x200001
caguid=0x200000
Ca\t1 "H-0000000000200000"\t\t# "node1 mlx5_0"
"""


def test_a_discovery_of_its_own_node_alone_is_not_complete() -> None:
    graph = fabric_graph("rail0", parse_ibnetdiscover(ALONE))
    assert (len(graph.nodes), graph.links, graph.complete) == (1, [], False)
    assert graph.problems == ["the discovery found no link, only node1: the port is down, or nothing behind it answered"]
    assert merged("eth", [Graph("x", {}, [], "lldp")]).problems == ["no host found a link of its own"]


def test_a_large_fabric_is_small_as_json() -> None:
    text = rail_fabric(hosts=256, rails=8, leaves_per_rail=8, spines=32, uplinks=1)
    graph = fabric_graph("x", parse_ibnetdiscover(text))
    assert (len(graph.nodes), len(graph.links), graph.problems) == (2048 + 96, 2048 + 64 * 32, [])
    assert (len(graph.leaves()), len(graph.hosts())) == (64, 256)
    assert len(json.dumps(graph.to_dict())) < 2e6


@pytest.mark.parametrize(
    "change",
    [
        {"plane": 7}, {"plane": None}, {"complete": "yes"}, {"problems": [7]}, {"source": []},
        {"links": [["0xnobody", 1, "0x1", 1, 4, "NDR"]]}, {"links": [["0x1", "1", "0x2", 1, 4, "NDR"]]},
        {"links": [["0x1", 1, "0x2", 1, "4", "NDR"]]},
        {"links": [["0x1", 1, "0x2", 1, 4, 7]]}, {"doubles": {"0x1": [[7, "0x2", 1]]}},
        {"nodes": {"0x1": {"kind": "toaster", "name": "a", "ports": {}}}}, {"nodes": {"0x1": {"kind": "host", "name": ["a"], "ports": {}}}},
        {"nodes": {"0x1": {"kind": "host", "name": "a", "lid": "7", "ports": {}}}},
        {"nodes": {"0x1\x00": {"kind": "host", "name": "a", "ports": {}}, "0x1\x07": {"kind": "host", "name": "a", "ports": {}}}},
        {"nodes": {"0x1": {"kind": "host", "name": "a", "ports": {"1": {"label": 7}}}}},
        {"nodes": {"0x1": {"kind": "host", "name": "a", "ports": {"1": {"could_be": ["4", "NDR"]}}}}},
        {"counter_names": [["a"]], "nodes": {"0x1": {"kind": "host", "name": "a", "ports": {"1": {"counters": [0, "7"]}}}}},
    ],
    ids=str,
)  # fmt: skip
def test_a_tree_of_wrong_types_is_no_graph(change: dict[str, Any]) -> None:
    nodes: dict[str, Any] = {number: {"kind": "switch", "name": number, "ports": {}} for number in ("0x1", "0x2")}
    sound = {
        "schema": 1,
        "plane": "default",
        "source": "lldp",
        "complete": True,
        "problems": [],
        "counter_names": [],
        "nodes": nodes,
        "links": [],
    }
    assert Graph.from_dict(sound).plane == "default"
    with pytest.raises(ParseError):
        Graph.from_dict({**sound, **change})
