# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Texts of tools around a job: perftest and RDMA CM, mpirun, Slurm and containers, CUDA in programs, drivers, and processes that end."""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.signature import Signature

_PERFTEST, _CM, _OMPI, _SLURM = "perftest src", "rdma-core librdmacm", "Open MPI", "Slurm"
_CONTAINER, _KERNEL, _CUDA = "pyxis, enroot, Docker, containerd", "Linux drivers", "CUDA in a program"
#: A text that is the whole line, after the prefix of a launcher or shell.
_WHOLE = r"(?:^|[:>)\]|Z] ?|\b[FP] | - ){0}(?: \(core dumped\))?\s*$|: line \d+: +\d+ {0}\b"

#: They come before texts that have a part of theirs.
TOOLS_FIRST: tuple[Signature, ...] = (
    Signature("shm.failed", "UCX ", "UCX src/uct/sm/mm", r"mm_(?:sysv|posix)\.c:\d+ +UCX +ERROR failed to allocate .{0,100}"),
    Signature("cuda.failed", "CUDA driver error: ", "PyTorch", r"CUDA driver error: (?P<error>.{1,100})"),
    Signature("container.start", "nvidia-container-cli: detection error", "nvidia-container-cli"),
)

TOOLS: tuple[Signature, ...] = (
    # perftest and RDMA CM
    Signature("test.no_device", "Failed to get IB devices list", f"{_PERFTEST}, rdma-core"),
    Signature("ib.query", "Failed to query device props", "rdma-core ibv_devinfo"),
    Signature("cm.address", "wait for CONNECTED state", "rdma-core rping"),
    Signature("cm.address", "connect error -", "rdma-core rping", r"(?:^|[\s:>\]])connect error -\d+\s*$"),
    Signature("cm.address", "nexpected CM event ", f"{_PERFTEST}/perftest_communication.c", r"[Uu]nexpected CM event (?:bl blka )?\d+"),
    Signature("cm.address", "Unable to create RDMA_CM resources", f"{_PERFTEST}/perftest_resources.c"),
    Signature("cm.channel", "librdmacm: Fatal: unable to open RDMA device", _CM),
    Signature("test.connect", "Problem in resolving basic address", f"{_PERFTEST}/perftest_communication.c"),
    Signature("test.connect", "accept() failed", f"{_PERFTEST}/perftest_communication.c", r"(?:^|[\s:>\]])accept\(\) failed\s*$"),
    Signature("test.connect", "Unable to set up socket connection", f"{_PERFTEST}/perftest_resources.c"),
    Signature("test.differs", "Found Incompatibility issue with GID types", f"{_PERFTEST}/perftest_communication.c"),
    Signature("ib.completion", "Bad wc status", f"{_PERFTEST}/perftest_communication.c", r"Bad wc status (?:--|\d)"),
    Signature("qp.connect", "ailed to modify QP", f"{_PERFTEST}", r"[Ff]ailed to modify QP(?: \S{1,12})? to (?P<state>INIT|RTR|RTS)"),
    Signature("test.options", "Parser function exited with Error", _PERFTEST),
    # mpirun
    Signature("mpi.tcp", "accepted a TCP connection from what appears to be", f"{_OMPI} opal/mca/btl/tcp/help-mpi-btl-tcp.txt"),
    Signature("mpi.lost", "daemon has unexpectedly failed after launch", f"{_OMPI} orte/mca/errmgr"),
    Signature("mpi.daemon", ": command not found", "bash", r"(?:orted|prted|hydra_pmi_proxy): command not found"),
    Signature("mpi.pmi", "appears to have been direct launched using", f"{_OMPI} help-ess-base.txt"),
    Signature("mpi.root", "has detected an attempt to run as root", f"{_OMPI} help-orterun.txt"),
    Signature("mpi.runtime", "PMIX_ERR_", "PMIx", r"PMIX(?: ERROR|_ERR)\S* .{0,20}in file \S+\.c at line"),
    Signature("mpi.no_nic", "No OpenFabrics connection schemes reported", f"{_OMPI} help-mpi-btl-openib-cpc-base.txt"),
    Signature("test.missing", "unable to find the specified executable file", f"{_OMPI} help-orterun.txt"),
    # Slurm and containers
    Signature("slurm.preempted", "DUE TO PREEMPTION", _SLURM, r"(?: ON (?P<host>\S+) )?CANCELLED"),
    Signature("slurm.cancelled", " CANCELLED AT ", _SLURM, r"error: \*\*\* JOB \S+ ON (?P<host>\S+) CANCELLED AT \S+ \*\*\*"),
    # Also after a task that failed, if srun has --kill-on-bad-exit.
    Signature("slurm.aborted", " CANCELLED AT ", _SLURM, r"error: \*\*\* STEP \S+ ON (?P<host>\S+) CANCELLED AT \S+ \*\*\*"),
    Signature("test.missing", "execve(): ", _SLURM, r"execve\(\): (?P<file>\S{1,200}): (?P<error>No such file|Permission denied)"),
    Signature("container.start", "pyxis: ", _CONTAINER, r"pyxis: (?:child \d+ failed|failed to|couldn't|container start failed)"),
    Signature("container.start", "OCI runtime ", _CONTAINER, r"OCI runtime \w+ failed"),
    Signature("container.start", "nvidia-container-cli: ", _CONTAINER, r"(?P<hint>nvidia-container-cli): .{0,60}error"),
    Signature(
        "container.start",
        "Error response from daemon: ",
        _CONTAINER,
        r"from daemon: (?!.*(?:No such (?:container|image)|is already in use|is not running))",
    ),
    Signature("kube.network", "Failed to create pod sandbox", "Kubernetes", r"(?i)sriov|multus|rdma|macvlan|ipam"),
    # CUDA
    Signature("cuda.failed", "cuda runtime error (", "PyTorch 1.x", r"cuda runtime error \(\d+\) ?: (?P<error>.{1,60}?)(?: at |$)"),
    Signature("cuda.failed", "CUDNN_STATUS_", "cuDNN", r"(?P<error>CUDNN_STATUS_(?:NOT_INITIALIZED|EXECUTION_FAILED|INTERNAL_ERROR)\w*)"),
    Signature("cuda.failed", "CUDA failure ", _CUDA, r"CUDA failure \d+: (?P<error>.{1,60}?)(?: ;|$)"),
    Signature("cuda.failed", "CUDA runtime error in ", _CUDA, r"CUDA runtime error in .{1,200}?: (?P<error>.{1,100})"),
    Signature("p2p.failed", "Can't enable access between nodes", "TensorRT-LLM"),
    Signature("cuda.no_device", "No HIP GPUs are available", "PyTorch"),
    # drivers
    Signature("kernel.pcie", "power state from D3", _KERNEL, r"(?:[Uu]nable to|can't) change power state from D3"),
    Signature("kernel.timeout", "bnxt_en ", _KERNEL, r"bnxt_en \S+.{0,40}Error \(timeout: \d+\)"),
    Signature("kernel.queue", "ailed to modify HW QP", _KERNEL),
    # memory and processes
    Signature("memory.locked", "RLIMIT_MEMLOCK too small", "DAPL, Intel MPI"),
    Signature("host.memory", "emory cgroup out of memory", "Linux mm/oom_kill.c"),
    Signature("host.memory", "DefaultCPUAllocator: ", "PyTorch c10/core/impl/alloc_cpu.cpp", r"can't allocate memory|not enough memory"),
    Signature("host.memory", "[Errno 12] Cannot allocate memory", "Python"),
    Signature("process.crashed", "DataLoader worker (pid", "PyTorch DataLoader", r"exited unexpectedly"),
    Signature("process.crashed", "Segmentation fault", "bash", _WHOLE.format("Segmentation fault")),
    Signature("process.crashed", "Aborted", "bash", _WHOLE.format(r"Aborted(?= \(core)")),
    Signature("process.bus", "Bus error", "bash", _WHOLE.format("Bus error")),
    Signature("process.killed", "Killed", "bash", _WHOLE.format("Killed")),
)
