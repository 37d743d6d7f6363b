# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each fault of a fabric gives one finding, by name, with a plan of its cables and without; a fabric in order gives none."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.cabling.plan import parse_plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.judge import Asked, judge
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.links.counters import LIMITS
from tests.unit.builders.fabrics import Fabric, leafspine, rail

HOSTS = 16
UP = HOSTS + 1
"""The first uplink of a leaf, to spine1."""


def troubles(fabric: Fabric, clean: Fabric, *, plan: bool = True, ratio: float | None = 1.0, shuffled: int | None = None) -> list[Finding]:
    asked = Asked(parse_plan(clean.plan_text()) if plan else None, clean.expected(), ratio)
    return bad(judge(fabric.graph(shuffled), asked).findings)


def bad(findings: list[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.status not in ("ok", "not_applicable")]


def cut(fabric: Fabric) -> None:
    fabric.cut(("leaf1", UP))


def degraded(fabric: Fabric) -> None:
    fabric.slow(("leaf1", UP), 2)


def could_be(fabric: Fabric) -> None:
    fabric.slow(("node4 mlx5_0", 1), 4, "HDR", (None, "NDR"))


def swapped_hosts(fabric: Fabric) -> None:
    fabric.swap(("node3 mlx5_1", 1), ("node5 mlx5_1", 1))


def swapped_rails(fabric: Fabric) -> None:
    fabric.swap(("node3 mlx5_1", 1), ("node3 mlx5_2", 1))


def wrong_leaf(fabric: Fabric) -> None:
    fabric.cut(("node3 mlx5_1", 1))
    fabric.join(("node3 mlx5_1", 1), ("leaf4", 60))


def wrong_port(fabric: Fabric) -> None:
    fabric.cut(("node3 mlx5_1", 1))
    fabric.join(("node3 mlx5_1", 1), ("leaf2", 60))


def missing_spine(fabric: Fabric) -> None:
    fabric.remove("spine2")


def missing_leaf(fabric: Fabric) -> None:
    for name in ["leaf2", *(name for name in fabric.nodes if name.endswith("mlx5_1"))]:
        fabric.remove(name)


def missing_host(fabric: Fabric) -> None:
    for name in [name for name in fabric.nodes if name.startswith("node7 ")]:
        fabric.remove(name)


def asymmetric(fabric: Fabric) -> None:
    fabric.cut(("leaf1", UP))
    fabric.cut(("leaf1", UP + 1))


def swapped_uplinks(fabric: Fabric) -> None:
    fabric.swap(("leaf1", UP), ("leaf2", UP + 4))


def slow_spine(fabric: Fabric) -> None:
    for end in [end for end in fabric.cables if end[0] == "spine1"]:
        fabric.slow(end, 4, "HDR")


def extra_host(fabric: Fabric) -> None:
    fabric.node("node99 mlx5_0", "host")
    fabric.join(("node99 mlx5_0", 1), ("leaf1", 61))


def no_manager(fabric: Fabric) -> None:
    for end in fabric.cables:
        fabric.ports.setdefault(end, {}).update(state="INIT")


def duplicate_guid(fabric: Fabric) -> None:
    for name in ("node2 mlx5_0", "node9 mlx5_3"):
        fabric.nodes[name]["port_guid"] = "0x0002c90300f9bfa1"


def duplicate_lid(fabric: Fabric) -> None:
    for name in ("leaf1", "spine4"):
        fabric.nodes[name]["lid"] = 7


def unnamed(fabric: Fabric) -> None:
    fabric.nodes["spine3"]["name"] = "Quantum Mellanox Technologies"


def twins(fabric: Fabric) -> None:
    """leaf2 has the GUID of leaf1: the graph has one leaf, on the cables of both."""
    fabric.doubles = {"leaf1": {"leaf1": ("spine1", 1), "leaf2": ("spine1", 5)}}
    for end in [end for end in fabric.cables if end[0] == "leaf2"]:
        there = fabric.cut(end)
        if there[0].startswith("spine"):
            fabric.cut(("leaf1", end[1]))
            fabric.join(("leaf1", end[1]), there)
    for name in [name for name in fabric.nodes if name.endswith("mlx5_1") or name == "leaf2"]:
        del fabric.nodes[name]
    fabric.complete = False


def twin_hcas(fabric: Fabric) -> None:
    fabric.doubles = {"node5 mlx5_0": {"node3 mlx5_0": ("leaf1", 3), "node5 mlx5_0": ("leaf1", 5)}}
    fabric.remove("node3 mlx5_0")
    fabric.complete = False


def partial(fabric: Fabric) -> None:
    missing_spine(fabric)
    fabric.complete, fabric.problems = False, ["line 99: the output is cut off"]


def exchanged_leaves(fabric: Fabric) -> None:
    for port in [port for name, port in fabric.cables if name == "leaf1"]:
        fabric.swap(("leaf1", port), ("leaf2", port))


def replaced_switch(fabric: Fabric) -> None:
    fabric.nodes["spine2"]["guid"] = "0x00000000000000aa"


#: fault → (check, status, host, subject, words of what was seen); with a plan, and by the rails alone (None: nothing shows it).
Brief = tuple[str, str, str, str, str]
PLANE = "plane default"
SWAPPED_HOSTS = "swapped: node3 mlx5_1 is on leaf2 port 5, planned leaf2 port 3; node5 mlx5_1 is on leaf2 port 3, planned leaf2 port 5"
SWAPPED_RAILS = "node3 mlx5_1 is on leaf3 port 3, planned leaf2 port 3: a leaf of rail2, not of rail1"
GUID = re.compile(r"0x[0-9a-f]{16}")
TWINS = "leaf1 behind spine1 port 1 and leaf2 behind spine1 port 5 have the same GUID 0x"
TWIN_HCAS = "node3 mlx5_0 behind leaf1 port 3 and node5 mlx5_0 behind leaf1 port 5 have the same GUID 0x"
GONE = "is gone, with 16 cables"
FAULTS: list[tuple[Callable[[Fabric], None], Brief, Brief | None]] = [
    (
        cut,
        ("fabric.cabling", "error", PLANE, "leaf1 port 17 to spine1 port 1", "no link: leaf1 port 17 to spine1 port 1"),
        ("fabric.symmetry", "error", PLANE, "leaf1 to spine1", "leaf1 has 3 × 400 Gb/s to spine1, and 4 × 400 Gb/s to each other one"),
    ),
    (
        degraded,
        ("fabric.link", "error", PLANE, "leaf1 port 17 to spine1 port 1", "runs at 2X NDR, most similar links (leaf to spine) at 4X NDR"),
        ("fabric.link", "error", PLANE, "leaf1 port 17 to spine1 port 1", "runs at 2X NDR, most similar links (leaf to spine) at 4X NDR"),
    ),
    (
        could_be,
        ("fabric.link", "error", "node4", "node4 mlx5_0 to leaf1 port 4", "runs at 4X HDR, both ends support 4X NDR"),
        ("fabric.link", "error", "node4", "node4 mlx5_0 to leaf1 port 4", "runs at 4X HDR, both ends support 4X NDR"),
    ),
    (swapped_hosts, ("fabric.cabling", "warning", "node3", "node3 and node5", SWAPPED_HOSTS), None),
    (
        swapped_rails,
        ("fabric.cabling", "error", "node3", "node3", SWAPPED_RAILS),
        (
            "fabric.rails",
            "error",
            "node3",
            "node3 mlx5_1, node3 mlx5_2",
            "node3 mlx5_1 (rail1) is on leaf3 port 3, a leaf of rail2; rail1 is on leaf2",
        ),
    ),
    (
        wrong_leaf,
        (
            "fabric.cabling",
            "error",
            "node3",
            "node3 mlx5_1",
            "node3 mlx5_1 is on leaf4 port 60, planned leaf2 port 3: a leaf of rail3, not of rail1",
        ),
        ("fabric.rails", "error", "node3", "node3 mlx5_1", "node3 mlx5_1 (rail1) is on leaf4 port 60, a leaf of rail3; rail1 is on leaf2"),
    ),
    (wrong_port, ("fabric.cabling", "warning", "node3", "node3 mlx5_1", "node3 mlx5_1 is on leaf2 port 60, planned leaf2 port 3"), None),
    (
        missing_spine,
        ("fabric.cabling", "error", PLANE, "spine2", f"spine2 {GONE}"),
        ("fabric.ratio", "error", PLANE, "leaf1, leaf2, leaf3, leaf4", "6400 Gb/s from below, 4800 Gb/s up: 1.33"),
    ),
    (
        missing_leaf,
        ("fabric.cabling", "error", PLANE, "leaf2", "leaf2 is gone, with 32 cables and 16 HCAs with no other link: node1 mlx5_1"),
        ("fabric.cabling", "error", PLANE, "rail1", "16 HCAs of rail1 are not in the fabric: node1 mlx5_1 (rail1)"),
    ),
    (
        missing_host,
        (
            "fabric.cabling",
            "error",
            "node7",
            "node7 mlx5_0, node7 mlx5_1, node7 mlx5_2, node7 mlx5_3",
            "planned leaf1 port 7, leaf2 port 7",
        ),
        (
            "fabric.cabling",
            "error",
            "node7",
            "node7 mlx5_0 (rail0), node7 mlx5_1 (rail1), node7 mlx5_2 (rail2), node7 mlx5_3 (rail3)",
            "not in",
        ),
    ),
    (
        asymmetric,
        ("fabric.cabling", "error", PLANE, "leaf1, spine1", "no link: leaf1 port 17 to spine1 port 1, leaf1 port 18 to spine1 port 2"),
        ("fabric.symmetry", "error", PLANE, "leaf1 to spine1", "leaf1 has 2 × 400 Gb/s to spine1"),
    ),
    (
        swapped_uplinks,
        (
            "fabric.cabling",
            "error",
            PLANE,
            "leaf1 and leaf2 and spine1 and spine2",
            "leaf1 port 17 is on spine2 port 5, planned spine1 port 1",
        ),
        (
            "fabric.symmetry",
            "error",
            PLANE,
            "leaf1 and leaf2 to spine1, spine2",
            "leaf1 has 3 × 400 Gb/s to spine1, 5 × 400 Gb/s to spine2",
        ),
    ),
    (
        slow_spine,
        ("fabric.link", "error", PLANE, "spine1", "16 links of spine1: runs at 4X HDR"),
        ("fabric.link", "error", PLANE, "spine1", "16 links of spine1: runs at 4X HDR"),
    ),
    (
        extra_host,
        ("fabric.cabling", "warning", "node99", "node99 mlx5_0", "not planned: node99 mlx5_0 to leaf1 port 61"),
        ("fabric.ratio", "error", PLANE, "leaf1", "6800 Gb/s from below, 6400 Gb/s up"),
    ),
    (
        no_manager,
        ("fabric.link", "error", PLANE, "all links", "no subnet manager has configured them"),
        ("fabric.link", "error", PLANE, "all links", "no subnet manager has configured them"),
    ),
    (
        duplicate_guid,
        ("fabric.graph", "error", "node2", "node2 mlx5_0, node9 mlx5_3", "have the same port GUID 0x0002c90300f9bfa1"),
        ("fabric.graph", "error", "node2", "node2 mlx5_0, node9 mlx5_3", "have the same port GUID 0x0002c90300f9bfa1"),
    ),
    (
        duplicate_lid,
        ("fabric.graph", "error", PLANE, "LIDs", "7 belongs to leaf1, spine4"),
        ("fabric.graph", "error", PLANE, "LIDs", "7 belongs to leaf1, spine4"),
    ),
    (
        unnamed,
        ("fabric.graph", "warning", PLANE, "switches without a name", "1 with a default name: Quantum Mellanox Technologies"),
        ("fabric.graph", "warning", PLANE, "switches without a name", "1 with a default name: Quantum Mellanox Technologies"),
    ),
    (twins, ("fabric.graph", "error", PLANE, "leaf1, leaf2", TWINS), ("fabric.graph", "error", PLANE, "leaf1, leaf2", TWINS)),
    (
        twin_hcas,
        ("fabric.graph", "error", "node3", "node3 mlx5_0, node5 mlx5_0", TWIN_HCAS),
        ("fabric.graph", "error", "node3", "node3 mlx5_0, node5 mlx5_0", TWIN_HCAS),
    ),
    (
        partial,
        ("fabric.graph", "unknown", PLANE, "discovery", "line 99: the output is cut off"),
        ("fabric.graph", "unknown", PLANE, "discovery", "line 99: the output is cut off"),
    ),
    (exchanged_leaves, ("fabric.cabling", "error", PLANE, "leaf1 and leaf2", "leaf1 is cabled where leaf2 is planned"), None),
    (replaced_switch, ("fabric.cabling", "warning", PLANE, "spine2", "spine2 (0x00000000000000aa) is in the place of spine2"), None),
]
NAMED = [pytest.param(*fault, id=fault[0].__name__) for fault in FAULTS]


def check(found: list[Finding], reported: Brief | None) -> None:
    answer = [(each.check, each.status, each.host, each.subject) for each in found]
    assert answer == ([] if reported is None else [reported[:4]])
    if reported is not None:
        assert reported[4] in found[0].observed
        assert found[0].stage == "fabric"
        assert found[0].remedy


@pytest.mark.parametrize("plan", [True, False], ids=["planned", "by-rails"])
@pytest.mark.parametrize(
    "fabric",
    [rail(), leafspine(), rail(8, 2, 2, 2, per_leaf=4), leafspine(2, 2, 4, 2), leafspine(1, 0, 4)],
    ids=["rail", "leafspine", "groups", "small", "one"],
)
def test_a_fabric_in_order_gives_none(fabric: Fabric, plan: bool) -> None:
    assert troubles(fabric, fabric, plan=plan) == []


@pytest.mark.parametrize(("fault", "planned", "by_rails"), NAMED)
def test_a_fault_gives_its_finding_by_the_plan(fault: Callable[[Fabric], None], planned: Brief, by_rails: Brief | None) -> None:
    clean, fabric = rail(), rail()
    fault(fabric)
    check(troubles(fabric, clean), planned)


@pytest.mark.parametrize(("fault", "planned", "by_rails"), NAMED)
def test_a_fault_gives_its_finding_by_the_rails_alone(fault: Callable[[Fabric], None], planned: Brief, by_rails: Brief | None) -> None:
    clean, fabric = rail(), rail()
    fault(fabric)
    check(troubles(fabric, clean, plan=False), by_rails)


@pytest.mark.parametrize(("fault", "planned", "by_rails"), NAMED)
def test_since_the_last_run_a_fault_is_reported_once(fault: Callable[[Fabric], None], planned: Brief, by_rails: Brief | None) -> None:
    clean, fabric = rail(), rail()
    fault(fabric)
    asked = Asked(None, clean.expected(), 1.0, before=clean.graph(), before_run="7")
    found = bad(judge(fabric.graph(), asked).findings)
    assert len(found) == 1


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(2, 10_000), shuffled=st.integers(0, 10_000), which=st.sampled_from(FAULTS))
def test_other_guids_and_another_order_change_no_finding(
    seed: int, shuffled: int, which: tuple[Callable[[Fabric], None], Brief, Brief]
) -> None:
    fault = which[0]
    found = []
    for drawn, order in ((1, None), (seed, shuffled)):
        clean, fabric = rail(seed=drawn), rail(seed=drawn)
        fault(fabric)
        answer = troubles(fabric, clean, shuffled=order)
        found.append([(each.check, each.status, each.host, each.subject, GUID.sub("GUID", each.observed)) for each in answer])
    assert found[0] == found[1]


