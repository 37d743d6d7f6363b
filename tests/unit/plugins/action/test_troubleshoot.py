# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The playbook that troubleshoots, with real Ansible on this machine: what it prints, stores, and reads of earlier runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.builders.hosts import lab_rails

ROOT = Path(__file__).parents[4]
AWAY = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1}


def troubleshoot(folder: Path, hosts: dict[str, Any], *words: str) -> subprocess.CompletedProcess[str]:
    local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    planned = {"rdma_rails": lab_rails(), "rdma_fabric": {"topology": "switched", "planes": {"lab": {}}}}
    inventory = {"all": {"hosts": {name: {**local, **planned, **variables} for name, variables in hosts.items()}}}
    (folder / "hosts.yml").write_text(yaml.safe_dump(inventory))
    known = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".venv/collections"), "ANSIBLE_NOCOLOR": "1"}
    argv = [str(Path(sys.executable).parent / "ansible-playbook"), "-i", "hosts.yml", str(ROOT / "playbooks/troubleshoot.yml"), *words]
    return subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=120, check=False, env=known)


def stored(folder: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((folder / "artifacts/latest/troubleshooting.json").read_text(encoding="utf-8"))
    return data


def test_a_planned_nic_that_is_missing_explains_a_hang(tmp_path: Path) -> None:
    done = troubleshoot(tmp_path, {"node1": {}}, "-e", "rdma_symptom=hang")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "changed=0" in done.stdout
    text = (tmp_path / "artifacts/latest/troubleshooting.txt").read_text(encoding="utf-8")
    assert f"\n{text}" in done.stdout
    assert text.startswith("hang: a job hangs at start or in the middle (1 host)\n")
    data = stored(tmp_path)
    assert data["explained_by"] == 2
    assert {each["check"] for each in data["path"][-1]["findings"]} >= {"driver.nic"}
    assert "    seen:     " in text.split("QUESTION 2 EXPLAINS IT")[1]


def test_a_host_that_does_not_answer_is_the_explanation(tmp_path: Path) -> None:
    done = troubleshoot(tmp_path, {"node1": {}, "node2": AWAY}, "-e", "rdma_symptom=slow")
    assert "FIX THIS FIRST" in done.stdout, done.stdout + done.stderr
    (answer,) = stored(tmp_path)["path"]
    assert [(each["host"], each["check"], each["status"]) for each in answer["findings"]] == [("node2", "stage.completed", "unknown")]


def test_an_intent_with_mistakes_is_named(tmp_path: Path) -> None:
    done = troubleshoot(tmp_path, {"node1": {"rdma_pears": {}}}, "-e", "rdma_symptom=slow")
    assert done.returncode == 0, done.stdout + done.stderr
    (answer,) = stored(tmp_path)["path"]
    assert "rdma_pears" in answer["findings"][0]["observed"]
    assert answer["answer"] == "no"


def test_measured_results_are_those_of_the_newest_run_that_judged_the_host(tmp_path: Path) -> None:
    finding = {
        "stage": "pairs",
        "check": "pair.bandwidth",
        "host": "node1",
        "subject": "rail0",
        "status": "error",
        "observed": "3 Gb/s",
        "expected": "98 Gb/s",
    }
    under_way = {"check": "stage.completed", "subject": "stage", "status": "unknown"}
    for run, host, changed in (
        ("20260101T000000Z-1", "node1", {"status": "ok"}),
        ("20260102T000000Z-1", "node1", {"status": "error"}),
        # Other hosts, and a run that was ended before its gate.
        ("20260103T000000Z-1", "node2", {"host": "node2", "status": "ok"}),
        ("20260104T000000Z-1", "node1", under_way),
        # What follows from another finding, and a run in check mode, which measured nothing.
        ("20260105T000000Z-1", "node1", {"status": "error", "caused_by": "driver.nic on rail 0"}),
        ("20260106T000000Z-1", "node1", {"status": "warning"}),
    ):
        folder = tmp_path / "artifacts" / run / "findings/pairs"
        folder.mkdir(parents=True)
        (folder / f"{host}.json").write_text(json.dumps([{**finding, **changed}]))
    (tmp_path / "artifacts/20260106T000000Z-1/summary.json").write_text('{"check_mode": true}')
    done = troubleshoot(tmp_path, {"node1": {}}, "-e", "rdma_symptom=slow")
    data = stored(tmp_path)
    assert data["measured_by"]["pairs"] == ["20260102T000000Z-1", "20260103T000000Z-1"], done.stdout + done.stderr
    assert "Findings on measurements are from pairs: 20260102T000000Z-1, 20260103T000000Z-1." in done.stdout


@pytest.mark.parametrize(("words", "expected"), [((), "Name the symptom: -e rdma_symptom=slow"), (("-e", "rdma_symptom=slwo"), "slwo")])
def test_without_a_known_symptom_it_says_which_there_are(tmp_path: Path, words: tuple[str, ...], expected: str) -> None:
    done = troubleshoot(tmp_path, {"node1": {}}, *words)
    assert done.returncode == 2
    assert expected in done.stdout + done.stderr
    assert "registration" in done.stdout + done.stderr
