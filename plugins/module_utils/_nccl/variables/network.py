# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""NCCL's variables for networks as a whole, GPUDirect, TCP, and sending from GPUs (GIN, RMA).

A part of the table of _nccl_variables, which names the sources of its facts.
"""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.module_utils._nccl.variables.model import (
    DEVPOLICY,
    INTERFACES,
    LEVEL,
    Variable,
    choice,
    integer,
    switch,
    text,
)

VARIABLES = (
    switch("NCCL_COLLNET_ENABLE", "0", "1 uses reduction in the network (SHARP), which needs its plugin", since="2.6.4"),
    integer("NCCL_COLLNET_NODE_THRESHOLD", 1, None, "2", "hosts from which on reduction in the network is used", since="2.9.9"),
    text("NCCL_COMM_ID", "not set", "address and port where the ranks meet"),
    integer(
        "NCCL_CROSS_NIC",
        0,
        2,
        "2",
        "whether a ring may change NICs between hosts: 0 for rails that do not meet, 1, 2 by choice",
        since="2.5.6",
    ),
    integer("NCCL_DIAGNOSTICS_IB_BW_TIMEOUT", 0, None, "5", "seconds that the check of the bandwidth may take", since="2.32.3"),
    switch(
        "NCCL_DMABUF_ENABLE", "1", "0 keeps GPUDirect RDMA off DMA-BUF, so that it needs nvidia_peermem", since="2.13.4", debugging=True
    ),
    switch("NCCL_GDAKI_FORCE_MCST", "0", "for GPUs that drive a NIC: order of their writes by force", since="2.32.3"),
    integer("NCCL_GDAKI_USE_RELIABLE_DB", 0, None, "0", "how GPUs ring the doorbell of a NIC", since="2.29.7"),
    switch("NCCL_GDRCOPY_ENABLE", "0", "1 uses GDRCopy, which needs its module gdrdrv", since="2.9.6"),
    switch("NCCL_GDRCOPY_FIFO_ENABLE", "1", "with GDRCopy: keep the queues of the proxy in GPU memory", since="2.9.6"),
    switch("NCCL_GDRCOPY_FLUSH_ENABLE", "0", "with GDRCopy: 1 flushes received data by a read of the CPU", since="2.9.6"),
    switch("NCCL_GDRCOPY_SYNC_ENABLE", "1", "with GDRCopy: keep the counters between GPU and proxy in GPU memory", since="2.12.7"),
    switch("NCCL_GDRCOPY_USE_INTERNAL_DMABUF", "0", "with GDRCopy: 1 maps GPU memory by DMA-BUF", since="2.31.2"),
    switch("NCCL_GIN_ENABLE", "1", "0 lets no GPU drive a NIC by itself", since="2.28.7"),
    integer(
        "NCCL_GIN_ERROR_QUERY_SEC", 0, None, "10", "seconds between looks at the errors of queue pairs that GPUs drive", since="2.28.7"
    ),
    switch("NCCL_GIN_GDAKI_LAG_AWARE_DISABLE", "0", "1 takes no notice of bonded ports where GPUs drive a NIC", since="2.32.3"),
    integer(
        "NCCL_GIN_GDAKI_MAX_DEST_RD_ATOMIC",
        -2,
        None,
        "-2: NCCL's choice",
        "reads and atomics that such a queue pair answers at a time",
        since="2.30.3",
    ),
    integer(
        "NCCL_GIN_GDAKI_MAX_QP_RD_ATOMIC",
        -2,
        None,
        "-2: NCCL's choice",
        "reads and atomics that such a queue pair has under way",
        since="2.30.3",
    ),
    integer("NCCL_GIN_GDAKI_NIC_HANDLER", 0, None, "0: NCCL's choice", "who rings the doorbell of such a queue pair", since="2.28.7"),
    integer("NCCL_GIN_GDAKI_QP_DEPTH", 1, None, "128", "requests that such a queue pair holds", since="2.28.7"),
    integer("NCCL_GIN_IB_OOO_OPT", -1, None, "0", "out-of-order receiving where GPUs drive a NIC", since="2.31.2"),
    integer("NCCL_GIN_IB_TC", -1, 255, "-1", "traffic class of queue pairs that GPUs drive", since="2.30.7"),
    integer("NCCL_GIN_NCONNECTIONS", -2, None, "-2: NCCL's choice", "connections to each peer", since="2.29.7"),
    text("NCCL_GIN_PLUGIN", "not set", "plugin for what GPUs send themselves", since="2.29.7"),
    integer("NCCL_GIN_PLUGIN_REF_COUNT", 0, None, "0", "for plugin developers: keep the plugin of NCCL_GIN_PLUGIN loaded", since="2.29.7"),
    integer("NCCL_GIN_PROXY_NTHREADS", 1, None, "1", "threads of the proxy between GPU and NIC", since="2.31.2"),
    integer("NCCL_GIN_PROXY_POLL_BATCH", 1, None, "32", "completions that this proxy takes at a time", since="2.31.2"),
    integer("NCCL_GIN_PROXY_QUEUE_SIZE", -1, None, "-1: NCCL's choice", "requests in the queue between GPU and proxy", since="2.28.7"),
    integer("NCCL_GIN_TYPE", -1, None, "-1: NCCL's choice", "whether GPUs drive NICs themselves or through a proxy", since="2.28.7"),
    switch(
        "NCCL_IGNORE_COLLNET_MISMATCH", "0", "1 goes on where hosts have different networks for reduction", since="2.30.3", debugging=True
    ),
    switch("NCCL_IGNORE_NET_MISMATCH", "1", "0 stops where hosts have different networks", since="2.30.3", debugging=True),
    integer("NCCL_MNNVL_RAIL_PER_HOST", -1, 1, "0", "1 keeps rails within a host where NVLink joins hosts", since="2.28.7"),
    switch("NCCL_MNNVL_SCATTER_NETS_ENABLE", "1", "0 uses NICs in order where NVLink joins hosts", since="2.27.5"),
    text("NCCL_NET", "NCCL's choice", "which network to use: IB, Socket, or a plugin's name", since="2.10.3"),
    Variable("NCCL_NETDEVS_POLICY", DEVPOLICY, "AUTO", "how many NICs a GPU uses: AUTO, MAX:n, ALL", since="2.28.3"),
    switch("NCCL_NET_DISABLE_INTRA", "0", "1 takes no NIC between GPUs of one host", since="2.12.7"),
    switch("NCCL_NET_FORCE_FLUSH", "0", "1 flushes received data where the GPU does not need it", since="2.15.1"),
    text("NCCL_NET_FORCE_MERGE", "not set", "ports to take for one NIC", since="2.24.3"),
    switch("NCCL_NET_GDR_C2C", "1", "GPUDirect RDMA past a CPU that is joined by C2C", since="2.26.2", debugging=True),
    Variable(
        "NCCL_NET_GDR_LEVEL",
        LEVEL,
        "PXB; P2C with C2C",
        "how far apart NIC and GPU may be for GPUDirect RDMA; LOC or 0: never",
        since="2.4.2",
        debugging=True,
    ),
    integer("NCCL_NET_GDR_READ", -2, 1, "-2: by platform", "send from GPU memory directly", debugging=True),
    choice(
        "NCCL_NET_MERGE_LEVEL",
        "LOC PORT PIX PXB P2C PXN PHB SYS",
        "PORT",
        "how far apart ports may be that are taken for one NIC; LOC: none",
        exact=True,
        since="2.24.3",
    ),
    choice(
        "NCCL_NET_MERGE_POLICY",
        "ALL RAIL",
        "ALL",
        "which ports may be taken for one NIC: ALL, or those of one RAIL",
        since="2.30.5",
        debugging=True,
    ),
    switch("NCCL_NET_OPTIONAL_RECV_COMPLETION", "1", "0 waits for the completion of every receive", since="2.24.3"),
    integer("NCCL_NET_OVERHEAD", -2, None, "-2: by platform", "cost of a network operation in tuning", since="2.18.1"),
    text("NCCL_NET_PLUGIN", "libnccl-net.so", "network plugin", since="2.11.4"),
    integer("NCCL_NET_PLUGIN_REF_COUNT", 0, None, "0", "for plugin developers: keep the plugin of NCCL_NET_PLUGIN loaded", since="2.26.2"),
    integer(
        "NCCL_NET_SHARED_BUFFERS", -2, 1, "-2: NCCL's choice", "share buffers between channels and peers", since="2.8.3", debugging=True
    ),
    switch(
        "NCCL_NET_SHARED_COMMS", "1", "0 gives each channel a connection of its own through another GPU", since="2.12.7", debugging=True
    ),
    integer("NCCL_NSOCKS_PERTHREAD", -2, 64, "by platform", "TCP connections of a thread; 64 in all threads at most", since="2.4.8"),
    integer("NCCL_NUM_RMA_CTX", 0, None, "NCCL's choice", "contexts of one-sided operations", since="2.29.2"),
    integer(
        "NCCL_NUM_RMA_INT_CTX", -1, None, "-1: NCCL's choice", "contexts of one-sided operations that NCCL uses itself", since="2.31.2"
    ),
    switch("NCCL_OOB_NET_ENABLE", "0", "1 lets the bootstrap use the network of the data", since="2.23.4"),
    text("NCCL_OOB_NET_IFNAME", "NCCL's choice", "devices for that", since="2.23.4"),
    integer("NCCL_P2P_PXN_LEVEL", 0, 2, "2", "when to reach a NIC by way of another GPU", since="2.12.7", debugging=True),
    switch("NCCL_PXN_C2C", "1", "reach a NIC by way of another GPU over C2C", since="2.27.3", debugging=True),
    switch("NCCL_PXN_DISABLE", "0", "1 reaches no NIC by way of another GPU", since="2.12.7", debugging=True),
    switch("NCCL_RMA_DISABLE", "0", "1 leaves out one-sided operations", since="2.30.7"),
    switch("NCCL_RMA_EAGER_INIT", "NCCL's choice", "1 prepares one-sided operations when a communicator is made", since="2.31.2"),
    integer("NCCL_RMA_IB_WR_BATCHSIZE", 1, None, "64", "requests of one-sided operations that are posted at a time", since="2.32.3"),
    integer("NCCL_RMA_MULTI_CTX_THRESHOLD", -1, None, "-1: NCCL's choice", "bytes from which on several contexts are used", since="2.31.2"),
    text("NCCL_RMA_PLUGIN", "not set", "plugin for one-sided operations", since="2.30.7"),
    integer("NCCL_RMA_PLUGIN_REF_COUNT", 0, None, "0", "for plugin developers: keep the plugin of NCCL_RMA_PLUGIN loaded", since="2.30.7"),
    integer("NCCL_RMA_PROXY_QUEUE_SIZE", -1, None, "-1: NCCL's choice", "requests in the queue of one-sided operations", since="2.29.2"),
    choice("NCCL_SOCKET_FAMILY", "AF_INET AF_INET6", "NCCL's choice", "AF_INET or AF_INET6", exact=True),
    Variable(
        "NCCL_SOCKET_IFNAME",
        INTERFACES,
        "NCCL's choice",
        "interfaces of bootstrap and TCP, needed with RDMA too; = exact, ^ all but, else prefixes",
    ),
    integer("NCCL_SOCKET_INLINE", 0, None, "128", "bytes that travel with the header over TCP", since="2.27.3"),
    integer("NCCL_SOCKET_MAGIC", 0, None, "built in", "number by which NCCL knows its own TCP connections", since="2.30.7"),
    integer(
        "NCCL_SOCKET_MIN_TASKSIZE",
        1,
        None,
        "65536",
        "bytes that a TCP connection takes at least, before more than one is used",
        since="2.27.3",
    ),
    integer("NCCL_SOCKET_NTHREADS", -2, 16, "by platform", "threads of a TCP connection", since="2.4.8"),
    integer(
        "NCCL_SOCKET_POLL_TIMEOUT_MSEC",
        0,
        None,
        "0",
        "how long the bootstrap waits before it tries again; 0 tries without a pause",
        since="2.28.0",
    ),
    integer("NCCL_SOCKET_RCVBUF", -1, None, "-1: the system's", "receive buffer of a TCP connection", since="2.27.3"),
    integer("NCCL_SOCKET_RETRY_CNT", 0, None, "34", "how often a TCP connection is tried", since="2.24.3"),
    integer("NCCL_SOCKET_RETRY_SLEEP_MSEC", 0, None, "100", "pause before it is tried again, longer each time", since="2.24.3"),
    integer("NCCL_SOCKET_SNDBUF", -1, None, "-1: the system's", "send buffer of a TCP connection", since="2.27.3"),
    integer("NCCL_UID_STAGGER_RATE", 1, None, "7000", "ranks a second that join at the start of a large job", since="2.23.4"),
    integer("NCCL_UID_STAGGER_THRESHOLD", 1, None, "256", "ranks from which on they join one after the other", since="2.23.4"),
    switch("NCCL_UNPACK_DOUBLE_NCHANNELS", "1", "0 does not double the channels for networks whose data the GPU unpacks", since="2.22.3"),
)
