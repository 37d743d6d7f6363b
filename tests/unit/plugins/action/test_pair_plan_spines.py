# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan of a load across spines, from what a run has left in its folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.action import pair_plan
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.files import parse_plan, unpack_plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.evidence import Evidence
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.loads import spines_plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.loads.spines_plan import planned_rounds
from tests.unit.builders.fabric_runs import BUSY, FabricRun
from tests.unit.builders.fabrics import Fabric, leafspine, rail


def small() -> Fabric:
    return leafspine(leaves=2, spines=2, hosts_per_leaf=4)


def named(run: FabricRun, rail_name: str = "rail0") -> list[list[tuple[str, str]]]:
    """Sender and receiver, at once and alone."""
    plan = run.folder.read_json("pairs/spines/plan.json")
    return [[(plan["hosts"][one], plan["hosts"][other]) for one, other in turn] for turn in planned_rounds(plan)[rail_name]]


def test_after_a_sweep_each_host_has_a_partner_below_another_leaf(tmp_path: Path) -> None:
    run = FabricRun(tmp_path / "R1", small()).sweep()
    answer = run.plan()
    assert (answer["hosts"], answer["outside"], answer["msg"]) == (run.hosts, [], "rail0: 4 pairs")
    assert answer["sweep"].endswith("-spines")
    assert len(answer["token"]) == 64
    plan = parse_plan(unpack_plan(answer["plan"]))
    assert plan == run.folder.read_json("pairs/spines/plan.json")
    assert named(run) == [[(f"node{number}", f"node{number + 4}") for number in range(1, 5)], [("node1", "node6")]]
    assert answer["runtime_max_seconds"] == plan["start_deadline_seconds"] + 4 * plan["tests"][0]["deadline_seconds"]
    assert run.folder.read_json("pairs/spines.json") == {}


def test_it_goes_one_way_and_by_time_whatever_the_sweep_does(tmp_path: Path) -> None:
    run = FabricRun(tmp_path / "R1", small(), iterations=200, bidirectional=True, duration_seconds=7).sweep()
    run.plan()
    (test,) = run.folder.read_json("pairs/spines/plan.json")["tests"]
    assert (test["name"], test["iterations"], test["bidirectional"], test["duration_seconds"]) == ("bandwidth", None, False, 7)


@pytest.mark.parametrize(("command", "server"), [("ib_write_bw", "node5"), ("ib_read_bw", "node1")])
def test_data_goes_the_same_way_with_every_command(tmp_path: Path, command: str, server: str) -> None:
    run = FabricRun(tmp_path / "R1", small(), command=command).sweep()
    run.plan()
    plan = run.folder.read_json("pairs/spines/plan.json")
    assert plan["hosts"][plan["schedule"]["rails"][0][-2][0][0]] == server
    assert named(run)[0][0] == ("node1", "node5")


def test_all_rails_measure_at_once_and_the_same_two_hosts_alone(tmp_path: Path) -> None:
    run = FabricRun(tmp_path / "R1", rail(hosts=8, rails=2, spines=2, per_leaf=4)).sweep()
    assert run.plan()["msg"] == "rail0: 4 pairs; rail1: 4 pairs"
    assert named(run, "rail0") == named(run, "rail1")


def test_who_was_found_slow_takes_no_part(tmp_path: Path) -> None:
    run = FabricRun(tmp_path / "R1", small()).sweep(slow=["node2"])
    answer = run.plan()
    assert answer["hosts"] == ["node1", "node3", "node4", "node5", "node6", "node7"]
    assert answer["msg"] == "rail0: 3 pairs"


def test_who_left_the_play_takes_no_part(tmp_path: Path) -> None:
    run = FabricRun(tmp_path / "R1", small()).sweep()
    assert run.plan(playing=run.hosts[2:])["hosts"] == run.hosts[2:6]


def test_nothing_is_asked_where_nothing_was_measured(tmp_path: Path) -> None:
    run = FabricRun(tmp_path / "R1", small())
    assert run.plan() == {"hosts": [], "outside": [], "msg": "Nothing was measured."}
    assert not (run.folder.path / "pairs").exists()


def refused(run: FabricRun, **of_plan: Any) -> str:
    answer = run.plan(**of_plan)
    assert answer["hosts"] == []
    assert not (run.folder.path / "pairs/spines/plan.json").exists()
    why = run.folder.read_json("pairs/spines.json")
    assert answer["msg"] == "; ".join(f"{name}: {each}" for name, each in why.items())
    return str(why["rail0"])


