# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is pure in the benchmark, and that it counts what it says it counts."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.digest import comparable
from ansible_collections.rdma.cluster.plugins.plugin_utils._gate.fleet_checks import FLEET_CHECKS
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.read import normalize
from tests.bench import bars, fabric_parse, fabric_plan, figures, fleet, nccl_log, pair_figures, watch
from tests.bench.localization import Compared
from tests.bench.runners import Measured
from tests.simulator.score import Score
from tests.unit.builders.known import known_of
from tests.unit.builders.nccl_texts import Job

LOG = """<127.0.0.1> SSH: EXEC ssh -o ControlMaster=auto 127.0.0.1 '/bin/sh -c /usr/bin/python3'
<node1> EXEC /bin/sh -c '/usr/bin/python3 && sleep 0'
<node1> ESTABLISH LOCAL CONNECTION FOR USER: root
  "msg": "<node1> EXEC is no execution within a line"
"""


def test_lines_of_executions_are_counted() -> None:
    assert watch.executions(LOG) == 2


@pytest.mark.parametrize("modules", [1, 3])
def test_a_play_of_known_count(tmp_path: Path, modules: int) -> None:
    hosts = {name: {"ansible_connection": "local", "ansible_python_interpreter": sys.executable} for name in ("node1", "node2")}
    (tmp_path / "hosts.yml").write_text(json.dumps({"all": {"hosts": hosts}}))
    tasks = [*({"ansible.builtin.ping": {}} for number in range(modules)), {"ansible.builtin.debug": {"msg": "no execution"}}]
    (tmp_path / "play.yml").write_text(json.dumps([{"hosts": "all", "gather_facts": False, "tasks": tasks}]))
    playbook = str(Path(sys.executable).parent / "ansible-playbook")
    done = watch.watch(["env", "ANSIBLE_PIPELINING=1", playbook, "-vvv", "-i", "hosts.yml", "play.yml"], tmp_path, tmp_path / "log")
    assert (done.status, watch.executions(done.output), watch.changes(done.output)) == (0, 2 * modules, 0), done.output
    assert done.main_mib > 20 < done.worker_mib


def test_a_fleet_is_of_real_size_and_passes_the_gate() -> None:
    hosts = {fleet.name(number): fleet.facts(number) for number in (1, 2, 1000)}
    assert all(len(json.dumps(tree, indent=1)) >= 60_000 for tree in hosts.values())
    known = {
        host: {"intent": normalize({"rdma_rails": fleet.rails(number)}), "facts": comparable(hosts[host])}
        for number, host in zip((1, 2, 1000), hosts, strict=True)
    }
    findings = [finding for found in FLEET_CHECKS["preflight"](known_of(known)).values() for finding in found]
    assert {finding.status for finding in findings} == {"ok"}, findings


@pytest.mark.parametrize(
    ("metric", "value", "is_missed"),
    [
        ("gate_fleet_s_1000", 9.99, False),
        ("gate_fleet_s_1000", 10.0, False),
        ("gate_fleet_s_1000", 10.0001, True),
        ("gate_fleet_s_1000", None, True),
        ("localization_recall", 0.98, False),
        ("localization_recall", 1.0, False),
        ("localization_recall", 0.97999, True),
        ("localization_recall", 0.0, True),
        ("localization_recall", None, True),
    ],
)
def test_a_bar(metric: str, value: float | None, is_missed: bool) -> None:
    line = bars.figure(metric, value, ["make", "bench"])
    assert bars.missed(line) is is_missed
    assert ("MISSED" in bars.table([line])) is is_missed
    assert not bars.missed(bars.figure("rerun_wall_s_per_host", value, ["x"]))


def test_what_is_skipped_for_a_reason_is_no_miss_and_is_shown() -> None:
    line = bars.figure("pairs_overhead_lab", None, ["x"], "there is no lab")
    assert not bars.missed(line)
    assert bars.table([line]).endswith("skipped: there is no lab")
    assert bars.missed(bars.figure("pairs_overhead_lab", 1.26, ["x"], "a value is there all the same"))


