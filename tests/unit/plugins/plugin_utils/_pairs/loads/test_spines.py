# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the gate of the pairs stage says of the load across spines: simulated loads over fabrics with known uplinks."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.evidence import SWEEP
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.loads import spines_plan
from tests.unit.builders.fabric_runs import FabricRun
from tests.unit.builders.fabrics import leafspine, rail


def test_a_fabric_that_carries_what_its_uplinks_allow_is_well(tmp_path: Path) -> None:
    run = FabricRun(tmp_path / "R1", leafspine(2, 2, 4, 2)).sweep()
    run.plan()
    (found,) = run.load().judged()
    assert (found.stage, found.host, found.subject, found.status) == ("pairs", "plane default", "rail0", "ok")
    assert found.observed == "one pair alone 390 Gb/s, 4 pairs at once 100% of it each: 1:1"
    assert found.expected == "at most 1:1, by the graph"


@pytest.mark.parametrize(("spread", "status"), [(1.0, "ok"), (0.8, "warning"), (0.5, "error")])
def test_an_oversubscribed_fabric_is_held_against_its_own_ratio(tmp_path: Path, spread: float, status: str) -> None:
    run = FabricRun(tmp_path / "R1", leafspine(2, 2, 4, 1)).sweep()
    run.plan()
    (found,) = run.load(spread).judged()
    assert (found.status, found.expected) == (status, "at most 2:1, by the graph")
    assert f"one pair alone 390 Gb/s, 4 pairs at once {spread / 2:.0%} of it each" in found.observed


def test_each_rail_has_a_finding_of_its_own(tmp_path: Path) -> None:
    fabric = rail(hosts=8, rails=2, spines=2, cables=2, per_leaf=4)
    for port in (5, 6):
        fabric.cut(("leaf1", port))
    run = FabricRun(tmp_path / "R1", fabric).sweep()
    run.plan()
    found = {each.subject: each for each in run.load().judged()}
    assert {name: (each.host, each.status) for name, each in found.items()} == dict.fromkeys(["rail0", "rail1"], ("plane default", "ok"))
    assert [found[name].expected.split(",")[0] for name in ("rail0", "rail1")] == ["at most 2:1", "at most 1:1"]


def test_rails_that_share_leaves_share_uplinks(tmp_path: Path) -> None:
    fabric = leafspine(2, 2, 4, 1)
    for host in range(1, 9):
        fabric.node(f"node{host} mlx5_1", "host")
        fabric.join((f"node{host} mlx5_1", 1), (f"leaf{(host + 3) // 4}", 20 + host))
    run = FabricRun(tmp_path / "R1", fabric).sweep()
    run.plan()
    found = run.load().judged()
    assert [(each.subject, each.status, each.expected.split(",")[0]) for each in found] == [
        (rail, "ok", "at most 4:1") for rail in ("rail0", "rail1")
    ]


@pytest.mark.parametrize(
    ("lost", "observed"),
    [((-2, 1), "1 of 4 simultaneous pairs were not measured"), ((-1, 0), "the single pair was not measured")],
    ids=["at once", "alone"],
)
def test_a_load_that_is_not_whole_is_unknown(tmp_path: Path, lost: tuple[int, int], observed: str) -> None:
    run = FabricRun(tmp_path / "R1", leafspine(2, 2, 4, 2)).sweep()
    run.plan()
    (found,) = run.load(lost=[lost]).judged()
    assert (found.status, found.observed) == ("unknown", observed)


def test_what_is_lost_in_the_exchanges_before_does_not_matter(tmp_path: Path) -> None:
    run = FabricRun(tmp_path / "R1", leafspine(2, 2, 4, 2)).sweep()
    run.plan()
    (found,) = run.load(lost=[(-4, 0), (-3, 2)]).judged()
    assert found.status == "ok"


def test_a_plan_that_nobody_has_measured_is_unknown(tmp_path: Path) -> None:
    run = FabricRun(tmp_path / "R1", leafspine(2, 2, 4, 2)).sweep()
    run.plan()
    (found,) = run.judged()
    assert (found.status, found.observed) == ("unknown", "4 of 4 simultaneous pairs were not measured")


def test_with_reads_the_results_are_found_too(tmp_path: Path) -> None:
    run = FabricRun(tmp_path / "R1", leafspine(2, 2, 4, 1), command="ib_read_bw").sweep()
    run.plan()
    assert [each.status for each in run.load().judged()] == ["ok"]


def test_why_a_rail_was_not_measured_is_reported_of_its_plane(tmp_path: Path) -> None:
    run = FabricRun(tmp_path / "R1", leafspine(1, 2, 6)).sweep()
    run.plan()
    (found,) = run.judged()
    assert (found.host, found.subject, found.status, found.observed) == (
        "plane default", "rail0", "not_applicable", spines_plan.ONE_LEAF,
    )  # fmt: skip


def test_where_no_plane_has_a_graph_it_is_reported_of_the_first_host(tmp_path: Path) -> None:
    run = FabricRun(tmp_path / "R1", rail(hosts=4, rails=2), graph=False).sweep()
    run.plan()
    assert [(each.host, each.subject, each.status, each.observed) for each in run.judged()] == [
        ("node1", name, "not_applicable", spines_plan.NO_GRAPH) for name in ("rail0", "rail1")
    ]
    assert run.folder.groups_of("pairs") == []


def test_nothing_is_reported_where_nothing_was_measured_in_this_run(tmp_path: Path) -> None:
    assert FabricRun(tmp_path / "R1", leafspine(2, 2, 4, 2)).judged() == []
    swept = FabricRun(tmp_path / "R2", leafspine(2, 2, 4, 2)).sweep()
    assert swept.judged() == []
    swept.plan()
    swept.load()
    (swept.folder.path / SWEEP / "plan.json").unlink()
    assert swept.judged() == []


def test_the_largest_partition_crosses_the_spines(tmp_path: Path) -> None:
    tables = {f"node{number}": (0x7FFF, 0x8001 if number in {1, 5} else 0x8002) for number in range(1, 9)}
    run = FabricRun(tmp_path / "R1", leafspine(2, 2, 4, 2), tables=tables).sweep()
    run.plan()
    assert run.folder.read_json("pairs/spines/plan.json")["hosts"] == ["node2", "node3", "node4", "node6", "node7", "node8"]
    (found,) = run.load().judged()
    assert found.status == "ok"
