# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How often a host is read, with real Ansible on this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from ansible_collections.rdma.cluster.plugins.action import observe
from tests.unit.builders import blind_hosts, blind_trees
from tests.unit.builders.hosts import lab_intent, lab_rails, run_with

ROOT = Path(__file__).parents[4]


def reads(folder: Path, *arguments: dict[str, Any] | None, **variables: Any) -> list[bool]:
    """Whether each observe in a row has read the host."""
    tasks: list[dict[str, Any]] = [{"name": "Read the intent", "rdma.cluster.intent": None}]
    for number, each in enumerate(arguments):
        tasks.append({"name": "Read", "rdma.cluster.observe": each, "register": f"read{number}"})
        tasks.append({"name": "Show", "ansible.builtin.debug": {"var": f"read{number}.read"}})
    (folder / "play.yml").write_text(yaml.safe_dump([{"name": "Test", "hosts": "all", "gather_facts": False, "tasks": tasks}]))
    host = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable, "rdma_rails": lab_rails(), **variables}
    (folder / "hosts.yml").write_text(yaml.safe_dump({"all": {"hosts": {"node1": host}}}))
    environment = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".venv/collections"), "ANSIBLE_NOCOLOR": "1"}
    argv = [str(Path(sys.executable).parent / "ansible-playbook"), "-i", "hosts.yml", "play.yml"]
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=120, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return [": true" in line for line in done.stdout.splitlines() if ".read" in line]


@pytest.mark.parametrize(
    ("arguments", "variables", "expected"),
    [
        ((None, None), {}, [True, False]),
        ((None, {"max_age_seconds": 0}, None), {}, [True, True, False]),
        ((None, None), {"rdma_facts_max_age_seconds": 0}, [True, True]),
        ((None, {"max_age_seconds": 60}), {"rdma_facts_max_age_seconds": 0}, [True, False]),
    ],
)
def test_when_a_host_is_read(tmp_path: Path, arguments: Any, variables: dict[str, Any], expected: list[bool]) -> None:
    assert reads(tmp_path, *arguments, **variables) == expected
    stored = json.loads((tmp_path / "artifacts/latest/facts/node1.json").read_text())
    assert stored["stack"]["kernel"] == os.uname().release


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"schema": 99}, "schema: expected 1, got 99"),
        ({"boot": "x"}, "boot: expected a dictionary, got 'x'"),
        ({"netdevs": {"ens1": {}}}, "netdevs.ens1.mac: missing"),
        # The door cannot know that a check needs it; the digest does.
        ({"qos": None, "stack": None}, "FactsError at plugin_utils/_facts/typed.py"),
    ],
)
def test_facts_that_make_no_sense_are_not_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], words: str
) -> None:
    """The stage's evidence says that this host is unknown, and which value it is."""
    host = blind_trees.hosts(tmp_path / "trees")["roce"]
    tree = {**blind_hosts.read(host).facts, **change}
    action = observe.ActionModule.__new__(observe.ActionModule)
    action.folder = run_with(tmp_path / "20260101T000000Z-1", lab_intent())
    action.variables = {"inventory_hostname": "node1", "rdma_stage": "link", "ansible_facts": {}}
    action._templar = SimpleNamespace(template=lambda value: value)
    monkeypatch.setattr(action, "module", lambda *_names, **_options: {"ansible_facts": {"rdma": tree}}, raising=False)
    done = action.work({"max_age_seconds": None})
    assert (done["failed"], done["read"], "ansible_facts" in done) == (True, False, False)
    assert words in done["msg"]
    assert not (action.folder.path / "facts/node1.json").exists()
    (finding,) = action.folder.read_findings("link", "node1")
    assert (finding.check, finding.status) == ("host.facts", "unknown")
    assert words in finding.observed


def test_a_job_without_a_gpu_is_a_user_by_its_queue_pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The digest of a host has no queue pairs, so that a role that must not disturb it needs the words."""
    qps = [{"device": "mlx5_0", "port": 1, "pid": 4711, "name": "osu_bw", "count": 2}]
    facts = blind_hosts.read(blind_trees.hosts(tmp_path / "trees")["roce"]).facts
    tree: dict[str, Any] = {**facts, "load": {"gpu_processes": [], "jobs": [], "qps": qps, "qps_error": None}}
    action = observe.ActionModule.__new__(observe.ActionModule)
    action.variables = {"inventory_hostname": "node1", "ansible_host": "192.0.2.1", "ansible_facts": {}}
    action.folder = run_with(tmp_path / "20260101T000000Z-1", lab_intent())
    action._templar = SimpleNamespace(template=lambda value: value)
    monkeypatch.setattr(observe.ActionModule, "module", lambda _self, _name, **_options: {"ansible_facts": {"rdma": tree}})
    reported = action.work({"max_age_seconds": 0.0})
    assert reported["users"] == "2 queue pairs of osu_bw (pid 4711) on mlx5_0/1"
    assert "qps" not in reported["ansible_facts"]["rdma"]["load"]
    tree["load"] = {"gpu_processes": [], "jobs": [], "qps": None, "qps_error": "no rdma"}
    assert action.work({"max_age_seconds": 0.0})["users"] == "queue pairs cannot be read (no rdma)"
    tree["load"] = {"gpu_processes": [], "jobs": [], "qps": [], "qps_error": None}
    assert action.work({"max_age_seconds": 0.0})["users"] == ""
