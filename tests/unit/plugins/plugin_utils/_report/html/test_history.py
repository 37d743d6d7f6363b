# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The history: a line a run, once, and trends without the folders of old runs."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html import history
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html.report import report_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html.run import Run
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder
from tests.bench.report import RUN, write

LATER = "20261127T120000Z-2"


def past(run: str, **rails: dict[str, Any]) -> history.Past:
    return history.Past(run, "clean", False, 3, 1, 2, 4, rails)


def rail(lowest: float | None, median: float | None = None) -> dict[str, Any]:
    return {"measured": 3, "median_gbps": median, "lowest_gbps": lowest, "lowest_pair": "node1 to node2", "median_usec": None}


def test_each_run_has_one_line(tmp_path: Path) -> None:
    write(tmp_path, 7)
    for _time in range(2):
        report_of(tmp_path, RUN)
    [line] = (tmp_path / "history.jsonl").read_text().splitlines()
    data = json.loads(line)
    assert (data["run"], data["outcome"], data["hosts"], data["error"], data["unknown"]) == (RUN, "failed", 7, 1, 1)
    assert data["rails"]["rail0"]["measured"] == 21
    assert 370 < data["rails"]["rail0"]["median_gbps"] < 400


def test_the_trend_needs_no_folder_of_an_old_run(tmp_path: Path) -> None:
    write(tmp_path, 7)
    report_of(tmp_path, RUN)
    shutil.move(tmp_path / RUN, tmp_path / LATER)
    text = report_of(tmp_path, LATER).read_text(encoding="utf-8")
    assert RUN in text
    assert "median of each rail" in text


def test_later_runs_do_not_change_the_page_of_an_old_one(tmp_path: Path) -> None:
    write(tmp_path, 7)
    before = report_of(tmp_path, RUN).read_bytes()
    shutil.copytree(tmp_path / RUN, tmp_path / LATER)
    report_of(tmp_path, LATER)
    assert report_of(tmp_path, RUN).read_bytes() == before


def test_damaged_lines_are_ignored(tmp_path: Path) -> None:
    good = {
        "schema": 1,
        "run": RUN,
        "outcome": "clean",
        "check_mode": False,
        "error": 0,
        "unknown": 0,
        "warning": 0,
        "hosts": 1,
        "rails": {},
    }
    bad = [
        {**good, "schema": 2},
        {**good, "run": "../x"},
        {**good, "hosts": "1"},
        {**good, "rails": {"rail0": {"median_gbps": "x"}}},
        [],
        7,
    ]
    lines = [*map(json.dumps, bad), "[" * 100_000, '{"cut', json.dumps(good)]
    (tmp_path / "history.jsonl").write_text("\n".join(lines) + "\n")
    (tmp_path / RUN).mkdir()
    assert [each.run for each in history.read(Run(RunFolder(tmp_path / RUN)))] == [RUN]


def test_the_line_of_a_run_has_the_figures_of_its_rails(tmp_path: Path) -> None:
    write(tmp_path, 7)
    report_of(tmp_path, RUN)
    [line] = (tmp_path / "history.jsonl").read_text().splitlines()
    data = json.loads(line)
    assert list(data["rails"]) == [f"rail{number}" for number in range(8)]
    assert (data["check_mode"], data["warning"], data["schema"]) == (False, 0, 1)
    slow, dead = data["rails"]["rail2"], data["rails"]["rail7"]
    assert slow["lowest_gbps"] == pytest.approx(0.6 * 385, rel=0.1)
    assert "gpu0004" in slow["lowest_pair"]
    # The failed pairs of the dead port are not its lowest ones.
    assert (dead["measured"], "gpu0006" in dead["lowest_pair"]) == (15, False)
    assert dead["lowest_gbps"] == pytest.approx(385, rel=0.1)
    assert 1.9 < dead["median_usec"] < 2.3
    [found] = history.read(Run(RunFolder(tmp_path / RUN)))
    assert (found.run, found.outcome, found.is_check, found.hosts, found.errors, found.unknowns) == (RUN, "failed", False, 7, 1, 1)
    assert found.rails == data["rails"]
    assert found.lowest == f"{slow['lowest_gbps']:.4g} Gb/s, rail2, {slow['lowest_pair']}"


def test_a_run_without_a_sweep_has_no_rails(tmp_path: Path) -> None:
    (tmp_path / RUN).mkdir()
    run = Run(RunFolder(tmp_path / RUN))
    history.append(run, None)
    assert history.read(run) == [history.Past(RUN, "partial", False, 0, 0, 0, 0, {})]
    assert history.read(run)[0].lowest == ""
    assert past(RUN, rail0=rail(None)).lowest == ""


def test_a_run_that_has_ended_since_has_a_second_line_that_counts(tmp_path: Path) -> None:
    (tmp_path / RUN).mkdir()
    run = Run(RunFolder(tmp_path / RUN))
    history.append(run, None)
    run.folder.write_json("summary.json", {"outcome": "clean", "check_mode": True})
    ended = Run(run.folder)
    history.append(ended, None)
    history.append(ended, None)
    assert len((tmp_path / "history.jsonl").read_text().splitlines()) == 2
    assert [(each.outcome, each.is_check) for each in history.read(ended)] == [("clean", True)]


def test_only_the_end_of_a_long_history_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / RUN).mkdir()
    run = Run(RunFolder(tmp_path / RUN))
    history.append(run, None)
    line = (tmp_path / "history.jsonl").read_text()
    names = [f"20261126T1100{second}Z-1" for second in range(10, 15)]
    text = "".join(line.replace(RUN, name) for name in names)
    (tmp_path / "history.jsonl").write_text(text)
    for bytes_, known in ((len(text), names), (len(text) - 1, names[1:]), (len(line) + 7, names[4:])):
        monkeypatch.setattr(history, "MOST_BYTES", bytes_)
        assert [each.run for each in history.read(run)] == known


def test_trends_need_two_runs_and_have_a_line_for_each_rail() -> None:
    assert history.trends([past(RUN, rail0=rail(1.0, 2.0))]) == []
    median, lowest, findings = history.trends([past(RUN, rail1=rail(100.0, 200.0)), past(LATER, rail0=rail(50.0, 400.0), rail1=rail(None))])
    assert [each.title for each in (median, lowest, findings)] == [
        "median of each rail, Gb/s",
        "lowest pair of each rail, Gb/s",
        "findings",
    ]
    assert (list(median.names), list(findings.names)) == (["rail0", "rail1"], ["error", "unknown", "warning"])

    def dots(chart: str) -> list[tuple[str, float, float]]:
        """Line, x and the share of the greatest value."""
        found = re.findall(r'<circle class="dot line(\d)" cx="([\d.]+)" cy="([\d.]+)"', chart)
        return [(line, float(x), round((102 - float(y)) / 84, 2)) for line, x, y in found]

    assert dots(median.chart) == [("0", 332.0, 1.0), ("1", 8.0, 0.5)]
    assert dots(lowest.chart) == [("0", 332.0, 0.5), ("1", 8.0, 1.0)]
    assert dots(findings.chart) == [
        ("0", 8.0, 0.25),
        ("0", 332.0, 0.25),
        ("1", 8.0, 0.5),
        ("1", 332.0, 0.5),
        ("2", 8.0, 1.0),
        ("2", 332.0, 1.0),
    ]
    assert [each.title for each in history.trends([past(RUN), past(LATER)])] == ["findings"]


def test_when_a_run_began() -> None:
    assert history.began_words(past(LATER)) == "2026-11-27 12:00 UTC"
