# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is found of a rail on a VLAN: by network.vlan, and by the checks of its address, MTU, GID and next boot."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._net.backends import choice
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_links import make_rails
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_network import Running, ours_among
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.network.addressing import check_addressing
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.network.boot import check_boot
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.network.links import check_bonds, check_vlans
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.network.network import check_network
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.network.openings import openings
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.preflight.preflight import check_ssh
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.read import normalize
from ansible_collections.rdma.cluster.plugins.plugin_utils._plan.differences import network_differs, network_rails
from tests.unit.builders.hosts import lab_facts, lab_rails, on_host

ALONE = Running(networkd=True, networkmanager=False)
SUBJECT = "rail 0 (rail0, 0000:21:00.0, ens1, ens1.100)"
EVERY = {str(priority): 3 for priority in range(8)}
FOLDER = "/etc/systemd/network"


def rails(pcp: int | None = None) -> list[Any]:
    given = [{**lab_rails()[0], "vlan": {"id": 100, "pcp": pcp}}, lab_rails()[1]]
    return list(normalize({"rdma_rails": given, **({"rdma_roce": {}} if pcp else {})})["rails"])


def tree(**vlan: Any) -> dict[str, Any]:
    """A lab machine whose first rail is on a VLAN. vlan: changes of what is read of it."""
    facts = lab_facts()
    nic = facts["netdevs"]["ens1"]
    own = {**nic["boot"], "file": f"{FOLDER}/60-rdma-rail0@vlan.network"}
    facts["netdevs"]["ens1.100"] = {**nic, "driver": None, "pci": None, "boot": own}
    facts["netdevs"]["ens1"] = {**nic, "ipv4": [], "boot": {**nic["boot"], "addresses": []}}
    facts["interfaces"] = {**facts["interfaces"], "ens1.100": {"admin_up": True, "ipv4": nic["ipv4"]}}
    facts["interfaces"]["ens1"] = {"admin_up": True, "ipv4": []}
    facts["files"][f"{FOLDER}/60-rdma-rail0@vlan.network"] = {}
    facts["vlans"] = {"ens1.100": {"parent": "ens1", "id": 100, "egress": {}, **vlan}}
    return facts


def without(facts: dict[str, Any]) -> dict[str, Any]:
    """The same before the network stage."""
    del facts["netdevs"]["ens1.100"], facts["interfaces"]["ens1.100"]
    facts["devices"]["rxe_rail0"]["ports"]["1"]["rocev2"] = {}
    return {**facts, "vlans": {}}


def found(facts: dict[str, Any], pcp: int | None = None) -> tuple[str, str, str]:
    [finding] = check_vlans("node1", rails(pcp), from_dict(facts))
    assert (finding.check, finding.subject) == ("network.vlan", SUBJECT)
    return finding.status, finding.observed, finding.remedy


def test_a_vlan_as_planned() -> None:
    assert found(tree()) == ("ok", "ens1.100", "")
    assert found(tree(egress=EVERY), pcp=3) == ("ok", "ens1.100, PCP 3", "")


def test_a_rail_without_vlan_has_no_finding() -> None:
    assert check_vlans("node1", normalize({"rdma_rails": lab_rails()})["rails"], from_dict(lab_facts())) == []


STAGE = "Run `ansible-playbook rdma.cluster.network --limit node1` on the control node."


@pytest.mark.parametrize(
    ("facts", "pcp", "status", "observed"),
    [
        (without(tree()), None, "error", "no interface ens1.100"),
        ({**tree(), "vlans": {}}, None, "error", "ens1.100 is another interface, not a VLAN"),
        (tree(), 3, "error", "ens1.100 has PCP 0"),
        (tree(egress={"0": 3}), 3, "error", "ens1.100 has PCP 3 for the priorities 0"),
        ({**tree(), "vlans": {"ens1.100": {"parent": "ens2", "id": 7, "egress": {}}}}, None, "error", "ens1.100 is VLAN 7 on ens2"),
        ({**tree(), "vlans": None}, None, "unknown", "the VLANs were not read"),
    ],
)
def test_what_is_wrong(facts: dict[str, Any], pcp: int | None, status: str, observed: str) -> None:
    seen = found(facts, pcp)
    assert seen[:2] == (status, observed)
    assert seen[2].endswith(STAGE) or status == "unknown"


def test_without_its_nic_nothing_is_said_of_the_vlan() -> None:
    facts = tree()
    del facts["netdevs"]["ens1"]
    [finding] = check_vlans("node1", rails(), from_dict(facts))
    assert (finding.status, finding.observed) == ("not_applicable", "no interface: see driver.nic")


