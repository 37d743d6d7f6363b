# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Proofs, and load."""

from __future__ import annotations

import json
import re

from lab import remote
from lab.cluster import Lab
from lab.plan import PAIRS
from tests.verify.site import Site

#: A program that holds a file of this name open stands in for a process on a GPU; so does the folder for the driver.
STANDIN = (
    "mknod -m 666 /dev/nvidia0 c 1 3 2>/dev/null; "
    "systemd-run --quiet --unit=standin-gpu-process python3 -c 'import time; f = open(\"/dev/nvidia0\"); time.sleep(600)'"
)


def test_validate_judges_the_proofs_and_measures_nothing(site: Site) -> None:
    done = site.run("validate")
    assert done.returncode == 0, done.stdout
    assert not (site.evidence / "pairs/plan.json").exists()
    assert done.stdout.count("no pair measured, 4 of 4 ports proven before") == 2


def test_a_host_at_work_is_not_measured_and_it_is_reported_why(lab: Lab, site: Site) -> None:
    node = lab.plan.node("node2")
    assert remote.execute(node, lab.folder, STANDIN).status == 0
    try:
        # Another number of iterations is another intent: no proof holds any longer.
        done = site.run("pairs", "-e", json.dumps({"rdma_pairs": {**PAIRS, "iterations": 201}}))
    finally:
        remote.execute(node, lab.folder, "systemctl stop standin-gpu-process; rm -f /dev/nvidia0")
    assert done.returncode != 0
    assert site.json("pairs/plan.json")["hosts"] == ["node1", "node3", "node4"]
    pattern = r"node2, rail0: .*\n +seen: .*not measured, because the host is busy: GPU process \d+ \(python3\)"
    assert re.search(pattern, done.stdout), done.stdout
