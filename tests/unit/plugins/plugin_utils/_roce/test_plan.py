# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan of NICs and switches, from the intents of several hosts."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._roce.plan import make_plan, nic_lines, plan_text
from ansible_collections.rdma.cluster.plugins.plugin_utils._roce.profile import roce_profile
from tests.unit.builders.hosts import lab_intent

LEAF: dict[str, Any] = {"syntax": "nvue", "ports": ["swp1-4"]}


def intents(**roces: dict[str, Any] | None) -> dict[str, dict[str, Any]]:
    return {host: lab_intent(number, roce=roce) for number, (host, roce) in enumerate(roces.items(), 1)}


def test_hosts_with_one_profile_are_one_and_a_switch_has_one_file() -> None:
    roce = {"switches": {"leaf1": LEAF, "leaf2": {"ports": ["e1"]}}}
    plan = make_plan(intents(node1=roce, node2=roce, node3=None))
    assert [hosts for _profile, hosts in plan.profiles] == [["node1", "node2"]]
    assert plan.without == ["node3"]
    assert [(file.name, file.suffix) for file in plan.switches] == [("leaf1", ".nv"), ("leaf2", ".txt")]


def test_two_profiles_have_a_switch_each() -> None:
    plan = make_plan(intents(node1={"switches": {"leaf1": LEAF}}, node2={"dscp": 27, "switches": {"leaf2": LEAF}}))
    assert [hosts for _profile, hosts in plan.profiles] == [["node1"], ["node2"]]
    text = plan_text(plan)
    assert text.count(".nv:") == 2
    assert text.index("leaf1.nv:") < text.index("  node1 ") < text.index("leaf2.nv:") < text.index("  node2 ")


def test_a_switch_of_two_profiles_that_mean_the_same_to_it_stands_beside_both() -> None:
    switches = {"leaf1": LEAF}
    plan = make_plan(intents(node1={"switches": switches}, node2={"dcqcn": {"rpg_ai_rate": 5}, "switches": switches}))
    assert [(file.name, file.hosts) for file in plan.switches] == [("leaf1", ["node1", "node2"])]
    assert plan_text(plan).count("leaf1.nv:") == 2


def test_a_switch_that_two_hosts_set_in_two_ways_is_refused() -> None:
    one, other = {"switches": {"leaf1": LEAF, "leaf2": LEAF}}, {"rdma_percent": 60, "switches": {"leaf1": LEAF, "leaf2": LEAF}}
    with pytest.raises(ValueError, match="Hosts need the same settings") as caught:
        make_plan(intents(node1=one, node2=other, node3=one))
    assert "leaf1 has 2 different settings: one from node1, node3; one from node2" in str(caught.value)
    assert "leaf2 has 2 different settings" in str(caught.value)


def test_without_any_profile_the_text_says_so() -> None:
    text = plan_text(make_plan(intents(node1=None, node2=None)))
    assert text.endswith("Without rdma_roce, so nothing is set there: node1, node2")


def test_without_a_switch_the_nic_s_side_is_reported_all_the_same() -> None:
    text = plan_text(make_plan(intents(node1={})))
    assert "traffic class     106 (NCCL_IB_TC)\n" in text
    assert text.endswith("No switch is planned with this profile (rdma_roce.switches).")


def test_both_sides_stand_next_to_each_other() -> None:
    lines = plan_text(make_plan(intents(node1={"switches": {"leaf1": LEAF}}))).splitlines()[2:]
    assert {line[46:47] for line in lines} == {"|"}
    assert max(map(len, lines)) <= 120
    left, right = ("\n".join(line[part].rstrip() for line in lines) for part in (slice(46), slice(48, None)))
    profile = roce_profile(lab_intent(roce={}))
    assert profile is not None
    assert "\n".join(nic_lines(profile)) in left
    assert "\nnv set qos roce mode lossless\nnv set interface swp1-4 link mtu 9216" in right


def test_many_hosts_do_not_leave_the_column() -> None:
    roces: dict[str, dict[str, Any] | None] = {f"host-with-a-long-name{number:03}": {"switches": {"leaf1": LEAF}} for number in range(100)}
    text = plan_text(make_plan(intents(**roces)))
    assert {line[46:47] for line in text.splitlines()[2:]} == {"|"}
    assert "host-with-a-long-name099" in text


def test_every_value_of_a_profile_is_reported() -> None:
    roce = {"pfc": False, "dcbx": "firmware", "cable_length_m": 7, "dcqcn": {"rpg_ai_rate": 5, "min_time_between_cnps": 4}}
    profile = roce_profile(lab_intent(roce=roce))
    assert profile is not None
    text = "\n".join(nic_lines(profile))
    for words in ("PFC               off", "firmware (DCBX)", "7 m", "rpg_ai_rate       5", "min_time_between_cnps4", "6: strict"):
        assert words in text
