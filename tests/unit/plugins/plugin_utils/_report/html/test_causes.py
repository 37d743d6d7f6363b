# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The gate matrix and the causes of the report: hosts with equal results share a row, and each finding is listed once."""

from __future__ import annotations

from pathlib import Path

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html.causes import matrix, silenced, stopping_causes, warnings
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html.run import Run
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder


def finding(host: str, status: str, stage: str = "link", check: str = "state", **more: str) -> Finding:
    return Finding(stage, f"{stage}.{check}", host, "rail 0", status, "seen", "expected", "Look.", **more)  # type: ignore[arg-type]


def run_with(base: Path, *findings: Finding) -> Run:
    folder = RunFolder(base / "20261126T120000Z-1")
    by_place: dict[tuple[str, str], list[Finding]] = {}
    for each in findings:
        by_place.setdefault((each.stage, each.host), []).append(each)
    for (stage, host), found in by_place.items():
        folder.write_findings(stage, host, found)
    return Run(folder)


def test_a_small_fleet_has_a_row_for_each_host_and_plane(tmp_path: Path) -> None:
    run = run_with(
        tmp_path,
        finding("node10", "ok"),
        finding("node2", "ok"),
        finding("node2", "error", check="rate"),
        finding("plane a", "warning", "fabric"),
        finding("node10", "unknown", "fabric"),
    )
    shown, every = matrix(run)
    assert [(row.title, row.count, row.cells) for row in shown] == [
        ("node2", 1, ("error", "not reached")),
        ("node10", 1, ("ok", "unknown")),
        ("plane a", 1, ("not reached", "warning")),
    ]
    assert every == []


def test_twelve_hosts_have_a_row_each_and_thirteen_are_folded(tmp_path: Path) -> None:
    good = [finding(f"node{number}", "ok") for number in range(1, 13)]
    shown, every = matrix(run_with(tmp_path / "twelve", *good))
    assert (len(shown), every) == (12, [])
    more = [finding("node13", "warning"), finding("node14", "error"), finding("node15", "error"), finding("node16", "unknown")]
    shown, every = matrix(run_with(tmp_path / "more", *good, *more))
    # Bad rows come first, and of these the rarest.
    assert [(row.title, row.count, row.cells) for row in shown] == [
        ("node16", 1, ("unknown",)),
        ("node14, node15", 2, ("error",)),
        ("node13", 1, ("warning",)),
        ("node1, node2, node3, node4, node5 and 7 more", 12, ("ok",)),
    ]
    assert [row.title for row in every] == [f"node{number}" for number in range(1, 17)]


def test_hosts_with_the_same_cause_share_a_block_and_what_follows_is_listed_once(tmp_path: Path) -> None:
    run = run_with(
        tmp_path,
        *(finding(host, "error") for host in ("node1", "node2")),
        *(finding(host, "unknown", "network", "mtu", caused_by="link.state on rail 0") for host in ("node1", "node2")),
        finding("node3", "unknown", "network", "mtu", caused_by="link.state on rail 0"),
        finding("node4", "ok"),
    )
    found = [(each.check, each.status, each.hosts, each.follows) for each in stopping_causes(run)]
    assert found == [
        ("link.state", "error", ["node1", "node2"], ["network.mtu"]),
        # The cause of this one is no error of the run.
        ("network.mtu", "unknown", ["node3"], []),
    ]


def test_warnings_and_silenced_findings_are_apart(tmp_path: Path) -> None:
    run = run_with(
        tmp_path,
        finding("node1", "warning"),
        finding("node2", "warning", caused_by="link.state on rail 0"),
        finding("node3", "warning", check="known", silenced_by="rdma_checks"),
        finding("node4", "error", check="known", silenced_by="rdma_checks"),
        finding("node5", "ok"),
    )
    assert [(each.check, each.hosts) for each in warnings(run)] == [("link.state", ["node1", "node2"])]
    assert [(each.check, each.status, each.hosts, each.reason) for each in silenced(run)] == [
        ("link.known", "warning", ["node3"], "rdma_checks"),
        ("link.known", "error", ["node4"], "rdma_checks"),
    ]
    assert stopping_causes(run) == []
