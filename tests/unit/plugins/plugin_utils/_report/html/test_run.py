# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A run folder as the report reads it, and the first lines of the report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html.run import ReportError, Run, run_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html.verdict import Verdict, verdict_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.stages import under_way

RUN = "20261126T120000Z-1"


def finding(host: str, status: str, stage: str = "link", subject: str = "rail 0", observed: str = "seen", **more: Any) -> Finding:
    return Finding(stage, f"{stage}.check", host, subject, status, observed, "expected", "Look.", **more)


def run_with(base: Path, *findings: Finding, summary: dict[str, Any] | None = None, name: str = RUN) -> Run:
    folder = RunFolder(base / name)
    folder.path.mkdir(parents=True)
    by_place: dict[tuple[str, str], list[Finding]] = {}
    for each in findings:
        by_place.setdefault((each.stage, each.host), []).append(each)
    for (stage, host), found in by_place.items():
        folder.write_findings(stage, host, found)
    if summary is not None:
        folder.write_json("summary.json", summary)
    return Run(folder)


def test_a_run_has_its_time_hosts_and_stages_in_order(tmp_path: Path) -> None:
    run = run_with(tmp_path, finding("node10", "ok", "network"), finding("node2", "error"), finding("plane a", "ok", "fabric"))
    assert (run.name, run.began, run.outcome, run.is_check) == (RUN, 1795694400.0, "partial", False)
    assert (run.hosts, run.stages) == (["node2", "node10"], ["link", "fabric", "network"])
    assert [each.host for each in run.findings] == ["node2", "plane a", "node10"]
    assert [each.host for each in run.bad] == ["node2"]
    assert Run(RunFolder(tmp_path / "by-hand")).began == 0.0


def test_the_summary_of_a_run(tmp_path: Path) -> None:
    assert run_with(tmp_path, summary={"outcome": "clean", "check_mode": True}).is_check
    # Before schemas were written, all summaries had the first one.
    run = run_with(tmp_path / "old", summary={"outcome": "drifted"})
    assert (run.outcome, run.is_check) == ("drifted", False)
    with pytest.raises(ReportError, match=rf"Run {RUN} has a summary of schema 2, .* reads schema 1\. Use the version"):
        assert run_with(tmp_path / "new", summary={"schema": 2}).summary


def test_files_of_hosts_in_natural_order_with_their_names(tmp_path: Path) -> None:
    run = run_with(tmp_path)
    for host in ("node10", "node2", "a/b"):
        run.folder.write_json(run.folder.host_file("facts", host), {})
        run.folder.write_json(run.folder.host_file("facts", host, ".counters.json"), {})
    assert [host for host, _file in run.host_files("facts", ".counters.json")] == ["a/b", "node2", "node10"]
    assert list(run.host_files("missing")) == []


def test_a_damaged_file_is_empty(tmp_path: Path) -> None:
    run = run_with(tmp_path)
    run.folder.write("gates/link.json", '{"cut')
    run.folder.write_json("gates/host.json", {"stops": True})
    assert (run.gate("link"), run.gate("host"), run.gate("qos")) == ({}, {"stops": True}, {})


def test_runs_by_name_and_the_latest(tmp_path: Path) -> None:
    runs = [f"202611{day}T120000Z-1" for day in range(10, 17)]
    for name in runs:
        (tmp_path / name).mkdir()
    (tmp_path / "proofs").mkdir()
    (tmp_path / "latest").symlink_to(runs[-2])
    assert run_of(tmp_path, runs[0]).name == runs[0]
    assert run_of(tmp_path, "latest").name == runs[-2]
    with pytest.raises(ReportError, match=rf"has no run 'proofs'\. The newest runs are {', '.join(runs[:1:-1])}\. Name one of them"):
        run_of(tmp_path, "proofs")
    with pytest.raises(ReportError, match=r"has no run 'latest'\. It has no runs\."):
        run_of(tmp_path / "proofs", "latest")
    with pytest.raises(ReportError, match=r"It has no runs\."):
        run_of(tmp_path / "nowhere", RUN)


FAILED = {"outcome": "failed", "failed": [], "unreachable": []}
CLEAN = {"outcome": "clean", "failed": [], "unreachable": []}


