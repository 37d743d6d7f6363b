# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A soak from its first slice to its result: what refuses it, what it plans, where it ends, and how a later run continues it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.rdma.cluster.plugins.action import soak_plan, soak_result
from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, OK, UNKNOWN
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.files import parse_plan, unpack_plan
from ansible_collections.rdma.cluster.plugins.modules import soak_plan as plan_documented
from ansible_collections.rdma.cluster.plugins.modules import soak_result as result_documented
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.schedule import planned_meetings
from tests.unit.builders.soaks import START, SoakRun

JOB = {"gpu_processes": [], "jobs": [{"pid": 815, "name": "slurmstepd"}], "qps": [], "qps_error": None}
READER = {"device": "mlx5_0", "port": 1, "pid": 7, "name": "reader", "count": 2}


def drops(number: int, host: str, partner: str) -> Mapping[str, Any]:
    """node2 loses packets in every second slice; the counters of both ends rise."""
    if "node2" not in (host, partner) or number % 2:
        return {}
    return {"risen": {"out_of_sequence" if host == "node2" else "packet_seq_err": 50}}


@pytest.mark.parametrize(("action", "documented"), [(soak_plan, plan_documented), (soak_result, result_documented)])
def test_the_documentation_has_the_same_options(action: Any, documented: Any) -> None:
    options = yaml.safe_load(documented.DOCUMENTATION)["options"]
    arguments = action.ActionModule.ARGUMENTS
    assert {name: each["type"] for name, each in options.items()} == {name: each["type"] for name, each in arguments.items()}
    assert options["kind"]["choices"] == arguments["kind"]["choices"]


def test_check_mode_lists_the_load_and_keeps_nothing_beside_the_runs(tmp_path: Path) -> None:
    run = SoakRun(tmp_path)
    run.check_mode = True
    answer = run.begin(hours=2)
    assert "failed" not in answer or not answer["failed"]
    for words in (
        "A new soak begins. Slices that are done: 0.",
        "The soak measures for 2 h; 2 h 0 min are left, about 24 slices of 300 s. In each slice a port",
        "transfers data with one partner, both ways, for 30 s (ib_write_bw).",
        "It makes 6 pairs of 4 hosts in turn:",
        "all of them in 3 slices.",
        "node3: rail0 mlx5_0/1 at ",
    ):
        assert words in answer["explained"]
    assert not (tmp_path / "soak").exists()
    assert (answer["batches"], answer["batch"]) == (1, 30)


def test_hosts_in_use_and_unread_hosts_refuse_the_soak(tmp_path: Path) -> None:
    run = SoakRun(tmp_path, hosts=5)
    run.fabric.works("node1", JOB)
    run.fabric.works("node2", {**JOB, "jobs": [], "qps": [READER]})
    run.fabric.works("node3", JOB)
    run.fabric.load_allowed = {"node3"}
    run.playing.remove("node5")
    answer = run.begin()
    assert answer["failed"]
    assert answer["refusals"] == [
        "node5 was not read, or has failed in this run",
        "node1 is in use: job process 815 (slurmstepd)",
        "node2 is in use: 2 queue pairs of reader (pid 7) on mlx5_0/1",
    ]
    assert "nothing was measured" in answer["msg"]
    assert not (tmp_path / "soak").exists()


def test_one_host_alone_and_different_settings_are_refused(tmp_path: Path) -> None:
    assert SoakRun(tmp_path, hosts=1).begin()["refusals"] == ["no two hosts have a port that can be measured on the same rail"]
    run = SoakRun(tmp_path, 2)
    name = run.folder.host_file("intent", "node4")
    intent = run.folder.read_json(name)
    run.folder.write_json(name, {**intent, "soak": {**intent["soak"], "hours": 1}})
    assert run.begin()["refusals"] == ["node4 and node1 have different rdma_soak: set it for all hosts"]


