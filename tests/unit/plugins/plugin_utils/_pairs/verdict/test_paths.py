# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What measurements cross, and samples that cross spines first."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._fabric.graph import Graph
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.fabric import crossing_rounds, crossing_schedule, ends, paths_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.matrix.matrix import Matrix
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.plan.suspects import meetings, reach
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.schedule import planned_meetings, rail_schedules
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.verdict.paths import FabricPaths
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.verdict.verdict import localize
from tests.unit.builders.small_fabrics import UPLINK, fabric, guid, hca

GROUP = "one of spine0, spine1"


def all_ends(hosts: int, rails: int = 2) -> list[list[tuple[str, int] | None]]:
    return [[(hca(rail, host), 1) for host in range(hosts)] for rail in range(rails)]


def tables(graph: Graph, hosts: int, rails: int = 2, spines: int = 2) -> dict[str, dict[int, int]]:
    """By destination: host h of rail r goes by spine (h + r) mod spines."""
    found: dict[str, dict[int, int]] = {each: {} for each, node in graph.nodes.items() if node.kind == "switch"}
    for rail, host in itertools.product(range(rails), range(hosts)):
        end, lid = (hca(rail, host), 1), 1 + rail * 4096 + host
        leaf = graph.peer(*end)
        assert leaf is not None
        for table in found.values():
            table[lid] = UPLINK + (host + rail) % spines
        for spine in range(spines):
            found[guid("spine", spine)][lid] = 1 + int(leaf[0][-4:], 16)
        found[leaf[0]][lid] = leaf[1]
    return found


def test_below_one_leaf_that_leaf_alone_is_crossed() -> None:
    assert FabricPaths(fabric(8), all_ends(8)).elements(1, 0, 3) == ("leaf1",)


def test_without_tables_the_spines_are_one_element() -> None:
    paths = FabricPaths(fabric(8), all_ends(8))
    assert paths.elements(0, 0, 4) == ("leaf2", "leaf0", "uplinks of leaf2", "uplinks of leaf0", GROUP)
    assert [paths.alternatives(each) for each in (GROUP, "leaf0")] == [2, 1]


def test_tables_report_the_spine_and_the_cables() -> None:
    graph = fabric(8)
    paths = FabricPaths(graph, all_ends(8), tables(graph, 8))
    assert paths.elements(0, 1, 4)[4:] == (f"cable leaf2/{UPLINK + 1} to spine1/3", "spine1", f"cable leaf0/{UPLINK + 1} to spine1/1")
    both = FabricPaths(graph, all_ends(8), tables(graph, 8), bidirectional=True).elements(0, 1, 4)
    assert {"spine0", "spine1"} <= set(both)


def test_tables_that_lead_astray_report_nothing() -> None:
    graph = fabric(8)
    wrong = tables(graph, 8)
    for spine in range(2):
        wrong[guid("spine", spine)] = dict.fromkeys(wrong[guid("spine", spine)], 99)
    assert GROUP in FabricPaths(graph, all_ends(8), wrong).elements(0, 1, 4)
    loop = tables(graph, 8)
    loop[guid("spine", 1)][2] = 2
    assert GROUP in FabricPaths(graph, all_ends(8), loop).elements(0, 1, 4)


def test_who_is_not_in_the_graph_crosses_nothing() -> None:
    missing = all_ends(8)
    missing[0][4] = None
    assert FabricPaths(fabric(8), missing).elements(0, 0, 4) == ()
    assert FabricPaths(replace(fabric(8), links=[]), all_ends(8)).elements(0, 0, 4) == ()


def test_switches_of_one_name_are_distinguished() -> None:
    graph = fabric(8)
    other = replace(graph.nodes[guid("leaf", 2)], name="leaf0")
    paths = FabricPaths(replace(graph, nodes={**graph.nodes, other.guid: other}), all_ends(8))
    assert paths.elements(0, 4, 5) == (f"leaf0 ({guid('leaf', 2)})",)


