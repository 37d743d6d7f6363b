# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hosts side by side: who is the odd one out, which plan the hardware cannot have, and how long a thousand hosts take."""

from __future__ import annotations

import time
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import resolve
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._fleet.intents import check_fleet
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.read import normalize
from tests.unit.builders.hosts import lab_facts, lab_rails
from tests.unit.builders.known import known_of

Fleet = dict[str, dict[str, Any]]


def facts_of(node: int) -> dict[str, Any]:
    """The facts of a lab machine of its own, with what is read of the running system."""
    facts = lab_facts()
    facts["boot"] |= {"hostname": f"node{node}", "machine_id": f"{node:032x}"}
    for netdev in facts["netdevs"].values():
        netdev["max_mtu_bytes"] = 9000
    return facts


def fleet(count: int) -> Fleet:
    """Lab machines node1, node2, ...: all is well."""
    return {f"node{node}": {"intent": normalize({"rdma_rails": lab_rails(node)}), "facts": facts_of(node)} for node in range(1, count + 1)}


def mesh() -> Fleet:
    """Three hosts, a cable between any two."""
    addresses = {
        "node1": {"cable12": "192.168.101.2/24", "cable13": "192.168.100.2/24"},
        "node2": {"cable12": "192.168.101.3/24", "cable23": "192.168.102.2/24"},
        "node3": {"cable13": "192.168.100.3/24", "cable23": "192.168.102.3/24"},
    }
    hosts: Fleet = {}
    for host, cables in addresses.items():
        pairs = zip(lab_rails(), cables.items(), strict=True)
        rails = [{**rail, "name": name, "address": address} for rail, (name, address) in pairs]
        hosts[host] = {"intent": normalize({"rdma_rails": rails, "rdma_fabric": {"topology": "mesh"}}), "facts": facts_of(int(host[-1]))}
    return hosts


def rails(hosts: Fleet, host: str) -> list[dict[str, Any]]:
    of_host: list[dict[str, Any]] = hosts[host]["intent"]["rails"]
    return of_host


def bad(hosts: Fleet) -> dict[str, list[Finding]]:
    """What is not ok, by host, and nothing for hosts that are well."""
    found = {host: [finding for finding in findings if finding.status != OK] for host, findings in check_fleet(known_of(hosts)).items()}
    assert all(finding.host == host and finding.stage == "preflight" for host, findings in found.items() for finding in findings)
    return {host: findings for host, findings in found.items() if findings}


def brief(findings: list[Finding]) -> list[tuple[str, str, str]]:
    return [(finding.check, finding.status, finding.observed) for finding in findings]


@pytest.mark.parametrize("hosts", [fleet(2), fleet(5), mesh()], ids=["two", "five", "mesh"])
def test_a_fleet_that_is_well_gets_one_ok_for_each_check(hosts: Fleet) -> None:
    checks = [
        "intent.hosts",
        "host.identity",
        "host.identity",
        "intent.nic",
        "intent.mtu",
        "intent.alike",
        "intent.address",
        "intent.rails",
    ]
    for findings in check_fleet(known_of(hosts)).values():
        assert [(finding.check, finding.status) for finding in findings] == [(check, OK) for check in checks]


@pytest.mark.parametrize("section", ["gate", "pairs"])
def test_what_holds_for_the_whole_run_must_be_alike(section: str) -> None:
    hosts = fleet(4)
    hosts["node3"]["intent"] = {**hosts["node3"]["intent"], section: {**hosts["node3"]["intent"][section], "policy": "report"}}
    found = bad(hosts)
    assert {host: [(check, status) for check, status, _words in brief(each)] for host, each in found.items()} == {
        host: [("intent.alike", ERROR)] for host in hosts
    }
    assert brief(found["node1"])[0][2] == "policy differ between node1, node2, node4; node3"


def marked(count: int, **odd: Any) -> Fleet:
    """Lab machines with rdma_roce, the last of them with other values; None for none at all."""
    hosts = fleet(count)
    for host, known in hosts.items():
        roce = odd if host == f"node{count}" else {}
        known["intent"] = normalize({"rdma_rails": lab_rails(int(host[4:])), **({} if roce.get("none") else {"rdma_roce": roce})})
    return hosts