def test_a_table_shows_which_way_a_bar_holds_and_what_belongs_to_a_figure() -> None:
    lines = [bars.figure("localization_recall", 0.9, ["x"], note="others 0.95"), bars.figure("result_bytes", 33.0, ["x"])]
    answer = [" ".join(row.split()) for row in bars.table(lines).splitlines()[1:]]
    assert answer == ["localization_recall 0.9 share ≥ 0.98 MISSED; others 0.95", "result_bytes 33 bytes ≤ 120"]
    assert [line["baseline"] for line in lines] == [0.98, 120.0]


ISSUE_BARS = {
    "pairs_overhead_64": "≤ 1.1",
    "pairs_overhead_64_dead_host": "≤ 1.1",
    "pairs_overhead_lab": "≤ 1.25",
    "localization_precision": "≥ 0.98",
    "localization_recall": "≥ 0.98",
    "verdict_seconds_1024x8": "≤ 60",
    "verdict_peak_mib_1024x8": "≤ 2048",
    "result_bytes": "≤ 120",
    "schedule_ms_4096x8": "≤ 20",
}


def test_the_bars_of_pairs_are_those_that_were_promised() -> None:
    assert {name: str(bars.TABLE[name][1]) for name in ISSUE_BARS} == ISSUE_BARS


@pytest.mark.parametrize(
    ("words", "groups"),
    [
        ([], ["facts", "gate", "controller", "rerun", "pairs", "hostile", "verdicts", "fabric", "plan", "nccl"]),
        (["pairs"], ["pairs"]),
        (["verdicts", "gate", "gate"], ["gate", "verdicts"]),
    ],
    ids=["all", "one", "in their order"],
)
def test_groups_are_asked_for_by_name(words: list[str], groups: list[str]) -> None:
    assert figures.asked(words) == groups


def test_a_group_that_is_not_there_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        figures.asked(["pairs", "pear"])
    assert caught.value.code == 2
    assert "no group pear; there are facts, " in capsys.readouterr().err


def test_a_group_leaves_the_lines_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = tmp_path / "artifacts/bench.jsonl"
    monkeypatch.setattr(figures, "OUTPUT", output)
    values = {"rerun": ("rerun_wall_s_per_host", 7.0), "pairs": ("pairs_overhead_64", 1.2)}
    groups = {name: lambda _folder, name=name: iter([bars.figure(*values[name], ["x"])]) for name in values}
    monkeypatch.setattr(figures, "GROUPS", groups)
    assert figures.main([]) == 1
    values["pairs"] = ("pairs_overhead_64", 1.1)
    assert figures.main(["pairs"]) == 0
    lines = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    assert [(line["metric"], line["value"]) for line in lines] == list(values.values())
    assert figures.main(["rerun"]) == 0
    assert len(output.read_text(encoding="utf-8").splitlines()) == 2


@pytest.mark.parametrize(
    ("failed", "records", "out", "fits"),
    [
        ({}, 12, 0, True),
        ({}, 11, 0, False),
        ({"timeout": 1}, 12, 0, False),
        ({"dead": 4}, 8, 2, True),
        ({"dead": 4, "exit code": 2}, 8, 2, True),
        ({"dead": 4}, 5, 2, False),
        ({"dead": 4, "plan": 1}, 8, 2, False),
        ({"dead": 11}, 13, 2, False),
    ],
)
def test_a_sweep_that_measured_something_else_gives_no_figure(failed: dict[str, int], records: int, out: int, fits: bool) -> None:
    measured = Measured(10.0, 3, records, failed, 0.0)
    if fits:
        pair_figures.check_sweep(measured, 4, out)
    else:
        with pytest.raises(RuntimeError, match="measurements are good, of"):
            pair_figures.check_sweep(measured, 4, out)


def test_sweeps_of_a_few_runners(tmp_path: Path) -> None:
    whole, broken, faster = pair_figures.sweeps(tmp_path, hosts=4, one_by_one=1, dead=1, killed=2, start_deadline_seconds=3)
    assert 1.0 < whole["value"] < 2.5
    assert "3 rounds" in whole["note"]
    assert 0.3 < broken["value"] < 2.5
    assert "dead" in broken["note"]
    assert 0.5 < faster["value"] < 2.5
    assert faster["baseline"] == 1.0


