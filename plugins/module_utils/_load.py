# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a host is in use: processes that have a GPU open, and processes of a batch system that show a job.

Sources: proc(5), proc_pid_fd(5), proc_pid_comm(5); slurmstepd.c of Slurm; sge_shepherd(8).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._sysroot import SysRoot

#: The kernel cuts a process's name to 15 characters (TASK_COMM_LEN).
COMM_CHARS = 15
#: They have GPUs open on an idle host, and put no load on them: NVIDIA's services, NVSM of DGX OS and the device plugin of Kubernetes
#: among them, and a desktop that waits for somebody to log in.
GPU_DAEMONS = frozenset(
    name[:COMM_CHARS]
    for name in (
        *("nvidia-persistenced", "nv-hostengine", "dcgm-exporter", "nv-fabricmanager", "nvidia-smi", "nvsm_core", "nvidia-device-plugin"),
        *("Xorg", "Xwayland", "gnome-shell"),
    )
)
#: Processes that live as long as a job (or a step of one) does on this host: Slurm, Grid Engine. Not known are the jobs of PBS and
#: LSF, whose daemon and whose process for a job have one name, and an allocation of Slurm that has started nothing here.
JOB_PROCESSES = frozenset(name[:COMM_CHARS] for name in ("slurmstepd", "sge_shepherd"))
#: With cgroup v2 slurmd keeps a process with these arguments alive, job or none. With a job id behind them it belongs to that job.
SLURM_PLACEHOLDER = ["infinity"]
#: The process that has started all others.
INIT = 1
#: A container's or a chroot's file may show with the path up to it.
GPU_DEVICE = re.compile(r"(?:/.*)?/dev/nvidia[0-9]+(?: \(deleted\))?")
_NAMED = 3


@dataclass(frozen=True)
class Process:
    """name: as the kernel has it (comm), cut to 15 characters."""

    pid: int
    name: str


@dataclass(frozen=True)
class Load:
    """Who uses the host; gpu_processes is None if there may be some that the reader was not allowed to see."""

    gpu_processes: list[Process] | None
    jobs: list[Process]


def read_load(sys: SysRoot) -> Load:
    """Look through /proc; a process that ends meanwhile is left out.

    Open files are looked at only where the NVIDIA driver is. Where there is no process 1, as in a captured tree and under hidepid
    (proc(5)), there may be others out of sight. Raises OSError, naming the path, if /proc cannot be read.
    """
    pids = sorted(int(name) for name in sys.list_dir("/proc") if name.isdecimal())
    processes = [Process(pid, name) for pid in pids if (name := _name(sys, pid))]
    gpu = _gpu_processes(sys, processes) if _has_gpu(sys) else []
    return Load(
        gpu_processes=gpu or ([] if gpu is not None and 1 in pids else None),
        jobs=[process for process in processes if _is_job(sys, process)],
    )


def busy_words(load: Mapping[str, Any] | None) -> str:
    """Who uses a host, in words: "GPU process 4711 (python3)"; "" if nobody does.

    load: Load as a dictionary; None if it was not read, which is not the same as idle.
    """
    if load is None:
        return "whether it is in use is not known"
    gpu = load["gpu_processes"]
    words = [
        "GPU processes cannot be seen" if gpu is None else _words("GPU process", gpu),
        _words("job process", load["jobs"]),
    ]
    return "; ".join(filter(None, words))


def _words(kind: str, processes: Sequence[Mapping[str, Any]]) -> str:
    if not processes:
        return ""
    named = ", ".join(f"{process['pid']} ({process['name']})" for process in processes[:_NAMED])
    more = len(processes) - _NAMED
    return f"{kind}{'es' if len(processes) > 1 else ''} {named}" + (f" and {more} more" if more > 0 else "")


def _name(sys: SysRoot, pid: int) -> str:
    """A process's name; "" if it has ended. It is the process's own choice, so only what can be printed is kept."""
    try:
        name = sys.text(f"/proc/{pid}/comm") or ""
    except ProcessLookupError:
        return ""
    return "".join(char if char.isprintable() else "?" for char in name)


def _is_job(sys: SysRoot, process: Process) -> bool:
    if process.name not in JOB_PROCESSES:
        return False
    try:
        arguments = (sys.text(f"/proc/{process.pid}/cmdline") or "").split("\0")[1:]
    except ProcessLookupError:
        return False
    return arguments != SLURM_PLACEHOLDER


def _has_gpu(sys: SysRoot) -> bool:
    return sys.exists("/proc/driver/nvidia") or any(GPU_DEVICE.fullmatch(f"/dev/{name}") for name in sys.list_dir("/dev"))


def _gpu_processes(sys: SysRoot, processes: Sequence[Process]) -> list[Process] | None:
    found, hidden = [], False
    for process in processes:
        # The first process may be closed even to root, and is no work of anybody's (seen on a machine with an H200).
        if process.pid == INIT or process.name in GPU_DAEMONS:
            continue
        try:
            if _has_gpu_open(sys, process.pid):
                found.append(process)
        except ProcessLookupError:
            continue
        except PermissionError:
            hidden = True
    return None if hidden and not found else found


def _has_gpu_open(sys: SysRoot, pid: int) -> bool:
    folder = f"/proc/{pid}/fd"
    return any(GPU_DEVICE.fullmatch(sys.link_target(f"{folder}/{number}") or "") for number in sys.list_dir(folder))
