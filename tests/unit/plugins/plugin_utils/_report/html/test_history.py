# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The history: a line a run, once, and trends without the folders of old runs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html import history
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html.report import report_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html.run import Run
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder
from tests.bench.report import RUN, write

LATER = "20261127T120000Z-2"


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
