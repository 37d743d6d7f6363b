# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The readers on the hosts: how each is reached, and what comes from it. Nothing is installed: the program comes over standard input."""

from __future__ import annotations

import os
import queue
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.host_program import program_of
from ansible_collections.rdma.cluster.plugins.module_utils._watch.reader import main as reader
from ansible_collections.rdma.cluster.plugins.plugin_utils._watch.view import END, LINE, Entry

#: Reads the program from the input into memory and runs it. sys.argv: its size in bytes, and its own arguments.
START = (
    "import os,runpy,sys;n=int(sys.argv[1]);b=sys.stdin.buffer.raw;d=b'';\n"
    "while len(d)<n:\n c=b.read(n-len(d));d+=c or sys.exit(1)\n"
    "f=os.memfd_create('watch');os.write(f,d);p='/proc/self/fd/%d'%f;sys.argv=[p]+sys.argv[2:];runpy.run_path(p,run_name='__main__')"
)
_LONGEST_LINE = 4 * 2**20
_LONGEST_ERROR = 2000
END_SECONDS = 5.0


@dataclass(frozen=True)
class Target:
    """A host and how it is reached. command: before the words of the remote program; is_remote: they pass a shell on the host.

    become: the words before the program on the host, which give it the rights of another user; empty to keep those of the connection.
    """

    name: str
    command: tuple[str, ...]
    python: str
    is_remote: bool
    become: tuple[str, ...] = ()


def target_of(name: str, variables: Mapping[str, object], *, become: bool = False) -> Target:
    """Return how a host is reached, by Ansible's variables of its connection (ansible_host, ansible_port, ansible_user, …).

    become: read as root, or as ansible_become_user, with `sudo -n`. Raises ParseError if the host uses another method than sudo.
    """
    sudo = _sudo(name, variables) if become else ()
    python = str(variables.get("ansible_python_interpreter") or "python3")
    if python.startswith("auto"):
        python = "python3"
    if variables.get("ansible_connection") == "local":
        return Target(name, (), python, is_remote=False, become=sudo)
    words = ["ssh", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3"]
    for option, key in (("-p", "ansible_port"), ("-i", "ansible_ssh_private_key_file")):
        words += [option, str(variables[key])] if variables.get(key) else []
    for key in ("ansible_ssh_common_args", "ansible_ssh_extra_args"):
        words += shlex.split(str(variables.get(key) or ""))
    words += ["-l", str(variables["ansible_user"])] if variables.get("ansible_user") else []
    return Target(name, (*words, "--", str(variables.get("ansible_host") or name)), python, is_remote=True, become=sudo)


def _sudo(name: str, variables: Mapping[str, object]) -> tuple[str, ...]:
    method = str(variables.get("ansible_become_method") or "sudo").removeprefix("ansible.builtin.")
    if method != "sudo":
        raise ParseError(f"{name} has ansible_become_method {method!r}, and --become uses only sudo. Run without --become.")
    return ("sudo", "-n", "-H", "-u", str(variables.get("ansible_become_user") or "root"), "--")


class Readers:
    """Runs a reader on each host, and returns what comes from them in its order."""

    def __init__(self, targets: Sequence[Target], words: Sequence[str]) -> None:
        self._entries: queue.Queue[Entry] = queue.Queue(maxsize=10_000)
        self._begun = time.monotonic()
        self._program = program_of(reader)
        self._processes = {target.name: self._start(target, words) for target in targets}
        for name, process in self._processes.items():
            threading.Thread(target=self._read, args=(name, process), daemon=True).start()

    @property
    def seconds(self) -> float:
        """The time since the readers were started."""
        return time.monotonic() - self._begun

    def _start(self, target: Target, words: Sequence[str]) -> subprocess.Popen[bytes]:
        program = [*target.become, target.python, "-c", START, str(len(self._program)), *words]
        argv = [*target.command, " ".join(shlex.quote(word) for word in program)] if target.is_remote else program
        pipe = subprocess.PIPE
        return subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True)

    def _read(self, host: str, process: subprocess.Popen[bytes]) -> None:
        if process.stdin is None or process.stdout is None or process.stderr is None:
            return
        with suppress(OSError):
            process.stdin.write(self._program)
            process.stdin.flush()
        while line := process.stdout.readline(_LONGEST_LINE):
            if line.strip():
                self._entries.put(Entry(self.seconds, host, LINE, line.decode("utf-8", "replace").rstrip("\n")))
        error = process.stderr.read(_LONGEST_ERROR).decode("utf-8", "replace").strip().splitlines()
        code = process.wait()
        why = error[-1] if error else f"exit status {code}" if code else ""
        self._entries.put(Entry(self.seconds, host, END, why))

    def entries(self, seconds: float) -> Iterator[Entry]:
        """Yield what comes within some seconds."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            with suppress(queue.Empty):
                yield self._entries.get(timeout=left)

    def close(self) -> None:
        """End the readers: their input ends, and after some time they are killed."""
        for process in self._processes.values():
            with suppress(OSError):
                if process.stdin is not None:
                    process.stdin.close()
        until = time.monotonic() + END_SECONDS
        for process in self._processes.values():
            try:
                process.wait(timeout=max(until - time.monotonic(), 0.1))
            except subprocess.TimeoutExpired:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