def test_two_faults_give_two_findings() -> None:
    clean, fabric = rail(), rail()
    swapped_rails(fabric)
    missing_spine(fabric)
    degraded(fabric)
    assert [each.check for each in troubles(fabric, clean)] == ["fabric.cabling", "fabric.cabling", "fabric.link"]


def test_what_is_planned_too_thin_is_reported_once() -> None:
    fabric = rail(spines=2)
    found = troubles(fabric, fabric)
    assert [(each.check, each.subject) for each in found] == [("fabric.ratio", "leaf1, leaf2, leaf3, leaf4")]
    assert troubles(fabric, fabric, ratio=2.0) == []


def test_another_number_of_uplinks_may_be_planned_and_another_rate_may_not() -> None:
    planned = leafspine(5, 2, 4, 4)
    for port in (7, 8, 11, 12):
        planned.cut(("leaf5", port))
    reported = ("fabric.symmetry", "leaf5", "leaf5: 2 × 400 Gb/s to each of 2, the others 4 × 400 Gb/s")
    for plan, status in ((True, "warning"), (False, "error")):
        found = troubles(planned, planned, plan=plan, ratio=None)
        assert [(each.status, (each.check, each.subject, each.observed)) for each in found] == [(status, reported)]
        assert ("This matches the plan" in found[0].remedy) is plan
    half = leafspine(2, 2, 4, 4)
    for leaf in (1, 2):
        for port in range(9, 13):
            half.slow((f"leaf{leaf}", port), 4, "HDR")
    assert ("fabric.symmetry", "error") in [(each.check, each.status) for each in troubles(half, half, ratio=None)]


