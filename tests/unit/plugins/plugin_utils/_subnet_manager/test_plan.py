# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a host runs of the planes' subnet managers."""

from __future__ import annotations

import re
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._subnet_manager.conf import parse_conf
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.read import normalize
from ansible_collections.rdma.cluster.plugins.plugin_utils._subnet_manager.plan import (
    ManagerPlan,
    busy_hosts,
    fleet_ports,
    plan_managers,
    runs_subnet_manager,
)
from tests.unit.builders.known import known_of

HOSTS = ["n1", "n2", "n3", "n4"]
PCI = ("0000:18:00.0", "0000:40:00.0")
M_KEY = "0x00000000000000ff"


def guid(host: int, rail: int) -> str:
    return f"0x0002c903000{host}000{rail}"


def facts(host: int, family: str = "debian") -> dict[str, Any]:
    def device(rail: int) -> dict[str, Any]:
        digits = guid(host, rail)[2:]
        gid = "fe80:0000:0000:0000:" + ":".join(digits[at : at + 4] for at in range(0, 16, 4))
        return {"pci": {"address": PCI[rail]}, "ports": {"1": {"netdev": None, "gids": [{"index": 0, "gid": gid}]}}}

    devices = {f"mlx5_{rail}": device(rail) for rail in range(2)}
    return {"netdevs": {}, "devices": devices, "files": {}, "stack": {"distribution": {"family": family}}}


def fleet(partitions: Any = None, *, family: str = "debian", planes: Any = None, one_plane: bool = True, **manager: Any) -> dict[str, Any]:
    """Four hosts of two rails, with n1 as the master and n2 standing by."""
    names = ("a", "a" if one_plane else "b")
    rails = [{"name": f"r{i}", "nic": {"pci": PCI[i]}, "link_layer": "infiniband", "plane": names[i]} for i in range(2)]
    every = {name: {"subnet_manager": {"hosts": HOSTS[:2], **manager}} for name in names}
    intent = normalize({"rdma_rails": rails, "rdma_fabric": {"planes": planes or every}, "rdma_partitions": partitions or {}})
    return {host: {"intent": intent, "facts": facts(index, family)} for index, host in enumerate(HOSTS, 1)}


def plan(host: str, known: Any, keys: Any = None) -> ManagerPlan:
    return plan_managers(host, known_of(known), HOSTS, keys or {})


def test_both_hosts_have_the_same_files_and_their_own_port_and_priority() -> None:
    known = fleet({"t": {"key": 1, "members": ["n3", "n4"]}}, routing="ftree")
    one, two = (plan(host, known).instances[0] for host in HOSTS[:2])
    assert (one["guid"], one["priority"], one["device"], one["number"]) == (guid(1, 0), 14, "mlx5_0", "1")
    assert (two["guid"], two["priority"]) == (guid(2, 0), 13)
    assert (one["config"], one["partitions"]) == (two["config"], two["partitions"])
    assert parse_conf(one["config"])["routing_engine"] == "ftree"
    assert plan("n3", known).instances == []


def test_every_port_of_a_member_is_in_its_partition() -> None:
    text = plan("n1", fleet({"t": {"key": 1, "members": ["n3", {"guid": guid(4, 1), "membership": "limited"}]}})).instances[0]["partitions"]
    assert f"    {guid(3, 0)}=full,  # n3 mlx5_0\n    {guid(3, 1)}=full,  # n3 mlx5_1\n    {guid(4, 1)}=limited ;\n" in text
    assert guid(4, 0) not in text


def test_a_plane_has_only_the_ports_that_are_on_it() -> None:
    known = fleet({"t": {"key": 1, "members": ["n3"]}}, one_plane=False)
    first, second = plan("n1", known).instances
    assert (first["guid"], second["guid"]) == (guid(1, 0), guid(1, 1))
    assert (guid(3, 0) in first["partitions"], guid(3, 1) in first["partitions"]) == (True, False)
    assert guid(3, 1) in second["partitions"]


def test_a_member_whose_ports_are_not_known_stops_it() -> None:
    """Written without it, it would lose its partition."""
    partitions = {"t": {"key": 1, "members": ["n3", "n4"]}}
    for lost in ({"intent": None, "facts": None}, {**fleet(partitions)["n4"], "facts": None}):
        found = plan("n1", {**fleet(partitions), "n4": lost})
        assert [each for each in found.problems if "n4 on plane a are unknown" in each] == found.problems
        assert len(found.problems) == 1
    known = fleet(partitions)
    known["n4"]["facts"]["devices"] = {}
    assert len(plan("n1", known).problems) == 1
    del known["n4"]
    assert len(plan("n1", known).problems) == 1


