# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A build as a unit: which commands run, what is written down, who may take it over."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError
from ansible_collections.rdma.cluster.plugins.module_utils._driver import build_unit
from ansible_collections.rdma.cluster.plugins.module_utils._driver.build_unit import BuildUnit, Job
from tests.unit.builders.fakes import Call, FakeRunner

UNIT = "rdma-ofed-install.service"
SHOW = [
    *("systemctl", "show"),
    "--property=LoadState,ActiveState,SubState,ExecMainCode,ExecMainStatus,Result,ExecMainStartTimestampMonotonic,"
    "ExecMainExitTimestampMonotonic",
    UNIT,
]


def show(states: str, code: int = 0, status: int = 0, result: str = "success") -> Call:
    load, active, sub = states.split()
    times = "ExecMainStartTimestampMonotonic=1000000\nExecMainExitTimestampMonotonic=" + ("21500000" if code else "0")
    text = (
        f"Result={result}\nExecMainCode={code}\nExecMainStatus={status}\nLoadState={load}\nActiveState={active}\nSubState={sub}\n{times}\n"
    )
    return (SHOW, 0, text, "")


ABSENT = show("not-found inactive dead")
RUNS = show("loaded active running")
GOOD = show("loaded active exited", 1, 0)
BAD = show("loaded failed failed", 1, 28, "exit-code")


def start(job: Job) -> list[str]:
    return [
        *("systemd-run", f"--unit={UNIT}", "--quiet", "--property=Type=exec", "--property=RemainAfterExit=yes"),
        *("--property=RuntimeMaxSec=3600", f"--property=WorkingDirectory={job.directory}"),
        *(f"--property=StandardOutput=append:{job.log}", f"--property=StandardError=append:{job.log}"),
        *("--setenv=LC_ALL=C", "--setenv=DEBIAN_FRONTEND=noninteractive", "--setenv=HOME=/root"),
        *("/usr/bin/env", "/x/mlnxofedinstall", "--force", "$$HOME"),
    ]


class Bench:
    """A job in a folder, on a host that plays a script; its clock is moved by sleeping only."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, *, flags: str = "a") -> None:
        self.job = Job(
            UNIT, ["/x/mlnxofedinstall", "--force", "$HOME"], {"flags": (flags,)}, folder, folder / "x", folder / "install.log", 3600
        )
        self.time = 100.0
        self.boot = "one"
        monkeypatch.setattr(build_unit, "boot_id", lambda: self.boot)

    def unit(self, *calls: Call) -> tuple[BuildUnit, FakeRunner]:
        runner = FakeRunner(calls)
        return BuildUnit(self.job, runner, sleep=self._sleep, clock=lambda: self.time, now=lambda: self.time), runner

    def _sleep(self, seconds: float) -> None:
        self.time += seconds

    def run(self) -> None:
        unit, _runner = self.unit(ABSENT, (start(self.job), 0, "", ""))
        unit.start()

    @property
    def state(self) -> dict[str, object]:
        read: dict[str, object] = json.loads((self.job.folder / "state.json").read_text())
        return read


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(tmp_path, monkeypatch)


def test_it_is_started_with_a_new_log_and_written_down(bench: Bench) -> None:
    bench.job.log.write_text("of the last time")
    bench.run()
    assert not bench.job.log.exists()
    assert Path(f"{bench.job.log}.1").read_text() == "of the last time"
    assert bench.state == {"key": {"flags": ["a"]}, "argv": list(bench.job.argv), "started": 100.0, "boot": "one", "rc": None}


def test_the_same_is_taken_over_and_another_is_distinguished_from_it(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.run()
    bench.time = 160.0
    look = bench.unit(RUNS)[0].look()
    assert (look.phase, look.seconds, look.running) == ("running", 60.0, True)
    other = Bench(bench.job.folder, monkeypatch, flags="b").unit(RUNS, ABSENT, RUNS)[0]
    look = other.look()
    assert (look.phase, look.argv, look.running) == ("other", tuple(bench.job.argv), False)
    assert other.look().phase == "none"
    with pytest.raises(ApplyError, match=r"rdma-ofed-install.service is already running: /x/mlnxofedinstall --force"):
        other.start()


def test_the_end_is_waited_for_collected_and_known_afterwards(bench: Bench) -> None:
    bench.run()
    unit, _runner = bench.unit(RUNS, RUNS, BAD, BAD, (["systemctl", "reset-failed", UNIT], 0, "", ""), ABSENT)
    look = unit.wait(30)
    assert (look.phase, look.rc, look.result, look.seconds, bench.time) == ("ended", 28, "exit-code", 20.5, 102.0)
    unit.collect(look)
    assert (bench.state["rc"], bench.state["result"]) == (28, "exit-code")
    again = unit.look()
    assert (again.phase, again.rc, again.seconds) == ("collected", 28, 20.5)
    unit.collect(again)


def test_a_good_end_leaves_a_unit_that_has_to_be_stopped(bench: Bench) -> None:
    bench.run()
    unit, _runner = bench.unit(GOOD, GOOD, (["systemctl", "stop", UNIT], 0, "", ""))
    unit.collect(unit.wait(0))
    assert bench.state["rc"] == 0


def test_waiting_ends_at_its_limit(bench: Bench) -> None:
    bench.run()
    unit, _runner = bench.unit(RUNS, RUNS, RUNS, RUNS)
    assert unit.wait(2.5).running
    assert bench.time == 102.5


def test_a_power_cut_is_known(bench: Bench) -> None:
    bench.run()
    unit, _runner = bench.unit(ABSENT, ABSENT)
    assert unit.look().phase == "lost"
    assert not unit.rebooted()
    bench.boot = "two"
    assert unit.rebooted()
    assert (unit.look().phase, unit.started()) == ("lost", 100.0)


def test_a_state_that_was_written_in_half_reports_nothing(bench: Bench) -> None:
    for half in ("", '{"key": {"fl', "[]"):
        (bench.job.folder / "state.json").write_text(half)
        unit, _runner = bench.unit(ABSENT, RUNS)
        assert unit.look().phase == "none"
        assert unit.look().phase == "other"


def test_what_ended_before_is_forgotten_at_the_next_start(bench: Bench) -> None:
    bench.run()
    unit, runner = bench.unit(BAD, (["systemctl", "reset-failed", UNIT], 0, "", ""), (start(bench.job), 0, "", ""))
    unit.start()
    assert runner.ran[1] == ("systemctl", "reset-failed", UNIT)
    assert runner.ran[2] == tuple(start(bench.job))


def test_a_start_that_fails_leaves_no_state(bench: Bench) -> None:
    unit, _runner = bench.unit(ABSENT, (start(bench.job), 1, "", "Failed to find executable"), ABSENT)
    with pytest.raises(ApplyError, match="Failed to find executable"):
        unit.start()
    assert not (bench.job.folder / "state.json").exists()
