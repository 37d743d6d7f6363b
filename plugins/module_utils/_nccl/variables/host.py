# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""NCCL's variables for one host: GPUs, memory, topology, processes.

A part of the table of _nccl_variables, which names the sources of its facts.
"""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.module_utils._nccl.variables.model import (
    LEVEL,
    Variable,
    integer,
    path,
    switch,
    text,
)

VARIABLES = (
    switch("NCCL_COMM_BLOCKING", "NCCL's choice", "whether calls wait until they are done", since="2.14.3", debugging=True),
    switch("NCCL_COMM_SHRINK_SHARE_RESOURCES", "NCCL's choice", "let a smaller communicator share what the larger one has", since="2.27.3"),
    switch("NCCL_COMM_SPLIT_SHARE_RESOURCES", "NCCL's choice", "let parts of a communicator share what it has", since="2.18.1"),
    integer(
        "NCCL_CUMEM_ENABLE",
        -2,
        1,
        "NCCL's choice",
        "whether memory is taken by CUDA's virtual memory functions",
        since="2.18.1",
        debugging=True,
    ),
    integer(
        "NCCL_CUMEM_HOST_ENABLE",
        -1,
        1,
        "NCCL's choice",
        "the same for memory of the host; 0 in containers without NUMA rights",
        since="2.23.4",
        debugging=True,
    ),
    switch("NCCL_DEV_API_JIT", "0", "1 builds code for the interface of GPUs when it runs", since="2.30.7"),
    switch("NCCL_DISABLE_MEM_MANAGER", "0", "1 leaves out NCCL's own management of memory", since="2.29.7"),
    switch("NCCL_ELASTIC_BUFFER_REGISTER", "1", "0 registers no buffers that grow", since="2.30.3"),
    switch("NCCL_ENABLE_VERSION_CHECK", "1", "0 does not compare versions of library and program", since="2.29.2"),
    path("NCCL_GRAPH_DUMP_FILE", "not set", "file to write the chosen graph to", since="2.6.4"),
    integer("NCCL_GRAPH_DUMP_FILE_RANK", 0, None, "0", "rank that writes NCCL_GRAPH_DUMP_FILE", since="2.6.4"),
    path("NCCL_GRAPH_FILE", "not set", "file to take the graph from; for tests", since="2.6.4"),
    switch("NCCL_GRAPH_HELPER_DISABLE", "0", "1 starts no thread that cleans up behind CUDA graphs", since="2.11.4"),
    switch("NCCL_GRAPH_MIXING_SUPPORT", "1", "0 for programs that have one CUDA graph at a time", since="2.13.4", debugging=True),
    switch("NCCL_GRAPH_REGISTER", "1", "0 does not register the buffers of CUDA graphs", since="2.11.4", debugging=True),
    integer(
        "NCCL_GRAPH_STREAM_ORDERING", 0, None, "NCCL's choice", "order between streams of a CUDA graph", since="2.30.7", debugging=True
    ),
    text(
        "NCCL_HOSTID", "not set", "takes the place of the host's name and boot, by which ranks know that they share a host", since="2.5.6"
    ),
    switch("NCCL_IGNORE_CPU_AFFINITY", "0", "1 binds by GPU, whatever the job's own binding is", since="2.4.6"),
    integer("NCCL_IGNORE_DISABLED_P2P", 0, 2, "0", "goes on where NVLink is there and direct access is not", since="2.12.7"),
    switch("NCCL_IPC_USE_ABSTRACT_SOCKET", "1", "0 makes the sockets between processes files", since="2.29.2", debugging=True),
    switch("NCCL_LAUNCH_ORDER_IMPLICIT", "0", "1 keeps the order of the program between communicators", since="2.26.2", debugging=True),
    switch("NCCL_LAUNCH_RACE_FATAL", "1", "0 goes on where threads race for that order", since="2.26.2", debugging=True),
    switch("NCCL_LEGACY_CUDA_REGISTER", "0", "1 registers memory of cudaMalloc", since="2.24.3", debugging=True),
    switch("NCCL_LOCAL_REGISTER", "1", "0 leaves ncclCommRegister without effect", since="2.19.1", debugging=True),
    integer("NCCL_LSA_TEAM_SIZE", 0, None, "0: NCCL's choice", "GPUs that load and store in each other's memory", since="2.29.7"),
    integer("NCCL_MEM_SYNC_DOMAIN", 0, 1, "1: remote", "domain of memory order of NCCL's kernels", since="2.16.2", debugging=True),
    integer(
        "NCCL_MNNVL_CLIQUE_ID",
        -2,
        None,
        "-1: the driver's",
        "number of the group of GPUs that NVLink joins over hosts",
        since="2.23.4",
        debugging=True,
    ),
    switch("NCCL_MNNVL_CROSS_CLIQUE", "0", "1 joins such groups", since="2.30.3"),
    integer("NCCL_MNNVL_ENABLE", 0, 2, "2: if there", "NVLink between hosts", since="2.21.5", debugging=True),
    integer("NCCL_MNNVL_UUID", -1, None, "-1: the driver's", "name of the NVLink fabric", since="2.25.1", debugging=True),
    switch("NCCL_MULTI_RANK_GPU_ENABLE", "0", "1 allows ranks to share a GPU", since="2.30.3"),
    switch("NCCL_MULTI_SEGMENT_REGISTER", "1", "0 registers no memory of several parts", since="2.29.2"),
    switch("NCCL_NVB_DISABLE", "0", "1 reaches no GPU over NVLink by way of another", since="2.9.9", debugging=True),
    switch("NCCL_NVB_PRECONNECT", "1", "0 connects GPUs by way of others when first needed", since="2.9.9"),
    integer("NCCL_NVLS_ENABLE", 0, 2, "2: if there", "reduction in NVSwitch (NVLink SHARP)", since="2.17.1", debugging=True),
    switch("NCCL_P2P_DIRECT_DISABLE", "0", "1 leaves users' buffers of other GPUs of the process alone", since="2.12.12", debugging=True),
    switch("NCCL_P2P_DISABLE", "0", "1 forbids direct access between GPUs, whatever NCCL_P2P_LEVEL says; for tests", debugging=True),
    Variable("NCCL_P2P_LEVEL", LEVEL, "NCCL's choice", "how far apart two GPUs may be for direct access; for tests", debugging=True),
    integer("NCCL_P2P_READ_ENABLE", -2, 1, "-2: by platform", "GPUs read from each other and do not write", since="2.7.3"),
    switch("NCCL_P2P_USE_CUDA_MEMCPY", "0", "1 moves data between GPUs by copy engines", since="2.13.4"),
    integer("NCCL_PROGRESS_APPENDOP_FREQ", 1, None, "8", "how often the proxy looks for new work", since="2.16.5"),
    integer("NCCL_PROXY_APPEND_BATCH_SIZE", 1, None, "16", "pieces of new work that it takes at a time", since="2.16.2"),
    text("NCCL_PROXY_CPUSET", "by the GPU", "CPUs for the proxy's threads", since="2.28.3"),
    switch("NCCL_RUNTIME_CONNECT", "1", "0 connects at the start and not when first needed", since="2.22.3", debugging=True),
    switch("NCCL_SET_CPU_STACK_SIZE", "1", "0 leaves the stack of threads as it is", since="2.28.3"),
    switch("NCCL_SET_STACK_SIZE", "0", "1 sets the stack of CUDA threads at the start", since="2.9.6", debugging=True),
    integer("NCCL_SHADOW_MEMPOOL_MAX_SIZE", 0, None, "1073741824", "bytes of the pool behind GPU memory", since="2.30.7"),
    switch("NCCL_SHM_DISABLE", "0", "1 leaves shared memory between processes alone; for tests", debugging=True),
    integer("NCCL_SHM_LOCALITY", 1, 2, "2: the receiver's", "near whose CPU shared memory lies", since="2.13.4"),
    switch("NCCL_SINGLE_PROC_MEM_REG_ENABLE", "0", "1 registers memory for all GPUs of a process", since="2.28.3"),
    path("NCCL_TOPO_DUMP_FILE", "not set", "file to write the topology to", since="2.6.4"),
    integer("NCCL_TOPO_DUMP_FILE_RANK", 0, None, "0", "rank that writes NCCL_TOPO_DUMP_FILE", since="2.6.4"),
    path("NCCL_TOPO_FILE", "not set", "topology to believe instead of what is found; for virtual machines and containers", since="2.6.4"),
    switch("NCCL_TOPO_SPLIT_MLOPART", "1", "0 takes partitions of a GPU for one", since="2.30.7"),
    switch("NCCL_WIN_ENABLE", "1", "0 leaves out windows of symmetric memory", since="2.27.3", debugging=True),
    integer("NCCL_WIN_STRIDE", -1, None, "-1: NCCL's choice", "distance of the windows of ranks", since="2.27.3"),
    integer("NCCL_WORK_ARGS_BYTES", 0, None, "CUDA's limit", "bytes of arguments of a kernel", since="2.22.3"),
    integer("NCCL_WORK_FIFO_BYTES", -1, None, "NCCL's choice", "bytes of the queue of a GPU's work", since="2.22.3"),
)