ROCE = [
    ({"dscp": 24}, "rdma_roce.dscp", "24; 26 on 3 of 4 hosts (node1, node2, node3)", "26"),
    ({"priority": 4}, "rdma_roce.priority", "4; 3 on 3 of 4 hosts (node1, node2, node3)", "3"),
    ({"pfc": False}, "rdma_roce.pfc", "false; true on 3 of 4 hosts (node1, node2, node3)", "true"),
    ({"cnp_dscp": 50}, "rdma_roce.cnp_dscp", "50; 48 on 3 of 4 hosts (node1, node2, node3)", "48"),
    ({"none": True}, "rdma_roce", "not set; set on 3 of 4 hosts (node1, node2, node3)", "set"),
    (
        {"dcqcn": {"rpg_threshold": 5}},
        "rdma_roce.dcqcn",
        "rpg_threshold 5; the firmware's on 3 of 4 hosts (node1, node2, node3)",
        "the firmware's",
    ),
]


@pytest.mark.parametrize(("odd", "subject", "observed", "usual"), ROCE, ids=[subject for _odd, subject, _seen, _usual in ROCE])
def test_hosts_of_one_plane_have_one_rdma_roce(odd: dict[str, Any], subject: str, observed: str, usual: str) -> None:
    found = bad(marked(4, **odd))
    assert {host: brief(each) for host, each in found.items()} == {"node4": [("intent.alike", ERROR, observed)]}
    assert (found["node4"][0].subject, found["node4"][0].expected) == (subject, f"{usual}, as on most hosts of plane lab")
    assert found["node4"][0].remedy.startswith(f"Set {subject} of node4 as on the other hosts of plane lab")


def test_of_two_hosts_that_mark_differently_the_fleet_is_refused() -> None:
    """An error of the fleet stops the build whatever the policy: excluding hosts cannot fix it."""
    found = bad(marked(2, dscp=24))
    undecided = "no value is on more than half of the hosts: see intent.alike of the fleet"
    assert {host: brief(each) for host, each in found.items()} == {
        "node1": [("intent.alike", NOT_APPLICABLE, undecided)],
        "node2": [("intent.alike", NOT_APPLICABLE, undecided)],
        "the fleet": [("intent.alike", ERROR, "26 on 1 of 2 hosts (node1), 24 on 1 of 2 hosts (node2)")],
    }
    assert found["the fleet"][0].subject == "rdma_roce.dscp"


def test_what_only_the_own_nic_knows_may_differ_and_so_may_planes() -> None:
    assert bad(marked(4, cable_length_m=30, dcbx="firmware")) == {}
    hosts = marked(4, dscp=24)
    for rail in rails(hosts, "node4"):
        rail["plane"] = "other"
    assert {finding.check for findings in bad(hosts).values() for finding in findings} == {"intent.rails"}


def test_a_difference_on_several_planes_is_one_finding() -> None:
    hosts = marked(4, dscp=24)
    for host in hosts:
        rails(hosts, host)[1]["plane"] = "second"
    (finding,) = bad(hosts)["node4"]
    assert finding.expected == "26, as on most hosts of planes lab, second"


def test_an_address_that_two_hosts_have() -> None:
    hosts = fleet(4)
    rails(hosts, "node3")[1]["address"] = "192.168.101.1/24"
    found = bad(hosts)
    assert brief(found["node3"]) == [("intent.address", ERROR, "192.168.101.1 is also that of rail1 of node1")]
    assert brief(found["node1"]) == [("intent.address", ERROR, "192.168.101.1 is also that of rail1 of node3")]
    assert found.keys() == {"node1", "node3"}
    assert found["node3"][0].subject == "rail 1 (rail1, 0000:41:00.0)"


def test_an_address_outside_its_rail_s_subnet() -> None:
    hosts = fleet(4)
    rails(hosts, "node3")[1]["address"] = "192.168.110.3/24"
    found = bad(hosts)
    seen = "subnet 192.168.110.0/24; 192.168.101.0/24 on 3 of 4 hosts (node1, node2, node4)"
    assert {host: brief(findings) for host, findings in found.items()} == {"node3": [("intent.address", ERROR, seen)]}
    assert found["node3"][0].expected == "subnet 192.168.101.0/24"
    assert found["node3"][0].remedy == "Correct subnet of rail 1 (rail1, 0000:41:00.0) in rdma_rails of node3."


def test_the_vlan_of_a_subnet_is_one_and_that_of_routed_hosts_need_not_be() -> None:
    hosts = fleet(4)
    for host in hosts:
        rails(hosts, host)[0]["vlan"] = {"id": 101 if host == "node3" else 100, "pcp": None}
    seen = "vlan 101; 100 on 3 of 4 hosts (node1, node2, node4)"
    assert {host: brief(findings) for host, findings in bad(hosts).items()} == {"node3": [("intent.rails", ERROR, seen)]}
    for number, host in enumerate(hosts):
        rails(hosts, host)[0].update(address=f"10.0.{number}.1/24", gateway=f"10.0.{number}.254", routes=["10.0.0.0/16"])
    assert bad(hosts) == {}


