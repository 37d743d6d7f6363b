# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The texts by which errors are recognized, and their programs: NCCL, CUDA, PyTorch, nccl-tests and Slurm."""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.signature import Signature
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.statuses import STATUS_KINDS

_IB, _WRAP, _SOCKET, _SHM = "NCCL src/transport/net_ib", "NCCL src/misc/ibvwrap.cc", "NCCL src/misc/socket.cc", "NCCL src/misc/shmutils.cc"
#: "with error 12," up to 2.19. Later versions also have the name of the status: "status=IBV_WC_RETRY_EXC_ERR(12)" in 2.28.
_COMPLETION = r"Got completion (?:from peer \S+ )?with (?:error |status=(?:\w+\()?)(?P<status>{})\b"
_MODIFY = r"Call to ibv_modify_qp failed with (?:error )?(?:{0}\b|.{{0,60}}{1}(?: errno (?P<errno>[0-9]+))?)"
_EVENT = r"Got (?:non-fatal )?async event ?: (?P<event>{})"
#: By the words of ibv_event_type_str. Every port has the second kind when a subnet manager starts, and continues unchanged.
_EVENTS = (
    ("ib.gids_changed", "GID table change"),
    ("ib.managed", "client reregistration|SM change"),
    ("ib.event", "[^(]+"),
)
_NO_INTERFACE = (
    ("Bootstrap : no socket interface found", "NCCL src/bootstrap.cc"),
    ("No usable listening interface found", "NCCL src/bootstrap.cc"),
    ("verify NCCL_OOB_NET_IFNAME", "NCCL src/bootstrap.cc"),
    ("NET/Socket : no interface found", "NCCL src/transport/net_socket.cc"),
    ("No interface found in the same subnet", _SOCKET),
    ("Socket creation failed : Address family not supported", _SOCKET),
    # The address is not initialized if no interface has the name in NCCL_SOCKET_IFNAME.
    ("is neither AF_INET(", _SOCKET),
)
#: A CUDA call failed within a transport: the source file shows which one.
_TRANSPORT_CALLS = (
    ("gpu.nvls", "transport/nvls.cc", "NCCL src/transport/nvls.cc"),
    ("p2p.failed", "transport/p2p.cc", "NCCL src/transport/p2p.cc"),
    ("shm.failed", "misc/shmutils.cc", "NCCL src/misc/shmutils.cc"),
    ("shm.cuda", "transport/shm.cc", "NCCL src/transport/shm.cc"),
    ("shm.failed", "include/shm.h", "NCCL src/include/shm.h"),
)
#: The explanations that PyTorch adds to a result of NCCL.
_RESULTS_OF_TORCH = (
    ("nccl.cuda", "ncclUnhandledCudaError: Call to CUDA function failed"),
    ("nccl.system", "ncclSystemError: System call (e.g. socket, malloc)"),
    ("nccl.internal", "ncclInternalError: Internal check failed"),
    ("nccl.argument", "ncclInvalidArgument: Invalid value for an argument"),
    ("nccl.usage", "ncclInvalidUsage: This usually reflects invalid usage"),
    ("nccl.remote", "ncclRemoteError: A call failed possibly due to a network error"),
)
#: The bare texts of older versions of NCCL.
_OLD_RESULTS = (("nccl.internal", "internal error"), ("nccl.usage", "invalid usage"), ("nccl.argument", "invalid argument"))

