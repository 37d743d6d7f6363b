# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Texts of NCCL by class: the warnings of its sources that do not name a call of verbs, a socket or a file of their own.

Read from the format strings of NCCL 2.8 to 2.30, of RCCL 6.2 and of the SHARP plugin. One text of a class stands for all of it.
"""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.signature import Signature

_MARK = "NCCL WARN "


def warning(name: str, source: str, *texts: str) -> Signature:
    """The warnings of a class. texts: patterns of how they begin, after the name of a function or device at most."""
    return Signature(name, _MARK, f"NCCL src/{source}", r"NCCL WARN (?:.{0,60}?[ :])??(?:" + "|".join(texts) + ")")


#: They come before the texts of CUDA: the source file or the error itself says more than CUDA's words.
FIRST_SIGNATURES: tuple[Signature, ...] = (
    Signature(
        "p2p.failed",
        "Cuda failure",
        "NCCL src/transport/p2p.cc",
        r"transport/p2p\.cc:\d+ (?:\(\w+\) )?NCCL WARN Cuda failure (?P<error>(?:\d+ )?'invalid device ordinal')",
    ),
    Signature(
        "p2p.failed",
        "peer access is not supported",
        "CUDA",
        r"^(?!.*(?:transport/shm|misc/shmutils)\.cc:\d+ ).*?(?P<error>peer access is not supported between)",
    ),
    Signature(
        "p2p.failed", "CUDA IPC handle", "NCCL src/transport/p2p.cu", r"failed to (?:get|open) CUDA IPC handle (?:to|:) (?P<error>.{1,80})"
    ),
    Signature("cuda.ending", "driver shutting down", "CUDA"),
    Signature("cuda.ending", "context is destroyed", "CUDA", r"(?:CUDA|Cuda).{0,80}context is destroyed"),
)

NCCL_CLASSES: tuple[Signature, ...] = (
    # RDMA
    Signature(
        "qp.gid_missing",
        "ncclIbRoceGetVersionNum",
        "NCCL src/transport/net_ib/connect.cc",
        r"NET/IB: (?:open|read) failed in ncclIbRoceGetVersionNum: (?P<gid_error>.{1,60})",
    ),
    Signature(
        "ib.event",
        "async error event",
        "NCCL src/transport/net_ib.cc",
        r"NET/IB : (?P<device>[A-Za-z]\w{0,63}):\d+ Got async error event: (?P<event>.{1,60})",
    ),
    warning("ib.layers", "transport/net_ib", r"Can't (?:connect|merge) net devices with different link_layer"),
    warning(
        "ib.failover",
        "transport/net_ib/p2p_resiliency.cc",
        r"(?:Got CQE with error|Device \d+ marked as failed|The error is fatal|Could not find a (?:replacement QP|functional device)"
        r"|Maximum number of probing attempts|Cannot replace QP)",
    ),
    warning(
        "net.merge",
        "graph/topo.cc",
        r"TOPO/NET : (?:Can't|Could not|Couldn't|Only matched|Tried)",
        r"Trying to merge multiple devices together",
        r"Specified fused NIC",
        r"Fusing NET devices",
        r"Couldn't find net with name",
        r"Cannot allocate any more virtual devices",
        r"Attempted to (?:merge|connect) incompatible devices",
        r"Trying to use non-exist[ae]nt virtual device",
        r"Can't make virtual NIC",
        r"Cannot use physical device",
    ),
    # sockets
    Signature(
        "socket.broken",
        "failed : ",
        "NCCL src/misc/socket.cc",
        r"NCCL WARN .{0,80}Call to (?:recv|send)\S* (?:from|to) (?P<peer>\S{2,253}?)<\d+> failed : (?P<error>Connection timed out|"
        r"No route to host|Network is unreachable)",
    ),
    Signature("socket.closed", "Accept failed: Bad file descriptor", "NCCL src/misc/socket.cc"),
    Signature("socket.refused", "connect returned Connection refused, exceeded", "NCCL src/misc/socket.cc"),
    Signature(
        "socket.unreachable",
        "connect returned ",
        "NCCL src/misc/socket.cc",
        r"connect returned (?P<error>No route to host|Network is unreachable|Connection timed out), exceeded",
    ),
    warning(
        "nccl.address",
        "bootstrap.cc, misc/socket.cc",
        r"Invalid NCCL_COMM_ID",
        r"Net : (?:No valid|string is null|unsupported IP family|error encountered when getting address info : (?P<unresolved>.{1,60}))",
    ),
    warning("socket.no_interface", "bootstrap.cc", r"no device found matching NCCL_OOB_NET_IFNAME"),
    warning("nccl.algorithm", "enqueue.cc", r"No algorithm/protocol available"),
    warning("verbs.abi", "misc/ibvsymbols.cc", r"dlvsym failed on (?:ibv|mlx5dv)_"),
    warning(
        "shm.failed",
        "os/linux.cc",
        r"(?:Error: )?(?:Could not map|failed to create shared memory file) /dev/shm",
        r"(?:shm_open failed|failure in mmap|Unable to allocate shared memory)",
    ),
    warning(
        "socket.failed",
        "misc/socket.cc",
        r"(?:\w*[sS]ocket\w*: )?(?:Accept failed|Socket creation failed)",
        r"(?:\w*[sS]ocket\w*|connect|Connect|connect to \S+|Connect to \S+):? (?:poll\(\) )?(?:failed|returned|exceeded error retry)",
        r"Call to (?:connect|accept|bind|listen|setsockopt|getsockname|socket|poll) .{0,60}failed",
        r"exceeded error retry count",
        r"NET/Socket : socket progress error",
        r"Failed to allocate memory for adapter addresses",
    ),
    # ranks and transports
    warning("net.none", "net.cu", r"Error : Network returned 0 device"),
    warning("shm.cuda", "include/shm.h", r"failed to (?:register host buffer|get device pointer for local shmem)"),
    warning("nccl.transport", "transport.cc", r"No transport found", r"(?:Rank|\[)\s?\d+\]? (?:Error )?(?:has )?no transport for"),
    warning("topo.order", "misc/rings.cu", r"Could not create rings, falling back"),
    warning("net.counts", "init.cc", r"Detected mixed local CollNet device counts"),
    warning(
        "nccl.hosts",
        "init.cc",
        r"Failed to determine (?:intra|local|node)",
        r"nLocals = \d+ should be a diviser",
        r"localHostHash = ",
    ),
    # topology
    warning(
        "topo.broken",
        "graph/xml.cc",
        r"Attribute \S+ of node \S+ not found",
        r"Error : (?:XML parser is limited|too many XML|(?:name|value) \S+ too long)",
        r"ncclTopoGetSystemFromXml: system node not found",
        r"KV Convert to (?:str|int) :",
        r"Could not open MSCCL XML",
    ),
    warning(
        "topo.path",
        "graph/topo.cc",
        r"Could not find (?:gpu rank|net id|rev link|NIC for rank|local GPU|any local path|real path)",
        r"No path computed to go from",
        r"Rank \d+ requires NIC \d+ but",
        r"Add (?:NVLink|C2c|PCI Link|XGMI) error",
        r"(?:GetXmlFromCpu|TopoFuseXmls|getXmlFromCpu|ncclTopo\w+) ?:",
        r"ncclTopo(?:DevToRank|RankToIndex|GetDevNodes)",
        r"Error : (?:could not find CPU|ring \d+ does|ran out of room|too many Topo|tried to create too many)",
        r"Set CPU affinity : unable",
        r"(?:ARSMI_lib|rocm_smi_lib): \S+ device index not found",
    ),
)
