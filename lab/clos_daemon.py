# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A daemon in a node of a routed Clos network, started as a child: FRR's and lldpd."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.errors import LabError
from lab.shell import ENVIRONMENT

START_SECONDS = 10.0


@dataclass(frozen=True)
class Daemon:
    """A daemon that was started. what: its name for messages; socket: where it answers when it is ready; output: what it prints."""

    what: str
    process: subprocess.Popen[bytes]
    socket: Path
    output: Path

    @classmethod
    def start(cls, what: str, argv: Sequence[str | Path], socket: Path, output: Path) -> Daemon:
        """Start a daemon that stays in the foreground."""
        with output.open("wb") as file:
            process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True, env=ENVIRONMENT
            )  # fmt: skip
        return cls(what, process, socket, output)

    def wait(self) -> None:
        """Wait until it can be reached. Raises LabError with its output."""
        deadline = time.monotonic() + START_SECONDS
        while not self.socket.exists():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise LabError(f"{self.what} did not start: {self.output.read_text(errors='replace')[-400:]}")
            time.sleep(0.02)
