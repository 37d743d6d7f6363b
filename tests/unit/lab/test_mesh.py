# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The cables of a lab without switches, from a shape or a file; the plan, NICs and inventory that come of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab import cables, cluster, machine, namespace
from lab.errors import LabError
from lab.image import Image
from lab.mesh import Cable, end_name, read_mesh
from lab.paths import LabFolder
from lab.plan import MOST_PORTS, Plan, inventory, make_plan

SCENARIO = Path(__file__).parents[3] / "molecule/mesh/cables.yml"


def names(found: tuple[Cable, ...]) -> list[str]:
    return [f"{end_name(a)} {end_name(b)}" for a, b in found]


def lab_of(shape: str, nodes: int, kind: str = "machine") -> Plan:
    return make_plan("lab", kind, nodes, 22000, mesh=read_mesh(shape, nodes, MOST_PORTS))


def written(tmp_path: Path, text: str) -> str:
    path = tmp_path / "cables.yml"
    path.write_text(text)
    return str(path)


def test_shapes_take_the_next_port_of_each_node() -> None:
    assert names(read_mesh("full", 3, MOST_PORTS)) == ["node1/0 node2/0", "node1/1 node3/0", "node2/1 node3/1"]
    assert names(read_mesh("line", 3, MOST_PORTS)) == ["node1/0 node2/0", "node2/1 node3/0"]
    assert names(read_mesh("ring", 4, MOST_PORTS)) == ["node1/0 node2/0", "node2/1 node3/0", "node3/1 node4/0", "node4/1 node1/1"]


@pytest.mark.parametrize("nodes", [2, 3, 8, 17])
def test_a_full_mesh_has_a_cable_between_each_two(nodes: int) -> None:
    found = read_mesh("full", nodes, MOST_PORTS)
    assert len({frozenset((a[0], b[0])) for a, b in found}) == len(found) == nodes * (nodes - 1) // 2
    assert {end for cable in found for end in cable} == {(node, port) for node in range(1, nodes + 1) for port in range(nodes - 1)}


def test_the_file_of_the_scenario_has_a_double_cable() -> None:
    found = read_mesh(str(SCENARIO), 4, MOST_PORTS)
    assert [frozenset((a[0], b[0])) for a, b in found].count(frozenset((1, 2))) == 2


WRONG = [
    ("ring", 2, r"^A ring has 3 nodes at least; got 2\.$"),
    ("full", 18, r"^node1 has 17 cables; a node has 16 ports at most\.$"),
    ("full", 1, r"^node1 has no cable: add one, or make a smaller lab with --nodes\.$"),
    ("star", 4, r"^--mesh is full, ring, line or a file with cables; there is no file 'star'\.$"),
]


@pytest.mark.parametrize(("shape", "nodes", "words"), WRONG)
def test_shapes_that_cannot_be(shape: str, nodes: int, words: str) -> None:
    with pytest.raises(LabError, match=words):
        read_mesh(shape, nodes, MOST_PORTS)


WRONG_FILES = [
    ("node1/0: node2/0", "has no list of cables; expected"),
    ("[]", "has no list of cables; expected"),
    ("[[node1/0]]", "cable 1 has not two ends; expected"),
    ("[[node1/0, node2/0], node3/0]", "cable 2 has not two ends; expected"),
    ("[[node1/0, node02/0]]", "An end of a cable is NODE/PORT, for example node1/0; got 'node02/0'"),
    ("[[node1/0, node2/eth0]]", "got 'node2/eth0'"),
    ("[[node1/0, node1/1]]", "The cable from node1/0 to node1/1 leads to the same node"),
    ("[[node1/0, node2/0], [node1/0, node2/1]]", "node1/0 is an end of 2 cables; a port has one"),
    ("[[node1/0, node3/0]]", r"The cables need 3 nodes, and the lab has 2: lab up --nodes 3\."),
    ("[[node1/0, node2/0], [node1/2, node2/1]]", "node1 has a cable in port 2, but none in port 1: number the ports without a gap"),
    ("[[node1/0, node2/0", "cannot be read: while parsing"),
]


