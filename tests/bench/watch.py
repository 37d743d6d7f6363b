# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run of ansible-playbook, watched from outside: time, peak memory (proc(5)), and what it executed on hosts."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

SAMPLE_SECONDS = 0.2
PROC = Path("/proc")
#: With pipelining a module is one such line of -vvv: "<node1> EXEC" of the connection local, "<127.0.0.1> SSH: EXEC" of ssh.
EXECUTION = re.compile(r"^<[^>\n]*> (?:SSH: )?EXEC ", re.MULTILINE)
#: A host's line of the recap.
RECAP = re.compile(r"^\S+ +: ok=\d+ +changed=(\d+) ", re.MULTILINE)


@dataclass(frozen=True)
class Watched:
    """A run that has ended. worker_mib: the largest child, which shares most of its pages with the main process."""

    status: int
    output: str
    seconds: float
    main_mib: float
    worker_mib: float


def watch(argv: Sequence[str], folder: Path, log: Path) -> Watched:
    """Run a program in a folder, and look at its memory and that of its children until it ends."""
    main = worker = 0.0
    begun = time.monotonic()
    with log.open("wb") as stream, subprocess.Popen(argv, cwd=folder, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream) as process:
        while process.poll() is None:
            main = max(main, peak_mib(process.pid))
            worker = max([worker, *map(peak_mib, children(process.pid))])
            time.sleep(SAMPLE_SECONDS)
        seconds = time.monotonic() - begun
    return Watched(process.returncode, log.read_text(encoding="utf-8", errors="replace"), seconds, main, worker)


def executions(output: str) -> int:
    """How many times something was executed on a host, by what -vvv has printed."""
    return len(EXECUTION.findall(output))


def changes(output: str) -> int:
    """How many tasks changed something, on all hosts together, by the recap. Raises ValueError if there is none."""
    counts = RECAP.findall(output)
    if not counts:
        raise ValueError(f"no recap of a run: {output[-200:]!r}")
    return sum(map(int, counts))


def peak_mib(pid: int | str) -> float:
    """VmHWM of a process, 0 if it has ended. Not ru_maxrss, which begins with that of the parent."""
    found = re.search(r"^VmHWM:\s+(\d+) kB$", _read(PROC / str(pid) / "status"), re.MULTILINE)
    return int(found[1]) / 1024 if found else 0.0


def children(pid: int) -> list[int]:
    """The processes whose parent this one is."""
    parents = {int(stat.parent.name): _read(stat).rpartition(")")[2].split()[1:2] for stat in PROC.glob("[0-9]*/stat")}
    return [child for child, parent in parents.items() if parent == [str(pid)]]


def _read(path: Path) -> str:
    """Empty if the process has ended."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""
