# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The kinds of plans, and that of suspects, from what a run has left in its folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.rdma.cluster.plugins.action import pair_plan
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.files import parse_plan, unpack_plan
from ansible_collections.rdma.cluster.plugins.modules import pair_plan as documented
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.schedule import planned_meetings
from tests.unit.builders.fabric_runs import FabricRun
from tests.unit.builders.fabrics import leafspine

OPTIONS: dict[str, Any] = {"measure": "auto", "outside": [], "sources": 8}


def swept(path: Path, **of_sweep: Any) -> FabricRun:
    run = FabricRun(path / "R1", leafspine(2, 2, 4)).sweep(**of_sweep)
    run.folder.write_json("pairs/sweep.json", {"sweep": "S1", "fingerprint": "of no sweep", "outside": []})
    return run


def planned(run: FabricRun, kind: str, *, finished: bool = True) -> dict[str, Any]:
    action = run._action(pair_plan)
    action.variables["groups"] = {"all": run.hosts}
    for host in run.hosts:
        action.variables["hostvars"][host]["__pairs_collected"] = {"finished": finished}
    return dict(action.work({**OPTIONS, "kind": kind}))


def test_the_documentation_has_the_same_options_and_kinds() -> None:
    options = yaml.safe_load(documented.DOCUMENTATION)["options"]
    arguments = pair_plan.ActionModule.ARGUMENTS
    assert {name: each.get("default") for name, each in options.items()} == {name: each.get("default") for name, each in arguments.items()}
    assert options["kind"]["choices"] == arguments["kind"]["choices"] == list(pair_plan.KINDS)


@pytest.mark.parametrize("kind", pair_plan.KINDS[1:])
def test_without_a_sweep_there_is_nothing_to_plan(tmp_path: Path, kind: str) -> None:
    run = FabricRun(tmp_path / "R1", leafspine(2, 2, 4))
    assert planned(run, kind) == {"hosts": [], "outside": [], "msg": "Nothing was measured."}


@pytest.mark.parametrize(
    ("kind", "name"), [("suspects", "again"), ("isolation", "isolation"), ("spines", "spines")], ids=["suspects", "isolation", "spines"]
)
def test_each_kind_makes_its_own_plan(tmp_path: Path, kind: str, name: str) -> None:
    tables = {f"node{number}": (0x8001 if number % 2 else 0x8002,) for number in range(1, 9)}
    run = FabricRun(tmp_path / "R1", leafspine(2, 2, 4), tables=tables).sweep(slow=["node2"])
    run.folder.write_json("pairs/sweep.json", {"sweep": "S1", "fingerprint": "of no sweep", "outside": []})
    answer = planned(run, kind)
    assert answer["hosts"], answer["msg"]
    assert answer["sweep"].endswith(f"-{name}")
    assert sorted(path.parent.name for path in run.folder.path.glob("pairs/*/plan.json")) == [name]


def test_a_suspect_is_measured_again_with_two_good_hosts(tmp_path: Path) -> None:
    run = swept(tmp_path, slow=["node2"])
    answer = planned(run, "suspects")
    plan = parse_plan(unpack_plan(answer["plan"]))
    assert plan == run.folder.read_json("pairs/again/plan.json")
    assert plan["probe"] is True
    met = [{plan["hosts"][server], plan["hosts"][client]} for _rail, _round, server, client in planned_meetings(plan)]
    assert len({*map(frozenset, met)}) == len(met) == 2
    assert all("node2" in each for each in met)
    assert (set(answer["hosts"]), answer["outside"], answer["msg"]) == (met[0] | met[1], [], "2 meetings of 3 hosts.")


def test_a_sweep_without_suspects(tmp_path: Path) -> None:
    assert planned(swept(tmp_path), "suspects")["msg"] == "0 suspects; none can be re-measured."


def test_suspects_of_a_sweep_that_was_stopped(tmp_path: Path) -> None:
    run = swept(tmp_path, slow=["node2"])
    assert planned(run, "suspects", finished=False)["msg"] == "The sweep was stopped; the next run resumes it."
    assert not (run.folder.path / "pairs/again").exists()
