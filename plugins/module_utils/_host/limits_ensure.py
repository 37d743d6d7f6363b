# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Apply limits: the files, the limits of the next service, and logind's action when a user logs out."""

from __future__ import annotations

from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Runner, run_checked
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError
from ansible_collections.rdma.cluster.plugins.module_utils._base.files import FileChange, ensure_files, setting_diff
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._host.limit_sources import service_source
from ansible_collections.rdma.cluster.plugins.module_utils._host.limits import (
    ASK,
    NAME,
    LimitsRequest,
    ServiceLimits,
    files,
    keep_ipc,
    loses_ipc,
    read_remove_ipc,
    read_service_limits,
    too_low,
)

REMOVE_IPC = ("RemoveIPC of logind", "yes", "no")


@dataclass(frozen=True)
class LimitsResult:
    """The changes, or in check mode the planned ones. live: (name, actual, requested) in the running system, in addition to files."""

    files: list[FileChange]
    live: list[tuple[str, str, str]]

    @property
    def changed(self) -> bool:
        return bool(self.files or self.live)

    @property
    def diffs(self) -> list[dict[str, str]]:
        """Return the changes in the format of Ansible's --diff."""
        return [*(file.to_diff() for file in self.files), *(setting_diff(*each) for each in self.live)]


def ensure_limits(request: LimitsRequest, *, runner: Runner, sys: SysRoot, check_mode: bool) -> LimitsResult:
    """Write the files, and reload systemd and logind if their current settings differ.

    Limits that are not requested are removed from the files. The running manager is then unchanged, because its previous value is unknown.
    Raises ApplyError if a limit cannot be read or is still too low afterwards.
    """
    changes = ensure_files(files(request), check_mode=check_mode)
    live = _services(request, runner, sys, check_mode=check_mode)
    if request.keep_ipc and loses_ipc(request, read_remove_ipc(sys, runner)):
        live.append(REMOVE_IPC)
        if not check_mode:
            keep_ipc(sys, runner)
    return LimitsResult(changes, live)


def _services(request: LimitsRequest, runner: Runner, sys: SysRoot, *, check_mode: bool) -> list[tuple[str, str, str]]:
    if not (request.memlock_unlimited or request.open_files):
        return []
    before = read_service_limits(runner)
    if before is None and not check_mode:
        raise ApplyError(f"Cannot read the limits of services: `{' '.join(ASK)}` does not work here.")
    low = too_low(request, before) if before is not None else [("limits of services", "unknown", "as requested")]
    if low and not check_mode:
        run_checked(runner, "systemctl", "daemon-reexec")
        _read_back(request, read_service_limits(runner), sys)
    return low


def _read_back(request: LimitsRequest, after: ServiceLimits | None, sys: SysRoot) -> None:
    low = too_low(request, after) if after is not None else [("limits of services", "unknown", "as requested")]
    if not low:
        return
    words = "; ".join(f"{what}: {seen} instead of {planned}" for what, seen, planned in low)
    items = ["MEMLOCK"] * request.memlock_unlimited + ["NOFILE"] * bool(request.open_files)
    foreign = [source for item in items if (source := service_source(sys, item)) is not None and not source.file.endswith(f"/{NAME}")]
    if foreign:
        why = " ".join(f"Line {each.line} of {each.file} sets {each.value} and overrides {NAME}: remove it." for each in foreign)
    else:
        why = f"Look for other settings than {NAME} in `systemd-analyze cat-config systemd/system.conf` and `systemctl cat -- service.d`."
    raise ApplyError(f"systemd has reloaded {NAME}, but a service still has {words}. {why}")
