# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The gates of driver and network on one host, over the facts of a lab machine and faults in them."""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding, stopping
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.driver.driver import check_driver
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.network.network import check_network
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from tests.unit.builders.hosts import lab_facts, lab_rails

MODULES = ["ib_core", "ib_uverbs", "rdma_cm", "rdma_ucm", "rdma_rxe"]


def bad(findings: list[Finding]) -> list[tuple[str, str, str]]:
    return [(finding.check, finding.subject, finding.status) for finding in stopping(findings)]


def test_a_good_host_passes_every_gate() -> None:
    facts = lab_facts()
    assert {finding.status for finding in check_driver("node1", lab_rails(), from_dict(facts), MODULES)} == {"ok"}
    assert {finding.status for finding in check_network("node1", lab_rails(), from_dict(facts))} == {"ok"}


def test_a_module_that_is_not_loaded() -> None:
    facts = lab_facts()
    del facts["stack"]["modules"]["rdma_ucm"]
    assert bad(check_driver("node1", lab_rails(), from_dict(facts), MODULES)) == [("driver.module", "kernel module rdma_ucm", "error")]


def test_a_nic_that_is_not_there_names_those_that_are() -> None:
    rails = lab_rails()
    rails[1]["nic"] = {"pci": "0000:42:00.0"}
    (finding,) = stopping(check_driver("node1", rails, from_dict(lab_facts()), MODULES))
    assert finding.check == "driver.nic"
    assert finding.observed == "no NIC with pci 0000:42:00.0; there are 0000:00:02.0, 0000:21:00.0, 0000:41:00.0"


def test_a_nic_without_rdma_device() -> None:
    facts = lab_facts()
    del facts["devices"]["rxe_rail1"]
    (finding,) = stopping(check_driver("node1", lab_rails(), from_dict(facts), MODULES))
    assert (finding.check, finding.subject) == ("driver.device", "rail 1 (rail1, 0000:41:00.0, ens2)")
    assert "rdma-soft-links.service" in finding.remedy


def test_the_wrong_mtu() -> None:
    facts = lab_facts()
    facts["netdevs"]["ens1"]["mtu_bytes"] = 1500
    (finding,) = stopping(check_network("node1", lab_rails(), from_dict(facts)))
    assert (finding.check, finding.observed, finding.expected) == ("network.mtu", "1500 bytes", "9000 bytes")


def test_an_address_that_is_not_in_the_gid_table() -> None:
    facts = lab_facts()
    (finding,) = stopping(check_network("node2", lab_rails(node=2)[:1] + lab_rails()[1:], from_dict(facts)))
    assert finding.check == "network.gid"
    assert finding.observed == "none; the GID table has 192.168.100.1"


def test_infiniband_has_no_gid_by_address() -> None:
    rails = lab_rails()
    rails[0]["link_layer"] = "infiniband"
    statuses = [finding.status for finding in check_network("node1", rails, from_dict(lab_facts())) if finding.check == "network.gid"]
    assert statuses == ["not_applicable", "ok"]