def test_localization_is_that_of_the_part_where_it_is_worst() -> None:
    parts = {
        "developed": Compared(Score(98, 100, 99), Score(1, 100, 99)),
        "other": Compared(Score(99, 100, 110), Score(2, 100, 10)),
    }
    precision, recall = pair_figures.localization(parts)
    assert (precision["value"], precision["baseline"], bars.missed(precision)) == (0.98, 0.01, False)
    assert precision["note"] == "developed 0.98, other 0.99; threshold 0.01"
    assert (recall["value"], recall["baseline"], bars.missed(recall)) == (0.9, 0.2, True)
    assert recall["note"] == "developed 0.9899, other 0.9; threshold 0.2"


JUDGED = {"seconds": 61.0, "read_seconds": 20.0, "cpu_seconds": 50.0, "mib": 900.0, "results": 4_190_208, "bytes_per_result": 34.2}
NAMED = [["nic", 5, 401, True], ["host", None, 17, False], ["nic", 3, 400, False]]


def test_a_large_fleet() -> None:
    lines = list(pair_figures.large_fleet({**JUDGED, "verdicts": NAMED}, 1024, 8))
    assert [(line["metric"], line["value"], bars.missed(line)) for line in lines] == [
        ("verdict_seconds_1024x8", 61.0, True),
        ("verdict_peak_mib_1024x8", 900.0, False),
        ("result_bytes", 34.2, False),
    ]


@pytest.mark.parametrize("wrong", [{"verdicts": NAMED[1:]}, {"results": 4_190_207}], ids=["a verdict short", "a result short"])
def test_a_large_fleet_that_was_not_judged_rightly_gives_no_figure(wrong: dict[str, Any]) -> None:
    with pytest.raises(RuntimeError, match="something else was judged"):
        list(pair_figures.large_fleet({**JUDGED, "verdicts": NAMED, **wrong}, 1024, 8))


def test_a_fabric_is_read_whole_and_within_its_bars(tmp_path: Path) -> None:
    seconds, peak = fabric_parse.parse(tmp_path)
    assert (seconds["metric"], seconds["baseline"], peak["metric"], peak["baseline"]) == (
        "fabric_parse_s_2048",
        0.3,
        "fabric_peak_mib_2048",
        300,
    )
    assert not bars.missed(peak)
    assert seconds["value"] > 0


def test_a_large_fabric_is_planned_within_its_bars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fabric_plan, "SIZES", {"4096x8": (512, 1)})
    monkeypatch.setattr(fabric_plan, "CABLES", 1024)
    seconds, peak, files = fabric_plan.plans(tmp_path)
    assert (seconds["metric"], seconds["baseline"]) == ("plan_s_4096x8", 10.0)
    assert (peak["metric"], peak["baseline"]) == ("plan_peak_mib_4096x8", 1024)
    assert files["metric"] == "plan_files_s_512x8"
    assert not bars.missed(files)
    assert not bars.missed(seconds)
    assert not bars.missed(peak)


def test_another_fabric_than_the_one_to_plan_gives_no_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fabric_plan, "SIZES", {"4096x8": (16, 1)})
    with pytest.raises(RuntimeError, match="Something else was planned"):
        list(fabric_plan.plans(tmp_path))


def test_a_log_of_nccl_is_read_whole_and_within_its_bars(tmp_path: Path) -> None:
    seconds, peak = nccl_log.read(tmp_path, Job(hosts=4, gpus=8), 4000)
    assert (seconds["metric"], seconds["baseline"], peak["metric"], peak["baseline"]) == (
        "nccl_log_parse_s",
        10.0,
        "nccl_log_peak_mib",
        500.0,
    )
    assert not bars.missed(peak)
    assert not list(tmp_path.iterdir())


def test_a_log_of_nccl_that_is_too_short_gives_no_figure(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="not read whole"):
        list(nccl_log.read(tmp_path, Job(hosts=2, gpus=1), 4000))


def test_a_fabric_that_was_not_read_whole_gives_no_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fabric_parse, "LINKS", 4097)
    with pytest.raises(RuntimeError, match="not read whole"):
        list(fabric_parse.parse(tmp_path))
