# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A build that is waited for, from a module that plays a script."""

from __future__ import annotations

import base64
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.errors import AnsibleConnectionFailure

from ansible_collections.rdma.cluster.plugins.action import driver_build, ofed_install
from ansible_collections.rdma.cluster.plugins.plugin_utils._driver import build_action
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder

GONE = AnsibleConnectionFailure("no route to host")
RUNS = {"running": True, "started": True, "note": "the first was cut off", "progress": "Installing x...", "seconds": None}
GOOD = {"running": False, "finished": True, "started": False, "note": None, "changed": True, "rc": 0}
BAD = {
    "running": False,
    "finished": True,
    "failed": True,
    "rc": 1,
    "msg": "It failed.\na.c:1: error: x",
    "log": ["the end"],
    "log_files": ["/l/install.log", "/l/make.log"],
}


class Run:
    """The action with a clock that only the module and sleeping move."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, script: list[Any], *, check_mode: bool = False) -> None:
        self.folder, self.now, self.script = folder, 0.0, list(script)
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.lines: list[str] = []
        self.files = {"/l/install.log": "Installing x...\n", "/l/make.log": "a.c:1: error: x\n"}
        self.action = ofed_install.ActionModule.__new__(ofed_install.ActionModule)
        self.action.folder = RunFolder(folder)
        self.action.variables = {"inventory_hostname": "node7"}
        self.action._task = SimpleNamespace(check_mode=check_mode)
        self.action._display = SimpleNamespace(display=self.lines.append)
        monkeypatch.setattr(self.action, "_execute_module", self._module, raising=False)
        monkeypatch.setattr(build_action, "time", SimpleNamespace(monotonic=lambda: self.now, sleep=self._sleep))

    def _sleep(self, seconds: float) -> None:
        self.now += seconds

    def _module(self, module_name: str, module_args: dict[str, Any], task_vars: dict[str, Any]) -> dict[str, Any]:
        if module_name == "ansible.builtin.slurp":
            text = self.files.get(module_args["src"])
            return {"failed": True} if text is None else {"content": base64.b64encode(text.encode()).decode()}
        assert module_name == "rdma.cluster.ofed_install"
        self.asked.append((module_name, module_args))
        self.now += module_args["poll_seconds"]
        answer = self.script.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return dict(answer)

    def work(self, **options: Any) -> dict[str, Any]:
        given = {
            "archive": "/a.tgz",
            "checksum": None,
            "timeout_seconds": 600,
            "poll_seconds": 10,
            "collect": False,
            "host": None,
            **options,
        }
        result: dict[str, Any] = self.action.work(given)
        assert not self.script
        return result


def test_it_starts_once_and_waits_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(tmp_path, monkeypatch, [RUNS, *[{**RUNS, "started": False, "seconds": 130.0}] * 7, GOOD])
    result = run.work()
    assert [arguments["collect"] for _name, arguments in run.asked] == [False] + [True] * 8
    assert run.asked[0][1] == {"host": "node7", "archive": "/a.tgz", "timeout_seconds": 600, "poll_seconds": 10, "collect": False}
    assert (result["changed"], result["started"], result["note"], result["rc"]) == (True, True, "the first was cut off", 0)
    assert run.lines == ["  … node7: the OFED installer is running, 2 min: Installing x..."] * 2


@pytest.mark.parametrize("trouble", [GONE, {"unreachable": True, "msg": "gone"}, {"failed": True, "msg": "crash"}])
def test_one_question_without_an_answer_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trouble: Any) -> None:
    assert Run(tmp_path, monkeypatch, [RUNS, trouble, GOOD]).work()["rc"] == 0


def test_a_host_that_is_lost_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = Run(tmp_path, monkeypatch, [RUNS, GONE, GONE]).work()
    assert (result["failed"], result["msg"], result["stored"]) == (True, "node7: no route to host", None)


def test_a_refusal_is_not_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = Run(tmp_path, monkeypatch, [{"failed": True, "msg": "its sha256 is 0"}]).work()
    assert (result["msg"], result["started"]) == ("node7: its sha256 is 0", False)


def test_the_logs_of_a_failure_come_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = Run(tmp_path, monkeypatch, [RUNS, BAD]).work()
    stored = tmp_path / "driver/node7.log"
    assert stored.read_text() == "==== /l/install.log\nInstalling x...\n\n==== /l/make.log\na.c:1: error: x\n"
    assert result["msg"] == f"node7: It failed.\na.c:1: error: x\nThe full log is {stored} on the control node."
    assert (result["failed"], result["stored"], "log" in result, result["started"]) == (True, str(stored), False, True)


def test_a_log_that_cannot_be_read_is_replaced_by_what_was_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(tmp_path, monkeypatch, [BAD])
    run.files = {}
    run.work()
    assert (tmp_path / "driver/node7.log").read_text() == "the end\n"


def test_a_unit_that_outlives_its_limit_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = Run(tmp_path, monkeypatch, [RUNS] * 3).work(timeout_seconds=60, poll_seconds=120)
    assert "it is still running 6 minutes after its start" in result["msg"]


def test_check_mode_asks_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Run(tmp_path, monkeypatch, [{**RUNS, "changed": True}], check_mode=True).work()["changed"] is True


def test_both_actions_share_what_is_common() -> None:
    for action in (ofed_install.ActionModule, driver_build.ActionModule):
        assert set(build_action.BuildAction.COMMON) <= set(action.ARGUMENTS)
