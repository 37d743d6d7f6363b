# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Install MLNX_OFED with its own installer: check and unpack the archive, run the installer as a unit, and check the result."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ansible_collections.rdma.cluster.plugins.module_utils._base.archive import (
    Contents,
    contents_of,
    member_name,
    own_copy,
    read_members,
    remove_unpacked,
    unpack,
)
from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Runner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._base.systemd import alone
from ansible_collections.rdma.cluster.plugins.module_utils._driver.build_report import Report, cut_off, follow, refuse_other
from ansible_collections.rdma.cluster.plugins.module_utils._driver.build_unit import ENDED, LOST, BuildUnit, Job, Look
from ansible_collections.rdma.cluster.plugins.module_utils._driver.dkms import module_names
from ansible_collections.rdma.cluster.plugins.module_utils._driver.modinfo import ADD_ONS, provenance, read_modinfo
from ansible_collections.rdma.cluster.plugins.module_utils._driver.ofed_codes import Meaning, explain_installer
from ansible_collections.rdma.cluster.plugins.module_utils._driver.ofed_state import DRIVER, OfedState, ofed_state
from ansible_collections.rdma.cluster.plugins.module_utils._driver.planned import MLNX_OFED
from ansible_collections.rdma.cluster.plugins.module_utils._driver.stack import read_ofed_version, read_stack
from ansible_collections.rdma.cluster.plugins.module_utils._driver.stack_removal import DISTRIBUTION_STACK, refuse_unless_safe

INSTALLER = "mlnxofedinstall"
#: The space that the build of the modules needs in addition to the unpacked archive.
BUILD_BYTES = 2 * 1024**3
# MLNX_OFED_LINUX-24.10-1.1.4.0-ubuntu22.04-x86_64
_NAME = re.compile(r"MLNX_OFED(?:_LINUX)?-([0-9]+\.[0-9]+-[0-9]+(?:\.[0-9]+)*)(?:-.*)?", re.ASCII)


@dataclass(frozen=True)
class Space:
    """Bytes that root may use there, and the id of the file system."""

    free_bytes: int
    filesystem: int


def inspect_archive(archive: Path, version: str) -> Contents:
    """Check an archive before it is unpacked. version: the expected one ("24.10-1.1.4.0").

    Raises ApplyError if it is not a tar archive, or if a member could write outside of its own folder or gain rights. The archive must also
    have exactly one top folder with the installer, and the expected version in its name.
    """
    members = read_members(archive, "MLNX_OFED's .tgz")
    contents = contents_of(archive, members)
    top = contents.top
    if not any(member_name(member) == f"{top}/{INSTALLER}" and member.isreg() for member in members):
        raise ApplyError(f"{archive} has no {top}/{INSTALLER}: it is not an MLNX_OFED installer archive")
    named = _NAME.fullmatch(top)
    if named and named[1] != version:
        raise ApplyError(f"{archive} contains MLNX_OFED {named[1]} (folder {top}), expected {version}")
    return contents


def read_space(path: Path) -> Space:
    """Return the file system of a folder, or of the folder once it exists."""
    there = next(each for each in (path, *path.parents) if each.exists())
    status = os.statvfs(there)
    return Space(status.f_bavail * status.f_frsize, there.stat().st_dev)


def check_space(contents: Contents, folder: Path, tmpdir: Path, read: Callable[[Path], Space] = read_space) -> None:
    """Raise ApplyError unless there is space for the unpacked files (a tenth more than their size) and for the build."""
    unpacked = contents.size_bytes * 11 // 10
    here, there = read(folder), read(tmpdir)
    if here.filesystem == there.filesystem:
        needs = [(folder, here, unpacked + BUILD_BYTES, "to unpack the archive and to build in")]
    else:
        needs = [(folder, here, unpacked, "to unpack the archive"), (tmpdir, there, BUILD_BYTES, "to build in")]
    short = [
        f"{path} has {space.free_bytes / 2**20:.0f} MiB free, expected {need / 2**20:.0f} MiB {what}"
        for path, space, need, what in needs
        if space.free_bytes < need
    ]
    if short:
        raise ApplyError(f"not enough free space: {'; '.join(short)}. Free space there, or set driver_tmpdir to another folder.")


UNIT = "rdma-ofed-install.service"
FOLDER = "/var/lib/rdma-cluster/ofed"

MakeRoot = Callable[[], SysRoot]
MakeUnit = Callable[[Job], BuildUnit]


@dataclass(frozen=True)
class OfedRequest:
    """version: "24.10-1.1.4.0". checksum: "sha256:<64 hex digits>" of the archive. flags: of mlnxofedinstall.

    folder: for the unpacked archive, log and state; tmpdir: for the build, None for a folder in folder. host: the host's name in messages.
    may_remove: the packages that the installer may remove, None: not checked.
    """

    archive: Path
    checksum: str
    version: str
    flags: Sequence[str]
    folder: Path
    tmpdir: Path | None
    timeout_seconds: int
    host: str
    may_remove: Sequence[str] | None = None


