# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The summary callback in a real run, beside other callbacks and for a program instead of a person."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.unit.plugins.action.test_gate import ERROR, FACTS, GATE, MISHAPS, REPORT, ROOT, STOP, TASK, run, stage, write_inventory

CALLBACKS = str(ROOT / "playbooks/callback_plugins")
SLOW = {"name": "Think", "ansible.builtin.wait_for": {"timeout": 12}, "when": "inventory_hostname == 'node2'"}
CHANGE = {
    "name": "Write",
    "ansible.builtin.copy": {"dest": "{{ playbook_dir }}/{{ inventory_hostname }}.txt", "content": "new\n", "mode": "0644"},
}


@pytest.fixture(autouse=True)
def loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """As for playbooks of the collection, which it stands beside."""
    monkeypatch.setenv("ANSIBLE_CALLBACK_PLUGINS", CALLBACKS)


def summary(folder: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((folder / "artifacts/latest/summary.json").read_text())
    return loaded


def test_a_block_as_the_stage_ends_and_the_table_at_the_end(tmp_path: Path) -> None:
    write_inventory(tmp_path, STOP, ERROR)
    said = run(tmp_path, [stage("link", [FACTS, GATE]), stage("network", [])]).stdout
    block = re.search(r"^link +4 hosts +\d+ s  3 ok, 1 error\n  node3, rail 0 \(.*\): link.state is error \(link stage\)\n", said, re.M)
    assert block, said
    table = said.index("RDMA SUMMARY")
    assert block.start() < table
    assert re.search(r"^node3 +- +- +error( +-){8}$", said[table:], re.M), said
    assert f"Evidence: {(tmp_path / 'artifacts/latest').resolve()}" in said
    assert "\x1b[" not in said
    assert summary(tmp_path)["outcome"] == "failed"
    assert summary(tmp_path)["hosts"]["node3"] == {"link": "error"}


def test_a_task_that_takes_long_says_for_whom_it_waits(tmp_path: Path) -> None:
    write_inventory(tmp_path, REPORT, "nothing")
    said = run(tmp_path, [stage("link", [FACTS, SLOW, GATE])]).stdout
    assert re.search(r"^  … Think: 1\d s, 3 hosts done, waiting for node2$", said, re.M), said


def test_verbose_and_diff_still_say_what_they_say(tmp_path: Path) -> None:
    write_inventory(tmp_path, REPORT, "nothing")
    said = run(tmp_path, [stage("link", [FACTS, CHANGE, GATE])], "-v", "--diff").stdout
    assert "+new" in said
    assert '"stage": "link"' in said
    lines = [json.loads(line) for line in (tmp_path / "artifacts/latest/changes.jsonl").read_text().splitlines()]
    assert {(line["stage"], line["was"], line["should_be"]) for line in lines} == {("link", "", "new")}


def test_where_the_terminal_belongs_to_a_program_it_is_silent_and_writes_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANSIBLE_STDOUT_CALLBACK", "ansible.posix.json")
    write_inventory(tmp_path, STOP, ERROR)
    said = run(tmp_path, [stage("link", [FACTS, GATE])]).stdout
    assert json.loads(said)["stats"]["node3"]["failures"] == 1
    assert summary(tmp_path)["outcome"] == "failed"


def test_a_host_that_is_lost_leaves_the_reason(tmp_path: Path) -> None:
    write_inventory(tmp_path, STOP, TASK)
    run(tmp_path, [stage("link", [FACTS, *MISHAPS[TASK], GATE])])
    (finding,) = json.loads((tmp_path / "artifacts/latest/findings/link/node3.json").read_text())
    assert (finding["check"], finding["status"]) == ("stage.completed", "unknown")
    assert finding["observed"] == "task 'Fail' failed: no room on the disk"


def test_colour_only_on_a_terminal(tmp_path: Path) -> None:
    write_inventory(tmp_path, STOP, ERROR)
    (tmp_path / "play.yml").write_text(json.dumps([stage("link", [FACTS, GATE])]))
    environment = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".venv/collections"), "TERM": "xterm"}
    for name in ("NO_COLOR", "ANSIBLE_NOCOLOR"):
        environment.pop(name, None)
    argv = ["script", "-qec", "ansible-playbook -i inventory.yml play.yml", "/dev/null"]
    said = subprocess.run(argv, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False).stdout
    assert re.search(r"\x1b\[[0-9;]*mlink +4 hosts", said), said


EXPLAIN = {
    "name": "Explain",
    "hosts": "node1",
    "gather_facts": False,
    "tasks": [{"name": "Read the intent", "rdma.cluster.intent": None}, {"name": "Explain", "rdma.cluster.explain": None}],
}


def test_what_is_explained_is_said_as_it_is(tmp_path: Path) -> None:
    write_inventory(tmp_path, STOP, "nothing")
    said = run(tmp_path, [EXPLAIN]).stdout
    text = (tmp_path / "artifacts/latest/explain/node1.txt").read_text()
    assert text.startswith("node1: what matters to RDMA and NCCL\n")
    assert said.count(f"\n\n{text}") == 1, said


def test_what_is_explained_is_not_said_into_the_output_of_a_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANSIBLE_STDOUT_CALLBACK", "ansible.posix.json")
    write_inventory(tmp_path, STOP, "nothing")
    result = json.loads(run(tmp_path, [EXPLAIN]).stdout)["plays"][0]["tasks"][1]["hosts"]["node1"]
    assert result["explained"] + "\n" == (tmp_path / "artifacts/latest/explain/node1.txt").read_text()
    assert (result["changed"], result["stored"]) == (False, str((tmp_path / "artifacts/latest").resolve() / "explain/node1.txt"))
