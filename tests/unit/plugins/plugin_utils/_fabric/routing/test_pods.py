# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Three tiers: the ASNs of pods and cores, what growth changes, and what cannot be routed."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.cabling.plan import parse_plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.frr import render
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.model import RoutedPlane, RoutingError
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.plan import make_plan
from lab.clos_plan import ClosShape, cabling
from tests.unit.builders.clos import podded, settings

#: Pods, and leaves and spines of each pod, hosts of each leaf, cores.
SIZES = st.tuples(st.integers(1, 3), st.integers(1, 2), st.integers(1, 2), st.integers(0, 1), st.integers(1, 2))
POLICIES = st.sampled_from(["shared", "own"])


def shape(size: tuple[int, int, int, int, int], pods: int = 0, cores: int = 0) -> ClosShape:
    """Return a network, with some pods and cores more."""
    count, leaves, spines, hosts, several = size
    count += pods
    return ClosShape(count * leaves, count * spines, hosts, several + cores, count)


def changed(before: RoutedPlane, after: RoutedPlane) -> set[str]:
    """Return the switches with another configuration than before, also the new ones."""
    texts = {name: render(before, router) for name, router in before.routers.items()}
    return {name for name, router in after.routers.items() if texts.get(name) != render(after, router)}


@given(SIZES, POLICIES)
def test_only_the_spines_of_a_pod_and_the_cores_share_an_asn(size: tuple[int, int, int, int, int], spine_asn: str) -> None:
    plane = podded(shape(size), spine_asn=spine_asn)
    of: dict[int, set[tuple[str, int | None]]] = {}
    for router in plane.routers.values():
        alone = router.tier == "leaf" or spine_asn == "own"
        of.setdefault(router.asn, set()).add((router.name, 0) if alone else (router.tier, router.pod))
    assert all(len(owners) == 1 for owners in of.values())
    assert len({router.loopback for router in plane.routers.values()}) == len(plane.routers)
    assert {router.pod for router in plane.routers.values() if router.tier == "core"} == {None}
    assert {router.pod for router in plane.routers.values() if router.tier != "core"} == set(range(1, size[0] + 1))


@given(SIZES, POLICIES)
def test_each_session_joins_two_asns_of_adjacent_tiers(size: tuple[int, int, int, int, int], spine_asn: str) -> None:
    plane = podded(shape(size), spine_asn=spine_asn)
    for router in plane.routers.values():
        for each in router.neighbors:
            other = plane.routers[each.name]
            assert other.asn != router.asn
            assert {router.tier, other.tier} in ({"leaf", "spine"}, {"spine", "core"})
            assert any((back.name, back.port) == (router.name, each.its_port) for back in other.neighbors)


@given(SIZES, POLICIES)
def test_a_pod_that_is_added_changes_only_the_cores(size: tuple[int, int, int, int, int], spine_asn: str) -> None:
    before, after = podded(shape(size), spine_asn=spine_asn), podded(shape(size, pods=1), spine_asn=spine_asn)
    new = set(after.routers) - set(before.routers)
    assert changed(before, after) == {*new, *(name for name in after.routers if name.startswith("core"))}


@given(SIZES, POLICIES)
def test_a_core_that_is_added_changes_only_the_spines(size: tuple[int, int, int, int, int], spine_asn: str) -> None:
    before, after = podded(shape(size), spine_asn=spine_asn), podded(shape(size, cores=1), spine_asn=spine_asn)
    assert changed(before, after) == {f"core{size[4] + 1}", *(name for name in after.routers if name.startswith("spine"))}


@given(st.integers(1, 4), st.integers(1, 4), POLICIES)
def test_the_first_cores_change_only_the_spines(leaves: int, spines: int, spine_asn: str) -> None:
    before, after = podded(ClosShape(leaves, spines, 1), spine_asn=spine_asn), podded(ClosShape(leaves, spines, 1, 2), spine_asn=spine_asn)
    assert changed(before, after) == {"core1", "core2", *(name for name in after.routers if name.startswith("spine"))}
    assert all(after.routers[name].asn == router.asn for name, router in before.routers.items())


@given(SIZES, POLICIES)
def test_a_leaf_that_is_added_to_a_pod_changes_only_its_spines(size: tuple[int, int, int, int, int], spine_asn: str) -> None:
    text = cabling(shape(size))
    spines = [f"spine{number}" for number in range(1, size[2] + 1)]
    links = "".join(f"  - {{from: new/{number}, to: {spine}/30}}\n" for number, spine in enumerate(spines, 1))
    grown = text.replace("links:", "  new: {tier: leaf}\nlinks:") + links
    before, after = (make_plan("fab", settings(spine_asn=spine_asn), parse_plan(each)) for each in (text, grown))
    assert changed(before, after) == {"new", *spines}
    assert after.routers["new"].pod == 1


SMALL = cabling(ClosShape(2, 2, 1, 1, 2))


@pytest.mark.parametrize(
    ("text", "changes", "expected"),
    [
        (SMALL + "  - {from: leaf1/9, to: core1/9}\n", {}, "leaf1 port 9 to core1 port 9 joins a leaf and a core"),
        (SMALL + "  - {from: host9 rail0, to: core1/9}\n", {}, "joins a host to a core: hosts are cabled to leaves"),
        (SMALL.replace("links:", "  core2: {tier: core}\nlinks:"), {}, "core2 has no cable"),
        (
            re.sub(r".*spine2/33, to: core1/2.*\n", "", SMALL), {},
            "leaf1 (pod 1) has no path to leaf2 (pod 2): cable both pods to the same cores",
        ),
        (SMALL, {"maximum_paths": 1, "spine_asn": "own"}, None),
    ],
)  # fmt: skip
def test_what_cannot_be_routed_is_named(text: str, changes: dict[str, Any], expected: str | None) -> None:
    if expected is None:
        assert make_plan("fab", settings(**changes), parse_plan(text)).has_cores
        return
    with pytest.raises(RoutingError) as caught:
        make_plan("fab", settings(**changes), parse_plan(text))
    assert expected in str(caught.value)


def test_the_numbers_of_the_tiers_end_before_those_of_the_next() -> None:
    many = ClosShape(1, 32, 0, 16)
    text = cabling(many)
    spines = "".join(f"  more{n}: {{tier: spine}}\n" for n in range(33))
    links = "".join(f"  - {{from: leaf1/{100 + n}, to: more{n}/1}}\n" for n in range(33))
    with pytest.raises(RoutingError, match="more32 is spine number 65, expected at most 64 in a plane with cores"):
        make_plan("fab", settings(), parse_plan(text.replace("links:", f"{spines}links:") + links))
    cores = "".join(f"  more{n}: {{tier: core}}\n" for n in range(21))
    links = "".join(f"  - {{from: spine1/{100 + n}, to: more{n}/1}}\n" for n in range(21))
    with pytest.raises(RoutingError, match="more20 is core number 37, expected at most 36"):
        make_plan("fab", settings(), parse_plan(text.replace("links:", f"{cores}links:") + links))
