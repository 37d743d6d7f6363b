# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The recorder's units: installed, changed, removed, as systemd itself accepts them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.files import ManagedFile
from ansible_collections.rdma.cluster.plugins.module_utils._recorder import service
from ansible_collections.rdma.cluster.plugins.module_utils._recorder.service import (
    SERVICE_TEXT,
    TIMER_TEXT,
    ensure_recorder,
    recorder_files,
    remove_recorder,
)
from tests.unit.builders.fakes import FakeRunner

SHOW = ["systemctl", "show", "--property=Id,ActiveState,UnitFileState", "rdma-recorder.timer"]
OFF = (SHOW, 0, "Id=rdma-recorder.timer\nActiveState=inactive\nUnitFileState=\n", "")
ON = (SHOW, 0, "Id=rdma-recorder.timer\nActiveState=active\nUnitFileState=enabled\n", "")
RELOAD = (["systemctl", "daemon-reload"], 0, "", "")


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[ManagedFile]:
    planned = recorder_files(["bond0.7"], 16 * 2**20)
    paths = tuple(str(tmp_path / Path(file.path).name) for file in planned)
    monkeypatch.setattr(service, "_PATHS", paths)
    return [ManagedFile(str(tmp_path / Path(file.path).name), file.content, file.mode) for file in planned]


def test_it_is_installed_once_and_a_second_run_changes_nothing(files: list[ManagedFile]) -> None:
    enable = (["systemctl", "enable", "rdma-recorder.timer"], 0, "", "")
    start = (["systemctl", "restart", "rdma-recorder.timer"], 0, "", "")
    assert ensure_recorder(files, runner=FakeRunner([OFF, RELOAD, enable, start]), check_mode=False)
    assert not ensure_recorder(files, runner=FakeRunner([ON]), check_mode=False)
    assert Path(files[0].path).read_text() == '{"interfaces": ["bond0.7"], "size_bytes": 16777216}\n'


def test_a_changed_file_restarts_a_running_recorder(files: list[ManagedFile]) -> None:
    for file in files:
        Path(file.path).write_bytes(file.content if isinstance(file.content, bytes) else str(file.content).encode())
        Path(file.path).chmod(file.mode)
    Path(files[0].path).write_text("{}")
    restart = (["systemctl", "restart", "rdma-recorder.service"], 0, "", "")
    change = ensure_recorder(files, runner=FakeRunner([ON, RELOAD, restart]), check_mode=False)
    assert [file.path for file in change.files] == [files[0].path]


def test_check_mode_writes_nothing(files: list[ManagedFile]) -> None:
    change = ensure_recorder(files, runner=FakeRunner([OFF]), check_mode=True)
    assert len(change.files) == 4
    assert not any(Path(file.path).exists() for file in files)


def test_it_is_removed_with_its_files_and_not_its_record(files: list[ManagedFile]) -> None:
    Path(files[0].path).write_text("{}")
    stop = (["systemctl", "disable", "--now", "rdma-recorder.timer"], 0, "", "")
    end = (["systemctl", "stop", "rdma-recorder.service"], 0, "", "")
    change = remove_recorder(runner=FakeRunner([ON, stop, end]), check_mode=False)
    assert change.removed == ("enabled", "started")
    assert not Path(files[0].path).exists()


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze")
def test_systemd_accepts_the_units_and_finds_them_hardened(tmp_path: Path) -> None:
    """The program itself is not installed here, which systemd-analyze would report."""
    (tmp_path / "rdma-recorder.service").write_text(SERVICE_TEXT.replace("/usr/bin/python3 ", "/bin/true "))
    (tmp_path / "rdma-recorder.timer").write_text(TIMER_TEXT)
    verify = ["systemd-analyze", "verify", str(tmp_path / "rdma-recorder.timer"), str(tmp_path / "rdma-recorder.service")]
    done = subprocess.run(verify, capture_output=True, text=True, check=False, timeout=60)
    assert [line for line in done.stderr.splitlines() if "rdma-recorder" in line] == []
    rate = ["systemd-analyze", "security", "--offline=true", "--threshold=20", str(tmp_path / "rdma-recorder.service")]
    assert subprocess.run(rate, capture_output=True, text=True, check=False, timeout=60).returncode == 0
