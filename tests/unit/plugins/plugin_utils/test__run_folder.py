# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The run folder: one id for a run and its workers, whole files, the newest linked."""

from __future__ import annotations

import multiprocessing
import os
import re
from pathlib import Path

from ansible_collections.rdma.cluster.plugins.module_utils._findings import Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._run_folder import RunFolder, run_id


def test_workers_and_their_parent_find_the_same_id() -> None:
    with multiprocessing.get_context("fork").Pool(2) as pool:
        ids = set(pool.map(_id, range(4)))
    assert ids == {run_id()}
    assert re.fullmatch(rf"\d{{8}}T\d{{6}}Z-{os.getpid()}", run_id())


def _id(_number: int) -> str:
    return run_id()


def test_the_newest_run_is_linked(tmp_path: Path) -> None:
    (tmp_path / "latest").symlink_to("an-older-run")
    folder = RunFolder.current({"rdma_run_dir": str(tmp_path)})
    assert folder.path == tmp_path / run_id()
    assert (tmp_path / "latest").resolve() == folder.path
    assert RunFolder.current({"rdma_run_dir": str(tmp_path)}).path == folder.path


def test_files_are_whole_and_nothing_else_is_left(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.write_json("facts/node1.json", {"a": 1})
    folder.write_json("facts/node1.json", {"a": 2})
    assert folder.read_json("facts/node1.json") == {"a": 2}
    assert [path.name for path in (tmp_path / "facts").iterdir()] == ["node1.json"]


def test_findings_come_back_as_they_were(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    finding = Finding("link", "link.state", "node1", "rail 0", "error", "DOWN", "ACTIVE", "Check the cable.")
    folder.write_findings("link", "node1", [finding])
    assert folder.read_findings("link", "node1") == [finding]
    assert folder.all_findings() == [finding]
