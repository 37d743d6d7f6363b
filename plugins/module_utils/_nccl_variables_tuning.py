# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""NCCL's variables for algorithms, channels and sizes.

A part of the table of _nccl_variables, which says where its facts come from.
"""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.module_utils._nccl_variable import (
    ALGORITHMS,
    POLICIES,
    PROTOCOLS,
    Variable,
    choice,
    integer,
    numbers,
    switch,
    text,
)

VARIABLES = (
    Variable(
        "NCCL_ALGO",
        ALGORITHMS,
        "NCCL's choice",
        "forces algorithms: Ring, Tree, CollnetDirect, CollnetChain, NVLS, NVLSTree, PAT; for tests",
        since="2.5.6",
        debugging=True,
    ),
    switch("NCCL_ALLGATHERV_ENABLE", "1", "0 does not join broadcasts to one all-gather", since="2.29.2"),
    switch(
        "NCCL_ALLOC_P2P_NET_LL_BUFFERS",
        "0",
        "1 sets aside buffers so that small sends over the network take the fast protocol",
        since="2.16.5",
        debugging=True,
    ),
    integer("NCCL_BUFFSIZE", 1, None, "4194304", "bytes of the buffer of a channel and peer, a power of two; for tests", debugging=True),
    integer("NCCL_CGA_CLUSTER_SIZE", 0, 8, "NCCL's choice", "blocks of a GPU that form a cluster", since="2.15.1", debugging=True),
    integer("NCCL_CHUNK_SIZE", 0, None, "0: NCCL's choice", "bytes of a step of a collective", since="2.12.7"),
    integer("NCCL_CONNECT_ROUND_MAX_PEERS", 1, None, "128", "peers that are connected at a time", since="2.19.4"),
    Variable(
        "NCCL_CTA_POLICY", POLICIES, "DEFAULT", "what blocks are spent for: DEFAULT, EFFICIENCY, ZERO, joined by a bar", since="2.27.3"
    ),
    integer("NCCL_GROUP_CUDA_STREAM", 0, 1, "by CUDA", "a stream of its own for group launches of older modes"),
    integer("NCCL_L1_SHARED_MEMORY_CARVEOUT", 0, 100, "0: CUDA's", "share of the L1 cache that is shared memory", since="2.12.10"),
    choice("NCCL_LAUNCH_MODE", "PARALLEL GROUP", "PARALLEL", "how processes with several GPUs start kernels", deprecated=True),
    integer("NCCL_LL128_BUFFSIZE", -2, None, "-2: NCCL's choice", "bytes of a buffer of the protocol LL128", since="2.7.3"),
    switch("NCCL_LL128_C2C", "1", "0 keeps the protocol LL128 off C2C", since="2.27.3"),
    integer("NCCL_LL128_NTHREADS", -2, 640, "-2: NCCL's choice", "threads of a block of the protocol LL128", since="2.5.6"),
    integer("NCCL_LL_BUFFSIZE", -2, None, "-2: NCCL's choice", "bytes of a buffer of the protocol LL", since="2.7.3"),
    integer("NCCL_MAX_CTAS", 1, 64, "NCCL's choice", "most blocks on a GPU; it caps, and adds nothing", since="2.17.1", debugging=True),
    integer(
        "NCCL_MAX_NCHANNELS",
        1,
        64,
        "NCCL's choice",
        "old name of NCCL_MAX_CTAS",
        since="2.5.6",
        debugging=True,
        deprecated=True,
        instead="NCCL_MAX_CTAS",
    ),
    integer(
        "NCCL_MAX_NRINGS",
        1,
        64,
        "NCCL's choice",
        "oldest name of NCCL_MAX_CTAS; dead if NCCL_MAX_NCHANNELS is set",
        debugging=True,
        deprecated=True,
        instead="NCCL_MAX_CTAS",
    ),
    integer("NCCL_MAX_P2P_NCHANNELS", 1, 64, "NCCL's choice", "most channels of a send to one peer", since="2.7.3"),
    integer("NCCL_MIN_CTAS", 1, 64, "NCCL's choice", "fewest blocks on a GPU", since="2.17.1", debugging=True),
    integer(
        "NCCL_MIN_NCHANNELS",
        1,
        64,
        "NCCL's choice",
        "old name of NCCL_MIN_CTAS",
        since="2.5.6",
        debugging=True,
        deprecated=True,
        instead="NCCL_MIN_CTAS",
    ),
    integer(
        "NCCL_MIN_NRINGS",
        1,
        64,
        "NCCL's choice",
        "oldest name of NCCL_MIN_CTAS; dead if NCCL_MIN_NCHANNELS is set",
        debugging=True,
        deprecated=True,
        instead="NCCL_MIN_CTAS",
    ),
    integer("NCCL_MIN_P2P_NCHANNELS", 1, 64, "NCCL's choice", "fewest channels of a send to one peer", since="2.7.3"),
    integer("NCCL_NCHANNELS_PER_NET_PEER", -1, 64, "NCCL's choice", "channels to one peer over the network", since="2.12.7"),
    numbers("NCCL_NTHREADS", "64 128 256 512", "512", "threads of a block: 64, 128, 256, 512; for tests", debugging=True),
    switch("NCCL_NVLINK_UTIL_CENTRIC_SCHED_ENABLE", "0", "1 spreads sends so that NVLink is busy", since="2.27.3"),
    integer("NCCL_NVLSTREE_MAX_CHUNKSIZE", -2, None, "-2: NCCL's choice", "bytes of a step of the algorithm NVLSTree", since="2.20.3"),
    integer("NCCL_NVLS_CHUNKSIZE", 1, None, "131072", "bytes of a step of the algorithm NVLS", since="2.21.5"),
    integer("NCCL_NVLS_NCHANNELS", -2, 64, "NCCL's choice", "channels of NVLink SHARP", since="2.17.1"),
    switch("NCCL_P2P_EPOCH_ENABLE", "1", "0 does not put sends and receives in turns", since="2.29.2"),
    integer(
        "NCCL_P2P_LL_THRESHOLD",
        0,
        None,
        "16384",
        "bytes up to which a send over the network takes the fast protocol",
        since="2.14.3",
        debugging=True,
    ),
    integer("NCCL_P2P_MAX_PEERS", -1, None, "NCCL's choice", "peers that sends reach at a time", since="2.30.3"),
    integer("NCCL_P2P_NET_CHUNKSIZE", 1, None, "131072", "bytes of a step of a send over the network", since="2.14.3", debugging=True),
    integer("NCCL_P2P_NVL_CHUNKSIZE", 1, None, "524288", "bytes of a step of a send over NVLink", since="2.16.2"),
    integer("NCCL_P2P_PCI_CHUNKSIZE", 1, None, "131072", "bytes of a step of a send over PCIe", since="2.16.2"),
    integer("NCCL_P2P_PER_CHANNEL_NET_BW", 1, None, "14", "GB/s that a channel is reckoned to carry", since="2.29.2"),
    integer("NCCL_P2P_SCHEDULE_GROUP_SIZE", 1, None, "NCCL's choice", "sends that are put into one batch", since="2.28.7"),
    integer("NCCL_PAT_ENABLE", 0, 2, "2: if there", "the algorithm PAT", since="2.23.4"),
    Variable(
        "NCCL_PROTO",
        PROTOCOLS,
        "NCCL's choice",
        "forces protocols: LL, LL128, Simple; for tests, as LL128 by force can corrupt data",
        since="2.5.6",
        debugging=True,
    ),
    integer("NCCL_SYM_CE_THRESHOLD", 0, None, "8388608", "bytes from which on copy engines move symmetric memory", since="2.29.2"),
    integer("NCCL_SYM_CTAS", 0, 64, "0: NCCL's choice", "blocks of kernels for symmetric memory", since="2.27.3"),
    switch("NCCL_SYM_GIN_KERNELS_ENABLE", "1", "0 uses no kernels for symmetric memory that drive NICs", since="2.29.7", debugging=True),
    text("NCCL_SYM_KERNEL", "NCCL's choice", "forces a kernel for symmetric memory", since="2.27.3"),
    switch("NCCL_SYM_NOWIN_ENABLE", "0", "1 uses such kernels for memory that is not registered", since="2.29.2"),
    switch("NCCL_SYM_REUSE_SYSMEM_HANDLES", "0", "1 opens handles of host memory once", since="2.30.4"),
    integer(
        "NCCL_SYM_RS_GIN_CHUNK_SIZE", -1, None, "-1: NCCL's choice", "bytes of a step of reduce-scatter by such kernels", since="2.30.7"
    ),
    switch("NCCL_SYM_TMA_ENABLE", "0", "1 moves symmetric memory by the GPU's engine for tensors", since="2.30.3"),
    text("NCCL_THREAD_THRESHOLDS", "NCCL's choice", "six numbers: bytes of a thread by algorithm and protocol", since="2.5.6"),
)
