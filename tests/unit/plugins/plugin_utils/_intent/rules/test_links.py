# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The VLAN of a rail: what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.problem import IntentError
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.read import normalize
from tests.unit.builders.hosts import lab_rails

IPOIB = {"link_layer": "infiniband", "address": None, "soft": False, "mtu_bytes": None}
REFUSED: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"vlan": {"id": 1}}, {}, "rdma_rails[0].vlan.id must be"),
    ({"vlan": {"id": 4095}}, {}, "rdma_rails[0].vlan.id must be"),
    ({"vlan": {"pcp": 3}}, {}, "rdma_rails[0].vlan.id is missing"),
    ({"vlan": {"id": 100, "pcb": 3}}, {}, "pcp"),
    ({"vlan": {"id": 100}, **IPOIB}, {}, "rdma_rails[0].vlan is given, but InfiniBand has no VLANs: there it is a partition"),
    ({"vlan": {"id": 4094}, "name": "storage-rail"}, {}, "rdma_rails[0].name is storage-rail, which is too long for a rail on a VLAN"),
    ({"vlan": {"id": 100, "pcp": 3}}, {}, "rdma_rails[0].vlan.pcp is 3, but without rdma_roce no priority has a meaning"),
    (
        {"vlan": {"id": 100, "pcp": 4}},
        {"rdma_roce": {}},
        "rdma_rails[0].vlan.pcp is 4, but rdma_roce gives RDMA the priority 3: DSCP and the tag would disagree",
    ),
    (
        {"vlan": {"id": 100}, "nic": lab_rails()[1]["nic"]},
        {},
        "rdma_rails[1].nic is 0000:41:00.0, like that of rdma_rails[0]: a NIC has one rail, also if the rails are on different VLANs",
    ),
]


def problems(changes: dict[str, Any], sections: dict[str, Any]) -> list[str]:
    try:
        normalize({"rdma_rails": [{**lab_rails()[0], **changes}, lab_rails()[1]], **sections})
    except IntentError as error:
        return [f"{each.where} {each.message}" for each in error.problems]
    return []


@pytest.mark.parametrize(("changes", "sections", "expected"), REFUSED)
def test_what_is_refused(changes: dict[str, Any], sections: dict[str, Any], expected: str) -> None:
    found = problems(changes, sections)
    assert len(found) == 1, found
    assert expected in found[0]


@pytest.mark.parametrize(
    ("changes", "sections"),
    [
        ({"vlan": {"id": 2}}, {}),
        ({"vlan": {"id": 4094}, "name": "storage-10"}, {}),
        ({"vlan": {"id": 100, "pcp": 3}}, {"rdma_roce": {}}),
        ({"vlan": {"id": 100, "pcp": 5}}, {"rdma_roce": {"priority": 5}}),
        ({"vlan": None, "name": "a-rail-with-a-long-name"}, {}),
    ],
)
def test_what_is_taken(changes: dict[str, Any], sections: dict[str, Any]) -> None:
    assert problems(changes, sections) == []


def test_two_vlans_of_one_nic_are_refused_at_the_nic() -> None:
    """Two files would match the interface of the NIC, and the network manager would use one of them."""
    one, other = lab_rails()
    with pytest.raises(IntentError) as caught:
        normalize({"rdma_rails": [{**one, "vlan": {"id": 100}}, {**other, "nic": one["nic"], "vlan": {"id": 200}}]})
    [problem] = caught.value.problems
    assert (problem.where, problem.check) == ("rdma_rails[1].nic", "intent.rails")
    assert problem.message.endswith(": a NIC has one rail, also if the rails are on different VLANs")
    assert problem.expected == "a NIC of its own, or one rail with further `addresses`"


def test_two_rails_on_one_nic_without_vlans_are_told_nothing_of_vlans() -> None:
    one, other = lab_rails()
    with pytest.raises(IntentError) as caught:
        normalize({"rdma_rails": [one, {**other, "nic": one["nic"]}]})
    assert [problem.message for problem in caught.value.problems] == ["is 0000:21:00.0, like that of rdma_rails[0]"]


def test_a_rail_without_vlan_has_none() -> None:
    assert [rail["vlan"] for rail in normalize({"rdma_rails": lab_rails()})["rails"]] == [None, None]


NICS = [rail["nic"] for rail in lab_rails()]
BONDS: list[tuple[dict[str, Any], str]] = [
    ({"bond": {"members": NICS[:1]}}, "rdma_rails[0].bond.members has 1 NIC"),
    ({"bond": {"members": [NICS[0], NICS[0]]}}, "rdma_rails[0].bond.members has 1 NIC"),
    ({"bond": {"members": NICS[::-1]}}, "rdma_rails[0].bond.members begins with 0000:41:00.0, but nic is 0000:21:00.0"),
    ({"bond": {"members": NICS, "mode": "balance-rr"}}, "rdma_rails[0].bond.mode"),
    ({"bond": {"members": NICS, "hash": "layer4"}}, "rdma_rails[0].bond.hash"),
    ({"bond": {"members": [{"pci": NICS[0]["pci"], "mac": "52:54:00:00:00:01"}]}}, "rdma_rails[0].bond.members[0]"),
    ({"bond": {"members": NICS}, **IPOIB}, "IP over InfiniBand has no bond in mode 802.3ad"),
    ({"bond": {"members": NICS}, "name": "storage-rail"}, "rdma_rails[0].name is storage-rail, which is too long for a rail on a bond"),
]


def bond_problems(changes: dict[str, Any], *others: dict[str, Any]) -> list[str]:
    try:
        normalize({"rdma_rails": [{**lab_rails()[0], **changes}, *others]})
    except IntentError as error:
        return [f"{each.where} {each.message}" for each in error.problems]
    return []


@pytest.mark.parametrize(("changes", "expected"), BONDS)
def test_bonds_that_are_refused(changes: dict[str, Any], expected: str) -> None:
    assert any(expected in each for each in bond_problems(changes)), bond_problems(changes)


def test_a_member_belongs_to_one_rail() -> None:
    found = bond_problems({"bond": {"members": NICS}}, lab_rails()[1])
    assert found == ["rdma_rails[0].bond.members has 0000:41:00.0, which belongs to rail1"]


def test_bonds_that_are_taken() -> None:
    assert bond_problems({"bond": {"members": NICS}}) == []
    assert bond_problems({"bond": {"members": NICS, "mode": "active-backup"}, "vlan": {"id": 100}}) == []
