# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Transfers through the network plugin are planned, started on idle hosts, and their results stored for the gate."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.errors import AnsibleError

from ansible_collections.rdma.cluster.plugins.action import plugin_transfer
from ansible_collections.rdma.cluster.plugins.plugin_utils._plugin_transfer.plan import HOSTS, PLAN
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder, run_id
from tests.unit.builders.transfer_runs import MESH, transfers, users


def action(folder: RunFolder, answer: dict[str, Any] | None = None, *, host: str = "node1", check: bool = False) -> Any:
    """The action on a host of a play of two. answer: of the module, whose arguments go to `given`; without it no module may run."""
    made: Any = plugin_transfer.ActionModule.__new__(plugin_transfer.ActionModule)
    made.folder, made.given = folder, {}
    made._task = SimpleNamespace(check_mode=check)
    made._templar = SimpleNamespace(template=lambda value: value)
    hosts = ["node1", "node2"]
    made.variables = {"inventory_hostname": host, "ansible_play_hosts": hosts, "hostvars": {each: {} for each in hosts}}

    def module(name: str, **arguments: Any) -> dict[str, Any]:
        assert answer is not None, f"{name} was called"
        made.given.update(arguments, called=name)
        return answer

    made.module = module
    return made


def run_of(path: Path, plugin: dict[str, Any] | None = None) -> RunFolder:
    """A run that has read intent and facts of two hosts."""
    folder = RunFolder(path / "R1")
    for host, known in users(2, plugin or MESH).items():
        folder.write_json(folder.host_file("intent", host), known.intent)
        assert known.facts is not None
        folder.write_json(folder.host_file("facts", host), asdict(known.facts))
    return folder


def planned(folder: RunFolder) -> RunFolder:
    all_of = transfers(users(2))
    folder.write_json(PLAN, asdict(all_of.plan(run_id(), all_of.meetings, 5)))
    return folder


def test_transfers_without_a_proof_are_planned(tmp_path: Path) -> None:
    folder = run_of(tmp_path)
    done = action(folder).work({"scope": "plan", "measure": "auto", "token": None})
    assert (done["hosts"], done["msg"]) == (["node1", "node2"], "0 of 2 transfers have a valid proof; to make: 2.")
    assert len(done["token"]) == 64
    assert folder.read_json(HOSTS) == ["node1", "node2"]
    assert [(each["sender"], each["receiver"]) for each in folder.read_json(PLAN)["meetings"]] == [("node1", "node2"), ("node2", "node1")]


@pytest.mark.parametrize(("measure", "check", "hosts"), [("false", False, []), ("yes", False, ["node1", "node2"]), ("auto", True, [])])
def test_what_the_variable_and_check_mode_plan(tmp_path: Path, measure: str, check: bool, hosts: list[str]) -> None:
    assert action(run_of(tmp_path), check=check).work({"scope": "plan", "measure": measure, "token": None})["hosts"] == hosts


def test_an_unknown_word_plans_nothing(tmp_path: Path) -> None:
    with pytest.raises((TypeError, AnsibleError)):
        action(run_of(tmp_path)).work({"scope": "plan", "measure": "maybe", "token": None})


def test_without_a_plugin_nothing_is_planned(tmp_path: Path) -> None:
    done = action(run_of(tmp_path, {"kind": "none"})).work({"scope": "plan", "measure": "auto", "token": None})
    assert (done["hosts"], done["msg"]) == ([], "No host of this run uses a network plugin of NCCL.")


def test_a_host_that_a_job_uses_is_excluded_with_its_partners(tmp_path: Path) -> None:
    made = action(run_of(tmp_path))
    made.at_work = lambda _loads: {"node2": "job process 815 (slurmstepd)"}
    done = made.work({"scope": "plan", "measure": "auto", "token": None})
    assert (done["hosts"], done["msg"]) == ([], "0 of 2 transfers have a valid proof; to make: 0; in use: node2.")


def test_a_host_starts_with_the_plan_and_without_load_on_hosts_in_use(tmp_path: Path) -> None:
    made = action(planned(RunFolder(tmp_path)), {"started": True, "in_use": ""})
    assert made.work({"scope": "start", "measure": "auto", "token": "t"}) == {"started": True, "in_use": ""}
    assert (made.given["called"], made.given["state"], made.given["load_allowed"], made.given["token"]) == (
        "plugin_transfer", "started", False, "t",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ({"started": False, "in_use": "job process 815"}, "the host is in use: job process 815"),
        ({"failed": True, "msg": "no systemd"}, "no systemd"),
    ],
)
def test_a_host_that_starts_nothing_says_why_and_is_not_asked_again(tmp_path: Path, answer: dict[str, Any], problem: str) -> None:
    folder = planned(RunFolder(tmp_path))
    done = action(folder, answer).work({"scope": "start", "measure": "auto", "token": "t"})
    assert "failed" not in done
    assert folder.read_json("plugin_transfer/node1.json") == {"problem": problem}
    assert action(folder).work({"scope": "collect", "measure": "auto", "token": None})["results"] == []


def test_results_and_their_absence_are_stored(tmp_path: Path) -> None:
    folder = planned(RunFolder(tmp_path))
    collect = {"scope": "collect", "measure": "auto", "token": None}
    made = action(folder, {"results": [{"partner": "node2"}]})
    assert made.work(collect) == {"results": [{"partner": "node2"}]}
    # 40 s for late hosts, 45 s for the transfer, 30 s for the program.
    assert made.given["wait_seconds"] == 115.0
    assert folder.read_json("plugin_transfer/node1.json") == {"results": [{"partner": "node2"}]}
    assert action(folder, {"failed": True, "msg": "ended"}, host="node2").work(collect)["results"] == []
    assert folder.read_json("plugin_transfer/node2.json") == {"problem": "ended"}
