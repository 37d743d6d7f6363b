# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a failed test of a scenario says: host, stage and finding of the last run first, and no more than the end of its output.

molecule/conftest.py gives the hooks to pytest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.verify.site import Ended, Site

#: Below the root of pytest: the whole text of each failure.
FOLDER = "tests/output/failed"
MOST_FINDINGS, MOST_LINES, MOST_CHARACTERS = 20, 40, 240
TASK = re.compile(r"^(?:TASK|RUNNING HANDLER) \[(.*)\] \**$")
ERROR = re.compile(r"^\[ERROR\]: (.*)$")
FATAL = re.compile(r"^fatal: \[([^\]]+)\]: (.*)$")


def findings(evidence: Path) -> list[str]:
    """ "host, stage, finding" of all that stops hosts in a run's findings.jsonl; nothing if it did not get so far."""
    file = evidence / "findings.jsonl"
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    found = [line for line in map(json.loads, lines) if line["status"] in ("error", "unknown") and not line["silenced_by"]]
    return [f"{one['host']}, {one['stage']}, {one['check']} is {one['status']}: {one['subject']}: {one['observed']}" for one in found]


def failed_tasks(output: str) -> list[str]:
    """ "host, task, error" of each task that failed a host, by what ansible-playbook has printed."""
    found, task, error = [], "no task", ""
    for line in output.splitlines():
        if begun := TASK.match(line):
            task, error = begun[1], ""
        elif answer := ERROR.match(line):
            error = answer[1]
        elif fatal := FATAL.match(line):
            found.append(f"{fatal[1]}, {task}, {error or fatal[2]}")
    return found


def culprits(run: Ended) -> list[str]:
    """A line for each finding that stops a host; if there is none, for each task that failed one. The rest is counted."""
    lines = (findings(run.evidence) if run.evidence else []) or failed_tasks(run.output)
    more = [f"and {len(lines) - MOST_FINDINGS} more"] if len(lines) > MOST_FINDINGS else []
    return [line if len(line) <= MOST_CHARACTERS else f"{line[:MOST_CHARACTERS]} ..." for line in lines[:MOST_FINDINGS]] + more


def shortened(message: str, run: Ended | None, file: Path) -> str:
    """The message of a failed assertion, culprits first and cut to its last lines; whole, with the run's output, in the file."""
    lines = message.splitlines()
    if run is None and len(lines) <= MOST_LINES:
        return message
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join([message, *(["", f"Output of {run.playbook}:", run.output] if run else [])]), encoding="utf-8")
    which = f"The last run was {run.playbook}, with exit status {run.status}. " if run else ""
    cut = f"The last {MOST_LINES} lines of {len(lines)}:" if len(lines) > MOST_LINES else ""
    return "\n".join([*(culprits(run) if run else []), f"{which}All of it: {file}", *filter(None, [cut]), *lines[-MOST_LINES:]])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    try:
        return (yield)
    except AssertionError as error:
        file = item.config.rootpath / FOLDER / f"{re.sub(r'[^A-Za-z0-9_.-]+', '-', item.nodeid)}.txt"
        error.args = (shortened(str(error), Site.last, file),)
        raise


#: A fixture that runs a playbook fails in the same words.
pytest_runtest_setup = pytest_runtest_call
