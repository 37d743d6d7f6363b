# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A plan that is refused fails its task, and in check mode only says so: with real Ansible, and the facts of a lab machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.rdma.cluster.plugins.action import driver_plan
from tests.unit.hosts import lab_facts, lab_rails

ROOT = Path(__file__).parents[4]
BUNDLE: dict[str, Any] = {
    "stack": "mlnx_ofed",
    "version": "24.10-1.1.4.0",
    "source": {"host_file": "/srv/ofed.tgz"},
    "checksum": f"sha256:{'0' * 64}",
}


def decide(folder: Path, driver: dict[str, Any], *arguments: str, **stack: Any) -> tuple[int, str]:
    """ansible-playbook's exit status and output, for facts that were read before the decision."""
    tree = lab_facts()
    tree["stack"].update(stack)
    tasks = [
        {"name": "Read the intent", "rdma.cluster.intent": None},
        {"name": "Take the facts for read", "ansible.builtin.set_fact": {"rdma": tree, "cacheable": True}},
        {"name": "Decide", "rdma.cluster.driver_plan": {"reboot_allowed": True}, "register": "decided"},
        {"name": "Tell", "ansible.builtin.debug": {"msg": "change={{ decided.plan.change }} flags={{ decided.plan.flags | join(',') }}"}},
    ]
    (folder / "play.yml").write_text(yaml.safe_dump([{"name": "Test", "hosts": "all", "gather_facts": False, "tasks": tasks}]))
    host = {"ansible_connection": "local", "rdma_rails": lab_rails(), "rdma_driver": driver}
    (folder / "hosts.yml").write_text(yaml.safe_dump({"all": {"hosts": {"node1": {**host, "ansible_python_interpreter": sys.executable}}}}))
    environment = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".venv/collections"), "ANSIBLE_NOCOLOR": "1"}
    argv = [str(Path(sys.executable).parent / "ansible-playbook"), "-i", "hosts.yml", "play.yml", *arguments]
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=120, check=False, env=environment)
    return done.returncode, done.stdout + done.stderr


def test_a_plan(tmp_path: Path) -> None:
    status, output = decide(tmp_path, BUNDLE)
    assert status == 0, output
    assert "change=install flags=--without-fw-update,--force" in output


@pytest.mark.parametrize(
    ("reload", "reboot", "live", "joins"),
    [(True, False, True, True), (False, True, False, True), (False, False, True, False), (True, False, False, False)],
)
def test_a_host_joins_the_group_only_if_what_it_needs_is_allowed(reload: bool, reboot: bool, live: bool, joins: bool) -> None:
    action = driver_plan.ActionModule.__new__(driver_plan.ActionModule)
    decided = {"reload": {"needed": True, "live": live}, "reboot": {"needed": not live}}
    options = {"reload_allowed": reload, "reboot_allowed": reboot, "group": "again"}
    assert action._group(decided, options) == ({"add_group": "again", "parent_groups": []} if joins else {})
    assert action._group(decided, {**options, "group": None}) == {}


@pytest.mark.parametrize(("arguments", "status"), [((), 2), (("--check",), 0)])
def test_a_refused_plan(tmp_path: Path, arguments: tuple[str, ...], status: int) -> None:
    refused, output = decide(tmp_path, BUNDLE, *arguments, secure_boot=True)
    assert refused == status, output
    assert ("node1: refused. Secure Boot is on" in output) is (status != 0)
    assert ("change=install" in output) is (status == 0)