def test_one_spine_alone_is_the_only_way() -> None:
    fabric = leafspine(3, 1, 4, 4)
    assert [(each.check, each.status, each.observed) for each in troubles(fabric, fabric)] == [
        ("fabric.symmetry", "warning", "spine1 is the only path between leaves")
    ]


def test_a_host_on_another_plane_is_reported_by_its_place() -> None:
    clean, fabric = rail(), rail()
    fabric.remove("node3 mlx5_1")
    elsewhere = {clean.guid("node3 mlx5_1"): "plane storage (leaf9 port 2)"}
    found = bad(judge(fabric.graph(), Asked(None, clean.expected(), 1.0, elsewhere)).findings)
    assert [(each.host, each.observed) for each in found] == [
        ("node3", "node3 mlx5_1 (rail1) is on plane storage (leaf9 port 2), planned plane default")
    ]


def test_a_name_may_begin_with_the_maker_s() -> None:
    clean, fabric = rail(), rail()
    for number, name in enumerate(("quantum-spine1", "nvidia-spine2", "mellanox-s3"), start=1):
        fabric.nodes[f"spine{number}"]["name"] = name
    assert troubles(fabric, clean) == []
    for name in ("Infiniscale-IV Mellanox Technologies", "SwitchX -  Mellanox Technologies", "Quantum-2", "Switch-IB 2", "MT54000"):
        fabric.nodes["spine1"]["name"] = name
        assert [each.subject for each in troubles(fabric, clean)] == ["switches without a name"]


