# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""NCCL's variables as an explanation words them: default and meaning, as of NCCL 2.30; and names that NCCL does not read."""

from __future__ import annotations

import difflib
import re

CHOICE = "NCCL's choice"
#: Always told of: name → what holds if nobody sets it, and what it does.
MAIN: dict[str, tuple[str, str]] = {
    "NCCL_DEBUG": ("not set", "what it prints: VERSION, WARN, INFO, TRACE; INFO is for a check, not for every job"),
    "NCCL_DEBUG_SUBSYS": ("INIT,BOOTSTRAP,ENV", "which parts print with NCCL_DEBUG=INFO; NET shows the path of each channel"),
    "NCCL_IB_DISABLE": ("0", "1 leaves RDMA alone: everything goes by TCP"),
    "NCCL_IB_HCA": ("every ACTIVE port", "RDMA devices and ports to use; = exactly these, ^ all but these, else prefixes"),
    "NCCL_NET_GDR_LEVEL": ("PXB; P2C with C2C", "how far apart NIC and GPU may be for GPUDirect RDMA; LOC or 0: never"),
    "NCCL_SOCKET_IFNAME": (CHOICE, "interfaces of bootstrap and TCP, needed with RDMA too; = exact, ^ all but, else prefixes"),
    "NCCL_ALGO": (CHOICE, "forces algorithms: Ring, Tree, CollnetDirect, CollnetChain, NVLS, NVLSTree, PAT; for tests"),
    "NCCL_PROTO": (CHOICE, "forces protocols: LL, LL128, Simple; for tests, as LL128 by force can corrupt data"),
    "NCCL_NTHREADS": ("512", "threads of a block: 64, 128, 256, 512; for tests"),
    "NCCL_P2P_LEVEL": (CHOICE, "how far apart two GPUs may be for direct access; for tests"),
    "NCCL_SHM_DISABLE": ("0", "1 leaves shared memory between processes alone; for tests"),
    "NCCL_BUFFSIZE": ("4194304", "bytes of the buffer of a channel and peer, a power of two; for tests"),
    "NCCL_GRAPH_DUMP_FILE": ("not set", "file to write the chosen graph to"),
}
#: Names of guides and scripts that no version of NCCL reads, or none since long: name → why, and what to use.
DEAD = {
    "NCCL_NCHUNKS_COARSE": "no version of NCCL has ever had it",
    "NCCL_SHARP_ENABLE": "no version of NCCL has ever had it: SHARP takes NCCL_COLLNET_ENABLE=1 and its network plugin",
    "NCCL_IB_CUDA_SUPPORT": "removed in NCCL 2.4: NCCL_NET_GDR_LEVEL took its place",
    "NCCL_IB_GDR_LEVEL": "NCCL 2.4 has renamed it to NCCL_NET_GDR_LEVEL",
}
#: Those of DEAD that are always told of, because the scripts that this replaces print them.
NEVER_THERE = ("NCCL_NCHUNKS_COARSE", "NCCL_SHARP_ENABLE")
#: Told of where something sets them.
OTHERS: dict[str, tuple[str, str]] = {
    "NCCL_COLLNET_ENABLE": ("0", "1 uses reduction in the network (SHARP), which needs its plugin"),
    "NCCL_COLLNET_NODE_THRESHOLD": ("2", "hosts from which on reduction in the network is used"),
    "NCCL_COMM_ID": ("not set", "address and port where the ranks meet"),
    "NCCL_CONF_FILE": ("not set", "in the environment only: file to read instead of $HOME/.nccl.conf"),
    "NCCL_CROSS_NIC": ("2", "whether a ring may change NICs between hosts: 0 for rails that do not meet, 1, 2 by choice"),
    "NCCL_CUMEM_ENABLE": (CHOICE, "whether memory is taken by CUDA's virtual memory functions"),
    "NCCL_CUMEM_HOST_ENABLE": (CHOICE, "the same for memory of the host; 0 in containers without NUMA rights"),
    "NCCL_DEBUG_FILE": ("standard output", "where it prints; %h is the host, %p the process"),
    "NCCL_DEBUG_TIMESTAMP_FORMAT": ("[%F %T]", "how a time before a line looks"),
    "NCCL_DEBUG_TIMESTAMP_LEVELS": ("WARN", "which lines have a time before them"),
    "NCCL_DMABUF_ENABLE": ("1", "0 keeps GPUDirect RDMA off DMA-BUF, so that it needs nvidia_peermem"),
    "NCCL_GDRCOPY_ENABLE": ("0", "1 uses GDRCopy, which needs its module gdrdrv"),
    "NCCL_GIN_IB_TC": ("-1", "traffic class of queue pairs that GPUs drive"),
    "NCCL_GRAPH_FILE": ("not set", "file to take the graph from; for tests"),
    "NCCL_IBVERBS_LIB": ("libibverbs.so.1", "the library of verbs"),
    "NCCL_IB_ADAPTIVE_ROUTING": ("1 on InfiniBand, 0 on RoCE", "use queue pairs that adaptive routing may reorder"),
    "NCCL_IB_ADDR_FAMILY": ("AF_INET", "family of the GID's address; dead if NCCL_IB_GID_INDEX is set"),
    "NCCL_IB_ADDR_RANGE": ("any", "subnet of the GID's address; dead if NCCL_IB_GID_INDEX is set"),
    "NCCL_IB_AR_THRESHOLD": ("8192", "bytes from which on messages may be reordered"),
    "NCCL_IB_DATA_DIRECT": ("1", "use the direct path of cards that have one"),
    "NCCL_IB_DEVICE_PCI_ORDER": ("1", "order devices by PCI address"),
    "NCCL_IB_ECE_ENABLE": ("1", "let both ends agree on enhanced connections"),
    "NCCL_IB_FIFO_TC": ("-1: NCCL_IB_TC", "traffic class of control messages"),
    "NCCL_IB_GID_INDEX": ("-1: found; 0 before 2.21", "index of the GID on every port; not needed from 2.21 on"),
    "NCCL_IB_MERGE_NICS": ("1", "take the ports of one card for one NIC"),
    "NCCL_IB_MERGE_VFS": ("1", "the same for virtual functions"),
    "NCCL_IB_OOO_RQ": ("0", "1 receives out of order in hardware"),
    "NCCL_IB_PCI_RELAXED_ORDERING": ("2: if there", "relaxed ordering on PCIe; 1 helps virtual machines"),
    "NCCL_IB_PKEY": ("0", "index in the table of P_Keys, not the key"),
    "NCCL_IB_QPS_PER_CONNECTION": ("1", "queue pairs of a connection, for more paths through a fabric that hashes"),
    "NCCL_IB_RESILIENCY_PORT_FAILOVER": ("0", "1 goes on by another port if one fails"),
    "NCCL_IB_RESILIENCY_PORT_RECOVERY": ("0", "1 goes back to a port that works again"),
    "NCCL_IB_RETRY_CNT": ("7", "how often a queue pair sends again before it gives up"),
    "NCCL_IB_RETURN_ASYNC_EVENTS": ("1", "let errors of a device end the job"),
    "NCCL_IB_ROCE_VERSION_NUM": ("2", "version of RoCE; dead if NCCL_IB_GID_INDEX is set"),
    "NCCL_IB_SL": ("-1: 0", "service level; the priority in a VLAN tag"),
    "NCCL_IB_SPLIT_DATA_ON_QPS": ("0", "1 spreads each message over the queue pairs"),
    "NCCL_IB_SUBNET_AWARE_ROUTING": ("0", "1 pairs ports of one subnet, for a mesh of RoCE"),
    "NCCL_IB_SUBNET_PREFIX_LEN": ("24", "the length of those subnets' prefix"),
    "NCCL_IB_TC": ("-1: 0", "traffic class: DSCP times 4, and 2 for ECN, as rdma_roce says"),
    "NCCL_IB_TIMEOUT": ("20", "a queue pair waits 4.096 µs × 2^n before it sends again"),
    "NCCL_IB_WARN_RAIL_LOCAL": ("0", "1 warns of a connection from one rail to another"),
    "NCCL_IGNORE_CPU_AFFINITY": ("0", "1 binds by GPU, whatever the job's own binding is"),
    "NCCL_MAX_CTAS": (CHOICE, "most blocks on a GPU; it caps, and adds nothing"),
    "NCCL_MAX_NCHANNELS": (CHOICE, "old name of NCCL_MAX_CTAS"),
    "NCCL_MAX_P2P_NCHANNELS": (CHOICE, "most channels of a send to one peer"),
    "NCCL_MAX_NRINGS": (CHOICE, "oldest name of NCCL_MAX_CTAS; dead if NCCL_MAX_NCHANNELS is set"),
    "NCCL_MIN_CTAS": (CHOICE, "fewest blocks on a GPU"),
    "NCCL_MIN_NCHANNELS": (CHOICE, "old name of NCCL_MIN_CTAS"),
    "NCCL_MIN_P2P_NCHANNELS": (CHOICE, "fewest channels of a send to one peer"),
    "NCCL_MIN_NRINGS": (CHOICE, "oldest name of NCCL_MIN_CTAS; dead if NCCL_MIN_NCHANNELS is set"),
    "NCCL_MNNVL_ENABLE": ("2: if there", "NVLink between hosts"),
    "NCCL_NET": (CHOICE, "which network to use: IB, Socket, or a plugin's name"),
    "NCCL_NETDEVS_POLICY": ("AUTO", "how many NICs a GPU uses: AUTO, MAX:n, ALL"),
    "NCCL_NET_FORCE_MERGE": ("not set", "ports to take for one NIC"),
    "NCCL_NET_GDR_C2C": ("1", "GPUDirect RDMA past a CPU that is joined by C2C"),
    "NCCL_NET_GDR_READ": ("-2: by platform", "send from GPU memory directly"),
    "NCCL_NET_MERGE_LEVEL": ("PORT", "how far apart ports may be that are taken for one NIC; LOC: none"),
    "NCCL_NET_MERGE_POLICY": ("ALL", "which ports may be taken for one NIC: ALL, or those of one RAIL"),
    "NCCL_NET_PLUGIN": ("libnccl-net.so", "network plugin"),
    "NCCL_NSOCKS_PERTHREAD": ("by platform", "TCP connections of a thread; 64 in all threads at most"),
    "NCCL_NVB_DISABLE": ("0", "1 reaches no GPU over NVLink by way of another"),
    "NCCL_NVTX_DISABLE": ("0", "1 leaves out the ranges that profilers show"),
    "NCCL_NVLS_ENABLE": ("2: if there", "reduction in NVSwitch (NVLink SHARP)"),
    "NCCL_OOB_NET_ENABLE": ("0", "1 lets the bootstrap use the network of the data"),
    "NCCL_OOB_NET_IFNAME": (CHOICE, "devices for that"),
    "NCCL_P2P_DISABLE": ("0", "1 forbids direct access between GPUs, whatever NCCL_P2P_LEVEL says; for tests"),
    "NCCL_P2P_PXN_LEVEL": ("2", "when to reach a NIC by way of another GPU"),
    "NCCL_PROFILER_PLUGIN": ("not set", "profiler plugin"),
    "NCCL_PXN_C2C": ("1", "reach a NIC by way of another GPU over C2C"),
    "NCCL_PXN_DISABLE": ("0", "1 reaches no NIC by way of another GPU"),
    "NCCL_RAS_ADDR": ("localhost:28028", "where its status is asked for; other users of the host need another port"),
    "NCCL_RAS_ENABLE": ("1", "whether its status can be asked for (ncclras)"),
    "NCCL_RUNTIME_CONNECT": ("1", "0 connects at the start and not when first needed"),
    "NCCL_SOCKET_FAMILY": (CHOICE, "AF_INET or AF_INET6"),
    "NCCL_SOCKET_NTHREADS": ("by platform", "threads of a TCP connection"),
    "NCCL_SOCKET_RETRY_CNT": ("34", "how often a TCP connection is tried"),
    "NCCL_SOCKET_RETRY_SLEEP_MSEC": ("100", "pause before it is tried again, longer each time"),
    "NCCL_TOPO_DUMP_FILE": ("not set", "file to write the topology to"),
    "NCCL_TOPO_FILE": ("not set", "topology to believe instead of what is found; for virtual machines and containers"),
    "NCCL_TUNER_PLUGIN": ("not set", "tuner plugin"),
}
#: Variables that take a distance; case counts.
LEVELS = ("LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS")
#: By the number that stood for each; a greater one is the last.
OLD_LEVELS = ("LOC", "PIX", "PXB", "PHB", "SYS")
_DIGITS = re.compile(r"[0-9]{1,9}")
WITH_LEVEL = ("NCCL_NET_GDR_LEVEL", "NCCL_P2P_LEVEL")


