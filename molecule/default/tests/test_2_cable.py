# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cut cable stops the build at the link gate, by name; restored, the build goes through and changes nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from lab import cluster, remote
from lab.cluster import Lab
from tests.verify.observers import Recorder, snapshot
from tests.verify.site import Site

WORDS = ("node2, rail 1 (rail1, 0000:41:00.0, ", "link.state is error (link stage)", "Check the cable of rail 1 on node2")


@pytest.fixture
def cut_cable(lab: Lab) -> Iterator[None]:
    cluster.cable(lab.plan.name, "node2", 1, {"cut": True})
    yield
    cluster.cable(lab.plan.name, "node2", 1, {"restore": True})


@pytest.mark.fault("cut-cable-of-a-host")
@pytest.mark.usefixtures("cut_cable")
def test_a_cut_cable_stops_the_run_at_the_link_gate(site: Site) -> None:
    done = site.run()
    assert done.returncode != 0
    summary = (site.evidence / "summary.txt").read_text()
    assert all(word in summary for word in WORDS), summary
    assert summary in done.stdout
    assert re.search(r"^node2 +ok +ok +error( +-){8}$", summary, re.M), summary
    assert not (site.evidence / "findings/network").exists()
    assert site.json("summary.json")["outcome"] == "failed"


def test_restored_it_goes_through_and_changes_nothing(lab: Lab, site: Site) -> None:
    before = {node.name: snapshot(lab, node) for node in lab.plan.nodes}
    with Recorder(lab) as recorder:
        done = site.run()
    assert done.returncode == 0, done.stdout
    recap = re.findall(r"^(node\d) .*?changed=(\d+) +unreachable=0 +failed=0", done.stdout, re.M)
    assert recap == [(f"node{i}", "0") for i in range(1, 3)], done.stdout
    for node in lab.plan.nodes:
        assert snapshot(lab, node) == before[node.name]
    results = site.results()
    assert len(results) == 4  # two hosts measure each other in both directions
    recorder.assert_bytes(*site.sweeps())
    # pgrep has a warning for a pattern of more than 15 letters, and ends with 1 where it finds nobody.
    left = remote.execute(lab.plan.node("node1"), lab.folder, "ls -A /run/rdma-cluster/pairs 2>/dev/null; pgrep -a 'ib_wri|python3'")
    assert (left.status, left.stdout, left.stderr) == (1, "", "")