def test_two_switches_of_one_name_are_distinguished() -> None:
    fabric = rail()
    fabric.nodes["leaf2"]["name"] = "leaf1"
    found = bad(judge(fabric.graph(), Asked(expected=fabric.expected())).findings)
    assert [(each.check, each.status, each.subject) for each in found] == [("fabric.graph", "warning", "leaf1")]


def test_switches_that_nobody_has_named_are_reported_by_the_guids_of_the_plan_or_not_at_all() -> None:
    clean, fabric = rail(), rail()
    for name, node in fabric.nodes.items():
        if node["kind"] == "switch":
            node["name"] = fabric.guid(name)
    (by_guid,) = troubles(fabric, clean)
    assert (by_guid.status, by_guid.subject) == ("warning", "switches without a name")
    nameless = re.sub(r"guid: '\w+'", "", clean.plan_text())
    findings = judge(fabric.graph(), Asked(parse_plan(nameless), clean.expected(), 1.0)).findings
    (unknown,) = bad(findings)
    assert (unknown.check, unknown.status, unknown.subject) == ("fabric.graph", "unknown", "switches without a name")
    assert "so the planned leaf1, leaf2" in unknown.observed
    assert [each.status for each in findings if each.check == "fabric.cabling"] == ["not_applicable", "ok"]


