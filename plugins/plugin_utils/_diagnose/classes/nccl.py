# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Texts of NCCL by class: the warnings of its sources that do not name a call of verbs, a socket or a file of their own.

Read from the format strings of NCCL 2.8 to 2.30, of RCCL 6.2 and of the SHARP plugin. One text of a class stands for all of it.
"""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.signature import Signature

_MARK = "NCCL WARN "


def _warning(name: str, source: str, *texts: str) -> Signature:
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
    _warning("ib.layers", "transport/net_ib", r"Can't (?:connect|merge) net devices with different link_layer"),
    _warning(
        "ib.failover",
        "transport/net_ib/p2p_resiliency.cc",
        r"(?:Got CQE with error|Device \d+ marked as failed|The error is fatal|Could not find a (?:replacement QP|functional device)"
        r"|Maximum number of probing attempts|Cannot replace QP)",
    ),
    _warning(
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
    _warning(
        "nccl.address",
        "bootstrap.cc, misc/socket.cc",
        r"Invalid NCCL_COMM_ID",
        r"Net : (?:No valid|string is null|unsupported IP family|error encountered when getting address info : (?P<unresolved>.{1,60}))",
    ),
    _warning("socket.no_interface", "bootstrap.cc", r"no device found matching NCCL_OOB_NET_IFNAME"),
    _warning("nccl.algorithm", "enqueue.cc", r"No algorithm/protocol available"),
    _warning("verbs.abi", "misc/ibvsymbols.cc", r"dlvsym failed on (?:ibv|mlx5dv)_"),
    _warning("shm.failed", "os/linux.cc", r"(?:Error: )?(?:Could not map|failed to create shared memory file) /dev/shm"),
    _warning(
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
    _warning("nccl.transport", "transport.cc", r"No transport found", r"(?:Rank|\[)\s?\d+\]? (?:Error )?(?:has )?no transport for"),
    _warning("net.counts", "init.cc", r"Detected mixed local CollNet device counts"),
    _warning(
        "nccl.hosts",
        "init.cc",
        r"Failed to determine (?:intra|local|node)",
        r"nLocals = \d+ should be a diviser",
        r"localHostHash = ",
    ),
    # topology
    _warning(
        "topo.broken",
        "graph/xml.cc",
        r"Attribute \S+ of node \S+ not found",
        r"Error : (?:XML parser is limited|too many XML|(?:name|value) \S+ too long)",
        r"ncclTopoGetSystemFromXml: system node not found",
        r"KV Convert to (?:str|int) :",
        r"Could not open MSCCL XML",
    ),
    _warning(
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
    # versions
    Signature(
        "nccl.library",
        "pplication was compiled with",
        "NCCL src/dev_runtime.cc",
        r"(?:compiled with NCCL version \S+, but is running|compiled with too old version of NCCL)",
    ),
    _warning(
        "cuda.old_driver",
        "enqueue.cc, misc/cudawrap.cc",
        r"The installed CUDA driver is older",
        r"One-sided RMA requires CUDA driver",
        r"NCCL does not support this CUDA version",
        r"(?:CUMEM|CUMEM Host is) not supported prior",
        r"CUDA some PFN functions not found",
        r"ROCr Driver version found is",
    ),
    _warning("cuda.symbol", "misc/cudawrap.cc", r"Failed to find (?:CUDA|ROCm runtime) library", r"Failed to load ROCr missing symbol"),
    Signature(
        "nccl.kernels",
        "axSharedMem",
        "NCCL src/enqueue.cc",
        r"(?:ncclMaxSharedMem|dynamic smem) \d+ exceeds device/fn maxSharedMem",
        info=True,
    ),
    # GPUs
    _warning("gpu.imex", "mnnvl.cc", r"MNNVL \(cliqueSize \d+\) is available but not", r"MNNVL is not supported on this system"),
    _warning("gpu.nvml", "misc/nvmlwrap.cc", r"nvmlDeviceGetCount\(\) reported more devices", r"NVML failure ", r"ROCm SMI init failure"),
    _warning(
        "gpu.symmetric",
        "dev_runtime.cc",
        r"Communicator does not support symmetric memory",
        r"(?:Multicast support|Multimem pointer) requested",
        r"(?:VA represented by|Segment \d+ has unsupported location)",
        r"Error: no symmetric kernel available",
        r"Window registration of addresses that span",
    ),
    _warning(
        "gin.unavailable",
        "gin/gin_host.cc",
        r"GIN (?:not supported|is disabled|strong signals|VA signals|Proxy|plugin|Error|only|requires)",
        r"(?:GIN|RMA)-capable device type mismatch",
        r"No (?:GIN|RMA)-capable devices found",
        r"No network devices that support GDAKI",
        r"User requested GIN",
        r"(?:RMA|One sided RMA:? ?\w*).{0,20} (?:is )?not supported",
        r"DOCA (?:failure|Error)",
        r"gin GDAKI: ",
        r"(?:Elastic|Invalid) GIN",
        r"(?:RMA|Rma|Gin) (?:v13|proxy|Proxy|CE|connect)\b",
        r"(?:No shared contexts are available|Requested number of exclusive GIN)",
    ),
    _warning(
        "memory.gdrcopy",
        "misc/gdrwrap.cc",
        r"GDRCOPY (?:failure|lib wrapper)",
        r"gdr_\w+ not available",
        r"Failed to open libgdrapi",
        r"(?:dlsym|ncclOsDlsym) failed on gdr_",
        r"GIN requires GDRCopy",
    ),
    # memory
    _warning("nccl.cuda", "include/alloc.h", r"Failed to CUDA (?:malloc|calloc|host alloc)"),
    _warning(
        "host.memory", "include/alloc.h", r"Failed to malloc \d+ bytes", r"Unrecoverable error detected: malloc", r"Allocation failed"
    ),
    # settings
    _warning(
        "nccl.forced",
        "init.cc, transport",
        r"OOO RQ is force enabled",
        r"NCCL_NVLS_ENABLE has been set to",
        r"CC On, Multi-GPU CC Off",
        r"Resiliency (?:requires|is enabled)",
        r"MSCCL",
        r"(?:Memory|MemManager: )?\w* ?[sS]uspend not supported",
    ),
    _warning(
        "nccl.setting",
        "init.cc, graph/tuning.cc",
        r".{0,80}(?:is being ignored|, ignoring|cap it to|set it to|set both to|[sS]etting (?:it )?to|[lL]imiting (?:value )?to|"
        r"defaulting to|falling back to graphStreamOrdering|Unsetting POLICY|using point-to-point network instead|using \S+ instead|"
        r"disabling CollNet|Disabling clique|so disabling|set by environment is ignored|Continue without profiler|not dumping|Skipping "
        r"nvlink|, disabling\.|using default)",
        r"(?:Invalid|Unrecognized) (?:element|prefix) token",
        r"NET/IB: Ip address",
        r"CollNet does not support LL",
        r"PARAM: ",
        r'Missing "amd_iommu=on"',
    ),
    # the program
    _warning(
        "nccl.call",
        "enqueue.cc, group.cc, init.cc",
        r"(?:Invalid|Invalig) (?:config|arguments?|handle|NCCL_COMM_BLOCKING|intra-node|device|regBufType|key size)",
        r"invalid (?:device count|pointer)",
        r"improper usage of ncclCommInitRank",
        r"Attempt to use communicator before",
        r"comm \S+ has already been destroyed",
        r"communicator was revoked",
        r"ncclGroupEnd: not in a group call",
        r"(?:Blocking and nonblocking|Either none or all|Illegal to have some) communicators",
        r"Error : mixing different streams",
        r"Streams given to a communicator",
        r"Data type supplied to user-created",
        r"ncclRedOpDestroy",
        r"(?:reduction|Reduction) operation \d+ unknown",
        r"Trying to (?:recv|send) (?:to|from) self",
        r"nccl(?:CommGrow|PutSignal|WaitSignal|Signal|CommSplit|Config_t|SimInfo_t|DevrWorldToLsaRank)",
        r"FP8 reduction support begins",
        r"(?:Context|Signal index|Flags) \d+ is invalid",
        r"Cannot (?:create device communicator|get communicator properties|create worldGinBarrier)",
        r"window (?:address|has a NULL)",
        r"MemManager: (?:Already|Not in)",
        r"rank \d+ exceeds ndev",
        r"(?:Split shares resources|Comm config netName|Window address must be|ncclCommGetUniqueId should not)",
        r"(?:Too many (?:aggregated|async) operations|Trying to launch too many)",
        r"NCCL cannot (?:be captured|use)",
        r"Stream is not being captured",
    ),
    # what follows from an earlier failure
    _warning(
        "nccl.internal",
        "proxy.cc, bootstrap.cc, transport",
        r"communicator encountered a fatal error",
        r"(?:hostStreamPlanCallback\(\)|ncclAsyncJobComplete|commReclaim|commDestroySync|ncclProxyStop|asyncJobLaunch)",
        r"Failure in host setup",
        r"Error waiting for pthread_join",
        r"Thread (?:creation|join) failed",
        r"ncclSocket\w+: (?:pass NULL|wrong socket state|socket state|unexpected|invalid|file descriptor)",
        r"(?:send|recv)ProxyConnect: re(?:q|sp)Size",
        r"(?:Active list|Free list|List) loop",
        r"Proxy (?:append|response)",
        r"(?:Attempting to dequeue|Could not find pool|Couldn't find opId|Storing response|Mismatched response)",
        r"Failed to (?:set|create) CUDA (?:context|device) on device",
        r"\[Proxy (?:Progress|service)\]",
        r"\[Rem Allocator\]",
        r"ncclProxy(?:Connect|Client\w*)",
        r"Unexpected connections are not empty",
        r"NET/IB: (?:ncclIbI(?:send|recv)\(\)|sendReq|could not find mr|wc->opcode)",
        r"(?:lib wrapper|GDRCOPY lib wrapper) not initialized",
        r"MemManager: ",
        r"rank \d+ (?:failed to (?:NET|NVLS|IPC)|deregister|invalid IPC)",
        r"fatal error - RAS thread",
        r"(?:NET/IB: )?(?:\S{1,40}: )?(?:Receiver|Sender) expected a '",
        r"(?:NET/IB: )?(?:\S{1,40}: )?(?:Unknown completion|Invalid (?:request index|wr_id)|Unrecognized request)",
        r"(?:NET/IB: )?(?:\S{1,40}: )?Unsupported (?:completion|type)",
        r"(?:NET/IB: )?(?:\S{1,40}: )?Attempting to (?:free|initiate|repost)",
        r"Sendrecv (?:plan|schedule) not aligned",
        r"(?:P2p schedule creation has bugs|Internal error : )",
        r"(?:Unable to post incomplete|Element \d+ of pool|Inactive op has|P2p operation is neither)",
        r"Listencomm in unknown state",
        r"Unknown (?:pattern|collnet|device code|netDevs)",
        r"(?:Output object|Object|Intrusive address map)\b.{0,30} (?:is NULL|returned null)",
        r"trying to access the number of devices",
    ),
)
