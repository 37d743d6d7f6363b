# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan of a many-to-one load, from what a run has left in its folder."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.errors import AnsibleError

from ansible_collections.rdma.cluster.plugins.action import pair_plan
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.files import parse_plan, unpack_plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.fleet import Fleet, measurable_hosts
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.plan import plan as plan_plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.schedule import planned_meetings
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder
from tests.unit.builders.hosts import lab_facts, lab_intent
from tests.unit.builders.qos_hosts import dcb_qos

IDLE: dict[str, Any] = {"gpu_processes": [], "jobs": []}
BUSY = {"gpu_processes": [{"pid": 4711, "name": "python3"}], "jobs": []}
HOSTS = ("node1", "node2", "node3", "node4")
NOBODY = "No RoCE rail has 3 healthy hosts whose NICs support priorities (DCB)."


class Run:
    """A run that knows its hosts, and may have measured."""

    def __init__(self, path: Path, hosts: Iterable[str] = HOSTS, queues: Iterable[str] = ("ens1", "ens2"), **sections: Any) -> None:
        """queues: interfaces with DCB; the others are known to have none."""
        path.mkdir(exist_ok=True)
        self.folder = RunFolder(path)
        self.hosts = list(hosts)
        self.load_allowed: set[str] = set()
        for host in self.hosts:
            number = int(host[-1])
            self.intent = lab_intent(number, pairs={"latency_command": "none"}, **{"roce": {}, **sections})
            self.folder.write_json(self.folder.host_file("intent", host), self.intent)
            qos = {name: dcb_qos() if name in queues else {"backend": None} for name in ("ens1", "ens2")}
            self.folder.write_json(self.folder.host_file("facts", host), {**lab_facts(number), "qos": qos, "load": IDLE})
            self.folder.write_findings("pairs", host, [])

    def measure(self, slow: tuple[str, ...] = (), *, finished: bool = True) -> Run:
        """Let it have measured all pairs; slow: hosts that reach a tenth."""
        fleet = Fleet.of(measurable_hosts(self.folder, self.folder.hosts_of("pairs")))
        tests = plan_plan.tests_of(self.intent)
        plan = plan_plan.make_plan("S1", hosts=fleet.hosts, rails=fleet.rails, of=fleet.endpoints, tests=tests, schedule={"kind": "full"})
        self.folder.write_json("pairs/plan.json", plan)
        lines: dict[str, str] = dict.fromkeys(fleet.hosts, "")
        for rail, number, server, client in planned_meetings(plan):
            value = 0.01 if {fleet.hosts[server], fleet.hosts[client]} & set(slow) else 0.1
            lines[fleet.hosts[client]] += json.dumps([rail, number, server, client, 0, 0, value, 1.2, 0.1]) + "\n"
        for host, text in lines.items():
            self.folder.write(self.folder.host_file("pairs", host, ".jsonl"), text)
            self.folder.write_json(self.folder.host_file("pairs", host, ".end.json"), {"finished": finished, "seconds": 9.0, "reason": ""})
        return self

    def plan(self, playing: Iterable[str] | None = None, sources: int = 8) -> dict[str, Any]:
        action = pair_plan.ActionModule.__new__(pair_plan.ActionModule)
        action.folder = self.folder
        action._templar = SimpleNamespace(template=lambda value: value)
        hosts = self.hosts if playing is None else list(playing)
        hostvars = {host: {"rdma_load_allowed": host in self.load_allowed} for host in self.hosts}
        play = {"ansible_play_hosts": hosts, "inventory_hostname": hosts[0], "hostvars": hostvars}
        action.variables = play
        return action.work({"kind": "qos", "sources": sources})


def meetings(plan: dict[str, Any]) -> set[tuple[str, str]]:
    """(rail of the plan, who serves)."""
    return {(plan["rails"][rail]["name"], plan["hosts"][server]) for rail, _round, server, _client in planned_meetings(plan)}