def test_an_empty_graph_is_unknown_and_nothing_is_well() -> None:
    findings = judge(Fabric().graph(), Asked(parse_plan(rail().plan_text()), rail().expected(), 1.0)).findings
    assert ("fabric.graph", "unknown") in {(each.check, each.status) for each in findings}
    assert "ok" not in {each.status for each in findings if each.check in ("fabric.cabling", "fabric.ratio", "fabric.symmetry")}


def test_a_partial_graph_says_of_nothing_that_it_is_well() -> None:
    fabric = rail()
    partial(fabric)
    findings = judge(fabric.graph(), Asked(parse_plan(rail().plan_text()), rail().expected(), 1.0)).findings
    assert "ok" not in {each.status for each in findings}


def test_counters_give_their_link_by_name_and_not_twice() -> None:
    fabric = rail()
    for end in fabric.cables:
        fabric.count(end, **dict.fromkeys(LIMITS, 5))
    first = judge(fabric.graph(), Asked(seconds=1000.0, run="7"))
    assert bad(first.findings) == []
    worse = copy.deepcopy(fabric)
    worse.count(("leaf1", UP), SymbolErrorCounter=500, PortRcvErrors=300)
    worse.count(("leaf3", 5), PortRcvRemotePhysicalErrors=4000)
    found = bad(judge(worse.graph(), Asked(baseline=first.baseline, seconds=4600.0, run="8")).findings)
    assert [(each.check, each.subject) for each in found] == [("fabric.counters", "leaf1 port 17 to spine1 port 1")]
    assert "SymbolErrorCounter 495 at leaf1 port 17 (495 an hour, a bit error rate of at least 3e-13)" in found[0].observed