def test_everybody_in_a_partition_needs_no_ports() -> None:
    text = plan("n1", fleet({"all": {"key": 1, "members": "all", "ipoib": True, "mtu": 4096}})).instances[0]["partitions"]
    assert "\nall=0x0001, ipoib, mtu=5 :\n    ALL=full ;\n" in text
    assert "\nDefault=0x7fff, ipoib, mtu=4 :\n    ALL=full ;\n" in text


def test_the_default_partition_is_limited_only_where_the_intent_says_so() -> None:
    tenants = {"t": {"key": 1, "members": ["n3", "n4"]}}
    (left,), (given,) = (plan("n1", fleet(tenants, **more)).instances for more in ({}, {"default_membership": "limited"}))
    assert (left["default_given"], given["default_given"]) == (False, True)
    assert "    ALL=full ;\n" in left["partitions"]
    assert "    ALL=limited,\n    SELF=full ;\n" in given["partitions"]
    named = {**tenants, "ground": {"key": 0x7FFF, "members": "all"}}
    assert plan("n1", fleet(named)).instances[0]["default_given"]


def test_who_may_be_the_master_is_known_by_guid() -> None:
    known = fleet()
    known["n2"]["facts"]["devices"]["mlx5_1"]["ports"]["1"]["lid"] = 7
    (one,) = plan("n1", known).instances
    assert one["managers"] == {guid(1, 0): "n1", guid(1, 1): "n1", guid(2, 0): "n2", guid(2, 1): "n2"}
    assert (one["lids"], one["unread"]) == (["7"], [])
    known["n2"]["facts"] = None
    assert plan("n1", known).instances[0]["unread"] == ["n2"]


def test_an_opensm_of_a_named_host_is_ours_only_with_our_file_for_the_plane() -> None:
    known = fleet()
    assert plan("n2", known).instances[0]["unconfigured"] == ["n1", "n2"]
    known["n1"]["facts"]["files"] = {"/etc/rdma-cluster/opensm-a.conf": "x"}
    known["n2"]["facts"]["files"] = {"/etc/rdma-cluster/opensm-b.conf": "x"}
    assert plan("n2", known).instances[0]["unconfigured"] == ["n2"]
    known["n1"]["facts"] = None
    assert plan("n2", known).instances[0]["unconfigured"] == ["n1", "n2"]


def test_ports_and_hosts_in_use_of_the_whole_run() -> None:
    known = fleet()
    known["n3"]["facts"]["load"] = {"gpu_processes": [], "jobs": [{"pid": 7, "name": "slurmstepd"}]}
    for idle in ("n1", "n2"):
        known[idle]["facts"]["load"] = {"gpu_processes": [], "jobs": []}
    known["n5"] = {"intent": None, "facts": None}
    assert fleet_ports(known_of(known))[guid(3, 1)] == "n3 mlx5_1"
    assert busy_hosts(known_of(known), ["n6"]) == {
        "n3": "job process 7 (slurmstepd)", "n4": "whether it is in use is unknown", "n5": "not read in this run",
        "n6": "not read in this run",
    }  # fmt: skip
    # n1 was idle when it was read, and has not answered since.
    assert busy_hosts(known_of(known), [], ["n1", "n3"])["n1"] == "not read again, because it failed or did not answer in this run"
    assert busy_hosts(known_of(known), [], ["n1", "n3"])["n3"] == "job process 7 (slurmstepd)"


def test_secrets_are_given_beside_the_intent() -> None:
    known = fleet(m_key_protection_level=2)
    assert plan("n1", known).problems == ["plane a has m_key_protection_level 2, but subnet_manager_keys.a.m_key is missing"]
    done = plan("n1", known, {"a": {"m_key": M_KEY}})
    assert done.problems == []
    assert parse_conf(done.instances[0]["config"])["m_key"] == M_KEY
    assert done.instances[0]["diags"].splitlines()[1:] == [f"m_key={M_KEY}"]
    assert plan("n1", fleet()).instances[0]["diags"] is None
    wrong = {"a": {"m_key": "255", "sm": "x"}, "z": {"m_key": M_KEY}}
    assert [each.split(" ")[0] for each in plan("n1", known, wrong).problems] == [
        "subnet_manager_keys.a.m_key", "subnet_manager_keys.a", "subnet_manager_keys",
    ]  # fmt: skip


