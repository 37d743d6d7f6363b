# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The arguments of perftest_rounds, and what it gives back."""

from __future__ import annotations

import io
import json
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils import basic

from ansible_collections.rdma.cluster.plugins.module_utils._base import command, sysroot
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._pairs import unit as pairs_unit
from tests.unit.builders.trees import write_tree

MODULE = Path(__file__).parents[4] / "plugins/modules/perftest_rounds.py"
LIST = "systemctl list-units --all --full --plain --no-legend rdma-pairs-*.service"
UNITS = "rdma-pairs-a.service loaded active running x\nrdma-pairs-b.service loaded active running x\n"


class Host:
    """A stand-in for systemd: what it answers to each command; fails on any other."""

    def __init__(self, **answers: str) -> None:
        self._answers = answers
        self.ran: list[str] = []

    def run(self, argv: Any, *, timeout_seconds: float = 30.0) -> command.Completed:
        self.ran.append(" ".join(argv))
        return command.Completed(tuple(argv), 0, self._answers[self.ran[-1]], "")


def call(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, systemd: Host | None = None, **options: Any
) -> tuple[int, dict[str, Any]]:
    """Run the module as Ansible does: options in, exit status and JSON out."""
    arguments = json.dumps({"ANSIBLE_MODULE_ARGS": options}).encode()
    monkeypatch.setattr(basic, "_ANSIBLE_ARGS", arguments, raising=False)
    monkeypatch.setattr(basic, "_ANSIBLE_PROFILE", "legacy", raising=False)
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    monkeypatch.setattr(command, "SubprocessRunner", lambda: systemd)
    with pytest.raises(SystemExit) as caught:
        runpy.run_path(str(MODULE), run_name="__main__")
    code = caught.value.code
    assert isinstance(code, int)
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("options", "missing"),
    [
        ({}, "sweep, plan, host, token"),
        ({"state": "collected"}, "sweep"),
        ({"state": "absent"}, "sweep"),
        ({"sweep": "a", "plan": "x", "host": "node1"}, "token"),
    ],
)
def test_what_each_state_needs(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, options: Any, missing: str) -> None:
    code, result = call(capsys, monkeypatch, **options)
    assert code == 1
    assert result["msg"].endswith(f"missing: {missing}"), result["msg"]


def test_stopped_without_a_name_ends_whichever_sweep_runs(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    ended = {
        f"systemctl {verb} rdma-pairs-{name}.service": text for name in "ab" for verb, text in (("is-active", "active\n"), ("stop", ""))
    }
    host = Host(**{LIST: UNITS}, **ended)
    code, result = call(capsys, monkeypatch, host, state="stopped")
    assert (code, result["changed"], result["stopped"]) == (0, True, ["a", "b"])
    assert host.ran == [LIST, *ended]


def test_stopped_where_nothing_runs_changes_nothing(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    code, result = call(capsys, monkeypatch, Host(**{LIST: ""}), state="stopped")
    assert (code, result["changed"], result["stopped"]) == (0, False, [])


def test_the_plan_and_the_token_are_not_reported_again(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    code, result = call(capsys, monkeypatch, sweep="a", plan="H4sIAAAAnoplan", host="node1", token="secret-token")
    assert code == 1
    assert "the plan is not" in result["msg"]
    assert "H4sIAAAAnoplan" not in json.dumps(result)
    assert "secret-token" not in json.dumps(result)


def test_what_is_collected_has_the_shape_that_is_documented(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(pairs_unit.PairUnit.__init__, "__kwdefaults__", {**pairs_unit.PairUnit.__init__.__kwdefaults__, "folder": tmp_path})
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "results.jsonl").write_text('{"finished": true, "reason": null}\n')
    host = Host(**{"systemctl is-active rdma-pairs-a.service": "inactive\n"})
    code, result = call(capsys, monkeypatch, host, state="collected", sweep="a")
    result.pop("invocation", None)  # The module's arguments; ansible-core 2.21 leaves it out.
    assert code == 0
    assert result == {
        "changed": False,
        "running": False,
        "finished": True,
        "reason": "",
        "next_byte": 0,
        "more": False,
        "results": [],
        "failures": [],
        "unreadable": 0,
        "counters": None,
        "seconds": None,
        "strangers": 0,
    }


JOB = "/proc/1/comm: systemd\n/proc/815/comm: slurmstepd\n/proc/815/cmdline: slurmstepd\n"


@pytest.fixture
def unit(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """The calls of a unit that can be started, each with its check mode; one that adopts a sweep if it is given ["adopts"]."""
    calls: list[Any] = []

    def start(_self: Any, *_arguments: Any, check_mode: bool, **_options: Any) -> bool:
        calls.append(check_mode)
        return "adopts" not in calls

    monkeypatch.setattr(pairs_unit.PairUnit, "start", start)
    return calls


def at(monkeypatch: pytest.MonkeyPatch, folder: Path, text: str) -> None:
    root = str(write_tree(folder, text))
    monkeypatch.setattr(sysroot, "SysRoot", lambda: SysRoot(root))


STARTED = {"sweep": "a", "plan": "x", "host": "node1", "token": "secret-token"}


@pytest.mark.parametrize("use", [(JOB, "job process 815 (slurmstepd)"), ("", "GPU processes cannot be seen")])
def test_nothing_starts_on_a_host_in_use(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, unit: list[bool], use: tuple[str, str]
) -> None:
    at(monkeypatch, tmp_path, use[0])
    code, result = call(capsys, monkeypatch, Host(), **STARTED)
    assert (code, result["started"], result["in_use"], unit) == (0, False, use[1], [True])
    code, result = call(capsys, monkeypatch, Host(), load_allowed=True, **STARTED)
    assert (code, result["started"], result["in_use"], unit) == (0, True, "", [True, False])


def test_on_an_idle_host_it_starts(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, unit: list[bool]
) -> None:
    at(monkeypatch, tmp_path, "/proc/1/comm: systemd\n")
    code, result = call(capsys, monkeypatch, Host(), **STARTED)
    assert (code, result["started"], result["in_use"], unit) == (0, True, "", [True, False])


def test_a_sweep_that_runs_is_adopted_whatever_uses_the_host(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, unit: list[Any]
) -> None:
    at(monkeypatch, tmp_path, JOB)
    unit.append("adopts")
    code, result = call(capsys, monkeypatch, Host(), **STARTED)
    assert (code, result["started"], result["in_use"]) == (0, False, "")
