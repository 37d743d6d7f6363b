# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Planned fabrics: the numbers of well-known examples, and the same numbers from the graph of their cables."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import networkx as nx
import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.design import Candidate, Design
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.families.choose import NoPlanError, plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.output.table import plan_text
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.wishes import CablePrices, PlanRequest, Survive, SwitchModel
from tests.unit.builders.fabric_plans import brute_bisection, brute_worst, physical_ports, plane_cables, problems


def request(hosts: int, nics: int, ports: int, later: int | None = None, **more: Any) -> PlanRequest:
    return PlanRequest(hosts, later or hosts, 8, nics, 400, SwitchModel("switch", ports, 400, (1, 2)), **more)


def chosen(of: PlanRequest, existing: Design | None = None) -> Candidate:
    (found,) = [candidate for candidate in plan(of, existing) if candidate.chosen]
    return found


def parts_of(candidate: Candidate) -> tuple[Design, Any]:
    assert candidate.design is not None
    assert candidate.measures is not None
    return candidate.design, candidate.measures


@pytest.mark.parametrize(
    ("hosts", "nics", "ports", "family", "switches", "cables"),
    [
        (1152, 1, 48, "leaf_spine", {"leaf": 48, "spine": 24}, 2304),
        (27648, 1, 48, "fat_tree", {"leaf": 1152, "spine": 1152, "core": 576}, 82944),
        (1024, 1, 32, "fat_tree", {"leaf": 64, "spine": 64, "core": 32}, 3072),
        (1024, 1, 64, "leaf_spine", {"leaf": 32, "spine": 16}, 2048),
        (1024, 1, 16, "fat_tree", {"leaf": 128, "spine": 128, "core": 64}, 3072),
        (512, 8, 64, "rail_planes", {"leaf": 128, "spine": 64}, 8192),
        (512, 8, 64, "fat_tree", {"leaf": 128, "spine": 128, "core": 64}, 12288),
        (32, 8, 64, "rail_planes", {"leaf": 8}, 256),
        (128, 8, 64, "rail", {"leaf": 32, "spine": 16}, 2048),
    ],
    ids=["k48 two levels", "k48 three levels", "1024 on 32", "1024 on 64", "k16", "512x8 planes", "512x8 tree", "one SU", "four SU"],
)
def test_the_examples_have_these_numbers(*, hosts: int, nics: int, ports: int, family: str, switches: dict[str, int], cables: int) -> None:
    design, measures = parts_of(chosen(request(hosts, nics, ports, topology=family)))
    assert dict(measures.switches) == switches
    assert dict(Counter(switch.tier for switch in design.switches)) == switches
    assert measures.cable_count == len(design.cables) == cables
    assert list(problems(design, ports, 1)) == []
    # All examples are full: no port of any leaf, spine or core is free, except in one unit of single leaves.
    used = physical_ports(design, 1)
    assert set(used.values()) == ({ports} if "spine" in switches else {hosts})
    assert measures.plane_bisection_gbps == measures.wanted_gbps
    # The bisection of the first half of the hosts against the others, from the graph, if a maximum flow takes seconds at most.
    if measures.switch_count < 100 or len(design.planes) > 1:
        assert measures.plane_bisection_gbps == flow_of_halves(design, design.planes[0])


