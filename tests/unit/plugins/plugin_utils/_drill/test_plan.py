# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps of a drill: which hosts measure a fault, how many flows they need, and which permissions cannot be used."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import DrillFault
from ansible_collections.rdma.cluster.plugins.plugin_utils._drill.plan import (
    MISSED,
    MOST_FLOWS,
    Step,
    plan_steps,
    steps_text,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.known import disagreements
from tests.unit.builders.clos import routed


def allowed(switch: str, fault: str, port: str | None = None) -> DrillFault:
    return {"switch": switch, "port": port, "host": None, "rail": None, "fault": fault}


def test_each_kind_of_fault() -> None:
    faults = [
        allowed("leaf1", "cut", "swp1"),
        allowed("spine2", "silence", "swp2"),
        allowed("spine1", "stop_frr"),
        allowed("spine2", "ports_down"),
    ]
    steps, problems = plan_steps(faults, [routed()], ["host1", "host2"])
    assert problems == []
    ends = {"host1": "10.1.0.67", "host2": "10.1.1.67"}
    assert [(step.name, step.ports, step.ends, step.paths, step.bfd) for step in steps] == [
        ("cut leaf1 swp1", ["swp1"], ends, 2, True),
        ("silence spine2 swp2", ["swp2"], dict(reversed(ends.items())), 2, True),
        ("stop_frr spine1", ["swp1", "swp2"], ends, 2, True),
        ("ports_down spine2", ["swp1", "swp2"], ends, 2, True),
    ]
    assert steps_text(steps, 20).splitlines()[1] == (
        "1. cut leaf1 swp1: set swp1 of leaf1 down (its carrier is lost at both ends), and measure between host1 (10.1.0.67) and host2 "
        "(10.1.1.67)."
    )


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (allowed("spin1", "stop_frr"), "spin1 is not a switch of a routed plane; did you mean spine1?"),
        (allowed("leaf1", "cut", "swp33"), "swp33 of leaf1 leads to a host, which has no other path. Name an uplink: swp1, swp2"),
        (allowed("leaf1", "cut"), "cut needs the port of an uplink of leaf1: swp1, swp2; got None"),
        (allowed("spine1", "stop_frr", "swp1"), "stop_frr concerns the whole switch: leave out port"),
        (allowed("leaf2", "ports_down"), "ports_down of leaf2 would cut its hosts off, because it is a leaf. Allow it for a spine"),
    ],
)
def test_a_permission_that_cannot_be_used(fault: DrillFault, words: str) -> None:
    assert plan_steps([fault], [routed()], ["host1", "host2"]) == ([], [f"rdma_drill.allow[0]: {words}"])


def test_a_fault_needs_two_hosts_and_another_path() -> None:
    fault = allowed("leaf1", "cut", "swp1")
    [problem] = plan_steps([fault], [routed()], ["host1"])[1]
    assert "no two hosts of this run use leaf1" in problem
    [problem] = plan_steps([fault], [routed(2, 1)], ["host1", "host2"])[1]
    assert "there is no other path from leaf1 to leaf2" in problem


def test_a_fault_is_listed_once() -> None:
    fault = allowed("leaf1", "cut", "swp1")
    steps, problems = plan_steps([fault, fault], [routed()], ["host1", "host2"])
    assert (len(steps), problems) == (1, ["rdma_drill.allow[1]: cut leaf1 swp1 is listed twice"])


def test_without_permissions_nothing_happens() -> None:
    assert plan_steps([], [routed()], ["host1", "host2"]) == ([], [])
    assert steps_text([], 20) == "The drill has no step: rdma_drill.allow permits no fault of a switch. Nothing was changed."


def test_all_hosts_have_the_same_permissions() -> None:
    fault = allowed("leaf1", "cut", "swp1")
    assert disagreements("rdma_drill", {"host1": [fault], "host2": [fault]}) == []
    assert disagreements("rdma_drill", {"host1": [fault], "host2": []}) == [
        "host2 and host1 have different rdma_drill: set it for all hosts"
    ]


@given(st.integers(2, 64))
def test_some_flow_uses_the_port(paths: int) -> None:
    flows = Step("cut", "leaf1", ["swp1"], "fab", {}, paths, True).flows
    assert flows == MOST_FLOWS or (1 - 1 / paths) ** flows <= MISSED


@given(st.tuples(st.integers(2, 6), st.integers(2, 4), st.integers(1, 3)), st.data())
def test_the_ends_are_on_two_leaves_and_one_of_them_is_at_the_switch(size: tuple[int, int, int], data: st.DataObject) -> None:
    plane = routed(*size)
    router = data.draw(st.sampled_from(sorted(plane.routers.values(), key=lambda each: each.name)))
    port = data.draw(st.sampled_from(router.neighbors)).port
    leaf_of = {port.host: each.name for each in plane.routers.values() for port in each.host_ports}
    [step], problems = plan_steps([allowed(router.name, "cut", port)], [plane], list(leaf_of))
    leaves = [leaf_of[host] for host in step.ends]
    assert problems == []
    assert len(set(leaves)) == 2
    neighbor = next(each.name for each in router.neighbors if each.port == port)
    assert {router.name, neighbor} & set(leaves)
