# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The summary callback in a real run, beside other callbacks and for a program instead of a person."""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.unit.plugins.action.test_gate import ERROR, FACTS, GATE, MISHAPS, REPORT, ROOT, STOP, TASK, UNKNOWN, run, stage, write_inventory

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
    answer = run(tmp_path, [stage("link", [FACTS, GATE]), stage("network", [])]).stdout
    block = re.search(r"^link +4 hosts +\d+ s  3 ok, 1 error\n  node3, rail 0 \(.*\): link.state is error \(link stage\)\n", answer, re.M)
    assert block, answer
    table = answer.index("RDMA SUMMARY")
    assert block.start() < table
    assert re.search(r"^node3 +- +- +error( +-){8}$", answer[table:], re.M), answer
    assert f"Evidence: {(tmp_path / 'artifacts/latest').resolve()}" in answer
    assert "\x1b[" not in answer
    assert summary(tmp_path)["outcome"] == "failed"
    assert summary(tmp_path)["hosts"]["node3"] == {"link": "error"}


def test_a_task_that_takes_long_names_the_hosts_it_waits_for(tmp_path: Path) -> None:
    write_inventory(tmp_path, REPORT, "nothing")
    answer = run(tmp_path, [stage("link", [FACTS, SLOW, GATE])]).stdout
    assert re.search(r"^  … Think: 1\d s, 3 hosts done, waiting for node2$", answer, re.M), answer


def test_verbose_and_diff_still_say_what_they_say(tmp_path: Path) -> None:
    write_inventory(tmp_path, REPORT, "nothing")
    answer = run(tmp_path, [stage("link", [FACTS, CHANGE, GATE])], "-v", "--diff").stdout
    assert "+new" in answer
    assert '"stage": "link"' in answer
    lines = [json.loads(line) for line in (tmp_path / "artifacts/latest/changes.jsonl").read_text().splitlines()]
    assert {(line["stage"], line["was"], line["should_be"]) for line in lines} == {("link", "", "new")}


def test_where_the_terminal_belongs_to_a_program_it_is_silent_and_writes_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANSIBLE_STDOUT_CALLBACK", "ansible.posix.json")
    write_inventory(tmp_path, STOP, ERROR)
    answer = run(tmp_path, [stage("link", [FACTS, GATE])]).stdout
    assert json.loads(answer)["stats"]["node3"]["failures"] == 1
    assert summary(tmp_path)["outcome"] == "failed"


def test_a_host_that_is_lost_leaves_the_reason(tmp_path: Path) -> None:
    write_inventory(tmp_path, STOP, TASK)
    run(tmp_path, [stage("link", [FACTS, *MISHAPS[TASK], GATE])])
    (finding,) = json.loads((tmp_path / "artifacts/latest/findings/link/node3.json").read_text())
    assert (finding["check"], finding["status"]) == ("stage.completed", "unknown")
    assert finding["observed"] == "task 'Fail' failed: no room on the disk"


def test_color_only_on_a_terminal(tmp_path: Path) -> None:
    write_inventory(tmp_path, STOP, ERROR)
    (tmp_path / "play.yml").write_text(json.dumps([stage("link", [FACTS, GATE])]))
    environment = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".venv/collections"), "TERM": "xterm"}
    for name in ("NO_COLOR", "ANSIBLE_NOCOLOR"):
        environment.pop(name, None)
    argv = ["script", "-qec", "ansible-playbook -i inventory.yml play.yml", "/dev/null"]
    answer = subprocess.run(argv, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False).stdout
    assert re.search(r"\x1b\[[0-9;]*mlink +4 hosts", answer), answer


EXPLAIN = {
    "name": "Explain",
    "hosts": "node1",
    "gather_facts": False,
    "tasks": [{"name": "Read the intent", "rdma.cluster.intent": None}, {"name": "Explain", "rdma.cluster.explain": None}],
}


def test_what_is_explained_is_reported_as_it_is(tmp_path: Path) -> None:
    write_inventory(tmp_path, STOP, "nothing")
    answer = run(tmp_path, [EXPLAIN]).stdout
    text = (tmp_path / "artifacts/latest/explain/node1.txt").read_text()
    assert text.startswith("node1: what matters to RDMA and NCCL\n")
    assert answer.count(f"\n\n{text}") == 1, answer


def test_what_is_explained_is_not_reported_into_the_output_of_a_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANSIBLE_STDOUT_CALLBACK", "ansible.posix.json")
    write_inventory(tmp_path, STOP, "nothing")
    result = json.loads(run(tmp_path, [EXPLAIN]).stdout)["plays"][0]["tasks"][1]["hosts"]["node1"]
    assert result["explained"] + "\n" == (tmp_path / "artifacts/latest/explain/node1.txt").read_text()
    assert (result["changed"], result["stored"]) == (False, str((tmp_path / "artifacts/latest").resolve() / "explain/node1.txt"))


WITHHELD = {
    "name": "Report",
    "rdma.cluster.withheld": {
        "effect": "pcie_acs_write",
        "reason": "bridge 0000:64:01.0 redirects traffic",
        "touches": ["0000:64:01.0"],
    },
    "when": "inventory_hostname != 'node1'",
}
USED = {
    "name": "Use the facts",
    "ansible.builtin.debug": {
        "msg": "required={{ ansible_facts.pcie_acs_write_required | default(false) }} by "
        "{{ ansible_facts.pcie_acs_write_reason | default('') }}"
    },
}


