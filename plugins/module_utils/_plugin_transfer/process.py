# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The process without rights that loads the plugin (child.py), as the program of the host starts, hears and ends it."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO, cast

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import quoted
from ansible_collections.rdma.cluster.plugins.module_utils._base.host_program import program_of
from ansible_collections.rdma.cluster.plugins.module_utils._base.unprivileged import as_nobody
from ansible_collections.rdma.cluster.plugins.module_utils._plugin_transfer import child

_PYTHON = "/usr/bin/python3"
#: How long a partner or the process may take beyond a limit, and for the connection to close.
GRACE_SECONDS, _CLOSE_SECONDS = 2.0, 5.0
_LINE_BYTES = 8192


class EndedError(Exception):
    """A transfer that ended early; the message says how."""


class Process:
    """The process with the plugin. words: everything that it has said. look: called while it works; returns what to wait for too."""

    def __init__(self, program: Path, order: child.Order, deadline: float, look: Callable[[], list[socket.socket]]) -> None:
        self.words: dict[str, Any] = {}
        self._deadline, self._came, self._look = deadline, b"", look
        # Nobody may not be able to use a Python of root's own.
        interpreter = _PYTHON if Path(_PYTHON).exists() else sys.executable
        argv = as_nobody(interpreter, "-I", str(program), json.dumps(asdict(order)))
        self._process = subprocess.Popen(  # pylint: disable=ansible-bad-function
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True, bufsize=0, cwd="/"
        )
        self._input, self._output = cast(BinaryIO, self._process.stdin), cast(BinaryIO, self._process.stdout)

    def hear(self, name: str) -> Any:
        """Return what the process says under a name. Raises EndedError if it fails, ends, or does not say it in time."""
        while name not in self.words:
            line = self._line()
            if line is None:
                raise EndedError(self._end())
            try:
                said = json.loads(line)
            except (ValueError, RecursionError) as exc:
                raise EndedError(f"its process wrote {quoted(line)}") from exc
            self.words.update(said if isinstance(said, dict) else {})
            if "error" in self.words:
                raise EndedError(str(self.words["error"]))
        return self.words[name]

    def tell(self, line: str = "") -> None:
        """Let the process go on. One that has ended is noticed when its next word is heard."""
        with contextlib.suppress(OSError):
            self._input.write(f"{line}\n".encode())

    def let_close(self) -> None:
        """Allow the process to close the connection, and wait for it. Raises EndedError if it does not."""
        self._deadline, self._look = time.monotonic() + _CLOSE_SECONDS, list
        self.tell()
        self.hear("closed")

    def stop(self) -> None:
        """End the process and everything that it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._input.close()
        self._output.close()

    def _line(self) -> bytes | None:
        """Return the next line; None at the end. Raises EndedError if there is none in time."""
        while b"\n" not in self._came:
            left = self._deadline - time.monotonic()
            sources: list[Any] = [self._output, *self._look()]
            ready = select.select(sources, [], [], max(0.0, left))[0]
            if ready and self._output not in ready:
                continue
            if not ready:
                raise EndedError(f"the plugin hangs in {self.words.get('at', 'its start')}: no answer in time, so its process was ended")
            piece = os.read(self._output.fileno(), _LINE_BYTES)
            if not piece or len(self._came) > _LINE_BYTES:
                return None
            self._came += piece
        line, _end, self._came = self._came.partition(b"\n")
        return line

    def _end(self) -> str:
        try:
            code = self._process.wait(timeout=GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            return "its process closed its output"
        where = self.words.get("at", "its start")
        if code < 0:
            return f"the plugin crashed in {where}: its process ended by signal {-code}"
        return f"its process ended in {where} with exit code {code}"


@contextlib.contextmanager
def child_program() -> Iterator[Path]:
    """Write the program of child.py to a temporary folder, where nobody can read it.

    It starts for each transfer. Python compiles all code of a program at each start, so it contains only what it needs.
    """
    with tempfile.TemporaryDirectory(prefix="rdma-cluster-") as folder:
        Path(folder).chmod(0o755)
        copy = Path(folder) / "plugin_transfer_child.pyz"
        copy.write_bytes(program_of(child.main))
        copy.chmod(0o644)
        yield copy
