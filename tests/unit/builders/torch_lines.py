# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lines of PyTorch 2.1 and 2.14, Gloo, torchrun, and of vLLM, SGLang, Ray, ROCm and nvidia-smi, made by their texts with our values.

HARMLESS: lines of the same programs that are no failures.
"""

from __future__ import annotations

LINES: tuple[tuple[str, str], ...] = (
    ("torch.mismatch", "Received data size doesn't match expected size. Is there a distributed collective mismatch in your code?"),
    ("store.retrying", "[W1127 10:00:00.123456789 socket.cpp:697] [c10d] The client socket has failed to connect to [node1]:29500 (errno"),
    ("store.retrying", "[W socket.cpp:601] [c10d] The client socket has failed to connect to any network address of (node1, 29500). Will"),
    ("store.retrying", "[W1127 10:00:00.1 TCPStore.cpp:343] [c10d] TCP client failed to connect/validate to host 10.0.0.1:29500 - retryi"),
    (
        "store.connect",
        "[E1127 10:00:00.1 TCPStore.cpp:332] [c10d] TCP client failed to connect/validate to host 10.0.0.1:29500 - timed out",
    ),
    ("store.connect", "[E socket.cpp:858] [c10d] The client socket has timed out after 60000ms while trying to connect to (node1, 29500)"),
    (
        "store.connect",
        "[W socket.cpp:464] [c10d] The IPv6 network addresses of (node1, 29500) cannot be retrieved (gai error: -2 - Name or se"
        "rvice not known",
    ),
    ("store.port", "[W socket.cpp:426] [c10d] The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use)."),
    (
        "store.port",
        "RuntimeError: The server socket has failed to listen on any local network address. port: 29500, useIpv6: 0, code: -98,"
        " name: EADDRINUSE",
    ),
    (
        "store.listen",
        "RuntimeError: The server socket has failed to listen on any local network address. port: 80, useIpv6: 0, code: -13, na"
        "me: EACCES, message: permission denied",
    ),
    (
        "store.listen",
        "[W socket.cpp:426] [c10d] The server socket has failed to bind to 10.0.0.9:29500 (errno: 99 - Cannot assign requested address",
    ),
    ("store.listen", "[E socket.cpp:480] [c10d] The server socket has failed to listen on any local network address."),
    ("store.lost", "[W1127 10:00:00.1 TCPStore.cpp:138] [c10d] recvValue failed on SocketImpl(fd=4, addr=[node2]:47812, remote=[node1]:2"),
    ("store.lost", "[W1127 10:00:00.1 TCPStore.cpp:125] [c10d] recvValue failed on SocketImpl(fd=4, addr=[node2]:47812, remote=[node1]:2"),
    ("store.lost", "[W1127 10:00:00.1 TCPStore.cpp:106] [c10d] sendBytes failed on SocketImpl(fd=4, addr=[node2]:47812, remote=[node1]:2"),
    ("store.lost", "torch.distributed.DistNetworkError: Failed to recv, got 0 bytes. Connection was likely closed. Did the remote server"),
    ("store.wait", "torch.distributed.DistStoreError: wait timeout after 300000ms, keys: /default_pg/0//cuda//0"),
    ("store.wait", "RuntimeError: Socket Timeout"),
    ("store.wait", "torch.distributed.DistStoreError: Socket Timeout"),
    ("store.wait", "RuntimeError: Wait timeout for key(s): [/1/0/3]"),
    ("store.stranger", "[W TCPStoreLibUvBackend.cpp:1046] [c10d] Miscellaneous client without VALIDATE query is detected"),
    ("store.backlog", "[W TCPStore.cpp:300] [c10d] Starting store with 8192 workers but somaxconn is 128.This might cause instability du"),
    ("torch.build", "RuntimeError: use_libuv was requested but PyTorch was build without libuv support"),
    ("torch.build", "RuntimeError: use_libuv was requested but PyTorch was built without libuv support, run with USE_LIBUV=0 to disable"),
    ("torch.build", "RuntimeError: Distributed package doesn't have NCCL built in"),
    ("torch.build", "RuntimeError: Distributed package doesn't have MPI built in. MPI is only included if you build PyTorch from source"),
    ("store.lost", "TCPStoreMasterDaemon::run() failed with exception: Connection reset by peer"),
    ("store.lost", "RuntimeError: Stop_waiting response is expected"),
    (
        "store.clients",
        "RuntimeError: Timed out initializing process group in store based barrier on rank: 5, for key: store_based_barrier_key"
        ":1 (world_size=16, worker_count=8",
    ),
    (
        "store.clients",
        "torch.distributed.DistStoreError: Timed out initializing process group in store based barrier on rank 5, for key: stor"
        "e_based_barrier_key:1 (world_size=16, num_workers_joined=8",
    ),
    (
        "store.clients",
        "torch.distributed.DistStoreError: Timed out waiting on barrier on rank 0, for key prefix: torchelastic/agent/terminal_"
        "state (world_size=2, missing_ranks=[1",
    ),
    ("store.waiting", "INFO:torch.distributed.distributed_c10d:Waiting in store based barrier to initialize process group for rank: 0, k"),
    ("store.clients", "TimeoutError: timed out waiting for all 4 members to join"),
    (
        "launch.env",
        "ValueError: Error initializing torch.distributed using env:// rendezvous: environment variable MASTER_ADDR expected, but not set",
    ),
    ("launch.env", "ValueError: Error initializing torch.distributed using tcp:// rendezvous: rank parameter missing"),
    ("launch.env", "ValueError: rank is absent in RendezvousParameters.Try add --node-rank to the cmd request"),
    ("launch.env", "KeyError: 'LOCAL_RANK'"),
    ("torch.call", "ValueError: Default process group has not been initialized, please make sure to call init_process_group."),
    ("torch.call", "ValueError: trying to initialize the default process group twice!"),
    ("cuda.no_device", "ValueError: ProcessGroupNCCL is only supported with GPUs, no GPUs found!"),
    ("cuda.ordinal", "ValueError: local_rank 4 exceeds available GPUs in CUDA_VISIBLE_DEVICES=0,1"),
    ("cuda.ordinal", "ValueError: device_id cuda:8 is out of range. Please use a device index less than the number of accelerators avail"),
    ("store.closed", "torch.distributed.elastic.rendezvous.api.RendezvousClosedError"),
    ("store.closed", "torch.distributed.elastic.rendezvous.api.RendezvousGracefulExitError: The rendezvous 'none' is closed, terminating"),
    ("torch.child", "W1127 10:00:00.1 4711 torch/distributed/elastic/multiprocessing/api.py:897] Sending process 4712 closing signal SIG"),
    ("torch.child", "WARNING:torch.distributed.elastic.multiprocessing.api:Unable to shutdown process 4712 via Signals.SIGTERM, forceful"),
    ("process.terminated", "torch.distributed.elastic.multiprocessing.api.SignalException: Process 4711 got signal: 15"),
    ("process.terminated", "WARNING:torch.distributed.elastic.agent.server.api:Received Signals.SIGTERM death signal, shutting down work"),
    ("process.terminated", "WARNING:torch.distributed.elastic.agent.server.api:Received 15 death signal, shutting down workers"),
    ("process.hangup", "WARNING:torch.distributed.elastic.agent.server.api:Received Signals.SIGHUP death signal, shutting down workers"),
    ("process.hangup", "torch.distributed.elastic.multiprocessing.api.SignalException: Process 4711 got signal: 1"),
    ("torch.remote", "ERROR:torch.distributed.elastic.agent.server.api:Error waiting on exit barrier. Elapsed: 300.1 seconds"),
    ("kernel.stuck", "[default] Worker pid=4711 stuck in uninterruptible sleep (D-state) for 60.0s (>= 60.0s); marking worker group UNHE"),
    (
        "store.dead",
        "As part of the sync operation the node(s) 'node2_4711_0' have been removed from the rendezvous 'job1' since they had no heartbeat",
    ),
    ("store.dead", "Detected dead node 'node2_4711_0', removing it from the rendezvous"),
    ("store.connect", "torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The connection to etcd has failed. See inner"),
    ("store.port", "WARNING port: 29500 already in use, attempt: [1/3]"),
    ("torch.timeout", "RuntimeError: [Rank 0] Caught collective operation timeout: WorkNCCL(SeqNum=5, OpType=ALLREDUCE, TensorShape=[1],"),
    ("torch.timeout", "RuntimeError: Work WorkNCCL(SeqNum=1, OpType=BROADCAST, NumelIn=1) timed out in blocking wait (TORCH_NCCL_BLOCKIN"),
    ("torch.remote", "RuntimeError: [Rank 0] Found key in store: NCCLABORTEDCOMM:0000, from rank: 3. This means that rank has aborted it"),
    ("torch.remote", "[E ProcessGroupNCCL.cpp:1500] [PG ID 0 PG GUID 0(default_pg) Rank 1] remote error detected from rank: 3"),
    (
        "torch.aborted",
        "[rank0]:[E1127 10:00:00.1 ProcessGroupNCCL.cpp:1794] [PG ID 0 PG GUID 0 Rank 0] found async exception when checking fo"
        "r NCCL errors",
    ),
    ("torch.aborted", "[rank0]:[E1127 10:00:00.1 ProcessGroupNCCL.cpp:670] Stack trace of the failed collective not found, potentially b"),
    ("torch.init", "torch.distributed.DistBackendError: ProcessGroupNCCL: Health check failure: Failed to initialize NCCL communicator o"),
    ("torch.init", "torch.distributed.DistBackendError: NCCL timeout when waiting for nonblocking call to become successful."),
    ("torch.call", "RuntimeError: Tensors must be CUDA and dense"),
    ("torch.call", "RuntimeError: Tensors must be contiguous"),
    ("torch.call", "RuntimeError: No backend type associated with device type cpu"),
    ("torch.call", "RuntimeError: Attempt to perform collective on tensor not on device passed to init_process_group"),
    ("torch.call", "RuntimeError: Tensor list input to scatter/gather must match number of collective participants but got 4 inputs with"),
    (
        "torch.device",
        "[rank0]:[W1127 10:00:00.1 ProcessGroupNCCL.cpp:4115] [PG ID 0 PG GUID 0 Rank 0]  using GPU 0 to perform barrier as dev"
        "ices used by this process are currently unknown",
    ),
    ("torch.device", "[rank3]:[W ProcessGroupNCCL.cpp:5072] Guessing device ID based on global rank. This can cause a hang if rank to GP"),
    ("torch.model", "RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one. This error indi"),
    ("torch.model", "RuntimeError: Expected to mark a variable ready only once. This error is caused by one of the following reasons:"),
    ("torch.mismatch", "RuntimeError: DDP expects same model across all ranks, but Rank 0 has 12 params, while rank 1 has inconsistent 1"),
    ("torch.mismatch", "RuntimeError: [1]: params[0] in this process with sizes [10, 3] appears not to match sizes of the same param in"),
    (
        "torch.mismatch",
        "RuntimeError: [enforce fail at /pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:446] op.preamble.length <= op.nbytes",
    ),
    ("torch.mismatch", "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:456] op.preamble.length <= op.nbytes. 8 vs 4"),
    ("gloo.connect", "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:799] connect [127.0.1.1]:56242: Connection refused"),
    ("gloo.connect", "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.h:311] Connect timeout [10.0.0.2]:5123"),
    ("socket.closed", "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:598] Connection closed by peer [10.0.0.2]:456"),
    ("socket.closed", "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Read error [10.0.0.2]:4567: Connection reset b"),
    ("socket.closed", "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:201] Socket unexpectedly closed [10.0.0.2]:4567"),
    ("socket.closed", "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:339] writev [10.0.0.2]:4567: Broken pipe"),
    (
        "torch.timeout",
        "RuntimeError: [../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 1800000ms for recv opera"
        "tion to complete",
    ),
    (
        "gloo.interface",
        "RuntimeError: [enforce fail at ../third_party/gloo/gloo/transport/tcp/device.cc:83] ifa != nullptr. Unable to find add"
        "ress for: ib9",
    ),
    (
        "gloo.interface",
        "RuntimeError: [enforce fail at ../third_party/gloo/gloo/transport/tcp/device.cc:130] Unable to find address for eth9",
    ),
    ("gloo.interface", "RuntimeError: Failed to look up the IP address for the hostname (node1)."),
    (
        "torch.desync",
        "RuntimeError: Rank 3 successfully reached monitoredBarrier, but received errors while waiting for send/recv from rank 0",
    ),
    ("torch.desync", "[E ProcessGroupGloo.cpp:144] [Rank 0]: Rank 3 failed to pass monitoredBarrier in 10000 ms"),
    ("gpu.symmetric", "RuntimeError: CUDASymmetricMemoryAllocator::rendezvous: ranks have mismatched NVLink clique_ids."),
    ("gpu.symmetric", "RuntimeError: multimem_all_reduce_: multicast support is required."),
    ("gpu.symmetric", "GPU 0 does not have peer access to GPU 4"),
    ("gpu.symmetric", "[W CUDASymmetricMemory.cu:600] SymmetricMemory: fail to export multicast handle."),
    ("nccl.system", "RuntimeError: NCCL Error 2: unhandled system error"),
    ("nccl.cuda", "RuntimeError: NCCL Error 1: unhandled cuda error"),
    ("nccl.usage", "RuntimeError: NCCL Error 5: invalid usage"),
    ("nccl.internal", "RuntimeError: NCCL Error 3: internal error"),
    ("cuda.fork", "RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the 'spa"),
    ("engine.timeout", "TimeoutError: RPC call to execute_model timed out."),
    (
        "engine.timeout",
        "(EngineCore_0 pid=10) INFO 11-27 10:00:00 [shm_broadcast.py:501] No available shared memory broadcast block found in",
    ),
    ("engine.ended", "RuntimeError: Engine process failed to start. See stack trace for the root cause."),
    (
        "engine.ended",
        "ERROR 11-27 10:00:00 [multiproc_executor.py:140] Worker proc VllmWorker-1 died unexpectedly, shutting down executor",
    ),
    ("engine.ended", "Exception: WorkerProc initialization failed due to an exception in a background process. See stack trace for root"),
    ("engine.ended", "[2026-11-27 10:00:00] Received sigquit from a child process. It usually means the child failed."),
    ("engine.ended", "[2026-11-27 10:00:00] Rank 0 scheduler is dead. Please check if there are relevant logs."),
    ("engine.timeout", "[2026-11-27 10:00:00 TP0] Watchdog timeout (self.watchdog_timeout=300)"),
    (
        "ray.node",
        "(raylet) The node with node id: 1234 and address: 10.0.0.2 and node name: 10.0.0.2 has been marked dead because the detector",
    ),
    ("store.connect", "ConnectionError: Failed to connect to GCS within 60 seconds. GCS may have been killed."),
    ("ray.ended", "ray.exceptions.OwnerDiedError: Failed to retrieve object 1234."),
    ("torch.remote", "Terminating process because the JAX distributed service detected fatal errors. This most likely indicates that ano"),
    ("gpu.off_bus", "Unable to determine the device handle for GPU0000:3B:00.0: GPU is lost.  Reboot the system to recover this GPU"),
    ("gpu.off_bus", "Unable to determine the device handle for GPU 0000:3B:00.0: Unknown Error"),
    ("cuda.no_device", "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA d"),
    ("cuda.no_device", "No devices were found"),
    ("cuda.access", "Memory access fault by GPU node-4 (Agent handle: 0x7f0) on address 0x7f1200000000. Reason: Page not present or supe"),
    (
        "cuda.failed",
        ":0:rocdevice.cpp            :3006: 1234 us: [pid:100 tid:0x7f] Callback: Queue 0x7f aborting with error : HSA_STATUS_E"
        "RROR_OUT_OF_RESOURCES",
    ),
    ("gpu.fault", "[ 123.456] amdgpu 0000:c1:00.0: amdgpu: [gfxhub0] no-retry page fault (src_id:0 ring:24 vmid:8 pasid:32770)"),
    ("gpu.start", "[ 123.456] amdgpu 0000:c1:00.0: amdgpu: Fatal error during GPU init"),
    ("gpu.fault", "[ 123.456] amdgpu 0000:c1:00.0: amdgpu: GPU reset begin!"),
    ("nccl.argument", "RuntimeError: NCCL Error 4: invalid argument"),
    ("store.connect", "RuntimeError: connect() timed out."),
    ("torch.call", "RuntimeError: Input tensor must be the same type as the output tensor."),
    ("gpu.symmetric", "RuntimeError: All ranks using fabric handles must be in the same NVLink domain. Per-rank info: rank 0"),
    ("ray.node", "ray.exceptions.NodeDiedError: Task failed due to the node dying."),
    (
        "cuda.access",
        ":0:rocdevice.cpp :2984: 12us: [pid:100 tid:0x7f] Callback: Queue 0x7f aborting with error : HSA_STATUS_ERROR_MEMORY_AP"
        "ERTURE_VIOLATION",
    ),
    ("gpu.fault", "[ 123.456] amdgpu 0000:c1:00.0: amdgpu: ring gfx_0.0.0 timeout, signaled seq=4, emitted seq=6"),
    ("torch.remote", "[E ProcessGroupNCCL.cpp:475] Found key in store: NCCLABORTEDCOMM:00, from rank: 3. This means that rank has aborte"),
)

HARMLESS: tuple[str, ...] = (
    "[I1127 10:00:00.1 TCPStore.cpp:300] [c10d - debug] The server has started on port = 29500.",
    "[I1127 10:00:00.1 socket.cpp:787] [c10d] The client socket has connected to [node1]:29500 on [node2]:47812.",
    "[W1127 10:00:00.1 socket.cpp:480] [c10d] The server socket on [::]:29500 is not yet listening, will retry.",
    "I1127 10:00:00.1 4711 ProcessGroupNCCL.cpp:934] [PG ID 0 PG GUID 0 Rank 0] ProcessGroupNCCL initialized for rank: 0",
    "[rank0]:[W1127 10:00:00.1 ProcessGroupNCCL.cpp:1250] WARNING: destroy_process_group() was not called before program exit",
    "The node 'node1_4711_0' has joined round 0 of the rendezvous 'job1' as rank 0 in a world of size 2.",
    "The node 'node1_4711_0' has sent a keep-alive heartbeat to the rendezvous 'job1'.",
    "Each rank's RANK and LOCAL_RANK come from the launcher; no KeyError can occur",
    "Found 8 devices; no devices were found busy",
    "the multicast support of this switch is complete",
    "amdgpu 0000:c1:00.0: amdgpu: SMU is initialized successfully!",
    "INFO 11-27 10:00:00 [shm_broadcast.py:289] vLLM message queue communication handle: Handle(local_reader_ranks=[1])",
    "Gloo transport: connect [10.0.0.2]:5123 succeeded",
)
