# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A repaired host is measured against hosts that are proven, in the play or not; a sweep that was stopped goes on."""

from __future__ import annotations

import json
from typing import Any

from lab.cluster import Lab
from tests.verify.patience import until
from tests.verify.site import Site


def test_a_machine_without_proof_is_measured_against_the_proven_ones(site: Site) -> None:
    proofs = site.run_dir / "proofs/pairs.json"
    recorded = all_proven(site)
    del recorded["endpoints"]["node3"]
    proofs.write_text(json.dumps(recorded))
    done = site.run("pairs")
    assert done.returncode == 0, done.stdout
    assert site.json("pairs/plan.json")["schedule"] == {"kind": "against", "new": 1}
    assert {row[6] is not None for row in site.results()} == {True}


def all_proven(site: Site) -> dict[str, Any]:
    """The proofs, once every port has one: perftest 6.06 counts nothing now and then, which is no proof."""
    for _attempt in range(3):
        assert site.run("pairs").returncode == 0
        recorded: dict[str, Any] = json.loads((site.run_dir / "proofs/pairs.json").read_text())
        if sum(map(len, recorded["endpoints"].values())) == 8:
            return recorded
    raise AssertionError("after three sweeps there are still ports without proof")


def test_one_host_alone_is_measured_against_hosts_outside_of_the_play(lab: Lab, site: Site) -> None:
    done = site.run("pairs", "--limit", "node2", "-e", "rdma_measure=true")
    assert done.returncode == 0, done.stdout
    plan = site.json("pairs/plan.json")
    assert (plan["hosts"][0], plan["schedule"]) == ("node2", {"kind": "against", "new": 1})
    assert sorted(plan["hosts"][1:]) == ["node1", "node3", "node4"]
    assert len(site.results()) == 6
    assert {line["host"] for line in site.lines("findings.jsonl")} == {"node2"}


def test_a_sweep_that_was_stopped_goes_on(site: Site) -> None:
    before = site.evidence
    with site.start("pairs", "-e", "rdma_measure=true") as run:
        until(lambda: site.evidence != before and any((site.evidence / "pairs").glob("node*.jsonl")), 120, "a first pair's result")
        sweep = site.json("pairs/plan.json")["sweep"]
        site.kill(run)
        run.communicate()
    stopped = site.run("pairs_stop")
    assert stopped.returncode == 0, stopped.stdout
    done = site.run("pairs", "-e", "rdma_measure=true")
    assert done.returncode == 0, done.stdout
    assert site.json("pairs/plan.json")["sweep"] == sweep
    assert len([row for row in site.results() if row[6] is not None]) == 12
