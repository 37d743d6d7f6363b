# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ladder by real Slurm and by real Open MPI 5; the GPUs that Slurm counts are no more there than those of all_reduce_perf."""

from __future__ import annotations

import json
from typing import Any

from lab import nccl_hosts
from lab.cluster import Lab
from tests.verify.collective_runs import END_SECONDS, REMEASURE, assert_nothing_runs, brief, run
from tests.verify.patience import until
from tests.verify.site import Site


def words(settings: dict[str, Any], **more: Any) -> list[str]:
    return [*REMEASURE, "-e", json.dumps({"rdma_collectives": {**settings, **more}})]


def assert_all_proven(site: Site) -> None:
    ladder = site.json("collectives.json")
    assert [(len(each["hosts"]), each["status"]) for each in ladder["runs"]] == [(2, "well"), (4, "well"), (4, "well")]
    findings = {each["check"]: each["observed"] for each in site.json("findings/collectives/node3.json") if "4 hosts" in each["subject"]}
    assert findings["collective.ranks"] == "8 ranks on 4 hosts"
    assert findings["collective.transport"] == "4 over NET/IB with GPUDirect RDMA, 2 over P2P/CUMEM"


def test_slurm_climbs_the_ladder(site: Site, lab: Lab, settings: dict[str, Any], slurm: dict[str, Any]) -> None:
    status, answer = run(site, lab, {}, *words(settings, **slurm))
    assert (status, brief(site)) == (0, []), answer
    assert_all_proven(site)
    assert site.json("collectives.json")["runs"][0]["argv"][:4] == ["srun", "--exclusive", "--mem=0", "--cpu-bind=none"]


def test_a_slow_host_under_slurm_is_named(site: Site, lab: Lab, settings: dict[str, Any], slurm: dict[str, Any]) -> None:
    status, answer = run(site, lab, {"node2": {"slow": 0.4}}, *words(settings, **slurm))
    assert status != 0, answer
    assert brief(site) == [("collective.busbw", "node2", "error"), ("collective.ladder", "node2", "error")], answer


def test_slurm_s_job_is_gone_when_a_run_is_ended(site: Site, lab: Lab, settings: dict[str, Any], slurm: dict[str, Any]) -> None:
    short = {**slurm, "gpus": 1, "repeats": 1, "timeout_seconds": 8}
    status, answer = run(site, lab, {"node3": {"sleep_seconds": 600}}, *words(settings, **short))
    assert status != 0, answer
    assert ("collective.ladder", "node3", "error") in brief(site)
    until(lambda: nccl_hosts.do(lab, lab.plan.nodes[0], "squeue --noheader") == "", END_SECONDS, "a queue of Slurm without our job")
    assert_nothing_runs(lab)


def test_a_host_that_slurm_has_drained_is_reported_in_slurm_s_words(
    site: Site, lab: Lab, settings: dict[str, Any], slurm: dict[str, Any]
) -> None:
    first = lab.plan.nodes[0]
    nccl_hosts.do(lab, first, "scontrol update NodeName=node4 State=DRAIN Reason=test")
    try:
        status, answer = run(site, lab, {}, *words(settings, **slurm, repeats=1, timeout_seconds=8))
    finally:
        nccl_hosts.do(lab, first, "scontrol update NodeName=node4 State=RESUME")
    assert status != 0, answer
    assert site.json("collectives.json")["well"] == ["node1", "node2", "node3"]
    assert ("collective.ladder", "node4", "error") in brief(site)
    (exit_,) = [
        each for each in site.json("findings/collectives/node4.json") if each["check"] == "collective.exit" and each["status"] == "unknown"
    ]
    assert "srun: Required node not available (down, drained or reserved)" in exit_["observed"]


def test_open_mpi_5_climbs_the_ladder(site: Site, lab: Lab, settings: dict[str, Any], openmpi5: dict[str, Any]) -> None:
    status, answer = run(site, lab, {}, *words(settings, **openmpi5))
    assert (status, brief(site)) == (0, []), answer
    assert_all_proven(site)


def test_what_open_mpi_5_has_started_ends_with_a_run(site: Site, lab: Lab, settings: dict[str, Any], openmpi5: dict[str, Any]) -> None:
    short = {**openmpi5, "gpus": 1, "repeats": 1, "timeout_seconds": 8}
    status, answer = run(site, lab, {"node2": {"sleep_seconds": 600}}, *words(settings, **short))
    assert status != 0, answer
    assert ("collective.ladder", "node2", "error") in brief(site)
    assert_nothing_runs(lab)