NCCL_SIGNATURES: tuple[Signature, ...] = (
    # RDMA: devices
    Signature("ib.no_device", "NET/IB : No device found", _IB, info=True),
    Signature("ib.no_address", "NET/IB : No IP interface found", _IB),
    Signature("ib.open", "NET/IB : Unable to open device", _IB),
    Signature("ib.query", "NET/IB : Unable to query", _IB),
    Signature("ib.library", "Failed to open libibverbs", "NCCL src/misc/ibvsymbols.cc", info=True),
    Signature("ib.layers", "incompatible", _IB, r"NET/IB : .{0,80}incompatible"),
    Signature("ib.fatal", "async fatal event", _IB, r"async fatal event.{0,200}: (?P<event>[^:]+)$"),
    Signature("ib.gids_changed", "GID table changed", _IB),
    *(Signature(name, "async event", _IB, _EVENT.format(event)) for name, event in _EVENTS),
    # RDMA: registering memory, and queues
    Signature("memory.dmabuf", "Call to ibv_reg_dmabuf_mr", _WRAP, r"failed with error (?P<error>[A-Za-z ]+)"),
    Signature(
        "memory.locked",
        "Cannot allocate memory",
        _WRAP,
        r"Call to ibv_(?P<call>reg_mr\w*|create_\w+|alloc_pd) failed.{0,20}Cannot allocate memory",
    ),
    Signature("memory.gpu", "Call to ibv_reg_mr", _WRAP, r"failed with error Bad address"),
    Signature("memory.refused", "Call to ibv_reg_mr", _WRAP, r"failed with error (?P<error>[A-Za-z ]+)"),
    Signature("memory.gin", "Peermem is not supported", "NCCL src/transport/net_ib/gin.cc"),
    Signature("gdr.disabled", "GPU Direct RDMA Disabled", "NCCL src/graph/paths.cc", info=True),
    *(Signature(name, "Got completion", f"{_IB} (p2p.cc)", _COMPLETION.format(status)) for name, status in STATUS_KINDS),
    Signature("qp.retrying", "Call to ibv_modify_qp failed", _WRAP, r", retrying (?P<attempt>[0-9]+)/", info=True),
    Signature("qp.timeout", "ibv_modify_qp failed", _WRAP, _MODIFY.format(110, "Connection timed out")),
    Signature("qp.invalid", "ibv_modify_qp failed", _WRAP, _MODIFY.format(22, "Invalid argument")),
    Signature(
        "qp.unreachable", "ibv_modify_qp failed", _WRAP, _MODIFY.format("(?:101|113)", "(?:Network is unreachable|No route to host)")
    ),
    Signature("qp.refused", "ibv_modify_qp failed", _WRAP, r"failed with (?:error )?(?P<error>.{1,60}?)(?:,|$)"),
    Signature("qp.gids", "local GID ", "nccl-mesh-plugin", r"local GID [0-9a-fA-F:.]+, remote GID "),
    # the choice of a network
    Signature("net.none", "Failed to initialize any NET plugin", "NCCL src/plugin/net.cc"),
    Signature("net.network", "Error: network ", "NCCL src/net.cc", r"Error: network (?P<network>\S*) not found"),
    Signature(
        "net.plugin",
        "NET/Plugin",
        "NCCL src/plugin/plugin_open.cc",
        r"NET/Plugin ?: (?:Could not find: ?(?P<file>(?!libnccl-net\.so)[^ .]\S*)|(?P<library>\S+\.so\S*): (?P<error>.{1,200}))",
        info=True,
    ),
    Signature("net.socket", "Using network Socket", "NCCL src/init.cc", info=True),
    # sockets
    *(Signature("socket.no_interface", needle, source) for needle, source in _NO_INTERFACE),
    Signature("socket.refused", "Call to connect ", _SOCKET, r"Call to connect (?:failed|timeout) ?: Connection refused"),
    Signature(
        "socket.unreachable",
        "Call to connect ",
        _SOCKET,
        r"Call to connect (?:failed|timeout) ?: (?P<error>No route to host|Network is unreachable|Connection timed out)",
    ),
    Signature("socket.refused", "Connection refused", _SOCKET, r"NCCL WARN .{0,300}[Cc]onnect to \S+ .{0,40}Connection refused"),
    Signature(
        "socket.unreachable",
        "onnect to ",
        _SOCKET,
        r"NCCL WARN .{0,300}[Cc]onnect to \S+ .{0,40}(?P<error>No route to host|Network is unreachable|Connection timed out|"
        r"Software caused connection abort)",
    ),
    Signature("socket.refused", "exceeded retries (", _SOCKET, r"socket(?:Start|Poll)Connect"),
    Signature("socket.unreachable", "exceeded timeouts (", _SOCKET, r"socket(?:Start|Poll)Connect"),
    Signature("socket.closed", "Connection closed by remote peer", _SOCKET),
    Signature("socket.closed", "Socket recv failed", "NCCL src/proxy.cc"),
    Signature(
        "socket.closed", "Call to ", _SOCKET, r"Call to (?:recv|send)\S* .{0,200}failed ?: (?P<error>Connection reset by peer|Broken pipe)"
    ),
    # ranks
    Signature(
        "version.differs",
        "Mismatched NCCL version",
        "NCCL src/init.cc",
        r"rank (?P<one>\d+) version (?P<one_version>\d+) rank (?P<other>\d+) version (?P<other_version>\d+)",
    ),
    Signature("version.differs", "NCCL version mismatch with remote peer", "NCCL src/ras/ras.cc"),
    Signature(
        "gpu.shared",
        "Duplicate GPU detected",
        "NCCL src/init.cc",
        r"rank (?P<one>\d+) and rank (?P<other>\d+) both on CUDA device (?P<gpu>\w+)",
    ),
    Signature("gpu.shared", "Multiple Ranks are using the same GPU", "NCCL src/init.cc"),
    # shared memory
    Signature(
        "shm.space",
        "No space left on device",
        _SHM,
        r"NCCL (?:WARN|INFO) .{0,200}(?:fallocate|failed to extend|shared memory).{0,200}No space left on device",
        info=True,
    ),
    # Older versions do not print the error.
    Signature("shm.space", "failed to extend /dev/shm", _SHM, r"failed to extend (?P<file>\S+) to (?P<bytes>\d+) bytes(?!, error: )"),
    Signature(
        "shm.failed",
        "failed to extend /dev/shm",
        _SHM,
        r"failed to extend (?P<file>\S+) to \d+ bytes, error: (?P<error>[A-Z][^(]{1,60}?) \(",
    ),
    Signature("shm.gone", "attaching to shared memory segment", _SHM, r"segment (?P<file>\S+)"),
    Signature("shm.gone", "unlink shared memory", _SHM, r"NCCL WARN unlink shared memory (?P<file>\S+) failed"),
    Signature(
        "shm.failed",
        "creating shared memory segment",
        _SHM,
        r"segment (?P<file>\S+)(?: \(size \d+\), error: (?P<error>[A-Z][^(]{1,60}?) \()?",
    ),
    # topology
    Signature(
        "topo.file",
        "Could not open XML topology file",
        "NCCL src/graph/xml.cc",
        r"topology file (?P<file>\S+) ?: (?P<error>.{1,100})",
        info=True,
    ),
    Signature("topo.graph", "Could not open XML graph file", "NCCL src/graph/xml.cc", r"graph file (?P<file>\S+)"),
    Signature("topo.version", "has wrong version", "NCCL src/graph/xml.cc", r"NCCL WARN XML \w+ has wrong"),
    Signature("topo.broken", "XML ", "NCCL src/graph/xml.cc", r"NCCL WARN XML (?:Parse|Mismatch|Import)"),
    Signature("p2p.refused", "Could not enable P2P", "NCCL src/transport/p2p.cc", info=True),
    Signature("p2p.failed", "failed to peer with device", "NCCL src/transport/p2p.cc"),
    Signature("p2p.failed", "cudaIpc", "NCCL src/transport/p2p.cc", r"cudaIpc\w+ failed"),
    *(
        Signature(name, file, source, rf"{file}:\d+ (?:\(\w+\) )?NCCL WARN (?:Cuda|HIP) failure (?P<error>.{{1,100}})")
        for name, file, source in _TRANSPORT_CALLS
    ),
    Signature("p2p.failed", "hipIpc", "RCCL src/transport/p2p.cc", r"hipIpc\w+ failed"),
    Signature("p2p.failed", "P2P is disabled between NVLINK connected GPUs", "NCCL src/graph/paths.cc"),
    Signature("gpu.imex", "is available but not working on this system", "NCCL src/mnnvl.cc", r"MNNVL \(cliqueSize"),
    Signature(
        "topo.rsmi",
        " NCCL WARN ",
        "RCCL src/misc/alt_rsmi.cc",
        r"NCCL WARN (?:Could not (?:read|determine GPU id of) node #|Error reading link properties|Failed to open topo/nodes)",
    ),
    Signature("topo.rsmi", "ARSMI failure", "RCCL src/misc/rocm_smi_wrap.cc"),
    Signature("topo.path", "Failed to find reverse path from remNode", "NCCL src/graph/paths.cc"),
    Signature(
        "topo.path",
        "Could not find ",
        "NCCL src/graph/paths.cc",
        r"NCCL WARN Could not find (?:node of type|intermediate GPU|id |\w+ with id )",
    ),
    Signature("topo.order", "falling back to simple order", "NCCL src/graph/search.cc"),
    Signature("nccl.algorithm", "no algorithm/protocol available", "NCCL src/enqueue.cc"),
    Signature("gpu.nvls", "Failed to bind NVLink SHARP (NVLS) Multicast memory", "NCCL src/transport/nvls.cc"),
    Signature("gpu.nvls", "error in the Fabric Manager or NVSwitches", "NCCL src/transport/nvls.cc"),
    Signature(
        "gpu.nvml", "nvml", "NCCL src/misc/nvmlwrap.cc", r"NCCL WARN .{0,20}nvml\w+(?:\([^)]*\))?(?:\(\))? failed: (?P<error>.{1,80})"
    ),
    Signature("gpu.nvml", "libnvidia-ml.so.1", "NCCL src/misc/nvmlwrap.cc", r"Failed to open libnvidia-ml"),
    Signature(
        "cuda.symbol", "Retrieve ", "NCCL src/misc/cudawrap.cc", r"NCCL WARN .{0,20}Retrieve (?P<symbol>\w+)(?: version \d+)? failed with"
    ),
    Signature("memory.gdrcopy", "gdr_", "NCCL src/misc/gdrwrap.cc", r"NCCL WARN .{0,20}gdr_\w+\(.{0,200}\) failed: (?P<code>-?\d+)"),
    # what ranks do not agree on, and calls of the program
    Signature(
        "nccl.truncated",
        "Message truncated : received",
        "NCCL src/bootstrap.cc",
        r"received (?P<received>[\d,]+) bytes instead of (?P<wanted>[\d,]+)",
    ),
    Signature(
        "nccl.truncated",
        "message truncated : receiving",
        "NCCL src/transport/net_socket.cc",
        r"receiving (?P<received>\d+) bytes instead of (?P<wanted>\d+)",
    ),
    Signature("nccl.truncated", "posted incorrect receive info", f"{_IB} (p2p.cc)"),
    Signature("nccl.truncated", "symmetric registration check failed", "NCCL src/misc/argcheck.cc"),
    Signature(
        "nccl.truncated",
        "ismatch",
        "NCCL src/enqueue.cc",
        r"(?i)NCCL WARN .{0,200}(?:mismatched collective|collective mismatch|mismatch in collective)",
    ),
    Signature("nccl.ranks", "Bootstrap Root : mismatch in ", "NCCL src/bootstrap.cc"),
    Signature("nccl.ranks", "Bootstrap Root : rank ", "NCCL src/bootstrap.cc", r"already checked in"),
    Signature("net.counts", "Detected mixed local Net device counts across ranks", "NCCL src/init.cc"),
    Signature("net.counts", "has a different number of devices", _IB),
    Signature(
        "socket.stranger",
        "socketFinalize",
        _SOCKET,
        r"NCCL WARN .{0,20}socketFinalize(?:Accept|Connect).{0,100}: wrong (?:magic|(?:socket )?type)(?: (?P<one_kind>\d+) != "
        r"(?P<other_kind>\d+))?",
    ),
    Signature("socket.stranger", "socket magic mismatch", _SOCKET),
    Signature(
        "socket.local", "UDS: ", "NCCL src/misc/ipcsocket.cc", r"NCCL WARN .{0,20}UDS: (?:Binding|Receiving|Sending|Socket creation|Cannot)"
    ),
    Signature(
        "nccl.call",
        "NCCL WARN",
        "NCCL src/misc/argcheck.cc",
        r"NCCL WARN .{0,80}: (?:\w+ (?:0x[0-9a-f]+|\(nil\)) is not a valid pointer|\w+ argument is NULL|invalid (?:reduction operation|"
        r"root|type) |\w+ allocated on device \d+ mismatchs)|Invalid (?:rank|device count) requested|Invalid config \w+ attribute",
    ),
    Signature("nccl.call", "corrupted comm object detected", "NCCL src/misc/argcheck.cc"),
    Signature("nccl.proxy", "Proxy Call to rank", "NCCL src/proxy.cc", r"Proxy Call to rank (?P<of_rank>\d+) failed \((?P<call>\w+)\)"),
    Signature("nccl.proxy", "[Proxy Service", "NCCL src/proxy.cc", r"NCCL WARN .{0,20}\[Proxy Service[^]]{0,20}\]"),
    Signature(
        "nccl.proxy", "[Service thread] ", "NCCL src/proxy.cc", r"NCCL WARN .{0,20}\[Service thread\] (?:Error|Accept|Could not|Initialize)"
    ),
    Signature("nccl.proxy", "ncclProxy", "NCCL src/proxy.cc", r"NCCL WARN .{0,20}ncclProxy\w+ call to tpRank \d+.{0,60} failed"),
    Signature(
        "ib.failover",
        "NET/IB: ",
        f"{_IB} (p2p_resiliency.cc)",
        r"NET/IB: (?:Got CQE with error|Device \d+ marked as failed|Fatal error\. Detected|The error is fatal|Could not find a "
        r"replacement QP|mlx5dv_create_qp failed)",
    ),
    Signature("ib.create", "unable to allocate requests", _IB, r"NET/(?:IB|Socket) ?: unable to allocate requests"),
    Signature("host.files", "Too many open files", "Linux", r"(?i)too many open files"),
    # RCCL
    Signature("iommu.setting", 'Missing "iommu=pt"', "RCCL src/init.cc"),
    Signature("host.numa", "NUMA auto balancing enabled", "RCCL src/init.cc"),
    Signature("host.numa", "HSA_FORCE_FINE_GRAIN_PCIE=1", "RCCL src/init.cc"),
    # what NCCL returns
    Signature("nccl.remote", "remote process exited or there was a network error", "NCCL src/init.cc"),
    Signature("nccl.system", "unhandled system error", "NCCL src/init.cc"),
    Signature("nccl.system", "unhanled system error", "PyTorch 1.2 ProcessGroupNCCL.cpp"),
    Signature("nccl.cuda", "unhandled cuda error", "NCCL src/init.cc"),
    Signature("nccl.internal", "internal error - please report", "NCCL src/init.cc"),
    Signature("nccl.usage", "invalid usage (run with NCCL_DEBUG=WARN", "NCCL src/init.cc"),
    Signature("nccl.argument", "invalid argument (run with NCCL_DEBUG=WARN", "NCCL src/init.cc"),
    *(Signature(name, f"{words}, NCCL version", "NCCL src/init.cc, in a line of PyTorch") for name, words in _OLD_RESULTS),
    *(Signature(name, words, "PyTorch NCCLUtils.cpp") for name, words in _RESULTS_OF_TORCH),
)

