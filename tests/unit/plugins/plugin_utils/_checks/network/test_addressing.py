# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses and managers of interfaces at the network gate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding, stopping
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.network.addressing import check_addressing
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from tests.unit.builders.hosts import lab_facts, lab_rails

Tree = dict[str, Any]


def tree(**ipv4: list[str] | None) -> Tree:
    """A lab machine with these addresses on its interfaces, and the GIDs that belong to them."""
    facts = lab_facts()
    for name, addresses in ipv4.items():
        facts["netdevs"].setdefault(name, {})["ipv4"] = addresses
    for rail, netdev in enumerate(("ens1", "ens2")):
        there = facts["netdevs"][netdev]["ipv4"] or []
        port = facts["devices"][f"rxe_rail{rail}"]["ports"]["1"]
        port["rocev2"] = {text.split("/")[0]: index + 1 for index, text in enumerate(there)}
    return facts


def check(facts: Tree, rails: list[dict[str, Any]] | None = None, *, of: str = "network.address") -> list[Finding]:
    found = check_addressing("node1", lab_rails() if rails is None else rails, from_dict(facts))
    assert {(finding.stage, finding.host) for finding in found} == {("network", "node1")}
    return [finding for finding in found if finding.check == of]


def brief(findings: list[Finding]) -> list[tuple[str, str, str]]:
    """What is not ok."""
    return [(finding.subject, finding.status, finding.observed) for finding in findings if finding.status != "ok"]


RAIL0, RAIL1 = "rail 0 (rail0, 0000:21:00.0, ens1)", "rail 1 (rail1, 0000:41:00.0, ens2)"
OWN = "192.168.100.1/24"


def test_a_good_host() -> None:
    found = check(tree())
    assert [(finding.subject, finding.status, finding.observed) for finding in found] == [
        (RAIL0, "ok", "192.168.100.1/24"),
        (RAIL1, "ok", "192.168.101.1/24"),
    ]
    assert found[0].expected == "192.168.100.1/24, and no address in another rail's subnet"


def test_addresses_of_no_rail_do_no_harm() -> None:
    facts = tree(ens1=[OWN, "169.254.7.7/16", "10.20.0.1/16"], enp0s2=["10.0.2.15/24"], docker0=["172.17.0.1/16"])
    assert brief(check(facts)) == []


def test_an_address_in_another_rail_s_subnet_names_both() -> None:
    (finding,) = stopping(check(tree(ens1=[OWN, "192.168.101.77/24"])))
    assert (finding.subject, finding.status) == (RAIL0, "error")
    assert finding.observed == "192.168.101.77/24 on ens1 is in rail1's subnet (192.168.101.1/24)"
    assert finding.remedy.startswith("Run `ip addr del 192.168.101.77/24 dev ens1` on node1, and find what adds it")


def test_the_very_address_of_another_rail_that_has_it_too() -> None:
    (finding,) = stopping(check(tree(ens1=[OWN, "192.168.101.1/24"])))
    assert finding.observed == "192.168.101.1/24 on ens1 is the address of rail1 (192.168.101.1/24)"


def test_an_address_that_went_to_the_wrong_rail_is_one_error_of_another_check() -> None:
    """rail1 lacks its own, which network.gid says; that it is on ens1 is a hint."""
    found = brief(check(tree(ens1=[OWN, "192.168.101.1/24"], ens2=[])))
    assert found == [
        (RAIL0, "warning", "192.168.101.1/24 on ens1 is the address of rail1 (192.168.101.1/24)"),
        (RAIL1, "not_applicable", "no address on ens2: see network.gid"),
    ]


def test_swapped_addresses_are_errors_of_another_check() -> None:
    found = brief(check(tree(ens1=["192.168.101.1/24"], ens2=[OWN])))
    assert [(subject, status) for subject, status, _observed in found] == [(RAIL0, "not_applicable"), (RAIL1, "not_applicable")]
    assert found[0][2] == "192.168.101.1/24 on ens1: see network.gid"


def test_a_second_address_in_the_same_subnet_is_a_warning() -> None:
    ((subject, status, observed),) = brief(check(tree(ens1=["192.168.100.99/24", OWN])))
    assert (subject, status) == (RAIL0, "warning")
    assert observed == "192.168.100.99/24 in addition to 192.168.100.1/24 on ens1: GID indexes and ARP replies depend on their order"


SIX = "2001:db8:100::1/64"


