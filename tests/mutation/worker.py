# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A process that runs tests on changed files of its own copy of the tree. It is a program, not a module: nothing of the tree may be loaded.

It loads the libraries once, and forks for each job. A job is a line of JSON on the input: {"file": …, "text": …, "tests": [path, …]};
text is null for the file as it is. The answer is a line of JSON on the output: {"outcome": "passed", "failed", "broken" or "time limit",
"said": the first failure}.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import resource
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

#: What tests load, and what takes most of their start.
LIBRARIES = ("hypothesis", "hypothesis.strategies", "xdist.plugin", "ansible.plugins.action", "networkx", "netaddr", "yaml", "jinja2")
CPU_SECONDS, WALL_SECONDS, BYTES = 60, 600, 6 << 30
OUTCOMES = {0: "passed", 1: "failed", 5: "passed"}


def run(tests: Sequence[str], log: Path) -> str:
    """Run tests in a process of their own."""
    child = os.fork()
    if child == 0:
        _in_child(tests, log)
    deadline = time.monotonic() + WALL_SECONDS
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            if os.WIFSIGNALED(status):
                return "time limit" if os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL) else "broken"
            return OUTCOMES.get(os.waitstatus_to_exitcode(status), "broken")
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "time limit"


def _in_child(tests: Sequence[str], log: Path) -> None:
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 5))
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    with log.open("w", encoding="utf-8") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    code = 3
    try:
        code = int(pytest.main(["-x", "-q", "--no-header", "--tb=line", "-p", "no:cacheprovider", *tests]))
    finally:
        sys.stdout.flush()
        os._exit(code)


def judge(job: dict[str, object], log: Path, number: int) -> dict[str, object]:
    """Run the tests of one job on the changed file, and restore the file."""
    file, text, tests = Path(str(job["file"])), job["text"], job["tests"]
    assert isinstance(tests, list)
    before, times = file.read_bytes(), file.stat()
    try:
        if text is not None:
            file.write_text(str(text), encoding="utf-8")
            # Python compiles a file again if its time in whole seconds differs.
            os.utime(file, (number, number))
        outcome = run(tests, log)
    finally:
        # With its old time the compiled file is valid again.
        file.write_bytes(before)
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    said = re.search(r"^(?:FAILED|ERROR|E  ).*", log.read_text(encoding="utf-8", errors="replace"), re.MULTILINE)
    return {"outcome": outcome, "said": said[0][:300] if said else ""}


def main() -> None:
    """Answer jobs until the input ends."""
    for name in LIBRARIES:
        importlib.import_module(name)
    log = Path("mutation.log")
    for number, line in enumerate(sys.stdin, 1_000_000_000):
        sys.stdout.write(json.dumps(judge(json.loads(line), log, number)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
