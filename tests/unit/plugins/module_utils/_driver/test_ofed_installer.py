# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Installer, uninstaller and other builds against a host of files and a unit that plays its phases."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._driver import build_report, ofed_installer, ofed_uninstaller
from ansible_collections.rdma.cluster.plugins.module_utils._driver.build import Build, DriverBuild
from ansible_collections.rdma.cluster.plugins.module_utils._driver.build_report import gather, read_tail
from ansible_collections.rdma.cluster.plugins.module_utils._driver.build_unit import BuildUnit, Job, Look
from ansible_collections.rdma.cluster.plugins.module_utils._driver.ofed_installer import OfedInstaller, OfedRequest
from ansible_collections.rdma.cluster.plugins.module_utils._driver.ofed_state import OfedState
from ansible_collections.rdma.cluster.plugins.module_utils._driver.ofed_uninstaller import OfedUninstaller, Removal
from tests.unit.builders.fakes import FakeRunner

VERSION = "24.10-1.1.4.0"
BARE = OfedState(None, None, False, False, ["neither MLNX_OFED nor DOCA-OFED is installed"])
GOOD = OfedState("mlnx_ofed", VERSION, True, True, [])
SILENT = OfedState("mlnx_ofed", VERSION, False, True, ["modprobe loads the kernel's own mlx5_core (/lib/modules/6.8/kernel/mlx5_core.ko)"])
UNKNOWN = OfedState("mlnx_ofed", VERSION, None, False, ["whether it is built is unknown"])
RUNNING, ENDED = Look("running", seconds=5.0), Look("ended", 0, "success", 60.0)
FAILED = Look("ended", 1, "exit-code", 60.0)
NONE, OTHER, LOST = Look("none"), Look("other", argv=("/x/mlnxofedinstall", "--all")), Look("lost")


class PlayedUnit(BuildUnit):
    """A unit whose phases are given in advance."""

    def __init__(self, job: Job, looks: list[Look]) -> None:
        super().__init__(job, FakeRunner([]))
        self._looks = looks
        self.did: list[str] = []

    def look(self) -> Look:
        return self._looks.pop(0)

    def wait(self, seconds: float) -> Look:
        return self.look()

    def start(self) -> None:
        self.did.append("start")

    def collect(self, look: Look) -> None:
        self.did.append("collect")

    def rebooted(self) -> bool:
        return True

    def started(self) -> float:
        return 0.0


class Host:
    """A host's folders, the units that were made on it, and the states of OFED in the order in which they are read."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path = path
        self.units: list[PlayedUnit] = []
        self.looks: list[Look] = []
        self.states: list[OfedState] = []
        monkeypatch.setattr(ofed_installer, "state_now", lambda _sys, _runner: self.states.pop(0))
        monkeypatch.setattr(build_report, "failed_builds", lambda _since: [])
        #: What keeps a stack from being removed, and which packages its removal may remove, at each question.
        self.unsafe: str | None = None
        self.asked: list[Sequence[str] | None] = []
        self.replaced: list[Collection[str] | None] = []
        for module in (ofed_installer, ofed_uninstaller):
            monkeypatch.setattr(module, "refuse_unless_safe", self._refuse)

    def _refuse(
        self, _host: str, may_remove: Sequence[str] | None, _sys: object, _runner: object, *, replaced: Collection[str] | None = None
    ) -> None:
        self.asked.append(may_remove)
        self.replaced.append(replaced)
        if self.unsafe is not None:
            raise ApplyError(self.unsafe)

    def make(self, job: Job) -> BuildUnit:
        self.units.append(PlayedUnit(job, self.looks))
        return self.units[-1]

    def installer(self, looks: Sequence[Look], states: Sequence[OfedState], **changes: Any) -> OfedInstaller:
        self.looks[:], self.states[:] = looks, states
        archive = self.path / "ofed.tgz"
        with tarfile.open(archive, "w:gz") as tar:
            info = tarfile.TarInfo("MLNX_OFED_LINUX-24.10-1.1.4.0-debian12.5-x86_64/mlnxofedinstall")
            tar.addfile(info, io.BytesIO())
        checksum = "sha256:" + hashlib.sha256(archive.read_bytes()).hexdigest()
        options = {"checksum": checksum, "flags": ["--force"], "tmpdir": None, **changes}
        request = OfedRequest(archive=archive, version=VERSION, folder=self.folder, timeout_seconds=3600, host="node7", **options)
        return OfedInstaller(request, FakeRunner([]), make_unit=self.make)

    @property
    def folder(self) -> Path:
        return self.path / "state"

    def log(self, text: str, name: str = "install.log") -> None:
        self.folder.mkdir(exist_ok=True)
        (self.folder / name).write_text(text)

    @property
    def did(self) -> list[str]:
        return [each for unit in self.units for each in unit.did]


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    return Host(tmp_path, monkeypatch)


@pytest.fixture
def room(monkeypatch: pytest.MonkeyPatch) -> None:
    """The build's space is no matter of the machine that tests."""
    monkeypatch.setattr(ofed_installer, "check_space", lambda *_arguments: None)


