# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The timer of the collector: its files, the commands that start it, and its program as a process."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.host_program import host_program
from ansible_collections.rdma.cluster.plugins.module_utils._metrics import service
from ansible_collections.rdma.cluster.plugins.module_utils._metrics.config import FILE, Config
from ansible_collections.rdma.cluster.plugins.module_utils._metrics.results import HostResults
from ansible_collections.rdma.cluster.plugins.module_utils._metrics.service import TIMER, UNIT, ensure_exporter, exporter_files
from tests.unit.builders.fakes import Call, FakeRunner

SHOW = ["systemctl", "show", "--property=Id,ActiveState,UnitFileState", TIMER]
ENABLE, RESTART, START, RELOAD = (
    (["systemctl", *words], 0, "", "") for words in (["enable", TIMER], ["restart", TIMER], ["start", UNIT], ["daemon-reload"])
)


def config(folder: Path, host: str = "node1") -> Config:
    return Config(host, {}, str(folder), True, [], HostResults(proofs={"rail0": 1000.0}))


def show(active: str, enabled: str) -> Call:
    return (SHOW, 0, f"Id={TIMER}\nActiveState={active}\nUnitFileState={enabled}\n", "")


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All files below the folder of the test."""
    monkeypatch.setattr(service, "CONFIG", f"{tmp_path}/exporter.json")
    monkeypatch.setattr(service, "PROGRAM", f"{tmp_path}/exporter.pyz")
    monkeypatch.setattr(service, "UNITS", str(tmp_path))


def test_it_is_installed_once(tmp_path: Path) -> None:
    first = FakeRunner([show("inactive", ""), RELOAD, ENABLE, RESTART, START])
    assert ensure_exporter(config(tmp_path), 60, runner=first, check_mode=False)
    assert {path.name for path in tmp_path.iterdir()} == {"exporter.json", "exporter.pyz", UNIT, TIMER}
    assert not ensure_exporter(config(tmp_path), 60, runner=FakeRunner([show("active", "enabled")]), check_mode=False)


def test_other_results_run_the_collector_and_leave_the_timer(tmp_path: Path) -> None:
    ensure_exporter(config(tmp_path), 60, runner=FakeRunner([show("inactive", ""), RELOAD, ENABLE, RESTART, START]), check_mode=False)
    change = ensure_exporter(config(tmp_path, "node2"), 60, runner=FakeRunner([show("active", "enabled"), START]), check_mode=False)
    assert [file.path for file in change.files] == [f"{tmp_path}/exporter.json"]
    ensure_exporter(config(tmp_path, "node2"), 30, runner=FakeRunner([show("active", "enabled"), RELOAD, RESTART, START]), check_mode=False)


def test_check_mode_changes_nothing(tmp_path: Path) -> None:
    change = ensure_exporter(config(tmp_path), 60, runner=FakeRunner([show("inactive", "")]), check_mode=True)
    assert len(change.files) == 4
    assert not list(tmp_path.iterdir())


def test_only_modules_of_infiniband_make_sys_writable(tmp_path: Path) -> None:
    texts = {
        optics: next(
            str(file.content) for file in exporter_files(replace(config(tmp_path), infiniband_optics=optics), 60) if UNIT in file.path
        )
        for optics in (False, True)
    }
    assert texts[False] == f"{texts[True].rstrip()}\nProtectKernelTunables=yes\n"


def test_systemd_takes_the_units(tmp_path: Path) -> None:
    for file in exporter_files(config(tmp_path), 60):
        Path(file.path).write_bytes(file.content if isinstance(file.content, bytes) else str(file.content).encode())
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(tmp_path / UNIT), str(tmp_path / TIMER)], capture_output=True, text=True, check=False
    )
    assert [line for line in done.stderr.splitlines() if "rdma-exporter" in line] == []
    assert done.returncode == 0, done.stderr


def test_the_program_replaces_the_file_and_prints(tmp_path: Path) -> None:
    """On this machine: whatever it has, the file is whole, and others may read it."""
    folder = tmp_path / "textfiles"
    folder.mkdir()
    (tmp_path / "exporter.json").write_text(config(folder).to_text())
    program = tmp_path / "exporter.pyz"
    program.write_bytes(host_program("_metrics.main"))
    argv = [sys.executable, str(program), "--config", str(tmp_path / "exporter.json")]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, umask=0o077)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert [path.name for path in folder.iterdir()] == [FILE]
    assert os.stat(folder / FILE).st_mode & 0o777 == 0o644
    text = (folder / FILE).read_text()
    assert 'rdma_cluster_proof_time_seconds{host="node1",rail="rail0"} 1000' in text
    assert 'rdma_scrape_error{host="node1",source="ports"} 0' in text
    printed = subprocess.run([*argv, "--print"], capture_output=True, text=True, check=True).stdout
    assert [line.split()[0] for line in printed.splitlines()] == [line.split()[0] for line in text.splitlines()]


@pytest.mark.parametrize("text", ["", "{}"])
def test_bad_settings_are_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "exporter.json").write_text(text)
    program = tmp_path / "exporter.pyz"
    program.write_bytes(host_program("_metrics.main"))
    argv = [sys.executable, str(program), "--config", str(tmp_path / "exporter.json")]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "exporter.json" in done.stderr