def test_a_sweep_that_was_stopped_is_not_followed_by_a_load(tmp_path: Path) -> None:
    run = FabricRun(tmp_path / "R1", small()).sweep(finished=False)
    assert refused(run) == "The sweep was stopped; the next run resumes it."


@pytest.mark.parametrize("load", [BUSY, None], ids=["a job", "not read"])
def test_a_host_at_work_on_the_plane_is_enough_to_leave_it_alone(tmp_path: Path, load: Any) -> None:
    run = FabricRun(tmp_path / "R1", small()).sweep().works("node8", load)
    assert refused(run).startswith("Hosts of the same plane are busy (node8: ")
    assert run.judged()[0].observed.startswith("Hosts of the same plane are busy")
    run.load_allowed = {"node8"}
    assert run.plan()["hosts"] == run.hosts


def test_work_on_another_plane_does_not_matter(tmp_path: Path) -> None:
    run = FabricRun(tmp_path / "R1", small()).sweep().works("node8", BUSY)
    name = run.folder.host_file("intent", "node8")
    intent = run.folder.read_json(name)
    run.folder.write_json(name, {**intent, "rails": [{**rail, "name": "store0", "plane": "storage"} for rail in intent["rails"]]})
    assert "node1" in run.plan()["hosts"]


def test_without_a_graph_there_is_nothing_to_hold_it_against(tmp_path: Path) -> None:
    assert refused(FabricRun(tmp_path / "R1", small(), graph=False).sweep()) == spines_plan.NO_GRAPH
    other = FabricRun(tmp_path / "R2", small(), graph=False)
    other.saw(leafspine(leaves=2, spines=2, hosts_per_leaf=4, seed=2))
    assert refused(other.sweep()) == spines_plan.NO_GRAPH
    blue = FabricRun(tmp_path / "R3", small(), graph=False)
    blue.saw(small(), plane="blue")
    assert refused(blue.sweep()) == spines_plan.NO_GRAPH


@pytest.mark.parametrize(
    "fabric", [leafspine(1, 0, 6), leafspine(1, 2, 6), rail(hosts=6, rails=2, spines=2)], ids=["one switch", "one leaf", "one of each rail"]
)
def test_one_leaf_has_nothing_across(tmp_path: Path, fabric: Fabric) -> None:
    assert refused(FabricRun(tmp_path / "R1", fabric).sweep()) == spines_plan.ONE_LEAF


def test_neighbors_alone_report_no_uplinks(tmp_path: Path) -> None:
    run = FabricRun(tmp_path / "R1", small(), graph=False)
    run.saw(leafspine(leaves=2, spines=0, hosts_per_leaf=4), source="lldp")
    assert refused(run.sweep()) == spines_plan.NO_UPLINKS


def test_who_is_well_is_found_out_only_where_something_crosses_spines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    well = pair_plan.ActionModule.well

    def watched(self: pair_plan.ActionModule, sweep: Evidence) -> dict[str, list[str]]:
        asked.append("well")
        return well(self, sweep)

    monkeypatch.setattr(pair_plan.ActionModule, "well", watched)
    run = FabricRun(tmp_path / "R1", small(), graph=False)
    run.saw(leafspine(leaves=2, spines=0, hosts_per_leaf=4), source="lldp")
    assert refused(run.sweep()) == spines_plan.NO_UPLINKS
    assert asked == []
    FabricRun(tmp_path / "R2", small()).sweep().plan()
    assert asked == ["well"]


def test_a_graph_that_is_not_whole_reports_nothing(tmp_path: Path) -> None:
    run = FabricRun(tmp_path / "R1", small(), graph=False)
    run.saw(small(), complete=False)
    assert refused(run.sweep()) == spines_plan.NO_RATES


@pytest.mark.parametrize(
    ("slow", "playing"),
    [((), ["node1", "node2", "node3", "node5"]), (("node2",), ["node1", "node2", "node5", "node6"])],
    ids=["plays", "well"],
)
def test_too_few_hosts(tmp_path: Path, slow: tuple[str, ...], playing: list[str]) -> None:
    run = FabricRun(tmp_path / "R1", small()).sweep(slow=slow)
    assert refused(run, playing=playing) == spines_plan.TOO_FEW


def test_soft_roce_has_no_fabric(tmp_path: Path) -> None:
    run = FabricRun(tmp_path / "R1", small())
    for host in run.hosts:
        name = run.folder.host_file("facts", host)
        facts = run.folder.read_json(name)
        facts["devices"]["mlx5_0"].update(software=True, driver="rdma_rxe")
        run.folder.write_json(name, facts)
    assert refused(run.sweep()) == spines_plan.SOFTWARE