def test_nothing_happens_where_it_is_installed_and_built(host: Host) -> None:
    report = host.installer([NONE], [GOOD]).present(0, check_mode=False)
    assert (report.changed, report.running, host.did) == (False, False, [])
    assert "MLNX_OFED 24.10-1.1.4.0 is installed" in report.meaning


@pytest.mark.usefixtures("room")
def test_it_is_unpacked_and_started(host: Host) -> None:
    host.log("Removing old packages...\n")
    report = host.installer([NONE, RUNNING], [BARE]).present(0, check_mode=False)
    assert (report.changed, report.started, report.running, report.progress) == (True, True, True, "Removing old packages...")
    job = host.units[-1].job
    top = host.folder / "unpacked" / "MLNX_OFED_LINUX-24.10-1.1.4.0-debian12.5-x86_64"
    assert job.argv == [str(top / "mlnxofedinstall"), "--force", "--tmpdir", str(host.folder / "tmp")]
    assert (job.directory, job.unit, host.did) == (top, "rdma-ofed-install.service", ["start"])
    assert (top / "mlnxofedinstall").exists()


@pytest.mark.usefixtures("room")
def test_without_force_nobody_is_asked(host: Host) -> None:
    host.installer([NONE, RUNNING], [BARE], flags=[], tmpdir=host.path / "big").present(0, check_mode=False)
    assert host.units[-1].job.argv[1:] == ["-q", "--tmpdir", str(host.path / "big")]


@pytest.mark.usefixtures("room")
def test_a_first_installation_is_refused_on_a_host_in_use(host: Host) -> None:
    host.unsafe = "Nothing was installed on node7: job process 815 (slurmstepd)."
    for flags in (["--force"], []):
        with pytest.raises(ApplyError, match="job process 815"):
            host.installer([NONE], [BARE], flags=flags, may_remove=["rdma-core"]).present(0, check_mode=False)
    # What the installer may remove is compared only where it removes packages that others depend on.
    assert (host.did, host.asked) == ([], [["rdma-core"], None])
    assert all(each is not None and "libibverbs1" in each for each in host.replaced)


def test_what_runs_or_has_ended_unseen_is_taken_over(host: Host) -> None:
    report = host.installer([RUNNING, RUNNING], []).present(0, check_mode=False)
    assert (report.started, report.running, host.did) == (False, True, [])
    report = host.installer([ENDED, ENDED], [GOOD]).present(0, check_mode=False)
    assert (report.finished, report.failed, report.rc, host.did) == (True, False, 0, ["collect"])


def test_another_one_that_runs_is_named(host: Host) -> None:
    for check_mode in (False, True):
        with pytest.raises(ApplyError, match=r"runs another program on node7: /x/mlnxofedinstall --all. .*`systemctl stop rdma-ofed"):
            host.installer([OTHER], []).present(0, check_mode=check_mode)


def test_another_archive_is_not_unpacked(host: Host) -> None:
    with pytest.raises(ApplyError, match="its sha256 is"):
        host.installer([NONE], [BARE], checksum="sha256:" + "0" * 64).present(0, check_mode=False)
    assert host.did == []


