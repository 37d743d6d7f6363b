# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Device nodes at the driver gate: programs can open what is there."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.driver.driver import check_driver, check_nodes
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from tests.unit.builders.hosts import lab_facts, lab_rails


def check(*nodes: str | None, **modules: Any) -> list[tuple[str, str, str]]:
    facts = lab_facts()
    facts["stack"]["modules"] = modules or {"ib_uverbs": {}}
    for rail, node in enumerate(nodes):
        facts["devices"][f"rxe_rail{rail}"]["uverbs"] = node
    found = check_nodes("node1", lab_rails(), from_dict(facts))
    assert {(finding.stage, finding.check, finding.host) for finding in found} <= {("driver", "driver.node", "node1")}
    assert all(bool(finding.remedy) is (finding.status == "error") for finding in found)
    return [(finding.subject, finding.status, finding.observed) for finding in found]


RAILS = ["rail 0 (rail0, 0000:21:00.0, ens1)", "rail 1 (rail1, 0000:41:00.0, ens2)"]


def test_nodes_that_are_there() -> None:
    assert check("/dev/infiniband/uverbs0", "/dev/infiniband/uverbs1") == [
        (RAILS[0], "ok", "/dev/infiniband/uverbs0"),
        (RAILS[1], "ok", "/dev/infiniband/uverbs1"),
    ]


def test_one_that_is_not_there() -> None:
    assert check("/dev/infiniband/uverbs0", None) == [
        (RAILS[0], "ok", "/dev/infiniband/uverbs0"),
        (RAILS[1], "error", "none for rxe_rail1"),
    ]


def test_a_container_without_any_is_one_error() -> None:
    assert check(None, None) == [("every rail", "error", "none for rxe_rail0, rxe_rail1")]


def test_without_ib_uverbs_it_is_the_finding_of_another_check() -> None:
    assert check(None, None, ib_core={}) == [("every rail", "not_applicable", "ib_uverbs is not loaded: see driver.module")]


@pytest.mark.parametrize("gone", ["rxe_rail0", "rxe_rail1"])
def test_a_rail_without_device_is_the_finding_of_another_check(gone: str) -> None:
    facts = lab_facts()
    for name, device in facts["devices"].items():
        device["uverbs"] = f"/dev/infiniband/{name}"
    del facts["devices"][gone]
    assert [finding.status for finding in check_nodes("node1", lab_rails(), from_dict(facts))] == ["ok"]


NODES = {"/dev/infiniband/uverbs0": 0o666, "/dev/infiniband/uverbs1": 0o666, "/dev/infiniband/rdma_cm": 0o666}


def nodes(modes: dict[str, int], *modules: str) -> list[Finding]:
    facts = lab_facts()
    facts["stack"]["modules"] = {name: {} for name in modules or ("ib_uverbs", "rdma_ucm")}
    return check_nodes("node1", lab_rails(), from_dict({**facts, "nodes": modes}))


def test_modes_and_the_node_of_rdma_cm() -> None:
    assert [(finding.subject, finding.status) for finding in nodes(NODES)] == [(RAILS[0], "ok"), (RAILS[1], "ok"), ("RDMA-CM", "ok")]
    assert len(nodes(NODES, "ib_uverbs")) == 2


def test_a_rule_that_closes_a_node_is_to_be_found() -> None:
    closed = [finding for finding in nodes({**NODES, "/dev/infiniband/uverbs1": 0o660}) if finding.status == "error"]
    assert [(finding.subject, finding.expected) for finding in closed] == [(RAILS[1], "/dev/infiniband/uverbsN, mode 0666")]
    assert closed[0].observed == "/dev/infiniband/uverbs1 has mode 0660: not all users may open it"
    assert "grep -rn uverbs /etc/udev/rules.d" in closed[0].remedy
    assert [finding.status for finding in nodes({**NODES, "/dev/infiniband/rdma_cm": 0o600})] == ["ok", "ok", "error"]


def test_rdma_cm_without_its_node() -> None:
    without = {path: mode for path, mode in NODES.items() if "rdma_cm" not in path}
    finding = nodes(without)[-1]
    assert (finding.subject, finding.status, finding.observed) == ("RDMA-CM", "error", "no /dev/infiniband/rdma_cm")


def device(*, soft: bool) -> Finding:
    """What is said of a NIC that has a Soft-RoCE device and no other."""
    facts = lab_facts()
    rails = [{**lab_rails()[0], "soft": soft}]
    (finding,) = [finding for finding in check_driver("node1", rails, from_dict(facts), []) if finding.check == "driver.device"]
    assert finding.subject == RAILS[0]
    return finding


def test_a_software_device_is_none_of_a_real_nic() -> None:
    assert device(soft=True).status == "ok"
    finding = device(soft=False)
    assert (finding.status, finding.observed) == ("error", "only rxe_rail0, a software device")
    assert "`rdma link delete rxe_rail0`" in finding.remedy


def test_a_nic_in_a_bond_is_distinguished_from_one_without_driver() -> None:
    facts = lab_facts()
    facts["devices"]["mlx5_bond_0"] = facts["devices"].pop("rxe_rail0")
    facts["devices"]["mlx5_bond_0"]["ports"]["1"]["netdev"] = "bond0"
    facts["netdevs"]["ens1"]["master"] = "bond0"
    hard = [{**lab_rails()[0], "soft": False}]
    (finding,) = [each for each in check_driver("node1", hard, from_dict(facts), []) if each.check == "driver.device"]
    assert (finding.status, finding.observed) == ("error", "no RDMA device of its own: ens1 is part of bond0")
    assert "To use the bond as a rail, set `bond` of rail0." in finding.remedy


def test_a_package_that_is_missing_on_either_family() -> None:
    facts = lab_facts()
    facts["stack"]["distribution"]["packages"] = {"perftest": None, "rdma-core": "48.0-1.el9"}
    found = {finding.subject: finding for finding in check_driver("node1", [], from_dict(facts), []) if finding.check == "driver.package"}
    assert {subject: finding.status for subject, finding in found.items()} == {"package perftest": "error", "package rdma-core": "ok"}
    assert found["package perftest"].remedy == "Run the driver stage for node1. If that fails, read the error of apt or dnf in its output."


def test_a_package_that_a_vendor_s_stack_lacks_is_not_promised_by_the_driver_stage() -> None:
    facts = lab_facts()
    facts["stack"]["distribution"].update(packages={"perftest": None}, vendor={"ofed-scripts": "24.10.OFED.24.10.1.1.4-1"})
    (finding,) = [each for each in check_driver("node1", [], from_dict(facts), []) if each.check == "driver.package"]
    assert finding.remedy == (
        "Install it on node1 from the repository or bundle of the installed driver stack. The driver stage does not add to that stack."
    )
