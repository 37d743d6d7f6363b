# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The summary of a run."""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.module_utils._findings import Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._summary import render

STAGES = ("driver", "link", "network")


def test_the_whole_text() -> None:
    findings = [
        Finding("driver", "driver.nic", "node1", "rail 0", "ok", "present", "present"),
        Finding("driver", "driver.nic", "node22", "rail 0", "ok", "present", "present"),
        Finding("link", "link.state", "node22", "rail 0", "error", "DOWN", "ACTIVE", "Check the cable."),
    ]
    pairs = [{"rail": "rail0", "average_gbps": rate} for rate in (0.2, 0.4, None)]
    assert render("R1", STAGES, findings, pairs, "/e/R1") == "\n".join(
        [
            "RDMA cluster, run R1",
            "",
            "host    driver  link   network",
            "node1   ok      -      -",
            "node22  ok      error  -",
            "",
            "rail0: 2 of 3 pairs measured, median 0.3 Gb/s (lowest 0.2, highest 0.4)",
            "",
            "To be mended:",
            "  node22, rail 0: link.state is error (link stage)",
            "    seen:     DOWN",
            "    expected: ACTIVE",
            "    do:       Check the cable.",
            "",
            "Evidence: /e/R1",
        ]
    )


def test_nothing_to_mend_says_nothing_of_mending() -> None:
    findings = [Finding("link", "link.state", "node1", "rail 0", "ok", "ACTIVE", "ACTIVE")]
    assert "mended" not in render("R1", STAGES, findings, [], "/e")
