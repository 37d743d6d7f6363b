# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Control a running QEMU through its monitor's socket (QMP, qemu-qmp-ref of QEMU 7.2)."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path
from typing import Any

from lab.errors import LabError


class Monitor:
    """A connection to one QEMU. Raises LabError if QEMU refuses a command."""

    def __init__(self, path: Path) -> None:
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.settimeout(20)
        self._connection.connect(str(path))
        self._lines = self._connection.makefile("rw")
        self._lines.readline()
        self.execute("qmp_capabilities")

    def __enter__(self) -> Monitor:
        return self

    def __exit__(self, *_error: object) -> None:
        self._lines.close()
        self._connection.close()

    def execute(self, command: str, **arguments: Any) -> Any:
        """Run a command, and return its result. Events in between are ignored."""
        self._lines.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self._lines.flush()
        while True:
            line = self._lines.readline()
            if not line:
                raise LabError(f"QEMU ended while it was asked for {command}.")
            answer = json.loads(line)
            if "error" in answer:
                raise LabError(f"QEMU refuses {command}: {answer['error'].get('desc')}")
            if "return" in answer:
                return answer["return"]

    def wait_for_migration(self, timeout_seconds: float) -> None:
        """Wait until the state is completely written or read. Raises LabError if that fails."""
        deadline = time.monotonic() + timeout_seconds
        while (status := self.execute("query-migrate").get("status")) != "completed":
            if status in ("failed", "cancelled"):
                raise LabError(f"QEMU could not move the machine's state: {status}.")
            if time.monotonic() > deadline:
                raise LabError(f"QEMU did not move the machine's state within {timeout_seconds:.0f} s.")
            time.sleep(0.02)
