# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes that the lab started, by their pid files. A pid that another program has now is ignored."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from lab.errors import LabError


def read_pid(pid_file: Path) -> int | None:
    try:
        return int(pid_file.read_text().strip())
    except (FileNotFoundError, ValueError):
        return None


def is_ours(pid_file: Path, mark: str) -> bool:
    """Return whether the process of the pid file runs and its command line contains `mark`."""
    pid = read_pid(pid_file)
    if pid is None:
        return False
    deadline = time.monotonic() + 1.0
    while not (words := _command_line(pid)) and time.monotonic() < deadline:
        # Between fork and exec a process has no command line yet; one that has ended never gets one.
        if not _is_alive(pid):
            return False
        time.sleep(0.005)
    return mark in words


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in ("Z", "X")
    except (FileNotFoundError, ProcessLookupError):
        return False


def end(pid_file: Path, mark: str, *, grace_seconds: float = 10.0, first: int = signal.SIGTERM) -> None:
    """Stop the process (SIGTERM, then SIGKILL), wait until it has ended, and remove the pid file."""
    pid = read_pid(pid_file)
    if pid is not None and is_ours(pid_file, mark):
        for number, patience in ((first, grace_seconds), (signal.SIGKILL, 10.0)):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                break
            if _gone(pid_file, mark, patience):
                break
        else:
            raise LabError(f"Process {pid} does not end, not even on SIGKILL.")
    pid_file.unlink(missing_ok=True)


def _gone(pid_file: Path, mark: str, patience_seconds: float) -> bool:
    deadline = time.monotonic() + patience_seconds
    while is_ours(pid_file, mark):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
