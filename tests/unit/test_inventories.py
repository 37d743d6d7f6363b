# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The example inventories: they load as Ansible loads them, and are intents that can be built."""

from __future__ import annotations

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, WARNING
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.known import Known
from ansible_collections.rdma.cluster.plugins.plugin_utils._fleet.intents import check_fleet
from tests.unit.builders.inventories import INVENTORIES, load

#: Name, hosts, rails of each host, planes.
EXAMPLES = [
    ("demo", 32, 8, {"compute"}),
    ("infiniband", 4, 8, {"compute"}),
    ("infiniband-lab", 4, 2, {"compute"}),
    ("lab", 4, 2, {"lab"}),
    ("mesh", 3, 2, {"cables"}),
    ("roce", 4, 8, {"a", "b"}),
]


def test_every_example_is_tested() -> None:
    assert sorted(path.name for path in INVENTORIES.iterdir()) == [example[0] for example in EXAMPLES]


@pytest.mark.parametrize(("name", "hosts", "rails", "planes"), EXAMPLES)
def test_an_example_can_be_built(name: str, hosts: int, rails: int, planes: set[str]) -> None:
    intents = load(name)
    assert [len(intent["rails"]) for intent in intents.values()] == [rails] * hosts
    assert {rail["plane"] for intent in intents.values() for rail in intent["rails"]} == planes
    found = check_fleet({host: Known(intent, None) for host, intent in intents.items()})
    assert found.keys() == intents.keys()
    assert not [finding for findings in found.values() for finding in findings if finding.status in (ERROR, WARNING)]


def test_the_examples_show_what_they_are_for() -> None:
    infiniband, roce, mesh = load("infiniband")["dgx01"], load("roce")["gpu01"], load("mesh")["spark1"]
    assert {rail["link_layer"] for rail in infiniband["rails"]} == {"infiniband"}
    assert infiniband["partitions"]["training"]["key"] == 0x0101
    assert set(infiniband["partitions"]["training"]["members"]) == set(load("infiniband"))
    assert roce["gate"] == {"policy": "quarantine", "max_failed_percent": 25}
    assert roce["roce"]["dscp"] == 26
    assert mesh["fabric"]["topology"] == "mesh"
