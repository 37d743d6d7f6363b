# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The routed Clos network of the lab: its cables, their names, and the cabling plan, which is in the form that the fabric stage reads."""

from __future__ import annotations

import dataclasses
import ipaddress
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.cabling.plan import parse_plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.plan import make_plan as plan_routing
from lab import cli, clos, clos_hosts
from lab.clos import Clos
from lab.clos_plan import MOST_HOSTS, MOST_LEAVES, MOST_SPINES, Cable, ClosShape, cabling, checked, namespace_of, rail_address, shape_of
from lab.errors import LabError
from lab.plan import inventory, make_plan
from tests.unit.builders.clos import settings

SHAPES = st.builds(ClosShape, st.integers(1, 6), st.integers(1, 6), st.integers(0, 3), rails=st.integers(1, 2))


@given(SHAPES)
def test_each_port_has_one_cable_and_each_leaf_one_to_each_spine(shape: ClosShape) -> None:
    cables = list(shape.cables)
    ends = [end for cable in cables for end in (cable.a, cable.b)]
    assert len(ends) == len(set(ends))
    assert len(cables) == shape.leaves * (shape.spines + shape.hosts * shape.rails)


@given(SHAPES)
def test_the_plan_of_cables_is_what_the_fabric_stage_reads(shape: ClosShape) -> None:
    plan = parse_plan(cabling(shape))
    assert list(plan.switches) == shape.switches
    assert [str(link.a.port) for link in plan.links[: shape.spines]] == [str(n) for n in range(1, shape.spines + 1)]
    assert len(plan.links) == len(list(shape.cables))


@given(SHAPES)
def test_a_leaf_that_is_added_changes_no_other_cable(shape: ClosShape) -> None:
    larger = ClosShape(shape.leaves + 1, shape.spines, shape.hosts, rails=shape.rails)
    assert set(shape.cables) <= set(larger.cables)


@pytest.mark.parametrize("pods", [1, 2, 3])
def test_a_spine_is_cabled_to_the_leaves_of_its_pod_and_to_all_cores(pods: int) -> None:
    shape = ClosShape(6, 6, 0, 2, pods)
    ends = [end for cable in shape.cables for end in (cable.a, cable.b)]
    assert len(ends) == len(set(ends))
    found = [{cable.a[0], cable.b[0]} for cable in shape.cables]
    assert {"spine6", "core2"} in found
    assert ({"leaf1", "spine6"} in found) == (pods == 1)
    assert len(found) == 6 * 6 // pods + 6 * 2
    tiers = {name: switch.tier for name, switch in parse_plan(cabling(shape)).switches.items()}
    assert (tiers["leaf1"], tiers["spine6"], tiers["core2"]) == ("leaf", "spine", "core")


@pytest.mark.parametrize("shape", [(4, 4, 1, 0, 2), (3, 4, 1, 2, 2), (4, 3, 1, 2, 2), (4, 4, 1, 2, 0)])
def test_pods_that_cannot_be_made_are_refused(shape: tuple[int, int, int, int, int]) -> None:
    with pytest.raises(LabError, match="pods need cores, and the same number"):
        ClosShape(*shape)


def test_a_cable_is_found_by_either_end() -> None:
    shape = ClosShape()
    assert shape.cable("leaf2/1") == Cable(("leaf2", "swp1"), ("spine1", "swp2"))
    assert shape.cable("spine1/2") == Cable(("spine1", "swp2"), ("leaf2", "swp1"))
    assert shape.cable("host2") == Cable(("host2", "rail0"), ("leaf2", "swp33"))


@pytest.mark.parametrize("link", ["leaf1/9", "leaf1", "host9", "", "spine1/swp1"])
def test_a_cable_that_is_not_there_is_refused(link: str) -> None:
    with pytest.raises(LabError, match="There is no cable"):
        ClosShape().cable(link)


@pytest.mark.parametrize("shape", [(0, 2, 1), (2, 0, 1), (MOST_LEAVES + 1, 2, 1), (2, MOST_SPINES + 1, 1), (2, 2, MOST_HOSTS + 1)])
def test_a_size_that_has_no_ports_is_refused(shape: tuple[int, int, int]) -> None:
    with pytest.raises(LabError, match="A routed Clos has"):
        ClosShape(*shape)


@pytest.mark.parametrize("name", ["", "Clos", "a-b", "a" * 11, "../x", "1a"])
def test_a_name_that_would_reach_other_files_is_refused(name: str) -> None:
    with pytest.raises(LabError, match="name is 1 to 10"):
        checked(name)


def test_namespaces_have_a_prefix_of_their_own() -> None:
    assert namespace_of(checked("clos"), "leaf1") == "rdma-clos-clos-leaf1"


def test_the_command_line_knows_each_verb() -> None:
    for words in (
        ["up", "--leaves", "4"],
        ["down"],
        ["cut", "leaf1/1"],
        ["mtu", "leaf1/1", "1500"],
        ["frr", "folder"],
        ["run", "leaf1", "--", "id"],
    ):
        assert cli.parser().parse_args(["clos", *words]).command == "clos"


# The network between the nodes of a lab.


@given(st.integers(1, 16))
def test_the_nodes_of_a_lab_have_the_addresses_that_the_collection_plans(half: int) -> None:
    shape = shape_of(2 * half, 2)
    routers = plan_routing("lab", settings(), parse_plan(cabling(shape))).routers
    planned = {
        (port.host, port.device): (port.host_address, port.address.partition("/")[0])
        for router in routers.values()
        for port in router.host_ports
    }
    plan = make_plan("lab", "machine", 2 * half, 22000, fabric="clos")
    assert {(node.name, rail.name): (rail.address, rail.gateway) for node in plan.nodes for rail in node.rails} == planned


