# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The intent: defaults, and every problem in one sentence each."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._intent import IntentError, normalise

GOOD: dict[str, Any] = {
    "rdma_rails": [
        {"name": "rail0", "nic": {"pci": "0000:3D:00.0"}, "address": "192.168.100.1/24", "soft": True},
        {"name": "rail1", "nic": {"mac": "52:54:00:1A:01:01"}, "address": "192.168.101.1/24", "soft": True},
    ],
}


def problems(change: Any) -> list[str]:
    variables = copy.deepcopy(GOOD)
    change(variables)
    with pytest.raises(IntentError) as caught:
        normalise(variables)
    return caught.value.problems


def test_defaults_are_filled_in_and_nics_are_lower_case() -> None:
    intent = normalise(GOOD)
    assert intent["rails"][0] == {
        "name": "rail0", "nic": {"pci": "0000:3d:00.0"}, "link_layer": "roce", "rate_gbps": None, "plane": "default",
        "role": "compute", "address": "192.168.100.1/24", "mtu_bytes": 9000, "soft": True,
    }  # fmt: skip
    assert intent["rails"][1]["nic"] == {"mac": "52:54:00:1a:01:01"}
    assert intent["driver"] == {"stack": "inbox"}
    assert intent["fabric"] == {"topology": "switched", "planes": {}, "shared_subnet": False}
    assert intent["pairs"]["command"] == "ib_write_bw"


def test_the_intent_is_not_changed_by_reading_it() -> None:
    variables = copy.deepcopy(GOOD)
    normalise(variables)
    assert variables == GOOD


PROBLEMS = [
    (lambda v: v["rdma_rails"][0].update(adress="x"), "rdma_rails[0] has no key 'adress': did you mean 'address'?"),
    (lambda v: v.update(rdma_driver={"stak": "inbox"}), "rdma_driver has no key 'stak': did you mean 'stack'?"),
    (lambda v: v.update(rdma_driver={"stack": "latest"}), "rdma_driver.stack is one of inbox; got 'latest'"),
    (lambda v: v.update(rdma_driver=["inbox"]), "rdma_driver is a dictionary; got list"),
    (lambda v: v["rdma_rails"][0].pop("name"), "rdma_rails[0].name is missing"),
    (lambda v: v["rdma_rails"][0].update(mtu_bytes="9000"), "rdma_rails[0].mtu_bytes is int; got '9000'"),
    (lambda v: v["rdma_rails"][0].update(mtu_bytes=True), "rdma_rails[0].mtu_bytes is int; got True"),
    (lambda v: v["rdma_rails"][0].update(mtu_bytes=1000), "rdma_rails[0].mtu_bytes is 1280 at least; got 1000"),
    (lambda v: v["rdma_rails"][0].update(address="192.168.100.300/24"), "rdma_rails[0].address is an IPv4 address"),
    (lambda v: v["rdma_rails"][0].update(nic={"pci": "3d:00.0"}), "rdma_rails[0].nic.pci is no PCI address"),
    (lambda v: v["rdma_rails"][0].update(nic={"interface": "eth1"}), "rdma_rails[0].nic is either pci"),
    (lambda v: v["rdma_rails"][0].update(name="rail 0; rm -rf /"), "rdma_rails[0].name is letters"),
    (lambda v: v["rdma_rails"][0].update(name="rail\n"), "rdma_rails[0].name is letters"),
    (lambda v: v["rdma_rails"][1].update(name="rail0"), "rail0 and rail0 both have the name rail0"),
    (lambda v: v["rdma_rails"][1].update(address="192.168.100.1/24"), "rail1 and rail0 both have the address 192.168.100.1/24"),
    (lambda v: v["rdma_rails"][1].update(address="192.168.100.9/24"), "rail1 and rail0 are both in 192.168.100.0/24"),
    (lambda v: v["rdma_rails"][0].pop("address"), "rail0 is RoCE and needs an address"),
    (lambda v: v.update(rdma_rails=[]), "rdma_rails is a list of this host's rails, one at least; it is empty"),
    (lambda v: v.pop("rdma_rails"), "rdma_rails is a list of this host's rails, one at least; it is missing"),
]


@pytest.mark.parametrize(("change", "expected"), PROBLEMS)
def test_a_problem_is_named(change: Any, expected: str) -> None:
    found = problems(change)
    assert any(problem.startswith(expected) for problem in found), found


def test_all_problems_are_told_at_once() -> None:
    def change(variables: dict[str, Any]) -> None:
        variables["rdma_rails"][0]["mtu_bytes"] = 1
        variables["rdma_rails"][1]["adress"] = "x"
        variables["rdma_pairs"] = {"duration": 3}

    assert len(problems(change)) == 3


def test_rails_in_one_subnet_if_the_fabric_says_so() -> None:
    variables = copy.deepcopy(GOOD)
    variables["rdma_rails"][1]["address"] = "192.168.100.9/24"
    variables["rdma_fabric"] = {"shared_subnet": True}
    assert normalise(variables)["fabric"]["shared_subnet"] is True
