# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The collectives stage on the containers of nccl_hosts, and what it says."""

from __future__ import annotations

import json
import time
from typing import Any

from lab import nccl_hosts, remote
from lab.cluster import Lab
from tests.verify.site import Site

HOSTS = ["node1", "node2", "node3", "node4"]
REMEASURE = ["-e", "rdma_measure=true"]
#: What a run consists of, by any launcher, and how long what it has started elsewhere may outlive it: slurmctld and Open MPI's daemons
#: see for themselves that their launcher has gone.
PROGRAMS = "[a]ll_reduce_perf|[o]rted|[p]rted|[p]rterun|[m]pirun|[s]lurmstepd"
END_SECONDS = 10


def brief(site: Site) -> list[tuple[str, str, str]]:
    """What the last run's findings say that is not well: check, host, status."""
    found = [json.loads(line) for line in (site.evidence / "findings.jsonl").read_text().splitlines()]
    return sorted((each["check"], each["host"], each["status"]) for each in found if each["status"] in ("error", "unknown", "warning"))


def run(site: Site, lab: Lab, faults: dict[str, dict[str, Any]], *words: str) -> tuple[int, str]:
    """The stage with faults of hosts: host → the settings of its stand-in."""
    for node in lab.plan.nodes:
        nccl_hosts.set_state(lab, node, **faults.get(node.name, {}))
    done = site.run("collectives", *words)
    return done.returncode, done.stdout


def running(lab: Lab) -> dict[str, str]:
    """Host → what it still runs of a collective, or what its pgrep has to complain of; none for a host where nothing does."""
    answer = {node.name: remote.execute(node, lab.folder, f"pgrep -af '{PROGRAMS}'") for node in lab.plan.nodes}
    # pgrep ends with 1 where it finds nobody.
    return {name: each.stdout + each.stderr for name, each in answer.items() if (each.status, each.stdout) != (1, "")}


def assert_nothing_runs(lab: Lab) -> None:
    deadline = time.monotonic() + END_SECONDS
    while (left := running(lab)) and time.monotonic() < deadline:
        time.sleep(0.5)
    assert left == {}