@given(st.integers(1, 16))
def test_each_rail_at_each_leaf_is_a_subnet_of_its_own(half: int) -> None:
    shape = shape_of(2 * half, 2)
    subnets = [[ipaddress.ip_network(each) for each in rail_address(shape, 0, rail).routes] for rail in range(2)]
    assert len({each for of_rail in subnets for each in of_rail}) == 4
    for host in range(2 * half):
        for rail in range(2):
            at = rail_address(shape, host, rail)
            own = ipaddress.ip_interface(at.address).network
            holders = [each for of_rail in subnets for each in of_rail if own.subnet_of(each)]  # type: ignore[arg-type]
            assert holders == [subnets[rail][host // half]]
            assert [str(each) for each in subnets[rail]] == list(at.routes)


@pytest.mark.parametrize("nodes", [1, 3, 34])
def test_a_number_of_nodes_without_a_place_is_refused(nodes: int) -> None:
    with pytest.raises(LabError, match=f"even number of nodes, 2 to 32; got {nodes}"):
        make_plan("lab", "machine", nodes, 22000, fabric="clos")


def test_a_lab_has_a_mesh_or_a_clos() -> None:
    with pytest.raises(LabError, match="--mesh or --fabric"):
        make_plan("lab", "machine", 2, 22000, mesh=(((1, 0), (2, 0)),), fabric="clos")


def test_each_cable_of_a_node_is_a_bridge_with_an_end_at_its_leaf() -> None:
    plan = make_plan("lab", "machine", 4, 22000, fabric="clos")
    rails = [rail for node in plan.nodes for rail in node.rails]
    assert plan.is_cabled
    assert plan.bridges == tuple(f"cable{n}" for n in range(8))
    assert [rail.bridge for rail in rails] == list(plan.bridges)
    assert [rail.uplink for rail in rails] == [f"u{rail.cable}" for rail in rails]
    plain = make_plan("lab", "machine", 4, 22000)
    assert not plain.is_cabled
    assert plain.bridges == ("rail0", "rail1")


def test_the_inventory_has_the_routing_and_the_switches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RDMA_LAB_DIR", "/lab")
    monkeypatch.delenv("SUDO_UID", raising=False)
    plan = make_plan("lab", "machine", 4, 22000, fabric="clos")
    everything = clos_hosts.with_switches(plan, inventory(plan, "key", "hosts"))["all"]
    plane = everything["vars"]["rdma_fabric"]["planes"]["lab"]
    assert plane["plan"] == "/lab/clos/lab/cabling.yml"
    assert plane["routing"] == {"loopbacks": "10.0.0.0/24", "host_subnets": "10.1.0.0/16", "spine_asn": "own"}
    assert list(everything["hosts"]) == ["node1", "node2", "node3", "node4"]
    rail = everything["hosts"]["node3"]["rdma_rails"][1]
    assert (rail["address"], rail["gateway"], rail["routes"]) == ("10.1.1.131/31", "10.1.1.130", ["10.1.0.128/26", "10.1.1.128/26"])
    switches = everything["children"]["rdma_switches"]["hosts"]
    assert list(switches) == ["leaf1", "leaf2", "spine1", "spine2"]
    assert switches["spine2"] == {"ansible_connection": "local", "ansible_python_interpreter": "/lab/clos/lab/nodes/spine2/python"}


def test_a_lab_without_a_clos_has_the_inventory_as_before() -> None:
    plan = make_plan("lab", "machine", 2, 22000)
    data = inventory(plan, "key", "hosts")
    assert clos_hosts.with_switches(plan, data) is data


def test_a_network_of_others_is_not_replaced(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RDMA_LAB_DIR", str(tmp_path))
    plan = make_plan("lab", "machine", 4, 22000, fabric="clos")
    clos_hosts.refuse_other(plan)
    (tmp_path / "clos/lab").mkdir(parents=True)
    with pytest.raises(LabError, match="There is a Clos network 'lab' already: lab clos down --name lab"):
        clos_hosts.refuse_other(plan)
    clos_hosts.refuse_other(make_plan("lab", "machine", 4, 22000))


@pytest.mark.parametrize("change", [clos.cut, clos.silence, clos.restore, lambda network, link: clos.set_mtu(network, link, 1500)])
@pytest.mark.parametrize("link", ["leaf2/66", "node4/1"])
def test_the_cable_of_a_node_is_not_one_of_the_network(change: Callable[[Clos, str], None], link: str) -> None:
    with pytest.raises(LabError, match=r"is the cable of node4: lab cable node4 1 --cut --name lab|There is no cable 'node4/1'"):
        change(Clos("lab", shape_of(4, 2)), link)


def test_a_node_of_a_lab_is_no_node_of_its_network() -> None:
    with pytest.raises(LabError, match="'node1' is not a node of 'lab': leaf1, leaf2, spine1, spine2"):
        Clos("lab", shape_of(4, 2)).argv("node1", ["id"])


def test_the_network_of_a_lab_goes_with_the_lab_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RDMA_LAB_DIR", str(tmp_path))
    monkeypatch.setattr("os.geteuid", lambda: 0)
    network = Clos("lab", shape_of(4, 2))
    network.folder.path.mkdir(parents=True)
    network.folder.state.write_text(json.dumps(dataclasses.asdict(network.shape)))
    assert clos.load("lab") == network
    with pytest.raises(LabError, match="belongs to the lab of this name: lab down --name lab"):
        clos.down("lab")
    with pytest.raises(LabError, match="whose hosts are given"):
        clos.add_leaf(network)
    assert network.folder.state.exists()
