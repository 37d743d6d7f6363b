# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Two hosts of a plane that are set up by one run, under real Ansible: the role's own tasks, with stand-ins for its modules."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[4]
#: Each stand-in writes down its call. n2 is withheld as long as its plan does not know that n1 has been read with the files of this role.
STAND_IN = """
import json
from pathlib import Path
from ansible.plugins.action import ActionBase

class ActionModule(ActionBase):
    def run(self, tmp=None, task_vars=None):
        folder, host, name = Path(task_vars["record"]), task_vars["inventory_hostname"], self._task.action
        with (folder / "calls").open("a") as calls:
            calls.write(json.dumps([host, name]) + "\\n")
        given = self._task.args
        if name == "observe_stub":
            (folder / f"read-{host}").write_text("")
            return {}
        if name == "plan_stub":
            known = {"n1": "read"} if (folder / "read-n1").exists() else {}
            return {"flavor": "debian", "starts_at_install": False, "instances": [], "sharp": False, "busy": {}, "ports": known}
        if name == "run_stub":
            foreign = host == "n2" and not given["ports"]
            withheld = {kind: {} for kind in ("restart", "takeover", "partition_change", "settings_change", "stop")}
            withheld["takeover"] = {"a": ["n1 runs an opensm that this role did not configure"]} if foreign else {}
            changes = not foreign and task_vars["changes"]
            return {"changed": changes, "withheld": withheld, "losses": {}, "foreign": []}
        return {}
"""
STUBS = {"subnet_manager_plan": "plan_stub", "subnet_manager": "run_stub", "observe": "observe_stub", "withheld": "withheld_stub"}


def play(folder: Path, *words: str, changes: bool = True) -> list[tuple[str, str]]:
    """The calls of the stand-ins: host and name."""
    role = folder / "roles/subnet_manager"
    shutil.copytree(ROOT / "roles/subnet_manager", role)
    shutil.rmtree(role / "meta")
    for file in (role / "tasks").glob("*.yml"):
        lines = file.read_text().splitlines(keepends=True)
        file.write_text("".join(f"  {STUBS.get(name, name)}:\n" if (name := _module(line)) else line for line in lines))
    (role / "tasks/main.yml").unlink()
    (folder / "action_plugins").mkdir()
    for name in STUBS.values():
        (folder / f"action_plugins/{name}.py").write_text(STAND_IN)
    include = {"name": "Run", "ansible.builtin.include_role": {"name": "subnet_manager", "tasks_from": "opensm.yml"}}
    variables = {"record": str(folder), "changes": changes, "ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    book = [{"name": "Two hosts", "hosts": "all", "gather_facts": False, "vars": variables, "tasks": [include]}]
    (folder / "play.yml").write_text(yaml.safe_dump(book))
    argv = [str(Path(sys.executable).parent / "ansible-playbook"), "-i", "n1,n2,n3,", "play.yml", "--limit", "n1,n2", *words]
    environment = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".venv/collections"), "ANSIBLE_NOCOLOR": "1"}
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=120, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    calls = map(json.loads, (folder / "calls").read_text().splitlines())
    return [(str(host), str(name)) for host, name in calls]


def _module(line: str) -> str | None:
    name = line.strip().removeprefix("rdma.cluster.")
    return name[:-1] if line.startswith("  rdma.cluster.") and name.endswith(":") else None


def of(calls: list[tuple[str, str]], host: str) -> list[str]:
    return [name for each, name in calls if each == host]


def test_the_second_host_sees_that_the_first_one_is_ours(tmp_path: Path) -> None:
    calls = play(tmp_path)
    assert of(calls, "n1") == ["plan_stub", "run_stub", "observe_stub"]
    assert of(calls, "n2") == ["plan_stub", "run_stub", "plan_stub", "run_stub", "observe_stub"]


@pytest.mark.parametrize(("words", "changes"), [(("--check",), True), ((), False)], ids=["check-mode", "nothing-changed"])
def test_a_host_that_is_withheld_for_another_reason_reports_it_at_once(tmp_path: Path, words: tuple[str, ...], changes: bool) -> None:
    calls = play(tmp_path, *words, changes=changes)
    assert of(calls, "n2") == ["plan_stub", "run_stub", "withheld_stub"]
