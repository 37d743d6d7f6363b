# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two forms of a run that finds nothing to do, held against each other."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
import yaml

from tests.bench import bars, rerun_figures
from tests.bench.rerun_figures import Cost, Form
from tests.bench.watch import Watched, changes

ROOT = Path(__file__).parents[2]
RECAP = """PLAY RECAP *****
node1                      : ok=61   changed={one}    unreachable=0    failed=0    skipped=9    rescued=0    ignored=0
node2                      : ok=61   changed={two}    unreachable=0    failed=0    skipped=9    rescued=0    ignored=0
"""
EXECUTED = "<node1> EXEC /bin/sh -c python3"


def test_changes_are_those_of_all_hosts() -> None:
    assert changes(RECAP.format(one=0, two=0)) == 0
    assert changes(RECAP.format(one=2, two=11)) == 13
    with pytest.raises(ValueError, match="no recap of a run: 'cut off'"):
        changes("cut off")


@pytest.mark.parametrize(("status", "changed", "words"), [(0, 0, ""), (0, 3, "made 3 changes"), (2, 0, "exit status 2: ")])
def test_a_run_that_says_nothing_of_converged_hosts(tmp_path: Path, status: int, changed: int, words: str) -> None:
    summary = tmp_path / "summary.json"
    summary.write_text(json.dumps({"changes": changed}))
    done = Watched(status, RECAP.format(one=changed, two=0), 1.0, 1.0, 1.0)
    for answer in (rerun_figures.unfit(done, summary), rerun_figures.unfit_plain(done)):
        assert words in answer
        assert bool(answer) is bool(words)


def _form(name: str, log: Path, *, fits: bool = True) -> Form:
    program = f"print('{EXECUTED}'); open('{log}', 'a').write('{name} ')"
    return Form((sys.executable, "-c", program), lambda done: "" if fits and done.status == 0 else "it failed")


def test_forms_take_turns(tmp_path: Path) -> None:
    log = tmp_path / "turns"
    costs, reason = rerun_figures.in_turns({name: _form(name, log) for name in ("ours", "plain")}, tmp_path, turns=2)
    assert (log.read_text(), reason) == ("ours plain ours plain ", "")
    assert [len(each) for each in costs.values()] == [2, 2]
    assert {cost.executions for each in costs.values() for cost in each} == {1}
    assert all(0 < cost.seconds < 30 for each in costs.values() for cost in each)


def test_one_unfit_run_leaves_no_figures(tmp_path: Path) -> None:
    log = tmp_path / "turns"
    forms = {"ours": _form("ours", log), "plain": _form("plain", log, fits=False)}
    costs, reason = rerun_figures.in_turns(forms, tmp_path)
    assert (costs, reason, log.read_text()) == ({}, "plain: it failed", "ours plain ")
    lines = list(rerun_figures.compared(costs, 4, reason))
    assert all(line["value"] is None and line["skipped"] == "plain: it failed" for line in lines)
    assert not any(map(bars.missed, lines))


def test_medians_and_their_ratio() -> None:
    ours = [Cost(30.0, 4), Cost(20.0, 4), Cost(90.0, 8)]
    plain = [Cost(600.0, 320), Cost(500.0, 320), Cost(400.0, 316)]
    lines = {line["metric"]: line for line in rerun_figures.compared({"ours": ours, "plain": plain}, 4)}
    assert {name: line["value"] for name, line in lines.items()} == {
        "rerun_remote_executions": 1.0,
        "plain_remote_executions": 80.0,
        "rerun_wall_s": 30.0,
        "rerun_wall_s_per_host": 7.5,
        "plain_wall_s": 500.0,
        "rerun_wall_ratio": 0.06,
    }
    assert lines["rerun_wall_ratio"]["note"] == "30.0 s ÷ 500.0 s on 4 hosts"
    assert (lines["rerun_wall_ratio"]["baseline"], lines["rerun_remote_executions"]["baseline"]) == (1.0, 45.0)


@pytest.mark.parametrize(("executions", "is_missed"), [(180, False), (181, True)])
def test_at_most_45_modules_a_host(executions: int, is_missed: bool) -> None:
    costs = {"ours": [Cost(30.0, executions)], "plain": [Cost(600.0, 9999)]}
    missed = [line["metric"] for line in rerun_figures.compared(costs, 4) if bars.missed(line)]
    assert missed == ["rerun_remote_executions"] * is_missed


def test_all_stages_but_those_that_measure_are_run_again() -> None:
    imported = [
        [Path(play["import_playbook"]).name for play in yaml.safe_load((ROOT / file).read_text())]
        for file in ("playbooks/site.yml", "tests/bench/rerun_site.yml")
    ]
    assert imported[0][-2:] == ["pairs.yml", "collectives.yml"]
    assert imported[1] == imported[0][:-2]


@pytest.mark.parametrize("command", [rerun_figures.OURS, rerun_figures.PLAIN], ids=["ours", "plain"])
def test_the_programs_and_playbooks_of_the_commands_are_there(command: tuple[str, ...]) -> None:
    named = [word for word in command if re.match(r"tests/", word)]
    assert len(named) == 2
    assert all((ROOT / word).is_file() for word in named)