def test_twelve_lanes_that_no_cable_has_are_no_finding() -> None:
    fabric = leafspine()
    for end in list(fabric.cables):
        fabric.slow(end, 4, "NDR", (12, None))
    assert troubles(fabric, fabric) == []
    fabric.slow(("leaf1", 9), 1, "NDR", (12, None))
    assert [each.observed for each in troubles(fabric, fabric)] == [
        "leaf1 port 9 to spine1 port 1 runs at 1X NDR, both ends support 4X NDR"
    ]


def test_servers_on_leaves_of_rails_that_they_have_not_are_where_a_port_was_free() -> None:
    fabric = rail()
    for number in range(1, 5):
        name = f"storage{number} mlx5_9"
        fabric.node(name, "host")
        fabric.join((name, 1), (f"leaf{number % 2 + 1}", 60 + number))
    assert troubles(fabric, fabric, plan=False, ratio=None) == []
    swapped_rails(fabric)
    assert [(each.check, each.host) for each in troubles(fabric, fabric, plan=False, ratio=None)] == [("fabric.rails", "node3")]


def test_in_a_mesh_of_infiniband_one_cable_is_seen_and_no_other_is_missing() -> None:
    fabric = Fabric()
    for name in ("node1 mlx5_0", "node2 mlx5_0", "node2 mlx5_1", "node3 mlx5_0"):
        fabric.node(name, "host")
    fabric.join(("node1 mlx5_0", 1), ("node2 mlx5_0", 1))
    expected = fabric.expected()
    for name in ("node2 mlx5_1", "node3 mlx5_0"):
        fabric.remove(name)
    found = judge(fabric.graph(), Asked(None, expected, mesh=True)).findings
    assert bad(found) == []
    assert any(each.check == "fabric.cabling" and each.status == "not_applicable" for each in found)
    assert [each.observed for each in bad(judge(fabric.graph(), Asked(None, expected)).findings)] == ["found 2 HCAs, but no switch"]


