# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lines of transfer libraries, of rdma-core's libraries and tools, of managers and of PyTorch's rendezvous, with our values.

They are made by the format strings of their sources. HEALTHY: lines of the same programs that are no failures. PREFIXES: what launchers,
container runtimes and terminals put before a line.
"""

from __future__ import annotations

_IBRC, _IBGDA = "/src/modules/transport/ibrc/ibrc.cpp:418: ", "/src/modules/transport/ibgda/ibgda.cpp:1889: "
_GLOG, _SM = "E1201 10:01:12.112233  4711 rdma_", "Nov 22 18:00:00 165028 [F0D43740] 0x01 -> "
_UCX = "[1681107537.413956] [node1:146204:0]    ib_mlx5_dv.c:161  UCX  ERROR "
_K = "Nov 22 18:00:00 node1 kernel: "
_XID = f"{_K}NVRM: Xid (PCI:0000:41:00): 45, pid=12, name=python3, Ch 00000001 caused by previous Xid "
_WARN = "[2026-11-20 09:29:41] node1:100:200 [0] {} NCCL WARN "
_GLOO = "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] "

LIBRARIES: tuple[tuple[str, str], ...] = (
    ("qp.timeout", f"{_IBRC}non-zero status: 110 ibv_modify_qp failed "),
    ("qp.unreachable", f"{_IBRC}non-zero status: 101 ibv_modify_qp failed "),
    ("qp.invalid", f"{_IBRC}non-zero status: 22 ibv_modify_qp failed "),
    ("qp.refused", f"{_IBRC}non-zero status: 12 ibv_modify_qp failed "),
    ("qp.invalid", f"{_IBGDA}NULL value Unable to create ah."),
    ("nvshmem.device", "WARN: device bnxt_re0 is not enumerated as an mlx5 device. Skipping..."),
    ("nvshmem.ibgda", f"{_IBGDA}NULL value cannot allocate mlx5dv_devx_uar"),
    ("nvshmem.ibgda", f"{_IBGDA}non-zero status: 7 cannot register dbr buf."),
    ("nvshmem.transport", "/src/host/transport/transport.cpp:282: init failed for transport: IBGDA"),
    ("nvshmem.transport", "/src/host/transport/transport.cpp:282: Unable to initialize any transports. returning error."),
    ("memory.gdrcopy", f"{_IBRC}non-zero status: 1 gdrcopy map failed "),
    ("nvshmem.failed", f"{_IBRC}non-zero status: 7 ep_connect failed "),
    ("nvshmem.failed", "/src/host/init/init.cu:1047: non-zero status: 7 nvshmem setup connections failed "),
    ("nvshmem.failed", "/src/host/mem/mem_heap.cpp:104: NULL value mspace creation failed "),
    ("nvshmem.failed", "NVSHMEM API called before NVSHMEM initialization has completed"),
    ("deepep.timeout", "DeepEP dispatch forwarder timeout (RDMA check), channel: 4, RDMA: 1, nvl: 4, dst NVL: 5, src RDMA lane: 0, "),
    ("deepep.timeout", "RuntimeError: DeepEP error: CPU recv timeout"),
    ("deepep.timeout", "RuntimeError: DeepEP error: timeout (dispatch CPU)"),
    ("deepep.timeout", "DeepEP timeout check failed: rank = 6, thread = 0, value = 0)"),
    ("deepep.timeout", "Warning: DeepEP timeout for combine receive, rank 1, local_expert_idx 2, src_rank 3"),
    (
        "qp.timeout",
        f"{_GLOG}endpoint.cpp:1193] [Handshake] Failed to modify QP to RTR, check mtu, gid, peer lid: Connection timed out [110]",
    ),
    ("ib.open", f"{_GLOG}context.cpp:1208] ibv_open_device(mlx5_9) failed"),
    ("qp.gid_missing", f"{_GLOG}context.cpp:1300] GID is NULL, please check your GID index by specifying MC_GID_INDEX"),
    ("qp.gid_missing", f"{_GLOG}context.cpp:1392] Failed to query GID 3 on mlx5_0/1: Invalid argument"),
    ("ib.port_down", f"{_GLOG}context.cpp:217] RDMA device mlx5_0 has no active ports, skipping"),
    ("memory.refused", f"{_GLOG}context.cpp:600] Failed to register memory 0x7f1b12000000: Bad address [14]"),
    ("mooncake.handshake", f"{_GLOG}endpoint.cpp:700] Active handshake RPC failed; resetting endpoint. rc=-200"),
    ("mooncake.handshake", f"{_GLOG}endpoint.cpp:886] Failed to send RDMA ready ACK to node2:12345@mlx5_0"),
    ("mooncake.handshake", "E1111 08:02:15.854331   924 master_client.cpp:146] RPC call failed: Connection timed out"),
    ("nixl.lost", "nixl_cu12._bindings.nixlRemoteDisconnectError: NIXL_ERR_REMOTE_DISCONNECT"),
    ("nixl.failed", "nixl._bindings.nixlBackendError: NIXL_ERR_BACKEND"),
    ("memory.locked", "node1:rank0.hello: Unable to create send CQ of size 5080 on mlx5_0: Cannot allocate memory"),
    ("ib.create", "node1:rank0.hello: Unable to create UD QP on mlx5_0: Invalid argument"),
    ("ib.open", "node1:pid502724: PSM3 can't open nic unit: 0 (err=23)"),
    ("qp.connect", "node1:rank0.hello: Failed to modify UD QP to INIT on mlx5_bond_0: Invalid argument"),
    ("sharp.unavailable", "[node1:0:600 - comm.c:33] ERROR sharp_connect_tree failed: AN MAD error(-18)"),
    ("sharp.unavailable", "[node1][Sep 30 04:35:51 519524][SD][703][error] - AM TreeConfig add children MAD response status 0x1c00"),
    ("sharp.unavailable", "[node1:0:600 unique id 3588] ERROR AN MAD error in sharp_connect_tree."),
)
UCX: tuple[tuple[str, str], ...] = (
    ("qp.timeout", f"{_UCX}ibv_create_ah(dlid=49152 sl=0 port=1 src_path_bits=0 dgid=::ffff:172.16.0.2) failed: Connection timed out"),
    ("qp.unreachable", f"{_UCX}ibv_create_ah(dlid=49152 sl=0 port=1 src_path_bits=0 dgid=::ffff:172.16.0.2) failed: No route to host"),
    ("qp.invalid", f"{_UCX}ibv_create_ah(dlid=49152 sl=0 port=1 src_path_bits=0 dgid=::ffff:172.16.0.2) failed: Invalid argument"),
    ("ib.create", f"{_UCX}mlx5dv_devx_obj_create(DCT) failed, syndrome 0: Connection timed out"),
    ("ib.create", f"{_UCX}mlx5dv_create_cq(cqe=4608) failed: Operation canceled"),
    ("qp.connect", f"{_UCX}mlx5dv_devx_obj_modify(502) failed, syndrome 0: Operation canceled"),
    (
        "mpi.tcp",
        "[node1][[44871,1],3][btl_tcp_endpoint.c:630:mca_btl_tcp_endpoint_recv_connect_ack] received unexpected process identifier",
    ),
)
TOOLS: tuple[tuple[str, str], ...] = (
    (
        "verbs.abi",
        "libibverbs: Warning: Driver bnxt_re does not support the kernel ABI of 6 (supports 1 to 1) for device /sys/class/infiniband/bn0",
    ),
    ("verbs.abi", "libibverbs: Fatal: kernel ABI version 2 doesn't match library version 6."),
    (
        "verbs.abi",
        "libibverbs: Warning: couldn't load driver 'mlx5': /lib64/libibverbs.so.1: version `IBVERBS_PRIVATE_22' not found (required by "
        "/lib64/libibverbs/libmlx5-rdmav2.so)",
    ),
    ("verbs.driver", "libibverbs: Warning: no userspace device-specific driver found for /sys/class/infiniband_verbs/uverbs0"),
    (
        "verbs.unloaded",
        "libibverbs: Warning: couldn't load driver 'librxe-rdmav25.so': librxe-rdmav25.so: cannot open shared object file: No such file or "
        "directory",
    ),
    ("verbs.unloaded", "libibverbs: Warning: couldn't open config directory '/etc/libibverbs.d'."),
    ("verbs.memlock", "libibverbs: Warning: RLIMIT_MEMLOCK is 65536 bytes."),
    ("test.no_device", "librdmacm: Fatal: no RDMA devices found"),
    ("ib.open", "Failed to open device"),
    ("ib.open", "E0703 10:22:11.123456    15 rdma_helper.cpp:405] Fail to open rdma device mlx5_0"),
    ("cm.channel", "rdma_create_event_channel: No such device"),
    ("cm.channel", "rdma_create_event_channel failed"),
    ("cm.address", "rdma_bind_addr: No such file or directory"),
    ("mad.open", "ibwarn: [298726] mad_rpc_open_port: client_register for mgmt 1 failed"),
    ("mad.open", "/src/libibnetdisc/ibnetdisc.c:802; can't open MAD port ((null):0)"),
    ("mad.open", "ibwarn: [298726] mad_rpc_open_port: can't init UMAD library"),
    (
        "mad.timeout",
        "src/query_smp.c:199; umad (DR path slid 0; dlid 0; 0,1,10,19 Attr 0x11:0) bad status 110; Connection timed out",
    ),
    ("mad.timeout", "ibwarn: [2987] mad_rpc: _do_madrpc failed; dport (DR path slid 65535; dlid 65535; 0,1)"),
    ("mad.failed", "ibnetdiscover: iberror: failed: discover failed"),
    ("opensm.bind", f"{_SM}osm_vendor_bind: ERR 5426: Unable to register class 129 version 1"),
    ("opensm.bind", f"{_SM}osm_sm_bind: ERR 2E10: SM MAD Controller bind failed (IB_ERROR)"),
    ("mad.timeout", f"{_SM}umad_receiver: ERR 5411: DR SMP Send completed with error (IB_TIMEOUT) -- dropping"),
    ("mad.timeout", f"{_SM}sm_mad_ctrl_send_err_cb: ERR 3113: MAD completed in error (IB_TIMEOUT): SubnGet(PortInfo), attr_mod 0x1"),
    ("opensm.failed", f"{_SM}osm_mcast_mgr_process: ERR 0A09: alloc_mfts failed"),
    (
        "fm.version",
        "Jun 28 10:11:12 node1 nv-fabricmanager[3228]: fabric manager NVIDIA GPU driver interface version 530.30.02 don't match with "
        "driver version 530.41.03. Please update with matching NVIDIA driver package.",
    ),
    (
        "fm.no_switch",
        "Nov 15 14:15:47 node1 nv-fabricmanager[4177]: request to query NVSwitch device information from NVSwitch driver failed with "
        "error:WARNING Nothing to do [NV_WARN_NOTHING_TO_DO]",
    ),
    ("fm.failed", "fabric manager config file item: FABRIC_NODE_CONFIG_FILE has an invalid value"),
    ("fm.failed", "Nov 15 14:15:47 node1 systemd[1]: nvidia-fabricmanager.service: Control process exited, code=exited, status=1/FAILURE"),
    ("kernel.modules", "modprobe: ERROR: could not insert 'nvidia_peermem': Invalid argument"),
    ("kernel.modules", "modprobe: FATAL: Module rdma_rxe not found in directory /lib/modules/6.8.0-31-generic"),
    ("kernel.modules", "Module mlx5_ib does not exist, skipping...               [FAILED]"),
)
GPUS: tuple[tuple[str, str], ...] = (
    ("gpu.nvlink", f"{_XID}149"),
    ("gpu.off_bus", f"{_XID}79"),
    ("cuda.ecc", f"{_XID}94"),
    ("gpu.firmware", f"{_XID}119"),
    ("gpu.program", f"{_XID}31"),
    ("gpu.remapped", f"{_XID}63"),
    ("gpu.xid", f"{_XID}109"),
    ("gpu.off_bus", f"{_K}NVRM: fallen off the bus and is not responding to commands."),
    (
        "gpu.firmware",
        f"{_K}NVRM: GPU6 _kgspLogRpcTimeout: ********************************* GSP Timeout **********************************",
    ),
    ("gpu.firmware", f"{_K}NVRM: GPU6 _kgspIsHeartbeatTimedOut: Heartbeat timed out, currentTimeMs 8 heartbeat 1 diff 6070 timeout 5200"),
    ("gpu.firmware", f"{_K}NVRM: Timeout after 6s of waiting for RPC response from GPU0 GSP! Expected function 76"),
    ("gpu.start", f"{_K}NVRM: GPU 0000:09:00.0: RmInitAdapter failed! (0x22:0x56:894)"),
    ("gpu.start", f"{_K}NVRM: GPU 0000:09:00.0: rm_init_adapter failed, device minor number 0"),
    ("gpu.start", f"{_K}NVRM: osInitNvMapping: *** Cannot attach gpu"),
    ("gpu.start", f"{_K}NVRM: installed in this system is not supported by the"),
    ("kernel.queue", f"{_K}rdma_rxe: qp#17 moved to error state"),
    ("kernel.completion", f"{_K}infiniband mlx5_0: mlx5_poll_one:527:(pid 0): Responder error cqe on cqn 0x406:"),
    ("kernel.oops", f"{_K}BUG: KASAN: stack-out-of-bounds in rxe_post_send+0x12f3/0x1880 [rdma_rxe]"),
    ("gpu.nvls", _WARN.format("transport/nvls.cc:598") + "Cuda failure 1 'invalid argument'"),
    ("p2p.failed", _WARN.format("transport/p2p.cc:275 (ncclP2pImportShareableBuffer)") + "Cuda failure 1 'invalid argument'"),
    ("shm.failed", _WARN.format("misc/shmutils.cc:103") + "Cuda failure 'invalid argument'"),
    ("shm.failed", _WARN.format("transport/shm.cc:103") + "Cuda failure 'invalid argument'"),
    ("p2p.failed", _WARN.format("/src/transport/p2p.cc:239") + "hipIpcGetMemHandle failed : invalid argument"),
    ("p2p.failed", _WARN.format("graph/paths.cc:332") + "P2P is disabled between NVLINK connected GPUs 0 and 1. This should not be"),
    ("p2p.failed", "Failed: Cuda error /workspace/csrc/custom_all_reduce.cuh:307 'invalid argument'"),
    ("cuda.failed", "Failed: Cuda error /workspace/csrc/quickreduce.h:30 'invalid argument'"),
    ("gpu.imex", _WARN.format("mnnvl.cc:74") + "MNNVL (cliqueSize 8) is available but not working on this system. Check the IMEX channel"),
    ("gpu.imex", "Call to cuMemCreate(&handle, bytes, &prop, 0) failed (Cu failure: operation not permitted)"),
    ("topo.rsmi", _WARN.format("/src/misc/alt_rsmi.cc:653") + "Could not read node # 5"),
    ("topo.rsmi", _WARN.format("/src/misc/rocm_smi_wrap.cc:42") + "ARSMI failure 2"),
    ("topo.path", _WARN.format("graph/paths.cc:82") + "Failed to find reverse path from remNode 0/200000 nlinks 3 to node 0/700000"),
    ("topo.path", _WARN.format("graph/paths.cc:30") + "Could not find node of type 1 id 200000"),
    (
        "socket.no_interface",
        _WARN.format("misc/socket.cc:585") + "ncclSocketInit: connecting to address  with family 0 is neither AF_INET(2) nor AF_INET6(10)",
    ),
    ("socket.no_interface", _WARN.format("include/socket.h:344") + "Socket creation failed : Address family not supported by protocol"),
    ("socket.refused", "node1:100:200 [0] include/socket.h:360 WARN Call to connect failed : Connection refused"),
    ("socket.unreachable", "node1:100:200 [0] include/socket.h:360 WARN Call to connect failed : Connection timed out"),
)
RENDEZVOUS: tuple[tuple[str, str], ...] = (
    ("store.connect", "RuntimeError: connect() timed out. Original timeout was 60000 ms."),
    (
        "store.connect",
        "torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The connection to the C10d store has failed. See",
    ),
    ("store.clients", "torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError"),
    ("store.wait", "torch.distributed.DistStoreError: Socket Timeout"),
    (
        "store.lost",
        "The node 'node1_3140_0' has failed to shutdown the rendezvous '304' due to an error of type RendezvousConnectionError.",
    ),
    ("store.lost", "The node 'node1_3140_0' has failed to send a keep-alive heartbeat to the rendezvous '304' due to an error of type"),
    ("store.lost", "RuntimeError: Connection reset by peer"),
    ("store.lost", "RuntimeError: Broken pipe"),
    (
        "gloo.connect",
        "RuntimeError: Gloo connectFullMesh failed with [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:152] timed out connecting: "
        "SO_ERROR: Connection refused, remote=[127.0.0.1]:33127 (rank=8, size=16)",
    ),
    ("gloo.connect", "timed out connecting: SO_ERROR: No route to host, remote=[10.0.0.2]:33127"),
    ("torch.timeout", f"{_GLOO}Timed out waiting 1800000ms for recv operation to complete"),
    ("socket.closed", f"{_GLOO}Connection closed by peer [10.0.0.2]:33127"),
)
HEALTHY: tuple[str, ...] = (
    "NVSHMEM v3.4.5",
    "I0331 12:02:38.363528 56056 rdma_context.cpp:125] RDMA device: mlx5_0, LID: 0, GID: (GID_Index 3) 00:00:00:00:00:00:00:00:00:00:ff:ff",
    "Nov 22 18:00:00 138670 [F0D43740] 0x03 -> OpenSM 3.3.23",
    "Nov 22 18:00:00 138670 [F0D43740] 0x80 -> Entering MASTER state",
    "Nov 15 14:15:47 node1 nv-fabricmanager[4177]: Successfully configured all the available NVSwitches to route GPU NVLink traffic.",
    "Nov 15 14:15:47 node1 systemd[1]: Started nvidia-fabricmanager.service - NVIDIA fabric manager service.",
    f"{_K}NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build",
    "node1:1:2 [0] NCCL INFO MNNVL busId 0x1a000 fabric UUID 0.0 cliqueId 0x0 state 3 healthMask 0x0",
    "node1:1:2 [0] NCCL INFO [Service thread] Connection closed by localRank 0",
    "[DeepEP] dispatch with FP8, timeout check passed",
    "INFO 08-31 09:50:46 pynccl.py:63] vLLM is using nccl==2.20.5",
    "[1716918990.492007] [node1:2588768:0]  ib_md.c:1 UCX  DEBUG ibv_reg_mr(address=0x7f) failed: Invalid argument",
    "libfabric:2833295:verbs:fabric:vrb_get_device_attrs():900<info> ibv_query_port failed",
    "the function ibv_create_qp is called for each peer",
    "[rank0]: Signal handling is on",
)
#: Calls in the words of programs without signatures of their own, and processes that end by a signal.
CALLS: tuple[tuple[str, str], ...] = (
    ("memory.locked", "xio_rdma_verbs.c:248 [ERROR] - ibv_create_cq failed, Cannot allocate memory"),
    ("memory.gpu", "xio_rdma_verbs.c:248 [ERROR] - ibv_reg_mr failed, Bad address. addr:0x7f21e3369dc0, length:15863892992"),
    ("memory.refused", "store: ibv_reg_mr() failed: Invalid argument"),
    ("qp.timeout", "store: ibv_modify_qp to RTR failed: Connection timed out"),
    ("qp.connect", "store: ibv_modify_qp to RTR failed: Invalid argument"),
    ("ib.open", "store: ibv_open_device returned error"),
    ("ib.query", "store: ibv_query_port failed"),
    ("ib.post", "store: ibv_post_send failed: Invalid argument"),
    ("ib.create", "store: ibv_create_qp failed: Invalid argument"),
    ("cm.address", "store: rdma_resolve_addr returned -1"),
    ("cm.address", "[1485188623.398447] [node1:30937:0]       cm_iface.c:308  UCX  ERROR ib_cm_listen() failed: Device or resource busy"),
    ("memory.registration", "Couldn't register GPU MR"),
    ("ib.port_down", "node1.53882PSM2 no hfi units are active (err=23)"),
    (
        "process.killed",
        "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -9) local_rank: 0 (pid: 178) of binary: python",
    ),
    ("process.bus", "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -7) local_rank: 0 (pid: 178) of binary: python"),
    (
        "process.crashed",
        "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -11) local_rank: 0 (pid: 178) of binary: python",
    ),
    ("process.killed", "  traceback : Signal 9 (SIGKILL) received by PID 178"),
    ("process.bus", "  traceback : Signal 7 (SIGBUS) received by PID 178"),
    ("process.crashed", "  traceback : Signal 6 (SIGABRT) received by PID 178"),
    (
        "process.killed",
        "[2023-04-14 13:11:27,885] [ERROR] [launch.py:434:sigkill_handler] ['python3', 'main.py'] exits with return code = -9",
    ),
    ("process.bus", "[2023-04-14 13:11:27,885] [ERROR] [launch.py:434:sigkill_handler] ['python3', 'main.py'] exits with return code = -7"),
    (
        "process.crashed",
        "[2023-04-14 13:11:27,885] [ERROR] [launch.py:434:sigkill_handler] ['python3', 'main.py'] exits with return code = -6",
    ),
    ("process.killed", "*** SIGKILL received at time=1720159248 on cpu 5 ***"),
    ("process.bus", "*** SIGBUS received at time=1720159248 on cpu 5 ***"),
    ("process.crashed", "*** SIGABRT received at time=1720159248 on cpu 5 ***"),
    ("process.killed", "[node1:3569:0:3569] Caught signal 9 (Killed: kill from a user)"),
    ("process.bus", "[node1:3569:0:3569] Caught signal 7 (Bus error: nonexistent physical address)"),
    ("process.crashed", "[node1:3569:0:3569] Caught signal 11 (Segmentation fault: address not mapped to object at address 0x8)"),
    ("process.killed", "[node1:12532] Signal: Killed (9)"),
    ("process.bus", "[node1:12532] Signal: Bus error (7)"),
    ("process.crashed", "[node1:12532] Signal: Segmentation fault (11)"),
    ("memory.gpu", f"{_K}mlx5_0:mr_umem_get:709:(pid 15855): umem get failed (-14)"),
    ("memory.gpu", f"{_K}ib_umem_get: failed to get user pages, nr_pages=512"),
    ("kernel.queue", f"{_K}NETDEV WATCHDOG: ens1f0np0 (mlx5_core): transmit queue 5 timed out"),
    ("kernel.queue", f"{_K}mlx5_core 0000:41:00.0 ens1f0np0: TX timeout detected"),
    ("memory.gin", f"{_GLOG}context.cpp:1343] DMA BUF supported required for GPU RDMA without nvidia-peermem"),
    ("ib.no_device", f"{_GLOG}transport.cpp:827] RdmaTransport: No available RNIC"),
    ("ofi.none", "MPIDI_NM_mpi_init_hook(719): OFI addrinfo() failed (ofi_init.h:719:MPIDI_NM_mpi_init_hook:No data available)"),
    ("ofi.none", "MPIDI_OFI_mpi_init_hook(816): OFI fi_getinfo() failed (ofi_init.c:2684:find_provider:No data available)"),
    ("ofi.open", "MPIDI_OFI_mpi_init_hook(906): OFI endpoint open failed (ofi_init.h:906:create_endpoint:Invalid argument)"),
    ("ucx.version", "[1742985504.589702] [node1:7722 :0]  ucp_context.c:2137 UCX  WARN  UCP API version is incompatible: required >= 1.18"),
)
#: Prefix of a launcher or of a log's collector, the rank in it.
PREFIXES: tuple[tuple[str, int | None], ...] = (
    ("[1,3]<stderr>:", 3),
    ("12: ", 12),
    ("[rank3]:", 3),
    ("[rank3]: ", 3),
    ("[default3]:", None),
    ("[trainer0|0]:", None),
    ("2026-11-22T18:00:00.123456789Z stderr F ", None),
    ("2026-11-22T18:00:00.123456789Z ", None),
    ("(RayWorkerWrapper pid=4009, ip=10.0.0.168) ", None),
    ("(Worker_TP0 pid=811) ERROR 08-30 11:22:41 [worker.py:1512] ", None),
    ("\x1b[36m(RayWorkerWrapper pid=4009)\x1b[0m ", None),
    ("\x1b[31;1m", None),
    ("10.0.0.168: ", None),
    ("2026-11-22 18:00:00,123 - INFO - ", None),
)
