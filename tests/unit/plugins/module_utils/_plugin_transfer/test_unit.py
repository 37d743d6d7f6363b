# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The transfer program as a transient unit: which commands run, which files are there, before and after."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._plugin_transfer import unit as transfer_unit
from ansible_collections.rdma.cluster.plugins.module_utils._plugin_transfer.plan import (
    SENDS,
    HostPlan,
    Meeting,
    TransferPlan,
    TransferResult,
)
from ansible_collections.rdma.cluster.plugins.module_utils._plugin_transfer.unit import TransferUnit
from tests.unit.builders.fakes import Call, FakeRunner

RUN = "20261126T200000-1"
UNIT = f"rdma-plugin-transfer-{RUN}.service"
PLAN = TransferPlan(
    RUN, 18590, 40.0, 45.0, {"node1": HostPlan("/x.so", 9, {})}, (Meeting("node1", "node2", "rail0", "a", "b", "192.0.2.2"),)
)
LIST = ("systemctl", "list-units", "--all", "--full", "--plain", "--no-legend", "rdma-plugin-transfer-*.service")
SHOW = (
    "systemctl", "show",
    "--property=LoadState,ActiveState,SubState,ExecMainCode,ExecMainStatus,Result,"
    "ExecMainStartTimestampMonotonic,ExecMainExitTimestampMonotonic",
    UNIT,
)  # fmt: skip
GONE = "LoadState=not-found\nActiveState=inactive\nSubState=dead\n"
RUNS = "LoadState=loaded\nActiveState=active\nSubState=running\n"


def launch(folder: Path) -> tuple[str, ...]:
    own = folder / RUN
    properties = (
        *("Type=exec", "RuntimeMaxSec=105", f"ReadWritePaths={own}"),
        *transfer_unit.LIMITS, *transfer_unit.HARDENING, *transfer_unit.SANDBOX,
    )  # fmt: skip
    files = [str(own / name) for name in ("plugin_transfer.pyz", "plan.json")], [str(own / name) for name in ("token", "results.json")]
    return (
        *("systemd-run", f"--unit={UNIT}", "--collect", *(f"--property={each}" for each in properties)),
        *("/usr/bin/python3", *files[0], "node1", *files[1]),
    )


def unit(folder: Path, *calls: Call) -> TransferUnit:
    return TransferUnit(RUN, FakeRunner(calls), folder=folder, sleep=lambda _seconds: None)


def start(of: TransferUnit, *, check_mode: bool = False) -> bool:
    return of.start(PLAN.to_text(), "secret", "node1", python="/usr/bin/python3", check_mode=check_mode)


def test_it_is_started_once_with_files_that_only_root_reads(tmp_path: Path) -> None:
    (tmp_path / "earlier").mkdir()
    assert start(unit(tmp_path), check_mode=True) is True
    assert start(unit(tmp_path, (LIST, 0, "", ""), (launch(tmp_path), 0, "", ""))) is True
    assert [path.name for path in tmp_path.iterdir()] == [RUN]
    assert {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / RUN).iterdir()} == dict.fromkeys(
        ("plugin_transfer.pyz", "plan.json", "token"), 0o600
    )
    assert (tmp_path / RUN).stat().st_mode & 0o777 == 0o700
    assert start(unit(tmp_path)) is False


def test_a_unit_that_does_not_start_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ApplyError, match="Failed to start"):
        start(unit(tmp_path, (LIST, 0, "", ""), (launch(tmp_path), 1, "", "Failed to start\n")))
    assert list(tmp_path.iterdir()) == []


def test_the_transfers_of_another_run_are_not_disturbed(tmp_path: Path) -> None:
    running = "rdma-plugin-transfer-other.service loaded active running x\n"
    with pytest.raises(ApplyError, match=r"another run work on this host: rdma-plugin-transfer-other\.service"):
        start(unit(tmp_path, (LIST, 0, running, "")))


def test_the_plan_of_another_run_or_host_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ParseError, match="with the host 'node9'"):
        unit(tmp_path).start(PLAN.to_text(), "secret", "node9", python="x", check_mode=False)
    with pytest.raises(ApplyError, match="letters, digits and hyphens"):
        TransferUnit("../x", FakeRunner([]))


def results(folder: Path, text: str) -> None:
    (folder / RUN).mkdir()
    (folder / RUN / "results.json").write_text(text)


def test_results_are_collected_once(tmp_path: Path) -> None:
    result = TransferResult("node2", "rail0", SENDS, failed="x")
    results(tmp_path, json.dumps([asdict(result)]))
    assert unit(tmp_path).collect(1.0) == [result]
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ApplyError, match="were not started on this host, or are collected already"):
        unit(tmp_path).collect(1.0)


def test_a_program_that_could_not_work_says_why(tmp_path: Path) -> None:
    results(tmp_path, '{"error": "[Errno 98] Address already in use"}')
    with pytest.raises(ApplyError, match="Address already in use"):
        unit(tmp_path).collect(1.0)


def test_a_program_that_ended_without_results(tmp_path: Path) -> None:
    (tmp_path / RUN).mkdir()
    with pytest.raises(ApplyError, match=f"journalctl --unit {UNIT}"):
        unit(tmp_path, (SHOW, 0, RUNS, ""), (SHOW, 0, GONE, ""), (("systemctl", "stop", UNIT), 0, "", "")).collect(60.0)
    assert list(tmp_path.iterdir()) == []
