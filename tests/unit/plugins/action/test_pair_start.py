# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A sweep that starts everywhere but on a host that a job uses by then: what is written, and what is made of its partners' records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.action import pair_start
from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import UNKNOWN
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.evidence import SWEEP
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.schedule import planned_meetings
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder
from tests.unit.builders.fabric_runs import GBPS, FabricRun
from tests.unit.builders.fabrics import leafspine

OPTIONS = {"sweep": "S1", "plan": "packed", "token": "t", "runtime_max_seconds": 60, "queue_pairs": True, "folder": "pairs", "host": None}


def start(folder: RunFolder, answer: dict[str, Any], host: str = "node1", **variables: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the action returns for a module that says this, and what the module was given."""
    given: dict[str, Any] = {}

    def module(name: str, **arguments: Any) -> dict[str, Any]:
        given.update(arguments, called=name)
        return answer

    action: Any = pair_start.ActionModule.__new__(pair_start.ActionModule)
    action.folder = folder
    action.variables = {"inventory_hostname": host, "hostvars": {host: variables, "outside": {}}}
    action.module = module
    return action.work(OPTIONS), given


def test_a_host_in_use_is_noted_and_does_not_fail(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    done, given = start(folder, {"changed": False, "started": False, "in_use": "job process 815 (slurmstepd)"})
    assert (done["started"], done["msg"]) == (False, "node1 is not measured, in use: job process 815 (slurmstepd)")
    assert "failed" not in done
    assert (given["called"], given["state"], given["host"], given["load_allowed"]) == ("perftest_rounds", "started", "node1", False)
    assert given["queue_pairs"] is True
    assert folder.read_json("pairs/node1.refused.json") == {"in_use": "job process 815 (slurmstepd)"}


@pytest.mark.parametrize("answer", [{"started": True, "in_use": ""}, {"started": False, "in_use": ""}, {"failed": True, "msg": "no plan"}])
def test_nothing_is_noted_of_a_host_that_started_or_failed(tmp_path: Path, answer: dict[str, Any]) -> None:
    done, given = start(RunFolder(tmp_path), answer, rdma_load_allowed=True)
    assert (done, given["load_allowed"]) == (answer, True)
    assert list(tmp_path.iterdir()) == []


def refused(path: Path) -> FabricRun:
    """A sweep of four hosts that node4 refused: its partners found it dead."""
    run = FabricRun(path, leafspine(1, 1, 4)).sweep()
    plan = run.folder.read_json("pairs/plan.json")
    dead = plan["hosts"].index("node4")
    for number, host in enumerate(plan["hosts"]):
        rows = [
            [*where, 0, int(where[3] == dead), *([None, 9.0, 0.1, "dead", "timed out"] if dead in where[2:] else [GBPS, 9.0, 0.1])]
            for where in planned_meetings(plan)
            if (where[2] if where[3] == dead else where[3]) == number and host != "node4"
        ]
        run.folder.write(run.folder.host_file("pairs", host, ".jsonl"), "".join(json.dumps(row) + "\n" for row in rows))
    (run.folder.path / "pairs/node4.end.json").unlink()
    return run


def test_partners_that_found_nobody_there_are_no_evidence(tmp_path: Path) -> None:
    """Without the note the host is dead for its partners, and the sweep is not over."""
    run = refused(tmp_path / "R1")
    assert [each.host for each in run.judged("pair.bandwidth") if "3 of 3 partners failed (dead)" in each.observed] == ["node4"]
    assert not run.evidence(SWEEP).is_over(run.hosts)
    run = refused(tmp_path / "R2")
    start(run.folder, {"started": False, "in_use": "job process 815 (slurmstepd)"}, "node4")
    found = {each.host: each for each in run.judged("pair.bandwidth")}
    assert {host: each.status for host, each in found.items()} == {"node1": "ok", "node2": "ok", "node3": "ok", "node4": UNKNOWN}
    assert found["node4"].observed.endswith("not measured, because the host is busy: job process 815 (slurmstepd)")
    sweep = run.evidence(SWEEP)
    assert sweep.is_over(run.hosts)
    assert not sweep.has("node4", "rail0")
    assert list(sweep.bandwidth.missing) == []
    assert len(sweep.bandwidth) == 3
