# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lines of the classes of failures, made by the format strings of their sources, with our values.

NCCL: of NVIDIA/nccl at the tags v2.8.4-1 to v2.30.7-1, and of ROCm/rccl 6.2. PROGRAMS: of PyTorch 2.x, Gloo, UCX 1.12 to 1.19, libpsm2,
MPICH, Open MPI, Linux, NVSHMEM, Kubernetes, Slurm, Ray and vLLM. QUOTED: warnings of NCCL that another program quotes.
"""

from __future__ import annotations

_W = "[2026-11-20 09:29:41] node1:100:200 [0] {} NCCL WARN "
_IB, _SOCKET, _TOPO = _W.format("transport/net_ib/p2p.cc:501"), _W.format("misc/socket.cc:441"), _W.format("graph/topo.cc:77")
_INIT, _ENQ, _PROXY = _W.format("init.cc:700"), _W.format("enqueue.cc:1541"), _W.format("proxy.cc:1143")
_P2P, _DEV = _W.format("transport/p2p.cc:275"), _W.format("dev_runtime.cc:300")
_UCX = "[1681107537.413956] [node1:146204:0]      {} UCX  ERROR "
_K = "Nov 22 18:00:00 node1 kernel: "

NCCL: tuple[tuple[str, bool, str], ...] = (
    ("p2p.failed", False, f"{_P2P}Cuda failure 101 'invalid device ordinal'"),
    ("p2p.failed", False, f"{_P2P}failed to open CUDA IPC handle : 217 peer access is not supported between these two devices"),
    ("cuda.ending", False, f"{_PROXY}Cuda failure 'driver shutting down'"),
    ("cuda.ending", False, f"{_PROXY}Cuda failure 709 'context is destroyed'"),
    ("qp.gid_missing", False, f"{_IB}NET/IB: read failed in ncclIbRoceGetVersionNum: Invalid argument"),
    ("ib.event", False, f"{_IB}NET/IB : mlx5_0:1 Got async error event: port error"),
    (
        "ib.layers",
        False,
        f"{_IB}NET/IB : Can't connect net devices with different link_layer. i=0 remMeta.ndevs=1 link_layer=1 rem_link_lay",
    ),
    ("ib.failover", False, f"{_IB}NET/IB: SEND: Got CQE with error (devIndex=0, req=0x7f, comm=0x7f (send), wr_id=3, qp_num=9)"),
    ("ib.failover", False, f"{_IB}NET/IB: SEND: The error is fatal (no device left). Cannot continue."),
    (
        "net.merge",
        False,
        f"{_TOPO}TOPO/NET : Could not force merge NICs mlx5_0,mlx5_9. Please specify a valid NCCL_NET_FORCE_MERGE string.",
    ),
    ("net.merge", False, f"{_IB}NET/IB : Trying to merge multiple devices together when NCCL_IB_MERGE_NICS=0. Please enable it"),
    ("socket.broken", False, f"{_SOCKET}socketProgressOpt: Call to recv from 10.0.0.2<40000> failed : Connection timed out"),
    ("socket.broken", False, f"{_SOCKET}Net : Call to recv from 10.0.0.2<41468> failed : No route to host"),
    ("socket.closed", False, f"{_SOCKET}socketTryAccept: Accept failed: Bad file descriptor"),
    ("socket.refused", False, f"{_SOCKET}socketPollConnect: connect returned Connection refused, exceeded error retry count (35)"),
    ("socket.unreachable", False, f"{_SOCKET}socketPollConnect: connect returned No route to host, exceeded error retry count (35)"),
    ("socket.refused", False, f"{_W.format('os/linux.cc:90')}ncclOsSocketPollConnect to 10.0.0.2<9> failed with error Connection refused"),
    ("nccl.address", False, f"{_INIT}Invalid NCCL_COMM_ID, please use format: <ipv4>:<port> or [<ipv6>]:<port> or <hostname>:<port>"),
    ("nccl.address", False, f"{_SOCKET}Net : error encountered when getting address info : Name or service not known"),
    ("socket.no_interface", False, f"{_W.format('bootstrap.cc:99')}no device found matching NCCL_OOB_NET_IFNAME=eth9, ignoring"),
    ("nccl.algorithm", False, f"{_ENQ}No algorithm/protocol available for function AllReduce with datatype ncclFloat8e4m3. NCCL_ALGO=NVLS"),
    ("verbs.abi", False, f"{_W.format('misc/ibvsymbols.cc:30')}dlvsym failed on ibv_reg_dmabuf_mr - undefined version IBVERBS_1.12"),
    ("shm.failed", False, f"{_W.format('misc/shmutils.cc:60')}Could not map /dev/shm/nccl-aB12cd size 4096, error: Cannot allocate memory"),
    ("socket.failed", False, f"{_SOCKET}socketTryAccept: Accept failed: Too few buffers"),
    ("socket.failed", False, f"{_SOCKET}socketPollConnect poll() failed with error Interrupted system call"),
    ("nccl.transport", False, f"{_W.format('transport.cc:60')}No transport found for rank 0[41000] -> rank 1[44000]"),
    ("nccl.transport", False, f"{_PROXY}Rank 0 has no transport for send peer 1 on channel 0/0"),
    (
        "net.counts",
        False,
        f"{_INIT}Detected mixed local CollNet device counts across ranks (min 1, max 2). Set NCCL_IGNORE_COLLNET_MISMATCH=1",
    ),
    ("nccl.hosts", False, f"{_INIT}Failed to determine local ranks rank 0 hostHash 1f pidHash 1f localRank -1 localRanks 0 localRank0 -1"),
    ("topo.broken", False, f"{_W.format('graph/xml.h:101')}Attribute arch of node cpu not found"),
    ("topo.broken", False, f"{_W.format('graph/xml.cc:70')}Error : XML parser is limited to 1024 nodes"),
    ("topo.path", False, f"{_TOPO}Could not find any local path from gpu 3 to net."),
    ("topo.path", False, f"{_W.format('graph/rings.cc:40')}Error : ring 0 does not contain rank 3"),
    (
        "nccl.library",
        False,
        f"{_DEV}NCCL library is too old. This application was compiled with NCCL version 2.29.2, but is running with 2.28.3",
    ),
    ("cuda.old_driver", False, f"{_ENQ}The installed CUDA driver is older than the minimum version (R465) required for NCCL's CUDA Graphs"),
    ("cuda.old_driver", False, f"{_W.format('include/alloc.h:90')}CUMEM not supported prior to CUDA 11.3"),
    (
        "cuda.symbol",
        False,
        f"{_W.format('misc/cudawrap.cc:90')}Failed to find CUDA library libcuda.so.1 (NCCL_CUDA_PATH='') : no such file",
    ),
    ("nccl.kernels", True, "node1:100:200 [0] NCCL INFO ncclMaxSharedMem 82240 exceeds device/fn maxSharedMem 79856"),
    (
        "gpu.imex",
        False,
        f"{_W.format('mnnvl.cc:60')}MNNVL (cliqueSize 72) is available but not supported on this system. Check the IMEX configuration.",
    ),
    ("gpu.nvml", False, f"{_W.format('misc/nvmlwrap.cc:60')}nvmlDeviceGetCount() reported more devices (40) than the internal maximum"),
    ("gpu.symmetric", False, f"{_DEV}Communicator does not support symmetric memory!"),
    ("gpu.symmetric", False, f"{_DEV}Multicast support requested for team but none available on system."),
    ("gin.unavailable", False, f"{_W.format('gin/gin_host.cc:80')}No GIN-capable devices found."),
    ("gin.unavailable", False, f"{_DEV}User requested GIN but not all ranks in the communicator support GIN"),
    ("memory.gdrcopy", False, f"{_W.format('misc/gdrwrap.cc:40')}dlsym failed on gdr_pin_buffer_v2 - undefined symbol"),
    ("nccl.cuda", False, f"{_W.format('include/alloc.h:120')}Failed to CUDA calloc async 4194304 bytes"),
    ("host.memory", False, f"{_W.format('include/alloc.h:40')}Failed to malloc 1048576 bytes"),
    (
        "nccl.forced",
        False,
        f"{_IB}OOO RQ is force enabled but not supported on both sides of the connection (device=mlx5_0, localOooRq=1, r",
    ),
    ("nccl.setting", False, f"{_INIT}NCCL_WORK_FIFO_BYTES=3000 is being ignored because it is not a power of 2."),
    ("nccl.setting", False, f"{_INIT}minCTAs 40 is larger than #channels upper limit 32, cap it to 32"),
    ("nccl.setting", False, f'{_INIT}Missing "amd_iommu=on" from kernel command line which can lead to system instablity or hang!'),
    (
        "nccl.call",
        False,
        f"{_ENQ}Streams given to a communicator within a NCCL group must either be all uncaptured or all captured by the same",
    ),
    ("nccl.call", False, f"{_INIT}comm 0x7f21 has already been destroyed"),
    ("nccl.internal", False, f"{_IB}communicator encountered a fatal error (detected in ncclIbTest)"),
    ("nccl.internal", False, f"{_SOCKET}ncclSocketConnect: wrong socket state 5"),
    ("nccl.internal", False, f"{_INIT}commReclaim: comm 0x7f21 (rank = 3) in abort, error 1"),
    ("nccl.internal", False, f"{_IB}NET/IB: SEND: Receiver expected a 'recv' request but got 'send' (req=0x7f, comm=0x7f)"),
)

PROGRAMS: tuple[tuple[str, str], ...] = (
    ("p2p.failed", "node1:1:2 [0] transport/p2p.cu:60 NCCL WARN rank 0 failed to get CUDA IPC handle to device 1 : 11 invalid argument"),
    ("net.none", "node1:1:2 [0] net.cu:60 NCCL WARN Error : Network returned 0 device"),
    ("shm.cuda", "node1:1:2 [0] include/shm.h:60 NCCL WARN failed to register host buffer 0x7f21 : invalid argument"),
    ("topo.order", "node1:1:2 [0] misc/rings.cu:319 NCCL WARN Could not create rings, falling back on simple ring"),
    ("memory.gdrcopy", f"{_UCX.format('gdr_copy_md.c:90')}gdr_pin_buffer failed. length :65536 ret:22"),
    ("p2p.failed", f"{_UCX.format('cuda_ipc_cache.c:160')}cuIpcOpenMemHandle() failed: invalid argument"),
    ("cuda.failed", f"{_UCX.format('cuda_copy_md.c:300')}cuMemGetAddressRange(0x7f21) error: invalid argument"),
    ("ucx.transport", f"{_UCX.format('gdaki.c:300')}failed to allocate AMO buffer"),
    (
        "verbs.abi",
        f"{_UCX.format('ib_mlx5_hw.c:60')}Failed to get mlx5 cq information. Please make sure the installed libmlx5 version matches",
    ),
    ("host.processes", f"{_UCX.format('ib_md.c:60')}pthread_create() failed: Resource temporarily unavailable"),
    ("ucx.closed", f"{_UCX.format('tcp_ep.c:1000')}tcp_ep 0x5: send(fd=40) failed: Broken pipe"),
    ("host.memory", f"{_UCX.format('address.c:1733')}failed to allocate address list"),
    ("host.memory", "[node1:711629] pml_ucx.c:431  Error: ucp_ep_create(proc=509) failed: Out of memory"),
    ("host.memory", "out of dynamic memory in yylex()"),
    ("ib.query", f"{_UCX.format('ib_verbs.h:84')}ibv_exp_query_device(mlx5_0) returned 38: Inappropriate ioctl for device"),
    ("ib.query", f"{_UCX.format('ib_md.c:700')}DEVX requested but not supported by mlx5_0"),
    ("ib.create", f"{_UCX.format('ib_mlx5dv_md.c:900')}mlx5dv_devx_create_event_channel() failed: Protocol not supported"),
    ("ib.create", f"{_UCX.format('ib_exp_md.c:90')}ibv_exp_alloc_mkey_list_memory(list_size=8) failed: Invalid argument"),
    ("ib.create", f"{_UCX.format('dc_mlx5.c:900')}failed to create DC target: Invalid argument"),
    ("store.wait", "RuntimeError: [3] is setting up NCCL communicator by key '1', but store->get('1') got error: Socket Timeout"),
    ("store.lost", "RuntimeError: [3] is setting up NCCL communicator by key '1', but store->get('1') got error: Connection reset by peer"),
    ("mooncake.handshake", "E0417 19:46:42.567027   481 master_client.cpp:192] Failed to mount segment due to rpc error"),
    ("nccl.system", "RuntimeError: NCCL error in: /pytorch/torch/lib/c10d/ProcessGroupNCCL.cpp:272, unhanled system error"),
    (
        "socket.local",
        f"{_UCX.format('cma_ep.c:84')}process_vm_readv(pid=12 {{0x1,12480}}-->{{0x2,12480}}) returned -1: Operation not permitted",
    ),
    ("socket.local", "[node1:00192] Read -1, expected 10024, errno = 1"),
    ("socket.local", "WARNING: Linux kernel CMA support was requested via the"),
    (
        "memory.refused",
        "[1681107537.413956] [node1:1:0]   rcache.c:534  UCX  WARN  failed to register region 0x5 [0x7f..0x7f]: Input/output error",
    ),
    ("memory.refused", f"{_UCX.format('mpool.c:176')}Failed to allocate memory pool (name=ud_tx_skb) chunk: Input/output error"),
    (
        "cm.address",
        f"{_UCX.format('rdmacm_cm.c:500')}ep 0x5 got error event RDMA_CM_EVENT_UNREACHABLE, event status No route to host (-113)",
    ),
    (
        "ucx.transport",
        f"{_UCX.format('ucp_context.c:1080')}UCX_SOCKADDR_CM_ENABLE is set to yes but none of the available components supports X",
    ),
    ("gid.filter", f"{_UCX.format('ib_device.c:900')}failed to find a gid which matches the following subnet list: 10.1.0.0/16"),
    ("ib.pkey_missing", f"{_UCX.format('ib_iface.c:800')}unable to find specified pkey 0x8001 on mlx5_0:1"),
    ("ucx.transport", f"{_UCX.format('ucp_device.c:410')}failed to create handle: No such element"),
    (
        "nvshmem.ibgda",
        "/src/modules/transport/ibgda/ibgda.cpp:1393: non-zero status: 121 Error in mlx5dv_devx_obj_modify for INIT2RTR_QP with syndrome 7",
    ),
    ("memory.locked", "node1.329747hfi_userinit: mmap of rcvhdrq at dabbad00040b0000 failed: Resource temporarily unavailable"),
    ("ib.open", "node1:rank1: PSM3 can't open nic unit: 0 (err=23)"),
    ("ib.open", "node1.329747hfi_userinit: assign_context command failed: Invalid argument"),
    ("ofi.transfer", "MPIDI_OFI_do_put(436): OFI rdma write immediate failed (ofi_rma.h:436:MPIDI_OFI_do_put:Invalid argument)"),
    ("ofi.provider", "find_provider(170).........: OFI fi_getinfo() failure"),
    ("cm.address", f"{_K}nvme nvme1: Connect rejected: status 8 (invalid service ID)."),
    ("storage.lost", f"{_K}nvme nvme1: starting error recovery"),
    ("storage.lost", f"{_K}rpcrdma: connection to 10.0.0.2:20049 on mlx5_0, memreg 5 slots 32 ird 16: -103 closed"),
    ("storage.lost", f"{_K}LNetError: 1234:0:(o2iblnd_cb.c:3314:kiblnd_check_txs_locked()) Timed out tx: active_txs, 1 seconds"),
    ("storage.lost", f"{_K}LNetError: RDMA timed out"),
    ("storage.lost", f"{_K}iser: iser_cma_handler: event: unreachable (1): status: -110 conn: 0000 error"),
    ("nccl.library", "ImportError: /venv/lib/libtorch_cuda.so: undefined symbol: ncclCommRegister"),
    ("nccl.library", "OSError: libnccl.so.2: cannot open shared object file: No such file or directory"),
    (
        "nccl.library",
        "nccl_utils.cc:133: NCCL operation ncclGetUniqueId(&id) failed: Unable to load NCCL library. Multi-GPU collectives will",
    ),
    ("verbs.abi", "ImportError: /usr/lib/libmlx5.so.1: version `MLX5_1.24' not found (required by /usr/lib/libucx.so)"),
    ("verbs.abi", "ImportError: /opt/lib/libfoo.so: undefined symbol: ibv_query_ece"),
    ("ucx.version", "ImportError: /opt/lib/libucc.so: undefined symbol: ucp_worker_address_query"),
    ("cuda.no_device", "OSError: libcuda.so.1: cannot open shared object file: No such file or directory"),
    ("library.version", "ImportError: /venv/lib/flash_attn.so: undefined symbol: _ZN3c104cuda9SetDeviceEi"),
    ("library.version", "./app: /usr/lib/libstdc++.so.6: version `GLIBCXX_3.4.30' not found (required by ./app)"),
    ("library.missing", "ImportError: libmpi.so.40: cannot open shared object file: No such file or directory"),
    (
        "torch.desync",
        "RuntimeError: Rank 1 successfully reached monitoredBarrier, but received errors while waiting for send/recv from rank 0. Please",
    ),
    ("test.no_device", "Fatal error:  device '*': sys files not found (/sys/class/infiniband/*/ports)"),
    ("store.closed", "torch.distributed.elastic.rendezvous.api.RendezvousClosedError"),
    ("store.connect", "ValueError: host not found: Name or service not known"),
    (
        "store.connect",
        "[W socket.cpp:601] [c10d] The IPv4 network addresses of (a-0, 29500) cannot be retrieved (gai error: -2 - Name or service not",
    ),
    (
        "gloo.fallback",
        "[W ProcessGroupGloo.cpp:524] Warning: Unable to resolve hostname to a (local) address. Using the loopback address as fallback.",
    ),
    (
        "gloo.interface",
        "RuntimeError: [enforce fail at gloo/transport/tcp/device.cc:84] ifa != nullptr. Unable to find address for: ^lo",
    ),
    ("gloo.interface", "RuntimeError: [enforce fail at gloo/transport/tcp/device.cc:84] Unable to find interface for: 10.0.0.9"),
    ("torch.timeout", "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:589] Application timeout caused pair closure"),
    ("torch.timeout", "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:589] Read timeout [10.0.0.2]:4000"),
    ("socket.closed", "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection reset by peer [10.0.0.2]:4000"),
    (
        "torch.stuck",
        "[E1019 01:04:03.356947152 ProcessGroupNCCL.cpp:1413] [PG 3 Rank 0] Heartbeat monitor timed out! Process will be terminated",
    ),
    (
        "torch.stuck",
        "[E1019 01:04:03.357615073 ProcessGroupNCCL.cpp:1375] [PG 3] First PG on this rank that detected no heartbeat of its watchdog",
    ),
    (
        "torch.timeout",
        "stall_inspector.cc:107] One or more tensors were submitted to be reduced, gathered or broadcasted by subset of ranks",
    ),
    (
        "torch.remote",
        "horovod.common.exceptions.HorovodInternalError: Horovod has been shut down. This was caused by an exception on one of the ranks",
    ),
    (
        "store.clients",
        "jaxlib.xla_extension.XlaRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Id: a::0. This usually happens because a task",
    ),
    ("engine.ended", "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"),
    (
        "engine.ended",
        "Exception: WorkerProc initialization failed due to an exception in a background process. See stack trace for root cause.",
    ),
    (
        "engine.ended",
        "ERROR 08-02 08:50:03 worker_base.py:382] Error executing method init_device. This might cause deadlock in distributed execution.",
    ),
    ("engine.ended", "[2026-02-24 14:09:34 TP14] Scheduler hit an exception: Traceback (most recent call last):"),
    ("engine.ended", "ray.exceptions.ActorHandleNotFoundError: the actor handle was created in job 01000000"),
    ("engine.ended", "[ERROR] [launch.py:324:sigkill_handler] ['python', 'train.py'] exits with return code = 1"),
    ("host.memory", "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory."),
    ("host.memory", "    Reason:       OOMKilled"),
    ("ray.ended", "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task."),
    ("ray.ended", "A worker died or was killed while executing a task by an unexpected system error."),
    ("process.killed", "RuntimeError: DataLoader worker (pid 325) is killed by signal: Killed."),
    ("process.killed", "run.sh: line 3:  1234 Killed                  python train.py"),
    ("shm.loader", "RuntimeError: unable to open shared memory object </torch_12_34_56> in read-write mode: Too many files"),
    ("shm.loader", "RuntimeError: unable to mmap 64 bytes from file </torch_12_34_56>: Cannot allocate memory (12)"),
    ("host.files", "RuntimeError: received 0 items of ancdata"),
    ("host.processes", "RuntimeError: can't start new thread"),
    ("host.disk", "OSError: [Errno 28] No space left on device"),
    ("host.disk", "OSError: [Errno 122] Disk quota exceeded"),
    ("gpu.nvml", "Failed to initialize NVML: Unknown Error"),
    ("cuda.no_device", "nvidia-container-cli: initialization error: nvml error: driver not loaded: unknown."),
    ("cuda.no_device", 'docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]].'),
    ("cuda.no_device", "RuntimeError: No CUDA GPUs are available"),
    ("cuda.no_device", "RuntimeError: CUDA driver initialization failed, you might not have a CUDA gpu."),
    ("cuda.mismatch", "Error 804: forward compatibility was attempted on non supported HW"),
    ("cuda.memory", "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    ("cuda.failed", "cuBLAS: CUBLAS_STATUS_EXECUTION_FAILED in gemm"),
    ("slurm.request", "srun: error: Unable to create step for job 42: Invalid generic resource (gres) specification"),
    ("slurm.request", "sbatch: error: Batch job submission failed: Requested node configuration is not available"),
    ("kube.resources", "0/4 nodes are available: 4 Insufficient rdma/hca_shared_devices_a."),
    (
        "kube.resources",
        "Allocate failed due to no healthy devices present; cannot allocate unhealthy devices nvidia.com/gpu, which is unexpected",
    ),
    ("kube.network", "Warning  FailedCreatePodSandBox  kubelet  failed to setup network: SRIOV-CNI failed to load netconf"),
)

#: Kinds, and the lines by which PyTorch and XLA quote a warning of NCCL.
QUOTED: tuple[tuple[tuple[str, ...], str], ...] = (
    (
        ("nccl.internal", "topo.path"),
        "[rank1]: ncclInternalError: Internal check failed\n[rank1]: Last error:\n[rank1]: Rank 3 requires NIC 1 but it is not available\n",
    ),
    (
        ("topo.broken", "nccl.internal"),
        "nccl_utils.cc:305: NCCL operation ncclCommInitRank(&comm, nranks, id, rank) failed: internal error - please report this issue to "
        "the NCCL developers. Last NCCL warning(error) log entry (may be unrelated) 'Attribute busid of node nic not found'.\n",
    ),
    (("nccl.system",), "ncclSystemError: System call (e.g. socket, malloc) or external library call failed\nLast error:\n\nframe #0\n"),
)