@pytest.mark.parametrize(("key", "value"), [("link_layer", "infiniband"), ("mtu_bytes", 1500), ("plane", "b")])
def test_the_odd_one_out_on_a_rail(key: str, value: Any) -> None:
    hosts = fleet(4)
    usual = rails(hosts, "node2")[0][key]
    rails(hosts, "node2")[0][key] = value
    seen = f"{key} {value}; {usual} on 3 of 4 hosts (node1, node3, node4)"
    assert {host: brief(findings) for host, findings in bad(hosts).items()} == {"node2": [("intent.rails", ERROR, seen)]}


def test_a_rail_that_is_missing_and_one_in_another_place() -> None:
    hosts = fleet(5)
    del rails(hosts, "node2")[1]
    rails(hosts, "node4").reverse()
    found = bad(hosts)
    most = "rail0, rail1 on 3 of 5 hosts (node1, node3, node5)"
    assert brief(found["node2"]) == [("intent.rails", ERROR, f"names rail0; {most}")]
    assert brief(found["node4"]) == [("intent.rails", ERROR, f"names rail1, rail0; {most}")]


def test_half_against_half_is_a_warning_of_the_fleet() -> None:
    hosts = fleet(2)
    rails(hosts, "node2")[0] |= {"mtu_bytes": 1500, "address": "10.0.0.1/24"}
    found = bad(hosts)
    whole = brief(found.pop("the fleet"))
    assert [status for findings in found.values() for _check, status, _seen in brief(findings)] == [NOT_APPLICABLE] * 4
    assert whole == [
        ("intent.rails", WARNING, "mtu_bytes: 9000 on 1 of 2 hosts (node1), 1500 on 1 of 2 hosts (node2)"),
        ("intent.address", WARNING, "subnet: 192.168.100.0/24 on 1 of 2 hosts (node1), 10.0.0.0/24 on 1 of 2 hosts (node2)"),
    ]


def test_hosts_for_storage_are_no_odd_ones_among_those_for_computing() -> None:
    hosts = fleet(5)
    for node in ("node4", "node5"):
        for rail in rails(hosts, node):
            rail |= {"name": f"storage_{rail['name']}", "role": "storage", "address": rail["address"].replace("168.10", "168.20")}
    assert bad(hosts) == {}


def test_one_host_alone_is_warned_that_there_is_nothing_to_measure() -> None:
    found = bad(fleet(1))["node1"]
    assert brief(found) == [
        ("intent.hosts", WARNING, "a single host, which has no partner to measure a pair"),
        ("intent.rails", NOT_APPLICABLE, "no like host to compare with"),
    ]


@pytest.mark.parametrize(("key", "subject"), [("hostname", "hostname"), ("machine_id", "machine-id")])
def test_one_identity_on_two_hosts(key: str, subject: str) -> None:
    hosts = fleet(3)
    value = "golden-image"
    for host in ("node1", "node3"):
        hosts[host]["facts"]["boot"][key] = value
    found = bad(hosts)
    assert {host: brief(findings) for host, findings in found.items()} == {
        "node1": [("host.identity", ERROR, f"{value} is also that of node3")],
        "node3": [("host.identity", ERROR, f"{value} is also that of node1")],
    }
    assert found["node1"][0].subject == subject


@pytest.mark.parametrize("hostname", ["node1", "node1.example.com"])
def test_no_host_excludes_another_by_taking_its_name(hostname: str) -> None:
    hosts = fleet(3)
    for host in ("node1", "node3"):
        hosts[host]["facts"]["boot"]["hostname"] = hostname
    assert {host: brief(findings) for host, findings in bad(hosts).items()} == {
        "node1": [("host.identity", WARNING, f"{hostname} is also that of node3")],
        "node3": [("host.identity", ERROR, f"{hostname} is the name of another host of the inventory, node1")],
    }


def with_guids(link_layer: str, *guids: str) -> Fleet:
    """Hosts whose first rail has a device with a GUID."""
    hosts = fleet(len(guids))
    for host, guid in zip(hosts.values(), guids, strict=True):
        host["intent"]["rails"][0]["link_layer"] = link_layer
        (device,) = [each.device for each in resolve(host["intent"]["rails"][:1], from_dict(host["facts"]))]
        host["facts"]["devices"][device]["node_guid"] = guid
    return hosts