def flow_of_halves(design: Design, plane: str) -> float:
    """The maximum flow from the first half of the hosts to the second, in a plane."""
    half = set(design.hosts[: len(design.hosts) // 2])
    graph: nx.DiGraph[str] = nx.DiGraph()
    for cable in plane_cables(design, plane):
        for one, other in ((cable.a.node, cable.b.node), (cable.b.node, cable.a.node)):
            if graph.has_edge(one, other):
                graph[one][other]["capacity"] += cable.gbps
            else:
                graph.add_edge(one, other, capacity=cable.gbps)
    # Hosts of a half are one node, so that large examples stay fast.
    merged: nx.DiGraph[str] = nx.DiGraph()
    for one, other, data in graph.edges(data=True):
        ends = [("from" if node in half else "to") if node.startswith("node") else node for node in (one, other)]
        before = merged.get_edge_data(*ends, {"capacity": 0.0})["capacity"]
        merged.add_edge(*ends, capacity=before + data["capacity"])
    return float(nx.maximum_flow_value(merged, "from", "to", flow_func=nx.algorithms.flow.dinitz))


def test_64_leaves_and_64_spines_cannot_join_512_hosts_with_8_nics() -> None:
    """The claim was 64 + 64. A leaf takes 32 NICs at 1:1, so 64 leaves take 2048; two levels end there."""
    with pytest.raises(NoPlanError) as caught:
        plan(request(512, 8, 64, topology="leaf_spine"))
    message = str(caught.value)
    assert "holds at most 256 hosts (2048 NICs) with 64-port switches; 512 are planned: 256 too many" in message
    assert "1. topology: rail_planes (192 switches, 8192 cables)" in message
    assert "at most 256 hosts: leaf_spine with 96 switches" in message


def test_auto_prefers_rail_planes_to_the_tree_for_512_hosts() -> None:
    rows = {candidate.family: candidate for candidate in plan(request(512, 8, 64))}
    assert rows["rail_planes"].chosen
    assert rows["fat_tree"].why_not == "128 more switches than rail_planes"
    assert rows["single"].why_not == "holds at most 8 hosts (64 NICs) with 64-port switches; 512 are planned: 504 too many"
    assert rows["dragonfly_plus"].measures is None


def test_a_mesh_of_four_hosts_has_six_cables() -> None:
    design, measures = parts_of(chosen(request(4, 3, 64, topology="mesh")))
    assert len(design.cables) == 6
    assert {frozenset((cable.a.node, cable.b.node)) for cable in design.cables} == {
        frozenset((f"node{low}", f"node{high}")) for low in range(1, 5) for high in range(low + 1, 5)
    }
    assert list(problems(design, 0, 1)) == []
    assert measures.bisection_gbps == 4 * 400
    assert (measures.diameter, measures.switch_count) == (0, 0)


@pytest.mark.parametrize(("hosts", "nics", "cables", "gbps"), [(2, 2, 2, 800), (3, 2, 3, 800), (6, 4, 12, 1600)])
def test_a_ring(hosts: int, nics: int, cables: int, gbps: float) -> None:
    design, measures = parts_of(chosen(request(hosts, nics, 64, topology="ring")))
    assert len(design.cables) == cables
    assert list(problems(design, 0, 1)) == []
    graph: nx.Graph[str] = nx.Graph((cable.a.node, cable.b.node) for cable in design.cables)
    assert nx.is_connected(graph)
    assert all(degree == min(2, hosts - 1) for _node, degree in graph.degree())
    assert measures.bisection_gbps == gbps


@pytest.mark.parametrize(
    ("family", "hosts", "nics", "ports"),
    [
        *((family, *shape) for family in ("leaf_spine", "fat_tree", "dragonfly_plus") for shape in ((4, 2, 6), (6, 1, 4), (5, 1, 5))),
        ("rail", 4, 2, 6),
        ("rail", 3, 2, 4),
        ("rail_planes", 4, 2, 6),
        ("rail_planes", 7, 2, 4),
    ],
)
@pytest.mark.parametrize(("spines", "links"), [(0, 0), (1, 0), (0, 1), (2, 0)])
def test_the_bisection_after_failures_is_that_of_the_graph(
    *, family: str, hosts: int, nics: int, ports: int, spines: int, links: int
) -> None:
    survive = Survive(spines, links, 0.0)
    design, measures = parts_of(chosen(request(hosts, nics, ports, topology=family, survive=survive)))
    plane = design.planes[0]
    assert measures.plane_bisection_gbps == brute_bisection(plane_cables(design, plane))
    assert measures.worst_gbps == brute_worst(design, plane, spines, links)


@pytest.mark.parametrize("oversubscription", [1.0, 1.5, 2.0])
def test_oversubscribed_leaves(oversubscription: float) -> None:
    design, measures = parts_of(chosen(request(13, 1, 8, topology="leaf_spine", oversubscription=oversubscription)))
    assert measures.ratio["leaf"] <= oversubscription
    assert measures.plane_bisection_gbps == brute_bisection(plane_cables(design, "fabric"))


def test_the_table_of_one_failure_is_that_of_the_graph() -> None:
    design, measures = parts_of(chosen(request(6, 2, 8, topology="fat_tree")))
    cables = plane_cables(design, "fabric")
    rows = {each.part: each for each in measures.failures}
    by_tier = {tier: [switch.name for switch in design.switches if switch.tier == tier] for tier in ("leaf", "spine", "core")}
    assert {part: rows[part].count for part in by_tier} == {tier: len(names) for tier, names in by_tier.items()}
    assert rows["spine"].bisection_gbps == min(brute_bisection(cables, [name]) for name in by_tier["spine"])
    assert rows["core"].bisection_gbps == min(brute_bisection(cables, [name]) for name in by_tier["core"])
    between = [cable for cable in cables if cable.a.rail is None]
    assert rows["cable between switches"].bisection_gbps == min(brute_bisection(cables, lost=[cable]) for cable in between)
    name = rows["leaf"].example
    left = [cable for cable in cables if name not in {cable.a.node, cable.b.node}]
    assert rows["leaf"].bisection_gbps == brute_bisection(left)
    assert rows["leaf"].nics_cut == sum(1 for cable in cables if cable.b.node == name and cable.a.rail)
    host, leaf = rows["host cable"].example.split(" to ")
    lost = next(cable for cable in cables if (cable.a.node, cable.b.node) == (host, leaf))
    assert rows["host cable"].bisection_gbps == brute_bisection([cable for cable in cables if cable != lost])


def test_failures_that_no_layout_survives_are_refused_with_the_reason() -> None:
    with pytest.raises(NoPlanError, match=r"no layout keeps 100% of the requested bisection after the worst failures") as caught:
        plan(request(32, 1, 8, topology="leaf_spine", survive=Survive(1, 0, 1.0)))
    assert "survive: {spines: 0, links: 0}: leaf_spine with" in str(caught.value)


def test_a_spine_may_fail_if_more_are_planned() -> None:
    without = chosen(request(20, 1, 16, topology="leaf_spine"))
    survivor = chosen(request(20, 1, 16, topology="leaf_spine", survive=Survive(1, 0, 0.9)))
    design, measures = parts_of(survivor)
    assert measures.worst_gbps >= 0.9 * measures.wanted_gbps
    assert measures.switch_count > parts_of(without)[1].switch_count
    assert brute_worst(design, "fabric", 1, 0) == measures.worst_gbps


@pytest.mark.parametrize("ports", [5, 7, 9, 33])
def test_odd_ports(ports: int) -> None:
    design, measures = parts_of(chosen(request(10, 1, ports)))
    assert list(problems(design, ports, 1)) == []
    assert max(physical_ports(design, 1).values()) <= ports
    assert measures.plane_bisection_gbps == 5 * 400


def test_split_ports_to_hosts_halve_the_ports() -> None:
    model = SwitchModel("switch", 8, 400, (1, 2))
    whole = PlanRequest(24, 24, 8, 1, 200, model, "leaf_spine")
    split = replace(whole, host_parts=2)
    assert parts_of(chosen(split))[1].switch_count < parts_of(chosen(whole))[1].switch_count
    design, measures = parts_of(chosen(split))
    assert list(problems(design, 8, 2)) == []
    used = physical_ports(design, 2)
    assert max(used.values()) <= 8
    assert min(8 - number for node, number in used.items() if node.startswith("leaf")) == measures.free_ports["leaf"]
    assert measures.plane_bisection_gbps == brute_bisection(plane_cables(design, "fabric")) == 12 * 200
    # A refusal names the split that would help.
    with pytest.raises(NoPlanError, match=r"switch\.breakout: 2: leaf_spine with"):
        plan(replace(whole, hosts=48, hosts_later=48))


def test_spare_ports_stay_free() -> None:
    design, measures = parts_of(chosen(request(20, 1, 16, topology="leaf_spine", spare_ports=3)))
    assert measures.free_ports["leaf"] >= 3
    used = physical_ports(design, 1)
    assert all(used[switch.name] <= 13 for switch in design.switches if switch.tier == "leaf")


@pytest.mark.parametrize("family", ["single", "leaf_spine", "fat_tree", "rail", "rail_planes", "mesh", "dragonfly_plus"])
def test_growth_moves_no_cable(family: str) -> None:
    small, large = (3, 6) if family in {"single", "mesh"} else (17, 40)
    nics = 5 if family == "mesh" else 2
    before, _measures = parts_of(chosen(request(small, nics, 16, later=large, topology=family)))
    after = parts_of(chosen(request(large, nics, 16, topology=family), existing=before))[0]
    assert set(before.cables) < set(after.cables)
    assert set(before.switches) <= set(after.switches)
    assert len(after.hosts) == large


def test_an_existing_fabric_that_cannot_grow_is_refused() -> None:
    before, _measures = parts_of(chosen(request(16, 1, 8, topology="leaf_spine")))
    with pytest.raises(NoPlanError, match="no layout keeps all cables of the existing fabric"):
        plan(request(32, 1, 8, topology="leaf_spine"), existing=before)
    with pytest.raises(NoPlanError, match="the existing fabric is leaf_spine"):
        plan(request(32, 1, 8, topology="fat_tree"), existing=before)


def test_a_ring_does_not_grow() -> None:
    with pytest.raises(NoPlanError, match="a ring cannot grow without moving a cable"):
        plan(request(4, 2, 64, later=5, topology="ring"))


def test_prices_decide_if_there_are_any() -> None:
    """A fabric with fewer switches loses if its cables cost more than the switches that it saves."""
    model = SwitchModel("switch", 64, 400, (1,), price=100.0)
    dear = PlanRequest(32, 32, 8, 8, 400, model, cables=CablePrices(dac=1.0, aoc=100.0))
    rows = {candidate.family: candidate for candidate in plan(dear)}
    assert rows["rail_planes"].chosen
    assert rows["rail_planes"].cost == 8 * 100 + 256
    assert rows["rail"].cost == 12 * 100 + 256 + 256 * 100
    assert rows["rail"].why_not == "26000 dearer than rail_planes"


@pytest.mark.parametrize(
    ("price", "cables", "missing"),
    [
        (100.0, CablePrices(dac=1.0), ("cables.prices.aoc",)),
        (100.0, CablePrices(dac=1.0, optic=40.0), ("cables.prices.aoc",)),
        (None, CablePrices(dac=1.0, aoc=100.0), ("switch.price",)),
        (100.0, CablePrices(), ("cables.prices.dac", "cables.prices.aoc")),
    ],
)
def test_a_missing_price_does_not_count_as_zero(price: float | None, cables: CablePrices, missing: tuple[str, ...]) -> None:
    """With optics at 0, leaves and spines would look as cheap as planes of single switches."""
    of = PlanRequest(32, 32, 8, 8, 400, SwitchModel("switch", 64, 400, (1,), price=price), cables=cables)
    rows = plan(of)
    assert of.prices_not_given == missing
    assert {row.cost for row in rows} == {None}
    assert [row.why_not for row in rows if row.family == "rail"] == ["4 more switches than rail_planes"]
    names = " and ".join(f"rdma_plan.{key}" for key in missing)
    verb = "is" if len(missing) == 1 else "are"
    expected = f"Prices do not decide, because {names} {verb} not given. The fewest switches decide, then the fewest cables."
    assert expected in plan_text(of, rows).splitlines()


def test_without_any_price_the_text_has_no_word_on_prices() -> None:
    of = request(32, 8, 64)
    assert "rice" not in plan_text(of, plan(of))


def test_a_fiber_with_two_transceivers_is_a_price_between_switches() -> None:
    model = SwitchModel("switch", 64, 400, (1,), price=100.0)
    optics = PlanRequest(128, 128, 8, 8, 400, model, "rail", cables=CablePrices(dac=1.0, optic=40.0, fiber=5.0))
    assert chosen(optics).cost == 48 * 100 + 1024 * 1 + 1024 * (5 + 2 * 40)


def test_rails_are_preferred_at_equal_cost() -> None:
    rows = {row.family: row for row in plan(request(128, 8, 64))}
    assert rows["rail"].chosen
    assert (
        rows["leaf_spine"].why_not
        == "as many parts as rail, where 32 hosts instead of 4 share the leaf of a rail: NCCL sends within a rail"
    )
