# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The gate of the link stage on state, kind, iWARP and MTU of ports, over facts of a lab machine and of one with real cards."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding, stopping
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.link.link import check_link
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from tests.unit.builders.cards import HOST, bad, card_facts, card_rails, first_netdev, first_port, infiniband_rails, of_first
from tests.unit.builders.hosts import lab_facts, lab_rails

CHECKS = ["link.state", "link.layer", "link.iwarp", "link.rate", "link.width", "link.mtu"]


def lab_port(facts: dict[str, Any], rail: int) -> dict[str, Any]:
    found: dict[str, Any] = facts["devices"][f"rxe_rail{rail}"]["ports"]["1"]
    return found


def infiniband(**port: Any) -> dict[str, Finding]:
    """The findings on rail 0 of an InfiniBand host whose first port is changed so."""
    facts = card_facts("InfiniBand")
    first_port(facts).update(port)
    return of_first(check_link(HOST, infiniband_rails(), from_dict(facts)))


def statuses(found: dict[str, Finding]) -> dict[str, str]:
    return {check: finding.status for check, finding in found.items()}


def test_a_good_lab_machine_passes_and_its_rate_is_not_judged() -> None:
    found = check_link("node1", lab_rails(), from_dict(lab_facts()))
    assert [finding.check for finding in found] == CHECKS * 2
    assert [finding.status for finding in found] == ["ok", "ok", "ok", "not_applicable", "not_applicable", "not_applicable"] * 2
    assert {finding.observed for finding in found if finding.check == "link.rate"} == {"a software device has no line rate"}
    assert {finding.stage for finding in found} == {"link"}


def test_a_good_host_of_each_kind_passes() -> None:
    ethernet = of_first(check_link(HOST, card_rails(), from_dict(card_facts())))
    assert statuses(ethernet) == {**dict.fromkeys(CHECKS, "ok"), "link.mtu": "not_applicable"}
    assert ethernet["link.rate"].observed == "mlx5_0/1 runs at 400 Gb/s (4X NDR)"
    assert "network stage" in ethernet["link.mtu"].observed
    assert statuses(infiniband()) == {**dict.fromkeys(CHECKS, "ok"), "link.rate": "not_applicable"}
    assert {finding.remedy for finding in ethernet.values()} == {""}


def test_no_device_is_unknown_and_the_only_finding() -> None:
    facts = lab_facts()
    del facts["devices"]["rxe_rail0"]
    (finding,) = of_first(check_link("node1", lab_rails(), from_dict(facts))).values()
    assert (finding.check, finding.status, finding.subject) == ("link.state", "unknown", "rail 0 (rail0, 0000:21:00.0, ens1)")


def test_a_cut_cable_names_rail_state_and_cable() -> None:
    facts = lab_facts()
    lab_port(facts, 1).update(state="DOWN", physical_state="Disabled")
    facts["netdevs"]["ens2"].update(carrier=False, operstate="down")
    (finding,) = stopping(check_link("node3", lab_rails(), from_dict(facts)))
    assert (finding.host, finding.check, finding.status) == ("node3", "link.state", "error")
    assert finding.observed == "rxe_rail1/1 is DOWN, Disabled; ens2 is up, without carrier"
    assert finding.expected == "ACTIVE, LinkUp"
    assert finding.remedy.startswith("Check the cable of rail 1 on node3 (rxe_rail1/1, 0000:41:00.0)")


def test_an_interface_that_is_down_is_not_blamed_on_the_cable() -> None:
    facts = lab_facts()
    lab_port(facts, 0).update(state="DOWN", physical_state="Disabled")
    facts["netdevs"]["ens1"].update(carrier=None, admin_up=False)
    (finding,) = stopping(check_link("node1", lab_rails(), from_dict(facts)))
    assert finding.observed.endswith("; ens1 is administratively down")
    assert "`ip link set ens1 up`" in finding.remedy
    assert "cable" not in finding.remedy