def test_groups_that_begin_alike_have_names_of_their_own() -> None:
    graph = fabric(12, rails=1, spines=6)
    cut = {(guid("leaf", 0), UPLINK + 4), (guid("leaf", 1), UPLINK + 5)}
    cut_graph = replace(graph, links=[link for link in graph.links if not cut & {link.a, link.b}])
    paths = FabricPaths(cut_graph, all_ends(12, 1))
    names = {paths.elements(0, 0, 8)[-1], paths.elements(0, 4, 8)[-1]}
    assert len(names) == 2
    assert {paths.alternatives(name) for name in names} == {5}


def measured(bad: str, paths: FabricPaths, hosts: int = 24, left: float | None = 0.4, per_spine: int = 0) -> Matrix:
    rows = []
    for rail in range(2):
        for one, other in itertools.combinations(range(hosts), 2):
            server, client = (one, other) if (one + other) % 2 else (other, one)
            hit = bad in paths.elements(rail, server, client) and (not per_spine or (server + rail) % per_spine == 1)
            rows.append((rail, server, client, left if hit else 0.97 + 0.01 * ((one * 7 + other * 5) % 5)))
    return Matrix.of([f"node{number}" for number in range(hosts)], ["rail0", "rail1"], rows)


@pytest.mark.parametrize("left", [0.4, None], ids=["slow", "failed"])
@pytest.mark.parametrize("bad", ["leaf3", "uplinks of leaf3", "spine1", f"cable leaf3/{UPLINK} to spine0/4"])
def test_an_element_of_the_fabric_is_the_culprit(bad: str, left: float | None) -> None:
    graph = fabric(24, per_leaf=6)
    paths = FabricPaths(graph, all_ends(24), tables(graph, 24))
    (found,) = localize(measured(bad, paths, left=left), paths=paths)
    assert (found.kind, found.element) == ("path", bad)


def test_one_of_the_spines_is_the_culprit_where_the_tables_are_not_known() -> None:
    paths = FabricPaths(fabric(24, per_leaf=6, spines=4), all_ends(24))
    (found,) = localize(measured("one of spine0, spine1, spine2, spine3", paths, per_spine=4), paths=paths)
    assert (found.kind, found.element) == ("path", "one of spine0, spine1, spine2, spine3")


def test_a_bad_nic_is_not_taken_for_a_spine() -> None:
    paths = FabricPaths(fabric(24, per_leaf=6), all_ends(24))
    healthy = measured("nothing", paths)
    assert localize(healthy, paths=paths) == []
    rows = [
        (rail, server, client, 0.3 if rail == 0 and 5 in (server, client) else ratio)
        for rail, server, client, ratio in zip(healthy.rail, healthy.server, healthy.client, healthy.ratio, strict=True)
    ]
    (found,) = localize(Matrix.of(healthy.hosts, healthy.rails, rows), paths=paths)
    assert (found.kind, found.host, found.rail) == ("nic", 5, 0)


def test_elements_that_cannot_be_distinguished_are_named_together() -> None:
    paths = FabricPaths(fabric(24, per_leaf=12, spines=1), all_ends(24))
    (found,) = localize(measured("uplinks of leaf0", paths), paths=paths)
    assert found.element == "uplinks of leaf0 or uplinks of leaf2"


def test_a_path_is_measured_again_as_it_was() -> None:
    graph = fabric(24, per_leaf=6)
    paths = FabricPaths(graph, all_ends(24), tables(graph, 24))
    matrix = measured("spine1", paths)
    found = localize(matrix, paths=paths)
    planned = meetings(found, matrix, reach(matrix, found, matrix.hosts, {}))
    assert len(planned) == 2
    for rail, server, client in planned:
        where = (int(rail[-1]), int(server.removeprefix("node")), int(client.removeprefix("node")))
        assert "spine1" in paths.elements(*where)


def facts(host: int) -> Facts:
    named = {}
    for rail in range(2):
        digits = hca(rail, host)[2:]
        named[f"mlx5_{rail}"] = {"node_guid": ":".join(digits[at : at + 4] for at in range(0, 16, 4))}
    return from_dict({"devices": named})


