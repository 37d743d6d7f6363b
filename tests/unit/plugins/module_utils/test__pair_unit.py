# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pair runner as a transient unit: which commands run, which files are there, before and after."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils import _pair_runner
from ansible_collections.rdma.cluster.plugins.module_utils._errors import CommandError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._files import own_source
from ansible_collections.rdma.cluster.plugins.module_utils._pair_unit import (
    PairUnit,
    SweepError,
    parse_list_units,
    parse_results,
)
from tests.unit.fakes import FakeRunner

SWEEP = "20261120T120000-123"
UNIT = f"rdma-pairs-{SWEEP}.service"
PLAN = {"schema": 1, "sweep": SWEEP, "hosts": ["node1", "node2"]}
LIST = ["systemctl", "list-units", "--all", "--full", "--plain", "--no-legend", "rdma-pairs-*.service"]
IS_ACTIVE = ["systemctl", "is-active", UNIT]
RECORD = {"schema": 1, "sweep": SWEEP, "rail": "rail0", "round": 0, "exit_code": 0}
LAST = {"finished": True, "reason": None}


def listed(sweep: str = SWEEP, state: str = "active") -> str:
    return f"  rdma-pairs-{sweep}.service loaded {state} running /usr/bin/python3 /run/rdma-cluster/pairs/{sweep}/runner.py\n"


