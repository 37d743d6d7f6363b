# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Transient units: their start, and their state, as systemd 252 showed it of programs that ended in each of these ways."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.systemd import alone, parse_unit, transient_command

TIMES = "ExecMainStartTimestampMonotonic=5000000\nExecMainExitTimestampMonotonic={}\n"


def shown(result: str, code: int, status: int, states: str) -> str:
    load, active, sub = states.split()
    exited = 8500000 if code else 0
    return (
        f"Result={result}\nExecMainCode={code}\nExecMainStatus={status}\nLoadState={load}\nActiveState={active}\nSubState={sub}\n"
        + TIMES.format(exited)
    )


@pytest.mark.parametrize(
    ("text", "running", "failed", "rc"),
    [
        (shown("success", 0, 0, "loaded active running"), True, False, None),
        (shown("success", 0, 0, "loaded activating start"), True, False, None),
        (shown("timeout", 2, 15, "loaded deactivating stop-sigterm"), True, False, None),
        (shown("success", 1, 0, "loaded active exited"), False, False, 0),
        (shown("exit-code", 1, 28, "loaded failed failed"), False, True, 28),
        (shown("timeout", 2, 15, "loaded failed failed"), False, True, -15),
        (shown("signal", 2, 9, "loaded failed failed"), False, True, -9),
        (shown("core-dump", 3, 11, "loaded failed failed"), False, True, -11),
    ],
)
def test_each_end(text: str, running: bool, failed: bool, rc: int | None) -> None:
    unit = parse_unit(text)
    assert (unit.there, unit.running, unit.failed, unit.rc) == (True, running, failed, rc)
    assert unit.seconds == (None if running and rc is None and "ExecMainCode=0" in text else 3.5)


def test_a_unit_whose_file_has_gone_while_it_runs_is_there() -> None:
    assert parse_unit(shown("success", 0, 0, "not-found reloading reload")).there


def test_a_unit_that_is_not_there() -> None:
    unit = parse_unit(shown("success", 0, 0, "not-found inactive dead"))
    assert (unit.there, unit.running, unit.rc, unit.seconds) == (False, False, None, None)


@pytest.mark.parametrize(
    "text", ["", "Result=success\n", "LoadState=loaded\nActiveState=failed\nSubState=failed\nExecMainCode=1\nExecMainStatus=²\n"]
)
def test_another_form_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        parse_unit(text)


def test_a_program_is_started_as_a_unit() -> None:
    argv = transient_command("x.service", ["LimitMEMLOCK=infinity"], ["/bin/x", "-v"], options=["--collect"], environment=["LC_ALL=C"])
    assert argv == [
        *("systemd-run", "--unit=x.service", "--collect", "--property=Type=exec", "--property=LimitMEMLOCK=infinity"),
        *("--setenv=LC_ALL=C", "/bin/x", "-v"),
    ]


def test_a_second_start_waits_for_the_first(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    code = "import fcntl, os, sys; fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)"
    other = [sys.executable, "-c", code, str(folder)]
    with alone(folder):
        assert (folder.stat().st_mode & 0o777, list(folder.iterdir())) == (0o700, [])
        assert b"BlockingIOError" in subprocess.run(other, check=False, capture_output=True).stderr
    assert subprocess.run(other, check=False).returncode == 0
