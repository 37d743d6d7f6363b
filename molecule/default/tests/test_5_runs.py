# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two runs at once, proofs, and load."""

from __future__ import annotations

import re
import time

from lab import remote
from lab.cluster import Lab
from tests.verify.site import Site

#: A program that holds a file of this name open stands in for a process on a GPU; so does the folder for the driver.
STANDIN = (
    "mknod -m 666 /dev/nvidia0 c 1 3 2>/dev/null; "
    "systemd-run --quiet --unit=standin-gpu-process python3 -c 'import time; f = open(\"/dev/nvidia0\"); time.sleep(600)'"
)


def test_the_second_of_two_runs_names_the_first_and_stops(site: Site) -> None:
    before = site.evidence
    with site.start("site") as first:
        deadline = time.monotonic() + 60
        while site.evidence == before:
            assert time.monotonic() < deadline
            time.sleep(0.2)
        run = site.evidence.name
        second = site.run()
        said, _nothing = first.communicate()
    assert first.returncode == 0, said
    assert second.returncode != 0
    assert re.search(rf"Run {run} of \w+ \(pid {first.pid}, ", second.stdout), second.stdout
    assert "Read the host" not in second.stdout


def test_validate_judges_the_proofs_and_measures_nothing(site: Site) -> None:
    done = site.run("validate")
    assert done.returncode == 0, done.stdout
    assert not (site.evidence / "pairs/plan.json").exists()
    assert "6 of 6 pairs" not in done.stdout
    assert done.stdout.count("0 of 6 pairs measured, 6 proven before") == 2


def test_a_host_at_work_is_not_measured_and_it_is_said_why(lab: Lab, site: Site) -> None:
    node = lab.plan.node("node2")
    assert remote.execute(node, lab.folder, STANDIN).status == 0
    try:
        # One more byte in the message is another intent: no proof holds any longer.
        done = site.run(
            "site", "-e", '{"rdma_pairs": {"iterations": 201, "qp_timeout": 20, "floor_gbps": 0.005, "software_fail_below": 0.2}}'
        )
    finally:
        remote.execute(node, lab.folder, "systemctl stop standin-gpu-process; rm -f /dev/nvidia0")
    assert done.returncode != 0
    assert site.json("pairs/plan.json")["hosts"] == ["node1", "node3", "node4"]
    assert re.search(r"not measured, at work are node2: GPU process \d+ \(python3\)", done.stdout), done.stdout