def test_an_interface_that_is_well_over_a_port_that_is_not() -> None:
    facts = card_facts()
    first_port(facts).update(state="DOWN", physical_state="Disabled")
    (finding,) = stopping(check_link(HOST, card_rails(), from_dict(facts)))
    assert finding.observed == "mlx5_0/1 is DOWN, Disabled; ens1np0 is up, with carrier"
    assert "`rdma link show mlx5_0/1`" in finding.remedy


@pytest.mark.parametrize(
    ("state", "physical", "seen", "do"),
    [
        ("INIT", "LinkUp", "no subnet manager", "start one for plane blue (rail rail0)"),
        ("ARMED", "LinkUp", "not activated it", "find the subnet manager of plane blue"),
        ("ACTIVE_DEFER", "LinkUp", "link has just failed", "Replace the cable of rail 0 on node1 (mlx5_0/1, 0000:3d:00.0)"),
        ("DOWN", "Polling", "detects no partner", "Check the cable of rail 0 on node1 (mlx5_0/1, 0000:3d:00.0)"),
        ("DOWN", "Disabled", "the port is disabled", "`ibportstate -C mlx5_0 -P 1 -D 0 1 enable`"),
        ("DOWN", "Sleep", "sleep mode", "`ibportstate -C mlx5_0 -P 1 -D 0 1 enable`"),
        ("DOWN", "PortConfigurationTraining", "does not come up", "Replace cable or optic"),
        ("DOWN", "LinkErrorRecovery", "does not come up", "Replace cable or optic"),
        ("ACTIVE", "LinkErrorRecovery", "does not come up", "Replace cable or optic"),
        ("DOWN", "Phy Test", "physical-layer test", "End the test on node1"),
        ("DOWN", "SomethingNew", "mlx5_0/1 is DOWN, SomethingNew", "Check the cable of rail 0 on node1"),
    ],
)
def test_each_state_of_an_infiniband_port_has_its_own_words(state: str, physical: str, seen: str, do: str) -> None:
    found = infiniband(state=state, physical_state=physical)
    assert bad(list(found.values())) == [("link.state", "error")]
    assert seen in found["link.state"].observed
    assert do in found["link.state"].remedy
    for check in ("link.rate", "link.width", "link.mtu"):
        assert (found[check].status, found[check].observed) == ("not_applicable", "the port is not up: see link.state")


def test_no_plane_names_the_rail_instead() -> None:
    facts = card_facts("InfiniBand")
    first_port(facts).update(state="INIT")
    rails = infiniband_rails()
    rails[0]["plane"] = None
    assert "for the fabric of rail0." in of_first(check_link(HOST, rails, from_dict(facts)))["link.state"].remedy


@pytest.mark.parametrize("unknown", ["state", "physical_state"])
def test_what_the_kernel_does_not_report_is_unknown(unknown: str) -> None:
    found = infiniband(**{unknown: None})
    assert bad(list(found.values())) == [("link.state", "unknown")]
    assert "/sys/class/infiniband/mlx5_0/ports/1/state" in found["link.state"].remedy


def test_the_wrong_kind_of_port_is_one_error_even_where_it_is_down() -> None:
    facts = card_facts("Ethernet")
    first_port(facts).update(state="DOWN", physical_state="Disabled")
    first_netdev(facts).update(carrier=False)
    found = of_first(check_link(HOST, infiniband_rails(), from_dict(facts)))
    assert bad(list(found.values())) == [("link.layer", "error")]
    assert (found["link.layer"].observed, found["link.layer"].expected) == ("Ethernet", "InfiniBand")
    assert "set LINK_TYPE_P1 of 0000:3d:00.0 to IB(1) with mstconfig and reboot node1" in found["link.layer"].remedy
    assert "see link.layer" in found["link.state"].observed
    assert "see link.layer" in found["link.rate"].observed


def test_a_software_device_of_the_wrong_kind_has_no_link_type() -> None:
    rails = lab_rails()
    rails[0]["link_layer"] = "infiniband"
    (finding,) = stopping(check_link("node1", rails, from_dict(lab_facts())))
    assert (finding.check, finding.remedy) == ("link.layer", "Correct link_layer of rail0 of node1.")