def default(name: str) -> str:
    """What holds if nobody sets a variable."""
    return MAIN[name][0] if name in MAIN else OTHERS[name][0] if name in OTHERS else "not set"


def meaning(name: str) -> str:
    """What a variable does, in a few words."""
    known = MAIN.get(name) or OTHERS.get(name)
    if known is not None:
        return known[1]
    if name in DEAD:
        return "nothing"
    return "not known here; what NCCL does not know either has no effect" if name.startswith("NCCL_") else "none of NCCL's variables"


def name_trouble(name: str) -> str:
    """Why a variable that somebody sets has no effect: "" for one that has, and for one that is not known here and like no other."""
    if name in DEAD:
        return DEAD[name]
    near = difflib.get_close_matches(name, [*MAIN, *OTHERS], n=1, cutoff=0.9) if name.startswith("NCCL_") else []
    return f"is {near[0]} meant?" if near and near[0] != name else ""


def value_trouble(name: str, value: str) -> str:
    """Why a value has no effect; "" if it has, or is not looked at."""
    if name not in WITH_LEVEL or value in LEVELS or not value or _DIGITS.fullmatch(value):
        return ""
    return f"NCCL knows no such level and takes its default; levels are {', '.join(LEVELS)}"


def value_words(name: str, value: str) -> str:
    """What a value of the old spelling means; "" for any other."""
    if name not in WITH_LEVEL or not _DIGITS.fullmatch(value):
        return ""
    return f"{value} is the old spelling of {OLD_LEVELS[min(int(value), len(OLD_LEVELS) - 1)]}"
