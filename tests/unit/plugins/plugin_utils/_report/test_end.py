# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The end of a run: its outcome in one word, and the files that it leaves."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.drift import Difference
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.end import RunEnd
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.withheld import Withheld, record

CHANGE = Difference("node1", "host", "live sysctl", "a = 0", "a = 1")


def finding(stage: str = "link", host: str = "node1", status: str = "ok", **more: Any) -> Finding:
    return Finding(stage, f"{stage}.check", host, "rail 0", status, "seen", "requested", "Look." if status != "ok" else "", **more)


def ended(
    path: Path,
    findings: Sequence[Finding] = (),
    changes: Sequence[Difference] = (),
    *,
    check_mode: bool = False,
    unreachable: Sequence[str] = (),
    failed: Sequence[str] = (),
) -> RunEnd:
    folder = RunFolder(path / "R1")
    by_place: dict[tuple[str, str], list[Finding]] = {}
    for each in findings:
        by_place.setdefault((each.stage, each.host), []).append(each)
    for (stage, host), found in by_place.items():
        folder.write_findings(stage, host, found)
    end = RunEnd(folder, changes, check_mode=check_mode, unreachable=unreachable)
    end.failed = list(failed)
    return end


BAD, UNKNOWN = finding(status="error"), finding(status="unknown")
LOST = finding(host="node2", status="unknown")
OUTCOMES = [
    ("all is well", {"findings": [finding()]}, "clean"),
    ("nothing was looked at", {}, "clean"),
    ("a warning", {"findings": [finding(status="warning")]}, "clean"),
    ("a silenced error", {"findings": [finding(status="error", silenced_by="ada")]}, "clean"),
    ("hosts were changed", {"findings": [finding()], "changes": [CHANGE]}, "clean"),
    ("an error", {"findings": [BAD]}, "failed"),
    ("an unknown", {"findings": [UNKNOWN]}, "failed"),
    ("a task that failed", {"findings": [finding()], "failed": ["node1"]}, "failed"),
    ("an unreachable host without a finding", {"findings": [finding()], "unreachable": ["node2"]}, "unreachable"),
    ("an unreachable host that is lost", {"findings": [finding(), LOST], "unreachable": ["node2"]}, "unreachable"),
    ("one that cannot be reached and one that fails", {"findings": [BAD, LOST], "unreachable": ["node2"]}, "failed"),
    ("one that cannot be reached and a task that fails", {"unreachable": ["node2"], "failed": ["node1"]}, "failed"),
    ("check mode, nothing differs", {"findings": [finding()], "check_mode": True}, "clean"),
    ("check mode, a task would change something", {"changes": [CHANGE], "check_mode": True}, "drifted"),
    ("check mode, a gate finds something", {"findings": [BAD], "check_mode": True}, "drifted"),
    ("check mode, a task that failed", {"changes": [CHANGE], "failed": ["node1"], "check_mode": True}, "failed"),
    ("check mode, an unreachable host", {"changes": [CHANGE], "unreachable": ["node2"], "check_mode": True}, "unreachable"),
]


@pytest.mark.parametrize(("how", "outcome"), [case[1:] for case in OUTCOMES], ids=[case[0] for case in OUTCOMES])
def test_the_outcome(tmp_path: Path, how: dict[str, Any], outcome: str) -> None:
    end = ended(tmp_path, **how)
    assert end.outcome == outcome
    assert end.summary()["outcome"] == outcome


def test_findings_are_in_the_order_of_the_build(tmp_path: Path) -> None:
    end = ended(tmp_path, [finding("pairs"), finding("host"), finding("driver"), finding("fabric")])
    assert [each.stage for each in end.findings] == ["driver", "fabric", "host", "pairs"]


def test_a_run_that_changes_hosts_leaves_no_drift(tmp_path: Path) -> None:
    end = ended(tmp_path, [BAD], [CHANGE])
    end.write()
    assert (end.drift, end.summary()["changes"], end.summary()["drift"]) == ([], 1, 0)
    assert sorted(path.name for path in end.folder.path.iterdir() if path.is_file()) == [
        "findings.jsonl", "metrics.prom", "summary.json", "summary.txt",
    ]  # fmt: skip


def test_in_check_mode_drift_is_what_tasks_and_gates_say(tmp_path: Path) -> None:
    end = ended(tmp_path, [BAD, finding("host", status="ok")], [CHANGE], check_mode=True)
    end.write()
    lines = [json.loads(line) for line in (end.folder.path / "drift.jsonl").read_text().splitlines()]
    assert lines == [CHANGE.to_dict(), Difference("node1", "link", "link.check: rail 0", "seen", "requested").to_dict()]
    assert end.summary()["drift"] == 2
    text = (end.folder.path / "summary.txt").read_text()
    assert text.startswith("Drift: 2 differences\nhost   stage  subject")
    assert "\n\nRDMA cluster, run R1\n\n" in text