def statuses(facts: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """Check → status and what was seen of rail 0, of the checks that look at the interface with the address."""
    seen, planned = from_dict(facts), rails()
    findings = [
        *check_addressing("node1", planned, seen),
        *check_network("node1", planned, seen),
        *check_boot("node1", planned, seen, "auto"),
    ]
    return {each.check: (each.status, each.observed) for each in findings if each.subject.startswith("rail 0")}


def test_the_other_checks_look_at_the_vlan() -> None:
    assert {check: status for check, (status, _observed) in statuses(tree()).items()} == {
        "network.address": "ok", "network.manager": "ok", "network.mtu": "ok", "network.gid": "ok", "network.boot": "ok",
    }  # fmt: skip


def test_before_the_network_stage_one_check_names_the_missing_vlan() -> None:
    seen = statuses(without(tree()))
    assert seen["network.gid"][0] == "error"
    assert {check: text for check, (status, text) in seen.items() if status == "not_applicable"} == dict.fromkeys(
        ("network.address", "network.manager", "network.mtu", "network.boot"), "no interface ens1.100: see network.vlan"
    )


@pytest.mark.parametrize("netdev", ["ens1", "ens1.100"])
def test_a_file_of_others_on_the_nic_or_the_vlan_is_an_error_of_the_next_boot(netdev: str) -> None:
    facts = tree()
    facts["netdevs"][netdev]["boot"] = {**facts["netdevs"][netdev]["boot"], "file": f"{FOLDER}/50-a.network"}
    status, observed = statuses(facts)["network.boot"]
    assert (status, observed) == ("error", f"{FOLDER}/50-a.network applies to {netdev}")


def test_the_address_on_the_nic_itself_is_an_error() -> None:
    facts = tree()
    facts["netdevs"]["ens1"]["ipv4"] = ["192.168.100.1/24"]
    [astray] = [each for each in check_addressing("node1", rails(), from_dict(facts)) if each.subject == "interface ens1"]
    assert (astray.status, astray.observed) == ("error", "192.168.100.1/24 on ens1 is the address of rail0 (192.168.100.1/24)")


def test_firewall_and_session_know_the_vlan() -> None:
    assert [each.netdev for each in openings(rails(), from_dict(tree()))] == ["ens1.100", "ens2"]
    for netdev, status in {"ens1.100": "error", "ens1": "error", "ens1.7": "error", "enp0s2": "ok"}.items():
        facts = {**tree(), "session": {"address": "10.0.0.1", "netdev": netdev}}
        assert [each.status for each in check_ssh("node1", rails(), from_dict(facts))] == [status]


def test_the_plan_for_the_network_role() -> None:
    intent = normalize({"rdma_rails": [{**lab_rails()[0], "vlan": {"id": 100}}, lab_rails()[1]]})
    one, other = network_rails(intent, from_dict(tree()))
    assert (one["netdev"], one["vlan"]) == ("ens1", {"interface": "ens1.100", "id": 100, "pcp": None})
    assert "vlan" not in other
    assert network_differs(intent, from_dict(without(tree())))


def test_a_converged_vlan_leaves_nothing_to_do() -> None:
    intent = normalize({"rdma_rails": [{**lab_rails()[0], "vlan": {"id": 100}}, lab_rails()[1]]})
    facts = tree()
    present = ours_among(list(facts["files"]))
    planned = choice.files("networkd", make_rails(network_rails(intent, from_dict(facts))), present, ["rail0", "rail1"], ALONE)
    facts["files"].update(on_host(planned))
    assert not network_differs(intent, from_dict(facts))
    facts["netdevs"]["ens1.100"]["mtu_bytes"] = 1500
    assert network_differs(intent, from_dict(facts))


NICS = [rail["nic"] for rail in lab_rails()]
PARTNER = "52:54:00:1a:00:02"


def bonded(name: str = "bond-rail0", **changes: Any) -> tuple[str, str]:
    """Status and what was seen by network.bond. changes: of the bond, or of a member by its name; bonds: all of them."""
    facts = lab_facts()
    members = {each: {"up": True, "mac": None, "aggregator": 1, "partner": PARTNER, **changes.pop(each, {})} for each in ("ens1", "ens2")}
    facts["bonds"] = {name: {"mode": "802.3ad", "hash_policy": "layer3+4", "lacp_rate": "fast", "members": members, **changes}}
    if "bonds" in changes:
        facts["bonds"] = changes["bonds"]
    planned = normalize({"rdma_rails": [{**lab_rails()[0], "bond": {"members": NICS}}]})["rails"]
    [finding] = check_bonds("node1", planned, from_dict(facts))
    assert finding.check == "network.bond"
    assert finding.remedy or finding.status == "ok"
    return finding.status, finding.observed


NO_LACP = {"partner": "00:00:00:00:00:00"}


@pytest.mark.parametrize(
    ("changes", "status", "observed"),
    [
        ({}, "ok", "bond-rail0: ens1, ens2 in mode 802.3ad"),
        ({"name": "bond0"}, "ok", "bond0, made by others and left as it is: ens1, ens2 in mode 802.3ad"),
        ({"mode": "active-backup"}, "error", "bond-rail0: mode active-backup"),
        ({"hash_policy": "layer2"}, "error", "bond-rail0: hash layer2"),
        ({"ens2": {"up": False}}, "error", "bond-rail0: ens2 has no carrier"),
        ({"ens2": NO_LACP}, "error", "bond-rail0: ens2 hears no LACP partner"),
        ({"ens2": {"aggregator": 2}}, "error", "bond-rail0: several aggregators: 1 on ens1, 2 on ens2"),
        (
            {"ens2": {"partner": "52:54:00:1a:00:03"}},
            "error",
            f"bond-rail0: several LACP partners: {PARTNER} on ens1, 52:54:00:1a:00:03 on ens2",
        ),
        ({"bonds": {}}, "error", "no bond bond-rail0"),
        ({"bonds": None}, "unknown", "the bonds were not read"),
    ],
)
def test_what_is_found_of_a_bond(changes: dict[str, Any], status: str, observed: str) -> None:
    assert bonded(**changes) == (status, observed)


def test_the_plan_for_the_role_leaves_a_bond_of_others_alone() -> None:
    intent = normalize({"rdma_rails": [{**lab_rails()[0], "bond": {"members": NICS}, "vlan": {"id": 100}}]})
    facts = lab_facts()
    [rail] = network_rails(intent, from_dict(facts))
    assert rail["bond"]["interface"] == "bond-rail0"
    assert [member["netdev"] for member in rail["bond"]["members"]] == ["ens1", "ens2"]
    assert rail["vlan"]["interface"] == "bond-rail0.100"
    facts["bonds"] = {"bond0": {"mode": "802.3ad", "members": {"ens1": {"up": True}, "ens2": {"up": True}}}}
    assert network_rails(intent, from_dict(facts)) == []
