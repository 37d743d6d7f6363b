# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run a long driver build as its own unit: doca-kernel-support, dkms autoinstall."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Runner
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._base.systemd import alone
from ansible_collections.rdma.cluster.plugins.module_utils._driver.build_report import Report, cut_off, follow, refuse_other
from ansible_collections.rdma.cluster.plugins.module_utils._driver.build_unit import ENDED, LOST, BuildUnit, Job, Look
from ansible_collections.rdma.cluster.plugins.module_utils._driver.ofed_codes import Meaning, explain_end
from ansible_collections.rdma.cluster.plugins.module_utils._driver.ofed_installer import MakeRoot, MakeUnit
from ansible_collections.rdma.cluster.plugins.module_utils._driver.stack_removal import refuse_while_used

FOLDER = "/var/lib/rdma-cluster/builds"


@dataclass(frozen=True)
class Build:
    """name: of the unit rdma-build-NAME.service. creates: the path that a successful build creates, None without a check.

    log: None for FOLDER/NAME/build.log. host: the host's name in messages. idle_only: refuse to start while the driver stack is in use.
    """

    name: str
    argv: Sequence[str]
    creates: str | None
    folder: Path
    log: Path | None
    timeout_seconds: int
    host: str
    idle_only: bool = False


class DriverBuild:
    """One build on this host. root: creates a SysRoot for each new check of the system."""

    def __init__(self, request: Build, runner: Runner, *, root: MakeRoot = SysRoot, make_unit: MakeUnit | None = None) -> None:
        self._request, self._runner, self._root = request, runner, root
        folder, argv = request.folder / request.name, list(request.argv)
        log = request.log or folder / "build.log"
        job = Job(f"rdma-build-{request.name}.service", argv, {"argv": argv}, folder, Path("/"), log, request.timeout_seconds)
        self._unit = make_unit(job) if make_unit is not None else BuildUnit(job, runner)

    def present(self, wait_seconds: float, *, check_mode: bool) -> Report:
        """Start the build, or take over one that runs or has ended unseen; no action if its result exists.

        Raises ApplyError if another build of the name runs, and if it would start on a host in use that must be idle.
        """
        if check_mode:
            return self._forecast()
        with alone(self._unit.job.folder):
            look = self._unit.look()
            refuse_other(look, self._unit.job.unit, self._request.host)
            adopts = look.running or look.phase == ENDED
            if not adopts and self._is_there():
                return Report(meaning=f"{self._request.creates} exists")
            note = f"an earlier build was interrupted: {cut_off(self._unit, self._request.host)}" if look.phase == LOST else None
            if not adopts and self._request.idle_only:
                refuse_while_used(self._request.host, self._root(), self._runner)
            if not adopts:
                self._unit.start()
        return Report(**{**vars(self.collected(wait_seconds)), "started": not adopts, "note": note})

    def collected(self, wait_seconds: float) -> Report:
        """Wait for the build that present has started. Nothing is started."""
        return follow(self._unit, wait_seconds, self._request.host, self._explain, self._judge)

    def _forecast(self) -> Report:
        look = self._unit.look()
        refuse_other(look, self._unit.job.unit, self._request.host)
        if self._is_there() and not look.running:
            return Report(meaning=f"{self._request.creates} exists")
        return Report(changed=True, running=look.running, would=f"run {' '.join(self._request.argv)}")

    def _is_there(self) -> bool:
        return self._request.creates is not None and self._root().exists(self._request.creates)

    def _explain(self, look: Look) -> Meaning:
        return explain_end(look.rc, look.result, self._request.timeout_seconds, self._request.host)

    def _judge(self) -> Meaning | None:
        if self._request.creates is None or self._is_there():
            return None
        remedy = f"Read the lines below, and `{' '.join(self._request.argv)} --help` on {self._request.host}."
        return Meaning(f"it exited with 0, but {self._request.creates} does not exist", remedy)
