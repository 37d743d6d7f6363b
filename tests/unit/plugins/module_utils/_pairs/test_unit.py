# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pair runner as a transient unit: which commands run, which files are there, before and after."""

from __future__ import annotations

import base64
import gzip
import json
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.boot_service import HARDENING
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import CommandError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.host_program import host_program
from ansible_collections.rdma.cluster.plugins.module_utils._pairs import folder as pairs_folder
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.counters import Place
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.unit import (
    SANDBOX,
    Collected,
    PairUnit,
    SweepError,
    parse_list_units,
    running_sweeps,
)
from tests.unit.builders.fakes import FakeRunner

SWEEP = "20261120T120000-123"
UNIT = f"rdma-pairs-{SWEEP}.service"
PLAN: dict[str, Any] = {
    "schema": 2,
    "sweep": SWEEP,
    "hosts": ["node1", "node2", "node3"],
    "tests": [{"name": "bandwidth", "command": "ib_write_bw"}],
    "profiles": [{"device": "mlx5_0", "port": 1}],
    "rails": [{"name": "rail0", "addresses": ["192.168.0.1", "192.168.0.2", "192.168.0.3"], "profiles": [0, 0, 0]}],
}
LIST = ["systemctl", "list-units", "--all", "--full", "--plain", "--no-legend", "rdma-pairs-*.service"]
IS_ACTIVE = ["systemctl", "is-active", UNIT]
STOP = ["systemctl", "stop", UNIT]
ACTIVE, INACTIVE = (IS_ACTIVE, 0, "active\n", ""), (IS_ACTIVE, 3, "inactive\n", "")
LAST = {"schema": 2, "sweep": SWEEP, "finished": True, "reason": None}
STOPPED = {**LAST, "finished": False, "reason": "SIGTERM"}


def record(number: int, **changes: Any) -> dict[str, Any]:
    """A record of the runner: node2 did not find node1 in this round."""
    return {
        "schema": 2,
        "sweep": SWEEP,
        "rail": "rail0",
        "round": number,
        "test": "bandwidth",
        "server": "node1",
        "client": "node2",
        "role": "client",
        "argv": ["ib_write_bw"],
        "exit_code": None,
        "started": 0.0,
        "seconds": 0.0,
        "waited_seconds": 5.0,
        "stdout": "",
        "stderr": "",
        "error": {"class": "dead", "detail": "node1 at 192.168.0.1 port 18500: timed out"},
        **changes,
    }


def measured(number: int, **changes: Any) -> dict[str, Any]:
    """A record of the runner: node2 has measured with node1 in this round."""
    return record(number, **{"exit_code": 0, "error": None, **changes})


def packed(plan: dict[str, Any] | None = None) -> str:
    return base64.b64encode(gzip.compress(json.dumps(PLAN if plan is None else plan).encode(), mtime=0)).decode()


def rounds(found: Collected) -> list[int]:
    return [result[1] for result in found.results]


def listed(sweep: str = SWEEP, state: str = "active") -> str:
    return f"  rdma-pairs-{sweep}.service loaded {state} running /usr/bin/python3 /run/rdma-cluster/pairs/{sweep}/pair_runner.pyz\n"


