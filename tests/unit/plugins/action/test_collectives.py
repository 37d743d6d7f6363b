# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The action with a module that plays a cluster: who is run, what is written, and what happens when the launching host is lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.errors import AnsibleConnectionFailure

from ansible_collections.rdma.cluster.plugins.action import collectives
from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._collectives.gate import CollectiveGate
from ansible_collections.rdma.cluster.plugins.plugin_utils._collectives.plan import ALONE_FOLDER, BLOCKED, LADDER
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder
from tests.unit.builders.collective_hosts import HOSTS, known
from tests.unit.builders.known import known_of

Says = Callable[[Sequence[str]], str]


def answer(hosts: Sequence[str], status: str) -> dict[str, Any]:
    """What rdma.cluster.nccl_test returns."""
    finding = Finding("collectives", "collective.busbw", hosts[0], "a run", status, "24 GB/s", "")
    return {"findings": [finding.to_dict()], "busbw_gbytes_per_s": 24.0, "seconds": 3.0, "argv": ["mpirun"], "log": None}


class Stage:
    """The action in a run folder of four hosts."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch, *, check_mode: bool = False, **settings: Any) -> None:
        self.folder = RunFolder(path)
        self.calls: list[dict[str, Any]] = []
        self.says: Says = lambda _hosts: "ok"
        self.in_use = ""
        self.known = known(repeats=2, **settings)
        for host, each in self.known.items():
            self.folder.write_json(self.folder.host_file("intent", host), each["intent"])
            self.folder.write_json(self.folder.host_file("facts", host), {})
        monkeypatch.setattr(collectives, "measurable_hosts", lambda _folder, _stage: known_of(self.known))
        monkeypatch.setattr(collectives, "comparable", lambda _facts: self.known[self.action.host]["facts"])
        self.action = collectives.ActionModule.__new__(collectives.ActionModule)
        self.action.folder = self.folder
        self.action._task = SimpleNamespace(check_mode=check_mode)
        self.action._templar = SimpleNamespace(template=lambda value: value)
        self.action.variables = {
            "inventory_hostname": "node1",
            "hostvars": {host: {} for host in HOSTS},
            "ansible_play_hosts": list(HOSTS),
        }
        monkeypatch.setattr(self.action, "module", self._module, raising=False)

    def _measurable(self) -> dict[str, dict[str, Any]]:
        return {host: {**each, "facts": from_dict(each["facts"])} for host, each in self.known.items()}

    def _module(self, name: str, **arguments: Any) -> dict[str, Any]:
        assert name == "nccl_test"
        self.calls.append(arguments)
        if self.in_use:
            return {"ran": False, "in_use": self.in_use, "argv": [], "variables": []}
        hosts = list(arguments["expected"]["names"])
        status = self.says(hosts)
        if status == "lost":
            raise AnsibleConnectionFailure("no route to host")
        return {"failed": True, "msg": "no such file"} if status == "failed" else answer(hosts, status)

    def ask(self, scope: str, **options: Any) -> dict[str, Any]:
        return self.action.work({"scope": scope, "measure": "auto", "launcher": None, **options})

    def ran(self) -> list[list[str]]:
        return [list(call["expected"]["names"]) for call in self.calls]


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    return Stage(tmp_path, monkeypatch)


def test_hosts_at_work_are_left_out_unless_load_is_allowed(stage: Stage) -> None:
    busy = {"gpu_processes": [{"pid": 4711, "name": "python3"}], "jobs": []}
    stage.known["node2"]["facts"]["load"] = stage.known["node3"]["facts"]["load"] = busy
    stage.action.variables["hostvars"]["node3"]["rdma_load_allowed"] = True
    assert stage.ask("plan")["hosts"] == ["node1", "node3", "node4"]
    assert stage.folder.read_json(BLOCKED) == {"node2": "GPU process 4711 (python3)"}


BUSY = {"gpu_processes": [{"pid": 4711, "name": "python3"}], "jobs": []}


def test_a_host_that_began_to_work_is_not_run_and_does_not_fail(stage: Stage) -> None:
    stage.ask("plan")
    stage.in_use = "job process 815 (slurmstepd)"
    assert stage.ask("alone") == {"run": False, "msg": "node1 was not run: node1 is in use: job process 815 (slurmstepd)"}
    assert [call["load_allowed"] for call in stage.calls] == [False]
    stage.in_use = ""
    stage.known["node2"]["facts"]["load"] = BUSY
    assert stage.ask("choose") == {"hosts": ["node3", "node4"], "launcher": "node3"}
    blocked = CollectiveGate(stage.folder, stage.action._whole(), False, len(HOSTS)).blocked
    assert blocked == {"node1": "job process 815 (slurmstepd)", "node2": "GPU process 4711 (python3)"}
    stage.action.variables["hostvars"]["node2"]["rdma_load_allowed"] = True
    (stage.folder.path / f"{ALONE_FOLDER}/node2.refused.json").unlink()
    assert stage.ask("choose")["hosts"] == ["node2", "node3", "node4"]


def test_a_launcher_that_began_to_work_ends_the_ladder(stage: Stage) -> None:
    stage.ask("plan")
    stage.in_use = "GPU process 4711 (python3)"
    result = stage.ask("ladder")
    assert (result["runs"], result["msg"]) == (0, "node1 is in use: GPU process 4711 (python3)")
    assert stage.folder.read_json(LADDER)["problem"] == result["msg"]
    assert len(stage.calls) == 1


@pytest.mark.parametrize(("measure", "hosts"), [("true", HOSTS), (False, [])])
def test_who_asks_for_it_is_obeyed(stage: Stage, measure: Any, hosts: list[str]) -> None:
    assert stage.ask("plan", measure=measure)["hosts"] == hosts


def test_what_is_no_truth_value_puts_no_load_on_a_fabric(stage: Stage) -> None:
    with pytest.raises(TypeError, match="not a valid boolean"):
        stage.ask("plan", measure="perhaps")


def test_a_host_alone_is_run_without_a_launcher(stage: Stage) -> None:
    assert stage.ask("alone")["status"] == "well"
    assert [(call["launcher"], call["gpus"]) for call in stage.calls] == [("none", 2)]
    assert stage.folder.read_json(f"{ALONE_FOLDER}/node1.json")["hosts"] == ["node1"]


def test_one_gpu_alone_shows_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(tmp_path, monkeypatch, gpus=1)
    assert (stage.ask("alone"), stage.calls) == ({"run": False}, [])


def test_those_that_are_well_alone_climb_and_the_first_of_them_launches(stage: Stage) -> None:
    stage.ask("plan")
    stage.folder.write_json(f"{ALONE_FOLDER}/node1.json", {"status": "failed"})
    stage.action.variables["ansible_play_hosts"].remove("node3")
    assert stage.ask("choose") == {"hosts": ["node2", "node4"], "launcher": "node2"}


def test_the_ladder_is_climbed_and_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(tmp_path, monkeypatch, also=["alltoall"])
    stage.ask("plan")
    done = stage.ask("ladder", launcher="node1")
    assert stage.ran() == [HOSTS[:2], HOSTS, HOSTS, HOSTS]
    assert [call["operation"] for call in stage.calls] == ["all_reduce", "all_reduce", "all_reduce", "alltoall"]
    assert (done["runs"], done["well"]) == (4, HOSTS)
    ladder = stage.folder.read_json(LADDER)
    assert (ladder["ended"], ladder["launcher"], len(ladder["also"])) == (True, "node1", 1)


def test_a_slow_host_is_in_the_words_of_the_task(stage: Stage) -> None:
    stage.says = lambda hosts: "error" if "node4" in hosts else "ok"
    stage.ask("plan")
    assert stage.ask("ladder")["msg"] == "3 hosts are well together after 9 runs; node4: fails or is slow with each of two good hosts."


@pytest.mark.parametrize(("how", "why"), [("lost", "node1: no route to host"), ("failed", "node1: no such file")])
def test_a_launching_host_that_is_lost_breaks_the_ladder_off_and_what_was_run_stays(stage: Stage, how: str, why: str) -> None:
    stage.says = lambda hosts: how if len(hosts) == 4 else "ok"
    stage.ask("plan")
    assert "failed" not in stage.ask("ladder")
    ladder = stage.folder.read_json(LADDER)
    assert (ladder["ended"], ladder["problem"], ladder["well"]) == (False, why, HOSTS[:2])


def test_what_a_host_says_of_a_failure_cannot_write_on_the_terminal(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    evil = "no route\x1b]0;title\x07\n  ok node1"
    stage.ask("plan")

    def lost(*_words: Any, **_arguments: Any) -> dict[str, Any]:
        raise AnsibleConnectionFailure(evil)

    for answer in (lost, lambda *_words, **_arguments: {"failed": True, "msg": evil}):
        monkeypatch.setattr(stage.action, "module", answer)
        assert stage.ask("ladder")["msg"] == "node1: no route?]0;title?   ok node1"
    monkeypatch.setattr(stage.action, "module", lambda *_words, **_arguments: {"in_use": evil})
    assert str(stage.ask("ladder")["msg"]).isprintable()


@pytest.mark.parametrize(
    "change",
    [
        {"findings": None}, {"findings": [{}]}, {"findings": ["x"]}, {"findings": 5}, {"busbw_gbytes_per_s": "24"}, {"argv": None},
        {"busbw_gbytes_per_s": float("nan")}, {"busbw_gbytes_per_s": float("inf")}, {"busbw_gbytes_per_s": True}, {"seconds": None},
        {"seconds": -1.0}, {"seconds": 10**30},
    ],
    ids=str,
)  # fmt: skip
def test_an_answer_that_makes_no_sense_ends_the_ladder_and_names_the_launcher(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]
) -> None:
    stage.ask("plan")
    monkeypatch.setattr(stage.action, "module", lambda *_words, **_arguments: {**answer(HOSTS, "ok"), **change})
    assert stage.ask("ladder")["msg"].startswith("node1: its answer is refused: ")


def test_check_mode_runs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(tmp_path, monkeypatch, check_mode=True)
    stage.ask("plan")
    assert (stage.ask("alone"), stage.ask("ladder"), stage.calls) == ({"run": False}, {"runs": 0}, [])
