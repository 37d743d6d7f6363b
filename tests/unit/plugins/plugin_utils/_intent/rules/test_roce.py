# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Contradictions in rdma_roce, and between it and NCCL's settings."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.problem import IntentError, IntentProblem
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.rules.roce import expand
from tests.unit.builders.hosts import lab_intent, lab_rails


def problems(**sections: Any) -> list[IntentProblem]:
    """What is wrong with a lab machine's intent that has these sections."""
    try:
        lab_intent(**sections)
    except IntentError as error:
        return error.problems
    return []


def switch(*ports: str, **more: Any) -> dict[str, Any]:
    return {"switches": {"leaf1": {"syntax": "nvue", "ports": list(ports), **more}}}


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"priority": 0}, "rdma_roce.priority is 0, the priority of all unmarked traffic"),
    ({"cnp_priority": 0}, "rdma_roce.cnp_priority is 0, the priority of all unmarked traffic"),
    ({"cnp_priority": 3}, "rdma_roce.cnp_priority is 3, like priority, which pfc makes lossless: congestion notifications would be"),
    ({"cnp_dscp": 26}, "rdma_roce.cnp_dscp is 26, like dscp, but with another priority: a DSCP has only one"),
    ({"pfc": False, "ecn": False}, "rdma_roce.ecn is false, like pfc: nothing would protect"),
    ({"ecn": False, "cnp_dscp": 48}, "rdma_roce.cnp_dscp is given, but ecn is false"),
    ({"ecn": False, "cnp_priority": 6}, "rdma_roce.cnp_priority is given, but ecn is false"),
    ({"ecn": False, "dcqcn": {"rpg_ai_rate": 5}}, "rdma_roce.dcqcn is given, but ecn is false"),
    (switch("swp1-4", "swp3"), "rdma_roce.switches.leaf1.ports[1] is swp3: swp3 is also in swp1-4"),
    (switch("swp1s0-3", "swp1s2-5"), "rdma_roce.switches.leaf1.ports[1] is swp1s2-5: swp1s2, swp1s3 is also in swp1s0-3"),
    (switch("swp4-1"), "rdma_roce.switches.leaf1.ports[0] is swp4-1, a descending range"),
    (switch("Ethernet1/1"), "rdma_roce.switches.leaf1.ports[0] is Ethernet1/1, which is not a Cumulus Linux port"),
    (switch(), "rdma_roce.switches.leaf1.ports must be a list with at least one element; got []"),
    (
        switch("swp1", mtu_bytes=1500),
        "rdma_roce.switches.leaf1.mtu_bytes is 1500, but rail0 sends 9000: the switch would drop these packets",
    ),
    ({"switches": {"leaf1": {"ports": ["p1"]}, "LEAF1": {"ports": ["p1"]}}}, "rdma_roce.switches.LEAF1 is given twice: leaf1 has the"),
]
TAKEN: list[dict[str, Any]] = [
    {},
    {"pfc": False, "cnp_priority": 3, "cnp_dscp": 26},
    {"pfc": False},
    {"ecn": False},
    {"ecn": False, "dcqcn": {}, "cnp_dscp": None},
    {"priority": 7, "cnp_priority": 1},
    switch("swp1-4", "swp5", "swp6s0-1", "swp6s2"),
    switch("swp1", mtu_bytes=9000),
    {"switches": {"a": {"ports": ["Ethernet1/1-32", "et-0/0/1", "Eth1/1/1"]}, "b": {"ports": ["Ethernet1/1"]}}},
]
NCCL: list[tuple[dict[str, Any], str]] = [
    ({"NCCL_IB_TC": 104}, "rdma_nccl.variables.NCCL_IB_TC is 104, but rdma_roce requires 106 (DSCP 26, ECN on)"),
    ({"NCCL_IB_TC": -1}, "rdma_nccl.variables.NCCL_IB_TC is -1, but rdma_roce requires 106"),
    ({"NCCL_IB_TC": "x"}, "rdma_nccl.variables.NCCL_IB_TC is x, but"),
    ({"UCX_IB_TRAFFIC_CLASS": 0}, "rdma_nccl.variables.UCX_IB_TRAFFIC_CLASS is 0, but rdma_roce requires 106"),
    ({"NCCL_IB_ROCE_VERSION_NUM": 1}, "rdma_nccl.variables.NCCL_IB_ROCE_VERSION_NUM is 1, but rdma_roce marks by DSCP"),
]


@pytest.mark.parametrize(("roce", "expected"), REFUSED, ids=[f"{index}" for index in range(len(REFUSED))])
def test_a_contradiction_is_refused_with_the_reason(roce: dict[str, Any], expected: str) -> None:
    (problem,) = problems(roce=roce)
    assert str(problem).startswith(expected)
    assert problem.check == "intent.value"
    assert problem.expected


@pytest.mark.parametrize("roce", TAKEN, ids=[f"{index}" for index in range(len(TAKEN))])
def test_what_only_looks_like_one_is_taken(roce: dict[str, Any]) -> None:
    assert problems(roce=roce) == []


@pytest.mark.parametrize(("variables", "expected"), NCCL, ids=[f"{index}" for index in range(len(NCCL))])
def test_a_variable_is_no_second_place_of_the_value(variables: dict[str, Any], expected: str) -> None:
    (problem,) = problems(roce={}, nccl={"variables": variables})
    assert str(problem).startswith(expected)


@pytest.mark.parametrize(
    "variables", [{"NCCL_IB_TC": 106}, {"NCCL_IB_TC": "0x6a"}, {"UCX_IB_TRAFFIC_CLASS": "auto", "NCCL_IB_ROCE_VERSION_NUM": "2"}], ids=str
)
def test_a_variable_may_say_the_same(variables: dict[str, Any]) -> None:
    assert problems(roce={}, nccl={"variables": variables}) == []


@pytest.mark.parametrize(("link_layer", "role"), [("infiniband", "compute"), ("roce", "storage")])
def test_nccl_is_free_where_it_uses_no_roce(link_layer: str, role: str) -> None:
    rails = [{**rail, "link_layer": link_layer, "role": role, "soft": False, "mtu_bytes": 2044} for rail in lab_rails()]
    assert problems(rails=rails, roce={}, nccl={"variables": {"NCCL_IB_TC": 41}}) == []


def test_without_rdma_roce_nccl_is_free() -> None:
    assert problems(nccl={"variables": {"NCCL_IB_TC": 41}}) == []


def test_all_of_them_are_reported_at_once() -> None:
    found = problems(roce={"priority": 0, "cnp_priority": 0, "pfc": False, "ecn": False}, nccl={"variables": {"NCCL_IB_TC": 41}})
    assert [problem.where for problem in found] == [
        "rdma_roce.priority", "rdma_roce.cnp_priority", "rdma_roce.ecn", "rdma_roce.cnp_priority", "rdma_nccl.variables.NCCL_IB_TC",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("ports", "names"),
    [
        ("swp1", ["swp1"]),
        ("swp9-11", ["swp9", "swp10", "swp11"]),
        ("swp33s0-1", ["swp33s0", "swp33s1"]),
        ("Ethernet1/7-8", ["Ethernet1/7", "Ethernet1/8"]),
        ("et-0/0/1", ["et-0/0/1"]),
        ("swp2-1", []),
    ],
)
def test_a_range_is_its_ports(ports: str, names: list[str]) -> None:
    assert expand(ports) == names
