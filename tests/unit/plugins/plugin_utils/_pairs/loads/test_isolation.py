# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ports of different partitions must not reach each other: what is tried, and what the gate of the pairs stage says of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._pairs.files import parse_plan, unpack_plan
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.perftest import perftest_argv
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.schedule import own_meetings
from tests.unit.builders.fabric_runs import BUSY, FabricRun
from tests.unit.builders.fabrics import leafspine

#: Full member of the default partition; limited there, and full of a tenant's; the same with the table in another order.
FULL, RED, BLUE, BLUE_LATE = (0xFFFF,), (0x7FFF, 0x8001), (0x7FFF, 0x8002), (0x7FFF, 0x0009, 0x8002)
TENANTS = {"node1": RED, "node2": RED, "node3": BLUE, "node4": BLUE_LATE}
SHARED = "rail0 in partition 0xffff"


def two_tenants(path: Path, **changed: tuple[int, ...]) -> FabricRun:
    return FabricRun(path / "R1", leafspine(1, 1, 4), tables={**TENANTS, **changed}).sweep()


def attempts(run: FabricRun) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = run.folder.read_json("pairs/isolation.json")["attempts"]
    return found


def test_the_sweep_stays_within_partitions(tmp_path: Path) -> None:
    run = two_tenants(tmp_path)
    plan = run.folder.read_json("pairs/plan.json")
    met = {plan["hosts"][host]: {plan["hosts"][other] for other, _serves in own_meetings(plan, host)[0].values()} for host in range(4)}
    assert met == {"node1": {"node2"}, "node2": {"node1"}, "node3": {"node4"}, "node4": {"node3"}}
    profiles = [plan["profiles"][number] for number in plan["rails"][0]["profiles"]]
    options = [[each for each in perftest_argv(plan["tests"][0], of, 1, None) if each.startswith("--pkey")] for of in profiles]
    assert options == [["--pkey_index=1"], ["--pkey_index=1"], ["--pkey_index=1"], ["--pkey_index=2"]]


def test_a_host_of_each_partition_tries_the_other_with_both_keys(tmp_path: Path) -> None:
    run = two_tenants(tmp_path)
    answer = run.part()
    assert (answer["hosts"], answer["outside"], answer["msg"]) == (["node1", "node3"], [], "2 attempts that must fail.")
    assert attempts(run) == [
        {"rail": "rail0", "server": "node1", "client": "node3", "indexes": [1, 1], "key": None},
        {"rail": "rail0", "server": "node1", "client": "node3", "indexes": [0, 0], "key": 0x7FFF},
    ]
    plan = parse_plan(unpack_plan(answer["plan"]))
    assert plan == run.folder.read_json("pairs/isolation/plan.json")
    assert [rail["name"] for rail in plan["rails"]] == ["rail0", SHARED]
    assert plan["schedule"] == {"kind": "meetings", "rails": [[[[0, 1]]], [[[0, 1]]]]}
    indexes = [[plan["profiles"][number]["pkey_index"] for number in rail["profiles"]] for rail in plan["rails"]]
    assert indexes == [[1, 1], [0, 0]]
    (test,) = plan["tests"]
    assert (test["iterations"], test["queue_pairs"], test["bidirectional"]) == (1000, 1, False)


def test_that_nobody_answers_is_well(tmp_path: Path) -> None:
    run = two_tenants(tmp_path)
    run.part()
    (found,) = run.tried().judged("pair.isolation")
    assert (found.stage, found.host, found.subject, found.status) == ("pairs", "plane default", "rail0", "ok")
    assert (found.observed, found.remedy) == ("2 attempts between 2 hosts, none answered", "")


@pytest.mark.parametrize(
    ("column", "words"),
    [("rail0", "each with its own key"), (SHARED, "in partition 0xffff, as limited members")],
    ids=["own keys", "default partition"],
)
def test_a_host_that_gets_through_is_named(tmp_path: Path, column: str, words: str) -> None:
    run = two_tenants(tmp_path)
    run.part()
    (found,) = run.tried(through=[(column, "node1")]).judged("pair.isolation")
    assert (found.status, found.observed) == ("error", f"1 of 2 attempts got through: node1 and node3 at 390 Gb/s ({words})")
    assert "smpquery pkeys" in found.remedy


@pytest.mark.parametrize("command", ["ib_write_bw", "ib_read_bw", "ib_send_bw"])
def test_it_is_so_with_every_command(tmp_path: Path, command: str) -> None:
    run = FabricRun(tmp_path / "R1", leafspine(1, 1, 4), tables=TENANTS, command=command).sweep()
    run.part()
    (found,) = run.tried(through=[("rail0", "node1")]).judged("pair.isolation")
    assert found.observed == "1 of 2 attempts got through: node1 and node3 at 390 Gb/s (each with its own key)"


def test_another_failure_says_nothing_of_partitions(tmp_path: Path) -> None:
    run = two_tenants(tmp_path)
    run.part()
    (found,) = run.tried(kind="listen").judged("pair.isolation")
    observed = "2 of 2 attempts are inconclusive, for example node1 and node3: listen Failed status 12"
    assert (found.status, found.observed) == ("unknown", observed)