def test_a_guid_that_two_hosts_claim_names_both() -> None:
    found = bad(with_guids("infiniband", "0002:c903:0002:fb02", "0002:c903:0002:fb03", "0002:c903:0002:fb02"))
    assert {host: brief(findings) for host, findings in found.items()} == {
        "node1": [("host.identity", ERROR, "node GUID 0002:c903:0002:fb02 is also that of node3")],
        "node3": [("host.identity", ERROR, "node GUID 0002:c903:0002:fb02 is also that of node1")],
    }


def test_guids_of_roce_are_no_keys_and_are_not_compared() -> None:
    assert bad(with_guids("roce", "0002:c903:0002:fb02", "0002:c903:0002:fb02")) == {}


def test_an_mtu_above_what_the_nic_carries() -> None:
    hosts = fleet(2)
    hosts["node2"]["facts"]["netdevs"]["ens2"]["max_mtu_bytes"] = 1500
    found = bad(hosts)
    assert brief(found["node2"]) == [("intent.mtu", ERROR, "at most 1500 bytes")]
    assert "ens2" in found["node2"][0].subject
    assert found.keys() == {"node2"}


def test_a_nic_that_is_not_there_names_those_that_are() -> None:
    hosts = fleet(2)
    rails(hosts, "node2")[1]["nic"] = {"pci": "0000:99:00.0"}
    assert brief(bad(hosts)["node2"]) == [
        ("intent.nic", ERROR, "no NIC with pci 0000:99:00.0; there are 0000:00:02.0, 0000:21:00.0, 0000:41:00.0"),
        ("intent.mtu", NOT_APPLICABLE, "the NIC is missing"),
    ]


@pytest.mark.parametrize("vlans", [{}, {"vlan": {"id": 100, "pcp": None}}])
def test_two_rails_on_one_nic_by_its_address_and_by_its_mac(vlans: dict[str, Any]) -> None:
    """The intent alone cannot know that both are one NIC."""
    hosts = fleet(2)
    mac = hosts["node2"]["facts"]["netdevs"]["ens1"]["mac"]
    rails(hosts, "node2")[1].update(nic={"mac": mac}, **vlans)
    [finding] = [each for each in bad(hosts)["node2"] if each.check == "intent.nic"]
    assert (finding.status, finding.observed) == (ERROR, f"{mac} is ens1, like 0000:21:00.0 of rail0")
    assert "a NIC has one rail, on one VLAN" in finding.remedy


def test_the_guid_of_a_card_with_two_ports_is_an_error_whatever_driver_is_loaded() -> None:
    hosts = fleet(2)
    facts = hosts["node2"]["facts"]
    ports = {number: {"gids": [{"index": 0, "gid": f"fe80:0000:0000:0000:0002:c903:00f9:bfa{number}"}]} for number in ("1", "2")}
    facts["devices"]["mlx4_0"] = {
        "node_guid": "0002:c903:00f9:bfa0",
        "ports": {n: {**p, "link_layer": "InfiniBand"} for n, p in ports.items()},
    }
    rails(hosts, "node2")[1] |= {"nic": {"guid": "0x0002c90300f9bfa0"}, "link_layer": "infiniband", "soft": False}
    words = "guid 0x0002c90300f9bfa0 is that of several ports: mlx4_0/1 (0x0002c90300f9bfa1), mlx4_0/2 (0x0002c90300f9bfa2)"
    [finding] = [each for each in bad(hosts)["node2"] if each.check == "intent.nic"]
    assert (finding.status, finding.observed) == (ERROR, words)
    assert finding.remedy == "In rdma_rails of node2, set `nic` of rail1 to the GUID of one of these ports."


@pytest.mark.parametrize(("modules", "status"), [({}, WARNING), ({"mlx5_core": {}}, ERROR)])
def test_a_missing_nic_proves_nothing_before_its_driver_is_loaded(modules: dict[str, Any], status: str) -> None:
    hosts = fleet(2)
    for host in hosts:
        rails(hosts, host)[1] |= {"nic": {"pci": "0000:99:00.0"}, "soft": False}
        hosts[host]["facts"]["stack"]["modules"] = modules
    assert [finding.status for finding in bad(hosts)["node1"] if finding.check == "intent.nic"] == [status]


