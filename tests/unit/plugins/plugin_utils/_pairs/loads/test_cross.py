# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Pairs across rails: what a run plans, and what the gate of the pairs stage finds in the results."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._pairs.files import parse_plan, unpack_plan
from tests.unit.builders.fabric_runs import GBPS, FabricRun
from tests.unit.builders.fabrics import rail

#: (sending rail, receiving rail, leaf of the sender, leaf of the receiver) → the share of the rate, None if the pair fails.
Ways = Callable[[str, str, str, str], float | None]


def fabric_run(path: Path, **pairs: Any) -> FabricRun:
    """Eight hosts with four rails of one InfiniBand plane, in two pods of four."""
    return FabricRun(path / "R1", rail(8, 4, per_leaf=4), **{"schedule": "full+cross", **pairs}).sweep()


def well(_sends: str, _receives: str, _one: str, _other: str) -> float | None:
    return 1.0


def stored(run: FabricRun) -> dict[str, Any]:
    found: dict[str, Any] = run.folder.read_json("pairs/cross.json")["default"]
    return found


def judged(run: FabricRun, ways: Ways = well) -> list[tuple[str, str, str]]:
    """Subject, status and what was seen of each finding, after the plan was measured."""
    run.cross_measured(lambda one, other: ways(one[0], other[0], one[1], other[1]))
    findings = run.judged("pair.cross")
    assert {finding.host for finding in findings} == {"plane default"}
    assert all(finding.remedy.startswith("1. ") for finding in findings if finding.status == "error")
    return [(finding.subject, finding.status, finding.observed) for finding in findings]


def test_only_the_requested_schedule_has_them(tmp_path: Path) -> None:
    run = fabric_run(tmp_path, schedule="full")
    assert run.across() == {"hosts": [], "outside": [], "msg": "rdma_pairs.schedule is not full+cross."}
    assert run.folder.read_if_there("pairs/cross.json") is None
    assert run.judged("pair.cross") == []


def test_the_plan_covers_each_rail_and_leaf(tmp_path: Path) -> None:
    run = fabric_run(tmp_path)
    answer = run.across()
    plan = parse_plan(unpack_plan(answer["plan"]))
    assert answer["hosts"] == run.hosts
    assert [each["name"] for each in plan["rails"]] == [f"default cross {number}" for number in range(4)]
    assert (stored(run)["uncovered"], stored(run)["left_out"], stored(run)["why"]) == ([], {}, "")
    columns = stored(run)["columns"]
    sent = {
        (columns[column["name"]][plan["hosts"][client]][0], columns[column["name"]][plan["hosts"][server]][0])
        for column, rounds in zip(plan["rails"], plan["schedule"]["rails"], strict=True)
        for turn in rounds
        for server, client in turn
    }
    assert sent == {(f"rail{one}", f"rail{other}") for one in range(4) for other in range(4) if one != other}
    # Each port is in one column, with its own device.
    for column in plan["rails"]:
        devices = [plan["profiles"][number]["device"] for number in column["profiles"]]
        assert devices == [f"mlx5_{columns[column['name']][host][0][-1]}" for host in plan["hosts"]]
    (test,) = plan["tests"]
    assert (test["name"], test["bidirectional"]) == ("bandwidth", False)


def test_ports_with_a_verdict_do_not_take_part(tmp_path: Path) -> None:
    run = FabricRun(tmp_path / "R1", rail(8, 4, per_leaf=4), schedule="full+cross").sweep(slow=["node3"])
    assert "node3" not in {host for of in stored_after(run)["columns"].values() for host in of}


def stored_after(run: FabricRun) -> dict[str, Any]:
    run.across()
    return stored(run)


def test_a_healthy_fabric_is_well(tmp_path: Path) -> None:
    run = fabric_run(tmp_path)
    run.across()
    [(subject, status, observed)] = judged(run)
    assert (subject, status) == ("rails of plane default", "ok")
    assert observed.endswith("pairs across rails are well")


@pytest.mark.parametrize("share", [0.3, None], ids=["slow", "failed"])
def test_a_bad_path_between_leaves_is_named(tmp_path: Path, share: float | None) -> None:
    run = fabric_run(tmp_path)
    run.across()
    found = judged(run, lambda _a, _b, one, other: share if (one, other) == ("leaf1", "leaf6") else 1.0)
    assert {status for _subject, status, _observed in found} == {"error"}
    assert all("leaf1" in subject + observed and "leaf6" in subject + observed for subject, _status, observed in found)
    assert all("the ports are healthy on their own rails" in observed for _subject, _status, observed in found)


def test_a_bad_way_between_rails_is_named(tmp_path: Path) -> None:
    run = fabric_run(tmp_path)
    run.across()
    [(subject, status, observed)] = judged(
        run, lambda sends, receives, _one, _other: 0.5 if (sends, receives) == ("rail0", "rail2") else 1.0
    )
    assert (subject, status) == ("paths from rail0 to rail2", "error")
    assert "median 50% of what their ports reach" in observed


def test_it_ends_no_proof_of_a_port(tmp_path: Path) -> None:
    run = fabric_run(tmp_path)
    run.across()
    run.cross_measured(lambda _one, _other: 0.1)
    assert [finding.status for finding in run.judged("pair.cross")] == ["error"]
    assert {finding.status for finding in run.judged("pair.bandwidth")} == {"ok"}


def test_without_results_it_is_unknown(tmp_path: Path) -> None:
    run = fabric_run(tmp_path)
    run.across()
    [finding] = run.judged("pair.cross")
    assert (finding.status, finding.observed.startswith("none of ")) == ("unknown", True)


def test_separate_planes_are_left_out_with_the_reason(tmp_path: Path) -> None:
    run = fabric_run(tmp_path)
    for host in run.hosts:
        name = run.folder.host_file("intent", host)
        intent = run.folder.read_json(name)
        for each in intent["rails"]:
            each["plane"] = each["name"]
        run.folder.write_json(name, intent)
    assert run.across()["hosts"] == []
    assert {each["why"] for each in run.folder.read_json("pairs/cross.json").values()} == {"the plane has one rail"}
    assert {finding.status for finding in run.judged("pair.cross")} == {"not_applicable"}


def test_the_gbps_of_the_sweep_are_the_measure(tmp_path: Path) -> None:
    assert GBPS > 0
    run = fabric_run(tmp_path)
    run.across()
    [(_subject, status, observed)] = judged(run, lambda _a, _b, _one, _other: 0.79)
    assert (status, "median 79%" in observed) == ("error", True)
