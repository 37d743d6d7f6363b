# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The gates of driver, link and network on one host, over the facts of a lab machine and faults in them."""

from __future__ import annotations

from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._checks_driver import check_driver
from ansible_collections.rdma.cluster.plugins.module_utils._checks_link import check_link
from ansible_collections.rdma.cluster.plugins.module_utils._checks_network import check_network
from ansible_collections.rdma.cluster.plugins.module_utils._findings import Finding, stopping
from tests.unit.hosts import lab_facts, lab_rails

MODULES = ["ib_core", "ib_uverbs", "rdma_cm", "rdma_ucm", "rdma_rxe"]


def bad(findings: list[Finding]) -> list[tuple[str, str, str]]:
    return [(finding.check, finding.subject, finding.status) for finding in stopping(findings)]


def port(facts: dict[str, Any], rail: int) -> dict[str, Any]:
    found: dict[str, Any] = facts["devices"][f"rxe_rail{rail}"]["ports"]["1"]
    return found


def test_a_good_host_passes_every_gate() -> None:
    facts = lab_facts()
    assert {finding.status for finding in check_driver("node1", lab_rails(), facts, MODULES)} == {"ok"}
    assert {finding.status for finding in check_link("node1", lab_rails(), facts)} == {"ok"}
    assert {finding.status for finding in check_network("node1", lab_rails(), facts)} == {"ok"}


def test_a_module_that_is_not_loaded() -> None:
    facts = lab_facts()
    del facts["stack"]["modules"]["rdma_ucm"]
    assert bad(check_driver("node1", lab_rails(), facts, MODULES)) == [("driver.module", "kernel module rdma_ucm", "error")]


def test_a_nic_that_is_not_there_names_those_that_are() -> None:
    rails = lab_rails()
    rails[1]["nic"] = {"pci": "0000:42:00.0"}
    (finding,) = stopping(check_driver("node1", rails, lab_facts(), MODULES))
    assert finding.check == "driver.nic"
    assert finding.observed == "no NIC with pci 0000:42:00.0; there are 0000:00:02.0, 0000:21:00.0, 0000:41:00.0"


def test_a_nic_without_rdma_device() -> None:
    facts = lab_facts()
    del facts["devices"]["rxe_rail1"]
    (finding,) = stopping(check_driver("node1", lab_rails(), facts, MODULES))
    assert (finding.check, finding.subject) == ("driver.device", "rail 1 (rail1, 0000:41:00.0, ens2)")
    assert "rdma-soft-links.service" in finding.remedy


def test_a_cut_cable_names_rail_state_and_cable() -> None:
    facts = lab_facts()
    port(facts, 1).update(state="DOWN", physical_state="Disabled")
    facts["netdevs"]["ens2"].update(carrier=False, operstate="down")
    (finding,) = stopping(check_link("node3", lab_rails(), facts))
    assert (finding.host, finding.check, finding.status) == ("node3", "link.state", "error")
    assert finding.observed == "rxe_rail1/1 is DOWN, Disabled; ens2 is up, without carrier"
    assert finding.expected == "ACTIVE, LinkUp"
    assert finding.remedy.startswith("Check the cable of rail 1 on node3")


def test_an_interface_that_is_down_is_not_blamed_on_the_cable() -> None:
    facts = lab_facts()
    port(facts, 0).update(state="DOWN", physical_state="Disabled")
    facts["netdevs"]["ens1"].update(carrier=None, admin_up=False)
    (finding,) = stopping(check_link("node1", lab_rails(), facts))
    assert "administratively down" in finding.observed
    assert "cable" not in finding.remedy


def test_init_on_infiniband_asks_for_a_subnet_manager() -> None:
    facts = lab_facts()
    port(facts, 0).update(state="INIT", link_layer="InfiniBand")
    rails = lab_rails()
    rails[0]["link_layer"] = "infiniband"
    (finding,) = stopping(check_link("node1", rails, facts))
    assert "subnet manager" in finding.remedy


def test_the_wrong_link_layer() -> None:
    rails = lab_rails()
    rails[0]["link_layer"] = "infiniband"
    assert bad(check_link("node1", rails, lab_facts())) == [("link.layer", "rail 0 (rail0, 0000:21:00.0, ens1)", "error")]


def test_no_device_is_unknown_to_the_link_gate_and_stops_it() -> None:
    facts = lab_facts()
    del facts["devices"]["rxe_rail0"]
    assert bad(check_link("node1", lab_rails(), facts)) == [("link.state", "rail 0 (rail0, 0000:21:00.0, ens1)", "unknown")]


def test_the_wrong_mtu() -> None:
    facts = lab_facts()
    facts["netdevs"]["ens1"]["mtu_bytes"] = 1500
    (finding,) = stopping(check_network("node1", lab_rails(), facts))
    assert (finding.check, finding.observed, finding.expected) == ("network.mtu", "1500 bytes", "9000 bytes")


def test_an_address_that_is_not_in_the_gid_table() -> None:
    facts = lab_facts()
    (finding,) = stopping(check_network("node2", lab_rails(node=2)[:1] + lab_rails()[1:], facts))
    assert finding.check == "network.gid"
    assert finding.observed == "none; the addresses in the table are 192.168.100.1"


def test_infiniband_has_no_gid_by_address() -> None:
    rails = lab_rails()
    rails[0]["link_layer"] = "infiniband"
    statuses = [finding.status for finding in check_network("node1", rails, lab_facts()) if finding.check == "network.gid"]
    assert statuses == ["not_applicable", "ok"]