_TORCH, _STORE, _RECORDER = "PyTorch ProcessGroupNCCL.cpp", "PyTorch TCPStore.cpp", "PyTorch torch/distributed/flight_recorder"
_SLURM, _CUDA, _GLOO, _ELASTIC = "Slurm", "CUDA", "Gloo gloo/transport", "PyTorch torch/distributed/elastic/rendezvous"

#: Kind of line, number and name of the signal.
_SIGNALS = (
    ("process.killed", "9", "SIGKILL"),
    ("process.bus", "7", "SIGBUS"),
    ("process.crashed", "(?:4|6|8|11)", "SIG(?:ILL|ABRT|FPE|SEGV)"),
)
_SIGNAL_LINES = (
    (
        "failed (exitcode: -",
        "PyTorch torch/distributed/elastic/multiprocessing/api.py",
        r"exitcode: -{0}\)(?:.{{0,20}}local_rank: (?P<local_rank>\d+))?",
    ),
    ("traceback : Signal ", "PyTorch torch/distributed/elastic/multiprocessing/errors", r"Signal {0} \({1}\)"),
    ("exits with return code = -", "DeepSpeed deepspeed/launcher/launch.py", r"return code = -{0}\b"),
    ("received at time=", "Abseil absl/debugging/failure_signal_handler.cc", r"\*\*\* {1} received at time"),
    ("Caught signal ", "UCX src/ucs/debug/debug.c", r"Caught signal {0}\b"),
    ("] Signal: ", "Open MPI opal/util/stacktrace.c", r"\] Signal: .{{0,40}}\({0}\)"),
)