def test_without_facts_it_is_unknown_what_the_host_has() -> None:
    hosts = fleet(2)
    hosts["node2"]["facts"] = None
    found = bad(hosts)
    assert [(finding.check, finding.status) for finding in found["node2"]] == [
        (check, UNKNOWN) for check in ("host.identity", "host.identity", "intent.nic", "intent.mtu")
    ]
    assert found.keys() == {"node2"}


def test_facts_of_a_captured_tree_leave_unknown_what_is_not_in_it() -> None:
    hosts = fleet(2)
    facts = hosts["node1"]["facts"]
    del facts["boot"]["hostname"]
    for netdev in facts["netdevs"].values():
        del netdev["max_mtu_bytes"]
    assert {(finding.check, finding.status) for finding in bad(hosts)["node1"]} == {("host.identity", UNKNOWN), ("intent.mtu", UNKNOWN)}


def test_a_host_without_valid_intent_is_unknown_and_no_part_of_any_majority() -> None:
    hosts = fleet(3)
    hosts["node2"]["intent"] = None
    assert {host: brief(findings) for host, findings in bad(hosts).items()} == {"node2": [("intent.rails", UNKNOWN, "no valid intent")]}


@pytest.mark.parametrize(("key", "value", "what"), [("mtu_bytes", 1500, "mtu_bytes 9000"), ("plane", "b", "plane lab")])
def test_the_two_ends_of_a_cable_must_agree(key: str, value: Any, what: str) -> None:
    hosts = mesh()
    rails(hosts, "node2")[0][key] = value
    found = bad(hosts)
    seen = [("intent.rails", ERROR, f"{what} on node1, {value} on node2")]
    assert {host: brief(findings) for host, findings in found.items()} == {"node1": seen, "node2": seen}


def test_the_two_ends_of_a_cable_are_in_one_subnet() -> None:
    hosts = mesh()
    rails(hosts, "node2")[0]["address"] = "192.168.111.3/24"
    seen = [("intent.address", ERROR, "subnet 192.168.101.0/24 on node1, 192.168.111.0/24 on node2")]
    assert {host: brief(findings) for host, findings in bad(hosts).items()} == {"node1": seen, "node2": seen}


def test_a_cable_has_two_ends() -> None:
    hosts = mesh()
    rails(hosts, "node2")[0]["name"] = "cable13"
    found = bad(hosts)
    assert brief(found["node1"])[0] == ("intent.rails", ERROR, "cable12 is on 1 host (node1)")
    assert ("intent.rails", ERROR, "cable13 is on 3 hosts (node1, node2, node3)") in brief(found["node3"])


def test_two_cables_in_one_subnet() -> None:
    hosts = mesh()
    rails(hosts, "node2")[1]["address"], rails(hosts, "node3")[1]["address"] = "192.168.101.4/24", "192.168.101.5/24"
    assert brief(bad(hosts)["node1"]) == [("intent.address", ERROR, "192.168.101.0/24 is also the subnet of cable23")]


def big(count: int) -> Fleet:
    """Hosts with eight rails each, and facts to match."""
    hosts: Fleet = {}
    roce = marked(1)["node1"]["intent"]["roce"]
    for node in range(count):
        planned = [
            {
                **lab_rails()[0],
                "name": f"rail{rail}",
                "nic": {"pci": f"0000:{rail:02x}:00.0"},
                "address": f"10.{rail}.{node // 250}.{node % 250 + 1}/16",
                "gateway": None,
                "routes": [],
            }
            for rail in range(8)
        ]
        netdevs = {f"eth{rail}": {"pci": f"0000:{rail:02x}:00.0", "max_mtu_bytes": 9216, "dev_port": 0} for rail in range(8)}
        facts = {"netdevs": netdevs, "devices": {}, "boot": {"hostname": f"h{node}", "machine_id": f"{node:032x}"}}
        fabric = {"topology": "switched", "planes": {}, "shared_subnet": False}
        intent = {"rails": planned, "fabric": fabric, "gate": {}, "pairs": {}, "roce": roce}
        hosts[f"h{node}"] = {"intent": intent, "facts": facts}
    return hosts


@pytest.mark.parametrize("worst", [False, True], ids=["well", "everything doubled"])
def test_a_thousand_hosts_take_seconds(worst: bool) -> None:
    hosts = big(1000)
    if worst:
        for node, known in enumerate(hosts.values()):
            known["facts"]["boot"] = {"hostname": "localhost", "machine_id": "0"}
            known["intent"] |= {"gate": {"max_failed_percent": node / 10}}
            known["intent"]["roce"] = {**known["intent"]["roce"], "dscp": node % 64, "priority": node % 8}
            for rail in known["intent"]["rails"]:
                rail |= {"address": "10.0.0.1/24", "mtu_bytes": 2000 + node}
    fleet = known_of(hosts)
    started = time.monotonic()
    found = check_fleet(fleet)
    assert time.monotonic() - started < 5
    assert len(found) == (1001 if worst else 1000)
    lines = [len(finding.observed) for findings in found.values() for finding in findings]
    assert max(lines) < 300
    assert any(finding.status == ERROR for findings in found.values() for finding in findings) is worst


