# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plane under the load of the pairs stage, from what the run's folder has of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.known import Known
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.loads.fabric import judge_load
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder
from tests.unit.builders.fabrics import Fabric, leafspine

RAILS = [{"name": "rail0", "nic": {"pci": "0000:01:00.0"}, "link_layer": "infiniband", "plane": "blue"}]
KNOWN = {"n1": Known({"rails": RAILS}, None)}
BEGUN, ENDED = 100.0, 110.0
#: Of an uplink at 200 Gb/s for the time between, in words of four bytes.
WORDS = int(200e9 * (ENDED - BEGUN) / 8 / 4)


class Run:
    """A run's folder. carried: what each uplink counted, times its share; shares: (leaf, spine) → share."""

    def __init__(self, path: Path) -> None:
        self.folder = RunFolder(path)
        self.before, self.after = leafspine(), leafspine()

    def load(self, shares: dict[tuple[str, str], float]) -> None:
        for end, there in self.before.cables.items():
            if end[0].startswith("leaf") and there[0].startswith("spine"):
                words = int(WORDS * shares.get((end[0], there[0]), 1.0))
                self.before.count(end, PortXmitData=1000, PortRcvData=1000)
                self.after.count(end, PortXmitData=1000 + words, PortRcvData=1000 + words)

    def wrote(self, what: str, fabric: Fabric, read_at: float, *, complete: bool = True) -> None:
        graph = {**fabric.graph().to_dict(), "complete": complete}
        reading: dict[str, Any] = {"graph": graph, "subnet_managers": None, "no_subnet_manager": None, "read_at": read_at}
        self.folder.write(f"fabric/blue/{what}/n1.json", json.dumps(reading))

    def judged(self) -> list[Finding]:
        self.wrote("graphs", self.before, BEGUN)
        self.wrote("loaded", self.after, ENDED)
        return brief(self.folder)


def brief(folder: RunFolder) -> list[Finding]:
    return [each.finding for each in judge_load(folder, KNOWN)]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


def test_nothing_was_measured_so_nothing_is_reported(run: Run) -> None:
    run.wrote("graphs", run.before, BEGUN)
    assert judge_load(run.folder, KNOWN) == []


def test_a_plane_that_bears_its_load_is_well(run: Run) -> None:
    run.load({})
    assert [(each.stage, each.check, each.host, each.status) for each in run.judged()] == [
        ("pairs", "fabric.under_load", "plane blue", "ok"),
        ("pairs", "fabric.balance", "plane blue", "ok"),
    ]


def test_a_spine_that_carries_less_is_named(run: Run) -> None:
    run.load({(f"leaf{leaf}", "spine2"): 0.2 for leaf in range(1, 5)})
    changed, balance = run.judged()
    assert changed.status == "ok"
    assert (balance.check, balance.status, balance.subject) == ("fabric.balance", "warning", "spine2")


def test_a_cable_that_does_not_bear_the_load_is_an_error(run: Run) -> None:
    run.load({})
    run.after.cut(("leaf1", 9))
    changed = run.judged()[0]
    assert (changed.check, changed.status) == ("fabric.under_load", "error")
    assert changed.observed == "no link: leaf1 port 9 to spine1 port 1 since the load began"
    assert changed.expected == "the fabric before the load"


def test_a_link_that_gets_slower_under_load_is_reported(run: Run) -> None:
    run.load({})
    run.after.slow(("leaf1", 9))
    assert [each.observed for each in run.judged() if each.status == "warning" and each.check == "fabric.under_load"] == [
        "leaf1 port 9 to spine1 port 1 runs at 2X NDR, before the load at 4X NDR: slower"
    ]


@pytest.mark.parametrize("partial", ["graphs", "loaded"])
def test_what_was_not_read_whole_is_not_called_well(run: Run, partial: str) -> None:
    run.load({})
    run.judged()
    fabric, read_at = (run.before, BEGUN) if partial == "graphs" else (run.after, ENDED)
    run.wrote(partial, fabric, read_at, complete=False)
    (finding,) = brief(run.folder)
    assert finding.status == "unknown"
    assert ("before" if partial == "graphs" else "after") in finding.observed


def test_without_the_fabric_stage_there_is_nothing_to_compare_with(run: Run) -> None:
    run.wrote("loaded", run.after, ENDED)
    (finding,) = brief(run.folder)
    assert (finding.status, finding.check) == ("not_applicable", "fabric.under_load")