@pytest.mark.parametrize(("family", "flavor"), [("debian", "debian"), ("rpm", "rhel")])
def test_whose_opensm_it_is(family: str, flavor: str) -> None:
    assert plan("n1", fleet(family=family)).flavor == flavor
    assert bool(plan("n1", fleet(family=family, one_plane=False)).problems) == (flavor == "rhel")


@pytest.mark.parametrize(("family", "starts"), [("debian", True), ("rpm", False), (None, True)])
def test_a_vendor_s_stack_does_not_say_that_the_package_starts_nothing(family: Any, starts: bool) -> None:
    """With DOCA or MLNX_OFED on Debian, apt may take opensm from Debian, which starts it on every port."""
    known = fleet(family=family)
    known["n1"]["intent"]["driver"] = {**(known["n1"]["intent"].get("driver") or {}), "stack": "doca"}
    found = plan("n1", known)
    assert (found.flavor, found.starts_at_install) == ("ofed", starts)


def test_a_host_that_the_inventory_lacks_and_a_port_that_is_not_there() -> None:
    assert "did you mean n4?" in plan("n1", fleet(hosts=["n1", "nn4"])).problems[0]
    known = fleet()
    known["n1"]["facts"]["devices"] = {}
    assert "has no known InfiniBand port on it" in plan("n1", known).problems[0]


def test_who_has_something_to_do() -> None:
    intent = fleet()["n1"]["intent"]
    assert runs_subnet_manager(intent, "n2", from_dict({"files": {}}))
    assert not runs_subnet_manager(intent, "n3", from_dict({"files": {"/etc/rdma-cluster/nccl.env": "x"}}))
    assert runs_subnet_manager(intent, "n3", from_dict({"files": {"/etc/rdma-cluster/opensm-a.conf": "x"}}))


EVIL = [
    "fe80:0000:0000:0000:0002:c903:0002:fb02=full, ALL",
    "fe80:0000:0000:0000:ALL",
    "fe80:0000:0000:0000:0002:c903:0002:fb0",
    "fe80:0000:0000:0000:0002:c903:0002:fb02\n",
    "fe80:0000:0000:0000:0002:c903:0002:fb02:fb02",
    "fe80:0000:0000:0000:0000:0000:0000:0000",
    "fe80:0000:0000:0000:٠٠٠٢:c903:0002:fb02",
    7,
]


@pytest.mark.parametrize("gid", EVIL)
def test_a_gid_that_is_none_does_not_come_into_the_partitions(gid: Any) -> None:
    known = fleet({"t": {"key": 1, "members": ["n3", "n4"]}})
    for device in known["n4"]["facts"]["devices"].values():
        device["ports"]["1"]["gids"][0]["gid"] = gid
    found = plan("n1", known)
    assert [each for each in found.problems if "n4 on plane a are unknown" in each] == found.problems
    assert len(found.problems) == 1
    lines = [line.strip() for line in found.instances[0]["partitions"].splitlines() if line.startswith("    ")]
    assert [line for line in lines if re.fullmatch(r"(0x[0-9a-f]{16}|ALL)=full( ;|,)(  # n3 mlx5_[01])?", line) is None] == []


@pytest.mark.parametrize("link_layer", ["InfiniBand", "Ethernet", None])
def test_a_guid_that_two_hosts_claim_stops_it_and_names_both(link_layer: str | None) -> None:
    known = fleet({"t": {"key": 1, "members": ["n2", "n3"]}})
    known["n2"]["facts"]["devices"]["mlx5_1"]["ports"]["1"] = {
        **known["n4"]["facts"]["devices"]["mlx5_0"]["ports"]["1"], "link_layer": link_layer,
    }  # fmt: skip
    (problem,) = plan("n1", known).problems
    assert "n2 (mlx5_1) and n4 (mlx5_0)" in problem
    assert guid(4, 0) in problem
    assert plan("n1", fleet({"t": {"key": 1, "members": ["n2", "n3"]}})).problems == []


def test_a_host_without_facts_claims_nothing() -> None:
    known = fleet()
    known["n4"] = {"intent": None, "facts": None}
    assert plan("n1", known).problems == []
