# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The settings of a host's collector from the folders of earlier runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.action import exporter_plan
from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.module_utils._driver.distribution import DEBIAN, RPM
from ansible_collections.rdma.cluster.plugins.module_utils._metrics.config import parse_config
from ansible_collections.rdma.cluster.plugins.module_utils._metrics.results import Gate
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs import proofs
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder
from tests.unit.builders.hosts import lab_facts, lab_intent

FIRST, DRIFT, KILLED, NOW = "20261126T100000Z-1", "20261126T110000Z-2", "20261126T120000Z-3", "20261126T130000Z-4"
#: date -u -d 2026-11-26T10:00 +%s
TEN = 1795687200.0


def finding(stage: str, status: str) -> Finding:
    return Finding(stage, f"{stage}.check", "node1", "host", status, "seen", "expected", "Look.")


def plan(base: Path, family: str = DEBIAN, **metrics: Any) -> dict[str, Any]:
    folder = RunFolder(base / NOW)
    folder.path.mkdir(parents=True, exist_ok=True)
    intent = lab_intent(
        metrics={"manage": True, "textfile_dir": None, "interval_seconds": 60, "hw_counters": True, "labels": {}, **metrics}
    )
    folder.write_json(folder.host_file("intent", "node1"), intent)
    facts = lab_facts()
    facts["stack"]["distribution"]["family"] = family
    folder.write_json(folder.host_file("facts", "node1"), facts)
    action = exporter_plan.ActionModule.__new__(exporter_plan.ActionModule)
    action.folder, action.variables = folder, {"inventory_hostname": "node1"}
    return action.work({})


def run(base: Path, name: str, *findings: Finding, **summary: Any) -> RunFolder:
    folder = RunFolder(base / name)
    folder.path.mkdir(parents=True)
    for each in findings:
        folder.write_findings(each.stage, each.host, [each])
    if summary:
        folder.write_json("summary.json", {"schema": 1, **summary})
    return folder


def test_the_newest_verdict_of_each_stage_counts(tmp_path: Path) -> None:
    first = run(tmp_path, FIRST, finding("link", "error"), finding("pairs", "ok"), check_mode=False)
    first.write_json(proofs.FILE, proofs.write({"node1": {"rail1": proofs.Proof({}, 7.5, FIRST, 1, {}, 1.0)}}))
    later = run(tmp_path, DRIFT, finding("link", "warning"), check_mode=True)
    lines = [{"host": host, "stage": "qos", "subject": "x", "was": "1", "should_be": "2"} for host in ("node1", "node2", "node1")]
    later.write("drift.jsonl", "".join(f"{json.dumps(line)}\n" for line in lines))
    run(tmp_path, KILLED, finding("link", "error"))
    planned = plan(tmp_path, labels={"cluster": "a"})
    config = parse_config(planned["config"])
    assert config.results.gates == {"link": Gate("warning", TEN + 3600), "pairs": Gate("ok", TEN)}
    assert config.results.findings == {"link.check": {"warning": 1}}
    assert (config.results.drift, config.results.proofs) == ({"qos": 2}, {"rail1": 7.5})
    assert [rail["name"] for rail in config.rails] == [rail["name"] for rail in lab_intent()["rails"]]
    assert (config.host, config.labels, config.folder) == ("node1", {"cluster": "a"}, "/var/lib/prometheus/node-exporter")
    assert (planned["packages"], planned["interval_seconds"]) == (["prometheus-node-exporter"], 60)
    assert plan(tmp_path, labels={"cluster": "a"}) == planned


def test_without_runs_there_are_no_results(tmp_path: Path) -> None:
    results = parse_config(plan(tmp_path)["config"]).results
    assert (results.gates, results.findings, results.proofs, results.drift) == ({}, {}, {}, None)


def test_a_folder_of_the_site_needs_no_package(tmp_path: Path) -> None:
    planned = plan(tmp_path, RPM, textfile_dir="/srv/textfiles")
    assert (planned["packages"], parse_config(planned["config"]).folder) == ([], "/srv/textfiles")


@pytest.mark.parametrize(
    ("family", "metrics", "words"),
    [(RPM, {}, "rdma_metrics.textfile_dir is not set"), (DEBIAN, {"labels": {"rail": "x"}}, "rdma_metrics.labels: rail is a label")],
)
def test_what_cannot_be_installed_is_refused(tmp_path: Path, family: str, metrics: dict[str, Any], words: str) -> None:
    planned = plan(tmp_path, family, **metrics)
    assert planned["failed"]
    assert words in planned["msg"]