class Host:
    """A folder in place of /run/rdma-cluster/pairs, a clock that only sleeping moves, and counters that rise with every reading."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "run" / "pairs"
        self.home = self.folder / SWEEP
        self.now = 0.0
        self.readings = 0

    def unit(self, calls: Iterable[tuple[list[str], int, str, str]]) -> tuple[PairUnit, FakeRunner]:
        runner = FakeRunner(calls)
        unit = PairUnit(SWEEP, runner, folder=self.folder, sleep=self.sleep, clock=lambda: self.now, read_counters=self.counters)
        return unit, runner

    def sleep(self, seconds: float) -> None:
        assert 0 < seconds <= 0.5
        self.now += seconds

    def counters(self, places: Sequence[Place]) -> dict[str, Any]:
        self.readings += 1
        port = {"netdev": None, "counters": {"symbol_error": 7 * self.readings}}
        devices = {place.device: {"node_guid": "a", "ports": {place.port: port}} for place in places}
        return {"boot": {"boot_id": "b", "uptime_seconds": 100.0 * self.readings}, "devices": devices, "netdevs": {}}

    def write(self, *records: dict[str, Any], tail: str = "", plan: dict[str, Any] | None = None) -> Path:
        self.home.mkdir(parents=True)
        (self.home / "plan.json").write_bytes(gzip.compress(json.dumps(PLAN if plan is None else plan).encode(), mtime=0))
        self.add(*records, tail=tail)
        return self.home

    def add(self, *records: dict[str, Any], tail: str = "") -> None:
        with (self.home / "results.jsonl").open("a", encoding="utf-8") as file:
            file.write("".join(json.dumps(each) + "\n" for each in records) + tail)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def start(unit: PairUnit, check_mode: bool = False, **changes: Any) -> bool:
    options: dict[str, Any] = {"packed": packed(), "token": "secret", "host": "node1", "python": "/usr/bin/python3"}
    return unit.start(check_mode=check_mode, **({**options, "runtime_max_seconds": 60} | changes))


def launch(folder: Path, *more: str) -> list[str]:
    home = folder / SWEEP
    return [
        *("systemd-run", f"--unit={UNIT}", "--collect"),
        *("--property=Type=exec", "--property=LimitMEMLOCK=infinity", "--property=RuntimeMaxSec=60", f"--property=ReadWritePaths={home}"),
        *(f"--property={each}" for each in (*HARDENING, *SANDBOX)),
        *("/usr/bin/python3", f"{home}/pair_runner.pyz", "--plan", f"{home}/plan.json", "--token-file", f"{home}/token"),
        *("--host", "node1", "--results", f"{home}/results.jsonl"),
        *more,
    ]


# Starting


def test_start_writes_private_files_and_starts_one_unit(host: Host) -> None:
    unit, _runner = host.unit([(LIST, 0, "", ""), (launch(host.folder), 0, "", f"Running as unit: {UNIT}\n")])
    assert start(unit) is True
    assert stat.S_IMODE(host.home.stat().st_mode) == 0o700
    assert {path.name: stat.S_IMODE(path.stat().st_mode) for path in host.home.iterdir()} == dict.fromkeys(
        ("pair_runner.pyz", "plan.json", "token", "counters.json"), 0o600
    )
    assert (host.home / "plan.json").read_bytes() == base64.b64decode(packed())
    assert (host.home / "token").read_text(encoding="utf-8") == "secret"
    assert "secret" not in " ".join(launch(host.folder))
    assert (host.home / "pair_runner.pyz").read_bytes() == host_program("_pairs.runner.main")


def test_a_running_sweep_is_adopted(host: Host) -> None:
    host.write(record(0))
    unit, _runner = host.unit([(LIST, 0, listed(), "")])
    assert start(unit) is False


@pytest.mark.parametrize("left", [{**PLAN, "tests": []}, None], ids=["another plan", "no plan"])
def test_a_sweep_that_runs_by_another_plan_is_not_adopted(host: Host, left: dict[str, Any] | None) -> None:
    home = host.write(measured(0), plan=left or {})
    if left is None:
        (home / "plan.json").unlink()
    unit, _runner = host.unit([(LIST, 0, listed(), "")])
    with pytest.raises(SweepError, match=f"sweep {SWEEP} runs on this host by another plan.*pairs_stop.*state=absent"):
        start(unit)
    assert (home / "results.jsonl").exists()


@pytest.mark.parametrize(
    "left",
    [[measured(0)], [measured(0), measured(0, rail="rail1")], [record(0), measured(0)], [measured(0), record(0)], []],
    ids=["good", "good on two rails", "good at the second attempt", "good at the first attempt", "nothing to do"],
)
def test_a_sweep_that_has_ended_well_is_not_run_again(host: Host, left: list[dict[str, Any]]) -> None:
    home = host.write(*left, LAST)
    unit, _runner = host.unit([(LIST, 0, "", "")])
    assert start(unit) is False
    assert (home / "results.jsonl").exists()


FAILED = [
    [record(0)],
    [measured(0), record(1)],
    [measured(0), record(0, test="latency")],
    [measured(0), record(0, rail="rail1")],
    [measured(0, exit_code=1)],
    [measured(0, exit_code=None)],
    [measured(0, error={"class": "timeout", "detail": "too long"})],
    [{"rail": "rail0"}],
    [measured(0, round=[])],
]


@pytest.mark.parametrize("left", FAILED, ids=["dead", "round", "test", "rail", "exit code", "no exit code", "error", "torn", "nonsense"])
@pytest.mark.parametrize("check_mode", [False, True], ids=["", "check mode"])
def test_a_sweep_that_has_ended_with_failures_goes_on(host: Host, left: list[dict[str, Any]], check_mode: bool) -> None:
    """Its partners may have been stopped, and want to measure with this host when they go on."""
    home = host.write(*left, LAST)
    before = (home / "results.jsonl").read_bytes()
    launched = [] if check_mode else [(launch(host.folder, "--resume"), 0, "", "")]
    unit, _runner = host.unit([(LIST, 0, "", ""), *launched])
    assert start(unit, check_mode=check_mode) is True
    assert (home / "results.jsonl").read_bytes() == before


def test_a_line_that_cannot_be_read_is_not_good(host: Host) -> None:
    host.write(tail="\0\0\n")
    host.add(LAST)
    unit, _runner = host.unit([(LIST, 0, "", ""), (launch(host.folder, "--resume"), 0, "", "")])
    assert start(unit) is True


@pytest.mark.parametrize("last", [[LAST], [STOPPED], []], ids=["ended well", "stopped", "killed"])
@pytest.mark.parametrize("left", [b"", b"\x1f\x8b", gzip.compress(b"{}", mtime=0), None], ids=["empty", "torn", "another", "missing"])
def test_what_is_of_another_plan_is_removed_and_begun_again(host: Host, left: bytes | None, last: list[dict[str, Any]]) -> None:
    home = host.write(measured(0), *last)
    (home / "plan.json").unlink()
    if left is not None:
        (home / "plan.json").write_bytes(left)
    unit, _runner = host.unit([(LIST, 0, "", ""), (launch(host.folder), 0, "", "")])
    assert start(unit) is True
    assert not (home / "results.jsonl").exists()
    assert (home / "plan.json").read_bytes() == base64.b64decode(packed())


def test_check_mode_keeps_what_is_of_another_plan(host: Host) -> None:
    home = host.write(measured(0), LAST, plan={})
    unit, _runner = host.unit([(LIST, 0, "", "")])
    assert start(unit, check_mode=True) is True
    assert (home / "results.jsonl").exists()


@pytest.mark.parametrize("left", [[record(0)], [record(0), STOPPED], []], ids=["killed", "stopped", "killed at once"])
def test_what_was_stopped_or_killed_goes_on_with_a_new_token(host: Host, left: list[dict[str, Any]]) -> None:
    home = host.write(*left)
    (home / "token").write_text("old")
    (home / "counters.json").write_text("the first reading")
    units = listed(state="failed") + listed("older", "inactive")
    unit, _runner = host.unit([(LIST, 0, units, ""), (launch(host.folder, "--resume"), 0, "", "")])
    assert start(unit) is True
    assert (home / "results.jsonl").read_text().count("\n") == len(left)
    assert (home / "token").read_text() == "secret"
    assert (home / "plan.json").read_bytes() == base64.b64decode(packed())
    assert ((home / "counters.json").read_text(), host.readings) == ("the first reading", 0)


def test_another_running_sweep_is_named(host: Host) -> None:
    unit, _runner = host.unit([(LIST, 0, listed("another-1"), "")])
    with pytest.raises(
        SweepError, match=r"another sweep runs on this host: another-1\. .*playbook rdma\.cluster\.pairs_stop, .*state=absent"
    ):
        start(unit)
    assert not host.home.exists()


def test_what_another_sweep_has_left_is_removed(host: Host) -> None:
    (host.folder / "another-1").mkdir(parents=True)
    (host.folder / "another-1" / "results.jsonl").write_text("")
    unit, _runner = host.unit([(LIST, 0, "", ""), (launch(host.folder), 0, "", "")])
    assert start(unit) is True
    assert [path.name for path in host.folder.iterdir()] == [SWEEP]


def test_a_unit_that_does_not_start_leaves_nothing(host: Host) -> None:
    unit, _runner = host.unit([(LIST, 0, "", ""), (launch(host.folder), 1, "", "Failed to start transient service unit\n")])
    with pytest.raises(SweepError, match=r"systemd-run .* exit code 1: Failed to start transient service unit"):
        start(unit)
    assert list(host.folder.iterdir()) == []


def test_a_unit_that_does_not_go_on_keeps_what_was_measured(host: Host) -> None:
    home = host.write(record(0))
    unit, _runner = host.unit([(LIST, 0, "", ""), (launch(host.folder, "--resume"), 1, "", "no\n")])
    with pytest.raises(SweepError, match="systemd-run"):
        start(unit)
    assert (home / "results.jsonl").exists()


def test_counters_that_cannot_be_read_do_not_keep_a_sweep_from_starting(host: Host) -> None:
    def fails(places: Sequence[Place]) -> dict[str, Any]:
        raise ParseError("/sys/class/infiniband/mlx5_0/ports/1/rate: nonsense")

    unit = PairUnit(SWEEP, FakeRunner([(LIST, 0, "", ""), (launch(host.folder), 0, "", "")]), folder=host.folder, read_counters=fails)
    assert start(unit) is True
    assert not (host.home / "counters.json").exists()


def test_check_mode_starts_nothing_and_writes_nothing(host: Host) -> None:
    unit, _runner = host.unit([(LIST, 0, "", "")])
    assert start(unit, check_mode=True) is True
    assert not host.folder.exists()


@pytest.mark.parametrize("changes", [{"host": "node9"}, {"packed": packed(PLAN | {"sweep": "x"})}])
def test_a_plan_of_something_else_is_refused(host: Host, changes: dict[str, Any]) -> None:
    unit, _runner = host.unit([])
    with pytest.raises(SweepError, match=SWEEP):
        start(unit, **changes)


@pytest.mark.parametrize("sweep", ["", "../etc", "a b", "a\n", "ü"])
def test_the_name_of_a_sweep_is_checked(sweep: str) -> None:
    with pytest.raises(SweepError, match="letters, digits and hyphens"):
        PairUnit(sweep, FakeRunner([]))


# Collecting


def test_collect_waits_for_the_last_word_and_the_end_and_removes_nothing(host: Host) -> None:
    home = host.write(record(0), LAST)
    unit, _runner = host.unit([ACTIVE, (IS_ACTIVE, 0, "deactivating\n", ""), INACTIVE])
    found = unit.collect(10, 0, check_mode=False)
    assert (found.running, found.finished, found.more, rounds(found), found.reason) == (False, True, False, [0], "")
    assert host.now == 1
    assert (home / "results.jsonl").exists()


def test_systemd_is_asked_seldom_while_the_runner_works(host: Host) -> None:
    host.write(record(0))
    unit, _runner = host.unit([ACTIVE, ACTIVE, INACTIVE])
    found = unit.collect(60, 0, check_mode=False)
    assert (host.now, found.finished) == (10, False)
    assert "ended without a last word" in found.reason


def test_collect_returns_what_there_is_when_the_time_is_over(host: Host) -> None:
    home = host.write(record(0), tail='{"schema": 2, "sw')
    unit, _runner = host.unit([ACTIVE] * 2)
    found = unit.collect(2.25, 0, check_mode=False)
    assert (found.running, found.finished, rounds(found), found.reason) == (True, False, [0], "the sweep still runs")
    assert found.counters is None
    assert host.now == 2.25
    assert home.exists()


def test_a_sweep_comes_in_pieces_each_record_once(host: Host) -> None:
    line = json.dumps(record(2))
    host.write(record(0), record(1), tail=line[:40])
    unit, _runner = host.unit([ACTIVE, ACTIVE, INACTIVE, INACTIVE])
    first = unit.collect(0, 0, check_mode=False)
    assert rounds(first) == [0, 1]
    again = unit.collect(0, first.next_byte, check_mode=False)
    assert (rounds(again), again.next_byte) == ([], first.next_byte)
    host.add(tail=line[40:] + "\n" + json.dumps(LAST) + "\n")
    last = unit.collect(0, again.next_byte, check_mode=False)
    assert (rounds(last), last.finished) == ([2], True)
    assert unit.collect(0, last.next_byte, check_mode=False).finished


def test_a_sweep_that_goes_on_is_collected_from_where_its_first_part_ended(host: Host) -> None:
    home = host.write(record(0), STOPPED)
    unit, _runner = host.unit([INACTIVE] * 3)
    first = unit.collect(0, 0, check_mode=False)
    assert (rounds(first), first.finished, first.reason) == ([0], False, "the pair runner was stopped: SIGTERM")
    host.add(record(1), LAST)  # the last word of the first part stays in the file
    superseded = unit.collect(0, first.next_byte, check_mode=False)
    assert (rounds(superseded), superseded.finished) == ([1], True)
    (home / "results.jsonl").unlink()
    host.add(record(0), record(1), LAST)  # or it was taken out
    assert rounds(unit.collect(0, first.next_byte, check_mode=False)) == [1]


def test_more_than_one_answer_takes_is_not_finished(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    host.write(record(0), record(1), LAST)
    monkeypatch.setattr(pairs_folder, "PIECE_BYTES", len(json.dumps(record(0))) + 20)
    unit, _runner = host.unit([INACTIVE] * 3)
    first = unit.collect(0, 0, check_mode=False)
    assert (first.more, first.finished, first.reason) == (True, False, "there are more records than one answer takes")
    second = unit.collect(0, first.next_byte, check_mode=False)
    last = unit.collect(0, second.next_byte, check_mode=False)
    assert [*rounds(first), *rounds(second), *rounds(last)] == [0, 1]
    assert (last.more, last.finished) == (False, True)


def test_a_line_without_end_is_passed_over(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    host.write(tail="x" * 9000 + "\n")
    host.add(record(1), LAST)
    monkeypatch.setattr(pairs_folder, "PIECE_BYTES", 8192)
    unit, _runner = host.unit([INACTIVE] * 2)
    first = unit.collect(0, 0, check_mode=False)
    assert (first.next_byte, first.unreadable, first.results) == (8192, 1, [])
    last = unit.collect(0, first.next_byte, check_mode=False)
    assert (rounds(last), last.finished, last.unreadable) == ([1], True, 1)


def test_a_file_that_is_shorter_than_it_was_is_read_from_its_beginning(host: Host) -> None:
    host.write(record(0), LAST)
    unit, _runner = host.unit([INACTIVE])
    assert rounds(unit.collect(0, 10**9, check_mode=False)) == [0]


def test_counters_that_rose_since_the_start(host: Host) -> None:
    unit, _runner = host.unit([(LIST, 0, "", ""), (launch(host.folder), 0, "", ""), ACTIVE, INACTIVE])
    start(unit)
    host.add(record(0), LAST)
    assert unit.collect(0, 0, check_mode=False).counters is None
    known = {"packets": {"sent": None, "received": None}, "counted": 1, "uncounted": []}
    assert unit.collect(0, 0, check_mode=False).counters == {
        "rail0": {"seconds": 100.0, "risen": {"symbol_error": 7}, "netdev": None, "priorities": None, "cnps": {}, **known}
    }


@pytest.mark.parametrize("content", [None, "", "{}", '{"places": [{}], "before": {}}'])
def test_counters_without_a_first_reading_are_not_known(host: Host, content: str | None) -> None:
    home = host.write(record(0), LAST)
    if content is not None:
        (home / "counters.json").write_text(content)
    unit, _runner = host.unit([INACTIVE])
    found = unit.collect(0, 0, check_mode=False)
    assert (found.counters, found.finished) == (None, True)


@pytest.mark.parametrize(("last", "reason"), [([], "journalctl --unit rdma-pairs"), ([STOPPED], "was stopped: SIGTERM")])
def test_a_runner_that_did_not_finish_says_so_and_its_files_stay(host: Host, last: list[dict[str, Any]], reason: str) -> None:
    home = host.write(record(0), *last)
    unit, _runner = host.unit([(IS_ACTIVE, 3, "failed\n", "")])
    found = unit.collect(5, 0, check_mode=False)
    assert (found.running, found.finished, rounds(found)) == (False, False, [0])
    assert reason in found.reason
    assert home.exists()


def test_a_runner_that_was_killed_before_its_first_record(host: Host) -> None:
    (host.write() / "results.jsonl").unlink()
    unit, _runner = host.unit([INACTIVE])
    found = unit.collect(5, 0, check_mode=False)
    assert (found.running, found.finished, found.results, found.next_byte) == (False, False, [], 0)


def test_a_sweep_that_is_not_there_is_an_error_except_in_check_mode(host: Host) -> None:
    unit, _runner = host.unit([INACTIVE] * 2)
    with pytest.raises(SweepError, match="never started, or is collected already"):
        unit.collect(0, 0, check_mode=False)
    assert unit.collect(60, 0, check_mode=True).results == []


def test_check_mode_does_not_wait(host: Host) -> None:
    host.write(record(0), LAST)
    unit, _runner = host.unit([ACTIVE, INACTIVE])
    assert unit.collect(60, 0, check_mode=True).running
    assert unit.collect(60, 0, check_mode=True).finished
    assert host.now == 0


def test_no_systemd_is_not_a_sweep_that_ended(host: Host) -> None:
    complaint = "System has not been booted with systemd as init system (PID 1). Can't operate.\n"
    unit, _runner = host.unit([(IS_ACTIVE, 1, "", complaint)])
    with pytest.raises(SweepError, match="has not been booted with systemd"):
        unit.collect(0, 0, check_mode=False)


# Ending


def test_stop_ends_the_runner_and_keeps_the_files(host: Host) -> None:
    home = host.write(record(0))
    unit, _runner = host.unit([ACTIVE, ACTIVE, (STOP, 0, "", ""), INACTIVE])
    assert unit.stop(check_mode=True) is True
    assert unit.stop(check_mode=False) is True
    assert unit.stop(check_mode=False) is False
    assert (home / "results.jsonl").exists()


def test_remove_stops_and_removes_once(host: Host) -> None:
    home = host.write(record(0))
    unit, _runner = host.unit([ACTIVE, ACTIVE, (STOP, 0, "", ""), INACTIVE])
    assert unit.remove(check_mode=True) is True
    assert home.exists()
    assert unit.remove(check_mode=False) is True
    assert not home.exists()
    assert unit.remove(check_mode=False) is False


def test_the_sweeps_that_run_are_reported_by_name() -> None:
    text = listed("a") + listed("b", "failed") + listed("c", "deactivating")
    assert running_sweeps(FakeRunner([(LIST, 0, text, "")])) == ["a", "c"]


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


def test_removing_what_a_finished_sweep_has_left_is_no_change(host: Host) -> None:
    home = host.write(record(0), LAST)
    unit, _runner = host.unit([INACTIVE])
    assert unit.remove(check_mode=False) is False
    assert not home.exists()
