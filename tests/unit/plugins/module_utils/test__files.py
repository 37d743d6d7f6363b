# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files written only when they differ."""

from __future__ import annotations

from pathlib import Path

from ansible_collections.rdma.cluster.plugins.module_utils._files import ManagedFile, ensure_files


def test_writes_once_and_then_leaves_the_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "new/file.conf"
    file = ManagedFile(str(path), "a\n", 0o640)
    (change,) = ensure_files([file], check_mode=False)
    assert (change.before, change.after) == (None, "a\n")
    assert path.read_text() == "a\n"
    assert path.stat().st_mode & 0o777 == 0o640
    before = path.stat()
    assert ensure_files([file], check_mode=False) == []
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    assert path.stat().st_ino == before.st_ino


def test_check_mode_reports_and_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old\n")
    (change,) = ensure_files([ManagedFile(str(path), "new\n")], check_mode=True)
    assert change.to_diff() == {
        "before_header": str(path), "after_header": str(path), "before": "old\n", "after": "new\n",
    }  # fmt: skip
    assert path.read_text() == "old\n"


def test_a_wrong_mode_is_a_change(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("a\n")
    path.chmod(0o600)
    (change,) = ensure_files([ManagedFile(str(path), "a\n", 0o644)], check_mode=False)
    assert (change.before, change.after) == ("mode 0600\n", "mode 0644\n")
    assert path.stat().st_mode & 0o777 == 0o644


def test_a_file_that_shall_not_be_there_goes(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("a\n")
    assert len(ensure_files([ManagedFile(str(path), None)], check_mode=False)) == 1
    assert not path.exists()
    assert ensure_files([ManagedFile(str(path), None)], check_mode=False) == []


def test_nothing_is_left_beside_the_file(tmp_path: Path) -> None:
    ensure_files([ManagedFile(str(tmp_path / "file"), "a\n")], check_mode=False)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
