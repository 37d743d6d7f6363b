# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Error lines of CUDA, PyTorch, nccl-tests, Open MPI, UCX, Slurm and the kernel, as they stand in the logs of jobs."""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.signature import Signature

_TORCH, _STORE = "PyTorch ProcessGroupNCCL.cpp", "PyTorch TCPStore.cpp"
_OMPI, _UCX, _SLURM, _CUDA, _KERNEL = "Open MPI", "UCX", "Slurm", "CUDA", "Linux"

#: CUDA's texts stand in the lines of everybody who uses it, and so before those of NCCL.
CUDA_SIGNATURES: tuple[Signature, ...] = (
    Signature("cuda.old_driver", "CUDA driver version is insufficient", _CUDA),
    Signature("cuda.mismatch", "river/library version mismatch", _CUDA),
    Signature("cuda.not_ready", "system not yet initialized", _CUDA),
    Signature("cuda.no_device", "no CUDA-capable device is detected", _CUDA),
    Signature("cuda.ordinal", "invalid device ordinal", _CUDA),
    Signature("cuda.architecture", "no kernel image is available", _CUDA),
    Signature("cuda.ecc", "uncorrectable ECC error", _CUDA),
    Signature("cuda.memory", "CUDA out of memory", "PyTorch"),
    Signature("cuda.memory", "out of memory", _CUDA, r"(?:Cuda failure|CUDA (?:error|failure)).{0,200}out of memory"),
    Signature("cuda.access", "illegal memory access", _CUDA),
    Signature("cuda.launch", "unspecified launch failure", _CUDA),
)

JOB_SIGNATURES: tuple[Signature, ...] = (
    Signature("cuda.failed", "Cuda failure", "NCCL src/include/checks.h", r"Cuda failure (?P<error>.{1,100})"),
    # PyTorch
    Signature("torch.aborted", "Some NCCL operations have failed or timed out", _TORCH),
    Signature("torch.aborted", "NCCL communicator was aborted", _TORCH),
    Signature("torch.aborted", "taking the entire process down", _TORCH),
    Signature("torch.aborted", "watchdog thread terminated with exception", _TORCH),
    Signature(
        "torch.timeout", "Watchdog caught collective operation timeout", _TORCH, r"SeqNum=(?P<sequence>\d+), OpType=(?P<operation>\w+)"
    ),
    Signature("torch.timeout", "Watchdog caught collective operation timeout", _TORCH),
    Signature("torch.stuck", "watchdog got stuck", _TORCH),
    Signature("torch.init", "NCCL timeout in communicator initialization", _TORCH),
    Signature("torch.remote", "Observed flight recorder dump signal", _TORCH),
    Signature("torch.child", "ChildFailedError", "PyTorch torchrun"),
    Signature(
        "store.clients",
        "waiting for clients",
        _STORE,
        r"Timed out after (?P<seconds>\d+) seconds waiting for clients\. (?P<there>\d+)/(?P<wanted>\d+)",
    ),
    Signature("store.connect", "client socket has timed out", _STORE),
    # Error 97 is IPv6 where there is none, and it goes on with IPv4.
    Signature("store.retrying", "client socket has failed to connect", _STORE, r"failed to connect(?!.{0,300}errno: 97)"),
    Signature("store.port", "Address already in use", _STORE, r"^(?!.*NCCL)"),
    Signature("store.port", "EADDRINUSE", _STORE),
    Signature("store.wait", "wait timeout after", _STORE, r"wait timeout after \d+ms, keys"),
    Signature("store.lost", "recvValue failed", _STORE),
    Signature("store.lost", "recvBytes", _STORE, r"(?i)recvBytes.{0,200}(?:failed|0 bytes|Connection reset)"),
    Signature("store.lost", "sendBytes failed", _STORE),
    Signature("shm.loader", "out of shared memory", "PyTorch DataLoader"),
    Signature("shm.loader", "insufficient shared memory (shm)", "PyTorch DataLoader"),
    # Open MPI and UCX
    Signature("mpi.slots", "There are not enough slots available", _OMPI),
    Signature("mpi.daemon", "was unable to reliably start one or more daemons", _OMPI),
    Signature("mpi.lost", "ORTE has lost communication with a remote daemon", _OMPI),
    Signature("mpi.lost", "PRTE has lost communication with a remote daemon", _OMPI),
    Signature("mpi.daemon", "Host key verification failed", _OMPI),
    Signature("mpi.openib", "There was an error initializing an OpenFabrics device", _OMPI),
    Signature(
        "mpi.signal",
        "noticed that process rank",
        _OMPI,
        r"rank (?P<rank>\d+) with PID \d+ on node (?P<host>\S+) exited on signal (?P<signal>\d+)",
    ),
    Signature("mpi.aborted", "process returned a non-zero exit code", _OMPI),
    Signature("mpi.aborted", "MPI_ABORT was invoked", _OMPI),
    Signature("memory.locked", "Please set max locked memory", _UCX, r"\(current: (?P<limit>[^)]{1,40})\)"),
    Signature("memory.gpu", "failed: Bad address", _UCX, r"UCX +ERROR .{0,200}reg_\w*mr"),
    Signature("ib.retry", "Transport retry count exceeded", _UCX),
    Signature("ib.remote_access", "Remote access error", _UCX, r"UCX +ERROR"),
    Signature("ib.local_protection", "Local protection", _UCX, r"UCX +ERROR"),
    Signature("ucx.transport", "UCX  ERROR", _UCX, r"no (?:usable|active|supported|auxiliary)?.{0,40}transport"),
    # nccl-tests
    Signature("tests.timeout", ": Test timeout (", "nccl-tests"),
    Signature("tests.failed", ": Test failure", "nccl-tests"),
    # Slurm
    Signature("host.memory", "oom_kill event", _SLURM),
    Signature("host.memory", "oom-kill event", _SLURM),
    Signature("host.memory", "Out Of Memory", _SLURM, r"error: (?P<host>\S+): tasks? (?P<rank>\d+)"),
    Signature("slurm.node", "DUE TO NODE FAILURE", _SLURM, r" ON (?P<host>\S+) CANCELLED"),
    Signature("slurm.node", "Node failure on", _SLURM, r"Node failure on (?P<host>\S+)"),
    Signature("slurm.time", "DUE TO TIME LIMIT", _SLURM, r" ON (?P<host>\S+) CANCELLED"),
    Signature(
        "slurm.task", "srun: error:", _SLURM, r"error: (?P<host>\S+): tasks? (?P<rank>\d+)\S*: (?P<how>Killed|Segmentation|Bus|Abort)"
    ),
    Signature("slurm.aborted", "srun: error:", _SLURM, r"error: \S+: tasks? [0-9,-]+: (?:Exited|Terminated)"),
    Signature("slurm.aborted", "Job step aborted", _SLURM),
    # the kernel
    Signature("gpu.xid", "NVRM: Xid", _KERNEL, r"Xid \((?P<gpu>[^)]{1,40})\): (?P<code>\d+)"),
    Signature("host.memory", "Out of memory: Kill", _KERNEL),
    Signature("kernel.health", "health compromised", _KERNEL, r"mlx5_core (?P<pci>[0-9a-f:.]+)"),
    Signature("kernel.completion", "dump error cqe", _KERNEL),
    Signature("kernel.link", ": Link down", _KERNEL, r"mlx5_core \S+ (?P<netdev>\S+): Link down"),
    Signature("iommu.fault", "IO_PAGE_FAULT", _KERNEL),
    Signature("iommu.fault", "DMAR: [DMA ", _KERNEL),
)
