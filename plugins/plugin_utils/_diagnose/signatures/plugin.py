# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The texts of network plugins of NCCL, and of the transfer libraries beside it, by which errors are recognized.

Plugins: OFI (AWS), libfabric and its provider psm3, UCX and SHARP (HPC-X), and their loading. Libraries: NVSHMEM, DeepEP, Mooncake, NIXL.
"""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.signature import Signature

_OFI, _FABRIC, _SHARP = "aws-ofi-nccl src", "libfabric prov/efa", "nccl-rdma-sharp-plugins src"
_OPEN = "nccl src/plugin/plugin_open.cc"

_NVSHMEM, _IBRC, _MOONCAKE = "NVSHMEM src", "NVSHMEM src/modules/transport/ibrc/ibrc.cpp", "Mooncake mooncake-transfer-engine/src"
_PSM3 = "libfabric prov/psm3/psm3/hal_verbs/verbs_ep.c"
#: "…/transport/ibrc/ibrc.cpp:418: non-zero status: 110 ibv_modify_qp failed"; the number is an errno.
_STATUS = r"transport/ib(?:rc|gda|devx)/.{{0,40}}: non-zero status: (?P<errno>{})\b"

LIBRARY_SIGNATURES: tuple[Signature, ...] = (
    # NVSHMEM
    Signature("qp.timeout", "non-zero status: ", _IBRC, _STATUS.format(110)),
    Signature("qp.unreachable", "non-zero status: ", _IBRC, _STATUS.format("(?:101|113)")),
    Signature("qp.invalid", "non-zero status: ", _IBRC, _STATUS.format(22) + r".{0,40}ibv_modify_qp"),
    Signature("qp.refused", "ibv_modify_qp failed", _IBRC, r"non-zero status: (?P<errno>\d+) .{0,20}ibv_modify_qp failed"),
    Signature("qp.invalid", "Unable to create ah", f"{_NVSHMEM}/modules/transport/ibgda/ibgda.cpp", r"NULL value"),
    Signature(
        "nvshmem.device",
        "is not enumerated as an mlx5 device",
        f"{_NVSHMEM}/modules/transport/ibgda/ibgda.cpp",
        r"device (?P<device>\w{1,63})",
    ),
    Signature(
        "nvshmem.ibgda",
        "mlx5dv_devx_",
        f"{_NVSHMEM}/modules/transport/ibgda/ibgda.cpp",
        r"(?:NULL value|non-zero status: \d+).{0,40}(?:cannot allocate mlx5dv_devx_uar|mlx5dv_devx_query_eqn failed|mlx5dv_devx_umem\w*"
        r" failed)",
    ),
    Signature(
        "nvshmem.ibgda",
        "transport/ibgda/",
        f"{_NVSHMEM}/modules/transport/ibgda/ibgda.cpp",
        r"(?:NULL value|non-zero status: \d+).{0,20}(?:cannot (?:allocate|register) \w+ buf|ibgda_\w+ failed|cudaHostRegister|Unable to"
        r" register)",
    ),
    Signature(
        "nvshmem.transport",
        "init failed for transport: ",
        f"{_NVSHMEM}/host/transport/transport.cpp",
        r"transport: (?P<transport>\w{1,40})",
    ),
    Signature("nvshmem.transport", "Unable to initialize any transports", f"{_NVSHMEM}/host/transport/transport.cpp"),
    Signature(
        "memory.gdrcopy",
        "gdrcopy ",
        f"{_NVSHMEM}/modules/transport",
        r"non-zero status: (?P<code>\d+) .{0,20}gdrcopy (?:map|pin_buffer|get_info) failed",
    ),
    Signature("nvshmem.failed", "non-zero status: ", _NVSHMEM, r"\.(?:cpp|cu|h):\d+: non-zero status: \d+:? (?P<error>\S.{0,100})"),
    Signature("nvshmem.failed", "NULL value ", _NVSHMEM, r"\.(?:cpp|cu|h):\d+: NULL value (?P<error>\S.{0,100})"),
    Signature("nvshmem.failed", "NVSHMEM API called before NVSHMEM initialization", _NVSHMEM),
    Signature(
        "nvshmem.peermem", "nvidia_peermem detected. Skipping transport", f"{_NVSHMEM}/modules/transport/common/transport_ib_common.cpp"
    ),
    Signature(
        "nvshmem.transport", "is not accessible, exiting", f"{_NVSHMEM}/host/topo/topo.cpp", r"Peer GPU (?P<peer_gpu>\d+) is not accessible"
    ),
    # DeepEP
    Signature("deepep.timeout", "DeepEP ", "DeepEP csrc/kernels", r"DeepEP (?:error: .{0,20}|\S.{0,60} ?)timeout"),
    Signature("deepep.timeout", "DeepEP timeout ", "DeepEP csrc/kernels/utils.cuh", r"DeepEP timeout (?:for|check failed)"),
    # Mooncake
    Signature(
        "qp.timeout",
        "[Handshake] Failed to modify QP to RTR",
        f"{_MOONCAKE}/transport/rdma_transport/rdma_endpoint.cpp",
        r"Connection timed out",
    ),
    Signature(
        "ib.open",
        "ibv_open_device(",
        f"{_MOONCAKE}/transport/rdma_transport/rdma_context.cpp",
        r"ibv_open_device\((?P<device>\w{1,63})\) failed",
    ),
    Signature("qp.gid_missing", "GID is NULL, please check your GID index", f"{_MOONCAKE}/transport/rdma_transport/rdma_context.cpp"),
    Signature(
        "qp.gid_missing", "Failed to query GID ", f"{_MOONCAKE}/transport/rdma_transport/rdma_context.cpp", r"GID (?P<gid_index>\d+) on "
    ),
    Signature("ib.port_down", " has no active ports, skipping", f"{_MOONCAKE}/transport/rdma_transport/rdma_context.cpp"),
    Signature(
        "memory.refused",
        "Failed to register memory ",
        f"{_MOONCAKE}/transport/rdma_transport/rdma_context.cpp",
        r"memory 0x[0-9a-f]+(?:.{0,60}: (?P<error>[A-Z][a-z ]{1,60}))?",
    ),
    Signature(
        "qp.gid_missing",
        "No suitable GID found on",
        f"{_MOONCAKE}/transport/rdma_transport/rdma_context.cpp",
        r"found on (?P<device>[A-Za-z]\w{0,62})",
    ),
    Signature("memory.gin", "required for GPU RDMA without nvidia-peermem", f"{_MOONCAKE}/transport/rdma_transport/rdma_context.cpp"),
    Signature("ib.no_device", "RdmaTransport: No available RNIC", f"{_MOONCAKE}/transport/rdma_transport/rdma_transport.cpp"),
    Signature("mooncake.handshake", "handshake RPC failed", f"{_MOONCAKE}/transport/rdma_transport/rdma_endpoint.cpp"),
    Signature(
        "mooncake.handshake", "RDMA ready ACK", f"{_MOONCAKE}/transport/rdma_transport", r"(?:Failed to send|rejected|Timed out waiting)"
    ),
    Signature(
        "mooncake.handshake",
        "RPC call failed: ",
        "Mooncake mooncake-store/src/master_client.cpp",
        r"client\.cpp:\d+\] RPC call failed: (?P<error>.{1,80})",
    ),
    # NIXL
    Signature(
        "nixl.lost",
        "NIXL_ERR_REMOTE_DISCONNECT",
        "NIXL src/bindings/python/nixl_bindings.cpp",
        r"(?:Error|rror): .{0,20}NIXL_ERR|NIXL_ERR_REMOTE_DISCONNECT$",
    ),
    Signature("nixl.failed", "NIXL_ERR_", "NIXL src/bindings/python/nixl_bindings.cpp", r"nixl\w*Error: (?P<error>NIXL_ERR_\w{1,40})"),
    # psm3
    Signature(
        "memory.locked",
        "Cannot allocate memory",
        _PSM3,
        r"Unable to (?:create|alloc) (?:(?:send|recv|UD|RC) )?(?:CQ|SRQ|PD|QP|send buffer MR|recv buffer MR)\b.{0,100}: Cannot allocate"
        r" memory",
    ),
    Signature(
        "ib.create",
        "Unable to ",
        _PSM3,
        r"Unable to (?:create (?:send|recv) CQ|create (?:SRQ|UD QP|RC QP|AH)|alloc PD) .{0,20}on (?P<device>\w{1,63})(?::"
        r" (?P<error>.{1,60}))?",
    ),
)

PLUGIN_SIGNATURES: tuple[Signature, ...] = (
    *LIBRARY_SIGNATURES,
    # OFI
    Signature(
        "ofi.none",
        "NET/OFI",
        _OFI,
        r"Only EFA provider is supported|"
        r"No eligible providers were found|Unable to find a protocol that worked|Unable to find plugin protocol|Insufficient Libfabric "
        r"devices found|Could(?: not|n't) find any optimal provider|"
        r"No viable endpoint found for TCP|Unexpected group size|fi_getinfo\S* (?:returned|failed)|Call to fi_getinfo.{0,40}failed|Unable "
        r"to find provider|requires at least libfabric version",
        info=True,
    ),
    Signature("gdr.disabled", "NET/OFI", _OFI, r"GDR (?:disabled|not supported)|[dD]isabling GDR", info=True),
    Signature("ofi.peer", "insert remote address into address vector", _OFI, r"NET/OFI .{0,20}Unable to insert"),
    Signature(
        "ofi.memory",
        "NET/OFI",
        _OFI,
        r"(?i)NCCL WARN .{0,20}NET/OFI .{0,120}(?:register|registration|\bMR\b|fi_mr_).{0,200}(?P<error>RC: -?\d+.{0,80}|fail.{0,80}|$)",
    ),
    Signature(
        "ofi.transfer",
        "NET/OFI",
        _OFI,
        r"completed with error(?:\.|:|$)(?: RC: (?P<code>-?\d+)\.)?(?:.{0,60}?Error: \d* ?\(?(?P<error>[^.()]{1,100}))?",
    ),
    Signature(
        "ofi.open",
        "NET/OFI",
        _OFI,
        r"(?:Couldn't|Could not|Unable to|Failed to) (?:open|create|allocate|bind|enable|get|set|initialize|capture) .{0,200}|Creating "
        r"new endpoint for domain .{0,40}failed|Initializing (?:plugin|rail \d+|control rail \d+|a new domain.{0,60}) failed|Failed to "
        r"initialize \w+ protocol|CUDA initialization failed",
    ),
    Signature(
        "ofi.failed",
        "NET/OFI",
        _OFI,
        r"(?i)NCCL WARN .{0,20}NET/OFI .{0,200}(?:fail|error|unable|could not|couldn't|invalid|abort|"
        r"exception|incorrect|not (?:supported|available|found|initialized|compiled)|does not support|out of range|is full|"
        r"no MR keys|unexpected|NULL)",
    ),
    Signature(
        "ofi.transfer",
        "libfabric:",
        _FABRIC,
        r"efa:.{0,80}(?:err: \d+, message: |[Uu]nresponsive receiver|[Uu]nreachable remote)(?P<error>.{0,80})",
    ),
    Signature("ofi.transfer", "Unresponsive receiver", _FABRIC),
    Signature("ofi.transfer", " prov_errno: ", "libfabric prov/efa", r"err: (?P<error>.{1,60}?) prov_errno: "),
    Signature(
        "ofi.open",
        "libfabric:",
        _FABRIC,
        r"libfabric:.{0,120}(?:Unable to|Failed to|failed to|could not) (?:open|create|allocate|initialize|construct)",
    ),
    Signature(
        "ofi.provider",
        "fi_getinfo",
        "libfabric",
        r"^(?!.*(?:\befa\b|EFA|NET/OFI))(?:.*(?i:failed|error|returned -\d+|unable).{0,60}fi_getinfo|.*fi_getinfo.{0,60}"
        r"(?:failed|returned -\d+|-61))",
    ),
    Signature(
        "ofi.none",
        "fi_getinfo",
        "libfabric",
        r"(?i)(?:failed|error|returned -\d+|unable).{0,60}fi_getinfo|fi_getinfo.{0,60}(?:failed|returned -\d+|-61)",
    ),
    # UCX and SHARP
    Signature("ucx.failed", "Failed: UCX error", f"{_SHARP}/ucx_plugin.c"),
    Signature("ucx.failed", "NET/UCX", f"{_SHARP}/ucx_plugin.c", r"NCCL WARN .{0,40}NET/UCX"),
    Signature("sharp.unavailable", "SHARP coll init error", f"{_SHARP}/sharp_plugin.c"),
    Signature("sharp.unavailable", "sharp_coll_caps_query failed", f"{_SHARP}/sharp_plugin.c"),
    Signature(
        "sharp.unavailable",
        "SHArP daemon",
        "libsharp",
        r"(?i)(?:fail|error|unable|cannot).{0,80}SHArP daemon|SHArP daemon.{0,80}(?i:fail|error)",
    ),
    Signature("sharp.unavailable", "sharp_connect_tree", "libsharp", r"(?:ERROR|error).{0,60}sharp_connect_tree|sharp_connect_tree failed"),
    Signature("sharp.unavailable", "MAD response status", "libsharp", r"\[error\].{0,80}MAD response status"),
    Signature("sharp.unavailable", "sharp_coll_init", "libsharp", r"(?i)(?:fail|error|unable|returned -\d+)"),
    Signature(
        "sharp.failed",
        "SHARP ",
        f"{_SHARP}/sharp_plugin.c",
        r"NCCL WARN .{0,20}SHARP (?:\w+ )?(?:allreduce|Allgather|reduce_scat?ter|reduce_scatter|group create|regmr|deregmr|: unable)",
    ),
    # loading
    Signature("net.plugin_version", "incompatible", _OPEN, r"(?i)plugin.{0,60}incompatible|incompatible.{0,60}plugin", info=True),
    Signature(
        "net.plugin_old",
        "ncclNetPlugin symbol",
        "NCCL src/plugin/net.cc",
        r"Failed to find ncclNetPlugin symbol \((?:>= v\d+|v\d+ or v\d+)\)",
        info=True,
    ),
    Signature(
        "net.plugin",
        "NET/Plugin",
        "NCCL src/net.cc",
        r"NET/Plugin ?: (?:Plugin load (?:\([^)]{0,200}\) )?returned -?\d+ ?: |dlerror=)(?P<library>\S{1,200}?): "
        r"(?P<error>(?!cannot open shared object file).{1,200})",
        info=True,
    ),
    Signature(
        "net.plugin",
        "NET/Plugin",
        "NCCL src/net.cc",
        r"NET/Plugin ?: (?:Plugin load (?:\([^)]{0,200}\) )?returned -?\d+ ?: |dlerror=)(?P<library>(?!libnccl-net)\S{1,200}?): "
        r"(?P<error>cannot open shared object file.{0,100})",
        info=True,
    ),
    Signature(
        "net.plugin",
        "undefined symbol",
        "the dynamic linker",
        r"(?P<library>\S*libnccl-net\S*): (?P<error>undefined symbol: .{1,100})",
        info=True,
    ),
)