class OfedInstaller:
    """Installs the requested MLNX_OFED on this host. root: creates a SysRoot for each new check of the system."""

    def __init__(self, request: OfedRequest, runner: Runner, *, root: MakeRoot = SysRoot, make_unit: MakeUnit | None = None) -> None:
        self._request, self._runner, self._root = request, runner, root
        self._tmpdir = request.tmpdir or request.folder / "tmp"
        self._make = make_unit or (lambda job: BuildUnit(job, runner))

    def present(self, wait_seconds: float, *, check_mode: bool) -> Report:
        """Start the installer, or take over one that runs or has ended unseen, unless the requested version is installed.

        Raises ApplyError if another program runs, if the archive is wrong or space is missing, and if the stack is in use: the installer
        removes an installed one, and the distribution's packages.
        """
        unit = self._unit(self._request.folder)
        if check_mode:
            return self._forecast(unit)
        with alone(self._request.folder):
            look = unit.look()
            refuse_other(look, UNIT, self._request.host)
            adopts = look.running or look.phase == ENDED
            if not adopts and self._is_there(self._state()):
                return Report(meaning=f"MLNX_OFED {self._request.version} is installed, and built for the running kernel")
            note = self._note(unit) if look.phase == LOST else None
            if not adopts:
                self._start()
        return self._annotated(self._follow(unit, wait_seconds), started=not adopts, note=note)

    def collected(self, wait_seconds: float) -> Report:
        """Wait for the installer that present has started. Nothing is started."""
        return self._annotated(self._follow(self._unit(self._request.folder), wait_seconds), started=False, note=None)

    def _forecast(self, unit: BuildUnit) -> Report:
        look = unit.look()
        refuse_other(look, UNIT, self._request.host)
        if look.running:
            return Report(changed=True, running=True, would="wait for the running installation", seconds=look.seconds)
        state = self._state()
        if self._is_there(state):
            return Report(meaning=f"MLNX_OFED {self._request.version} is installed, and built for the running kernel")
        there = f"{state.stack} {state.version}" if state.stack else "none"
        request = self._request
        step = f"run {INSTALLER} {' '.join(self._flags())} of {request.archive} (MLNX_OFED {request.version}; installed: {there})"
        return Report(changed=True, would=step)

    def _start(self) -> None:
        request = self._request
        with own_copy(request.archive, request.checksum, request.folder) as archive:
            contents = inspect_archive(archive, request.version)
            # A first installation replaces the distribution's packages, and only with force those that depend on them.
            replaced = DISTRIBUTION_STACK if read_ofed_version(self._root()) is None else None
            may_remove = request.may_remove if replaced is None or "--force" in request.flags else None
            refuse_unless_safe(request.host, may_remove, self._root(), self._runner, replaced=replaced)
            self._clean()
            check_space(contents, request.folder, self._tmpdir)
            top = unpack(archive, contents, request.folder)
        self._tmpdir.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._unit(top).start()

    def _flags(self) -> list[str]:
        # The installer must not ask whether to continue: --force prevents that, and so does -q, which removes nothing by force.
        silent = [] if {"--force", "-q"} & set(self._request.flags) else ["-q"]
        tmpdir = [] if "--tmpdir" in self._request.flags else ["--tmpdir", str(self._tmpdir)]
        return [*self._request.flags, *silent, *tmpdir]

    def _unit(self, top: Path) -> BuildUnit:
        request = self._request
        return self._make(
            Job(
                unit=UNIT,
                argv=[str(top / INSTALLER), *self._flags()],
                key={"what": "install", "checksum": request.checksum.lower(), "flags": self._flags()},
                folder=request.folder,
                directory=top,
                log=request.folder / "install.log",
                timeout_seconds=request.timeout_seconds,
            )
        )

    def _follow(self, unit: BuildUnit, wait_seconds: float) -> Report:
        return follow(unit, wait_seconds, self._request.host, self._explain, self._judge)

    def _explain(self, look: Look) -> Meaning:
        return explain_installer(look.rc, look.result, self._request.timeout_seconds, self._request.host)

    def _judge(self) -> Meaning | None:
        """Return a failure if the installed driver is not the one that would be loaded."""
        state, request = self._state(), self._request
        if self._is_there(state):
            return None
        if state.built is not True:
            why = "; ".join(state.why) or "no reason is known"
            known = "" if state.built is False else ", as far as is known"
            return Meaning(
                f"the installer exited with 0, but the stock {DRIVER} would be loaded{known}: {why}",
                f"Fix the cause in the lines below. On {request.host}, `modinfo {DRIVER}` and `dkms status` show the built modules.",
            )
        return Meaning(
            f"the installer exited with 0, but {state.stack or 'no OFED'} {state.version or ''} is installed, expected {request.version}",
            f"On {request.host}, run `ofed_info -s`, and compare it with the archive's name.",
        )

    def _annotated(self, report: Report, *, started: bool, note: str | None) -> Report:
        if report.finished and not report.failed:
            self._clean()
        return Report(**{**vars(report), "started": started, "note": note})

    def _clean(self) -> None:
        remove_unpacked(self._request.folder)
        if self._request.tmpdir is None and self._tmpdir.exists():
            shutil.rmtree(self._tmpdir)

    def _note(self, unit: BuildUnit) -> str:
        return f"an earlier installation was interrupted ({cut_off(unit, self._request.host)}); it started over from the archive"

    def _is_there(self, state: OfedState) -> bool:
        return state.stack == MLNX_OFED and state.version == self._request.version and state.built is True

    def _state(self) -> OfedState:
        return state_now(self._root(), self._runner)


def state_now(sys: SysRoot, runner: Runner) -> OfedState:
    """Return the current state of OFED, also of a driver that is not loaded: then modinfo shows the file that modprobe would load."""
    stack = read_stack(sys, runner)
    state = ofed_state(stack)
    file = None if DRIVER in stack.modules else read_modinfo(runner, [DRIVER]).get(DRIVER)
    if file is None:
        return state
    built = provenance(file.file, module_names(sys, stack.dkms, stack.kernel or "")) in ADD_ONS
    return replace(state, built=built, why=state.why if built else [f"modprobe would load {file.file}", *state.why])
