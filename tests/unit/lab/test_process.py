# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Processes by their pid file: only our own are ended."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab import process


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", str(tmp_path)])
    (tmp_path / "pid").write_text(str(child.pid))
    yield child
    child.kill()
    child.wait()


def test_ours_is_known_from_the_first_moment(sleeper: subprocess.Popen[bytes], tmp_path: Path) -> None:
    assert process.is_ours(tmp_path / "pid", str(tmp_path))
    assert sleeper.poll() is None


def test_a_pid_that_belongs_to_another_program_is_left_alone(sleeper: subprocess.Popen[bytes], tmp_path: Path) -> None:
    process.end(tmp_path / "pid", "/some/other/lab")
    assert sleeper.poll() is None
    assert not (tmp_path / "pid").exists()


def test_ours_is_ended(sleeper: subprocess.Popen[bytes], tmp_path: Path) -> None:
    process.end(tmp_path / "pid", str(tmp_path), grace_seconds=5)
    assert sleeper.wait(timeout=5) == -15


def test_no_pid_file_and_no_process_are_fine(tmp_path: Path) -> None:
    process.end(tmp_path / "pid", "x")
    (tmp_path / "pid").write_text("not a number")
    assert not process.is_ours(tmp_path / "pid", "x")
