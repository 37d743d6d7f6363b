# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan of a sweep."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._pair_plan import make_plan, runtime_max_seconds
from tests.unit.hosts import FIXTURES, lab_facts, lab_intent


def test_the_endpoints_of_a_lab_machine() -> None:
    plan = make_plan("s1", {"node1": lab_intent()}, {"node1": lab_facts()})
    assert plan["hosts"] == ["node1"]
    assert [rail["name"] for rail in plan["rails"]] == ["rail0", "rail1"]
    assert plan["rails"][1]["endpoints"] == {
        "node1": {"address": "192.168.101.1", "device": "rxe_rail1", "port": 1, "gid_index": 1, "numa_node": 1}
    }


def test_a_rail_without_gid_has_no_endpoint() -> None:
    facts = lab_facts()
    facts["devices"]["rxe_rail0"]["ports"]["1"]["rocev2"] = {}
    plan = make_plan("s1", {"node1": lab_intent()}, {"node1": facts})
    assert [list(rail["endpoints"]) for rail in plan["rails"]] == [[], ["node1"]]


def test_the_time_limit_grows_with_the_hosts() -> None:
    one = make_plan("s1", {"a": lab_intent()}, {"a": lab_facts()})
    two = make_plan("s1", {"a": lab_intent(), "b": lab_intent()}, {"a": lab_facts(), "b": lab_facts()})
    assert runtime_max_seconds(two) > runtime_max_seconds(one)


def plan_of(nodes: range, **pairs: Any) -> dict[str, Any]:
    intents = {f"node{node}": lab_intent(node, pairs=pairs) for node in nodes}
    return make_plan("20261120T124749Z-15689", intents, {f"node{node}": lab_facts(node) for node in nodes})


def test_the_plan_of_four_lab_machines_is_the_one_that_was_swept() -> None:
    recorded = json.loads((FIXTURES / "pairs/plan.json").read_text())
    recorded["test"]["qp_timeout"] = 20
    assert plan_of(range(1, 5), iterations=200, qp_timeout=20) == recorded


def test_hosts_are_in_the_order_given_and_rails_in_that_of_the_first_host() -> None:
    plan = plan_of(range(3, 0, -1))
    assert plan["hosts"] == ["node3", "node2", "node1"]
    assert [list(rail["endpoints"]) for rail in plan["rails"]] == [["node3", "node2", "node1"]] * 2


def test_a_rail_that_one_host_alone_has_has_one_endpoint() -> None:
    short = lab_intent(2)
    del short["rails"][1]
    plan = make_plan("s1", {"a": lab_intent(), "b": short}, {"a": lab_facts(), "b": lab_facts(2)})
    assert [list(rail["endpoints"]) for rail in plan["rails"]] == [["a", "b"], ["a"]]


def without_device(intent: dict[str, Any], facts: dict[str, Any]) -> None:
    del facts["devices"]["rxe_rail0"]


def without_address(intent: dict[str, Any], facts: dict[str, Any]) -> None:
    intent["rails"][0]["address"] = None


def with_another_address(intent: dict[str, Any], facts: dict[str, Any]) -> None:
    intent["rails"][0]["address"] = "192.168.100.9/24"


@pytest.mark.parametrize("fault", [without_device, without_address, with_another_address])
def test_what_cannot_be_measured_has_no_endpoint(fault: Any) -> None:
    intent, facts = lab_intent(), lab_facts()
    fault(intent, facts)
    plan = make_plan("s1", {"node1": intent}, {"node1": facts})
    assert [list(rail["endpoints"]) for rail in plan["rails"]] == [[], ["node1"]]


@pytest.mark.parametrize(("duration", "deadline", "expected"), [(5, 60, 60), (100, 60, 130)])
def test_a_measurement_has_its_whole_duration(duration: int, deadline: int, expected: int) -> None:
    intent = lab_intent()
    intent["pairs"].update(duration_seconds=duration, deadline_seconds=deadline)
    assert make_plan("s1", {"a": intent}, {"a": lab_facts()})["test"]["deadline_seconds"] == expected
