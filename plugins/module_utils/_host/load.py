# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find whether a host is in use: processes with an open GPU, processes of a batch system that show a job, and queue pairs.

Sources: proc(5), proc_pid_fd(5), proc_pid_comm(5); slurmstepd.c of Slurm; sge_shepherd(8); rdma-resource(8).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import CommandError, Runner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import first_of
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._host.queue_pairs import RdmaQp, parse_rdma_qps

#: The kernel truncates a process's name to 15 characters (TASK_COMM_LEN).
COMM_CHARS = 15
#: Processes that have GPUs open without any load: NVIDIA's services, including NVSM of DGX OS and the device plugin of Kubernetes, and a
#: desktop that waits for a login.
GPU_DAEMONS = frozenset(
    name[:COMM_CHARS]
    for name in (
        *("nvidia-persistenced", "nv-hostengine", "dcgm-exporter", "nv-fabricmanager", "nvidia-smi", "nvsm_core", "nvidia-device-plugin"),
        *("Xorg", "Xwayland", "gnome-shell"),
    )
)
#: Processes that run as long as a job (or a step of one) on this host: Slurm, Grid Engine. Jobs of PBS and LSF are not detected, because
#: daemon and job process have the same name. A Slurm allocation that has started nothing here is not detected either.
JOB_PROCESSES = frozenset(name[:COMM_CHARS] for name in ("slurmstepd", "sge_shepherd"))
#: With cgroup v2 slurmd keeps a process with these arguments alive, with or without a job. With a job id after them it belongs to that job.
SLURM_PLACEHOLDER = ["infinity"]
#: The process that has started all others.
INIT = 1
#: The path of a container's or a chroot's file may include the path up to it.
GPU_DEVICE = re.compile(r"(?:/.*)?/dev/nvidia[0-9]+(?: \(deleted\))?")
_NAMED = 3
NOT_ALLOWED = "not allowed"
QP_COMMAND = ("rdma", "-j", "resource", "show", "qp")
DEVICES = "/sys/class/infiniband"
#: Kernel modules that hold queue pairs on an idle port: management datagrams, IP over InfiniBand, the driver's own.
KERNEL_QPS = frozenset({"ib_core", "ib_mad", "ib_ipoib", "mlx4_ib", "mlx5_ib"})
#: Services of rdma-core that hold a queue pair on each port of an idle host.
RDMA_DAEMONS = frozenset({"ibacm", "srp_daemon"})
ENDED = "a process that has ended"


@dataclass(frozen=True)
class Process:
    """name: the kernel's name (comm), truncated to 15 characters."""

    pid: int
    name: str


@dataclass(frozen=True)
class QpUser:
    """A process, or a kernel module (pid: None), that holds queue pairs on one port. port: None without a port yet."""

    device: str
    port: int | None
    pid: int | None
    name: str
    count: int


@dataclass(frozen=True)
class Load:
    """The users of the host; gpu_processes is None if some may be hidden from the reader.

    qps: the users of RDMA ports, without the kernel's own queue pairs; None if they could not be read, with the reason in qps_error.
    """

    gpu_processes: list[Process] | None
    jobs: list[Process]
    qps: list[QpUser] | None = None
    qps_error: str | None = None


def read_load(sys: SysRoot, runner: Runner | None = None) -> Load:
    """Read /proc, and query `rdma` for queue pairs; a process that ends meanwhile is omitted.

    Open files are read only if the NVIDIA driver exists. Without a process 1, as in a captured tree and under hidepid (proc(5)), others may
    be hidden. Raises OSError, with the path, if /proc cannot be read.
    """
    processes = read_processes(sys)
    gpu = _gpu_processes(sys, processes) if _has_gpu(sys) else []
    qps, qps_error = _read_qps(sys, runner)
    return Load(
        gpu_processes=gpu or ([] if gpu is not None and "1" in sys.list_dir("/proc") else None),
        jobs=[process for process in processes if _is_job(sys, process)],
        qps=qps,
        qps_error=qps_error,
    )


def read_processes(sys: SysRoot) -> list[Process]:
    """Return the processes of a host by their numbers; one that ends meanwhile is omitted. Raises OSError, with the path."""
    pids = sorted(int(name) for name in sys.list_dir("/proc") if name.isdecimal())
    return [Process(pid, name) for pid in pids if (name := _name(sys, pid))]


