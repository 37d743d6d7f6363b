# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lines of tools around a job, transfer libraries and libfabric, made by the texts of their sources with our values.

HARMLESS: lines of the same programs that are no failures.
"""

from __future__ import annotations

LINES: tuple[tuple[str, str], ...] = (
    ("memory.locked", "[0] DAPL startup: RLIMIT_MEMLOCK too small"),
    ("p2p.failed", "RuntimeError: Can't enable access between nodes 0 and 1"),
    ("mooncake.metadata", "Unable to find metadata storage plugin etcd with conn string: etcd://10.0.0.1:2379"),
    ("test.no_device", "Failed to get IB devices list"),
    ("ib.query", "Failed to query device props"),
    ("cm.address", "wait for CONNECTED state 10"),
    ("cm.address", "connect error -1"),
    ("cm.address", "unexpected CM event 8"),
    ("test.connect", "Problem in resolving basic address and port"),
    ("test.connect", "accept() failed"),
    ("test.connect", "Unable to set up socket connection"),
    ("ib.completion", "Bad wc status -- 3 -- 12"),
    ("test.differs", " Found Incompatibility issue with GID types."),
    ("qp.connect", "Failed to modify QP 0x103 to RTR"),
    ("mpi.tcp", "WARNING: Open MPI accepted a TCP connection from what appears to be a"),
    ("mpi.lost", "An ORTE daemon has unexpectedly failed after launch and before"),
    ("mpi.daemon", "prted: command not found"),
    ("mpi.no_nic", "No OpenFabrics connection schemes reported that they were able to be"),
    ("mpi.pmi", 'The application appears to have been direct launched using "srun",'),
    ("test.missing", "mpirun was unable to find the specified executable file, and therefore"),
    ("mpi.root", "mpirun has detected an attempt to run as root."),
    ("mpi.runtime", "PMIX_ERR_FILE_OPEN_FAILURE in file dstore_base.c at line 207"),
    ("ib.query", "[1681107537.413956] [node1:146204:0] ib_iface.c:1139 UCX  ERROR Invalid active_speed on mlx5_0:1: 0"),
    (
        "ib.query",
        "[1681107537.413956] [node1:146204:0] ib_device.c:1205 UCX  ERROR ibv_query_gid(dev=mlx5_0 port=1 index=3) failed: Inva"
        "lid argument",
    ),
    (
        "shm.failed",
        "[1681107537.413956] [node1:146204:0] mm_sysv.c:114 UCX  ERROR failed to allocate 8192 bytes with mm for shmget: No space left",
    ),
    ("ofi.transfer", "libfabric:1234:1700000000::efa:cq:efa_rdm_cq_poll_ibv_cq():123<warn> Unresponsive remote; err: 110"),
    ("slurm.preempted", "slurmstepd: error: *** JOB 123 ON node1 CANCELLED AT 2026-11-27T10:00:00 DUE TO PREEMPTION ***"),
    ("slurm.aborted", "slurmstepd: error: *** STEP 123.0 ON node1 CANCELLED AT 2026-11-27T10:00:00 ***"),
    ("slurm.cancelled", "slurmstepd: error: *** JOB 123 ON node1 CANCELLED AT 2026-11-27T10:00:00 ***"),
    ("test.missing", "slurmstepd: error: execve(): /opt/run.sh: No such file or directory"),
    ("container.start", "slurmstepd: error: pyxis: child 1234 failed with error code: 1"),
    ("container.start", "slurmstepd: error: pyxis: failed to import docker image"),
    (
        "kube.network",
        'Failed to create pod sandbox: plugin type="sriov" failed (add): SRIOV-CNI failed to configure VF "failed to set vf 2 v'
        'lan configuration"',
    ),
    ("kernel.pcie", "nvidia 0000:3b:00.0: can't change power state from D3cold to D0 (config space inaccessible)"),
    ("cuda.failed", "cuda runtime error (999) : unknown error at /pytorch/aten/src/THC/THCGeneral.cpp:50"),
    ("cuda.no_device", "RuntimeError: No HIP GPUs are available"),
    ("cuda.failed", "RuntimeError: CUDA driver error: unknown error"),
    ("cuda.failed", "RuntimeError: cuDNN error: CUDNN_STATUS_NOT_INITIALIZED"),
    ("cuda.failed", "CUDA failure 3: initialization error ; GPU=0"),
    ("container.start", "nvidia-container-cli: detection error: nvml error: unknown error"),
    ("process.crashed", "Segmentation fault (core dumped)"),
    ("process.killed", "Killed"),
    ("process.crashed", "Aborted (core dumped)"),
    ("process.crashed", "./run.sh: line 5: 1234 Segmentation fault      python train.py"),
    ("process.bus", "Bus error (core dumped)"),
    (
        "host.memory",
        "RuntimeError: [enforce fail at alloc_cpu.cpp:75] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to al"
        "locate 8589934592 bytes. Error code 12 (Cannot allocate memory)",
    ),
    ("host.memory", "Memory cgroup out of memory: Killed process 1234 (python) total-vm:100kB"),
    ("host.memory", "OSError: [Errno 12] Cannot allocate memory"),
    ("process.crashed", "RuntimeError: DataLoader worker (pid(s) 1234) exited unexpectedly"),
    ("cm.channel", "librdmacm: Fatal: unable to open RDMA device"),
    ("kernel.timeout", "bnxt_en 0000:41:00.0: Error (timeout: 500) msg {0x0 0x0} len:0"),
    ("kernel.queue", "bnxt_re bnxt_re0: Failed to modify HW QP"),
    ("test.no_device", "E1201 10:01:12.112233  4711 rdma_context.cpp:300] No matched device found: mlx5_9"),
    ("ib.port_down", "E1201 10:01:12.112233  4711 rdma_transport.cpp:217] Device mlx5_0 port not active"),
    (
        "mooncake.metadata",
        "E1201 10:01:12.112233  4711 transfer_metadata_plugin.cpp:244] Failed to fetch segment metadata from the HTTP server",
    ),
    ("mooncake.handshake", "E1201 10:01:12.112233  4711 rdma_endpoint.cpp:404] Rejected handshake request by peer"),
    ("ib.create", "E1201 10:01:12.112233  4711 rdma_context.cpp:150] Failed to create completion queue: Cannot allocate memory"),
    ("mooncake.failed", "E1201 10:01:12.112233  4711 rdma_transport.cpp:88] RdmaTransport: cannot initialize RDMA resources"),
    ("library.version", "E1201 10:01:12.112233  4711 nixl_plugin_manager.cpp:90] Plugin API version mismatch for UCX: expected 3, got 2"),
    (
        "nixl.lost",
        "E1201 10:01:12.112233  4711 libfabric_backend.cpp:900] Handshake from peer 'agent1' not received after 30 s; connectio"
        "n cannot be established.",
    ),
    (
        "nixl.lost",
        "E1201 10:01:12.112233  4711 nixl_agent.cpp:700] remote agent 'agent1' was disconnected after transfer request creation",
    ),
    ("nixl.failed", "E1201 10:01:12.112233  4711 ucx_backend.cpp:500] registration with backend was refused"),
    (
        "nccl.ranks",
        "/build/nvshmem/src/host/init/init.cu:nvshmemi_common_init:400: NVSHMEM requires the same number of PEs on all nodes (8"
        " PEs on node1)",
    ),
    (
        "nccl.library",
        "/build/nvshmem/src/host/coll/cpu_coll.cpp:init:40: NCCL library major version (2) is different than the version used to build",
    ),
    (
        "library.missing",
        "/build/nvshmem/src/host/bootstrap/bootstrap_loader.cpp:init:40: Bootstrap unable to load 'nvshmem_bootstrap_mpi.so'",
    ),
    (
        "library.version",
        "/build/nvshmem/src/host/bootstrap/bootstrap_loader.cpp:init:90: The selected bootstrap returned an incompatible version 2.",
    ),
    ("gpu.nvls", "/build/nvshmem/src/host/mem/mem_heap.cpp:map:90: Exporting multicast group failed for pe 3"),
    ("nvshmem.failed", "/build/nvshmem/src/host/team/team.cpp:90: Requested too many teams."),
    ("ofi.memory", "libfabric:1234:1700000000::efa:mr:efa_mr_reg():123<warn> Unable to register MR: Bad address"),
    ("ofi.peer", "libfabric:1234:1700000000::verbs:av:vrb_av_insert():123<warn> failed to insert address"),
    ("ofi.transfer", "libfabric:1234:1700000000::tcp:ep_data:xnet_rdm_recv():123<warn> msg recv failed ret = -107"),
    ("ofi.open", "libfabric:1234:1700000000::verbs:domain:vrb_domain():123<warn> unable to open the protection domain"),
    ("container.start", "docker: Error response from daemon: failed to create task for container"),
    ("container.start", "failed to create shim task: OCI runtime create failed: runc create failed"),
    ("cuda.failed", "terminate called after throwing: CUDA runtime error in cudaMalloc(): initialization error"),
    ("cm.address", "Unable to create RDMA_CM resources"),
    ("test.options", "Parser function exited with Error"),
    ("container.start", "nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1"),
)

HARMLESS: tuple[str, ...] = (
    "I1201 10:01:12.112233  4711 rdma_endpoint.cpp:404] Re-establish connection: mlx5_0",
    "libfabric:1234:1700000000::efa:ep_ctrl:efa_rdm_ep_open():123<info> failed to find a better provider",
    "Kill the switch of a lamp that was Killed by hand",
    "The daemon reports a bus error rate of 0",
    "slurmstepd: task 0 started",
    "Error response from daemon: No such container: node1",
    "pyxis: imported docker image: nvcr.io#nvidia/pytorch",
    "rping connect OK, wait for the server",
    "[node1] prted started; command found",
)
