# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""lldpcli's JSON in its forms, and the Ethernet graph out of it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.graph import merged
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.lldp import Neighbor, lldp_graph, parse_lldpcli, port_number, read_lldp
from tests.unit.builders.fakes import FakeRunner, Without
from tests.unit.builders.garbled import garbled, read_or_refused

LEAF = "0c:4f:9b:c4:18:61"


def json_form(*interfaces: tuple[str, str, str]) -> str:
    """-f json: (interface, system, port). One neighbor is an object, several are a list, as lldpd does it."""
    reported = [
        {
            name: {
                "via": "LLDP",
                "chassis": {system: {"id": {"type": "mac", "value": LEAF}, "capability": {"type": "Bridge", "enabled": True}}},
                "port": {"id": {"type": "ifname", "value": port}, "descr": "to a host"},
                "vlan": {"vlan-id": "7", "pvid": True},
            }
        }
        for name, system, port in interfaces
    ]
    return json.dumps({"lldp": {"interface": reported[0] if len(reported) == 1 else reported} if reported else {}})


JSON0 = json.dumps(
    {
        "lldp": [
            {
                "interface": [
                    {
                        "name": "ens1f0np0",
                        "via": "LLDP",
                        "chassis": [
                            {
                                "id": [{"type": "mac", "value": LEAF}],
                                "name": [{"value": "leaf1"}],
                                "mgmt-ip": [{"value": "192.0.2.1"}],
                                "capability": [{"type": "Bridge", "enabled": True}, {"type": "Router", "enabled": False}],
                            }
                        ],
                        "port": [{"id": [{"type": "ifname", "value": "swp3"}], "descr": [{"value": "to a host"}]}],
                        "vlan": [{"vlan-id": "7", "pvid": True}],
                    }
                ]
            }
        ]
    }
)


def test_both_forms() -> None:
    (near,) = parse_lldpcli(JSON0)
    capabilities = {"Bridge": True, "Router": False}
    assert near == Neighbor("ens1f0np0", "mac", LEAF, "leaf1", None, "ifname", "swp3", "to a host", capabilities, ["192.0.2.1"], 7, "LLDP")
    (other,) = parse_lldpcli(json_form(("ens1f0np0", "leaf1", "swp3")))
    assert (other.system, other.chassis_id, other.port_id, other.vlan) == ("leaf1", LEAF, "swp3", 7)


@pytest.mark.parametrize("text", ['{"lldp": {}}', '{"lldp": [{}]}', '{"lldp": null}'])
def test_nobody_there(text: str) -> None:
    assert parse_lldpcli(text) == []


@pytest.mark.parametrize("text", ["", "[]", "{}", JSON0[:-20], '{"lldp": "x"}', "LLDP neighbors:\n", "[" * 100000], ids=range(7))
def test_what_is_no_output(text: str) -> None:
    with pytest.raises(ParseError):
        parse_lldpcli(text)


def test_the_graph_of_a_host_and_of_all() -> None:
    hosts = {name: parse_lldpcli(json_form(("ens1", "leaf1", f"swp{number}"))) for number, name in enumerate(("node1", "node2"), 1)}
    whole = lldp_graph("eth", hosts)
    assert (whole.source, whole.complete, list(whole.nodes)) == ("lldp", True, [LEAF, "node1 ens1", "node2 ens1"])
    assert whole.peer("node2 ens1", 1) == (LEAF, 2)
    assert whole.port_name(LEAF, 2) == "swp2"
    assert [node.name for node in whole.leaves()] == ["leaf1"]
    assert merged("eth", [lldp_graph("eth", {name: seen}) for name, seen in hosts.items()]) == whole


def test_both_ends_of_a_link_are_one() -> None:
    seen_by_leaf = Neighbor("swp1", "mac", "52:54:00:00:00:01", "node1", None, "ifname", "ens1", None, {"Router": True}, [], None, "LLDP")
    graph = lldp_graph("eth", {"node1": parse_lldpcli(json_form(("ens1", "leaf1", "swp1"))), "leaf1": [seen_by_leaf]}, switches={"leaf1"})
    assert len(graph.links) == 1
    assert graph.problems == []
    assert graph.nodes["node1 ens1"].kind == "host"


