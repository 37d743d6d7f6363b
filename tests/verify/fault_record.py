# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What was reported of each fault that a scenario has injected: a file for each test with the marker `fault`, also if it fails.

`python -m tests.faults --lab` makes docs/faults_lab.md of these files. molecule/conftest.py gives the hooks to pytest.
"""

from __future__ import annotations

import json
from collections.abc import Generator

import pytest

from tests.faults.machines import check_of, commit, keep_record, said_of
from tests.verify.site import Site


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "fault(id): injects this fault of tests/faults/machines.yml")
    commit()


def reported(check: str) -> list[str]:
    """What the last run of the test in which this check was not ok has reported of it: a line for each finding, and its remedy."""
    for run in reversed(Site.ended):
        file = run.evidence / "findings.jsonl" if run.evidence else None
        every = [json.loads(line) for line in file.read_text().splitlines()] if file is not None and file.exists() else []
        found = [each for each in every if each["check"] == check and each["status"] in ("error", "warning", "unknown")]
        if found:
            return [said_of(each) for each in found]
    return []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, None, None]:
    Site.ended.clear()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    marker = item.get_closest_marker("fault")
    if marker is not None and (report.when == "call" or report.failed):
        (fault,) = marker.args
        said = [str(text) for name, text in item.user_properties if name == "said"] or reported(check_of(fault))
        keep_record(fault, item.name, report.outcome, call.duration, said)
    return report