def _read_qps(sys: SysRoot, runner: Runner | None) -> tuple[list[QpUser] | None, str | None]:
    """Return the users of queue pairs, or None and why they could not be read."""
    if runner is None:
        return None, "a captured tree has no queue pairs"
    if not sys.list_dir(DEVICES):
        return [], None
    try:
        done = runner.run(QP_COMMAND)
        if done.rc:
            return None, f"`{' '.join(QP_COMMAND)}` failed: {(done.stderr or done.stdout).strip()[:200] or f'exit status {done.rc}'}"
        return qp_users(parse_rdma_qps(done.stdout)), None
    except (CommandError, ParseError) as error:
        return None, str(error)[:300]


def qp_users(qps: Sequence[RdmaQp]) -> list[QpUser]:
    """Return the users of these queue pairs, without those of an idle host. A queue pair whose process has ended counts as used."""
    used = [qp for qp in qps if not (qp.owner in KERNEL_QPS if qp.pid is None else qp.owner in RDMA_DAEMONS)]
    counts = Counter((qp.device, qp.port, qp.pid, _printable(qp.owner or ENDED)) for qp in used)
    return [QpUser(*key, count) for key, count in counts.items()]


def busy_words(load: Load | None) -> str:
    """Return the users of a host, in words: "GPU process 4711 (python3)"; "" without any. load: None if it was not read: not idle."""
    if load is None:
        return "whether it is in use is unknown"
    gpu = load.gpu_processes
    words = ["GPU processes cannot be seen" if gpu is None else _words("GPU process", gpu), _words("job process", load.jobs)]
    return "; ".join(filter(None, words))


def in_use_now(sys: SysRoot, runner: Runner | None = None) -> str:
    """Return the current users of a host, as busy_words writes them; "" without any. With a runner, holders of queue pairs count as well.

    An action that interrupts the host checks this right before it starts: facts may be minutes old. A read failure counts as in use.
    """
    try:
        load = read_load(sys, runner)
    except OSError as error:
        return f"whether the host is in use is unknown: {error}"
    return busy_words(load) if runner is None else host_users(load)


def refusal(sys: SysRoot, runner: Runner | None = None, *, allowed: bool) -> str:
    """Return why an effect that interrupts the host must not happen now: "" if it may, "not allowed", or the users of the host."""
    return in_use_now(sys, runner) if allowed else NOT_ALLOWED


def idle_refusal(sys: SysRoot, runner: Runner | None = None, *, allowed: bool) -> str:
    """Return why an effect that is harmless on an idle host must wait: the users of the host; "" without any, or if allowed."""
    return "" if allowed else in_use_now(sys, runner)


def rail_users(load: Load | None, device: str | None, port: int | str | None) -> str:
    """Return the users of a rail, in words: queue pairs on its port, and work on its host; "" if the rail is idle.

    load: None if it was not read. device: None for a rail without an RDMA device, which has no queue pairs.
    """
    words = [busy_words(load)]
    if load is not None and device is not None:
        words.append(_qp_words(load, [each for each in load.qps or () if _is_on(each, device, port)]))
    return "; ".join(filter(None, words))


def host_users(load: Load | None) -> str:
    """Return the same for all RDMA devices of a host."""
    words = [busy_words(load)]
    if load is not None:
        words.append(_qp_words(load, load.qps or ()))
    return "; ".join(filter(None, words))


def _is_on(user: QpUser, device: str, port: int | str | None) -> bool:
    return user.device == device and (user.port is None or port is None or str(user.port) == str(port))


def _qp_words(load: Load, users: Sequence[QpUser]) -> str:
    if load.qps is None:
        return f"queue pairs cannot be read ({load.qps_error or 'not read'})"
    return first_of([f"{_owner(user)} on {user.device}/{user.port or '-'}" for user in users], _NAMED)


def _owner(user: QpUser) -> str:
    qps = f"{user.count} {'queue pair' if user.count == 1 else 'queue pairs'}"
    if user.name == ENDED:
        return f"{qps} of {ENDED}"
    where = "kernel" if user.pid is None else f"pid {user.pid}"
    return f"{qps} of {user.name} ({where})"


def _words(kind: str, processes: Sequence[Process]) -> str:
    if not processes:
        return ""
    named = first_of([f"{process.pid} ({process.name})" for process in processes], _NAMED)
    return f"{kind}{'es' if len(processes) > 1 else ''} {named}"


def _name(sys: SysRoot, pid: int) -> str:
    """Return a process's name; "" if it has ended. The process sets it, so only printable characters are kept."""
    try:
        name = sys.text(f"/proc/{pid}/comm") or ""
    except ProcessLookupError:
        return ""
    return _printable(name)


def _printable(name: str) -> str:
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
        # The first process may be closed even to root, and is not a job (seen on a machine with an H200).
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
