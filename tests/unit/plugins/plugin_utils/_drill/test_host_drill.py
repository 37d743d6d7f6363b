# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The looks of a drill of hosts, from the state before a fault to the record of its answers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._drill import record
from ansible_collections.rdma.cluster.plugins.plugin_utils._drill.host_drill import HostDrill
from ansible_collections.rdma.cluster.plugins.plugin_utils._drill.record import ENDED, MADE, RESTORED
from ansible_collections.rdma.cluster.plugins.plugin_utils._drill.turned import Alert
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.read import normalize
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder
from tests.unit.builders.hosts import lab_facts, lab_rails

DOWN, OLD = Alert("RdmaPortDown", "node1", "rail0"), Alert("Old", "node1", "rail0")


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def time(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(record.time, "time", clock.time)
    return clock


@pytest.fixture
def drill(tmp_path: Path) -> HostDrill:
    folder = RunFolder(tmp_path / "run")
    allow = [{"host": "node1", "rail": "rail0", "fault": "rail_down"}]
    for node in (1, 2):
        intent = normalize({"rdma_rails": lab_rails(node), "rdma_drill": {"allow": allow, "hold_seconds": 60}})
        folder.write_json(f"intent/node{node}.json", intent)
        folder.write_json(f"facts/node{node}.json", lab_facts(node))
    drill = HostDrill(folder)
    assert drill.plan() == []
    return HostDrill(folder)


def found(status: str, host: str = "node1") -> dict[str, Sequence[Finding]]:
    return {host: [Finding("link", "link.state", host, "rail 0 (rail0, ens2)", status, "seen", "expected")]}


def result(drill: HostDrill) -> dict[str, Any]:
    drill.write_results()
    [each] = drill.folder.read_json("drill/results.json")["hosts"]
    return dict(each)


def test_a_fault_from_the_state_before_to_the_record(drill: HostDrill, clock: Clock) -> None:
    assert [step.name for step in drill.steps] == ["rail_down node1 rail0"]
    drill.look_before(1, found("ok"), lambda: [OLD])
    drill.note(1, MADE, "node1")
    clock.now = 1012.0
    assert not drill.look_during(1, found("error"), lambda: [OLD]), "the alert has not answered yet"
    clock.now = 1047.0
    assert drill.look_during(1, found("error"), lambda: [OLD, DOWN])
    drill.note(1, ENDED, "node1")
    drill.note(1, RESTORED, "node1", by_timer=False)
    clock.now = 1055.0
    assert not drill.look_after(1, found("error"), lambda: [OLD, DOWN])
    assert drill.not_restored(1) == ["link.state of node1 is error: rail 0 (rail0, ens2)"]
    clock.now = 1060.0
    assert not drill.look_after(1, found("ok"), lambda: [OLD, DOWN])
    clock.now = 1070.0
    assert drill.look_after(1, found("ok"), lambda: [OLD])
    kept = result(drill)
    assert (kept["gate"]["check"], kept["gate"]["seconds"]) == ("link.state", 12.0)
    assert (kept["alert"]["name"], kept["alert"]["seconds"]) == ("RdmaPortDown", 47.0)
    assert (kept["quiet_after_seconds"], kept["alert_ended_after_seconds"], kept["lasted_seconds"]) == (13.0, 23.0, 47.0)
    assert (kept["false"], kept["not_restored"], kept["ended_by_timer"], kept["drain"]) == ([], [], False, "not asked")


def test_a_fault_that_nothing_answers_lasts_as_long_as_allowed(drill: HostDrill, clock: Clock) -> None:
    drill.look_before(1, found("ok"), None)
    drill.note(1, MADE, "node1")
    clock.now = 1059.0
    assert not drill.look_during(1, found("ok"), None)
    clock.now = 1060.0
    assert drill.look_during(1, found("error", "node2"), None)
    drill.note(1, ENDED, "node1")
    assert drill.look_after(1, found("ok"), None)
    kept = result(drill)
    assert (kept["gate"], kept["alert"], kept["alerts_asked"]) == (None, None, False)
    assert kept["false"] == ["link.state of node2: rail 0 (rail0, ens2)"]
    assert kept["not_restored"] == ["node1 did not confirm that the fault has ended"]


def test_a_server_that_does_not_answer_is_a_problem_and_no_end(drill: HostDrill, clock: Clock) -> None:
    def refused() -> Sequence[Alert]:
        raise OSError("refused")

    drill.look_before(1, found("ok"), list)
    drill.note(1, MADE, "node1")
    drill.look_during(1, found("error"), lambda: [DOWN])
    drill.note(1, ENDED, "node1")
    assert not drill.look_after(1, found("ok"), refused)
    clock.now += 90
    assert drill.look_after(1, found("ok"), refused)
    kept = result(drill)
    assert (kept["alerts_problem"], kept["alert_ended_after_seconds"]) == ("refused", None)


def test_the_hosts_must_be_judged_after_the_end(drill: HostDrill) -> None:
    drill.look_before(1, found("ok"), None)
    drill.note(1, MADE, "node1")
    drill.note(1, RESTORED, "node1", by_timer=True)
    assert drill.not_restored(1) == ["the hosts were not judged after the end of the fault"]


def test_a_fault_without_the_state_before_is_an_error(drill: HostDrill) -> None:
    drill.note(1, MADE, "node1")
    with pytest.raises(ParseError, match="The state before step 1 was not recorded"):
        drill.look_during(1, found("error"), None)


def test_rails_that_changed_since_the_plan_refuse_the_next_step(drill: HostDrill) -> None:
    intent = drill.folder.read_json("intent/node1.json")
    intent["rails"][0]["address"] = "192.168.100.99/24"
    drill.folder.write_json("intent/node1.json", intent)
    assert HostDrill(drill.folder).plan() == ["the rails of the hosts are not those with which the drill began"]


def test_a_host_in_use_refuses_its_steps_alone(drill: HostDrill) -> None:
    facts = drill.folder.read_json("facts/node1.json")
    for host in ("node2", "node1"):
        facts["load"] = {"gpu_processes": [], "jobs": [{"pid": 4711, "name": "slurmstepd"}], "qps": [], "qps_error": None}
        drill.folder.write_json(f"facts/{host}.json", facts)
        refusals = HostDrill(drill.folder).refusals(found("ok"))
        assert any("job process 4711 (slurmstepd)" in each for each in refusals) is (host == "node1")
