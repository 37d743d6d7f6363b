# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The verdicts of a sweep are computed once for all steps of a run, and never read if anything that they depend on has changed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs import evidence
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.evidence import SWEEP
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.matrix.matrix import Matrix
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.verdict.recorded import RecordedVerdicts
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.verdict.verdict import Verdict
from ansible_collections.rdma.cluster.plugins.plugin_utils._run import folder as run_folder
from tests.unit.builders.fabric_runs import BUSY, FabricRun
from tests.unit.builders.fabrics import leafspine

FILE = "pairs/verdicts.json"


class Counted:
    """How often verdicts were computed, and how often the results of a sweep were read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.computed = self.read = 0
        localize, read = evidence.localize, Matrix.read

        def counted_localize(*args: Any, **kwargs: Any) -> Any:
            self.computed += 1
            return localize(*args, **kwargs)

        def counted_read(*args: Any, **kwargs: Any) -> Any:
            self.read += 1
            return read(*args, **kwargs)

        monkeypatch.setattr(evidence, "localize", counted_localize)
        monkeypatch.setattr(Matrix, "read", counted_read)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counted:
    return Counted(monkeypatch)


@pytest.fixture
def warnings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []
    monkeypatch.setattr(run_folder.display, "warning", found.append)
    return found


def swept(path: Path) -> FabricRun:
    return FabricRun(path / "R1", leafspine(2, 2, 4)).sweep(slow=["node2"])


def step(run: FabricRun, **settings: Any) -> tuple[list[Verdict], list[Verdict]]:
    """All verdicts and the stopping ones, as a process of its own gets them."""
    found = run.evidence(SWEEP).recorded_verdicts({**run.intent["pairs"], **settings}, {})
    return list(found.verdicts), list(found.stopping)


def test_computed_once_for_all_steps_of_a_run(tmp_path: Path, counted: Counted) -> None:
    run = swept(tmp_path)
    assert run.plan()["msg"] == "rail0: 3 pairs"
    assert counted.computed == 1
    read = counted.read
    assert run.plan()["msg"] == "rail0: 3 pairs"
    assert counted.read == read
    assert [each.host for each in run.judged("pair.bandwidth") if each.status == "error"] == ["node2"]
    assert counted.computed == 1


def test_the_recorded_verdicts_are_the_computed_ones(tmp_path: Path, counted: Counted) -> None:
    run = swept(tmp_path)
    verdicts, stopping = step(run)
    assert [each.host for each in stopping] == [1]
    assert step(run) == (verdicts, stopping)
    assert counted.computed == 1


def test_facts_that_are_read_again_change_nothing(tmp_path: Path, counted: Counted) -> None:
    run = swept(tmp_path)
    step(run)
    run.works("node8", BUSY)
    step(run)
    assert counted.computed == 1


def _touched(run: FabricRun) -> None:
    path = run.folder.path / "pairs/node3.jsonl"
    os.utime(path, ns=(1, path.stat().st_mtime_ns + 1))


def _more_results(run: FabricRun) -> None:
    run.folder.append_lines("pairs/node3.jsonl", ["[0,0,0,0,0,0,1,1,1]"])


def _fewer_results(run: FabricRun) -> None:
    (run.folder.path / "pairs/node3.jsonl").unlink()


def _refused(run: FabricRun) -> None:
    run.folder.write_json("pairs/node3.refused.json", {"in_use": "a job"})


def _other_plan(run: FabricRun) -> None:
    run.folder.write_json("pairs/plan.json", {**run.folder.read_json("pairs/plan.json"), "sweep": "S2"})


def _other_fabric(run: FabricRun) -> None:
    run.saw(leafspine(2, 2, 4, seed=3))


def _no_fabric(run: FabricRun) -> None:
    (run.folder.path / "fabric.json").unlink()


def _facts(run: FabricRun, change: Callable[[dict[str, Any]], None]) -> None:
    name = run.folder.host_file("facts", "node3")
    facts = run.folder.read_json(name)
    change(facts["devices"]["mlx5_0"])
    run.folder.write_json(name, facts)


def _slower_link(run: FabricRun) -> None:
    _facts(run, lambda device: device["ports"]["1"].update(rate_gbps=200.0, speed="HDR"))


def _other_card(run: FabricRun) -> None:
    _facts(run, lambda device: device.update(node_guid="0000:0000:0000:0815"))


@pytest.mark.parametrize(
    "change",
    [_touched, _more_results, _fewer_results, _refused, _other_plan, _other_fabric, _no_fabric, _slower_link, _other_card],
    ids=lambda change: change.__name__.strip("_"),
)
def test_verdicts_of_other_inputs_are_computed_again(tmp_path: Path, counted: Counted, change: Callable[[FabricRun], None]) -> None:
    run = swept(tmp_path)
    step(run)
    change(run)
    step(run)
    assert counted.computed == 2
    step(run)
    assert counted.computed == 2


def test_verdicts_under_other_settings_are_computed_again(tmp_path: Path, counted: Counted) -> None:
    run = swept(tmp_path)
    assert len(step(run)[1]) == 1
    assert step(run, fail_below=0.01)[1] == []
    assert counted.computed == 2


def test_results_that_change_while_they_are_read_are_read_again(tmp_path: Path, counted: Counted) -> None:
    run = swept(tmp_path)
    sweep = run.evidence(SWEEP)
    assert len(sweep.bandwidth) > 0
    _more_results(run)
    sweep.recorded_verdicts(run.intent["pairs"], {})
    step(run)
    assert counted.computed == 2


def _damaged(data: dict[str, Any], **changed: Any) -> str:
    return json.dumps({**data, **changed})


DAMAGES: dict[str, Callable[[dict[str, Any]], str]] = {
    "cut off": lambda data: json.dumps(data)[:-20],
    "empty": lambda data: "",
    "a list": lambda data: "[]",
    "foreign": lambda data: '{"verdicts": ["rail0"]}',
    "other schema": lambda data: _damaged(data, schema=2),
    "no verdict": lambda data: _damaged(data, verdicts=[7]),
    "a field too many": lambda data: _damaged(data, verdicts=[{**data["verdicts"][0], "color": "red"}]),
    "no such host": lambda data: _damaged(data, verdicts=[{**data["verdicts"][0], "host": 8}]),
    "no such measurement": lambda data: _damaged(data, verdicts=[{**data["verdicts"][0], "evidence": [10**6]}]),
    "no such port": lambda data: _damaged(data, ports=[[0, -1]]),
    "no such suspect": lambda data: _damaged(data, stopping=[True]),
    "names": lambda data: _damaged(data, hosts=[{}] * 8),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_file_is_ignored_with_a_warning(
    tmp_path: Path, counted: Counted, warnings: list[str], damage: Callable[[dict[str, Any]], str]
) -> None:
    run = swept(tmp_path)
    first = step(run)
    run.folder.write(FILE, damage(run.folder.read_json(FILE)))
    assert step(run) == first
    (words,) = warnings
    assert str(run.folder.path / FILE) in words
    assert counted.computed == 2
    # It was replaced by a good one.
    assert step(run) == first
    assert (counted.computed, len(warnings)) == (2, 1)


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    run = swept(tmp_path)
    data = run.evidence(SWEEP).recorded_verdicts(run.intent["pairs"], {}).to_dict()
    again = RecordedVerdicts.from_dict(json.loads(json.dumps(data)))
    assert json.dumps(again.to_dict()) == json.dumps(data)
    with pytest.raises(ParseError, match="schema"):
        RecordedVerdicts.from_dict({**data, "schema": "1"})
