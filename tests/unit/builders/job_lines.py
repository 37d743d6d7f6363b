# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lines of jobs for tests, one at least for each signature.

CAPTURED: as people have posted them, with the thread. DERIVED: made by the format strings of the program's source, with our values.
"""

from __future__ import annotations

from tests.unit.builders.program_lines import NUMBERS

#: (name of the kind, whether NCCL writes it at level INFO, line)
CAPTURED: tuple[tuple[str, bool, str], ...] = (
    # NVIDIA/nccl#1405
    (
        "ib.retry", False,
        "kp-ddp-worker-0:3468:3905 [4] ib_plugin.c:1615 NCCL WARN NET/IB : Got completion from peer 10.216.210.236<54862> with status=12 "
        "opcode=0 len=0 vendor err 129 (Recv) localGid fd00:1148:9000:5000:4:200:3:ff22 remoteGidsfd00:1148:9000:5000:4:200:3:ff1f",
    ),
    # NVIDIA/nccl-tests#206
    ("memory.locked", False, "misc/ibvwrap.cc:278 NCCL WARN Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory"),
    # NVIDIA/nccl#525
    ("shm.space", False, "[3] include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left on device"),
    # NVIDIA/nccl-tests#166
    (
        "shm.space", False,
        "ubuntu:9621:9691 [6] misc/shmutils.cc:71 NCCL WARN Error: failed to extend /dev/shm/nccl-fjwOOB to 5967876 bytes",
    ),
    (
        "shm.failed", False,
        "ubuntu:9621:9688 [3] misc/shmutils.cc:112 NCCL WARN Error while creating shared memory segment "
        "/dev/shm/nccl-KWfVyt (size 5967872)",
    ),
    # NVIDIA/nccl#1589
    (
        "shm.gone", False,
        "g148:14937:69361 [0] misc/shmutils.cc:129 NCCL WARN Error while attaching to shared memory segment /dev/shm/nccl-glnlGK "
        "(size 14156128), error: No such file or directory (2)",
    ),
    # pytorch/ci-infra#490
    (
        "shm.space", False,
        "[2026-04-22 21:34:20] mt-l-x86iavx512:202016:202235 [0] misc/shmutils.cc:88 NCCL WARN Error: failed "
        "to extend /dev/shm/nccl-WU88OE "
        "to 9637892 bytes, error: No space left on device (28)",
    ),
    (
        "socket.closed", False,
        "[2026-04-22 21:34:20] mt-l-x86iavx512:202016:202238 [2] proxy.cc:1326 NCCL WARN Socket recv failed",
    ),
    # openucx/ucx#8684
    (
        "memory.locked", False,
        "ib_log.c:246  UCX  ERROR mlx5_0: ibv_create_cq() failed: Cannot allocate memory. Please set max locked memory (ulimit -l) to "
        "'unlimited' (current: 64 kbytes)",
    ),
    # OpenRLHF/OpenRLHF#1040, vllm-project/vllm#19670, pytorch/pytorch#131808
    ("store.clients", False, "torch.distributed.DistStoreError: Timed out after 1801 seconds waiting for clients. 1/3 clients joined."),
    (
        "store.connect", False,
        "torch.distributed.DistNetworkError: The client socket has timed out after 600000ms while trying to "
        "connect to (172.17.0.9, 46229).",
    ),
    ("store.wait", False, "DistStoreError: wait timeout after 100ms, keys: /the_key"),
    # open-mpi/ompi#10693
    ("mpi.openib", False, "WARNING: There was an error initializing an OpenFabrics device."),
    # a log of DeepSpeed in a public repository
    (
        "torch.timeout", False,
        "[rank0]:[E1218 20:27:21.426415540 ProcessGroupNCCL.cpp:629] [Rank 0] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=1, OpType=BROADCAST, NumelIn=131072000, NumelOut=131072000, Timeout(ms)=600000) ran "
        "for 600081 milliseconds before "
        "timing out.",
    ),
    # vllm-project/vllm#10523
    (
        "nccl.system", False,
        "torch.distributed.DistBackendError: NCCL error in: "
        "../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1333, unhandled system error "
        "(run with NCCL_DEBUG=INFO for details), NCCL version 2.18.1",
    ),
)  # fmt: skip

_INFO = "node1:100:200 [0] NCCL INFO "
_WARN = "[2026-11-20 09:29:41] node1:100:200 [0] {} NCCL WARN "
_IB = _WARN.format("transport/net_ib.cc:2543")
_COMPLETION = "{}NET/IB : Got completion from peer 10.0.0.2<4791> with status={} opcode=0 len=0 vendor err 129 (Send)"
_MODIFY = _WARN.format("misc/ibvwrap.cc:307") + "Call to ibv_modify_qp failed with {}, on dev mlx5_0:1, curr state INIT, next state RTR, "
_GIDS = "local GID index 3, local GID ::ffff:10.0.0.1, remote GID ::ffff:10.0.1.2"
DERIVED: tuple[tuple[str, bool, str], ...] = (
    # NCCL v2.30.7, but for those with a version of their own
    ("ib.no_device", True, f"{_INFO}NET/IB : No device found."),
    ("ib.no_address", False, f"{_IB}NET/IB : No IP interface found."),
    ("ib.open", False, f"{_IB}NET/IB : Unable to open device mlx5_0"),
    ("ib.query", False, f"{_IB}NET/IB : Unable to query port_num 1"),
    ("ib.library", True, f"{_INFO}Failed to open libibverbs.so[.1]"),
    ("ib.library", False, "node1:100:200 [0] misc/ibvwrap.cc:63 NCCL WARN Failed to open libibverbs.so[.1]"),  # v2.8.4
    (
        "ib.layers", False,
        f"{_IB}NET/IB : Attempted to connect incompatible devices: [0]mlx5_0:1/IB and [1]mlx5_1:1/RoCE. Try "
        "selecting NICs of only one link "
        "type using NCCL_IB_HCA",
    ),
    ("ib.fatal", False, f"{_IB}NET/IB : mlx5_0:1 async fatal event: local catastrophic error"),
    ("ib.gids_changed", False, f"{_IB}NET/IB : mlx5_0:1 GID table changed"),
    ("ib.gids_changed", False, f"{_IB}NET/IB : Got async event : GID table change"),  # v2.18.3
    ("ib.managed", False, f"{_IB}NET/IB : mlx5_0:1 Got non-fatal async event: client reregistration(17)"),
    ("ib.managed", False, f"{_IB}NET/IB : mlx5_0:1 Got non-fatal async event: SM change(13)"),
    ("ib.event", False, f"{_IB}NET/IB : mlx5_0:1 Got non-fatal async event: port error(10)"),
    ("ib.event", False, f"{_IB}NET/IB : Got async event : port error"),  # v2.18.3
    ("memory.dmabuf", False, f"{_IB}Call to ibv_reg_dmabuf_mr failed with error Operation not supported"),
    ("memory.locked", False, f"{_IB}Call to ibv_reg_mr failed with error Cannot allocate memory"),
    ("memory.locked", False, f"{_IB}Call to ibv_create_cq failed with error Cannot allocate memory"),
    ("memory.gpu", False, f"{_IB}Call to ibv_reg_mr failed with error Bad address"),
    ("memory.refused", False, f"{_IB}Call to ibv_reg_mr failed with error Operation not permitted"),
    ("memory.gin", False, f"{_IB}Unable to use GIN: Peermem is not supported, and device 0 does not support DMA-BUF."),
    ("gdr.disabled", True, f"{_INFO}GPU Direct RDMA Disabled for GPU 0 / HCA 0 (distance 9 > 5)"),
    *((name, False, _COMPLETION.format(_IB, status)) for status, name in NUMBERS.items()),
    (
        "ib.retry", False,
        f"{_IB}NET/IB: Got completion from peer 10.0.0.2<4791> with status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_SEND(0) vendor_err=129  "
        "localGid ::ffff:10.0.0.1 remoteGids::ffff:10.0.1.2 hca mlx5_0",
    ),
    ("ib.retry", False, f"{_IB}NET/IB : Got completion with error 12, opcode 0, len 0, vendor err 129"),  # v2.8.4
    (
        "qp.retrying", True,
        f"{_INFO}Call to ibv_modify_qp failed with 110 Connection timed out, on dev mlx5_0:1, {_GIDS}, retrying 1/35 after 100 msec of "
        "sleep",
    ),
    ("qp.timeout", False, _MODIFY.format("110 Connection timed out") + _GIDS),
    (  # v2.18.3
        "qp.timeout", False,
        "node1:100:200 [0] misc/ibvwrap.cc:187 NCCL WARN Call to ibv_modify_qp failed with error Connection timed out",
    ),
    ("qp.invalid", False, _MODIFY.format("22 Invalid argument") + _GIDS),
    (  # v2.21.5
        "qp.invalid", False,
        "node1:100:200 [0] misc/ibvwrap.cc:187 NCCL WARN Call to ibv_modify_qp failed with error Invalid argument errno 22",
    ),
    ("qp.unreachable", False, _MODIFY.format("101 Network is unreachable") + _GIDS),
    ("qp.unreachable", False, _MODIFY.format("113 No route to host") + _GIDS),
    ("qp.refused", False, _MODIFY.format("12 Cannot allocate memory") + _GIDS),
    ("qp.gids", False, "local GID ::ffff:192.168.100.1, remote GID ::ffff:192.168.101.3"),
    ("net.none", False, _WARN.format("plugin/net.cc:349") + "Failed to initialize any NET plugin"),
    ("net.network", False, _WARN.format("net.cc:579") + "Error: network OFI not found."),  # v2.21.5
    ("net.plugin", True, f"{_INFO}NET/Plugin: Could not find: libnccl-net-ofi.so"),
    ("net.plugin", True, f"{_INFO}NET/Plugin: libnccl-net.so: libfabric.so.1: cannot open shared object file: No such file or directory"),
    ("net.socket", True, f"{_INFO}Using network Socket"),
    ("socket.no_interface", False, _WARN.format("bootstrap.cc:126") + "Bootstrap : no socket interface found"),
    ("socket.no_interface", False, _WARN.format("bootstrap.cc:120") + "NET/Socket : No usable listening interface found"),
    ("socket.no_interface", False, _WARN.format("bootstrap.cc:577") + "no device found matching exactly eth9, verify NCCL_OOB_NET_IFNAME"),
    ("socket.no_interface", False, _WARN.format("transport/net_socket.cc:60") + "NET/Socket : no interface found"),
    (  # v2.21.5
        "socket.no_interface", False,
        _WARN.format("misc/socket.cc:238") + "Net : No interface found in the same subnet as remote address 10.0.0.1<4000>",
    ),
    (
        "socket.refused", False,
        _WARN.format("os/linux.cc:189") + "ncclOsSocketPollConnect: connect to 10.0.0.1<4000> returned Connection refused, exceeded error "
        "retry count after 35 attempts",
    ),
    (  # v2.14.3
        "socket.refused", False,
        _WARN.format("misc/socket.cc:456") + "Net : Connect to 10.0.0.1<4000> failed : Connection refused",
    ),
    ("socket.refused", False, _WARN.format("misc/socket.cc:467") + "socketStartConnect: exceeded retries (20000)"),  # v2.20.5
    (
        "socket.unreachable", False,
        _WARN.format("os/linux.cc:203") + "ncclOsSocketStartConnect: connect to 10.0.0.1<4000> failed : No route to host",
    ),
    ("socket.unreachable", False, _WARN.format("misc/socket.cc:476") + "socketStartConnect: exceeded timeouts (3)"),  # v2.20.5
    ("socket.closed", False, _WARN.format("misc/socket.cc:58") + "socketProgress: Connection closed by remote peer node2<4000>"),
    (
        "socket.closed", False,
        _WARN.format("misc/socket.cc:46") + "socketProgressOpt: Call to recv from 10.0.0.1<4000> failed : Connection reset by peer",
    ),
    (
        "version.differs", False,
        _WARN.format("init.cc:1043") + "Mismatched NCCL version detected : rank 0 version 22809 rank 1 version 22105",
    ),
    (
        "version.differs", False,
        _WARN.format("ras/ras.cc:415") + "NCCL version mismatch with remote peer 10.0.0.1<4000> (local: 2.30.7, remote 2.28.9)",
    ),
    ("gpu.shared", False, _WARN.format("init.cc:904") + "Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 60"),  # v2.28.9
    (
        "gpu.shared", False,
        _WARN.format("init.cc:1057") + "Multiple Ranks are using the same GPU/Partition. Set NCCL_MULTI_RANK_GPU_ENABLE=1 to enable "
        "this",
    ),
    (
        "shm.space", True,
        f"{_INFO}fallocate: Failed to extend /dev/shm/nccl-a to 9637892 bytes, error: No space left on device (28) - retrying",
    ),
    ("topo.file", True, f"{_INFO}Could not open XML topology file /nonexistent.xml : No such file or directory"),
    (  # v2.21.5
        "topo.file", False,
        _WARN.format("graph/xml.cc:392") + "Could not open XML topology file /nonexistent.xml : No such file or directory",
    ),
    ("topo.graph", False, _WARN.format("graph/xml.cc:1257") + "Could not open XML graph file /g.xml : No such file or directory"),
    ("topo.version", False, _WARN.format("graph/xml.cc:394") + "XML Topology has wrong version 2, 1 needed"),
    ("topo.broken", False, _WARN.format("graph/xml.cc:40") + "XML Parse : Unexpected EOF"),
    ("p2p.refused", True, f"{_INFO}Could not enable P2P between dev 0(=60) and dev 1(=70)"),
    ("nccl.remote", False, "node1: Test NCCL failure common.cu:222 'remote process exited or there was a network error / '"),
    ("nccl.cuda", False, "node1: Test NCCL failure common.cu:222 'unhandled cuda error (run with NCCL_DEBUG=INFO for details) / '"),
    (
        "nccl.internal", False,
        "node1: Test NCCL failure common.cu:222 'internal error - please report this issue to the NCCL developers / '",
    ),
    ("nccl.usage", False, "node1: Test NCCL failure common.cu:222 'invalid usage (run with NCCL_DEBUG=WARN for details) / '"),
    ("nccl.cuda", False, "ncclUnhandledCudaError: Call to CUDA function failed."),
    ("nccl.system", False, "ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error."),
    ("nccl.internal", False, "ncclInternalError: Internal check failed."),
    ("nccl.argument", False, "ncclInvalidArgument: Invalid value for an argument."),
    ("nccl.usage", False, "ncclInvalidUsage: This usually reflects invalid usage of NCCL library."),
    ("nccl.remote", False, "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely."),
    ("nccl.argument", False, "node1: Test NCCL failure common.cu:222 'invalid argument (run with NCCL_DEBUG=WARN for details) / '"),
    *(
        (name, False, f"RuntimeError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:957, {words}, NCCL version 21.0.3")
        for name, words in (("nccl.internal", "internal error"), ("nccl.usage", "invalid usage"), ("nccl.argument", "invalid argument"))
    ),
    # cudaGetErrorString of CUDA 12, in the lines of NCCL (checks.h) and of PyTorch
    ("cuda.old_driver", False, "node1: Test CUDA failure common.cu:1289 'CUDA driver version is insufficient for CUDA runtime version'"),
    ("cuda.mismatch", False, "Failed to initialize NVML: Driver/library version mismatch"),
    ("cuda.not_ready", False, _WARN.format("init.cc:1") + "Cuda failure 802 'system not yet initialized'"),
    ("cuda.no_device", False, "node1: Test CUDA failure common.cu:1289 'no CUDA-capable device is detected'"),
    ("cuda.ordinal", False, "RuntimeError: CUDA error: invalid device ordinal"),
    ("cuda.architecture", False, "RuntimeError: CUDA error: no kernel image is available for execution on the device"),
    ("cuda.ecc", False, "RuntimeError: CUDA error: uncorrectable ECC error encountered"),
    ("cuda.memory", False, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."),
    ("cuda.memory", False, _WARN.format("enqueue.cc:1") + "Cuda failure 2 'out of memory'"),
    ("cuda.access", False, "RuntimeError: CUDA error: an illegal memory access was encountered"),
    ("cuda.launch", False, _WARN.format("enqueue.cc:1") + "Cuda failure 719 'unspecified launch failure'"),
    ("cuda.failed", False, _WARN.format("enqueue.cc:1") + "Cuda failure 1 'invalid argument'"),
    # PyTorch 1.13 to 2.9
    ("torch.timeout", False, "[Rank 3] Watchdog caught collective operation timeout: cut off"),
    (
        "torch.stuck", False,
        "ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress in monitoring enqueued collectives.",
    ),
    ("torch.init", False, "torch.distributed.DistBackendError: NCCL timeout in communicator initialization."),
    ("torch.aborted", False, "[Rank 0] Some NCCL operations have failed or timed out."),
    ("torch.aborted", False, "torch.distributed.DistBackendError: NCCL communicator was aborted on rank 1. "),
    (
        "torch.aborted", False,
        "[rank1]:[E1218 20:27:22.1 ProcessGroupNCCL.cpp:681] [Rank 1] To avoid data inconsistency, we are taking the entire process "
        "down.",
    ),
    ("torch.aborted", False, "[Rank 1] Process group watchdog thread terminated with exception: NCCL error"),
    ("torch.remote", False, "[Rank 1] Observed flight recorder dump signal from another rank via TCPStore."),
    (
        "torch.remote", False,
        "[rank1]:[E1127 04:48:54.8 ProcessGroupNCCL.cpp:1914] [PG ID 0 PG GUID 0(default_pg) Rank 1] Received a dump signal due to a "
        "collective timeout from  rank 0 and we will try our best to dump the debug info. Last enqueued NCCL work: 3, last completed NCCL "
        "work: 3.",
    ),
    ("torch.child", False, "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:"),
    (
        "torch.child", False,
        "E1127 04:40:44.271000 683 torch/distributed/elastic/multiprocessing/api.py:986] failed (exitcode: 1) local_rank: 1 (pid: 701) of "
        "binary: /usr/bin/python3",
    ),
    (
        "store.retrying", False,
        "[W socket.cpp:697] [c10d] The client socket has failed to connect to [node1]:29500 (errno: 111 - Connection refused).",
    ),
    (
        "store.port", False,
        "[E socket.cpp:922] [c10d] The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use).",
    ),
    ("store.port", False, "torch.distributed.DistNetworkError: port: 29500, useIpv6: true, code: -98, name: EADDRINUSE"),
    ("store.lost", False, "[W1218 TCPStore.cpp:141] [c10d] recvValue failed on SocketImpl(fd=50): Connection reset by peer"),
    (
        "store.lost", False,
        '[W1127 04:44:25.3 ProcessGroupNCCL.cpp:1826] [PG ID 0 PG GUID 0(default_pg) Rank 1] Failed to check the "should dump" flag on '
        "TCPStore, (maybe TCPStore server has shut down too early), with error: Broken pipe",
    ),
    ("store.lost", False, "[rank1]: torch.distributed.DistNetworkError: failed to recv, recvBytes got 0 bytes"),
    ("store.lost", False, "[W1218 TCPStore.cpp:106] [c10d] sendBytes failed on SocketImpl(fd=50): Broken pipe"),
    (
        "shm.loader", False,
        "RuntimeError: DataLoader worker (pid 99) is killed by signal: Bus error. It is possible that dataloader's workers are out of "
        "shared memory.",
    ),
    ("shm.loader", False, "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm)."),
    # Open MPI 4.1 and 5.0, UCX 1.17
    ("mpi.slots", False, "There are not enough slots available in the system to satisfy the 16"),
    ("mpi.daemon", False, "ORTE was unable to reliably start one or more daemons."),
    ("mpi.daemon", False, "prterun was unable to reliably start one or more daemons."),  # openpmix/prrte#1392
    ("launch.ssh", False, "Host key verification failed."),
    ("mpi.lost", False, "ORTE has lost communication with a remote daemon."),
    ("mpi.lost", False, "PRTE has lost communication with a remote daemon."),
    ("mpi.signal", False, "mpirun noticed that process rank 3 with PID 4711 on node node2 exited on signal 9 (Killed)."),
    (
        "mpi.aborted", False,
        "Primary job  terminated normally, but 1 process returned a non-zero exit code. Per user-direction, the job has been aborted.",
    ),
    ("mpi.aborted", False, "MPI_ABORT was invoked on rank 3 in communicator MPI_COMM_WORLD"),
    (
        "memory.gpu", False,
        "[1681107537.413956] [node1:146204:0]           ib_md.c:352  UCX  ERROR ibv_reg_mr(address=0x7f, length=64) failed: Bad address",
    ),
    (
        "ib.retry", False,
        "[1681107537.413956] [node1:146204:0] ib_mlx5_log.c:177  UCX  ERROR Transport retry count exceeded on mlx5_0:1/RoCE (synd 0x15 "
        "vend 0x81 hw_synd 0/0)",
    ),
    (
        "ib.remote_access", False,
        "[1681107537.413956] [node1:146204:0] ib_mlx5_log.c:177  UCX  ERROR Remote access error on mlx5_0:1/RoCE (synd 0x13 vend 0x88)",
    ),
    (
        "ib.local_protection", False,
        "[1681107537.413956] [node1:146204:0] ib_mlx5_log.c:177  UCX  ERROR Local protection on mlx5_0:1/IB (synd 0x4 vend 0x51)",
    ),
    (
        "ucx.transport", False,
        "[1681107537.413956] [node1:146204:0]       select.c:630  UCX  ERROR   no active messages transport to <no debug data>: "
        "Unsupported operation",
    ),
    # nccl-tests 2.17
    ("tests.timeout", False, "node1: Test timeout (60s) common.cu:523"),
    ("tests.failed", False, " .. node1 pid 1674: Test failure common.cu:1620"),
    # Slurm 23 and the kernel
    ("host.memory", False, "slurmstepd: error: Detected 1 oom_kill event in StepId=77.0. Some of the step tasks have been OOM Killed."),
    (  # before Slurm 22
        "host.memory", False,
        "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=77.batch. Some of your processes may have been killed by the cgroup "
        "out-of-memory handler.",
    ),
    ("host.memory", False, "srun: error: node2: task 12: Out Of Memory"),
    ("host.memory", False, "Nov 22 18:00:00 node1 kernel: Out of memory: Killed process 4711 (python) total-vm:1kB"),
    (
        "slurm.node", False,
        "slurmstepd: error: *** JOB 77 ON node1 CANCELLED AT 2026-11-22T18:00:00 DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***",
    ),
    ("slurm.node", False, "srun: error: Node failure on node2"),
    ("slurm.time", False, "slurmstepd: error: *** STEP 77.0 ON node1 CANCELLED AT 2026-11-22T18:00:00 DUE TO TIME LIMIT ***"),
    ("slurm.task", False, "srun: error: node2: task 12: Killed"),
    ("slurm.aborted", False, "srun: error: node2: tasks 8-15: Exited with exit code 1"),
    ("slurm.aborted", False, "srun: Job step aborted: Waiting up to 32 seconds for job step to finish."),
    ("gpu.xid", False, "Nov 22 18:00:00 node1 kernel: NVRM: Xid (PCI:0000:41:00): 32, pid=4711, Invalid or corrupted push buffer stream"),
    (
        "kernel.health", False,
        "Nov 22 18:00:00 node1 kernel: mlx5_core 0000:41:00.0: poll_health:829:(pid 0): device's health compromised - reached miss "
        "count",
    ),
    ("kernel.completion", False, "Nov 22 18:00:00 node1 kernel: infiniband mlx5_0: dump_cqe:278:(pid 1): dump error cqe"),
    ("kernel.link", False, "Nov 22 18:00:00 node1 kernel: mlx5_core 0000:41:00.0 ens1f0np0: Link down"),
    (
        "iommu.fault", False,
        "Nov 22 18:00:00 node1 kernel: mlx5_core 0000:41:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0011 address=0x1 "
        "flags=0x0020]",
    ),
    ("iommu.fault", False, "Nov 22 18:00:00 node1 kernel: DMAR: [DMA Write] Request device [41:00.0] fault addr 0x1"),
    *(
        ("program.exception", False, f"[rank1]: {name}: its words")
        for name in (
            "AssertionError", "AttributeError", "FileNotFoundError", "FloatingPointError", "ImportError", "IndexError",
            "IsADirectoryError", "json.decoder.JSONDecodeError", "KeyError", "ModuleNotFoundError", "NameError", "NotADirectoryError",
            "NotImplementedError", "RecursionError", "TypeError", "UnboundLocalError", "UnicodeDecodeError", "ValueError",
            "ZeroDivisionError",
        )
    ),
)  # fmt: skip
