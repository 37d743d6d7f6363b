# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From the plan's NIC to the interface and RDMA device of a host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._net.bonds import SeenBond, SeenMember
from ansible_collections.rdma.cluster.plugins.module_utils._net.links import SeenVlan
from ansible_collections.rdma.cluster.plugins.module_utils._net.netdev import Netdev
from ansible_collections.rdma.cluster.plugins.module_utils._pci.functions import PciFunction
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.device import Device, Gid, Port
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import (
    ResolvedRail,
    address_netdev,
    find_netdev,
    nic_function,
    no_nic_words,
    resolve,
)
from tests.unit.builders.hosts import lab_facts, lab_rails


def made(cls: Any, reported: Mapping[str, Any]) -> Any:
    """A dataclass of the given fields; the rest is None."""
    return cls(**{field.name: reported.get(field.name) for field in fields(cls)})


def device(reported: Mapping[str, Any]) -> Device:
    pci = reported["pci"] and made(PciFunction, reported["pci"])
    ports = {number: made(Port, port) for number, port in reported["ports"].items()}
    found: Device = made(Device, {**reported, "pci": pci, "ports": ports})
    return found


@dataclass
class Machine:
    netdevs: dict[str, Netdev]
    devices: dict[str, Device]
    vlans: dict[str, SeenVlan] | None = None
    bonds: dict[str, SeenBond] | None = None


def lab() -> Machine:
    facts = lab_facts()
    netdevs = {name: made(Netdev, netdev) for name, netdev in facts["netdevs"].items()}
    return Machine(netdevs, {name: device(each) for name, each in facts["devices"].items()})


def test_rails_of_a_lab_machine() -> None:
    found = [(rail.name, rail.netdev, rail.device, rail.port) for rail in resolve(lab_rails(), lab())]
    assert found == [("rail0", "ens1", "rxe_rail0", "1"), ("rail1", "ens2", "rxe_rail1", "1")]


def test_of_a_host_that_nothing_is_known_of_nothing_is_found() -> None:
    assert [(rail.name, rail.netdev, rail.device) for rail in resolve(lab_rails()[:1], None)] == [("rail0", None, None)]


def test_subject_names_rail_nic_and_interface() -> None:
    assert resolve(lab_rails(), lab())[1].subject == "rail 1 (rail1, 0000:41:00.0, ens2)"


def test_nic_by_mac_in_any_case() -> None:
    assert find_netdev({"mac": "52:54:00:1A:01:01"}, lab().netdevs) == "ens2"


def test_a_nic_that_is_not_there_resolves_to_nothing() -> None:
    rails = [{**lab_rails()[0], "nic": {"pci": "0000:99:00.0"}}]
    found = resolve(rails, lab())[0]
    assert (found.netdev, found.device, found.port) == (None, None, None)
    assert no_nic_words(found, lab()) == "no NIC with pci 0000:99:00.0; there are 0000:00:02.0, 0000:21:00.0, 0000:41:00.0"


def test_of_two_interfaces_on_one_function_the_lowest_port_wins() -> None:
    netdevs = {"b": {"pci": "0000:01:00.0", "dev_port": 0}, "a": {"pci": "0000:01:00.0", "dev_port": 1}}
    assert find_netdev({"pci": "0000:01:00.0"}, {name: made(Netdev, reported) for name, reported in netdevs.items()}) == "b"


def test_infiniband_port_without_interface_is_found_by_its_pci_function() -> None:
    machine = Machine({}, {"mlx5_0": device({"pci": {"address": "0000:3d:00.0"}, "ports": {"1": {"netdev": None}}})})
    rail = {**lab_rails()[0], "nic": {"pci": "0000:3D:00.0"}}
    assert resolve([rail], machine)[0].device == "mlx5_0"


def test_the_interface_of_a_part_is_taken_only_if_no_other_is_there() -> None:
    kinds = {"en3f0pf0sf0": "representor", "p0": "pf"}
    netdevs = {name: made(Netdev, {"pci": "0000:03:00.0", "dev_port": 0, "function": kind}) for name, kind in kinds.items()}
    assert find_netdev({"pci": "0000:03:00.0"}, netdevs) == "p0"
    del netdevs["p0"]
    assert find_netdev({"pci": "0000:03:00.0"}, netdevs) == "en3f0pf0sf0"


