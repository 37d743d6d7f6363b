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
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import resolve
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.network.addressing import check_addressing
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.network.boot import check_boot
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.network.links import check_bonds, check_vlans
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.network.management import rail_under
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.network.network import check_network
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.network.openings import openings
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.preflight.preflight import check_ssh
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.digest import digest
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


def test_the_vlan_of_a_rail_is_the_rail_whatever_its_name() -> None:
    """Also its NIC, another VLAN on it, and one on that VLAN; not an interface whose name only begins like the NIC's."""
    facts = tree()
    facts["netdevs"]["storage"] = facts["netdevs"].pop("ens1.100")
    others = {"admin": {"parent": "ens1", "id": 7}, "inner": {"parent": "admin", "id": 8}, "ens1.9": {"parent": "eth0", "id": 9}}
    facts["vlans"] = {"storage": {"parent": "ens1", "id": 100}, **others}
    read = from_dict(facts)
    resolved = resolve(rails(), read)
    assert resolved[0].interface == "storage"
    under = {name: rail_under(name, resolved, read) for name in ("storage", "ens1", "admin", "inner", "ens1.9", "eth0")}
    assert {name for name, rail in under.items() if rail is resolved[0]} == {"storage", "ens1", "admin", "inner"}
    assert under["ens1.9"] is under["eth0"] is None


def test_a_digest_still_finds_the_vlan_by_its_number() -> None:
    facts = tree()
    facts["netdevs"]["storage"] = facts["netdevs"].pop("ens1.100")
    facts["vlans"] = {"storage": {"parent": "ens1", "id": 100, "egress": {}}}
    assert resolve(rails(), from_dict(digest(facts)))[0].interface == "storage"
    assert "vlans" not in digest(lab_facts())


def test_a_vlan_with_an_ipv6_address_and_a_further_one() -> None:
    facts = tree()
    planned = [
        {**each, **({"address": "2001:db8:100::1/64", "addresses": ["192.168.100.1/24"]} if each["vlan"] else {})} for each in rails()
    ]
    facts["netdevs"]["ens1.100"]["ipv6"] = ["2001:db8:100::1/64"]
    statuses = {each.status for each in check_addressing("node1", planned, from_dict(facts)) if "ens1.100" in each.subject}
    assert statuses == {"ok"}
    subnets = [each.subnet for each in openings(planned, from_dict(facts)) if each.netdev == "ens1.100"]
    assert subnets == ["2001:db8:100::/64", "192.168.100.0/24"]
    facts["netdevs"]["ens1.100"]["ipv6"] = []
    observed = [each.observed for each in check_addressing("node1", planned, from_dict(facts)) if each.check == "network.address"]
    assert observed[0] == "192.168.100.1/24 on ens1.100: see network.gid"


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


def test_a_bond_with_its_members_and_vlans_is_the_rail() -> None:
    """Not another bond, and not a NIC of another one. A digest still finds the bond by its members."""
    planned = normalize({"rdma_rails": [{**lab_rails()[0], "bond": {"members": NICS}, "vlan": {"id": 100}}]})["rails"]
    facts = lab_facts()
    facts["netdevs"] |= {"bond0": {**facts["netdevs"]["ens1"], "pci": None}, "eno9": {**facts["netdevs"]["ens1"], "pci": "0000:99:00.0"}}
    facts["bonds"] = {
        "bond0": {"mode": "802.3ad", "members": {"ens1": {"up": True}, "ens2": {"up": True}}},
        "bond9": {"mode": "active-backup", "members": {"eno9": {"up": True}}},
    }
    facts["vlans"] = {"storage": {"parent": "bond0", "id": 100}, "admin": {"parent": "bond0", "id": 7}}
    for read in (from_dict(facts), from_dict(digest(facts))):
        [rail] = resolve(planned, read)
        assert rail.bond == "bond0"
    read = from_dict(facts)
    [rail] = resolve(planned, read)
    assert (rail.interface, rail.interfaces) == ("storage", ["ens1", "ens2", "bond0", "storage"])
    names = ("storage", "admin", "bond0", "ens1", "ens2", "bond9", "eno9", "eth0")
    assert [name for name in names if rail_under(name, [rail], read) is rail] == ["storage", "admin", "bond0", "ens1", "ens2"]
    [plain] = resolve(rails()[1:], read)
    assert rail_under("bond0", [plain], read) is plain
    assert "bonds" not in digest(lab_facts())


def test_a_bond_with_an_ipv6_address_and_a_further_one() -> None:
    further = {"address": "2001:db8:100::1/64", "addresses": ["192.168.100.1/24"]}
    planned = normalize({"rdma_rails": [{**lab_rails()[0], **further, "bond": {"members": NICS}}]})["rails"]
    facts = lab_facts()
    missing = {each.observed for each in check_network("node1", planned, from_dict(facts)) if each.status == "not_applicable"}
    assert missing == {"no interface bond-rail0: see network.bond"}
    bond = {**facts["netdevs"]["ens1"], "pci": None, "ipv4": ["192.168.100.1/24"], "ipv6": ["2001:db8:100::1/64"]}
    for name in ("ens1", "ens2"):
        facts["netdevs"][name] |= {"ipv4": [], "ipv6": []}
    facts["netdevs"]["bond-rail0"] = bond
    facts["bonds"] = {"bond-rail0": {"mode": "802.3ad", "members": {"ens1": {"up": True}, "ens2": {"up": True}}}}
    found = [each for each in check_addressing("node1", planned, from_dict(facts)) if "bond-rail0" in each.subject]
    assert {each.status for each in found} == {"ok"}
    assert [each.subnet for each in openings(planned, from_dict(facts))] == ["2001:db8:100::/64", "192.168.100.0/24"]
    [given] = network_rails(normalize({"rdma_rails": [{**lab_rails()[0], **further, "bond": {"members": NICS}}]}), from_dict(facts))
    assert (given["address"], given["addresses"]) == ("2001:db8:100::1/64", ["192.168.100.1/24"])
