# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Variables that NCCL has read once.

A part of the table of _nccl_variables, which says where its facts come from.
"""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.module_utils._nccl.variables.model import gone

VARIABLES = (
    gone("NCCL_AGG_ALLOC_MODE", "2.13.4", since="2.10.3"),
    gone("NCCL_AGG_CHANNEL_SIZE", "2.20.3", since="2.10.3"),
    gone("NCCL_CHECKS_DISABLE", "2.3.5", instead="NCCL_CHECK_MODE"),
    gone("NCCL_CREATE_THREAD_CONTEXT", "2.30.7", since="2.13.4"),
    gone("NCCL_CUDA_PATH", "2.21.5", since="2.13.4"),
    gone("NCCL_GDRCOPY_TAIL_ENABLE", "2.12.7", since="2.9.6", instead="NCCL_GDRCOPY_SYNC_ENABLE"),
    gone("NCCL_GIN_COUNTER_POOL_SIZE", "2.30.3", since="2.28.7"),
    gone("NCCL_GIN_EXCLUSIVE_CONTEXTS", "2.30.3", since="2.29.7"),
    gone("NCCL_GIN_NCONTEXTS", "2.30.3", since="2.28.7", instead="NCCL_GIN_NCONNECTIONS"),
    gone("NCCL_GIN_SIGNAL_POOL_SIZE", "2.30.3", since="2.28.7"),
    gone("NCCL_GRAPH", "2.6.4", since="2.5.6", instead="NCCL_GRAPH_FILE"),
    gone("NCCL_IB_CUDA_SUPPORT", "2.4.2", instead="NCCL_NET_GDR_LEVEL"),
    gone("NCCL_IB_GDR_LEVEL", "2.4.2", instead="NCCL_NET_GDR_LEVEL"),
    gone("NCCL_LL_THRESHOLD", "2.5.6", instead="NCCL_PROTO"),
    gone("NCCL_MLOPART_RDMA_ENABLE", "2.32.3", since="2.30.7"),
    gone("NCCL_MNNVL", "2.21.5", since="2.20.3", instead="NCCL_MNNVL_ENABLE"),
    gone("NCCL_NCCL_ALLOC_P2P_NET_LL_BUFFERS", "2.16.5", since="2.14.3", instead="NCCL_ALLOC_P2P_NET_LL_BUFFERS"),
    gone("NCCL_NET_GDR_MLOPART", "2.32.3", since="2.30.7"),
    gone("NCCL_PROXY_PROFILE", "2.23.4", since="2.12.7", instead="NCCL_PROFILER_PLUGIN"),
    gone("NCCL_RINGS", "2.5.6", instead="NCCL_GRAPH_FILE"),
    gone("NCCL_SHARED_BUFF_COUNT", "2.9.6", since="2.8.3"),
    gone("NCCL_SHM_MEMCPY_MODE", "2.30.7", since="2.13.4"),
    gone("NCCL_SHM_USE_CUDA_MEMCPY", "2.30.7", since="2.13.4"),
    gone("NCCL_SINGLE_RING_THRESHOLD", "2.3.5", instead="NCCL_PROTO"),
    gone("NCCL_THREAD_THRESHOLD", "2.5.6", instead="NCCL_THREAD_THRESHOLDS"),
    gone("NCCL_TOPO_SCATTER_START_NET", "2.32.3", since="2.31.2"),
    gone("NCCL_TREE_THRESHOLD", "2.5.6", since="2.4.2", instead="NCCL_ALGO"),
    gone("NCCL_WORK_FIFO_DEPTH", "2.22.3", since="2.13.4", instead="NCCL_WORK_FIFO_BYTES"),
)
