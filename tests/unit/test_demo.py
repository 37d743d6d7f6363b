# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole demo, where the simulator and the tools of a fabric are installed, and what it says where they are not."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from lab import preflight
from lab.shell import ENVIRONMENT
from tests.demo import __main__ as demo

ROOT = Path(__file__).parents[2]
MISSING = [name for name in preflight.FABRIC_COMMANDS if shutil.which(name, path=ENVIRONMENT["PATH"]) is None]
needs_fabric = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")
#: What a person must read of each fault: where, why and what to do.
REPORTED = (
    "node9, rail 5 (rail5, 0000:bc:00.0): pcie.path is error",
    "limits this 200 Gb/s port to 115 Gb/s",
    "do:       1. Reseat card 0000:bc:00.0 of node9",
    "node17: fabric.cabling is error",
    "swapped: node17 mlx5_3 is on leaf5 port 17, planned leaf4 port 17",
    "do:       Swap the cables",
    "node23, rail6: pair.bandwidth is error",
    "31 of 31 partners at 117 of 196 Gb/s",
)
MOST_LINES = 60


@pytest.fixture
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RDMA_LAB_DIR", str(tmp_path / "work/lab"))
    monkeypatch.setenv("ANSIBLE_HOME", str(tmp_path / "work/ansible"))
    return tmp_path


@needs_fabric
def test_the_whole_demo(tmp_path: Path) -> None:
    done = subprocess.run([ROOT / "tests/tools/demo.sh", tmp_path], capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert [words for words in REPORTED if words not in done.stdout] == []
    assert [word for word in ("recorded", "simulated", "make lab") if word not in done.stdout] == []
    assert len(done.stdout.splitlines()) <= MOST_LINES
    runs = sorted(path for path in tmp_path.iterdir() if path.name[:2] == "20")
    assert [json.loads((run / "summary.json").read_text())["outcome"] for run in runs] == ["clean", "failed", "clean", "clean"]
    assert f"  {runs[1]}\n" in done.stdout
    assert [name for name in demo.REPORT if not (runs[1] / name).stat().st_size] == []
    assert not list((tmp_path / "work/lab/fabrics").iterdir())


@needs_fabric
def test_a_fault_that_no_gate_reports_fails_the_demo(
    out: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "narrowed", dict)
    assert demo.main(out) == 1
    answer = capsys.readouterr()
    assert answer.err.startswith(
        "demo: expected the errors fabric.cabling on node17 (fabric stage); pair.bandwidth on node23 (pairs stage); pcie.path"
    )
    assert "4. The faults are fixed" not in answer.out


def test_a_missing_program_is_one_sentence(out: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(preflight, "FABRIC_COMMANDS", ("no-such-program",))
    assert demo.main(out) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("demo: Missing on this machine: no-such-program. Install them with: ")
    assert line.endswith("apt-get install ibsim-utils infiniband-diags opensm")
