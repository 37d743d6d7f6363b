# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The routed Clos network of the lab: its cables, their names, and the cabling plan, which is in the form that the fabric stage reads."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.cabling.plan import parse_plan
from lab import cli
from lab.clos_plan import MOST_HOSTS, MOST_LEAVES, MOST_SPINES, Cable, ClosShape, cabling, checked, namespace_of
from lab.errors import LabError

SHAPES = st.builds(ClosShape, st.integers(1, 6), st.integers(1, 6), st.integers(0, 3))


@given(SHAPES)
def test_each_port_has_one_cable_and_each_leaf_one_to_each_spine(shape: ClosShape) -> None:
    cables = list(shape.cables)
    ends = [end for cable in cables for end in (cable.a, cable.b)]
    assert len(ends) == len(set(ends))
    assert len(cables) == shape.leaves * (shape.spines + shape.hosts)


@given(SHAPES)
def test_the_plan_of_cables_is_what_the_fabric_stage_reads(shape: ClosShape) -> None:
    plan = parse_plan(cabling(shape))
    assert list(plan.switches) == shape.switches
    assert [str(link.a.port) for link in plan.links[: shape.spines]] == [str(n) for n in range(1, shape.spines + 1)]
    assert len(plan.links) == len(list(shape.cables))


@given(SHAPES)
def test_a_leaf_that_is_added_changes_no_other_cable(shape: ClosShape) -> None:
    larger = ClosShape(shape.leaves + 1, shape.spines, shape.hosts)
    assert set(shape.cables) <= set(larger.cables)


@pytest.mark.parametrize("pods", [1, 2, 3])
def test_a_spine_is_cabled_to_the_leaves_of_its_pod_and_to_all_cores(pods: int) -> None:
    shape = ClosShape(6, 6, 0, 2, pods)
    ends = [end for cable in shape.cables for end in (cable.a, cable.b)]
    assert len(ends) == len(set(ends))
    found = [{cable.a[0], cable.b[0]} for cable in shape.cables]
    assert {"spine6", "core2"} in found
    assert ({"leaf1", "spine6"} in found) == (pods == 1)
    assert len(found) == 6 * 6 // pods + 6 * 2
    tiers = {name: switch.tier for name, switch in parse_plan(cabling(shape)).switches.items()}
    assert (tiers["leaf1"], tiers["spine6"], tiers["core2"]) == ("leaf", "spine", "core")


@pytest.mark.parametrize("shape", [(4, 4, 1, 0, 2), (3, 4, 1, 2, 2), (4, 3, 1, 2, 2), (4, 4, 1, 2, 0)])
def test_pods_that_cannot_be_made_are_refused(shape: tuple[int, int, int, int, int]) -> None:
    with pytest.raises(LabError, match="pods need cores, and the same number"):
        ClosShape(*shape)


def test_a_cable_is_found_by_either_end() -> None:
    shape = ClosShape()
    assert shape.cable("leaf2/1") == Cable(("leaf2", "swp1"), ("spine1", "swp2"))
    assert shape.cable("spine1/2") == Cable(("spine1", "swp2"), ("leaf2", "swp1"))
    assert shape.cable("host2") == Cable(("host2", "rail0"), ("leaf2", "swp33"))


@pytest.mark.parametrize("link", ["leaf1/9", "leaf1", "host9", "", "spine1/swp1"])
def test_a_cable_that_is_not_there_is_refused(link: str) -> None:
    with pytest.raises(LabError, match="There is no cable"):
        ClosShape().cable(link)


@pytest.mark.parametrize("shape", [(0, 2, 1), (2, 0, 1), (MOST_LEAVES + 1, 2, 1), (2, MOST_SPINES + 1, 1), (2, 2, MOST_HOSTS + 1)])
def test_a_size_that_has_no_ports_is_refused(shape: tuple[int, int, int]) -> None:
    with pytest.raises(LabError, match="A routed Clos has"):
        ClosShape(*shape)


@pytest.mark.parametrize("name", ["", "Clos", "a-b", "a" * 11, "../x", "1a"])
def test_a_name_that_would_reach_other_files_is_refused(name: str) -> None:
    with pytest.raises(LabError, match="name is 1 to 10"):
        checked(name)


def test_namespaces_have_a_prefix_of_their_own() -> None:
    assert namespace_of(checked("clos"), "leaf1") == "rdma-clos-clos-leaf1"


def test_the_command_line_knows_each_verb() -> None:
    for words in (
        ["up", "--leaves", "4"],
        ["down"],
        ["cut", "leaf1/1"],
        ["mtu", "leaf1/1", "1500"],
        ["frr", "folder"],
        ["run", "leaf1", "--", "id"],
    ):
        assert cli.parser().parse_args(["clos", *words]).command == "clos"
