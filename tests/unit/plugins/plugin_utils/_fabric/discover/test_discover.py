# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is written of a discovered fabric: GraphML, a drawing, an inventory."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import networkx as nx
import pytest
import yaml

from ansible_collections.rdma.cluster.plugins.module_utils._fabric.graph import Graph
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.discover.inventory import inventory
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.draw.layout import HEIGHT, WIDTH, lay_out
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.draw.marks import bad_links
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.draw.svg import graphml, svg
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.shape.tiers import Ways
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.read import normalize
from tests.unit.builders.small_fabrics import fabric, guid, hca

SVG = "{http://www.w3.org/2000/svg}"


def facts(host: int, *, rails: int = 2, order: tuple[int, ...] = (0, 1), rate_gbps: float = 400.0) -> dict[str, Any]:
    """order: which HCA of the fabric is at each PCI address."""
    devices = {}
    for place in range(rails):
        digits = hca(order[place], host)[2:]
        node_guid = ":".join(digits[at : at + 4] for at in range(0, 16, 4))
        port = {"link_layer": "InfiniBand", "rate_gbps": rate_gbps, "netdev": None}
        devices[f"mlx5_{place}"] = {"node_guid": node_guid, "pci": {"address": f"0000:{place + 1}8:00.0"}, "ports": {"1": port}}
    return {"devices": devices, "netdevs": {}}


def shuffled(graph: Graph, seed: int) -> Graph:
    chance = random.Random(seed)
    nodes = list(graph.nodes.items())
    return replace(graph, nodes=dict(chance.sample(nodes, len(nodes))), links=chance.sample(graph.links, len(graph.links)))


def test_tiers_are_reported_by_the_hosts() -> None:
    graph = fabric(8, spines=3)
    assert Ways(graph).tiers() == [[guid("leaf", number) for number in range(4)], [guid("spine", number) for number in range(3)]]
    assert Ways(graph).tiers_between(guid("leaf", 0), guid("leaf", 3)) == [[guid("spine", number) for number in range(3)]]
    assert Ways(graph).tiers_between(guid("leaf", 0), guid("leaf", 0)) == []
    assert Ways(replace(graph, links=[])).tiers() == [sorted(each for each, node in graph.nodes.items() if node.kind == "switch")]


def test_slow_links_are_marked_and_others_are_not() -> None:
    assert bad_links(fabric(8)) == {}
    (words,) = bad_links(fabric(8, slow={"leaf1/2"})).values()
    assert words == "1X NDR (100 Gb/s), similar links run at 400 Gb/s"


@pytest.mark.parametrize(("state", "words"), [("DOWN", "is DOWN"), ("INIT", "is INIT"), ("ACTIVE", None), (None, None)])
def test_a_link_that_is_not_up_is_marked(state: str | None, words: str | None) -> None:
    graph = fabric(4)
    node = graph.nodes[hca(0, 1)]
    broken = replace(node, ports={1: replace(node.ports[1], state=state)})
    found = list(bad_links(replace(graph, nodes={**graph.nodes, node.guid: broken})).values())
    assert [words in each for each in found] == [True] * len(found) if words else not found
    assert bool(found) is bool(words)


def test_what_a_link_could_be_is_reported() -> None:
    graph = fabric(4)
    node = graph.nodes[hca(0, 1)]
    slower = replace(node, ports={1: replace(node.ports[1], could_be=(4, "XDR"))})
    (words,) = bad_links(replace(graph, nodes={**graph.nodes, node.guid: slower})).values()
    assert words == "4X NDR, both ends support 4X XDR"


def test_what_most_of_a_kind_could_be_is_no_fault() -> None:
    graph = fabric(4)
    nodes = {
        each: replace(node, ports={number: replace(port, could_be=(12, None)) for number, port in node.ports.items()})
        for each, node in graph.nodes.items()
    }
    assert bad_links(replace(graph, nodes=nodes)) == {}


def drawing(graph: Graph) -> ElementTree.Element:
    return ElementTree.fromstring(svg(graph))  # noqa: S314 # ours


def lines(root: ElementTree.Element, kind: str) -> list[str]:
    return [line.findtext(f"{SVG}title") or "" for line in root.iter(f"{SVG}line") if line.get("class") == kind]


