# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the services that start jobs may lock: a service that ran before the limit was lifted keeps its own, and hands it on.

Sources: cgroups(7), the slice system.slice of systemd.special(7); proc_pid_limits(5).
"""

from __future__ import annotations

from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._limit_sources import LimitSource, unit_source
from ansible_collections.rdma.cluster.plugins.module_utils._limits import Memlock, service_limits
from ansible_collections.rdma.cluster.plugins.module_utils._sysroot import SysRoot, named
from ansible_collections.rdma.cluster.plugins.module_utils._systemd import service_group

#: The unit, and the name of its main process; distributions call that of SSH by both names.
STARTERS = {
    "ssh.service": "sshd",
    "sshd.service": "sshd",
    "slurmd.service": "slurmd",
    "containerd.service": "containerd",
    "docker.service": "dockerd",
    "kubelet.service": "kubelet",
}


@dataclass(frozen=True)
class RunningService:
    """A service that runs: its main process, the memory that it may lock, and the line of its unit or a drop-in that sets it."""

    pid: int
    memlock: Memlock
    source: LimitSource | None = None


def read_running_services(sys: SysRoot) -> dict[str, RunningService]:
    """Those of STARTERS that run, by unit; no process is started. One that ends meanwhile, or may not be looked at, is left out."""
    found = {unit: _read(sys, unit, name) for unit, name in STARTERS.items()}
    return {unit: service for unit, service in found.items() if service is not None}


def _read(sys: SysRoot, unit: str, name: str) -> RunningService | None:
    group = service_group(sys, unit)
    pids = (sys.text(f"{group}/cgroup.procs") or "").split() if group is not None else []
    for pid in sorted(int(word) for word in pids if word.isdecimal()):
        path = f"/proc/{pid}/limits"
        try:
            text = sys.read(path) if sys.text(f"/proc/{pid}/comm") == name else None
        except (PermissionError, ProcessLookupError):
            continue
        if text:
            return RunningService(pid, named(path, service_limits, text).memlock, unit_source(sys, unit, "MEMLOCK"))
    return None
