# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Planes, partitions and IP over InfiniBand that contradict themselves: each is reported by its path, and what is sound is not."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.problem import IntentError
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.read import normalize
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.rules.fabric import (
    manager_host_problems,
    member_problems,
    members_of,
    plane_problems,
)
from tests.unit.builders.subnet_managers import SUBNET_MANAGER, manager

RAIL = {"name": "rail0", "nic": {"pci": "0000:18:00.0"}, "link_layer": "infiniband", "plane": "compute"}
HOSTS = ["n1", "n2", "n3", "n4"]
GUID = "0x0002c9030002FB05"


def intent(manager: Any = None, partitions: Any = None, rail: Any = None, stack: str = "inbox", **more: Any) -> dict[str, Any]:
    return normalize(
        {
            "rdma_rails": [{**RAIL, **(rail or {})}],
            "rdma_fabric": {"planes": {"compute": {"subnet_manager": manager}}},
            "rdma_partitions": partitions or {},
            "rdma_driver": {"stack": stack},
            **more,
        }
    )


def test_what_is_written_down_for_hosts_tests_is_what_the_intent_says() -> None:
    assert intent(manager={"hosts": ["n1"]})["fabric"]["planes"]["compute"]["subnet_manager"] == SUBNET_MANAGER
    given: dict[str, Any] = {"hosts": ["n1"], "lmc": 2, "log": {"flags": 7}, "qos": {"enabled": True, "max_vls": 4}}
    assert intent(manager=given)["fabric"]["planes"]["compute"]["subnet_manager"] == manager(**given)


def problems(**given: Any) -> list[str]:
    with pytest.raises(IntentError) as error:
        intent(**given)
    return [str(problem) for problem in error.value.problems]


def tenants(**second: Any) -> dict[str, Any]:
    return {"one": {"key": 1, "members": HOSTS[:2]}, "two": {"key": 2, "members": HOSTS[2:], **second}}


def test_a_sound_fabric_has_opensms_own_defaults() -> None:
    found = intent({"hosts": ["n1", "n2"]}, tenants())
    manager = found["fabric"]["planes"]["compute"]["subnet_manager"]
    assert manager["kind"] == "hosts"
    assert (manager["lmc"], manager["sweep_interval_seconds"], manager["subnet_prefix"]) == (0, 10, "0xfe80000000000000")
    assert manager["qos"] == {
        "enabled": False, "max_vls": 0, "high_limit": -1, "vlarb_high": None, "vlarb_low": None, "sl2vl": None,
    }  # fmt: skip
    assert found["rails"][0]["mtu_bytes"] is None, "an absent setting leaves the interface as it is"
    assert intent()["fabric"]["planes"]["compute"]["subnet_manager"] is None


MANAGERS = [
    ({}, "subnet_manager.hosts is missing: kind is hosts"),
    ({"hosts": ["a", "b", "c"]}, "subnet_manager.hosts has 3 hosts"),
    ({"hosts": ["a", "a"]}, "subnet_manager.hosts has a twice"),
    ({"kind": "switch", "hosts": ["a"]}, "subnet_manager.hosts is given, but kind is switch"),
    ({"kind": "switch", "routing": "ftree"}, "subnet_manager.routing is ftree, but kind is switch"),
    ({"kind": "switch", "m_key_protection_level": 2}, "m_key_protection_level is 2, but kind is switch"),
    ({"kind": "switch", "default_membership": "full"}, "default_membership is full, but kind is switch"),
    ({"hosts": ["a"], "switch": "sw1"}, "subnet_manager.switch is sw1, but kind is hosts"),
    ({"kind": "none", "sharp": True}, "subnet_manager.sharp is True, but kind is none"),
    ({"hosts": ["a"], "routing": "ar_updn"}, "routing is ar_updn, which the distribution's opensm does not support"),
    ({"hosts": ["a"], "sharp": True}, "sharp is true, but rdma_driver.stack is inbox"),
    ({"hosts": ["a"], "routing": "torus-2QoS"}, "routing is torus-2QoS, which needs service levels"),
    ({"hosts": ["a"], "routing": "ftre"}, "routing must be one of minhop, updn"),
    ({"hosts": ["a"], "lmc": 8}, "lmc must be at most 7"),
    ({"hosts": ["a"], "m_key": "0x1"}, "has no key 'm_key'"),
    ({"hosts": ["a"], "subnet_prefix": "fe80"}, "subnet_prefix must be 64 bits in hexadecimal"),
]


