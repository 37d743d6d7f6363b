# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Running commands: the only place on a host that starts processes for their output.

Code that needs a command's output takes a Runner, so that a test can hand in a scripted one.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, CommandError

__all__ = ["CommandError", "Completed", "Runner", "Spooler", "SubprocessRunner", "run_checked"]

#: How long a launcher of other processes has to end them by itself, before all of them are killed.
GRACE_SECONDS = 15.0
SYSTEM_DIRECTORIES = ("/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/local/bin", "/usr/bin", "/bin")


@dataclass(frozen=True)
class Completed:
    """A command that ran to its end, whatever its exit status.

    rc is negative when a signal ended the command (-9 for SIGKILL), as in subprocess.
    """

    argv: tuple[str, ...]
    rc: int
    stdout: str
    stderr: str


class Runner(Protocol):
    """Runs one command and returns its whole output."""

    def run(self, argv: Sequence[str], *, timeout_seconds: float = 30.0) -> Completed:
        """Run argv without a shell. A non-zero exit status is a result, not an error.

        Raises CommandError when the command does not exist, cannot be executed or does not end in time.
        """
        ...  # pylint: disable=unnecessary-ellipsis


class Spooler(Protocol):
    """Runs one command whose output is too much to be held, into a file."""

    def run_into(self, argv: Sequence[str], path: str, *, environment: Mapping[str, str], timeout_seconds: float) -> int:
        """Run argv without a shell, with these variables added, standard output and errors into a new file. Returns its exit status.

        On timeout the command gets SIGTERM, and the rest of its session is killed some time later. Raises
        CommandError as Runner.run does, and OSError for the file.
        """
        ...  # pylint: disable=unnecessary-ellipsis


def run_checked(runner: Runner, *argv: str, timeout_seconds: float = 60.0) -> str:
    """Run a command that must succeed and return its standard output. Raises ApplyError with the command and its output."""
    done = runner.run(argv, timeout_seconds=timeout_seconds)
    if done.rc:
        raise ApplyError(f"`{' '.join(argv)}` failed: {done.stderr.strip() or done.rc}")
    return done.stdout


class SubprocessRunner:
    """The Runner of a live host: untranslated output, no standard input, never a shell."""

    def run(self, argv: Sequence[str], *, timeout_seconds: float = 30.0) -> Completed:
        """Run argv with LC_ALL=C and the system directories on PATH; on timeout, end it and all processes it started."""
        command = tuple(argv)
        if not command or isinstance(argv, str):
            raise CommandError(f"a command is a non-empty list of arguments, got {argv!r}")
        process = _start(command)
        try:
            stdout, stderr = process.communicate(timeout=timeout_seconds)
        except subprocess.TimeoutExpired as exc:
            raise CommandError(f"{_quote(command)} did not end within {timeout_seconds:g} seconds") from exc
        finally:
            if process.returncode is None:
                _end(process)
        return Completed(command, process.returncode, _decode(stdout), _decode(stderr))

    def run_into(self, argv: Sequence[str], path: str, *, environment: Mapping[str, str], timeout_seconds: float) -> int:
        """See Spooler. Only the owner can read the file, because a log describes the network."""
        command = tuple(argv)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as output:
            process = _start(command, output, environment)
        try:
            return process.wait(timeout=timeout_seconds)
        except subprocess.TimeoutExpired as exc:
            raise CommandError(f"{_quote(command)} did not end within {timeout_seconds:g} seconds") from exc
        finally:
            if process.returncode is None:
                _end_session(process)


def _environment() -> dict[str, str]:
    path = [entry for entry in os.environ.get("PATH", "").split(os.pathsep) if entry]
    path += [entry for entry in SYSTEM_DIRECTORIES if entry not in path]
    return {**os.environ, "LC_ALL": "C", "LANG": "C", "LANGUAGE": "C", "PATH": os.pathsep.join(path)}


def _start(
    command: tuple[str, ...], output: IO[bytes] | None = None, environment: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start a process. output: the file for standard output and errors together; without it, each goes into a pipe."""
    try:
        return subprocess.Popen(  # pylint: disable=ansible-bad-function
            command,
            stdin=subprocess.DEVNULL,
            stdout=output or subprocess.PIPE,
            stderr=subprocess.STDOUT if output else subprocess.PIPE,
            env={**_environment(), **(environment or {})},
            start_new_session=True,
        )
    except (FileNotFoundError, NotADirectoryError) as exc:
        raise CommandError(f"command not found: {command[0]} (wanted to run {_quote(command)})") from exc
    except (OSError, ValueError) as exc:
        raise CommandError(f"cannot run {_quote(command)}: {exc}") from exc


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill the process with its whole session and reap it."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()


def _end_session(process: subprocess.Popen[bytes]) -> None:
    """End the process with SIGTERM, then kill the rest of its session: a launcher puts its children into process groups of their own."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=GRACE_SECONDS)
    deadline = time.monotonic() + GRACE_SECONDS
    while (left := _session(process.pid)) and time.monotonic() < deadline:
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
    process.wait()


def _session(leader: int) -> list[int]:
    """Return the running processes of a session, from /proc/PID/stat (proc(5): state and session are fields 3 and 6)."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, IndexError):
            fields = path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            if fields[3] == str(leader) and fields[0] not in ("Z", "X"):
                found.append(int(path.parent.name))
    return found


def _decode(output: bytes) -> str:
    return output.decode("utf-8", "replace")


def _quote(command: tuple[str, ...]) -> str:
    return " ".join(repr(word) if not word or set(word) & set(" \t\n'\"") else word for word in command)
