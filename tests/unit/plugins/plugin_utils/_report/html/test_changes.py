# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the report says of a run compared with an earlier one, and which earlier run it compares with."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html.changes import changes, last_good
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html.history import Past
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html.hosts import read_hosts
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html.run import ReportError, Run
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder
from tests.unit.builders.small_fabrics import fabric

RUNS = [f"202611{day}T120000Z-1" for day in (20, 21, 22, 23, 24)]


def past(run: str, outcome: str = "clean", hosts: int = 3, *, is_check: bool = False) -> Past:
    return Past(run, outcome, is_check, hosts, 0, 0, 0, {})


def run_of(base: Path, name: str) -> Run:
    (base / name).mkdir(parents=True, exist_ok=True)
    return Run(RunFolder(base / name))


def test_the_newest_earlier_run_that_was_good_is_compared(tmp_path: Path) -> None:
    for name in RUNS:
        run_of(tmp_path, name)
    run = run_of(tmp_path, RUNS[3])
    found = last_good(run, [past(RUNS[0]), past(RUNS[1]), past(RUNS[2], "failed"), past(RUNS[3]), past(RUNS[4])])
    assert found is not None
    assert (found.name, found.folder.path) == (RUNS[1], tmp_path / RUNS[1])


@pytest.mark.parametrize(
    "each", [past(RUNS[1], "failed"), past(RUNS[1], "drifted"), past(RUNS[1], is_check=True), past(RUNS[1], hosts=0), past(RUNS[2])]
)
def test_a_run_that_shows_no_good_cluster_is_not_compared(tmp_path: Path, each: Past) -> None:
    for name in RUNS[1:3]:
        run_of(tmp_path, name)
    assert last_good(run_of(tmp_path, RUNS[2]), [each]) is None


def test_a_good_run_whose_folder_is_gone_is_not_compared(tmp_path: Path) -> None:
    run_of(tmp_path, RUNS[0])
    found = last_good(run_of(tmp_path, RUNS[2]), [past(RUNS[0]), past(RUNS[1])])
    assert found is not None
    assert found.name == RUNS[0]


def write(run: Run, name: str, data: Any) -> None:
    run.folder.write_json(name, data)


@pytest.fixture
def two(tmp_path: Path) -> tuple[Run, Run]:
    """A run, and an earlier one that is the same."""
    old = run_of(tmp_path, RUNS[0])
    for host in ("node1", "node2"):
        old.folder.write_findings("link", host, [Finding("link", "link.state", host, "rail 0", "ok", "seen", "expected")])
        write(old, f"facts/{host}.json", {"schema": 1, "stack": {"kernel": "6.8"}})
        write(old, f"intent/{host}.json", {"rails": [], "nccl": {"version": "2.28"}, "host": {}})
    write(old, "summary.json", {"schema": 1, "outcome": "clean"})
    write(old, "pairs/summary.json", {"rails": [{"rail": "rail0", "median_gbps": 400.0}, {"rail": "rail1", "median_gbps": None}]})
    write(old, "fabric.json", {"planes": [fabric(4).to_dict()]})
    shutil.copytree(tmp_path / RUNS[0], tmp_path / RUNS[1])
    return run_of(tmp_path, RUNS[1]), run_of(tmp_path, RUNS[0])


def test_equal_runs_differ_in_nothing(two: tuple[Run, Run]) -> None:
    run, old = two
    found = changes(run, read_hosts(run, None), old, pairs=False)
    assert (found.other, found.outcome, found.notes, found.comparison) == (RUNS[0], "clean", [], None)
    assert found.medians == [("rail0", 400.0, 400.0, 0.0)]
    assert not any(found.findings.values())
    parts = (found.traits, found.intents, found.cables_gone, found.cables_new, found.hosts_gone, found.hosts_new)
    assert [list(each) for each in parts] == [[], [], [], [], [], []]


def test_each_difference_is_listed(two: tuple[Run, Run]) -> None:
    run, old = two
    write(run, "facts/node1.json", {"schema": 1, "stack": {"kernel": "6.9"}})
    write(run, "intent/node2.json", {"rails": [], "nccl": {"version": "2.29"}, "qos": {}})
    write(run, "pairs/summary.json", {"rails": [{"rail": "rail0", "median_gbps": 300.0}, {"rail": "rail1", "median_gbps": 390.0}]})
    run.folder.write_findings("link", "node3", [Finding("link", "link.state", "node3", "rail 0", "error", "down", "up")])
    shutil.rmtree(run.folder.path / "findings")
    run.folder.write_findings("link", "node1", [Finding("link", "link.state", "node1", "rail 0", "ok", "seen", "expected")])
    run.folder.write_findings("link", "node3", [Finding("link", "link.state", "node3", "rail 0", "error", "down", "up")])
    found = changes(run, read_hosts(run, None), old, pairs=False)
    assert found.traits == [("node1", "kernel", "6.8", "6.9")]
    assert found.intents == ["node2: host, nccl, qos"]
    assert found.medians == [("rail0", 400.0, 300.0, pytest.approx(-25.0))]
    assert (found.hosts_gone, found.hosts_new) == (["node2"], ["node3"])
    assert [each.host for each in found.findings["new"]] == ["node3"]


def test_cables_that_are_gone_and_new_are_named_by_both_ends(two: tuple[Run, Run]) -> None:
    run, old = two
    small = fabric(3)
    write(run, "fabric.json", {"planes": [small.to_dict()]})
    found = changes(run, read_hosts(run, None), old, pairs=False)
    assert len(found.cables_gone) == len(fabric(4).links) - len(small.links) == 2
    assert all("node4" in each and " - " in each for each in found.cables_gone)
    assert found.cables_new == []
    back = changes(old, read_hosts(old, None), run, pairs=False)
    assert (back.cables_new, back.cables_gone) == (found.cables_gone, [])


def test_a_plane_that_was_not_read_completely_is_not_compared(two: tuple[Run, Run]) -> None:
    run, old = two
    write(run, "fabric.json", {"planes": [{**fabric(3).to_dict(), "complete": False}]})
    found = changes(run, read_hosts(run, None), old, pairs=False)
    assert (list(found.cables_gone), list(found.cables_new)) == ([], [])
    assert found.notes == ["Cabling is not compared: no plane was read completely in both runs."]


def test_a_run_without_measured_pairs_is_named(two: tuple[Run, Run]) -> None:
    run, old = two
    found = changes(run, read_hosts(run, None), old, pairs=True)
    assert (found.comparison, found.notes) == (None, [f"Pairs are not compared: run {RUNS[0]} measured none."])


def test_facts_of_another_schema_are_not_compared(two: tuple[Run, Run]) -> None:
    run, old = two
    write(old, "facts/node2.json", {"schema": 0})
    with pytest.raises(ReportError, match=f"Run {RUNS[0]} has facts of schema 0, and run {RUNS[1]} has facts of schema 1. Compare"):
        changes(run, read_hosts(run, None), old, pairs=False)
    # A run that has read no facts can be compared.
    shutil.rmtree(run.folder.path / "facts")
    assert changes(run, read_hosts(run, None), old, pairs=False).traits == []
