# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import fcntl
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._run import lock as run_lock
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import process_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.lock import LockedError, claim, lock_file
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
        "from ansible_collections.rdma.cluster.plugins.plugin_utils._run.lock import LockedError, claim\n"
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


# Other users of the control node


GARBAGE = [
    '{"run": "r", "pid": "abc", "process": "p", "user": "u", "evidence": "e"}',
    '{"run": "r", "pid": 1e3, "process": "p", "user": "u", "evidence": "e"}',
    '{"run": "r", "pid": true, "process": "p", "user": "u", "evidence": "e"}',
    '{"run": "r", "pid": -1, "process": "p", "user": "u", "evidence": "e"}',
    f'{{"run": "r", "pid": {"9" * 400}, "process": "p", "user": "u", "evidence": "e"}}',
    '{"run": ["r"], "pid": 1, "process": "p", "user": "u", "evidence": "e"}',
    '{"run": "r", "pid": 1, "process": null, "user": "u", "evidence": "e"}',
    '{"run": "r", "pid": 1, "process": "p", "user": {}, "evidence": "e"}',
    '{"run": "r", "pid": null, "process": "p", "user": "u", "evidence": "e"}',
    "[" * 60_000,
    "null",
    "7",
    "\x00" * 100,
    "x" * 200_000,
]


@pytest.mark.parametrize("content", [*(each.encode() for each in GARBAGE), b"\xff\xfe"], ids=range(len(GARBAGE) + 1))
def test_garbage_in_a_lock_does_not_stop_a_run(tmp_path: Path, content: bytes) -> None:
    lock = tmp_path / "lock"
    lock.write_bytes(content)
    claim(lock, my_run(), SOURCES, tmp_path)
    assert json.loads(lock.read_text())["run"] == my_run()


def test_a_lock_that_somebody_holds_stops_the_run_in_time_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    warned: list[str] = []
    monkeypatch.setattr(run_lock.display, "warning", warned.append)
    monkeypatch.setattr(run_lock, "QUIET_SECONDS", 0.1)
    lock = tmp_path / "lock"
    lock.touch()
    begun = time.monotonic()
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(LockedError, match=rf"has held the file {lock} for more than 0.4 s.*`fuser {lock}`"):
            claim(lock, my_run(), SOURCES, tmp_path, wait_seconds=0.4)
    assert 0.4 <= time.monotonic() - begun < 5
    (words,) = warned
    assert f"for the lock {lock}" in words