def test_the_files_say_the_same_as_the_run(tmp_path: Path) -> None:
    findings = [finding("driver"), finding("driver", "node2"), finding("link", "node2", "unknown"), finding("link", "node2")]
    end = ended(tmp_path, findings, unreachable=["node3"], failed=["node2"])
    rail = {"rail": "rail0", "measured": 0, "planned": 0, "ports": 2, "proven": 2, "median_usec": None}
    figures = dict.fromkeys(("median_gbps", "lowest_gbps", "highest_gbps"))
    end.folder.write_json("pairs/summary.json", {"rails": [{**rail, **figures}], "verdicts": [], "cleared": []})
    end.write()
    lines = (end.folder.path / "findings.jsonl").read_text().splitlines()
    assert [Finding.from_dict(json.loads(line)) for line in lines] == end.findings
    assert set(end.findings) == set(findings)
    summary = end.folder.read_json("summary.json")
    assert 0 <= time.time() - summary.pop("ended") < 60
    assert summary == {
        "schema": 1,
        "run": "R1",
        "outcome": "failed",
        "check_mode": False,
        "failed": ["node2"],
        "unreachable": ["node3"],
        "changes": 0,
        "drift": 0,
        "warnings": 0,
        "withheld": [],
        "costs": None,
        "hosts": {"node1": {"driver": "ok"}, "node2": {"driver": "ok", "link": "unknown"}},
        "planes": {},
        "fleet": {},
    }
    text = (end.folder.path / "summary.txt").read_text()
    assert text == end.text + "\n"
    assert "rail0: no pair measured, 2 of 2 ports proven before" in text
    assert text.endswith(f"Evidence: {end.folder.path}\n")


def test_a_run_that_did_nothing_still_leaves_files_that_parse(tmp_path: Path) -> None:
    end = ended(tmp_path, check_mode=True)
    end.write()
    assert (end.folder.path / "findings.jsonl").read_text() == (end.folder.path / "drift.jsonl").read_text() == ""
    assert end.folder.read_json("summary.json")["hosts"] == {}
    assert (end.folder.path / "summary.txt").read_text().startswith("Drift: none.\n\nRDMA cluster, run R1\n")


def test_writing_twice_leaves_the_same(tmp_path: Path) -> None:
    end = ended(tmp_path, [BAD], check_mode=True)
    end.write()
    before = {path.name: path.read_bytes() for path in end.folder.path.iterdir() if path.is_file()}
    end.write()
    assert {path.name: path.read_bytes() for path in end.folder.path.iterdir() if path.is_file()} == before


def test_a_plane_is_no_host(tmp_path: Path) -> None:
    end = ended(tmp_path, [finding("fabric"), finding("fabric", "plane default", "error")])
    assert (end.summary()["hosts"], end.summary()["planes"]) == ({"node1": {"fabric": "ok"}}, {"plane default": {"fabric": "error"}})
    assert end.outcome == "failed"
    assert "plane default" in end.text


def test_the_fleet_is_no_host(tmp_path: Path) -> None:
    end = ended(tmp_path, [finding("driver"), finding("driver", "the fleet", "warning")])
    assert [end.summary()[key] for key in ("hosts", "planes", "fleet")] == [{"node1": {"driver": "ok"}}, {}, {"driver": "warning"}]
    assert "the fleet" in end.text


def test_warnings_and_withheld_effects_are_in_the_summary(tmp_path: Path) -> None:
    silent = Finding("link", "a.b", "node1", "s", "warning", "x", "y", silenced_by="ada")
    end = ended(tmp_path, [finding("link", status="warning"), silent])
    for host in ("node2", "node10"):
        record(end.folder, Withheld(host, "reboot", "driver", "the new driver loads at boot", (host,), "reboot_allowed: true"))
    end.write()
    summary = end.folder.read_json("summary.json")
    assert summary["warnings"] == 1
    assert summary["withheld"] == [
        {
            "effect": "reboot", "stage": "driver", "reason": "the new driver loads at boot", "allow": "reboot_allowed: true",
            "hosts": ["node2", "node10"], "touches": ["node2", "node10"],
        }
    ]  # fmt: skip
    text = (end.folder.path / "summary.txt").read_text()
    assert "Warnings: 1." in text
    assert (
        "  reboot on node2, node10: the new driver loads at boot\n    changes:  node2, node10\n    allow:    reboot_allowed: true" in text
    )


@pytest.mark.parametrize("data", [b"", b"[]", b'{"schema": 2, "endp', b"\xff", b"[" * 200_000, b"7"])
def test_damaged_proofs_and_evidence_do_not_cost_the_summary(tmp_path: Path, data: bytes) -> None:
    end = ended(tmp_path, [finding()])
    for name in ("../proofs/pairs.json", "pairs/summary.json", "withheld/reboot/node1.json"):
        file = end.folder.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    end.write()
    assert json.loads((tmp_path / "R1/summary.json").read_text())["outcome"] == "clean"
    assert "node1" in (tmp_path / "R1/summary.txt").read_text()
    assert "rdma_cluster_run_clean 1" in (tmp_path / "R1/metrics.prom").read_text()


def test_damaged_findings_are_no_clean_run(tmp_path: Path) -> None:
    end = ended(tmp_path, [finding(), finding(host="node2")])
    (tmp_path / "R1/findings/link/node2.json").write_text("")
    end.write()
    summary = json.loads((tmp_path / "R1/summary.json").read_text())
    assert (summary["outcome"], summary["hosts"]["node2"]) == ("failed", {"link": "unknown"})
    assert str(tmp_path / "R1/findings/link/node2.json") in (tmp_path / "R1/summary.txt").read_text()


def test_with_the_price_of_a_gpu_hour_the_run_says_what_findings_cost(tmp_path: Path) -> None:
    slow = Finding("pairs", "pair.bandwidth", "node2", "rail0", "error", "190", "380", rate_ratio=0.5)
    end = ended(tmp_path, [finding("driver"), slow])
    end.folder.write_json("gpu_hour.json", {"price": 2.0, "gpus_per_host": 8, "job_hosts": None, "currency": "$", "step": None})
    assert "    costs:    at most $384 a day: (1 - 0.5) × 2 hosts × 8 GPUs × $ 2 × 24 h" in end.text.splitlines()
    (cost,) = end.summary()["costs"]
    assert (cost["host"], cost["check"], cost["per_day"], cost["at_most"]) == ("node2", "pair.bandwidth", 384.0, True)
