# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run commands of this machine: argv as a list, C locale, and errors that quote the command."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from lab.errors import LabError

ENVIRONMENT = {
    "LC_ALL": "C",
    "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": os.environ.get("HOME", "/root"),
    "DEBIAN_FRONTEND": "noninteractive",
}


def run(
    argv: Sequence[str | Path],
    *,
    timeout_seconds: float = 60.0,
    stdin: str | None = None,
    check: bool = True,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> str:
    """Run a command and return its standard output. Raises LabError with the command and its last line if it fails."""
    words = [str(word) for word in argv]
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=timeout_seconds, env=environment or ENVIRONMENT, input=stdin, check=False,
            cwd=folder,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise LabError(f"`{shlex.join(words)}` did not end within {timeout_seconds:.0f} s.") from None
    except FileNotFoundError:
        raise LabError(f"The command `{words[0]}` is not installed on this machine.") from None
    if check and done.returncode:
        last_line = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()[-1]
        raise LabError(f"`{shlex.join(words)}` failed with exit status {done.returncode}: {last_line}")
    return done.stdout


def log(message: str) -> None:
    """Print a line of progress for the user."""
    print(message, flush=True)