def test_several_neighbors_on_one_interface_are_a_problem() -> None:
    graph = lldp_graph("eth", {"node1": parse_lldpcli(json_form(("ens1", "leaf1", "swp1"), ("ens1", "leaf2", "swp2")))})
    assert graph.problems == ["node1 ens1 sees 2 neighbors at once: leaf1, leaf2"]
    assert not graph.complete


@pytest.mark.parametrize(
    ("label", "number"),
    [
        *(("swp14", 14), ("swp1s2", 1002), ("25GE1/0/39", 1000039), ("Ethernet1/2/3", 1002003), ("etp1a", 1001), ("etp12b", 12002)),
        *(("00:00:00:00:01:02", 258), ("Management", 0)),
    ],
)
def test_numbers_of_ports(label: str, number: int) -> None:
    assert port_number(label) == number


def test_the_parts_of_a_split_port_of_sonic_are_ports_of_their_own() -> None:
    hosts = {name: parse_lldpcli(json_form(("ens1", "leaf1", f"etp1{part}"))) for name, part in (("node1", "a"), ("node2", "b"))}
    graph = merged("eth", [lldp_graph("eth", {name: seen}) for name, seen in hosts.items()])
    assert graph.problems == []
    assert [graph.port_name(*end) for name in hosts if (end := graph.peer(f"{name} ens1", 1)) is not None] == ["etp1a", "etp1b"]


JSON0_ARGV = ("lldpcli", "show", "neighbors", "-f", "json0")
JSON_ARGV = ("lldpcli", "show", "neighbors", "-f", "json")


def test_reading() -> None:
    runner = FakeRunner([(JSON0_ARGV, 0, JSON0, "")])
    assert read_lldp(runner, "eth", "node1", 9.0).peer("node1 ens1f0np0", 1) == (LEAF, 3)
    assert runner.timeouts_seconds == [9.0]
    old = FakeRunner([(JSON0_ARGV, 1, "", "unknown format"), (JSON_ARGV, 0, json_form(("ens1", "leaf1", "swp3")), "")])
    assert read_lldp(old, "eth", "node1", 9.0).complete


def test_other_interfaces_than_those_asked_for_are_no_problem() -> None:
    """Behind a switch that nobody manages, each host sees all others."""
    text = json_form(("ens1", "leaf1", "swp1"), ("eno1", "node2", "1"), ("eno1", "node3", "1"))
    runner = FakeRunner([(JSON0_ARGV, 0, text, "")])
    graph = read_lldp(runner, "eth", "node1", 9.0, ["ens1"])
    assert (graph.problems, len(graph.links)) == ([], 1)


def test_reading_fails_by_name() -> None:
    assert read_lldp(Without(["lldpcli"], []), "eth", "node1", 9.0).problems == ["lldpcli is not installed on this host: install lldpd"]
    down = FakeRunner([(argv, 1, "", "unable to connect to socket") for argv in (JSON0_ARGV, JSON_ARGV)])
    assert read_lldp(down, "eth", "node1", 9.0).problems == ["lldpcli failed: unable to connect to socket (is lldpd running?)"]
    assert not read_lldp(FakeRunner([(JSON0_ARGV, 0, "x", "")]), "eth", "node1", 9.0).complete


@given(garbled(JSON0))
def test_any_text_is_read_or_refused(text: str) -> None:
    def graph(text: str) -> None:
        lldp_graph("eth", {"node1": parse_lldpcli(text)})

    assert read_or_refused(graph, text)


def test_of_many_neighbors_on_one_interface_three_are_named() -> None:
    graph = lldp_graph("eth", {"node1": parse_lldpcli(json_form(*(("ens1", f"leaf{number}", "swp1") for number in range(1, 6))))})
    assert graph.problems == ["node1 ens1 sees 5 neighbors at once: leaf1, leaf2, leaf3"]


def test_a_chassis_that_reports_its_id_alone_is_not_named_after_the_key() -> None:
    """A switch may hide its name: a chassis then has one entry, as the form that has the name as its key."""
    chassis = {"id": {"type": "mac", "value": LEAF}}
    port = {"id": {"type": "ifname", "value": "swp3"}}
    (neighbor,) = parse_lldpcli(json.dumps({"lldp": {"interface": {"ens1": {"via": "LLDP", "chassis": chassis, "port": port}}}}))
    assert (neighbor.system, neighbor.chassis_id) == (None, LEAF)