def test_a_lock_that_is_released_in_time_is_taken(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    lock.touch()
    held = lock.open()
    fcntl.flock(held, fcntl.LOCK_EX)
    timer = threading.Timer(0.3, held.close)
    timer.start()
    claim(lock, my_run(), SOURCES, tmp_path, wait_seconds=30)
    assert json.loads(lock.read_text())["run"] == my_run()


def foreign(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of somebody else, in a folder of everybody."""
    path.parent.chmod(0o1777)
    if os.getuid() == 0:
        os.chown(path, 65534, 65534)
    else:
        user = os.getuid() + 1
        monkeypatch.setattr(os, "geteuid", lambda: user)


def test_what_another_user_writes_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = tmp_path / "lock"
    evil = "\x1b]0;owned\x07"
    lock.write_text(json.dumps({"run": evil, "pid": 1, "process": process_of(1), "user": evil, "evidence": evil}))
    foreign(lock, monkeypatch)
    with pytest.raises(LockedError, match=rf"The lock {lock} belongs to uid \d+, so its content cannot be trusted") as caught:
        claim(lock, my_run(), SOURCES, tmp_path)
    assert "owned" not in str(caught.value)


def test_the_admins_of_a_group_share_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: subprocess.Popen[bytes]) -> None:
    lock = tmp_path / "lock"
    tmp_path.chmod(0o2770)
    claim(lock, run_of(other.pid), SOURCES, tmp_path)
    assert lock.stat().st_mode & 0o777 == 0o660
    if os.getuid() == 0:
        os.chown(lock, 65534, -1)
    with pytest.raises(LockedError, match=f"Run {run_of(other.pid)} of"):
        claim(lock, my_run(), SOURCES, tmp_path)


def test_the_file_of_a_lock_is_the_users_alone(tmp_path: Path) -> None:
    claim(tmp_path / "lock", my_run(), SOURCES, tmp_path)
    assert (tmp_path / "lock").stat().st_mode & 0o777 == 0o600


def test_what_a_lock_says_gives_no_orders_to_a_terminal(tmp_path: Path, other: subprocess.Popen[bytes]) -> None:
    lock = tmp_path / "lock"
    claim(lock, run_of(other.pid), SOURCES, tmp_path)
    lock.write_text(json.dumps({**json.loads(lock.read_text()), "user": "ada\x1b]0;owned\x07\nfine"}))
    with pytest.raises(LockedError) as caught:
        claim(lock, my_run(), SOURCES, tmp_path)
    assert str(caught.value).isprintable()


def test_a_pipe_in_the_place_of_a_lock_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "lock")
    with pytest.raises(LockedError):
        claim(tmp_path / "lock", my_run(), SOURCES, tmp_path)


# Its folder


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folders of locks without the variable, all below tmp_path."""
    monkeypatch.delenv("RDMA_LOCK_DIR")
    (tmp_path / "home").mkdir()
    monkeypatch.setattr(run_lock, "ROOT_FOLDER", str(tmp_path / "run"))
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: pwd.struct_passwd(("ada", "x", uid, uid, "", str(tmp_path / "home"), "/bin/sh")))
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir(mode=0o1777)
    return tmp_path


def test_a_user_has_locks_of_its_own(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(home / "of-this-session"))
    first = "run" if os.geteuid() == 0 else "home/.cache/rdma.cluster/locks"
    folder = lock_file(SOURCES).parent
    assert folder == home / first
    assert (folder.stat().st_mode & 0o777, folder.stat().st_uid) == (0o700, os.geteuid())


@pytest.mark.parametrize("how", ["writable", "link", "file"])
def test_a_folder_that_others_could_have_made_is_not_used(home: Path, how: str) -> None:
    monkeyed = lock_file(SOURCES).parent
    shutil.rmtree(monkeyed)
    if how == "writable":
        monkeyed.mkdir()
        monkeyed.chmod(0o777)
    elif how == "link":
        (home / "elsewhere").mkdir()
        monkeyed.symlink_to(home / "elsewhere")
    else:
        monkeyed.write_text("")
    assert lock_file(SOURCES).parent != monkeyed


def test_without_any_folder_it_says_what_to_do(home: Path) -> None:
    for name in ("run", "home/.cache", f"tmp/rdma-cluster-{os.geteuid()}"):
        (home / name).write_text("")
    with pytest.raises(LockedError, match=r"has no folder \(.*Set the environment variable RDMA_LOCK_DIR"):
        lock_file(SOURCES)


def test_a_given_folder_that_cannot_be_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("RDMA_LOCK_DIR", str(tmp_path / "file"))
    with pytest.raises(LockedError, match="RDMA_LOCK_DIR is"):
        lock_file(SOURCES)


def test_an_inventory_in_any_spelling_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b.yml").write_text("")
    (tmp_path / "link").symlink_to("a")
    monkeypatch.chdir(tmp_path)
    one = lock_file(["a", "b.yml"])
    spellings = [["b.yml", "a"], ["a/", "./b.yml"], ["link", "a/../b.yml"], ["a", "b.yml", "a"], [str(tmp_path / "a"), "b.yml"]]
    assert {lock_file(each) for each in spellings} == {one}
    assert lock_file(["a"]) != one
    assert lock_file(["node1,node2,"]) == lock_file(["node2, node1"]) != lock_file(["node1,"])
    assert lock_file(["\udcff.yml"]) != one


def test_a_list_of_hosts_is_the_same_in_every_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    here = lock_file(["node1,node2"])
    monkeypatch.chdir("/")
    assert lock_file(["node1,node2"]) == here
