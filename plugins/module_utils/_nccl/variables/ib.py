# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""NCCL's variables for RDMA devices.

A part of the table of _nccl_variables, which names the sources of its facts.
"""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.module_utils._nccl.variables.model import (
    DEVICES,
    SUBNET,
    Variable,
    choice,
    integer,
    path,
    switch,
    text,
)

VARIABLES = (
    switch(
        "NCCL_GDR_FLUSH_DISABLE", "0", "1 leaves out the read that makes data of GPUDirect RDMA visible; corrupts data where it is needed"
    ),
    path("NCCL_IBVERBS_LIB", "libibverbs.so.1", "the library of verbs", since="2.30.3"),
    integer(
        "NCCL_IB_ADAPTIVE_ROUTING",
        -2,
        1,
        "1 on InfiniBand, 0 on RoCE",
        "use queue pairs that adaptive routing may reorder",
        since="2.16.2",
        debugging=True,
    ),
    choice(
        "NCCL_IB_ADDR_FAMILY",
        "AF_INET AF_INET6",
        "AF_INET",
        "family of the GID's address; dead if NCCL_IB_GID_INDEX is set",
        exact=True,
        since="2.21.5",
    ),
    Variable("NCCL_IB_ADDR_RANGE", SUBNET, "any", "subnet of the GID's address; dead if NCCL_IB_GID_INDEX is set", since="2.21.5"),
    integer("NCCL_IB_AR_THRESHOLD", -2, None, "8192", "bytes from which on messages may be reordered", since="2.6.4", debugging=True),
    integer("NCCL_IB_DATA_DIRECT", 0, 2, "1", "use the direct path of cards that have one", since="2.27.3"),
    switch("NCCL_IB_DEVICE_PCI_ORDER", "1", "order devices by PCI address", since="2.29.7"),
    switch("NCCL_IB_DISABLE", "0", "1 disables RDMA: all traffic uses TCP", debugging=True),
    switch("NCCL_IB_ECE_ENABLE", "1", "let both ends agree on enhanced connections", since="2.23.4", debugging=True),
    switch("NCCL_IB_EVENT_BASED_LB", "0", "1 spreads messages over ports by events of the device", since="2.31.2"),
    switch("NCCL_IB_EVENT_BASED_LB_REMOTE", "1", "with NCCL_IB_EVENT_BASED_LB: at the other end too", since="2.31.2"),
    integer("NCCL_IB_FIFO_TC", -1, 255, "-1: NCCL_IB_TC", "traffic class of control messages", since="2.22.3"),
    integer("NCCL_IB_GID_INDEX", -1, 255, "-1: found; 0 before 2.21", "index of the GID on every port; not needed from 2.21 on"),
    Variable("NCCL_IB_HCA", DEVICES, "every ACTIVE port", "RDMA devices and ports to use; = exactly these, ^ all but these, else prefixes"),
    switch("NCCL_IB_MERGE_NICS", "1", "take the ports of one card for one NIC", since="2.20.3", debugging=True),
    switch("NCCL_IB_MERGE_VFS", "1", "the same for virtual functions", since="2.18.1"),
    switch("NCCL_IB_MQP_RETRY_ALL", "0", "1 tries again after any error of ibv_modify_qp, not after a timeout only", since="2.24.3"),
    integer("NCCL_IB_MQP_RETRY_CNT", 0, None, "34", "how often ibv_modify_qp is tried again", since="2.24.3"),
    integer("NCCL_IB_MQP_RETRY_SLEEP_MSEC", 0, None, "100", "pause before ibv_modify_qp is tried again, longer each time", since="2.24.3"),
    switch("NCCL_IB_OOO_RQ", "0", "1 receives out of order in hardware", since="2.30.3", debugging=True),
    integer(
        "NCCL_IB_PCI_RELAXED_ORDERING",
        0,
        2,
        "2: if there",
        "relaxed ordering on PCIe; 1 helps virtual machines",
        since="2.12.7",
        debugging=True,
    ),
    integer("NCCL_IB_PKEY", 0, 65535, "0", "index in the table of P_Keys, not the key", since="2.8.3"),
    integer(
        "NCCL_IB_PKEY_VALUE", -1, 65535, "-1: by NCCL_IB_PKEY", "the P_Key itself; wins over the index in NCCL_IB_PKEY", since="2.31.2"
    ),
    integer(
        "NCCL_IB_PREPOST_RECEIVE_WORK_REQUESTS",
        -2,
        1,
        "-2: NCCL's choice",
        "post requests to receive ahead of the messages",
        since="2.29.7",
    ),
    integer(
        "NCCL_IB_QPS_PER_CONNECTION",
        1,
        128,
        "1",
        "queue pairs of a connection, for more paths through a fabric that hashes",
        since="2.10.3",
        debugging=True,
    ),
    switch(
        "NCCL_IB_QUERY_PORT_SPEED",
        "1",
        "0 derives a port's speed from its width and rate and does not ask the library of verbs for it",
        since="2.30.7",
    ),
    text("NCCL_IB_RAIL_POLICY", "not set", "which rail each port of a card belongs to: CX9, CX9:FLIP, CX9:ALT, CX9:BLOCK", since="2.32.3"),
    integer(
        "NCCL_IB_RECEIVER_SIDE_MATCHING_SCHEME",
        -2,
        None,
        "-2: NCCL's choice",
        "how a receiver finds out which request a message belongs to",
        since="2.29.7",
    ),
    switch("NCCL_IB_RESILIENCY_PORT_FAILOVER", "0", "1 goes on by another port if one fails", since="2.29.7"),
    integer(
        "NCCL_IB_RESILIENCY_PORT_FAILOVER_MAX_ATTEMPTS", 0, None, "1", "how often a connection may move to another port", since="2.29.7"
    ),
    integer(
        "NCCL_IB_RESILIENCY_PORT_FAILOVER_PROBE_DELAY",
        0,
        None,
        "10",
        "pause before the other end is asked what has arrived",
        since="2.29.7",
    ),
    switch("NCCL_IB_RESILIENCY_PORT_RECOVERY", "0", "1 goes back to a port that works again", since="2.30.3"),
    integer(
        "NCCL_IB_RESILIENCY_PORT_RECOVERY_ACK_TIMEOUT",
        0,
        None,
        "5000",
        "how long a port that came back waits for the other end's answer",
        since="2.30.3",
    ),
    integer(
        "NCCL_IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_BATCH_INTERVAL",
        0,
        None,
        "500",
        "pause between batches of messages that try a port that came back",
        since="2.30.3",
    ),
    integer("NCCL_IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_BATCH_SIZE", 1, None, "5", "messages of such a batch", since="2.30.3"),
    integer(
        "NCCL_IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_SEQUENCE_SIZE",
        1,
        None,
        "5",
        "messages in a row that must arrive before the port is used again",
        since="2.30.3",
    ),
    integer("NCCL_IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_TIMEOUT", 0, None, "4000", "how long such a message may take", since="2.30.3"),
    integer("NCCL_IB_RESILIENCY_PORT_RECOVERY_ATTEMPTS_MAX", 0, None, "5", "how often it is tried to bring a port back", since="2.30.3"),
    integer("NCCL_IB_RESILIENCY_PORT_RECOVERY_START_DELAY", 0, None, "200", "pause before the first try", since="2.30.3"),
    integer("NCCL_IB_RETRY_CNT", 0, 7, "7", "how often a queue pair sends again before it gives up"),
    switch("NCCL_IB_RETURN_ASYNC_EVENTS", "1", "let errors of a device end the job", since="2.23.4"),
    integer("NCCL_IB_ROCE_VERSION_NUM", 1, 2, "2", "version of RoCE; dead if NCCL_IB_GID_INDEX is set", since="2.21.5"),
    integer(
        "NCCL_IB_ROUTABLE_FLID_GID_INDEX", 0, None, "1", "index of the GID for InfiniBand that is routed between subnets", since="2.22.3"
    ),
    integer("NCCL_IB_SL", -1, 15, "-1: 0", "service level; the priority in a VLAN tag"),
    switch("NCCL_IB_SORT_MERGE_NICS", "1", "0 takes ports for one NIC in the order in which they are found", since="2.32.3"),
    switch("NCCL_IB_SPLIT_DATA_ON_QPS", "0", "1 spreads each message over the queue pairs", since="2.18.1", debugging=True),
    switch("NCCL_IB_SUBNET_AWARE_ROUTING", "0", "1 pairs ports of one subnet, for a mesh of RoCE", since="2.30.7"),
    integer("NCCL_IB_SUBNET_PREFIX_LEN", 1, 32, "24", "the length of those subnets' prefix", since="2.30.7"),
    integer("NCCL_IB_TC", -1, 255, "-1: 0", "traffic class: DSCP times 4, and 2 for ECN, as rdma_roce says"),
    integer("NCCL_IB_TIMEOUT", 0, 31, "20", "a queue pair waits 4.096 µs × 2^n before it sends again"),
    switch("NCCL_IB_USE_INLINE", "0", "1 puts small control messages into the work request itself", since="2.8.3"),
    switch("NCCL_IB_WARN_RAIL_LOCAL", "0", "1 warns of a connection from one rail to another", since="2.24.3"),
    switch("NCCL_IB_WQE_LATENCY_REPORT", "1", "0 does not report requests that took long", since="2.31.2"),
    integer("NCCL_IB_WQE_LATENCY_THRESHOLD_NS", 0, None, "0", "nanoseconds from which on a request took long", since="2.31.2"),
)
