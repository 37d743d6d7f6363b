# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""P_Keys: in the table of each member's port, and in no other."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.link.pkey import check_pkeys, planned_keys
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from tests.unit.builders.cards import HOST, card_facts, infiniband_rails

GUID = "0xa088c20300000000"
GID = "fe80:0000:0000:0000:a088:c203:0000:0000"


def partition(key: int, members: Any = "all", **more: Any) -> dict[str, Any]:
    base = {"membership": "full", "shared": False, "index0": False, "ipoib": False, "mtu": 2048, "sl": 0}
    return {"key": key, "members": members, **base, **more}


TENANTS = {"one": partition(1, [HOST]), "two": partition(2, ["node2"])}
MANAGER = {"kind": "hosts", "hosts": ["boss"], "default_membership": "limited"}


def check(*keys: int, partitions: Any = None, manager: Any = None, port: Any = None) -> list[Finding]:
    """The findings of a host whose first rail has these keys."""
    facts = card_facts("InfiniBand")
    first = facts["devices"]["mlx5_0"]["ports"]["1"]
    first.update({"pkeys": {str(index): key for index, key in enumerate(keys)}, "gids": [{"index": 0, "gid": GID}], **(port or {})})
    planes = {"blue": {"subnet_manager": MANAGER if manager is None else manager}}
    intent = {"rails": infiniband_rails()[:1], "fabric": {"planes": planes}, "partitions": TENANTS if partitions is None else partitions}
    return check_pkeys(HOST, intent, from_dict(facts))


def one(*keys: int, **more: Any) -> Finding:
    found = check(*keys, **more)
    assert [each.check for each in found] == ["link.pkey"]
    return found[0]


def test_a_member_has_its_key_and_the_limited_default() -> None:
    found = one(0x8001, 0x7FFF)
    assert (found.status, found.observed, found.expected) == (OK, "0x8001, 0x7fff", "0x8001 (one), 0x7fff (Default)")


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ((0x7FFF,), "not in one (0x0001)"),
        ((0x0001, 0x7FFF), "in one as limited member, planned is full"),
        ((0x8001, 0x8002, 0x7FFF), "in two (0x0002), but it is not a planned member"),
        ((0x8001, 0x0002, 0x7FFF), "in two (0x0002), but it is not a planned member"),
        ((0x8001, 0x8003, 0x7FFF), "in 0x0003, which is not in rdma_partitions"),
        ((0x8001, 0xFFFF), "in Default as full member, planned is limited"),
        ((0x8001,), "not in Default (0x7fff)"),
        ((0xFFFF,), "not in one (0x0001); in Default as full member, planned is limited"),
        ((), "not in one (0x0001); not in Default (0x7fff)"),
    ],
    ids=["lacks", "limited", "foreign", "foreign-limited", "unknown", "default-full", "no-default", "no-file", "empty"],
)
def test_a_table_that_is_not_as_planned(keys: tuple[int, ...], words: str) -> None:
    found = one(*keys)
    assert (found.status, found.observed) == (ERROR, words)
    assert "Run the link stage for boss" in found.remedy
    assert "subnet_manager_partition_change_allowed" in found.remedy


def test_the_master_s_own_port_is_full_in_the_default_partition() -> None:
    found = {each.check: each for each in check(0x8001, 0xFFFF, manager={**MANAGER, "hosts": [HOST]})}
    assert found["link.pkey"].status == OK
    assert found["link.partitions"].status == OK


def test_without_default_membership_either_is_right_and_none_is_not() -> None:
    """The role leaves the default partition as it is."""
    left = {"kind": "hosts", "hosts": ["boss"]}
    for partitions, key in (({}, ()), (TENANTS, (0x8001,))):
        assert one(*key, 0xFFFF, partitions=partitions, manager=left).status == OK
        assert one(*key, 0x7FFF, partitions=partitions, manager=left).status == OK
        assert one(*key, partitions=partitions, manager=left).observed == "not in Default (0x7fff)"
    given = {**left, "default_membership": "full"}
    assert one(0x7FFF, partitions={}, manager=given).observed == "in Default as limited member, planned is full"


def test_what_a_switch_makes_of_the_default_partition_is_its_own() -> None:
    switch = {"kind": "switch", "hosts": []}
    assert one(0x8001, 0xFFFF, manager=switch).status == OK
    assert one(0x8001, manager=switch).status == OK
    found = one(0x8001, 0x8002, manager=switch)
    assert (found.status, "On the switch" in found.remedy) == (ERROR, True)


def test_unknown_is_not_ok_and_a_port_that_is_down_has_its_own_finding() -> None:
    assert one(port={"pkeys": None}).status == UNKNOWN
    assert "pkeys" in one(port={"pkeys": None}).remedy
    assert one(port={"state": "INIT"}).status == NOT_APPLICABLE
    nobody: dict[str, Any] = {"kind": "none", "hosts": []}
    assert check(manager=nobody) == []


@pytest.mark.parametrize(
    ("partitions", "status"),
    [
        (TENANTS, WARNING),
        ({**TENANTS, "Default": partition(0x7FFF)}, WARNING),
        ({**TENANTS, "Default": partition(0x7FFF, membership="limited")}, OK),
        ({"Default": partition(0x7FFF)}, WARNING),
        ({}, OK),
    ],
    ids=["left-out", "full", "limited", "said", "none"],
)
def test_a_default_partition_that_joins_tenants_is_reported(partitions: Any, status: str) -> None:
    found = check(0xFFFF, partitions=partitions, manager={"kind": "hosts", "hosts": [HOST, "node2"]})
    assert [each.status for each in found if each.check == "link.partitions"] == [status]
    given = check(0xFFFF, partitions=partitions, manager={**MANAGER, "hosts": [HOST, "node2"]})
    assert [each.status for each in given if each.check == "link.partitions"] == [
        OK if 0x7FFF not in [each["key"] for each in partitions.values()] else status
    ]


def test_a_guid_goes_before_the_host() -> None:
    members = [HOST, {"host": None, "guid": GUID, "membership": "limited"}]
    partitions = {"a": partition(1, members), "b": partition(2, [{"host": HOST, "guid": None, "membership": None}], membership="limited")}
    assert planned_keys(HOST, GUID, {"partitions": partitions}) == {"a": 0x0001, "b": 0x0002}
    assert planned_keys(HOST, "0x0", {"partitions": partitions}) == {"a": 0x8001, "b": 0x0002}
    assert planned_keys("node9", None, {"partitions": partitions}) == {}


@pytest.mark.parametrize("manager", [{**MANAGER, "hosts": [HOST]}, {"kind": "hosts", "hosts": [HOST]}], ids=["given", "left"])
def test_the_master_s_own_port_has_the_planned_membership_in_other_partitions(manager: dict[str, Any]) -> None:
    found = {each.check: each for each in check(0x8001, 0xFFFF, partitions={"one": partition(1, membership="limited")}, manager=manager)}
    assert (found["link.pkey"].status, found["link.pkey"].observed) == (ERROR, "in one as full member, planned is limited")
    found = {each.check: each for each in check(0x0001, 0xFFFF, partitions={"one": partition(1)}, manager=manager)}
    assert (found["link.pkey"].status, found["link.pkey"].observed) == (ERROR, "in one as limited member, planned is full")