class Host:
    """A folder in place of /run/rdma-cluster/pairs, and a clock that only sleeping moves."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "run" / "pairs"
        self.now = 0.0

    def unit(self, calls: Iterable[tuple[list[str], int, str, str]]) -> tuple[PairUnit, FakeRunner]:
        runner = FakeRunner(calls)
        return PairUnit(SWEEP, runner, folder=self.folder, sleep=self.sleep, clock=lambda: self.now), runner

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def write(self, *records: dict[str, Any], tail: str = "") -> Path:
        (self.folder / SWEEP).mkdir(parents=True)
        text = "".join(json.dumps(record) + "\n" for record in records) + tail
        (self.folder / SWEEP / "results.jsonl").write_text(text, encoding="utf-8")
        return self.folder / SWEEP


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def start(unit: PairUnit, check_mode: bool = False, **changes: Any) -> bool:
    options: dict[str, Any] = {"plan": PLAN, "token": "secret", "host": "node1", "python": "/usr/bin/python3", "runtime_max_seconds": 60}
    return unit.start(check_mode=check_mode, **(options | changes))


def launch(folder: Path) -> list[str]:
    home = folder / SWEEP
    return [
        *("systemd-run", f"--unit={UNIT}", "--collect"),
        *("--property=Type=exec", "--property=LimitMEMLOCK=infinity", "--property=RuntimeMaxSec=60"),
        *("/usr/bin/python3", f"{home}/runner.py", "--plan", f"{home}/plan.json", "--token-file", f"{home}/token"),
        *("--host", "node1", "--results", f"{home}/results.jsonl"),
    ]


def test_start_writes_private_files_and_starts_one_unit(host: Host) -> None:
    unit, runner = host.unit([(LIST, 0, "", ""), (launch(host.folder), 0, "", f"Running as unit: {UNIT}\n")])
    assert start(unit) is True
    runner.assert_done()
    home = host.folder / SWEEP
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert {path.name: stat.S_IMODE(path.stat().st_mode) for path in home.iterdir()} == dict.fromkeys(
        ("runner.py", "plan.json", "token"), 0o600
    )
    assert json.loads((home / "plan.json").read_text(encoding="utf-8")) == PLAN
    assert (home / "token").read_text(encoding="utf-8") == "secret"
    assert "secret" not in " ".join(launch(host.folder))
    assert (home / "runner.py").read_bytes() == Path(_pair_runner.__file__).read_bytes() == own_source(_pair_runner).encode()


def test_a_running_sweep_is_adopted(host: Host) -> None:
    unit, runner = host.unit([(LIST, 0, listed(), "")])
    assert start(unit) is False
    runner.assert_done()


def test_a_sweep_that_has_ended_is_not_run_again(host: Host) -> None:
    home = host.write(RECORD, LAST)
    unit, runner = host.unit([(LIST, 0, "", "")])
    assert start(unit) is False
    runner.assert_done()
    assert (home / "results.jsonl").exists()


def test_what_a_killed_runner_left_is_replaced(host: Host) -> None:
    home = host.write(RECORD)
    unit, runner = host.unit([(LIST, 0, listed(state="failed") + listed("older", "inactive"), ""), (launch(host.folder), 0, "", "")])
    assert start(unit) is True
    runner.assert_done()
    assert not (home / "results.jsonl").exists()


def test_another_running_sweep_is_named(host: Host) -> None:
    unit, runner = host.unit([(LIST, 0, listed("another-1"), "")])
    with pytest.raises(SweepError, match=r"another sweep runs on this host: another-1\. .*state=absent"):
        start(unit)
    runner.assert_done()
    assert not (host.folder / SWEEP).exists()


def test_a_unit_that_does_not_start_leaves_nothing(host: Host) -> None:
    unit, runner = host.unit([(LIST, 0, "", ""), (launch(host.folder), 1, "", "Failed to start transient service unit\n")])
    with pytest.raises(SweepError, match=r"systemd-run .* exit code 1: Failed to start transient service unit"):
        start(unit)
    runner.assert_done()
    assert list(host.folder.iterdir()) == []


def test_check_mode_starts_nothing_and_writes_nothing(host: Host) -> None:
    unit, runner = host.unit([(LIST, 0, "", "")])
    assert start(unit, check_mode=True) is True
    runner.assert_done()
    assert not host.folder.exists()


@pytest.mark.parametrize("changes", [{"host": "node3"}, {"plan": {}}, {"plan": PLAN | {"sweep": "x"}}])
def test_a_plan_of_something_else_is_refused(host: Host, changes: dict[str, Any]) -> None:
    unit, _runner = host.unit([])
    with pytest.raises(SweepError, match=SWEEP):
        start(unit, **changes)


@pytest.mark.parametrize("sweep", ["", "../etc", "a b", "a\n", "ü"])
def test_the_name_of_a_sweep_is_checked(sweep: str) -> None:
    with pytest.raises(SweepError, match="letters, digits and hyphens"):
        PairUnit(sweep, FakeRunner([]))


def test_collect_waits_for_the_end_and_removes_the_files(host: Host) -> None:
    home = host.write(RECORD, LAST)
    unit, runner = host.unit([(IS_ACTIVE, 0, "active\n", ""), (IS_ACTIVE, 0, "deactivating\n", ""), (IS_ACTIVE, 3, "inactive\n", "")])
    found = unit.collect(10, check_mode=False)
    assert (found.running, found.finished, found.results, found.reason) == (False, True, [RECORD], "")
    runner.assert_done()
    assert host.now == 2
    assert not home.exists()


def test_collect_returns_what_there_is_when_the_time_is_over(host: Host) -> None:
    home = host.write(RECORD, tail='{"schema": 1, "sw')
    unit, runner = host.unit([(IS_ACTIVE, 0, "active\n", "")] * 4)
    found = unit.collect(2.5, check_mode=False)
    assert (found.running, found.finished, found.results, found.reason) == (True, False, [RECORD], "the sweep still runs")
    runner.assert_done()
    assert host.now == 2.5
    assert home.exists()


@pytest.mark.parametrize(
    ("last", "reason"), [([], "journalctl --unit rdma-pairs"), ([{"finished": False, "reason": "SIGTERM"}], "was stopped: SIGTERM")]
)
def test_a_runner_that_did_not_finish_says_so_and_its_files_stay(host: Host, last: list[dict[str, Any]], reason: str) -> None:
    home = host.write(RECORD, *last)
    unit, _runner = host.unit([(IS_ACTIVE, 3, "failed\n", "")])
    found = unit.collect(5, check_mode=False)
    assert (found.running, found.finished, found.results) == (False, False, [RECORD])
    assert reason in found.reason
    assert home.exists()


def test_a_sweep_that_is_not_there_is_an_error_except_in_check_mode(host: Host) -> None:
    unit, _runner = host.unit([(IS_ACTIVE, 3, "inactive\n", "")] * 2)
    with pytest.raises(SweepError, match="never started, or is collected already"):
        unit.collect(0, check_mode=False)
    assert unit.collect(60, check_mode=True).results == []


def test_check_mode_neither_waits_nor_removes(host: Host) -> None:
    home = host.write(RECORD, LAST)
    unit, _runner = host.unit([(IS_ACTIVE, 0, "active\n", ""), (IS_ACTIVE, 3, "inactive\n", "")])
    assert unit.collect(60, check_mode=True).running
    assert unit.collect(60, check_mode=True).finished
    assert home.exists()


def test_no_systemd_is_not_a_sweep_that_ended(host: Host) -> None:
    complaint = "System has not been booted with systemd as init system (PID 1). Can't operate.\n"
    unit, _runner = host.unit([(IS_ACTIVE, 1, "", complaint)])
    with pytest.raises(SweepError, match="has not been booted with systemd"):
        unit.collect(0, check_mode=False)


def test_remove_stops_and_removes_once(host: Host) -> None:
    home = host.write(RECORD)
    calls = [
        (IS_ACTIVE, 0, "active\n", ""),
        (IS_ACTIVE, 0, "active\n", ""),
        (["systemctl", "stop", UNIT], 0, "", ""),
        (IS_ACTIVE, 3, "inactive\n", ""),
    ]
    unit, runner = host.unit(calls)
    assert unit.remove(check_mode=True) is True
    assert home.exists()
    assert unit.remove(check_mode=False) is True
    assert not home.exists()
    assert unit.remove(check_mode=False) is False
    runner.assert_done()


def test_a_command_that_cannot_run_is_passed_on(host: Host) -> None:
    class Broken:
        def run(self, argv: object, *, timeout_seconds: float = 30.0) -> Any:
            raise CommandError("command not found: systemctl")

    with pytest.raises(CommandError):
        start(PairUnit(SWEEP, Broken(), folder=host.folder))


def test_unit_lists() -> None:
    text = listed("a") + "● rdma-pairs-b.service loaded failed failed something\n* rdma-pairs-c.service not-found inactive dead x\n\n"
    assert parse_list_units(text) == {
        "rdma-pairs-a.service": "active",
        "rdma-pairs-b.service": "failed",
        "rdma-pairs-c.service": "inactive",
    }
    with pytest.raises(ParseError, match="Nonsense here"):
        parse_list_units("Nonsense here\n")


@pytest.mark.parametrize("line", ["{", "[1]", "7", '"finished"'])
def test_results_that_are_none(line: str) -> None:
    with pytest.raises(ParseError, match="not a record"):
        parse_results(line + "\n")