def test_a_success_is_cleaned_up(host: Host) -> None:
    for name in ("unpacked", ".unpacking-x", "tmp"):
        (host.folder / name).mkdir(parents=True)
    host.log("Installation passed successfully\n")
    report = host.installer([ENDED], [GOOD]).collected(0)
    assert (report.changed, report.finished, report.failed) == (True, True, False)
    assert sorted(each.name for each in host.folder.iterdir()) == ["install.log", "state.json"]


@pytest.mark.parametrize(
    ("state", "log", "words"),
    [
        (SILENT, "", "exited with 0, but the stock mlx5_core would be loaded: modprobe loads the kernel's own mlx5_core"),
        (UNKNOWN, "", "exited with 0, but the stock mlx5_core would be loaded, as far as is known: whether it is built is unknown"),
        (OfedState("mlnx_ofed", "23.10-0.5.5.0", True, True, []), "", "but mlnx_ofed 23.10-0.5.5.0 is installed, expected 24.10-1.1.4.0"),
        (GOOD, "Error! Bad return status for module build on kernel: 6.8 (x86_64)\n", "exited with 0, but DKMS could not build a module"),
    ],
)
def test_an_exit_status_of_0_is_not_believed(host: Host, state: OfedState, log: str, words: str) -> None:
    host.log(log)
    report = host.installer([ENDED], [state]).collected(0)
    assert (report.finished, report.failed, report.rc) == (True, True, 0)
    assert words in report.message
    assert log.strip() in report.message


def test_a_failure_quotes_the_logs_that_are_named(host: Host) -> None:
    make = host.path / "make.log"
    make.write_text("main.c:1:2: error: unknown type name 'x'\n")
    host.log(f"Installing x...\nError! Bad return status for module build on kernel: 6.8 (x86_64)\nConsult {make} for more information.\n")
    report = host.installer([FAILED], []).collected(0)
    assert report.lines == ["Error! Bad return status for module build on kernel: 6.8 (x86_64)", "main.c:1:2: error: unknown type name 'x'"]
    assert report.message.startswith("The installer exited with 1: the installation failed. 1. Find the first cause")
    assert (report.log[0], report.log_files) == ("Installing x...", [str(host.folder / "install.log"), str(make)])
    assert host.did == ["collect"]


@pytest.mark.usefixtures("room")
def test_a_power_cut_in_between(host: Host) -> None:
    host.log("Installing mlnx-tools-24.10...\n")
    report = host.installer([LOST], []).collected(0)
    assert (report.failed, report.rc, report.lines) == (True, None, ["Installing mlnx-tools-24.10..."])
    assert "it was interrupted: node7 was rebooted in the meantime" in report.meaning
    report = host.installer([LOST, RUNNING], [BARE]).present(0, check_mode=False)
    assert (report.started, host.did) == (True, ["start"])
    assert "interrupted (node7 was rebooted in the meantime); it started over" in str(report.note)


def test_to_wait_for_what_was_never_started_is_a_failure(host: Host) -> None:
    assert "it was not started on node7" in host.installer([NONE], []).collected(0).meaning


def test_check_mode_reports_and_touches_nothing(host: Host) -> None:
    report = host.installer([NONE], [BARE], checksum="sha256:" + "0" * 64).present(0, check_mode=True)
    assert report.changed
    assert "mlnxofedinstall --force --tmpdir" in str(report.would)
    assert "installed: none" in str(report.would)
    assert not host.installer([NONE], [GOOD]).present(0, check_mode=True).changed
    assert host.installer([RUNNING], []).present(0, check_mode=True).would == "wait for the running installation"
    assert (host.did, host.folder.exists()) == ([], False)


def uninstaller(host: Host, looks: Sequence[Look], versions: Sequence[str | None]) -> OfedUninstaller:
    """On a host whose ofed_info prints these versions, one at each look."""
    host.looks[:] = looks
    left = list(versions)

    def root() -> SysRoot:
        info = host.path / "root/usr/bin/ofed_info"
        info.parent.mkdir(parents=True, exist_ok=True)
        version = left.pop(0) if left else None
        info.write_text(f'if [ "X$1" == "X-s" ]; then echo {version}:; exit 0; fi\n') if version else info.unlink(missing_ok=True)
        return SysRoot(str(host.path / "root"))

    return OfedUninstaller(
        Removal(["/usr/bin/uninstall", "--force"], host.folder, 600, "node7"), FakeRunner([]), root=root, make_unit=host.make
    )