def test_a_kind_that_the_kernel_does_not_report_is_unknown() -> None:
    assert bad(list(infiniband(link_layer=None).values())) == [("link.layer", "unknown")]


@pytest.mark.parametrize(
    ("driver", "do"),
    [
        ("siw", "`rdma link delete mlx5_0`"),
        ("ice", "`devlink dev param set pci/0000:3d:00.0 name enable_iwarp value false cmode runtime`"),
        ("i40e", "Plan another NIC of node1"),
        ("cxgb4", "Plan another NIC of node1"),
        ("qede", "with its vendor's tool"),
        (None, "with its vendor's tool"),
    ],
)
def test_iwarp_is_no_rail(driver: str | None, do: str) -> None:
    facts = card_facts()
    facts["devices"]["mlx5_0"].update(driver=driver, node_type="RNIC")
    found = of_first(check_link(HOST, card_rails(), from_dict(facts)))
    assert bad(list(found.values())) == [("link.iwarp", "error")]
    assert do in found["link.iwarp"].remedy


def test_a_device_whose_type_was_not_read_is_unknown() -> None:
    facts = card_facts()
    facts["devices"]["mlx5_0"]["node_type"] = None
    assert of_first(check_link(HOST, card_rails(), from_dict(facts)))["link.iwarp"].status == "unknown"


def test_a_small_mtu_on_infiniband_is_a_warning() -> None:
    found = infiniband(active_mtu_bytes=2048)
    assert bad(list(found.values())) == [("link.mtu", "warning")]
    assert (found["link.mtu"].observed, found["link.mtu"].expected) == ("2048 bytes", "4096 bytes")
    assert "The subnet manager of plane blue (rail rail0) sets the link to it" in found["link.mtu"].remedy
    assert "`ibv_devinfo -d mlx5_0 -i 1` on node1" in found["link.mtu"].remedy


def test_an_mtu_that_could_not_be_read_is_unknown() -> None:
    assert bad(list(infiniband(active_mtu_bytes=None).values())) == [("link.mtu", "unknown")]
    facts = card_facts("InfiniBand")
    del first_port(facts)["active_mtu_bytes"]
    assert of_first(check_link(HOST, infiniband_rails(), from_dict(facts)))["link.mtu"].status == "unknown"


def test_facts_with_nothing_but_what_schema_1_began_with_do_not_raise() -> None:
    old = ("state", "physical_state", "link_layer", "rate_gbps", "width", "netdev", "gids", "counters", "hw_counters")
    facts = json.loads(json.dumps(card_facts()))
    for device in facts["devices"].values():
        device["ports"] = {number: {key: port[key] for key in old} for number, port in device["ports"].items()}
    for netdev in facts["netdevs"].values():
        del netdev["ethtool"]
    assert bad(check_link(HOST, card_rails(), from_dict(facts))) == []
    assert bad(check_link(HOST, card_rails(None), from_dict(facts))) == []


def test_only_cards_that_have_a_link_type_are_asked_to_change_it() -> None:
    facts = card_facts("InfiniBand")
    assert "set LINK_TYPE_P1 of 0000:3d:00.0" in of_first(check_link(HOST, card_rails(), from_dict(facts)))["link.layer"].remedy
    facts["devices"]["mlx5_0"]["pci"]["address"] = "0000:3d:00.1"
    assert "set LINK_TYPE_P2 of 0000:3d:00.0" in of_first(check_link(HOST, card_rails(), from_dict(facts)))["link.layer"].remedy
    facts["devices"]["mlx5_0"]["pci"] = None
    assert "LINK_TYPE" not in of_first(check_link(HOST, card_rails(), from_dict(facts)))["link.layer"].remedy
    facts["devices"]["mlx5_0"]["driver"] = "bnxt_en"
    assert of_first(check_link(HOST, card_rails(), from_dict(facts)))["link.layer"].remedy == "Correct link_layer of rail0 of node1."