@pytest.mark.parametrize(("text", "words"), WRONG_FILES)
def test_files_that_cannot_be(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(LabError, match=words) as caught:
        read_mesh(written(tmp_path, text), 2, MOST_PORTS)
    assert "\n" not in str(caught.value)


def test_each_end_of_a_cable_is_in_its_bridge_and_no_third_one() -> None:
    plan = lab_of("full", 5)
    ends = [(rail.bridge, rail.cable) for node in plan.nodes for rail in node.rails]
    assert sorted(bridge for bridge, _cable in ends) == sorted([*plan.bridges, *plan.bridges])
    assert len({cable for _bridge, cable in ends}) == len(ends) == 20
    by_name = {f"{node.name}/{rail.index}": rail for node in plan.nodes for rail in node.rails}
    assert all(by_name[rail.far].bridge == rail.bridge and by_name[rail.far].far == name for name, rail in by_name.items())


def test_a_lab_with_switches_has_the_bridges_it_had() -> None:
    plan = make_plan("lab", "machine", 2, 22000)
    assert plan.bridges == ("rail0", "rail1")
    assert [(rail.bridge, rail.far) for rail in plan.nodes[1].rails] == [("rail0", ""), ("rail1", "")]


def test_the_inventory_has_the_cables_and_no_addresses() -> None:
    hosts = inventory(lab_of(str(SCENARIO), 4), "key", "hosts")["all"]
    assert hosts["vars"]["rdma_fabric"]["topology"] == "mesh"
    assert hosts["vars"]["rdma_fabric"]["mesh"]["cables"][1:3] == [
        ["node1/0000:41:00.0", "node4/0000:41:00.0"],
        ["node1/0000:21:00.1", "node2/0000:21:00.1"],
    ]
    rails = {name: of["rdma_rails"] for name, of in hosts["hosts"].items()}
    assert [(rail["name"], rail["nic"]["pci"]) for rail in rails["node1"]] == [
        ("n1r0", "0000:21:00.0"),
        ("n1r1", "0000:41:00.0"),
        ("n1r2", "0000:21:00.1"),
    ]
    assert not [rail for of in rails.values() for rail in of if "address" in rail]


def test_containers_name_the_ends_of_cables_by_mac() -> None:
    mesh = inventory(lab_of("line", 2, "container"), "key", "hosts")["all"]["vars"]["rdma_fabric"]["mesh"]
    assert mesh["cables"] == [["node1/52:54:00:1a:00:01", "node2/52:54:00:1a:00:02"]]


def test_the_cables_are_loaded_with_the_lab(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RDMA_LAB_DIR", str(tmp_path))
    made = cluster.Lab(lab_of("ring", 3), LabFolder.of("lab"), Image(tmp_path / "images/x"))
    made.folder.path.mkdir(parents=True)
    cluster._write_state(made, "up")
    assert cluster.load("lab").plan == made.plan


def test_further_nics_are_functions_and_the_first_one_is_plugged_last() -> None:
    """A running machine looks for all functions of a device when the first one is plugged (QEMU's pcie_cap_slot_plug_cb)."""
    devices = machine.rail_devices(lab_of("full", 6).nodes[0])
    assert [(each["id"], each["bus"], each.get("addr"), each.get("multifunction")) for each in devices] == [
        ("nic4", "port0", "00.2", True),
        ("nic2", "port0", "00.1", True),
        ("nic3", "port1", "00.1", True),
        ("nic0", "port0", "00.0", True),
        ("nic1", "port1", "00.0", True),
    ]


def test_a_lone_nic_of_a_port_is_no_device_with_functions() -> None:
    node = lab_of("full", 4).nodes[0]
    assert [each.get("multifunction") for each in machine.rail_devices(node) if each["bus"] == "port1"] == [None]
    words = machine.qemu_arguments(node, Path("/labs/lab/node1"), Image(Path("/images/x")), [7, 8, 9])
    assert [word.split(",mac=")[0] for word in words if "id=nic" in word] == [
        "virtio-net-pci,id=nic2,netdev=rail2,bus=port0,addr=00.1,multifunction=on",
        "virtio-net-pci,id=nic0,netdev=rail0,bus=port0,addr=00.0,multifunction=on",
        "virtio-net-pci,id=nic1,netdev=rail1,bus=port1",
    ]


class Played:
    """The data plane of a lab: which cable is plugged into which bridge. Any other command fails the test."""

    def __init__(self, plan: Plan) -> None:
        self.masters = {rail.cable: rail.bridge for node in plan.nodes for rail in node.rails}

    def ip(self, _namespace: str, *words: str) -> str:
        match words:
            case ("-j", "link", "show", "dev", cable):
                return f'[{{"ifname": "{cable}", "master": "{self.masters[cable]}"}}]'
            case ("-j", "link", "show", "master", bridge):
                return str([{"ifname": cable} for cable, at in self.masters.items() if at == bridge]).replace("'", '"')
            case ("link", "set", cable, "master", bridge):
                self.masters[cable] = bridge
                return ""
        return pytest.fail(str(words))


def test_swapped_plugs_change_their_bridges_and_a_second_swap_undoes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = lab_of("ring", 4)
    played = Played(plan)
    monkeypatch.setattr(namespace, "ip", played.ip)
    before = dict(played.masters)
    one, other = plan.rail("node1", 1), plan.rail("node3", 1)
    cables.swap(plan, one, other)
    assert (played.masters["n1r1"], played.masters["n3r1"]) == (before["n3r1"], before["n1r1"])
    assert {(node.name, rail.index) for node, rail in cables.nics(plan, one)} == {("node1", 1), ("node4", 0)}
    cables.swap(plan, one, other)
    assert played.masters == before


def test_both_ends_of_one_cable_are_not_swapped(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = lab_of("line", 2)
    monkeypatch.setattr(namespace, "ip", Played(plan).ip)
    with pytest.raises(LabError, match="n1r0 and n2r0 are the two ends of one cable: to exchange them changes nothing"):
        cables.swap(plan, plan.rail("node1", 0), plan.rail("node2", 0))


def test_a_switch_has_one_nic_at_each_cable() -> None:
    plan = make_plan("lab", "machine", 2, 22000)
    assert [(node.name, rail.index) for node, rail in cables.nics(plan, plan.rail("node2", 1))] == [("node2", 1)]