def test_partners_rotate_and_change_roles_in_the_next_turn(tmp_path: Path) -> None:
    run = SoakRun(tmp_path)
    run.begin()
    met: list[set[tuple[str, str]]] = []
    for _slice in range(6):
        answer = run.plan()
        plan = parse_plan(unpack_plan(answer["plan"]))
        assert (sorted(answer["hosts"]), answer["queue_pairs"], plan["tests"][0]["duration_seconds"]) == (run.hosts, True, 30)
        assert plan["tests"][0]["bidirectional"]
        met.append({(plan["hosts"][server], plan["hosts"][client]) for _rail, _round, server, client in planned_meetings(plan)})
        run.measured()
        run.record()
    assert all(len(pairs) == 2 for pairs in met)
    assert len({frozenset(pair) for pairs in met[:3] for pair in pairs}) == 6
    assert [{pair[::-1] for pair in pairs} for pairs in met[:3]] == met[3:]


def test_slices_begin_at_changing_times_of_their_period(tmp_path: Path) -> None:
    run = SoakRun(tmp_path)
    run.begin()
    offsets = []
    for number in range(5):
        run.plan()
        offsets.append(round(run.clock.now - START - 300 * number))
        run.measured()
        run.record()
    assert offsets == pytest.approx([0, 133, 51, 185, 102], abs=2)


def test_the_time_ends_the_soak(tmp_path: Path) -> None:
    run = SoakRun(tmp_path, slice_seconds=60)
    run.begin(hours=0.1)
    run.slices(100, hours=0.1)
    answer = run.plan(hours=0.1)
    assert (answer["over"], answer["msg"]) == ("its 0.1 h are over", "The soak ends: its 0.1 h are over.")
    done = run.result(hours=0.1)
    assert 6 <= len([line for line in run.lines() if "lasted_seconds" in line]) <= 7
    assert "Finished: its 0.1 h are over." in done["explained"]
    assert run.folder.read_json("../soak/soak.json")["state"] == "finished"
    assert SoakRun(tmp_path, 2).begin(hours=0.1)["explained"].startswith("A new soak begins.")


def test_enough_errors_end_the_soak(tmp_path: Path) -> None:
    run = SoakRun(tmp_path, stop_at_errors=120)
    run.begin()
    run.slices(100, drops)
    assert run.plan()["over"] == "rail0 of node2 has 150 errors (rdma_soak.stop_at_errors: 120)"
    assert run.folder.read_json("../soak/soak.json")["state"] == "finished"


def test_a_job_stops_the_soak_and_the_next_run_continues_it(tmp_path: Path) -> None:
    run = SoakRun(tmp_path)
    run.begin()
    run.slices(2)
    run.plan()
    run.measured()
    run.folder.write_json("soak/slice/node3.refused.json", {"in_use": "job process 815 (slurmstepd)"})
    assert run.record()["stops"] == "node3 is in use: job process 815 (slurmstepd)"
    assert run.plan()["over"] == "node3 is in use: job process 815 (slurmstepd)"
    assert "Not finished: node3 is in use: job process 815 (slurmstepd). Run it again to continue." in run.result()["explained"]
    later = SoakRun(tmp_path, 2, clock=run.clock)
    assert later.begin()["explained"].startswith("The soak of run 20261127T120001Z-1 goes on. Slices that are done: 3.")
    assert later.plan()["over"] == ""


def test_a_soak_with_too_few_hosts_left_stops(tmp_path: Path) -> None:
    run = SoakRun(tmp_path)
    run.begin()
    run.playing = ["node1", "node2", "node4"]
    plan = parse_plan(unpack_plan(run.plan()["plan"]))
    assert len([*planned_meetings(plan)]) == 1
    run.playing = ["node1"]
    assert run.plan()["over"] == "only 1 of its hosts can be measured"
    assert run.folder.read_json("../soak/soak.json")["state"] == "stopped"


