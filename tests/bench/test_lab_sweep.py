# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run folder says of the time that a sweep took."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._pairs.result import Result
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.schedule import planned_meetings
from tests.bench import bars, lab_sweep, pair_figures


def write_sweep(run: Path, **changes: Any) -> Path:
    """A run of three hosts on one rail: circle method, a bye a round; changes: of the plan, or text instead of a file's."""
    folder = run / "pairs"
    folder.mkdir(parents=True)
    plan: dict[str, Any] = {
        "schema": 2,
        "sweep": run.name,
        "hosts": ["node1", "node2", "node3"],
        "tests": [{"name": "bandwidth", "command": "ib_write_bw"}],
        "schedule": {"kind": "full"},
        "profiles": [{"device": "rxe_rail0", "port": 1}],
        "rails": [{"name": "rail0", "addresses": ["127.0.0.1", "127.0.0.2", "127.0.0.3"], "profiles": [0, 0, 0]}],
    }
    files: dict[str, str] = dict.fromkeys(plan["hosts"], "")
    for (rail, number, server, client), (seconds, waited) in zip(planned_meetings(plan), TIMES, strict=True):
        files[plan["hosts"][client]] += f"[{rail},{number},{server},{client},0,0,0.05,{seconds},{waited}]\n"
    for host, worked in zip(plan["hosts"], (19.5, 15.0, 16.0), strict=True):
        (folder / f"{host}.jsonl").write_text(changes.pop(host, files[host]), encoding="utf-8")
        (folder / f"{host}.end.json").write_text(json.dumps({"finished": True, "seconds": worked, "reason": ""}), encoding="utf-8")
    (folder / "plan.json").write_text(json.dumps({**plan, **changes}), encoding="utf-8")
    return run


#: Perftest's seconds and what its client waited, in each of the three rounds.
TIMES = ((4.0, 1.0), (5.0, 7.0), (3.0, 0.5))


def test_the_overhead_of_a_sweep_of_hosts(tmp_path: Path) -> None:
    sweep = lab_sweep.read(write_sweep(tmp_path / "20261122T000000Z-1"))
    assert (sweep.rounds, sweep.perftest_seconds, sweep.at_most_seconds) == (3, 12.0, 19.5)
    assert sweep.overhead == pytest.approx(15 / 12)
    assert sweep.most_overhead == pytest.approx(19.5 / 12)


def result(place: tuple[int, int, int, int], seconds: float, waited: float, test: int = 0) -> Result:
    """place: rail, round, server and client."""
    return Result(*place, test, "client", 0.05, seconds, waited)


def test_a_round_takes_its_longest_meeting_on_any_rail() -> None:
    results = [
        result((0, 0, 0, 1), 4.0, 1.0),
        result((0, 0, 0, 1), 2.5, 0.0, test=1),
        result((1, 0, 2, 3), 6.0, 1.0),
        result((0, 1, 0, 2), 3.0, 9.0),
    ]
    assert lab_sweep.rounds_seconds(results) == {0: 6.5, 1: 3.0}


def test_what_hosts_waited_for_others_to_be_started() -> None:
    results = [
        result((0, 0, 0, 1), 4.0, 1.0),
        result((0, 0, 2, 3), 4.0, 9.0),
        result((0, 1, 0, 2), 4.0, 0.5),
        result((0, 1, 1, 3), 4.0, 20),
    ]
    assert lab_sweep.late_seconds(results) == 8.5


@pytest.mark.parametrize(
    ("results", "ends"),
    [
        ([result((0, 0, 0, 1), 4.0, 1.0), result((0, 1, 2, 1), 5.0, 2.0)], [5.0, 12.0]),
        ([result((0, 1, 1, 2), 5.0, 2.0), result((0, 0, 0, 1), 4.0, 1.0)], [5.0, 10.0]),
        ([result((0, 0, 0, 1), 4.0, 1.0), result((1, 1, 1, 2), 5.0, 2.0)], [5.0, 7.0]),
        ([result((0, 0, 0, 1), 4.0, 1.0, test=1), result((0, 0, 0, 1), 3.0, 2.0)], [5.0, 10.0]),
    ],
    ids=["by the client", "by the server, whose waiting is not known", "not from rail to rail", "test after test"],
)
def test_meetings_follow_one_another_on_a_host(results: list[Result], ends: list[float]) -> None:
    assert list(lab_sweep.chains(results)) == ends


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"schema": 1}, "its plan is of schema 1"),
        ({"schedule": {"kind": "ring"}}, "its schedule is ring, not full"),
        ({"sweep": "20261121T223000Z-17"}, "went on with sweep 20261121T223000Z-17"),
        ({"rails": []}, "its plan has no meetings"),
        ({"node1": ""}, "2 of 3 measurements are good, 0 ends failed"),
        ({"node1": '[0,0,0,2,0,1,null,0.0,80.1,"dead","node3: refused"]\n'}, "2 of 3 measurements are good, 1 ends failed"),
        ({"node1": "[0,0,"}, "ParseError not a result of a pair"),
        ({"tests": None}, "TypeError"),
    ],
)
def test_a_run_that_does_not_say_what_a_sweep_takes(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    run = write_sweep(tmp_path / "20261122T000000Z-1", **changes)
    with pytest.raises(lab_sweep.UnfitError, match=words):
        lab_sweep.read(run)


def test_without_a_last_word_a_sweeps_wall_is_not_known(tmp_path: Path) -> None:
    run = write_sweep(tmp_path / "20261122T000000Z-1")
    (run / "pairs/node2.end.json").write_text("{}", encoding="utf-8")
    with pytest.raises(lab_sweep.UnfitError, match="KeyError 'seconds'"):
        lab_sweep.read(run)


def test_the_newest_fit_run_counts(tmp_path: Path) -> None:
    assert lab_sweep.newest(tmp_path) == (None, "no run has a full sweep in which all went well; none has measured pairs")
    write_sweep(tmp_path / "20261122T000002Z-9", schedule={"kind": "ring"})
    (tmp_path / "latest").symlink_to("20261122T000002Z-9")
    found, reason = lab_sweep.newest(tmp_path)
    assert (found, reason.partition("; ")[2]) == (None, "20261122T000002Z-9: its schedule is ring, not full")
    line = pair_figures.lab(tmp_path)
    assert (line["value"], line["skipped"]) == (None, reason)
    for run in ("20261122T000000Z-7", "20261122T000001Z-8"):
        write_sweep(tmp_path / run)
    found, reason = lab_sweep.newest(tmp_path)
    assert (found.run if found else None, reason) == ("20261122T000001Z-8", "")
    line = pair_figures.lab(tmp_path)
    assert (line["value"], bars.missed(line)) == (1.25, False)
    assert line["note"].startswith("run 20261122T000001Z-8: 3 rounds, perftest 12.0 s; from the first host's start on 1.625 times")


def test_a_servers_failure_beside_a_clients_good_result_counts(tmp_path: Path) -> None:
    run = write_sweep(tmp_path / "20261122T000000Z-1")
    with (run / "pairs/node1.jsonl").open("a", encoding="utf-8") as stream:
        stream.write('[0,0,0,2,0,1,null,60.1,0.1,"timeout","perftest did not end within 60 seconds"]\n')
    with pytest.raises(lab_sweep.UnfitError, match="3 of 3 measurements are good, 1 ends failed"):
        lab_sweep.read(run)
