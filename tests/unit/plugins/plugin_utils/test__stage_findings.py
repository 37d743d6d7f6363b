# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Findings on the way through a stage, and of stages that look at nothing."""

from __future__ import annotations

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._findings import Finding, stopping
from ansible_collections.rdma.cluster.plugins.plugin_utils._stage_findings import is_under_way, lost, under_way

OTHER = Finding("link", "link.state", "node1", "rail 0", "ok", "ACTIVE", "ACTIVE")


def test_a_host_under_way_stops_the_gate_until_it_has_come_there() -> None:
    (found,) = stopping([under_way("link", "node1")])
    assert (found.stage, found.check, found.host, found.status) == ("link", "stage.completed", "node1", "unknown")
    assert found.expected == "every task of the stage done, and the host at its gate"


def test_a_lost_host_says_why_and_what_to_do() -> None:
    assert lost("link", "node1", "it cannot be reached: timed out") == Finding(
        "link", "stage.completed", "node1", "stage", "unknown", "it cannot be reached: timed out",
        "every task of the stage done, and the host at its gate",
        "Mend this on node1 and run again; what the stage had done before stays done.",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("findings", "expected"),
    [
        ([under_way("link", "node1")], True),
        ([OTHER], False),
        ([under_way("link", "node1"), OTHER], False),
        ([], False),
    ],
)
def test_only_a_host_that_has_no_more_than_begun_is_under_way(findings: list[Finding], expected: bool) -> None:
    assert is_under_way(findings) is expected