def test_the_drawing_has_all_and_marks_what_is_bad() -> None:
    root = drawing(fabric(8, slow={"leaf1/2", "leaf2/102"}))
    names = {text.text for text in root.iter(f"{SVG}text")}
    assert {f"node{number}" for number in range(1, 9)} | {"leaf0", "leaf3", "spine0", "spine1", "leaves", "spines"} <= names
    assert sorted(lines(root, "bad")) == [
        "leaf1 port 2 to node2 mlx5_1 port 1, 1X NDR: 1X NDR (100 Gb/s), similar links run at 400 Gb/s",
        "spine1 port 3 to leaf2 port 102, 1X NDR: 1X NDR (100 Gb/s), similar links run at 400 Gb/s",
    ]
    assert len(lines(root, "cable")) == 8
    assert lines(drawing(fabric(8)), "bad") == []


def test_the_drawing_is_the_same_in_any_order() -> None:
    graph = fabric(24, spines=3)
    assert {svg(shuffled(graph, seed)) for seed in range(4)} == {svg(graph)}


@pytest.mark.parametrize(
    "graph",
    [fabric(8), fabric(512, rails=8, per_leaf=32, spines=16), fabric(512, rails=1, per_leaf=32, plan="shared"), fabric(5, rails=3)],
    ids=["8", "512 rails", "512 shared", "5"],
)
def test_no_two_boxes_lie_upon_one_another(graph: Graph) -> None:
    layout = lay_out(graph)
    boxes = sorted((box.y, box.x) for box in (*layout.switches.values(), *layout.hosts.values()))
    assert len(layout.hosts) == len(graph.hosts())
    for (y, x), (below, right) in itertools.pairwise(boxes):
        assert below >= y + HEIGHT or (below == y and right >= x + WIDTH)
    assert all(x >= 0 and x + WIDTH <= layout.width and y + HEIGHT <= layout.height for y, x in boxes)
    assert layout.width < 3000


def test_names_of_others_do_no_harm() -> None:
    graph = fabric(4)
    evil = replace(graph.nodes[guid("leaf", 0)], name="<script>&\"'")
    root = drawing(replace(graph, nodes={**graph.nodes, evil.guid: evil}, problems=["<b>"], complete=False))
    assert not list(root.iter(f"{SVG}script"))


def test_an_empty_fabric_is_drawn_too() -> None:
    graph = Graph(plane="default", nodes={}, links=[], source="ibnetdiscover", complete=False, problems=["no answer"])
    assert "no answer" in "".join(drawing(graph).itertext())
    assert nx.parse_graphml(graphml(graph)).number_of_nodes() == 0


def test_graphml_is_what_networkx_reads() -> None:
    graph = fabric(8, cables=2, slow={"leaf1/2"})
    read = nx.parse_graphml(graphml(graph), force_multigraph=True)
    assert (read.number_of_nodes(), read.number_of_edges()) == (len(graph.nodes), len(graph.links))
    assert read.nodes[hca(1, 2)]["device"] == "mlx5_1"
    assert [edge["bad"] for _one, _other, edge in read.edges(data=True) if "bad" in edge] == list(bad_links(graph).values())
    assert graphml(shuffled(graph, 1)) == graphml(graph)


def proposed(graphs: Sequence[Graph], trees: dict[str, dict[str, Any]]) -> str:
    return inventory(graphs, {host: from_dict(tree) for host, tree in trees.items()})


def rails_of(text: str) -> dict[str, list[tuple[str, str]]]:
    reported = yaml.safe_load(text)["all"]
    shared = reported.get("vars", {}).get("rdma_rails")
    groups = [{"vars": {"rdma_rails": shared}, "hosts": reported["hosts"]}] if "hosts" in reported else list(reported["children"].values())
    return {
        host: [(rail["name"], rail["nic"]["pci"]) for rail in group.get("vars", {}).get("rdma_rails") or []]
        for group in groups
        for host in group["hosts"]
    }


def test_hosts_alike_have_the_rails_once() -> None:
    text = proposed([fabric(8)], {f"node{host + 1}": facts(host) for host in range(8)})
    assert rails_of(text)["node3"] == [("rail0", "0000:18:00.0"), ("rail1", "0000:28:00.0")]
    assert text.count("rdma_rails") == 1
    assert "rate_gbps: 400" in text


def test_a_host_whose_cards_are_in_another_order_is_reported_by_the_leaves() -> None:
    known = {f"node{host + 1}": facts(host, order=(1, 0) if host == 5 else (0, 1)) for host in range(40)}
    found = rails_of(proposed([fabric(40, per_leaf=20)], known))
    assert found["node6"] == [("rail0", "0000:28:00.0"), ("rail1", "0000:18:00.0")]
    assert found["node7"] == [("rail0", "0000:18:00.0"), ("rail1", "0000:28:00.0")]