def test_a_good_run_counts_its_hosts_and_warnings(tmp_path: Path) -> None:
    some = [finding("node1", "ok"), finding("node2", "ok", "qos"), finding("plane a", "ok", "fabric")]
    assert verdict_of(run_with(tmp_path / "1", *some, summary=CLEAN)) == Verdict(
        "good", "Good: 2 hosts passed all gates of this run", "Nothing. Stages: link, fabric, qos.", []
    )
    warning, silent = finding("node3", "warning"), finding("node3", "warning", "qos", silenced_by="rdma_checks")
    one = verdict_of(run_with(tmp_path / "2", *some, warning, silent, summary=CLEAN))
    assert one.headline == "Good: 3 hosts passed all gates of this run, with 1 warning"
    two = verdict_of(run_with(tmp_path / "3", warning, finding("node4", "warning"), summary=CLEAN))
    assert two.headline == "Good: 2 hosts passed all gates of this run, with 2 warnings"


def test_errors_and_unknowns_are_counted_by_cause(tmp_path: Path) -> None:
    found = [
        finding("node1", "error", observed="2 lanes"),
        finding("node2", "error", observed="2 lanes"),
        finding("plane a", "unknown", "fabric", subject="plane a", observed="plane a: not read"),
        finding("node1", "unknown", "network", caused_by="link.check on rail 0"),
    ]
    verdict = verdict_of(run_with(tmp_path, *found, summary=FAILED))
    assert verdict == Verdict(
        "bad",
        "Not good: 2 errors and 1 unknown on 3 hosts or planes",
        "Errors of link, fabric. The policy of the gate did not end the run there.",
        ["node1, node2, rail 0: 2 lanes", "plane a: not read"],
    )
    only = verdict_of(run_with(tmp_path / "only", found[3], summary=FAILED))
    assert (only.headline, only.blame) == ("Not good: 1 unknown on 1 host or plane", ["node1, rail 0: seen"])


def test_the_first_lines_are_short(tmp_path: Path) -> None:
    many = [finding(f"node{number}", "error", observed=f"{number} " + "x" * 200) for number in range(1, 8)]
    blame = verdict_of(run_with(tmp_path, *many, summary=FAILED)).blame
    assert len(blame) == 6
    assert blame[0] == "node1, rail 0: 1 " + "x" * 137 + "…"
    assert blame[-1] == "and 2 more, below"
    whole = verdict_of(run_with(tmp_path / "one", finding("node1", "error", observed="y" * 140), summary=FAILED)).blame
    assert whole == ["node1, rail 0: " + "y" * 140]


def test_a_run_whose_tasks_failed_names_the_hosts(tmp_path: Path) -> None:
    summary = {"outcome": "unreachable", "failed": ["node2"], "unreachable": ["node1", "node2"]}
    assert verdict_of(run_with(tmp_path, finding("node1", "ok"), summary=summary)) == Verdict(
        "bad",
        "Not good: 3 hosts failed or were unreachable",
        "A task failed, or a host was unreachable. See the output of the run.",
        ["node1, node2"],
    )


def test_a_run_that_drifted_or_judged_nothing(tmp_path: Path) -> None:
    drifted = verdict_of(run_with(tmp_path / "1", finding("node1", "ok"), summary={"outcome": "drifted", "drift": 3}))
    assert (drifted.kind, drifted.headline) == ("bad", "Drifted: 3 settings differ from the intent")
    nothing = verdict_of(run_with(tmp_path / "2", finding("node1", "not_applicable"), summary=CLEAN))
    assert (nothing.kind, nothing.headline) == ("nothing", "No verdict: no gate judged a host")


@pytest.mark.parametrize(
    ("findings", "headline", "blame"),
    [
        ([], "Partial: stopped before the first stage", ["Unknown: the run did not end."]),
        ([finding("node1", "ok")], "Partial: stopped after link", ["Unknown: the run did not end."]),
        ([finding("node1", "error", observed="down")], "Partial: stopped after link", ["node1, rail 0: down"]),
    ],
)
def test_a_run_without_an_end(tmp_path: Path, findings: list[Finding], headline: str, blame: list[str]) -> None:
    verdict = verdict_of(run_with(tmp_path, *findings))
    assert (verdict.kind, verdict.headline, verdict.blame) == ("partial", headline, blame)
    assert "killed, or it is still running" in verdict.stops


def test_the_stage_in_which_a_run_stopped(tmp_path: Path) -> None:
    run = run_with(tmp_path, finding("node1", "ok"), under_way("pairs", "node12"), under_way("pairs", "node3"), under_way("link", "node4"))
    assert run.stopped_at == ("pairs", ["node3", "node12"])
