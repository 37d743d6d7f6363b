# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A service that makes a setting hold after a reboot: which commands run, and when."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base import boot_service
from ansible_collections.rdma.cluster.plugins.module_utils._base.boot_service import (
    BootProgram,
    install_files,
    install_service,
    remove_service,
    run_service,
)
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError
from ansible_collections.rdma.cluster.plugins.module_utils._base.files import ManagedFile
from ansible_collections.rdma.cluster.plugins.module_utils._base.host_program import host_program
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.soft_links_runner import main
from tests.unit.builders.fakes import Call, FakeRunner

UNIT = "rdma-x.service"
SHOW = ["systemctl", "show", "--property=Id,ActiveState,UnitFileState", UNIT]
ENABLE, RESTART, RELOAD = (["systemctl", *words] for words in (["enable", UNIT], ["restart", UNIT], ["daemon-reload"]))


def show(active: str, enabled: str) -> Call:
    return (SHOW, 0, f"Id={UNIT}\nActiveState={active}\nUnitFileState={enabled}\n", "")


#: State of the unit, name of a file that differs, whether a restart is asked for; and the commands.
RUNS: list[tuple[tuple[str, str], str | None, bool, list[list[str]]]] = [
    (("inactive", ""), UNIT, False, [ENABLE, RESTART]),
    (("active", "enabled"), None, False, []),
    (("active", "enabled"), None, True, [RESTART]),
    (("active", "enabled"), UNIT, False, [RELOAD]),
    (("active", "enabled"), "settings.json", True, [RESTART]),
    (("failed", "enabled"), None, False, [RESTART]),
    (("active", "disabled"), None, False, [ENABLE]),
]


@pytest.mark.parametrize(("state", "file", "restart", "commands"), RUNS)
def test_what_is_run(tmp_path: Path, state: tuple[str, str], file: str | None, restart: bool, commands: list[list[str]]) -> None:
    files = [ManagedFile(str(tmp_path / file), "a\n")] if file is not None else []
    runner = FakeRunner([show(*state), *((command, 0, "", "") for command in commands)])
    change = install_service(UNIT, files, runner=runner, check_mode=False)
    assert bool(change) == (file is not None or state != ("active", "enabled"))
    run_service(change, runner=runner, restart=restart)


def test_check_mode_looks_only(tmp_path: Path) -> None:
    runner = FakeRunner([show("inactive", "")])
    change = install_service(UNIT, [ManagedFile(str(tmp_path / UNIT), "a\n")], runner=runner, check_mode=True)
    assert [diff["after"] for diff in change.diffs] == ["a\n", "enabled\nstarted\n"]
    assert list(tmp_path.iterdir()) == []


def test_a_service_is_removed_once(tmp_path: Path) -> None:
    path = tmp_path / UNIT
    path.write_text("a\n")
    disable = (["systemctl", "disable", "--now", UNIT], 0, "", "")
    assert remove_service(UNIT, [str(path)], runner=FakeRunner([show("active", "enabled")]), check_mode=True)
    assert path.exists()
    runner = FakeRunner([show("active", "enabled"), disable, (RELOAD, 0, "", "")])
    assert remove_service(UNIT, [str(path)], runner=runner, check_mode=False)
    assert not path.exists()
    assert not remove_service(UNIT, [str(path)], runner=FakeRunner([show("inactive", "")]), check_mode=False)


def test_what_a_unit_was_is_reported_when_it_goes() -> None:
    change = remove_service(UNIT, [], runner=FakeRunner([show("active", "enabled")]), check_mode=True)
    assert change.diffs == [{"before_header": UNIT, "after_header": UNIT, "before": "enabled\nstarted\n", "after": ""}]
    assert not remove_service(UNIT, [], runner=FakeRunner([show("inactive", "")]), check_mode=True)


def test_systemd_reads_again_where_a_unit_is_among_the_files(tmp_path: Path) -> None:
    files = [ManagedFile(str(tmp_path / name), "a\n") for name in ("settings.json", "rdma-x@.service")]
    assert len(install_files(files, runner=FakeRunner([]), check_mode=True)) == 2
    runner = FakeRunner([(RELOAD, 0, "", "")])
    assert len(install_files(files, runner=runner, check_mode=False)) == 2
    (tmp_path / "settings.json").unlink()
    assert len(install_files(files, runner=FakeRunner([]), check_mode=False)) == 1


def test_what_systemd_says_is_quoted() -> None:
    runner = FakeRunner([show("inactive", "enabled"), (RESTART, 1, "", "Job for rdma-x.service failed.")])
    with pytest.raises(ApplyError, match=r"Job for rdma-x.service failed"):
        run_service(install_service(UNIT, [], runner=runner, check_mode=False), runner=runner)


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BootProgram:
    monkeypatch.setattr(boot_service, "UNITS", str(tmp_path))
    return BootProgram(UNIT, "[Unit]\n", main, f"{tmp_path}/x.json", f"{tmp_path}/x.pyz")


def test_a_program_has_its_settings_itself_and_its_unit(tmp_path: Path, program: BootProgram) -> None:
    files = program.files("{}\n")
    assert [(Path(file.path).name, file.mode) for file in files] == [("x.json", 0o644), ("x.pyz", 0o755), (UNIT, 0o644)]
    assert [file.content for file in files] == ["{}\n", host_program("_rdma.soft_links_runner"), "[Unit]\n"]
    assert [(file.path, file.content) for file in program.files(None)] == [(path, None) for path in program.paths]


def test_a_program_is_installed_and_removed(tmp_path: Path, program: BootProgram) -> None:
    change = program.install("{}\n", runner=FakeRunner([show("inactive", "")]), check_mode=False)
    assert (change.unit, change.enabled, change.started) == (UNIT, True, True)
    assert sorted(path.name for path in tmp_path.iterdir()) == [UNIT, "x.json", "x.pyz"]
    assert not program.install("{}\n", runner=FakeRunner([show("active", "enabled")]), check_mode=False)
    runner = FakeRunner([show("active", "enabled"), (["systemctl", "disable", "--now", UNIT], 0, "", ""), (RELOAD, 0, "", "")])
    assert program.remove(runner=runner, check_mode=False)
    assert list(tmp_path.iterdir()) == []
    assert not program.unchanged