def test_a_killed_soak_goes_on_and_its_results_have_both_parts(tmp_path: Path) -> None:
    first = SoakRun(tmp_path)
    first.begin()
    first.slices(4, drops)
    answer = first.plan()
    # Killed while it appends the lines of slice 4.
    first.measured(drops)
    first.folder.append_lines("soak/slices.jsonl", ['{"number": 4, "at": 1.0, "host": "node1", "rail": "rail0", "partner": "node2", "seco'])
    first.clock.now += 7200
    later = SoakRun(tmp_path, 2, clock=first.clock)
    assert later.act(soak_plan, "earlier") == {"sweep": answer["sweep"]}
    begun = later.begin()
    assert begun["explained"].startswith("The soak of run 20261127T120001Z-1 goes on. Slices that are done: 4.")
    assert later.act(soak_plan, "earlier") == {"sweep": ""}
    later.slices(3, drops)
    assert [line["number"] for line in later.lines() if "lasted_seconds" in line] == [4, 5, 6]
    done = later.result()
    results = later.folder.read_json("soak/results.json")
    assert (results["slices"], results["soak"]["runs"]) == (7, ["20261127T120001Z-1", "20261127T120002Z-2"])
    # Two hours passed between the runs.
    assert results["seconds"] < 7 * 400
    [port] = [each for each in results["ports"] if each["host"] == "node2"]
    assert ([burst["number"] for burst in port["bursts"]], port["blamed"]) == ([0, 2, 4, 6], True)
    assert done["failed"]
    assert {each.host: each.status for each in later.findings()}["node2"] == ERROR


@pytest.mark.parametrize(
    ("hosts", "settings", "words"),
    [(3, {}, "has other hosts or another rdma_soak"), (4, {"duty_percent": 20}, "has other hosts or another")],
)
def test_another_soak_is_not_continued(tmp_path: Path, hosts: int, settings: dict[str, Any], words: str) -> None:
    first = SoakRun(tmp_path)
    first.begin()
    first.slices(2)
    later = SoakRun(tmp_path, 2, hosts=hosts, clock=first.clock, **settings)
    answer = later.begin()["explained"]
    assert answer.startswith("A new soak begins: that of run 20261127T120001Z-1 is not finished, and")
    assert words in answer


def test_an_old_soak_is_not_continued(tmp_path: Path) -> None:
    first = SoakRun(tmp_path)
    first.begin()
    first.slices(2)
    first.clock.now += 8 * 24 * 3600
    assert "older than 168 h" in SoakRun(tmp_path, 2, clock=first.clock).begin()["explained"]


def test_counters_that_were_cleared_between_slices_lose_nothing_and_in_a_slice_are_not_zero(tmp_path: Path) -> None:
    run = SoakRun(tmp_path, errors_per_billion_packets=0.5)
    run.begin()
    cleared = {"risen": {}, "uncounted": ["symbol_error"]}
    run.slices(12, lambda number, host, _partner: cleared if (host, number) == ("node1", 5) else None if host == "node4" else {})
    run.result()
    found = {each.host: each for each in run.findings()}
    assert {host: each.status for host, each in found.items()} == {"node1": OK, "node2": OK, "node3": OK, "node4": UNKNOWN}
    assert found["node1"].observed.startswith("none in 2.2e+10 packets of 11 slices: below 0.136 per 10^9")
    assert found["node4"].observed == "12 slices not counted: its counters before and after the slice cannot be compared"


def test_a_rule_of_the_intent_silences_a_finding(tmp_path: Path) -> None:
    run = SoakRun(tmp_path)
    rule = {"severity": "warning", "threshold": None, "silenced_by": None, "reason": None, "until": None}
    for host in run.hosts:
        name = run.folder.host_file("intent", host)
        run.folder.write_json(name, {**run.folder.read_json(name), "checks": {"soak.errors": rule}})
    run.begin()
    run.slices(9, drops)
    assert not run.result()["failed"]
    assert {each.host: each.status for each in run.findings()}["node2"] == "warning"


def test_the_worst_ports_are_shown_first(tmp_path: Path) -> None:
    run = SoakRun(tmp_path)
    run.begin()
    run.slices(9, drops)
    lines = run.result()["explained"].splitlines()
    assert lines[0].startswith("Soak of run 20261127T120001Z-1: 9 slices in ")
    assert (lines[1], lines[2].split(" in ")[0]) == ("Ports: 3 ok, 1 error", "error: node2 rail0: 250")


def test_without_a_beginning_there_is_no_result(tmp_path: Path) -> None:
    run = SoakRun(tmp_path)
    assert run.result() == {"failed": True, "msg": "The soak has no result: no soak has begun in this run"}
    (tmp_path / "soak").mkdir()
    (tmp_path / "soak/soak.json").write_text('{"schema": 1, "runs": ["../../etc"], "basis": "x", "at": 1}')
    assert run.begin()["msg"].startswith("soak/soak.json beside the runs is not a record of a soak")
