# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record that a test of a fault leaves, passed or failed; the page that is made of it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.child import environment
from tests.faults import machines

ROOT = Path(__file__).parents[3]
FINDING = {
    "host": "node2",
    "check": "link.state",
    "status": "error",
    "subject": "rail 1",
    "observed": "DOWN",
    "expected": "ACTIVE",
    "remedy": "1. Plug it in.",
}
#: A scenario of its own, with the real hooks; the evidence of its runs is written by hand.
SCENARIO = f"""
import json, pytest
from pathlib import Path
from tests.verify.site import Ended, Site

def ran(folder, status):
    folder.mkdir()
    finding = {{**{FINDING!r}, "status": status}}
    (folder / "findings.jsonl").write_text(json.dumps(finding) + "\\n")
    Site.ended.append(Ended("site", 0, "", folder))

@pytest.mark.fault("cut-cable-of-a-host")
def test_named(tmp_path):
    ran(tmp_path / "cut", "error")
    ran(tmp_path / "repaired", "ok")

@pytest.mark.fault("cut-cable-of-a-host")
def test_not_named(tmp_path):
    ran(tmp_path / "cut", "ok")
    assert False

@pytest.mark.fault("opensm-dies")
def test_in_its_own_words(record_property):
    record_property("said", "plane default: the master died")

def test_of_no_fault():
    pass
"""
CONFTEST = """
import pytest
from pathlib import Path
from tests.faults import machines
from tests.verify import fault_record
machines.RECORDS = fault_record.RECORDS = Path(__file__).parent / "records"
pytest_plugins = ["tests.verify.fault_record"]
"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("scenario")
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_scenario.py").write_text(SCENARIO)
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(folder), "-c", "/dev/null", str(folder)]
    done = subprocess.run(argv, cwd=ROOT, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    records = [json.loads(file.read_text()) for file in (folder / "records").iterdir()]
    return {record["test"]: record for record in records}


def test_what_the_run_with_the_finding_has_reported(seen: dict[str, dict[str, Any]]) -> None:
    assert set(seen) == {"test_named", "test_not_named", "test_in_its_own_words"}
    named = seen["test_named"]
    assert (named["fault"], named["outcome"]) == ("cut-cable-of-a-host", "passed")
    assert named["said"] == ["node2, rail 1: link.state is error: DOWN (expected: ACTIVE)\n  do: 1. Plug it in."]
    assert seen["test_in_its_own_words"]["said"] == ["plane default: the master died"]


def test_a_failed_test_counts_against_the_fault(seen: dict[str, dict[str, Any]]) -> None:
    assert (seen["test_not_named"]["outcome"], seen["test_not_named"]["said"]) == ("failed", [])
    text = machines.page(seen)
    (row,) = [line for line in text.splitlines() if line.startswith("| `cut-cable-of-a-host`")]
    assert "| 1 of 2 |" in row
    assert "node2, rail 1: link.state is error: DOWN" in text
    assert (
        "| `exchanged-plugs` | two plugs of a mesh are exchanged | lab machine | `make scenario-mesh` | `mesh.cable` | not recorded | - |"
        in text
    )
