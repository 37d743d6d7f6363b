# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Roles: what stands in defaults stands in argument_specs, with the same value, and the other way round."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.tools import role_pages

COLLECTION = Path(__file__).parents[2]
ROLES = sorted(path for path in (COLLECTION / "roles").iterdir() if path.is_dir())


NEEDS = "needs the intent and the facts of each host: run rdma.cluster.intent and rdma.cluster.observe before this role."


def load(path: Path) -> dict[str, Any]:
    return (yaml.safe_load(path.read_text()) or {}) if path.exists() else {}


@pytest.mark.parametrize("role", ROLES, ids=lambda path: path.name)
def test_defaults_are_the_argument_specs(role: Path) -> None:
    options = load(role / "meta/argument_specs.yml")["argument_specs"]["main"].get("options", {})
    defaults = load(role / "defaults/main.yml")
    assert {name: spec.get("default") for name, spec in options.items() if "default" in spec} == defaults


@pytest.mark.parametrize("role", ROLES, ids=lambda path: path.name)
def test_the_readme_is_generated_from_the_argument_specs(role: Path) -> None:
    readme = (role / "README.md").read_text(encoding="utf-8")
    assert readme == role_pages.render(role), "run `python tests/tools/docs.py`"
    for name in load(role / "defaults/main.yml"):
        assert f"| `{name}` |" in readme


@pytest.mark.parametrize("role", ROLES, ids=lambda path: path.name)
def test_private_variables_carry_the_role_s_name(role: Path) -> None:
    for name in load(role / "vars/main.yml"):
        assert name.startswith(f"__{role.name}_")


@pytest.mark.parametrize("role", ROLES, ids=lambda path: path.name)
def test_each_file_of_tasks_is_taken_in_somewhere(role: Path) -> None:
    """By its role's tasks and handlers, or by a playbook's tasks_from, which may leave the ending out."""
    takers = [*role.glob("tasks/*.yml"), *role.glob("handlers/*.yml"), *COLLECTION.glob("playbooks/**/*.yml")]
    taken = set(re.findall(r"(?:_tasks|tasks_from): ([\w-]+)(?:\.yml)?$", "\n".join(path.read_text() for path in takers), re.MULTILINE))
    assert {path.stem for path in role.glob("tasks/*.yml")} - {"main"} <= taken


#: Roles for switches, which have no intent: their plan comes from the intents of the hosts, and its absence fails the first task.
OF_SWITCHES = ("frr",)


@pytest.mark.parametrize("role", [path for path in ROLES if path.name not in OF_SWITCHES], ids=lambda path: path.name)
def test_a_role_requires_the_intent_before_anything_else(role: Path) -> None:
    """Once for all hosts: the intent of the first host is there or the play has not read any."""
    first = yaml.safe_load((role / "tasks/main.yml").read_text())[0]
    required = {"that": "ansible_facts.rdma_intent is defined", "fail_msg": f"{{{{ ansible_role_name }}}} {NEEDS}", "quiet": True}
    assert first == {"name": "Check that the intent was read", "ansible.builtin.assert": required, "run_once": True}
    description = " ".join(load(role / "meta/argument_specs.yml")["argument_specs"]["main"]["description"])
    assert {"C(ansible_facts.rdma_intent)", "M(rdma.cluster.intent)", "M(rdma.cluster.observe)"} <= set(
        re.findall(r"[CM]\(.*?\)", description)
    )


def test_a_role_without_the_intent_fails_with_one_sentence(tmp_path: Path) -> None:
    """The role pairs: without an intent its plan would be empty, and nothing measured would look like success."""
    play = tmp_path / "play.yml"
    play.write_text("[{hosts: all, gather_facts: false, connection: local, roles: [rdma.cluster.pairs]}]\n")
    argv = [str(Path(sys.executable).parent / "ansible-playbook"), "-i", "node1,node2,", str(play)]
    collections = {"ANSIBLE_COLLECTIONS_PATH": str(COLLECTION / ".venv/collections"), "ANSIBLE_HOME": str(tmp_path / "home")}
    environment = {**os.environ, **collections, "ANSIBLE_NOCOLOR": "1"}
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False, env=environment)
    assert done.returncode == 2, done.stdout
    assert re.findall(r'"msg": "(.*?)"', done.stdout) == [f"rdma.cluster.pairs {NEEDS}"]
    assert "Compare the ports" not in done.stdout