@pytest.mark.parametrize(("manager", "words"), MANAGERS, ids=[words[-32:] for _manager, words in MANAGERS])
def test_a_subnet_manager_that_cannot_be(manager: Any, words: str) -> None:
    found = problems(manager=manager)
    assert len([each for each in found if words in each]) == 1, found


def test_nvidias_engines_are_sound_with_nvidias_stack() -> None:
    manager = {"hosts": ["a"], "routing": "ar_updn", "sharp": True}
    planes = {"compute": {"subnet_manager": intent({"hosts": ["a"]})["fabric"]["planes"]["compute"]["subnet_manager"] | manager}}
    assert list(plane_problems(planes, "doca")) == []
    assert len(list(plane_problems(planes, "inbox"))) == 2


ONE = {"key": 1, "members": ["n1"]}
PARTITIONS = [
    ({"a": ONE, "A": {"key": 2, "members": ["n2"]}}, "rdma_partitions.A has the same name as a"),
    ({"a": ONE, "b": {**ONE, "members": ["n2"]}}, "rdma_partitions.b.key is 0x0001, like that of a"),
    ({"a": {**ONE, "members": ["n1", "n1"]}}, "rdma_partitions.a.members[1] is n1, like members[0]"),
    ({"a": {**ONE, "members": [GUID, {"guid": GUID}]}}, "rdma_partitions.a.members[1] is 0x0002c9030002fb05, like"),
    ({"a": {**ONE, "members": [{"host": "n1", "guid": GUID}]}}, "rdma_partitions.a.members[0] names both a host and a GUID"),
    ({"a": {**ONE, "members": [{"membership": "full"}]}}, "rdma_partitions.a.members[0] names both a host and a GUID, or neither"),
    ({"a": {**ONE, "membership": "limited"}}, "rdma_partitions.a.members are all limited"),
    ({"a": {"key": 1, "members": "all", "membership": "limited"}}, "rdma_partitions.a.membership is limited for all"),
    ({"a": {**ONE, "ipoib": True, "mtu": 3000}}, "rdma_partitions.a.mtu is 3000, which is not an InfiniBand MTU"),
    ({"a": {**ONE, "mtu": 4096}}, "rdma_partitions.a.mtu is given, but ipoib is false"),
    ({"a": {**ONE, "sl": 3}}, "rdma_partitions.a.sl is 3, but opensm of plane compute would set it to 0"),
    ({"a": ONE, "b": {"key": 2, "members": ["n2", "n1"]}}, "rdma_partitions.b.members have n1 in common with a"),
    ({"a": ONE, "b": {"key": 2, "members": "all"}}, "rdma_partitions.b.members have every member in common with a"),
    ({"b": {"key": 2, "members": "all"}, "a": ONE}, "rdma_partitions.a.members have every member in common with b"),
    (
        {"a": {**ONE, "index0": True}, "b": {"key": 2, "members": ["n1"], "index0": True, "shared": True}},
        "rdma_partitions.b.members have n1 in common with a: a table has one first entry",
    ),
]


@pytest.mark.parametrize(("partitions", "words"), PARTITIONS, ids=[str(index) for index in range(len(PARTITIONS))])
def test_partitions_that_contradict(partitions: Any, words: str) -> None:
    found = problems(manager={"hosts": ["n1"]}, partitions=partitions)
    assert len(found) == 1, found
    assert words in found[0]