def test_what_left_no_record_says_nothing_of_partitions(tmp_path: Path) -> None:
    run = two_tenants(tmp_path)
    run.part()
    (found,) = run.tried(lost=[("rail0", "node1")]).judged("pair.isolation")
    assert (found.status, found.observed) == ("unknown", "1 of 2 attempts are inconclusive, for example node1 and node3: left no record")


def test_a_plan_that_nobody_has_measured_is_unknown(tmp_path: Path) -> None:
    run = two_tenants(tmp_path)
    run.part()
    assert [each.status for each in run.judged("pair.isolation")] == ["unknown"]


def test_a_partition_without_a_host_that_is_well_is_unknown(tmp_path: Path) -> None:
    run = two_tenants(tmp_path)
    answer = run.part(playing=["node1", "node2"])
    assert (answer["hosts"], answer["msg"]) == ([], "No rail has two partitions with a healthy host each.")
    (found,) = run.judged("pair.isolation")
    assert (found.status, found.observed) == ("unknown", "no host is known to be healthy in partition 0x8002")


def test_a_host_alone_in_its_partition_is_tried_all_the_same(tmp_path: Path) -> None:
    run = FabricRun(tmp_path / "R1", leafspine(1, 1, 3), tables=TENANTS).sweep(schedule={"kind": "meetings", "rails": [[[[0, 1]]]]})
    plan = run.folder.read_json("pairs/plan.json")
    plan["rails"][0]["addresses"][2] = plan["rails"][0]["profiles"][2] = None
    run.folder.write_json("pairs/plan.json", plan)
    assert run.part()["hosts"] == ["node1", "node3"]
    assert [each.status for each in run.tried().judged("pair.isolation")] == ["ok"]


def test_a_limited_member_of_both_is_not_tried_where_the_other_is_full(tmp_path: Path) -> None:
    """They may talk there: the partition is shared."""
    run = two_tenants(tmp_path, node1=(0x7FFF, 0x8001, 0x0002), node2=(0x7FFF, 0x8001, 0x0002))
    run.part()
    assert [(each["key"], each["indexes"]) for each in attempts(run)] == [(None, [1, 1]), (0x7FFF, [0, 0])]


@pytest.mark.parametrize("tables", [{}, dict.fromkeys(TENANTS, FULL), dict.fromkeys(TENANTS, RED)], ids=["none", "default", "one tenant"])
def test_one_partition_is_not_tried(tmp_path: Path, tables: dict[str, tuple[int, ...]]) -> None:
    run = FabricRun(tmp_path / "R1", leafspine(1, 1, 4), tables=tables).sweep()
    assert run.part() == {"hosts": [], "outside": [], "msg": "All ports are in one partition."}
    assert run.judged("pair.isolation") == []


def test_nothing_is_tried_where_nothing_was_measured(tmp_path: Path) -> None:
    run = FabricRun(tmp_path / "R1", leafspine(1, 1, 4), tables=TENANTS)
    assert run.part()["msg"] == "Nothing was measured."
    swept = FabricRun(tmp_path / "R2", leafspine(1, 1, 4), tables=TENANTS).sweep(finished=False)
    assert swept.part()["msg"] == "The sweep was stopped; the next run resumes it."
    assert swept.judged("pair.isolation") == []


def test_nothing_is_tried_while_a_host_of_the_plane_is_at_work(tmp_path: Path) -> None:
    swept = FabricRun(tmp_path / "R1", leafspine(1, 1, 4), tables=TENANTS).sweep().works("node4", BUSY)
    answer = swept.part()
    assert (answer["hosts"], (swept.folder.path / "pairs/isolation").exists()) == ([], False)
    (finding,) = swept.judged("pair.isolation")
    assert finding.status == "not_applicable"
    assert finding.observed.startswith("not measured: Hosts of the same plane are busy (node4: job process 815 (slurmstepd))")
    swept.load_allowed = {"node4"}
    assert swept.part()["hosts"]
    assert (swept.folder.path / "pairs/isolation").exists()


def test_of_many_partitions_each_tries_two_others(tmp_path: Path) -> None:
    tables = {f"node{number}": (0x7FFF, 0x8000 + (number + 1) // 2) for number in range(1, 19)}
    run = FabricRun(tmp_path / "R1", leafspine(1, 1, 18), tables=tables).sweep()
    run.part()
    own = [(each["server"], each["client"]) for each in attempts(run) if each["key"] is None]
    assert len(own) == 9
    assert {host for pair in own for host in pair} >= {f"node{number}" for number in (1, 18)}


def test_partitions_that_cannot_be_measured_are_reported_at_the_port(tmp_path: Path) -> None:
    run = two_tenants(tmp_path, node4=(0x7FFF, 0x0002))
    found = {(each.host, each.status): each for each in run.judged("pair.bandwidth")}
    assert found["node4", "unknown"].observed == (
        "its port is a full member of no partition (its table has 0x7fff, 0x0002), and limited members cannot reach each other"
    )
    assert found["node4", "unknown"].remedy == "Make node4 a full member of a partition in rdma_partitions, then run the link stage."


def test_a_host_alone_in_its_partition_has_nobody_to_meet(tmp_path: Path) -> None:
    run = FabricRun(tmp_path / "R1", leafspine(1, 1, 4), tables={**TENANTS, "node3": RED})
    (found,) = [each for each in run.judged("pair.bandwidth") if each.host == "node4"]
    assert (found.status, found.observed) == ("not_applicable", "no other host on this rail is in its partition 0x8002")
