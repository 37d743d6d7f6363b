# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The fleet of a pairs stage: who has which rails, who lacks one, and what the records say of each."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.digest import comparable
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.fleet import Fleet
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.proofs import Proof, bases
from tests.unit.builders.hosts import lab_facts, lab_intent
from tests.unit.builders.known import known_of

NOW = 1_795_179_125.0
HOUR = 3600.0


def known(*nodes: int) -> dict[str, dict[str, Any]]:
    return {f"node{node}": {"intent": lab_intent(node), "facts": comparable(lab_facts(node))} for node in nodes}


def without_device(of: dict[str, Any], rail: int = 1) -> None:
    del of["facts"]["devices"][f"rxe_rail{rail}"]


def test_hosts_are_in_the_order_of_the_play() -> None:
    fleet = Fleet.of(known_of(known(3, 1, 2)))
    assert fleet.hosts == ["node3", "node1", "node2"]
    assert fleet.having("rail1") == ["node3", "node1", "node2"]
    assert fleet.having("rail2") == []


@pytest.mark.parametrize("part", ["intent", "facts"])
@pytest.mark.parametrize("nothing", [None, {}], ids=["none", "empty"])
def test_a_host_of_which_a_part_is_missing_is_left_out(part: str, nothing: Any) -> None:
    of = known(1, 2)
    of["node1"][part] = nothing
    assert Fleet.of(known_of(of)).hosts == ["node2"]


def test_rails_are_in_the_order_of_the_plans_each_once() -> None:
    of = known(1, 2)
    of["node1"]["intent"]["rails"] = of["node1"]["intent"]["rails"][1:]
    assert Fleet.of(known_of(of)).rails == ["rail1", "rail0"]
    assert Fleet.of({}).rails == []


def test_an_endpoint_is_where_a_host_is_met() -> None:
    endpoint = Fleet.of(known_of(known(2))).endpoints["node2"]["rail1"]
    assert (endpoint["address"], endpoint["device"], endpoint["port"], endpoint["gid_index"]) == ("192.168.101.2", "rxe_rail1", 1, 1)


def test_a_rail_that_cannot_be_measured_is_missing_on_its_host_alone() -> None:
    of = known(1, 2, 3)
    without_device(of["node2"])
    fleet = Fleet.of(known_of(of))
    assert fleet.having("rail1") == ["node1", "node3"]
    assert {host: fleet.missing(host) for host in fleet.hosts} == {"node1": [], "node2": ["rail1"], "node3": []}


def test_it_is_missing_also_where_nobody_can_be_measured_on_it() -> None:
    of = known(1, 2)
    for each in of.values():
        without_device(each)
    assert Fleet.of(known_of(of)).missing("node1") == ["rail1"]


def test_nothing_is_missing_on_a_host_that_is_alone() -> None:
    of = known(1)
    without_device(of["node1"])
    assert Fleet.of(known_of(of)).missing("node1") == []


def test_a_rail_that_no_other_host_is_planned_to_have_is_not_missing() -> None:
    """There is nobody to measure it with."""
    of = known(1, 2)
    of["node1"]["intent"]["rails"][1]["name"] = "storage"
    without_device(of["node1"])
    assert Fleet.of(known_of(of)).missing("node1") == []


def test_without_some_of_them_the_rest_is_as_it_was() -> None:
    whole = Fleet.of(known_of(known(1, 2, 3)))
    rest = whole.without(["node2", "somebody"])
    assert rest.hosts == ["node1", "node3"]
    assert list(rest.facts) == list(rest.endpoints) == rest.hosts
    assert rest.endpoints["node3"] == whole.endpoints["node3"]
    assert whole.hosts == ["node1", "node2", "node3"]


def proof(node: int, rail: str, measured: float = NOW) -> Proof:
    of = known(node)[f"node{node}"]
    return Proof(bases(of["intent"], from_dict(of["facts"]))[rail], measured, "R0", 3, {"bandwidth": 0.2}, 1.0)


def test_each_endpoint_has_its_own_standing() -> None:
    of = known(1, 2)
    without_device(of["node2"])
    proofs = {"node1": {"rail0": proof(1, "rail0"), "rail1": proof(1, "rail1", NOW - 200 * HOUR)}, "node9": {"rail0": proof(9, "rail0")}}
    standings = Fleet.of(known_of(of)).standings(proofs, NOW + HOUR, 168)
    assert {host: list(each) for host, each in standings.items()} == {"node1": ["rail0", "rail1"], "node2": ["rail0"]}
    assert standings["node1"]["rail0"].valid
    assert standings["node1"]["rail1"].too_old
    assert standings["node2"]["rail0"].words == "never measured, or not proven good"


def test_a_proof_of_another_host_or_rail_does_not_count() -> None:
    """node2 has another NIC than node1, and rail1 another than rail0."""
    proofs = {"node2": {"rail0": proof(1, "rail0"), "rail1": proof(2, "rail0")}}
    standings = Fleet.of(known_of(known(2))).standings(proofs, NOW, 168)["node2"]
    assert {rail: each.valid for rail, each in standings.items()} == {"rail0": False, "rail1": False}
    assert standings["rail0"].changed == "changed since it was measured: port, intent"