def six(*there: str, failed: Sequence[str] = (), further: Sequence[str] = (OWN,), **changes: Any) -> list[Finding]:
    """Findings on rail0 with an IPv6 address and further ones, of an interface with these addresses."""
    facts = tree(ens1=[each for each in there if ":" not in each])
    facts["netdevs"]["ens1"] |= {"ipv6": [each for each in there if ":" in each], "dad_failed": list(failed), **changes}
    rocev2 = {each.split("/")[0]: index for index, each in enumerate(there)}
    facts["devices"]["rxe_rail0"]["ports"]["1"]["rocev2"] = rocev2
    rails = [{**lab_rails()[0], "address": SIX, "addresses": list(further)}, lab_rails()[1]]
    return [finding for finding in check(facts, rails) if finding.subject == RAIL0]


def test_ipv6_and_further_addresses_as_planned() -> None:
    [finding] = six(SIX, OWN)
    assert (finding.status, finding.observed) == ("ok", f"{OWN}, {SIX}")
    assert finding.expected == f"{SIX}, {OWN}, and no address in another rail's subnet"


@pytest.mark.parametrize(
    ("there", "more", "status", "observed"),
    [
        ([SIX], {}, "error", f"no {OWN} on ens1"),
        ([OWN], {}, "not_applicable", f"{OWN} on ens1: see network.gid"),
        (["2001:db8:100::1/48", OWN], {}, "error", "2001:db8:100::1/48 on ens1: the prefix is not the planned one"),
        ([SIX, OWN, "2001:db8:100::99/64"], {}, "warning", "2001:db8:100::99/64 in addition to"),
        ([SIX, OWN, "192.168.101.7/24"], {}, "error", "192.168.101.7/24 on ens1 is in rail1's subnet (192.168.101.1/24)"),
        ([OWN], {"failed": [SIX]}, "error", f"{SIX} on ens1 failed duplicate address detection: another host has it"),
        ([SIX, OWN], {"failed": ["2001:db8::7/64"]}, "warning", "2001:db8::7/64 on ens1 failed duplicate address detection"),
        ([SIX, OWN], {"ipv6": None}, "unknown", "the addresses were not read"),
    ],
)
def test_what_is_wrong_with_ipv6_and_further_addresses(there: list[str], more: dict[str, Any], status: str, observed: str) -> None:
    [finding] = six(*there, **more)
    assert (finding.status, finding.observed[: len(observed)]) == (status, observed)


def test_all_that_is_wrong_with_a_rail_is_named_at_once() -> None:
    (finding,) = stopping(check(tree(ens1=["192.168.100.99/24", "192.168.101.7/24", OWN])))
    assert "192.168.100.99/24 in addition to" in finding.observed
    assert "192.168.101.7/24 on ens1" in finding.observed
    assert finding.remedy.count("ip addr del") == 2


def test_another_prefix_than_planned() -> None:
    (finding,) = stopping(check(tree(ens1=["192.168.100.1/16"])))
    assert (finding.subject, finding.observed) == (RAIL0, "192.168.100.1/16 on ens1: the prefix is not the planned one")


def test_an_interface_that_is_no_rail_in_a_rail_s_subnet() -> None:
    (finding,) = stopping(check(tree(enp0s2=["10.0.2.15/24", "192.168.101.200/24"])))
    assert (finding.subject, finding.status) == ("interface enp0s2", "error")
    assert finding.observed == "192.168.101.200/24 on enp0s2 is in rail1's subnet (192.168.101.1/24)"


def test_what_a_rail_is_enslaved_to_is_no_stranger() -> None:
    facts = tree(bond0=["192.168.100.9/24"])
    assert [finding.subject for finding in stopping(check(facts))] == ["interface bond0"]
    facts["netdevs"]["ens1"]["master"] = "bond0"
    assert stopping(check(facts)) == []


def test_a_missing_address_that_the_gid_table_still_has() -> None:
    facts = tree(ens1=[])
    facts["devices"]["rxe_rail0"]["ports"]["1"]["rocev2"] = {"192.168.100.1": 1}
    (finding,) = stopping(check(facts))
    assert (finding.subject, finding.status, finding.observed) == (RAIL0, "error", "no address on ens1")


def test_infiniband_s_missing_address_is_an_error_here() -> None:
    rails = lab_rails()
    rails[0]["link_layer"] = "infiniband"
    (finding,) = stopping(check(tree(ens1=["10.3.3.3/24"]), rails))
    assert (finding.subject, finding.observed) == (RAIL0, "10.3.3.3/24 on ens1")
    assert finding.remedy.startswith("Run the network stage for node1")