def routed() -> Fleet:
    """Three hosts, each in subnets of its own, which routers join."""
    hosts = fleet(3)
    for node, host in enumerate(hosts, 1):
        for number, rail in enumerate(rails(hosts, host)):
            subnet = f"10.{number}.{node}"
            rail.update(address=f"{subnet}.1/24", gateway=f"{subnet}.254", routes=[f"10.{number}.0.0/16"])
    return hosts


def test_rails_whose_hosts_are_in_different_subnets() -> None:
    assert bad(routed()) == {}


def test_a_host_without_a_route_to_the_subnet_of_another_one() -> None:
    hosts = routed()
    rails(hosts, "node2")[0]["routes"] = ["10.0.1.0/24"]
    found = bad(hosts)
    assert brief(found["node2"]) == [("intent.address", ERROR, "no route to 10.0.3.0/24 (node3)")]
    assert "give rail0 a gateway and routes that contain 10.0.3.0/24" in found["node2"][0].remedy
    assert list(found) == ["node2"]


def test_one_rail_of_a_plane_has_the_routes_to_all_its_subnets() -> None:
    """The main table can have a route once only. The other rail has a gateway, and so a table of its own."""
    hosts = routed()
    for host in ("node1", "node2", "node3"):
        first, second = rails(hosts, host)
        first.update(plane="fab", routes=["10.0.0.0/15"])
        second.update(plane="fab", routes=[])
    assert bad(hosts) == {}
    # The switches of another plane do not lead there.
    for host in ("node1", "node2", "node3"):
        rails(hosts, host)[1]["plane"] = "other"
    assert {host: len(found) for host, found in bad(hosts).items()} == {"node1": 1, "node2": 1, "node3": 1}


def test_a_host_without_a_gateway_among_routed_ones() -> None:
    hosts = routed()
    rails(hosts, "node3")[1].update(gateway=None, routes=[])
    assert brief(bad(hosts)["node3"]) == [("intent.address", ERROR, "no route to 10.1.1.0/24 (node1); 10.1.2.0/24 (node2)")]


def test_a_rail_with_two_families_names_both_hosts() -> None:
    hosts = fleet(3)
    for rail in rails(hosts, "node2"):
        rail.update(address=f"2001:db8:{rail['name'][-1]}::2/64", addresses=[rail["address"]])
    found = bad(hosts)
    assert set(found) == {"node2"}
    assert brief(found["node2"])[0] == (
        "intent.address", ERROR, "2001:db8:0::2/64 of node2 is IPv6, 192.168.100.1/24 of node1 is IPv4",
    )  # fmt: skip
    two = fleet(2)
    rails(two, "node2")[0]["address"] = "2001:db8::2/64"
    assert {host: len(findings) for host, findings in bad(two).items()} == {"node1": 1, "node2": 1}


def test_further_addresses_that_only_some_hosts_have_and_that_two_have() -> None:
    hosts = fleet(3)
    for node in (1, 2, 3):
        rails(hosts, f"node{node}")[0].update(address=f"2001:db8::{node}/64", addresses=[f"192.168.100.{node}/24"] if node < 3 else [])
    assert brief(bad(hosts)["node3"]) == [("intent.address", ERROR, "families IPv6; IPv6 and IPv4 on 2 of 3 hosts (node1, node2)")]
    rails(hosts, "node3")[0]["addresses"] = ["192.168.100.1/24"]
    assert [each for each in brief(bad(hosts)["node3"]) if "is also that of" in each[2]]


def test_routed_rails_of_ipv6() -> None:
    hosts = fleet(2)
    for node in (1, 2):
        rails(hosts, f"node{node}")[0].update(address=f"2001:db8:{node}::1/64", gateway="fe80::1", routes=["2001:db8::/32"])
    assert bad(hosts) == {}
    rails(hosts, "node1")[0]["routes"] = ["2001:db8:9::/48"]
    assert brief(bad(hosts)["node1"])[0][2].startswith("no route to 2001:db8:2::/64 (node2)")
