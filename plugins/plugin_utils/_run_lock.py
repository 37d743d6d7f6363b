# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Two runs that change hosts of one inventory exclude each other. The second names the first and stops.

The lock belongs to the ansible process whose task workers claim it, by its run id (start and pid): it ends with that process,
also when that was killed, and nothing has to be cleaned up. It holds between runs on one control node.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ansible_collections.rdma.cluster.plugins.plugin_utils._run_folder import process_of, user_name

#: Where every user may create a file; the first that is there.
FOLDERS = ("/run/lock", tempfile.gettempdir())
#: Names another folder for them.
VARIABLE = "RDMA_LOCK_DIR"
MODE = 0o666
#: What a lock says of its holder.
KEYS = {"run", "pid", "process", "user", "evidence"}


class LockedError(RuntimeError):
    """Another run holds the lock."""


def lock_file(sources: Sequence[str]) -> Path:
    """The lock of an inventory, by its sources (files, folders or scripts)."""
    key = hashlib.sha256("\n".join(sorted(os.path.realpath(source) for source in sources)).encode()).hexdigest()[:16]
    folder = os.environ.get(VARIABLE) or next(folder for folder in FOLDERS if os.access(folder, os.W_OK))
    return Path(folder) / f"rdma-cluster-{key}.lock"


def claim(path: Path, run: str, sources: Sequence[str], evidence: Path) -> None:
    """Take the lock for a run, or keep it. Raises LockedError that names the run which holds it."""
    descriptor = _open(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        holder = _read(descriptor)
        if holder.get("run") == run:
            return
        if holder and process_of(int(holder["pid"])) == holder["process"]:
            raise LockedError(
                f"Run {holder['run']} of {holder['user']} (pid {holder['pid']}, evidence in {holder['evidence']}) is at work on this "
                f"inventory ({', '.join(sources)}). Wait for its end, or end it; this run has touched nothing."
            )
        pid = int(run.rsplit("-", 1)[1])
        _write(descriptor, {"run": run, "pid": pid, "process": process_of(pid), "user": user_name(), "evidence": str(evidence)})
    finally:
        os.close(descriptor)


def _open(path: Path) -> int:
    # Not created if it is there: a sticky folder may forbid O_CREAT on another user's file (proc(5), protected_regular).
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(path, flags)
    except FileNotFoundError:
        descriptor = os.open(path, flags | os.O_CREAT, MODE)
        os.fchmod(descriptor, MODE)
        return descriptor


def _read(descriptor: int) -> dict[str, Any]:
    """What the lock says; nothing if it is new, was cut off while it was written, or is of another version."""
    try:
        holder = json.loads(os.pread(descriptor, 65536, 0))
    except ValueError:
        return {}
    return holder if isinstance(holder, dict) and set(holder) >= KEYS else {}


def _write(descriptor: int, holder: dict[str, Any]) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, json.dumps(holder).encode(), 0)