def test_a_rail_takes_the_device_of_its_kind() -> None:
    machine = lab()
    machine.devices["a_card"] = replace(machine.devices["rxe_rail0"], software=False)
    hard = {**lab_rails()[0], "soft": False}
    assert [resolve([rail], machine)[0].device for rail in (lab_rails()[0], hard)] == ["rxe_rail0", "a_card"]
    del machine.devices["a_card"]
    assert resolve([hard], machine)[0].device == "rxe_rail0"


def port(guid: str, netdev: str | None = None, link_layer: str = "InfiniBand") -> dict[str, Any]:
    gid = Gid(0, f"fe80:0000:0000:0000:{guid}", None, None, None)
    return {"netdev": netdev, "link_layer": link_layer, "gids": [gid]}


def infiniband() -> Machine:
    """A card with two ports on one function, one with a function for each port, and a software device. GUIDs as the cards number them."""
    both = {"1": port("0002:c903:00f9:bfa1"), "2": port("0002:c903:00f9:bfa2", "ib1")}
    devices = {
        "mlx4_0": {"node_guid": "0002:c903:00f9:bfa0", "pci": {"address": "0000:04:00.0"}, "ports": both},
        "mlx5_0": {
            "node_guid": "0c42:a103:007a:ca90",
            "pci": {"address": "0000:3d:00.0"},
            "ports": {"1": port("0c42:a103:007a:ca90", "ib2")},
        },
        "mlx5_1": {
            "node_guid": "0c42:a103:007a:ca91",
            "pci": {"address": "0000:3d:00.1"},
            "ports": {"1": port("0e42:a1ff:fe7a:ca91", "ens3", "Ethernet")},
        },
        "rxe0": {
            "software": True,
            "node_guid": "0c42:a103:007a:ca99",
            "pci": None,
            "ports": {"1": port("0c42:a103:007a:ca99", "ens9", "Ethernet")},
        },
    }
    netdevs = {name: made(Netdev, {"mac": None}) for name in ("ib1", "ib2", "ens3", "ens9")}
    return Machine(netdevs, {name: device(each) for name, each in devices.items()})


def by_guid(guid: str) -> ResolvedRail:
    return resolve([{**lab_rails()[0], "link_layer": "infiniband", "nic": {"guid": guid}}], infiniband())[0]


@pytest.mark.parametrize(
    ("guid", "place"),
    [
        pytest.param("0x0002c90300f9bfa1", (None, "mlx4_0", "1"), id="first port of two, without an interface"),
        pytest.param("0x0002c90300f9bfa2", ("ib1", "mlx4_0", "2"), id="second port"),
        pytest.param("0x0c42a103007aca90", ("ib2", "mlx5_0", "1"), id="a port GUID that is also the node GUID"),
        pytest.param("0x0c42a103007aca91", ("ens3", "mlx5_1", "1"), id="node GUID of a port that is Ethernet at the moment"),
        pytest.param("0x0e42a1fffe7aca91", (None, None, None), id="the GID of an Ethernet port is not a GUID"),
        pytest.param("0x0c42a103007aca99", (None, None, None), id="a software device is not a card"),
        pytest.param("0x0002c90300f9bfa0", (None, None, None), id="node GUID of two ports"),
    ],
)
def test_a_port_by_its_guid(guid: str, place: tuple[str | None, ...]) -> None:
    found = by_guid(guid)
    assert (found.netdev, found.device, found.port) == place
    assert found.nic == guid


def test_an_ambiguous_guid_names_the_ports() -> None:
    words = no_nic_words(by_guid("0x0002c90300f9bfa0"), infiniband())
    assert words == "guid 0x0002c90300f9bfa0 is that of several ports: mlx4_0/1 (0x0002c90300f9bfa1), mlx4_0/2 (0x0002c90300f9bfa2)"