#: CUDA's texts appear in the lines of every program that uses it, so they come before those of NCCL.
CUDA_SIGNATURES: tuple[Signature, ...] = (
    Signature("cuda.old_driver", "CUDA driver version is insufficient", _CUDA),
    Signature("cuda.mismatch", "river/library version mismatch", _CUDA),
    Signature("cuda.not_ready", "system not yet initialized", _CUDA),
    Signature("cuda.no_device", "no CUDA-capable device is detected", _CUDA),
    Signature("cuda.ordinal", "invalid device ordinal", _CUDA),
    Signature("cuda.architecture", "no kernel image is available", _CUDA),
    Signature("cuda.ecc", "uncorrectable ECC error", _CUDA),
    Signature("cuda.nvlink", "uncorrectable NVLink error", _CUDA),
    Signature("cuda.nvlink", "cudaErrorNvlinkUncorrectable", _CUDA),
    Signature("cuda.not_ready", "cudaErrorSystemNotReady", _CUDA),
    Signature("cuda.not_ready", "uda failure 802", _CUDA),
    Signature("cuda.busy", "busy or unavailable", _CUDA, r"CUDA-capable device\(s\) is/are busy"),
    Signature("cuda.busy", "all CUDA-capable devices are busy", _CUDA),
    Signature("cuda.old_driver", "CUDA Driver version found is", "NCCL src/misc/cudawrap.cc"),
    Signature("cuda.old_driver", "provided PTX was compiled with an unsupported toolchain", _CUDA),
    Signature("cuda.no_device", "no ROCm-capable device is detected", "ROCm"),
    Signature("cuda.no_device", "Driver Not Loaded", "NVML"),
    Signature("cuda.no_device", "The NVIDIA Driver was not detected", "NVIDIA's containers"),
    Signature("cuda.no_device", "Found no NVIDIA driver on your system", "PyTorch"),
    Signature("cuda.access", "device-side assert triggered", _CUDA),
    Signature("cuda.memory", "HIP out of memory", "PyTorch"),
    Signature("cuda.memory", "CUDA out of memory", "PyTorch"),
    Signature("cuda.memory", "out of memory", _CUDA, r"(?:Cuda failure|CUDA (?:error|failure)).{0,200}out of memory"),
    Signature("cuda.access", "illegal memory access", _CUDA),
    Signature("cuda.launch", "unspecified launch failure", _CUDA),
)

