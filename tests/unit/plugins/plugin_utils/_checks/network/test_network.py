# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The MTU of RDMA at the network gate."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.roce_mtu import efficiency_percent, rdma_mtu_bytes
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.network.network import check_network, check_rdma_mtu
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from tests.unit.builders.cards import card_facts, first_port, infiniband_rails
from tests.unit.builders.hosts import lab_facts, lab_rails


# iboe_get_mtu of Linux, and the boundaries of part B2.
@pytest.mark.parametrize(
    ("mtu_bytes", "rdma_mtu"),
    [
        (9000, 4096),
        (4192, 4096),
        (4191, 2048),
        (2144, 2048),
        (2143, 1024),
        (1500, 1024),
        (1280, 1024),
        (1119, 512),
        (352, 256),
        (351, None),
    ],
)
def test_the_mtu_of_rdma_by_that_of_the_interface(mtu_bytes: int, rdma_mtu: int | None) -> None:
    assert rdma_mtu_bytes(mtu_bytes) == rdma_mtu


@pytest.mark.parametrize(("rdma_mtu", "percent"), [(4096, 98.04), (2048, 96.15), (1024, 92.59)])
def test_the_share_of_the_rate_that_is_payload(rdma_mtu: int, percent: float) -> None:
    assert efficiency_percent(rdma_mtu) == pytest.approx(percent, abs=0.005)


def check(seen_bytes: int | None = 9000, active: int | None = 4096, why: str | None = None, **rail: Any) -> Finding:
    facts = lab_facts()
    facts["netdevs"]["ens1"]["mtu_bytes"] = seen_bytes
    facts["devices"]["rxe_rail0"]["ports"]["1"].update(active_mtu_bytes=active, active_mtu_error=why)
    finding = check_rdma_mtu("node1", [{**lab_rails()[0], **rail}], from_dict(facts))[0]
    assert (finding.stage, finding.check, finding.host) == ("network", "network.rdma_mtu", "node1")
    assert finding.subject.startswith("rail 0 (rail0, ")
    return finding


def test_the_largest_is_well() -> None:
    assert [finding.status for finding in check_rdma_mtu("node1", lab_rails(), from_dict(lab_facts()))] == ["ok", "ok"]
    assert check().observed == "4096 bytes with an MTU of 9000: 98.0 % of the rate is payload"


@pytest.mark.parametrize("planned", [1500, 9000])
def test_a_small_one_is_a_warning_even_if_it_is_planned(planned: int) -> None:
    finding = check(1500, active=1024, mtu_bytes=planned)
    assert (finding.status, finding.observed) == ("warning", "1024 bytes with an MTU of 1500: 92.6 % of the rate is payload")
    assert "Set mtu_bytes of rail0 to 9000 (at least 4192)" in finding.remedy
    assert ("see network.mtu for why" in finding.remedy) is (planned == 9000)


def test_what_the_port_says_counts() -> None:
    finding = check(9000, active=1024)
    assert (finding.status, finding.observed) == ("warning", "1024 bytes with an MTU of 9000: 92.6 % of the rate is payload")
    assert finding.remedy == "On node1, set ens1 down and up: its RDMA port still uses the old MTU."
    assert check(9000, active=4096).status == "ok"


@pytest.mark.parametrize("why", ["command not found: ibv_devinfo", None])
def test_an_active_mtu_that_was_not_read_is_unknown(why: str | None) -> None:
    """What the kernel would derive from the interface's MTU is no observation."""
    finding = check(9000, active=None, why=why)
    assert (finding.status, finding.observed) == (
        "unknown",
        f"the active MTU of rxe_rail0/1 was not read: {why or 'the facts do not contain it'}",
    )
    assert finding.remedy.startswith("1. Run `ibv_devinfo -d rxe_rail0 -i 1` on node1. 2. ")


def test_a_rail_without_an_rdma_device_is_the_finding_of_another_check() -> None:
    facts = lab_facts()
    del facts["devices"]["rxe_rail0"]
    finding = check_rdma_mtu("node1", lab_rails(), from_dict(facts))[0]
    assert (finding.status, finding.observed) == ("not_applicable", "no RDMA device: see network.gid")


@pytest.mark.parametrize(
    ("load", "users"),
    [
        (
            {"qps": [{"device": "rxe_rail0", "port": 1, "pid": 4711, "name": "ib_write_bw", "count": 2}]},
            "2 queue pairs of ib_write_bw (pid 4711)",
        ),
        ({"qps": [{"device": "rxe_rail1", "port": 1, "pid": 4711, "name": "ib_write_bw", "count": 2}]}, None),
        ({"jobs": [{"pid": 9, "name": "slurmstepd"}]}, "job process 9 (slurmstepd)"),
        ({"qps": None, "qps_error": "command not found: rdma"}, "queue pairs cannot be read (command not found: rdma)"),
        ({}, None),
    ],
)
def test_a_finding_says_who_keeps_the_stage_from_fixing_it(load: dict[str, Any], users: str | None) -> None:
    facts = lab_facts()
    facts["netdevs"]["ens1"]["mtu_bytes"] = 1500
    facts["load"].update(load)
    finding = next(each for each in check_network("node1", lab_rails(), from_dict(facts)) if each.check == "network.mtu")
    assert finding.status == "error"
    assert "On node1, find what else manages ens1: `networkctl status ens1`." in finding.remedy
    assert (f"while the rail is in use: {users}" in finding.remedy) is (users is not None)
    assert ("does not change the MTU" in finding.remedy) is (users is not None)


def test_an_mtu_that_carries_no_roce() -> None:
    finding = check(300)
    assert (finding.status, finding.observed) == ("warning", "none: an MTU of 300 bytes is too small for RoCE")


@pytest.mark.parametrize(
    ("mtu_bytes", "rail"), [(9000, {"link_layer": "infiniband"}), (None, {}), (9000, {"nic": {"pci": "0000:99:00.0"}})]
)
def test_where_there_is_nothing_to_say(mtu_bytes: int | None, rail: dict[str, Any]) -> None:
    assert check(mtu_bytes, **rail).status == "not_applicable"


def test_an_mtu_that_is_not_planned_is_left_to_the_comparison_of_hosts() -> None:
    rails = [{**rail, "mtu_bytes": None} for rail in lab_rails()]
    found = [finding for finding in check_network("node1", rails, from_dict(lab_facts())) if finding.check == "network.mtu"]
    assert {finding.status for finding in found} == {"not_applicable"}
    assert "alike.mtu" in found[0].observed
    facts = lab_facts()
    facts["netdevs"]["ens1"]["mtu_bytes"] = None
    assert next(each for each in check_network("node1", rails, from_dict(facts)) if each.check == "network.mtu").status == "unknown"
    assert check(1500, active=1024, mtu_bytes=None).remedy.endswith("(9216).")


@pytest.mark.parametrize(
    ("address", "device", "status"),
    [(None, "mlx5_0", "not_applicable"), ("10.0.0.1/24", "mlx5_0", "unknown"), (None, None, "unknown")],
    ids=["RDMA alone", "an address is planned", "no device either"],
)
def test_the_mtu_of_infiniband_without_ipoib(address: str | None, device: str | None, status: str) -> None:
    facts = card_facts("InfiniBand")
    first_port(facts)["netdev"] = None
    del facts["netdevs"]["ens1np0"]
    if device is None:
        del facts["devices"]["mlx5_0"]
    rails = [{**infiniband_rails()[0], "mtu_bytes": 2044, "address": address}]
    (finding,) = [finding for finding in check_network("node1", rails, from_dict(facts)) if finding.check == "network.mtu"]
    assert finding.status == status