def test_after_a_sweep_all_send_to_the_first_host_of_each_rail(tmp_path: Path) -> None:
    run = Run(tmp_path / "R1").measure()
    answer = run.plan()
    assert (answer["hosts"], answer["outside"]) == (list(HOSTS), [])
    assert answer["msg"] == "rail0: 3 to node1; rail1: 3 to node1"
    assert answer["sweep"].endswith("-qos")
    assert len(answer["token"]) == 64
    plan = parse_plan(unpack_plan(answer["plan"]))
    assert plan == run.folder.read_json("pairs/qos/plan.json")
    assert meetings(plan) == {(f"{rail}<{source}", "node1") for rail in ("rail0", "rail1") for source in HOSTS[1:]}
    assert answer["runtime_max_seconds"] == plan["start_deadline_seconds"] + 2 * plan["tests"][0]["deadline_seconds"]


def test_who_was_found_slow_is_no_target_and_no_source(tmp_path: Path) -> None:
    answer = Run(tmp_path / "R1").measure(slow=("node1",)).plan()
    assert (answer["hosts"], answer["msg"]) == (list(HOSTS[1:]), "rail0: 2 to node2; rail1: 2 to node2")


def test_who_left_the_play_takes_no_part(tmp_path: Path) -> None:
    run = Run(tmp_path / "R1").measure()
    assert run.plan(playing=HOSTS[:3])["hosts"] == list(HOSTS[:3])
    assert run.plan(playing=HOSTS[:2]) == {"hosts": [], "outside": [], "msg": NOBODY}


def test_nics_without_queues_are_not_asked(tmp_path: Path) -> None:
    assert Run(tmp_path / "R1", queues=["ens2"]).measure().plan()["msg"] == "rail1: 3 to node1"
    assert Run(tmp_path / "R2", queues=[]).measure().plan() == {"hosts": [], "outside": [], "msg": NOBODY}


def test_fewer_sources(tmp_path: Path) -> None:
    run = Run(tmp_path / "R1").measure()
    assert run.plan(sources=2)["hosts"] == list(HOSTS[:3])
    with pytest.raises(AnsibleError, match="sources must be at least 2, because one sender alone causes no congestion; got 1"):
        run.plan(sources=1)


def test_nothing_is_asked_where_nothing_was_measured(tmp_path: Path) -> None:
    run = Run(tmp_path / "R1")
    assert run.plan() == {"hosts": [], "outside": [], "msg": "Nothing was measured."}
    assert not (run.folder.path / "pairs/qos").exists()


def test_without_rdma_roce_there_is_no_load(tmp_path: Path) -> None:
    answer = Run(tmp_path / "R1", roce=None).measure().plan()
    assert (answer["hosts"], answer["msg"]) == ([], "No traffic is marked: rdma_roce is not set, or no rail is RoCE.")


def test_a_sweep_that_was_stopped_is_not_followed_by_a_load(tmp_path: Path) -> None:
    run = Run(tmp_path / "R1").measure(finished=False)
    assert run.plan()["msg"] == "The sweep was stopped; the next run resumes it."
    run.measure()
    (run.folder.path / "pairs/node4.end.json").unlink()
    assert run.plan()["hosts"] == []
    assert run.plan(playing=HOSTS[:3])["hosts"] == list(HOSTS[:3])


def test_a_host_at_work_on_the_plane_is_enough_to_leave_it_alone(tmp_path: Path) -> None:
    """Also one that takes no part: the load goes over links that its job uses."""
    run = Run(tmp_path / "R1").measure()
    facts = run.folder.host_file("facts", "node4")
    for load, words in ((BUSY, "GPU process 4711 (python3)"), (None, "whether it is in use is unknown")):
        run.folder.write_json(facts, {**run.folder.read_json(facts), "load": load})
        for playing in (HOSTS, HOSTS[:3]):
            answer = run.plan(playing=playing)
            assert answer["hosts"] == []
            assert answer["msg"].startswith(f"Hosts of the same plane are busy (node4: {words})")
    assert not (run.folder.path / "pairs/qos").exists()
    run.load_allowed = {"node4"}
    assert run.plan()["hosts"] == list(HOSTS)
