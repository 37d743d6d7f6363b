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
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.withheld import Withheld
from tests.unit.builders.hosts import lab_facts, lab_intent, lab_rails

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
        {"name": "Show", "ansible.builtin.debug": {"msg": "change={{ decided.plan.change }} flags={{ decided.plan.flags | join(',') }}"}},
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
    assert "change=install flags=--without-fw-update" in output


RELOAD = {"needed": True, "live": True, "why": "another is on disk"}
REBOOT: dict[str, Any] = {"needed": True, "withheld": None, "drainable": False, "build_first": None, "why": "an older kernel runs"}
RECORDED: list[Withheld] = []
NEITHER: dict[str, Any] = {**REBOOT, "needed": False, "live": False, "why": ""}


@pytest.mark.parametrize(
    ("decided", "drained", "expected"),
    [
        ({"reload": RELOAD, "reboot": NEITHER}, False, {"reload": "another is on disk", "reboot": ""}),
        ({"reload": {**RELOAD, "live": False}, "reboot": REBOOT}, False, {"reload": "", "reboot": "an older kernel runs"}),
        ({"reload": NEITHER, "reboot": {**REBOOT, "withheld": "a job", "drainable": True}}, False, {"reload": "", "reboot": ""}),
        ({"reload": NEITHER, "reboot": {**REBOOT, "withheld": "a job", "drainable": True}}, True, {"reload": "", "reboot": REBOOT["why"]}),
        ({"reload": NEITHER, "reboot": {**REBOOT, "withheld": "unsigned"}}, True, {"reload": "", "reboot": ""}),
        ({"reload": NEITHER, "reboot": NEITHER}, True, {"reload": "", "reboot": ""}),
    ],
)
def test_why_a_host_is_started_again(decided: dict[str, Any], drained: bool, expected: dict[str, str]) -> None:
    assert driver_plan.restarts(decided, reboot_drained=drained) == expected


SWITCH: dict[str, Any] = {"needed": False, "withheld": None, "reason": "", "packages": {}, "dependants": {}}


def run(monkeypatch: pytest.MonkeyPatch, reload: Any = None, reboot: Any = None, **options: Any) -> dict[str, Any]:
    """What the action returns for a host whose driver has to be reloaded, or another one."""
    decided = {"refused": None, "change": "none", "why": "x", "switch": SWITCH, "reload": reload or RELOAD, "reboot": reboot or NEITHER}
    action = driver_plan.ActionModule.__new__(driver_plan.ActionModule)
    action.variables = {"inventory_hostname": "node1", "ansible_facts": {"rdma": lab_facts()}}
    monkeypatch.setattr(action, "intent_of", {"node1": lab_intent()}.get, raising=False)
    monkeypatch.setattr(driver_plan.ActionModule, "all_facts", lab_facts())
    action.folder = RunFolder(Path("unused"))
    RECORDED.clear()
    monkeypatch.setattr(driver_plan, "record", lambda _folder, each: RECORDED.append(each))
    monkeypatch.setattr(driver_plan, "plan", lambda _intent, _facts, **_options: decided)
    given = {
        "reload_allowed": False,
        "reboot_allowed": False,
        "reboot_drained": False,
        "group": None,
        "switch_allowed": False,
        "removal": None,
    }
    given |= options
    return action.work(given)


def test_what_is_withheld_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    done = run(monkeypatch, group="again")
    assert "add_group" not in done
    assert done["ansible_facts"] == {
        "driver_reload_required": True,
        "driver_switch_required": False,
        "reboot_required": False,
        "driver_reload_reason": "another is on disk",
    }
    assert [(each.host, each.effect, each.reason) for each in RECORDED] == [("node1", "driver_reload", "another is on disk")]
    run(monkeypatch, NEITHER, {**REBOOT, "withheld": "a job"}, group="again", reboot_allowed=True)
    assert [(each.effect, each.reason) for each in RECORDED] == [("reboot", "an older kernel runs (a job)")]


def test_what_is_allowed_joins_the_group(monkeypatch: pytest.MonkeyPatch) -> None:
    done = run(monkeypatch, group="again", reload_allowed=True)
    assert done["add_group"] == "again"
    assert done["ansible_facts"] == {"reboot_required": False, "driver_switch_required": False}
    assert "add_group" not in run(monkeypatch, reload_allowed=True)


def test_a_kernel_for_which_the_driver_is_still_to_be_built_is_not_booted_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = {**REBOOT, "build_first": "6.1.0-11-amd64"}
    done = run(monkeypatch, NEITHER, waiting, group="again", reboot_allowed=True)
    assert (done["add_group"], done["reboot_reason"]) == ("again", "")
    assert run(monkeypatch, NEITHER, REBOOT, reboot_allowed=True)["reboot_reason"] == REBOOT["why"]


@pytest.mark.parametrize(("arguments", "status"), [((), 2), (("--check",), 0)])
def test_a_refused_plan(tmp_path: Path, arguments: tuple[str, ...], status: int) -> None:
    refused, output = decide(tmp_path, BUNDLE, *arguments, secure_boot=True)
    assert refused == status, output
    assert ("node1: refused. Secure Boot is on" in output) is (status != 0)
    assert ("change=install" in output) is (status == 0)