@pytest.mark.parametrize("words", [(), ("--check",)])
def test_a_withheld_effect_is_printed_at_once_and_grouped_at_the_end(tmp_path: Path, words: tuple[str, ...]) -> None:
    write_inventory(tmp_path, STOP, "nothing")
    answer = run(tmp_path, [stage("link", [FACTS, WITHHELD, USED, GATE])], *words).stdout
    assert answer.count("required=True by bridge 0000:64:01.0 redirects traffic") == 3
    line = (
        "pcie_acs_write_required: bridge 0000:64:01.0 redirects traffic. It would change: 0000:64:01.0. "
        "To allow it: pcie_acs_write_allowed: true"
    )
    assert answer.count(line) == 3, answer
    assert (
        "Not applied, because it is not allowed:\n"
        "  pcie_acs_write on node2, node3, node4: bridge 0000:64:01.0 redirects traffic\n"
        "    changes:  0000:64:01.0\n"
        "    allow:    pcie_acs_write_allowed: true\n"
    ) in answer[answer.index("RDMA SUMMARY") :]
    (group,) = summary(tmp_path)["withheld"]
    assert (group["effect"], group["stage"], group["hosts"]) == ("pcie_acs_write", "link", ["node2", "node3", "node4"])


@pytest.mark.parametrize("arguments", [{"effect": "../x", "reason": "y"}, {"effect": "a_b"}])
def test_a_withheld_effect_without_a_name_or_a_reason_is_refused(tmp_path: Path, arguments: dict[str, str]) -> None:
    write_inventory(tmp_path, STOP, "nothing")
    done = run(tmp_path, [stage("link", [FACTS, {"name": "Report", "rdma.cluster.withheld": arguments}])])
    assert done.returncode == 2
    assert not (tmp_path / "artifacts/latest/withheld").exists()


def test_one_missing_device_is_one_cause_with_what_follows(tmp_path: Path) -> None:
    write_inventory(tmp_path, REPORT, UNKNOWN)
    answer = run(tmp_path, [stage(name, [FACTS, GATE]) for name in ("driver", "link", "network", "nccl")]).stdout
    fix = answer[answer.index("RDMA SUMMARY") :]
    fix = fix[fix.index("To fix:") :]
    (rail0, rail1) = re.findall(r"node3, rail (\d) .*: driver.device is error \(driver stage\)", fix)
    assert (rail0, rail1) == ("0", "1")
    assert "also:     link.state, network.gid" in fix
    assert "link.state is unknown" not in fix
    lines = [json.loads(line) for line in (tmp_path / "artifacts/latest/findings.jsonl").read_text().splitlines()]
    marked = [each for each in lines if each["host"] == "node3" and (each["caused_by"] or "").startswith("driver.device on rail ")]
    assert {"link.state", "network.gid", "nccl.hca"} == {each["check"] for each in marked}
    assert summary(tmp_path)["hosts"]["node3"]["link"] == "unknown"


def test_a_run_folder_that_cannot_be_written_stops_the_run_before_any_host(tmp_path: Path) -> None:
    write_inventory(tmp_path, STOP, "nothing")
    (tmp_path / "taken").write_text("")
    touch = {"name": "Touch", "ansible.builtin.copy": {"dest": str(tmp_path / "touched"), "content": "x", "mode": "0600"}}
    done = run(tmp_path, [stage("link", [touch])], "-e", f"rdma_run_dir={tmp_path}/taken")
    assert done.returncode == 2
    assert f"rdma_run_dir is {tmp_path}/taken, and the control node cannot write the run folder there" in " ".join(
        (done.stdout + done.stderr).split()
    )
    assert not (tmp_path / "touched").exists()


def test_what_it_prints_gives_no_orders_to_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    callback = runpy.run_path(str(Path(CALLBACKS) / "rdma_summary.py"))["CallbackModule"]()
    printed: list[str] = []
    monkeypatch.setattr(callback._display, "display", lambda text, **_more: printed.append(text))
    callback._say("pairs: rail\x1b[2K\x9b1m 1 of 2\nsecond\tline\u2028third")
    assert printed == ["pairs: rail?[2K?1m 1 of 2\nsecond\tline\nthird"]


def test_a_run_ends_with_its_page(tmp_path: Path) -> None:
    write_inventory(tmp_path, STOP, ERROR)
    done = run(tmp_path, [stage("link", [FACTS, GATE])])
    page = (tmp_path / "artifacts/latest").resolve() / "report.html"
    assert f"Report: {page}" in done.stdout
    assert "Not good: 1 error on 1 host or plane" in page.read_text(encoding="utf-8")
    assert len((tmp_path / "artifacts/history.jsonl").read_text().splitlines()) == 1


def test_a_page_that_cannot_be_written_changes_nothing(tmp_path: Path) -> None:
    write_inventory(tmp_path, REPORT, "nothing")
    (tmp_path / "artifacts/history.jsonl").mkdir(parents=True)
    done = run(tmp_path, [stage("link", [FACTS, GATE])])
    assert done.returncode == 0, done.stdout
    words = " ".join(f"{done.stdout} {done.stderr}".split())
    assert words.count("report.html could not be written: IsADirectoryError") == 1
    assert summary(tmp_path)["outcome"] == "clean"