def plan(hosts: int, schedule: dict[str, Any]) -> dict[str, Any]:
    profiles = [{"device": f"mlx5_{rail}", "port": 1} for rail in range(2)]
    rails = [{"name": f"rail{rail}", "addresses": ["a"] * hosts, "profiles": [rail] * hosts} for rail in range(2)]
    return {"hosts": [f"node{number}" for number in range(hosts)], "profiles": profiles, "rails": rails, "schedule": schedule}


def test_the_plan_is_laid_over_the_graph_by_guid() -> None:
    graph, known = fabric(8), {f"node{number}": facts(number) for number in range(7)}
    found = ends(graph, plan(8, {"kind": "full"}), known)
    assert found == [[*(end for end in of[:7]), None] for of in all_ends(8)]
    paths = paths_of({"planes": [graph.to_dict()]}, plan(8, {"kind": "full"}), known)
    assert paths.elements(0, 0, 4) == FabricPaths(graph, all_ends(8)).elements(0, 0, 4)
    assert paths.elements(0, 0, 7) == ()


def test_a_sample_crosses_spines_first() -> None:
    leaves = [f"leaf{host // 8}" for host in range(64)]
    rounds = crossing_rounds(leaves, 8, 7)
    assert rounds == crossing_rounds(leaves, 8, 7)
    assert rounds != crossing_rounds(leaves, 8, 8)
    crossing = [[leaves[one] != leaves[other] for one, other in each] for each in rounds]
    assert [all(each) for each in crossing] == [True] * 6 + [False] * 2
    met = Counter(frozenset(pair) for each in rounds for pair in each)
    assert set(met.values()) == {1}
    degree = Counter(host for each in rounds for pair in each for host in pair)
    assert min(degree[host] for host in range(64)) >= 6


@pytest.mark.parametrize(
    "leaves", [["a"] * 6, ["a"] * 5 + ["b"], ["a", "b"], [None, "a", "b"], []], ids=["one leaf", "one beside", "two", "one unknown", "none"]
)
def test_a_sample_of_odd_fabrics(leaves: list[str | None]) -> None:
    rounds = crossing_rounds(leaves, 3, 1)
    assert all(leaves[host] is not None for each in rounds for pair in each for host in pair)
    assert all(len({*itertools.chain(*each)}) == 2 * len(each) for each in rounds)


def test_a_plan_of_a_sample_becomes_listed_meetings() -> None:
    graph, known = fabric(16), {f"node{number}": facts(number) for number in range(16)}
    wanted = plan(16, {"kind": "sample", "partners": 4, "seed": 3})
    found = crossing_schedule({"planes": [graph.to_dict()]}, wanted, known)
    assert found is not None
    listed = {**wanted, "schedule": found}
    assert [each.schedule.rounds for each in rail_schedules(listed)] == [4, 4]
    assert len(list(planned_meetings(listed))) >= 2 * 4 * 6
    assert crossing_schedule({"planes": [graph.to_dict()]}, wanted, {}) is None
    assert crossing_schedule({"planes": [graph.to_dict()]}, plan(16, {"kind": "full"}), known) is None


def test_a_sample_crosses_spines_within_each_partition() -> None:
    graph, known = fabric(16, per_leaf=4), {f"node{number}": facts(number) for number in range(16)}
    wanted = plan(16, {"kind": "sample", "partners": 4, "seed": 1})
    wanted["profiles"] = [{"device": f"mlx5_{rail}", "port": 1, "pkey": pkey} for pkey in (1, 2) for rail in range(2)]
    for rail, column in enumerate(wanted["rails"]):
        column["profiles"] = [rail + 2 * (host % 2) for host in range(16)]
    found = crossing_schedule({"planes": [graph.to_dict()]}, wanted, known)
    assert found is not None
    met = [(one % 2, other % 2) for _rail, _round, one, other in planned_meetings({**wanted, "schedule": found})]
    assert {one == other for one, other in met} == {True}
    assert {one for one, _other in met} == {0, 1}
    few = [0 if host < 14 else 2 for host in range(16)]
    assert crossing_schedule({"planes": [graph.to_dict()]}, {**wanted, "rails": [{**wanted["rails"][0], "profiles": few}]}, known) is None