JOB_SIGNATURES: tuple[Signature, ...] = (
    # A kernel between GPUs of one host fails if they cannot access each other's memory.
    Signature("p2p.failed", "Failed: Cuda error", "vLLM csrc/custom_all_reduce.cuh", r"custom_all_reduce\.cuh"),
    Signature(
        "gpu.imex", "cuMemCreate", _CUDA, r"(?i)cuMem(?:Create|ImportFromShareableHandle|ExportToShareableHandle)\b.{0,200}not permitted"
    ),
    Signature(
        "cuda.unsupported",
        "operation not supported",
        _CUDA,
        r"(?:Cuda failure|CUDA (?:error|failure)|Cuda error).{0,60}operation not supported",
    ),
    Signature("cuda.failed", "Failed: Cuda error", "vLLM csrc", r"Failed: Cuda error (?P<error>.{1,100})"),
    Signature("cuda.failed", "Cuda failure", "NCCL src/include/checks.h", r"Cuda failure (?P<error>.{1,100})"),
    Signature("cuda.failed", "HIP failure", "RCCL src/include/checks.h", r"HIP failure:? (?P<error>.{1,100})"),
    Signature("cuda.failed", "CUDA error: ", "PyTorch", r"CUDA error: (?P<error>.{1,100})"),
    Signature("cuda.failed", "HIP error: ", "PyTorch", r"HIP error: (?P<error>.{1,100})"),
    # PyTorch
    Signature("torch.mismatch", "Detected mismatch between collectives on ranks", "PyTorch ProcessGroupWrapper.cpp"),
    Signature("torch.mismatch", "_MISMATCH", _RECORDER, r"(?:COLLECTIVE_TYPE|COLLECTIVE_DTYPE|SIZE_OR_SYNTAX)_MISMATCH"),
    Signature("torch.desync", "_MISMATCH", _RECORDER, r"COLLECTIVE_STATE_MISMATCH"),
    Signature("torch.desync", "lagging/dead/mismatched ranks", "PyTorch TraceUtils.h"),
    Signature(
        "torch.desync", "joined but didn't finish", "PyTorch TraceUtils.h", r"\[(?P<joined>[\d, -]{1,400})\] joined but didn't finish"
    ),
    Signature(
        "torch.desync",
        "but didn't join collective",
        "PyTorch TraceUtils.h",
        r"\[(?P<absent>[\d, -]{1,400})\] finished collective #\d+, but didn't join",
    ),
    Signature(
        "torch.desync",
        "are the lagging ranks that caused this timeout",
        "PyTorch TraceUtils.h",
        r"\[(?P<absent>[\d, -]{1,400})\] are the lagging",
    ),
    Signature(
        "torch.desync", "joined", "PyTorch", r"(?i)ranks? \[?(?P<absent>[\d, -]{1,400})\]? (?:haven't|have not|hasn't|has not) joined"
    ),
    Signature("torch.desync", "Not all ranks joining collective", _RECORDER),
    Signature("torch.desync", "issing ranks", _RECORDER, r"[Mm]issing ranks(?: are|:) \{(?P<absent>[\d, ]{1,400})\}"),
    Signature(
        "torch.desync",
        "failed to pass monitoredBarrier",
        "PyTorch ProcessGroupGloo.cpp",
        r"Ranks? (?P<absent>\d[\d, ]{0,400}) failed to pass",
    ),
    Signature("torch.timeout", "Timeout at ", _TORCH, r"Timeout at (?:NCCL work|collective): "),
    Signature("torch.timeout", "ollective timed out on ranks", "PyTorch"),
    Signature("torch.timeout", "WorkNCCL::checkTimeout", _TORCH),
    Signature("torch.timeout", "Exception raised from checkTimeout", _TORCH),
    Signature("torch.aborted", "Exception raised from ncclCommWatchdog", _TORCH),
    Signature("torch.init", "ncclCommInitRank", "PyTorch", r"(?i)NCCL communicator.{0,80}timed? ?out|ncclCommInitRank.{0,80}timed? ?out"),
    Signature("torch.aborted", "Some NCCL operations have failed or timed out", _TORCH),
    Signature("torch.aborted", "NCCL communicator was aborted", _TORCH),
    # After a timeout as well as after an error of NCCL, each of which has its own line.
    Signature("torch.watchdog", "detected by watchdog at work", _TORCH),
    Signature("torch.aborted", "taking the entire process down", _TORCH),
    Signature("torch.aborted", "watchdog thread terminated with exception", _TORCH),
    Signature(
        "torch.timeout",
        "Watchdog caught collective operation timeout",
        _TORCH,
        r"SeqNum=(?P<sequence>\d+), OpType=(?P<operation>\w+)(?:, NumelIn=(?P<elements>\d+))?",
    ),
    Signature("torch.timeout", "Watchdog caught collective operation timeout", _TORCH),
    Signature("torch.stuck", "watchdog got stuck", _TORCH),
    Signature("torch.init", "NCCL timeout in communicator initialization", _TORCH),
    Signature("torch.remote", "Observed flight recorder dump signal", _TORCH),
    # reached: the rank, and the last collective that it has begun
    Signature(
        "torch.remote",
        "Received a dump signal due to a collective timeout",
        _TORCH,
        r"PG ID 0 .{0,100}?Rank (?P<reached>\d+\] Received a dump signal.{0,200}?Last enqueued NCCL work: \d+)",
    ),
    Signature("torch.remote", "Received a dump signal due to a collective timeout", _TORCH),
    # A process that ended by a signal: torchrun's agent, its summary, DeepSpeed's launcher, Abseil, Open MPI and UCX write it.
    *(
        Signature(name, needle, source, pattern.format(number, word))
        for name, number, word in _SIGNALS
        for needle, source, pattern in _SIGNAL_LINES
    ),
    Signature("torch.child", "ChildFailedError", "PyTorch torchrun"),
    Signature("torch.child", "failed (exitcode: ", "PyTorch torchrun", r"failed \(exitcode: [1-9]\d{0,4}\) local_rank"),
    Signature(
        "store.clients",
        "waiting for clients",
        _STORE,
        r"Timed out after (?P<seconds>\d+) seconds waiting for clients\. (?P<there>\d+)/(?P<wanted>\d+)",
    ),
    Signature("store.connect", "client socket has timed out", _STORE),
    Signature("store.connect", "connect() timed out. Original timeout was", "PyTorch socket.cpp"),
    Signature("store.lost", "has failed to shutdown the rendezvous", _ELASTIC),
    Signature("store.lost", "has failed to send a keep-alive heartbeat to the rendezvous", _ELASTIC),
    Signature("store.connect", "RendezvousConnectionError", _ELASTIC, r"The connection to the \S+ store has failed"),
    Signature("store.clients", "RendezvousTimeoutError", _ELASTIC),
    Signature("store.wait", "DistStoreError: Socket Timeout", _STORE),
    Signature("store.wait", "Timeout waiting for key: ", _STORE, r"key: (?P<key>\S{1,100})"),
    Signature("store.lost", "Connection reset by peer", _STORE, r"RuntimeError: Connection reset by peer\s*$"),
    Signature("store.lost", "Broken pipe", _STORE, r"RuntimeError: Broken pipe\s*$"),
    # Gloo
    Signature(
        "gloo.connect",
        "connectFullMesh failed",
        f"{_GLOO}/tcp/pair.cc",
        r"connectFullMesh failed with(?:.{0,400}remote=\[(?P<peer>[0-9a-fA-F.:]{3,45})\])?",
    ),
    Signature(
        "gloo.connect", "timed out connecting: ", f"{_GLOO}/tcp/helpers.h", r"SO_ERROR(?:.{0,200}remote=\[(?P<peer>[0-9a-fA-F.:]{3,45})\])?"
    ),
    Signature(
        "torch.timeout",
        "operation to complete",
        f"{_GLOO}/tcp/unbound_buffer.cc",
        r"gloo/transport/.{0,60}Timed out waiting \d+ms for (?P<operation>recv|send) operation",
    ),
    Signature("socket.closed", "Connection closed by peer [", f"{_GLOO}/tcp/pair.cc", r"gloo/transport"),
    # Error 97 means that there is no IPv6; it then uses IPv4.
    Signature("store.retrying", "client socket has failed to connect", _STORE, r"failed to connect(?!.{0,300}errno: 97)"),
    Signature("store.port", "Address already in use", _STORE, r"^(?!.*NCCL)"),
    Signature("store.port", "EADDRINUSE", _STORE),
    Signature("store.wait", "wait timeout after", _STORE, r"wait timeout after \d+ms, keys"),
    Signature("store.lost", "recvValue failed", _STORE),
    Signature("store.lost", "flag on TCPStore", _TORCH, r'Failed to check the "?should dump"? flag on TCPStore'),
    Signature("store.lost", "recvBytes", _STORE, r"(?i)recvBytes.{0,200}(?:failed|0 bytes|Connection reset)"),
    Signature("store.lost", "sendBytes failed", _STORE),
    Signature("shm.loader", "out of shared memory", "PyTorch DataLoader"),
    Signature("shm.loader", "insufficient shared memory (shm)", "PyTorch DataLoader"),
    # nccl-tests
    Signature("tests.timeout", ": Test timeout (", "nccl-tests"),
    Signature("tests.failed", ": Test failure", "nccl-tests"),
    # Slurm
    Signature("host.memory", "oom_kill event", _SLURM),
    Signature("host.memory", "oom-kill event", _SLURM),
    Signature("host.memory", "Out Of Memory", _SLURM, r"error: (?P<host>\S+): tasks? (?P<rank>\d+)"),
    Signature("slurm.node", "DUE TO NODE FAILURE", _SLURM, r" ON (?P<host>\S+) CANCELLED"),
    Signature("slurm.node", "Node failure on", _SLURM, r"Node failure on (?P<host>\S+)"),
    Signature("slurm.launch", "Task launch for ", _SLURM, r"Task launch for \S+ failed on node (?P<host>\S+?):"),
    Signature("slurm.launch", "Application launch failed", _SLURM),
    Signature("slurm.launch", "slurm_receive_msgs", _SLURM, r"slurm_receive_msgs: \[\[(?P<host>[^\]]{1,253})\]:\d+\] failed"),
    Signature("slurm.pmix", "collective timeout seq", f"{_SLURM} src/plugins/mpi/pmix", r"pmixp_coll"),
    Signature("slurm.time", "DUE TO TIME LIMIT", _SLURM, r" ON (?P<host>\S+) CANCELLED"),
    Signature(
        "slurm.task", "srun: error:", _SLURM, r"error: (?P<host>\S+): tasks? (?P<rank>\d+)\S*: (?P<how>Killed|Segmentation|Bus|Abort)"
    ),
    Signature("slurm.aborted", "srun: error:", _SLURM, r"error: \S+: tasks? [0-9,-]+: (?:Exited|Terminated)"),
    Signature("slurm.aborted", "Job step aborted", _SLURM),
)

#: Exceptions by which a program says that it is wrong itself. Others, such as RuntimeError, also come from libraries.
_EXCEPTIONS = (
    "AssertionError", "AttributeError", "FileNotFoundError", "FloatingPointError", "ImportError", "IndexError", "IsADirectoryError",
    "JSONDecodeError", "KeyError", "ModuleNotFoundError", "NameError", "NotADirectoryError", "NotImplementedError", "RecursionError",
    "TypeError", "UnboundLocalError", "UnicodeDecodeError", "ValueError", "ZeroDivisionError",
)  # fmt: skip
#: The last ones, because a library's own text in an exception says more.
EXCEPTION_SIGNATURES: tuple[Signature, ...] = tuple(
    Signature("program.exception", name, "Python", rf"(?:^|[\s:>\]])(?:\w{{1,60}}\.){{0,8}}{name}(?:: |\s*$)") for name in _EXCEPTIONS
)