def test_rails_on_one_leaf_are_reported_by_the_order_of_cards() -> None:
    found = rails_of(proposed([fabric(8, plan="shared")], {f"node{host + 1}": facts(host) for host in range(8)}))
    assert found["node6"] == [("rail0", "0000:18:00.0"), ("rail1", "0000:28:00.0")]


def test_what_is_strange_stands_at_the_head() -> None:
    known = {f"node{host + 1}": facts(host, rate_gbps=100.0 if host == 2 else 400.0) for host in range(7)}
    known["other"] = {"devices": {}, "netdevs": {}}
    text = proposed([replace(fabric(8), complete=False)], known)
    for words in (
        "not read: node8",
        "without a port in the fabric: other",
        "Only a part of the fabric",
        "node3 mlx5_0 runs at 100 Gb/s; most of rail0 run at 400",
    ):
        assert words in text
    assert rails_of(text)["other"] == []


def test_the_proposal_is_an_intent() -> None:
    text = proposed([fabric(8)], {f"node{host + 1}": facts(host) for host in range(8)})
    variables = yaml.safe_load(text)["all"]["vars"]
    intent = normalize({**variables, "inventory_hostname": "node1"})
    assert [rail["name"] for rail in intent["rails"]] == ["rail0", "rail1"]


# What a host or its neighbors call themselves

EVIL = [
    "h\nungrouped:\n  hosts:\n    evil: {ansible_connection: local}",
    "h\x85ungrouped: {hosts: {evil: }}",
    "h\u2028ungrouped: {hosts: {evil: }}",
    "h\u2029\x0b\x0c\r\x1c",
    "h\x00\x07\x1b[2K\x9b\x7f",
    "h\ud800\ufffe\uffff",
    "h]]><script>alert(1)</script>&amp;\"'",
    "x" * 1_000_000,
    "{{ lookup('pipe', 'id') }}",
]


def named(name: str) -> Graph:
    """A fabric one of whose hosts and one of whose leaves have a name, as a host returns it."""
    data = fabric(8, slow={"leaf1/2"}).to_dict()
    for number in (hca(0, 2), hca(1, 2), guid("leaf", 1)):
        data["nodes"][number].update(name=name, description=name)
    data["problems"] = [name]
    data["doubles"] = {guid("leaf", 2): [[name, guid("spine", 0), 3]]}
    return Graph.from_dict(data)


@pytest.mark.parametrize("name", EVIL, ids=range(len(EVIL)))
def test_a_name_cannot_leave_the_place_that_it_has(name: str) -> None:
    graph = named(name)
    words = [
        *(node.name for node in graph.nodes.values()),
        *graph.problems,
        *(twin.description for of in graph.doubles.values() for twin in of),
    ]
    assert [each for each in words if not each.isprintable() or len(each) > 4000] == []
    assert max(len(node.name) for node in graph.nodes.values()) <= 255
    ElementTree.fromstring(svg(graph))  # noqa: S314
    assert len(nx.parse_graphml(graphml(graph))) == len(graph.nodes)
    text = proposed([graph], {f"node{host + 1}": facts(host) for host in range(8)})
    assert yaml.safe_load(text) == yaml.safe_load(proposed([fabric(8)], {f"node{host + 1}": facts(host) for host in range(8)}))
    assert "alert(1)</script>" not in svg(graph)
    graphml(graph).encode()


def test_what_is_no_address_is_not_proposed() -> None:
    """A text in an inventory may be a template."""
    evil = "{{ lookup('pipe', 'id') }}"
    known = {f"node{host + 1}": facts(host) for host in range(8)}
    known["node1"]["devices"]["mlx5_0"]["pci"]["address"] = evil
    known["node2"]["netdevs"] = {"ens1": {"ipv4": [evil, ["10.0.0.1/24"], "10.0.0.1/24"]}}
    known["node2"]["devices"]["mlx5_0"]["ports"]["1"].update(link_layer="Ethernet", netdev="ens1")
    text = proposed([fabric(8)], known)
    assert "{{" not in text
    assert "address: 10.0.0.1/24" in text


@pytest.mark.parametrize(
    "name", ["yes", "no", "1e3", "null", "a: b", "a #b", "-", "0o7", "1:30", "=", "*a", "&a", "!a", "%a", "@a", "`a", "'", '"']
)
def test_a_host_of_any_name_comes_back_from_the_inventory(name: str) -> None:
    loaded = yaml.safe_load(proposed([fabric(8)], {name: facts(0)}))
    assert list(loaded["all"]["hosts"]) == [name]