def test_without_rails_in_the_intent_names_of_devices_warn() -> None:
    fabric = rail()
    swapped_rails(fabric)
    found = bad(judge(fabric.graph(), Asked()).findings)
    assert [(each.check, each.status, each.host) for each in found] == [("fabric.rails", "warning", "node3")]


@pytest.mark.parametrize("leaves", [2, 3, 4])
def test_exchanged_uplinks_to_two_spines_are_one_error_and_no_other_number_of_uplinks(leaves: int) -> None:
    """Of two spines no majority shows what a leaf has to each: five to one and three to the other are not five to both."""
    clean, fabric = leafspine(leaves, 2, 8, 4), leafspine(leaves, 2, 8, 4)
    fabric.swap(("leaf1", 9), ("leaf2", 13))
    (found,) = troubles(fabric, clean, plan=False, ratio=None)
    assert (found.check, found.status, found.subject) == ("fabric.symmetry", "error", "leaf1 and leaf2 to spine1, spine2")
    assert found.observed == (
        "leaf1 has 3 × 400 Gb/s to spine1, 5 × 400 Gb/s to spine2, instead of 4 × 400 Gb/s to each; "
        "leaf2 has 5 × 400 Gb/s to spine1, 3 × 400 Gb/s to spine2, instead of 4 × 400 Gb/s to each"
    )


def ratio_findings(fabric: Fabric, **asked: Any) -> list[tuple[str, str, str, str]]:
    found = judge(fabric.graph(), Asked(expected=fabric.expected(), **asked)).findings
    return [(each.check, each.status, each.observed, each.remedy) for each in found if each.check in ("fabric.ratio", "fabric.bisection")]


def test_without_a_ratio_a_fabric_that_is_not_oversubscribed_is_well() -> None:
    (ratio, bisection) = ratio_findings(leafspine(4, 4, 8, 2))
    assert ratio[:3] == ("fabric.ratio", "ok", "leaf 1")
    assert bisection[1] == "ok"


def test_without_a_ratio_an_oversubscribed_compute_fabric_is_a_warning_that_names_the_key() -> None:
    (ratio, bisection) = ratio_findings(leafspine(4, 2, 8, 2))
    assert ratio == (
        "fabric.ratio",
        "warning",
        "leaf1, leaf2, leaf3, leaf4: 3200 Gb/s from below, 1600 Gb/s up: 2",
        "If this is intended, set rdma_fabric.planes.default.ratio: 2. If not, add uplinks, or move hosts to other leaves.",
    )
    assert bisection[1] == "not_applicable"
    assert "fabric.ratio" in bisection[2]
    assert "1600" not in ratio_findings(leafspine(4, 2, 8, 2), ratio=2.0)[0][2]


def test_the_ratio_that_a_warning_names_is_accepted() -> None:
    fabric = leafspine(4, 3, 8, 2)
    (ratio, _bisection) = ratio_findings(fabric)
    named = float(re.search(r"ratio: ([0-9.]+)\. If", ratio[3])[1])  # type: ignore[index]
    assert {status for _check, status, *_rest in ratio_findings(fabric, ratio=named)} == {"ok"}


def test_a_plane_of_storage_alone_is_measured_and_not_judged() -> None:
    fabric = leafspine(4, 2, 8, 2)
    expected = [replace(each, role="storage") for each in fabric.expected()]
    found = judge(fabric.graph(), Asked(expected=expected)).findings
    (ratio,) = [each for each in found if each.check == "fabric.ratio"]
    assert ratio.status == "not_applicable"
    assert ratio.observed.endswith("measured: leaf 2")
    assert {each.status for each in found if each.check == "fabric.bisection"} == {"not_applicable"}


def test_a_leaf_without_an_uplink_is_an_error_also_without_a_ratio() -> None:
    fabric = leafspine(4, 4, 8, 2)
    for port in range(9, 17):
        fabric.cut(("leaf4", port))
    found = [each for each in judge(fabric.graph(), Asked(expected=fabric.expected())).findings if each.status == "error"]
    assert [(each.check, each.subject) for each in found] == [("fabric.ratio", "leaf4")]
    assert "without an uplink" in found[0].observed
