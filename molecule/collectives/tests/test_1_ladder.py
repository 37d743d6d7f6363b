# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The collectives stage as a person runs it, over real Open MPI; all_reduce_perf is a stand-in (docs/lab.md), and so are HCAs and GPUs."""

from __future__ import annotations

import json
from typing import Any

from lab.cluster import Lab
from tests.verify.collective_runs import HOSTS, REMEASURE, assert_nothing_runs, brief, run
from tests.verify.site import Site


def test_a_dry_run_runs_nothing_and_says_so(site: Site, lab: Lab) -> None:
    status, answer = run(site, lab, {}, "--check")
    assert status == 0, answer
    assert not (site.evidence / "collectives.json").exists()
    assert brief(site) == []


def test_a_clean_ladder_is_climbed_and_every_host_proven(site: Site, lab: Lab) -> None:
    status, answer = run(site, lab, {})
    assert (status, brief(site)) == (0, []), answer
    ladder = site.json("collectives.json")
    assert [(len(each["hosts"]), each["status"]) for each in ladder["runs"]] == [(2, "well"), (4, "well"), (4, "well")]
    assert (ladder["well"], ladder["launcher"], ladder["ended"]) == (HOSTS, "node1", True)
    findings = {each["check"]: each["observed"] for each in site.json("findings/collectives/node3.json") if "4 hosts" in each["subject"]}
    assert findings["collective.ranks"] == "8 ranks on 4 hosts"
    assert findings["collective.transport"] == "4 over NET/IB with GPUDirect RDMA, 2 over P2P/CUMEM"
    assert findings["collective.hcas"] == "mlx5_0, mlx5_1"


def test_a_second_run_measures_nothing(site: Site, lab: Lab) -> None:
    status, answer = run(site, lab, {})
    assert (status, brief(site)) == (0, []), answer
    assert not (site.evidence / "collectives.json").exists()
    assert "proven by run" in site.json("findings/collectives/node2.json")[0]["observed"]


def test_a_slow_host_is_named_by_bisection(site: Site, lab: Lab) -> None:
    status, answer = run(site, lab, {"node3": {"slow": 0.4}}, *REMEASURE)
    assert status != 0, answer
    assert brief(site) == [("collective.busbw", "node3", "error"), ("collective.ladder", "node3", "error")], answer
    ladder = site.json("collectives.json")
    assert [each["words"] for each in ladder["blames"]] == ["node3: fails or is slow with each of two good hosts"]
    assert ladder["well"] == ["node1", "node2", "node4"]


def test_after_the_fix_it_is_run_beside_proven_ones_alone(site: Site, lab: Lab) -> None:
    status, answer = run(site, lab, {})
    assert (status, brief(site)) == (0, []), answer
    assert site.json("collectives.json")["well"] == ["node1", "node2", "node3"]


def test_a_run_over_sockets_is_refused_however_fast(site: Site, lab: Lab) -> None:
    status, answer = run(site, lab, {host: {"socket": True} for host in HOSTS}, *REMEASURE)
    assert status != 0, answer
    assert ("collective.transport", "node1", "error") in brief(site)
    assert not [each for each in brief(site) if each[0] == "collective.busbw"]
    assert site.json("collectives.json")["well"] == []


def test_a_build_without_mpi_stops_the_ladder(site: Site, lab: Lab) -> None:
    status, answer = run(site, lab, {host: {"no_mpi": True} for host in HOSTS}, *REMEASURE)
    assert status != 0, answer
    assert ("collective.ranks", "node1", "error") in brief(site)
    assert len(site.json("collectives.json")["runs"]) == 1


def test_a_host_that_hangs_is_named_and_nothing_is_left_running(site: Site, lab: Lab, settings: dict[str, Any]) -> None:
    short = json.dumps({"rdma_collectives": {**settings, "gpus": 1, "repeats": 1, "timeout_seconds": 8}})
    status, answer = run(site, lab, {"node2": {"sleep_seconds": 600}}, *REMEASURE, "-e", short)
    assert status != 0, answer
    assert site.json("collectives.json")["well"] == ["node1", "node3", "node4"]
    assert ("collective.ladder", "node2", "error") in brief(site)
    assert_nothing_runs(lab)