def test_a_rail_that_has_no_address_by_plan() -> None:
    rails = lab_rails()
    rails[0] |= {"link_layer": "infiniband", "address": None}
    assert [finding.observed for finding in check(tree(ens1=[]), rails)] == ["no address", "192.168.101.1/24"]
    (finding,) = stopping(check(tree(ens1=["192.168.101.5/24"]), rails))
    assert finding.observed == "192.168.101.5/24 on ens1 is in rail1's subnet (192.168.101.1/24)"


def test_rails_that_share_a_subnet() -> None:
    rails = [{**rail, "address": f"10.0.0.{index + 1}/24"} for index, rail in enumerate(lab_rails())]
    assert brief(check(tree(ens1=["10.0.0.1/24"], ens2=["10.0.0.2/24"]), rails)) == []
    found = brief(check(tree(ens1=["10.0.0.1/24", "10.0.0.9/24"], ens2=["10.0.0.2/24"]), rails))
    assert [(subject, status) for subject, status, _observed in found] == [(RAIL0, "warning")]
    (finding,) = stopping(check(tree(ens1=["10.0.0.1/24", "10.0.0.2/24"], ens2=["10.0.0.2/24"]), rails))
    assert finding.observed == "10.0.0.2/24 on ens1 is the address of rail1 (10.0.0.2/24)"


def test_the_ends_of_a_cable_in_a_subnet_of_two() -> None:
    rails = [{**rail, "address": f"10.0.{index}.0/31"} for index, rail in enumerate(lab_rails())]
    assert brief(check(tree(ens1=["10.0.0.0/31"], ens2=["10.0.1.0/31"]), rails)) == []


def test_addresses_that_were_not_read_are_unknown() -> None:
    assert brief(check(tree(ens1=None)))[0] == (RAIL0, "unknown", "the addresses were not read")
    rails = lab_rails()
    rails[0]["nic"] = {"pci": "0000:99:00.0"}
    assert brief(check(tree(), rails))[0][1:] == ("not_applicable", "no interface: see driver.nic")


def managed(managers: Any, **ipv4: list[str] | None) -> Finding:
    facts = tree(**ipv4)
    facts["netdevs"]["ens1"]["managers"] = managers
    return check(facts, of="network.manager")[0]


@pytest.mark.parametrize(
    ("managers", "ipv4", "status", "observed"),
    [
        (["systemd-networkd"], {}, "ok", "systemd-networkd"),
        ([], {}, "ok", "none, and none is needed"),
        ([], {"ens1": []}, "not_applicable", "not managed and without an address: see network.gid or network.address"),
        (None, {}, "unknown", "not in the facts"),
        (["NetworkManager", "ifupdown"], {}, "error", "NetworkManager, ifupdown all claim ens1"),
    ],
    ids=["one", "none", "none and no address", "not reported", "two"],
)
def test_who_manages_a_rail(managers: Any, ipv4: dict[str, Any], status: str, observed: str) -> None:
    finding = managed(managers, **ipv4)
    assert (finding.subject, finding.status, finding.observed) == (RAIL0, status, observed)


def test_two_managers_are_reported_with_the_steps() -> None:
    remedy = managed(["NetworkManager", "ifupdown", "systemd-networkd", "connman"]).remedy
    for words in (
        "`nmcli device set ens1 managed no` until the next boot",
        "`unmanaged-devices=interface-name:ens1`",
        "/etc/network/interfaces",
        "`networkctl status ens1`",
        "connman: make it release it",
    ):
        assert words in remedy


def test_facts_without_addresses_and_managers_are_unknown() -> None:
    facts = lab_facts()
    for netdev in facts["netdevs"].values():
        for key in ("ipv4", "managers", "master"):
            netdev.pop(key, None)
    assert {finding.status for finding in check_addressing("node1", lab_rails(), from_dict(facts))} == {"unknown"}


@pytest.mark.parametrize(
    ("managers", "status"),
    [
        (["ifupdown", "dhclient"], "ok"),
        (["NetworkManager", "dhclient"], "ok"),
        (["ifupdown", "dhcpcd"], "ok"),
        (["systemd-networkd", "dhclient"], "error"),
        (["systemd-networkd", "ifupdown", "dhclient"], "error"),
        (["dhclient", "dhcpcd"], "error"),
    ],
)
def test_a_manager_and_the_client_that_it_starts_are_one(managers: list[str], status: str) -> None:
    facts = tree()
    facts["netdevs"]["ens1"]["managers"] = managers
    assert check(facts, of="network.manager")[0].status == status
