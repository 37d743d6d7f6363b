# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Remove MLNX_OFED or DOCA-OFED with its own uninstaller, in the unit of the installer: the two exclude each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Runner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._base.systemd import alone
from ansible_collections.rdma.cluster.plugins.module_utils._driver.build_report import Report, follow, refuse_other
from ansible_collections.rdma.cluster.plugins.module_utils._driver.build_unit import ENDED, BuildUnit, Job, Look
from ansible_collections.rdma.cluster.plugins.module_utils._driver.ofed_codes import Meaning, explain_end
from ansible_collections.rdma.cluster.plugins.module_utils._driver.ofed_installer import UNIT, MakeRoot, MakeUnit
from ansible_collections.rdma.cluster.plugins.module_utils._driver.stack import read_ofed_version
from ansible_collections.rdma.cluster.plugins.module_utils._driver.stack_removal import refuse_unless_safe

UNINSTALLER = ("/usr/sbin/ofed_uninstall.sh", "--force")


@dataclass(frozen=True)
class Removal:
    """argv: the uninstaller. folder: of log and state. host: the host's name in messages.

    may_remove: the packages that may be removed, None: not checked.
    """

    argv: Sequence[str]
    folder: Path
    timeout_seconds: int
    host: str
    may_remove: Sequence[str] | None = None


class OfedUninstaller:
    """Removes the installed OFED from this host. root: creates a SysRoot for each new check of the system."""

    def __init__(self, request: Removal, runner: Runner, *, root: MakeRoot = SysRoot, make_unit: MakeUnit | None = None) -> None:
        self._request, self._root, self._runner = request, root, runner
        argv = list(request.argv)
        key = {"what": "uninstall", "argv": argv}
        job = Job(UNIT, argv, key, request.folder, Path("/"), request.folder / "uninstall.log", request.timeout_seconds)
        self._unit = make_unit(job) if make_unit is not None else BuildUnit(job, runner)

    def absent(self, wait_seconds: float, *, check_mode: bool) -> Report:
        """Start the uninstaller, or take over one that runs or has ended unseen; no action if no OFED is installed.

        Raises ApplyError if another program runs, there is no uninstaller, the stack is in use, or other packages would also be removed.
        """
        if check_mode:
            return self._forecast()
        with alone(self._request.folder):
            look = self._unit.look()
            refuse_other(look, UNIT, self._request.host)
            adopts = look.running or look.phase == ENDED
            if not adopts:
                if self._version() is None:
                    return Report(meaning="no OFED is installed")
                self._start()
        return Report(**{**vars(self.collected(wait_seconds)), "started": not adopts})

    def collected(self, wait_seconds: float) -> Report:
        """Wait for the uninstaller that absent has started. Nothing is started."""
        return follow(self._unit, wait_seconds, self._request.host, self._explain, self._judge)

    def _forecast(self) -> Report:
        look = self._unit.look()
        refuse_other(look, UNIT, self._request.host)
        version = self._version()
        if version is None and not look.running:
            return Report(meaning="no OFED is installed")
        return Report(changed=True, running=look.running, would=f"run {' '.join(self._request.argv)} (installed: {version})")

    def _start(self) -> None:
        program = self._request.argv[0]
        if not self._root().exists(program):
            raise ApplyError(
                f"{self._version()} is installed on {self._request.host}, but its uninstaller {program} does not exist. "
                f"Find it with `ls /usr/sbin/*uninstall*` on the host, and set it as uninstaller, or remove the packages by hand."
            )
        refuse_unless_safe(self._request.host, self._request.may_remove, self._root(), self._runner)
        self._unit.start()

    def _explain(self, look: Look) -> Meaning:
        return explain_end(look.rc, look.result, self._request.timeout_seconds, self._request.host)

    def _judge(self) -> Meaning | None:
        version = self._version()
        if version is None:
            return None
        remedy = f"Read the lines below. On {self._request.host}, `ofed_info` shows the remaining packages."
        return Meaning(f"the uninstaller exited with 0, but {version} is still installed", remedy)

    def _version(self) -> str | None:
        return read_ofed_version(self._root())
