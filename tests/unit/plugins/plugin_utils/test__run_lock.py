# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._run_lock import LockedError, claim, lock_file
from tests.child import environment

SOURCES = ["/srv/inventory.yml"]


@pytest.fixture
def other() -> Iterator[subprocess.Popen[bytes]]:
    """Another process that lives, as the one of another run."""
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as process:
        yield process
        process.kill()


def run_of(pid: int) -> str:
    return f"20261121T120000Z-{pid}"


def my_run() -> str:
    return run_of(os.getpid())


def test_a_run_keeps_its_own_lock_and_another_is_named_and_stopped(tmp_path: Path, other: subprocess.Popen[bytes]) -> None:
    lock = tmp_path / "lock"
    run = run_of(other.pid)
    claim(lock, run, SOURCES, Path("/srv/artifacts/x"))
    claim(lock, run, SOURCES, Path("/srv/artifacts/x"))
    with pytest.raises(LockedError, match=rf"Run {run} of .* evidence in /srv/artifacts/x.*inventory.yml"):
        claim(lock, my_run(), SOURCES, tmp_path)


def test_a_user_without_a_name_is_a_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 2**31 - 7)
    claim(tmp_path / "lock", my_run(), SOURCES, tmp_path)
    assert json.loads((tmp_path / "lock").read_text())["user"] == "uid 2147483641"


def test_the_lock_of_a_killed_run_is_taken_over(tmp_path: Path, other: subprocess.Popen[bytes]) -> None:
    lock = tmp_path / "lock"
    claim(lock, run_of(other.pid), SOURCES, tmp_path)
    os.kill(other.pid, signal.SIGKILL)
    other.wait()
    claim(lock, my_run(), SOURCES, tmp_path)
    assert json.loads(lock.read_text())["run"] == my_run()


def test_a_pid_that_another_process_has_now_does_not_hold_the_lock(tmp_path: Path, other: subprocess.Popen[bytes]) -> None:
    lock = tmp_path / "lock"
    claim(lock, run_of(other.pid), SOURCES, tmp_path)
    holder = json.loads(lock.read_text())
    boot_id, ticks = holder["process"].split()
    lock.write_text(json.dumps({**holder, "process": f"{boot_id} {int(ticks) - 1}"}))
    claim(lock, my_run(), SOURCES, tmp_path)
    assert json.loads(lock.read_text())["run"] == my_run()


@pytest.mark.parametrize("content", ["", '{"run": "2026', "[]x", "[]", '{"run": "20261121T120000Z-1", "pid": 1}'])
def test_a_lock_that_was_cut_off_is_taken(tmp_path: Path, content: str) -> None:
    lock = tmp_path / "lock"
    lock.write_text(content)
    claim(lock, my_run(), SOURCES, tmp_path)
    assert json.loads(lock.read_text())["run"] == my_run()


def test_of_two_that_start_at_once_one_wins(tmp_path: Path) -> None:
    code = (
        "import os, sys, time; from pathlib import Path\n"
        "from ansible_collections.rdma.cluster.plugins.plugin_utils._run_lock import LockedError, claim\n"
        "time.sleep(max(0, float(sys.argv[2]) - time.time()))\n"
        "try:\n    claim(Path(sys.argv[1]), f'x-{os.getpid()}', ['x'], Path('/'))\n"
        "except LockedError:\n    sys.exit(3)\n"
        "time.sleep(5)\n"
    )
    begin = str(time.time() + 2)
    both = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "lock"), begin], env=environment()) for number in range(2)]
    assert sorted(process.wait() for process in both) == [0, 3]


def test_the_file_is_of_the_inventory_however_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hosts.yml").write_text("")
    monkeypatch.chdir(tmp_path)
    assert lock_file(["hosts.yml"]) == lock_file([str(tmp_path / "hosts.yml")])
    assert lock_file(["hosts.yml"]) != lock_file(["other.yml"])


def test_no_symlink_is_followed(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "lock").symlink_to(tmp_path / "victim")
    with pytest.raises(OSError, match="symbolic"):
        claim(tmp_path / "lock", my_run(), SOURCES, tmp_path)
    assert (tmp_path / "victim").read_text() == "precious"