def test_a_guid_that_no_port_has_names_the_nearest() -> None:
    assert no_nic_words(by_guid("0x0c42a103007acb90"), infiniband()) == (
        "no port with guid 0x0c42a103007acb90; the nearest is 0x0c42a103007aca90 (mlx5_0/1); there are 0x0002c90300f9bfa1 (mlx4_0/1), "
        "0x0002c90300f9bfa2 (mlx4_0/2), 0x0c42a103007aca90 (mlx5_0/1), 0x0002c90300f9bfa0 (node GUID of mlx4_0), "
        "0x0c42a103007aca91 (node GUID of mlx5_1)"
    )
    assert no_nic_words(by_guid("0x0c42a103007acb90"), Machine({}, {})) == "no port with guid 0x0c42a103007acb90; there are none"


def test_at_boot_the_nic_is_found_by_its_pci_function() -> None:
    assert nic_function(by_guid("0x0c42a103007aca90"), infiniband()) == {"pci": "0000:3d:00.0"}
    assert nic_function(resolve(lab_rails(), lab())[0], lab()) == {"pci": "0000:21:00.0"}


VLAN_RAIL = {**lab_rails()[0], "vlan": {"id": 100, "pcp": None}}


def test_a_rail_on_a_vlan_has_its_address_on_another_interface_than_its_nic() -> None:
    machine = lab()
    rail = resolve([VLAN_RAIL], machine)[0]
    assert (rail.netdev, rail.interface, rail.device) == ("ens1", "ens1.100", "rxe_rail0")
    assert rail.subject == "rail 0 (rail0, 0000:21:00.0, ens1, ens1.100)"
    assert address_netdev(rail, machine) is None
    machine.netdevs["ens1.100"] = made(Netdev, {"mtu_bytes": 9000})
    assert address_netdev(rail, machine) == machine.netdevs["ens1.100"]


def test_a_rail_without_vlan_has_one_interface() -> None:
    assert [(rail.netdev, rail.interface) for rail in resolve(lab_rails(), lab())] == [("ens1", "ens1"), ("ens2", "ens2")]


def test_a_vlan_that_is_there_keeps_its_name() -> None:
    machine = lab()
    machine.vlans = {"storage": SeenVlan("ens1", 100), "ens1.100": SeenVlan("ens2", 100)}
    assert resolve([VLAN_RAIL], machine)[0].interface == "storage"


def test_a_long_name_of_a_nic_gives_way_to_the_rail_s() -> None:
    machine = lab()
    machine.netdevs["enp193s0f0np0"] = machine.netdevs.pop("ens1")
    assert resolve([VLAN_RAIL], machine)[0].interface == "rail0.100"


def test_a_vlan_has_the_mac_of_its_nic_and_is_not_the_nic() -> None:
    machine = lab()
    machine.netdevs["a.100"] = machine.netdevs["ens1"]
    machine.vlans = {"a.100": SeenVlan("ens1", 100)}
    rail = {**VLAN_RAIL, "nic": {"mac": str(machine.netdevs["ens1"].mac)}}
    assert [(each.netdev, each.interface) for each in resolve([rail], machine)] == [("ens1", "a.100")]


def test_a_rail_on_a_bond_is_found_by_its_members() -> None:
    machine = lab()
    rail = {**lab_rails()[0], "bond": {"members": [each["nic"] for each in lab_rails()], "mode": "802.3ad"}}
    found = resolve([rail], machine)[0]
    assert (found.netdev, found.netdevs, found.bond, found.interface) == ("ens1", ["ens1", "ens2"], "bond-rail0", "bond-rail0")
    machine.bonds = {"bond0": SeenBond("802.3ad", members={"ens1": SeenMember(up=True), "ens2": SeenMember(up=True)})}
    machine.netdevs["bond0"] = made(Netdev, {"mac": machine.netdevs["ens1"].mac})
    port = replace(machine.devices["rxe_rail0"].ports["1"], netdev="bond0")
    machine.devices = {"mlx5_bond_0": replace(machine.devices["rxe_rail0"], ports={"1": port})}
    on_vlan = {**rail, "vlan": {"id": 100, "pcp": None}}
    assert [(each.bond, each.interface, each.device) for each in resolve([rail, on_vlan], machine)] == [
        ("bond0", "bond0", "mlx5_bond_0"),
        ("bond0", "bond0.100", "mlx5_bond_0"),
    ]
