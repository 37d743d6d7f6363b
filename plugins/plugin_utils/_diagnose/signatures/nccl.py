# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Texts of NCCL and RCCL, whose calls they name."""

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
