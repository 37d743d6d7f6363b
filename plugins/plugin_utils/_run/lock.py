# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lock of an inventory: two runs that change its hosts exclude each other. The second run names the first and stops.

The lock belongs to the ansible process whose task workers claim it, by its run ID (start and pid). It ends with that process, even if
the process is killed, and needs no cleanup. It works between runs of one user on one control node. Users who share an inventory use a
folder of their group, see VARIABLE: in a folder for all users any local user could stop all runs.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import pwd
import stat
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ansible.utils.display import Display

from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import clean
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import process_of, user_name

#: The folder of root's locks. Other users have one in their home, which is the same in a login and in cron; /run/user/UID is not.
ROOT_FOLDER = "/run/rdma.cluster"
HOME_FOLDER = ".cache/rdma.cluster/locks"
#: The environment variable that names another folder for locks, for example one of a group.
VARIABLE = "RDMA_LOCK_DIR"
#: Times of waiting for the lock file, which is held only while it is read and written.
WAIT_SECONDS = 30.0
QUIET_SECONDS = 2.0
INTERVAL_SECONDS = 0.05
#: The keys of a lock that describe its holder.
TEXTS = ("run", "process", "user", "evidence")
LONGEST_BYTES = 65536
UNTOUCHED = "This run has changed nothing."
LARGEST_PID = 2**22
display = Display()


class LockedError(RuntimeError):
    """Another run holds the lock, or the lock cannot be used. The message contains the remedy."""


def lock_file(sources: Sequence[str]) -> Path:
    """The lock file of an inventory, by its sources (files, folders, scripts or lists of hosts) in any order and spelling."""
    key = hashlib.sha256("\n".join(sorted(set(map(_canonical, sources)))).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return _folder() / f"rdma-cluster-{key}.lock"


def _canonical(source: str) -> str:
    """The canonical spelling of a source."""
    if "," in source:
        return ",".join(sorted({host.strip() for host in source.split(",")} - {""})) + ","
    return os.path.realpath(source)


def _folder() -> Path:
    """The folder of the locks, created if missing. Raises LockedError if users outside its group may write there."""
    given = os.environ.get(VARIABLE)
    if given:
        folder = Path(given)
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise LockedError(f"{VARIABLE} is {folder}, not a folder, and cannot be created: {error.strerror}. {UNTOUCHED}") from error
        return folder
    problems = []
    for folder in _own_folders():
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            found = folder.lstat()
        except OSError as error:
            problems.append(f"{folder}: {error.strerror}")
            continue
        if stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022:
            return folder
        problems.append(f"{folder}: it is not a folder that only {user_name()} can write")
    raise LockedError(
        f"The lock of this inventory has no folder ({'; '.join(problems)}). Set the environment variable {VARIABLE} to a folder of "
        f"{user_name()}, for example `{VARIABLE}=$HOME/locks`. {UNTOUCHED}"
    )


def _own_folders() -> list[Path]:
    """The folders of this user in which no other user can create a file, in order of preference."""
    user = os.geteuid()
    found = [Path(ROOT_FOLDER)] if user == 0 else []
    with suppress(KeyError):
        found.append(Path(pwd.getpwuid(user).pw_dir) / HOME_FOLDER)
    return [*found, Path(tempfile.gettempdir()) / f"rdma-cluster-{user}"]


def claim(path: Path, run: str, sources: Sequence[str], evidence: Path, *, wait_seconds: float = WAIT_SECONDS) -> None:
    """Take the lock for a run, or keep it. Raises LockedError with the run that holds it."""
    descriptor = _open(path)
    try:
        _lock(descriptor, path, wait_seconds)
        holder = _read(descriptor)
        if holder.get("run") == run:
            return
        if holder and process_of(holder["pid"]) == holder["process"]:
            raise LockedError(
                clean(
                    f"Run {holder['run']} of {holder['user']} (pid {holder['pid']}, evidence in {holder['evidence']}) is using this "
                    f"inventory ({', '.join(sources)}). Wait until it ends, or end it. {UNTOUCHED}"
                )
            )
        pid = int(run.rsplit("-", 1)[1])
        _write(descriptor, {"run": run, "pid": pid, "process": process_of(pid), "user": user_name(), "evidence": str(evidence)})
    finally:
        os.close(descriptor)


def _open(path: Path) -> int:
    """The open lock file, created if missing. Raises LockedError for a file that another user may have created or can write."""
    folder = path.parent.stat()
    # All users who can write in a folder closed to others are trusted: it is the user's own, or that of a group of admins.
    closed = folder.st_uid in (0, os.geteuid()) and not folder.st_mode & 0o002
    mode = 0o660 if closed and folder.st_mode & 0o020 else 0o600
    # No O_CREAT on an existing file: a sticky folder may forbid it for another user's file (proc(5), protected_regular).
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        descriptor = os.open(path, flags)
    except FileNotFoundError:
        descriptor = os.open(path, flags | os.O_CREAT, mode)
        os.fchmod(descriptor, mode)
    except PermissionError as error:
        raise LockedError(_not_ours(path, path.lstat().st_uid)) from error
    found = os.fstat(descriptor)
    if stat.S_ISREG(found.st_mode) and (closed or found.st_uid in (0, os.geteuid())):
        return descriptor
    os.close(descriptor)
    raise LockedError(_not_ours(path, found.st_uid))


def _not_ours(path: Path, owner: int) -> str:
    return (
        f"The lock {path} belongs to uid {owner}, so its content cannot be trusted. 1. If no run of another user uses this inventory, "
        f"remove the file. 2. Set {VARIABLE} to a folder that only the group of your admins can write (`chmod o-w`). {UNTOUCHED}"
    )


def _lock(descriptor: int, path: Path, wait_seconds: float) -> None:
    """Lock the file. Raises LockedError if another process does not release it in time."""
    begun = time.monotonic()
    reported = False
    while not _try_lock(descriptor):
        waited = time.monotonic() - begun
        if waited >= wait_seconds:
            raise LockedError(
                f"Another process has held the file {path} for more than {wait_seconds:g} s; runs hold it only briefly. "
                f"Find the process with `fuser {path}`, end it, then run again. {UNTOUCHED}"
            )
        if waited >= QUIET_SECONDS and not reported:
            reported = True
            display.warning(f"Waiting at most {wait_seconds:g} s for the lock {path}: `fuser {path}` shows the process that holds it.")
        time.sleep(INTERVAL_SECONDS)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read(descriptor: int) -> dict[str, Any]:
    """The content of the lock; empty if it is new, was cut off while being written, is of another version, or is damaged."""
    try:
        holder = json.loads(os.pread(descriptor, LONGEST_BYTES, 0))
    except (ValueError, RecursionError):
        return {}
    if not isinstance(holder, dict) or not all(isinstance(holder.get(name), str) for name in TEXTS):
        return {}
    pid = holder.get("pid")
    return holder if isinstance(pid, int) and not isinstance(pid, bool) and 0 < pid <= LARGEST_PID else {}


def _write(descriptor: int, holder: dict[str, Any]) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, json.dumps(holder).encode(), 0)