def test_the_uninstaller_is_believed_only_when_ofed_is_gone(host: Host) -> None:
    ofed = "MLNX_OFED_LINUX-23.10-0.5.5.0"
    assert uninstaller(host, [NONE], [None]).absent(0, check_mode=False).changed is False
    with pytest.raises(ApplyError, match=r"is installed on node7, but its uninstaller /usr/bin/uninstall does not exist"):
        uninstaller(host, [NONE], [ofed, ofed, ofed]).absent(0, check_mode=False)
    (host.path / "root/usr/bin/uninstall").touch()
    host.unsafe = "Nothing was removed on node7: GPU process 4711 (python3)."
    with pytest.raises(ApplyError, match="GPU process 4711"):
        uninstaller(host, [NONE], [ofed, ofed, ofed]).absent(0, check_mode=False)
    assert "start" not in host.did
    host.unsafe = None
    report = uninstaller(host, [NONE, ENDED], [ofed, ofed]).absent(0, check_mode=False)
    assert (report.changed, report.started, report.failed) == (True, True, False)
    report = uninstaller(host, [ENDED], [ofed]).collected(0)
    assert (report.failed, "exited with 0, but MLNX_OFED_LINUX-23.10-0.5.5.0 is still installed" in report.meaning) == (True, True)
    report = uninstaller(host, [NONE], [ofed]).absent(0, check_mode=True)
    assert report.would == f"run /usr/bin/uninstall --force (installed: {ofed})"
    assert uninstaller(host, [NONE], [None]).absent(0, check_mode=True).changed is False


def build(host: Host, looks: Sequence[Look], *, idle_only: bool = False) -> DriverBuild:
    host.looks[:] = looks
    request = Build("doca", ["/opt/tool", "-k", "6.8"], "/built", host.folder, None, 600, "node7", idle_only)
    return DriverBuild(request, FakeRunner([]), root=lambda: SysRoot(str(host.path)), make_unit=host.make)


def test_another_build_by_the_same_rules(host: Host) -> None:
    report = build(host, [NONE]).present(0, check_mode=True)
    assert (report.changed, report.would, host.folder.exists()) == (True, "run /opt/tool -k 6.8", False)
    report = build(host, [NONE, RUNNING]).present(0, check_mode=False)
    assert (report.started, report.running, host.did) == (True, True, ["start"])
    assert host.units[-1].job.log == host.folder / "doca/build.log"
    report = build(host, [ENDED]).collected(0)
    assert (report.failed, report.meaning) == (True, "it exited with 0, but /built does not exist")
    (host.path / "built").touch()
    assert build(host, [ENDED]).collected(0).failed is False
    assert build(host, [NONE]).present(0, check_mode=False).changed is False
    assert build(host, [NONE]).present(0, check_mode=True).changed is False


def test_a_build_for_idle_hosts_is_refused_on_a_host_in_use(host: Host) -> None:
    """A captured tree has no process 1, so that it is not known who uses the host."""
    with pytest.raises(ApplyError, match=r"Nothing was installed on node7: .*unknown"):
        build(host, [NONE], idle_only=True).present(0, check_mode=False)
    assert host.did == []
    assert build(host, [RUNNING, RUNNING], idle_only=True).present(0, check_mode=False).running


def test_only_logs_are_read_and_only_their_ends(tmp_path: Path) -> None:
    secret, link = tmp_path / "shadow", tmp_path / "a.log"
    secret.write_text("root:x")
    link.symlink_to(secret)
    assert read_tail(link) is None
    assert read_tail(tmp_path) is None
    assert read_tail(tmp_path / "absent.log") is None
    big = tmp_path / "b.log"
    big.write_text("".join(f"line {number}\n" for number in range(1000)))
    assert read_tail(big, 20) == "line 998\nline 999\n"


def test_logs_that_name_each_other_end(tmp_path: Path) -> None:
    names = [tmp_path / f"{number}.log" for number in range(21)]
    for number in range(20):
        names[number].write_text(f"See {names[number + 1]}\nSee {names[0]}\n")
    assert list(gather(names[0])) == [str(names[number]) for number in range(9)]