SOUND = [
    tenants(),
    tenants(members=HOSTS, shared=True),
    {**tenants(), "all": {"key": 3, "members": "all", "shared": True}},
    {**tenants(), "Default": {"key": 0x7FFF, "members": "all", "membership": "limited"}},
    {"store": {"key": 1, "members": [{"host": "n1", "membership": "full"}, "n2"], "membership": "limited"}},
]


@pytest.mark.parametrize("partitions", SOUND, ids=[str(index) for index in range(len(SOUND))])
def test_partitions_that_are_sound(partitions: Any) -> None:
    assert set(intent({"hosts": ["n1"]}, partitions)["partitions"]) == set(partitions)


def test_members_have_one_form() -> None:
    partition = {"key": 1, "membership": "limited", "members": ["n1", GUID, {"host": "n2", "membership": "full"}]}
    found = members_of(intent(partitions={"a": partition})["partitions"]["a"])
    assert found is not None
    assert [(each.host, each.guid, each.membership) for each in found] == [
        ("n1", None, "limited"),
        (None, GUID.lower(), "limited"),
        ("n2", None, "full"),
    ]
    assert members_of({"members": "all", "membership": "full"}) is None


def test_hosts_that_the_inventory_lacks_are_reported_with_the_nearest() -> None:
    known = intent({"hosts": ["n1", "nn2"]}, {"a": {"key": 1, "members": ["n1", "gpu7", GUID]}})
    found = [*member_problems(known["partitions"], HOSTS), *manager_host_problems(known["fabric"]["planes"], HOSTS)]
    assert [(path, message) for path, message, _expected in found] == [
        ("a.members[1]", "is gpu7, which is not in the inventory"),
        ("planes.compute.subnet_manager.hosts[1]", "is nn2, which is not in the inventory"),
    ]
    assert found[1][2].endswith("did you mean n2?")


IPOIB = [
    ({"mtu_bytes": 4093}, "rdma_rails[0].mtu_bytes is 4093, but IP over InfiniBand carries 4092 in datagram mode"),
    ({"ipoib": {"mode": "connected"}, "mtu_bytes": 65521}, "rdma_rails[0].mtu_bytes is 65521, but IP over InfiniBand carries 65520"),
    ({"ipoib": {"children": {"b": {}}}}, "rdma_rails[0].ipoib.children.b is not a partition"),
    ({"ipoib": {"children": {"dry": {}}}}, "rdma_rails[0].ipoib.children.dry is a partition without ipoib"),
    ({"ipoib": {"children": {"a": {"mtu_bytes": 4092}}}}, "ipoib.children.a.mtu_bytes is 4092, but the partition carries 2044"),
    (
        {"ipoib": {}, "link_layer": "roce", "address": "10.0.0.1/24", "mtu_bytes": 9000},
        "rdma_rails[0].ipoib is given, but rail0 is RoCE",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("rail", "words"), IPOIB, ids=[str(index) for index in range(len(IPOIB))])
def test_ip_over_infiniband_that_cannot_be(rail: Any, words: str) -> None:
    partitions = {"a": {"key": 1, "members": ["n1"], "ipoib": True}, "dry": {"key": 2, "members": ["n2"]}}
    found = problems(partitions=partitions, rail=rail)
    assert len(found) == 1, found
    assert words in found[0]


def test_connected_mode_carries_more() -> None:
    connected = {"ipoib": {"mode": "connected"}}
    assert intent(rail={**connected, "mtu_bytes": 65520})["rails"][0]["mtu_bytes"] == 65520
    assert intent(rail=connected)["rails"][0]["mtu_bytes"] is None


def test_the_default_partition_is_given_once() -> None:
    named = {"ground": {"key": 0x7FFF, "members": "all"}}
    assert intent({"hosts": ["n1"]}, named)
    (problem,) = problems(manager={"hosts": ["n1"], "default_membership": "limited"}, partitions=named)
    assert "is the default partition, whose membership plane compute also sets" in problem
