# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every variable that NCCL reads or has read, and similar names that belong to other programs, or to none.

Names, defaults, since and until: NCCL's public source, every tag from v2.3.5-1 to v2.30.7-1 compared (NCCL_PARAM, DEFINE_NCCL_PARAM and
names in quotes below src/); for 2.31.2 and 2.32.3 the names that the library itself reads (nvidia-nccl-cu12 on PyPI, ncclLoadParam and
ncclGetEnv). Meanings and ranges of new variables there come from the names and messages in it. A version without a public source counts as
the next public one. Other ranges, and which variables are for tests only: the guide's page on environment variables
(docs/userguide/source/env.rst of v2.30.7-1), and the checks in the source. Defaults are those of 2.30.7.
"""

from __future__ import annotations

from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._nccl.variables.debug import VARIABLES as _DEBUG
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.variables.host import VARIABLES as _HOST
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.variables.ib import VARIABLES as _IB
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.variables.mesh import VARIABLES as _MESH
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.variables.model import Variable, gone
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.variables.network import VARIABLES as _NETWORK
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.variables.tuning import VARIABLES as _TUNING

REMOVED_VARIABLES = (
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


PREFIX = "NCCL_"
#: The table was made from the sources of NCCL 2.3.5 up to this.
NEWEST = "2.32.3"
VARIABLES: dict[str, Variable] = {
    variable.name: variable for part in (_IB, _NETWORK, _TUNING, _HOST, _DEBUG, REMOVED_VARIABLES) for variable in part
}


#: The variables of plugins that are known one by one.
PLUGIN_VARIABLES: dict[str, Variable] = {variable.name: variable for variable in _MESH}


@dataclass(frozen=True)
class Reader:
    """The reader of a name that NCCL does not read. needs: the plugin that must be loaded for it, "" without one."""

    name: str
    needs: str = ""


#: Names from guides that no version of NCCL has had: name → why, and the replacement.
NEVER = {
    "NCCL_NCHUNKS_COARSE": "no version of NCCL has ever had it",
    "NCCL_SHARP_ENABLE": "no version of NCCL has ever had it: SHARP takes NCCL_COLLNET_ENABLE=1 and its network plugin",
    "NCCL_TIMEOUT": "NCCL has no timeout of collectives: PyTorch's is an argument of init_process_group",
    "NCCL_NET_DISABLE": "no version of NCCL has ever had it: NCCL_NET names the network",
    "NCCL_MESH_MAX_HOPS": "the README of nccl-mesh-plugin has this name, but its code reads NCCL_MESH_MAX_RELAY_HOPS",
}
#: The variables of plugins: prefix of a name → its reader.
PLUGINS: dict[str, Reader] = {
    "NCCL_MESH_": Reader("the mesh plugin (nccl-mesh-plugin)", "NCCL_NET_PLUGIN=mesh"),
    "NCCL_IBEXT_": Reader("NVIDIA's network plugin with SHARP (nccl-rdma-sharp-plugins)"),
    "NCCL_SHARP_": Reader("NVIDIA's network plugin with SHARP (nccl-rdma-sharp-plugins)", "NCCL_COLLNET_ENABLE=1"),
    "NCCL_UCX_": Reader("NVIDIA's network plugin with UCX (nccl-rdma-sharp-plugins)"),
    "NCCL_PLUGIN_P2P": Reader("NVIDIA's network plugin with SHARP (nccl-rdma-sharp-plugins)"),
    "NCCL_OFI_": Reader("the plugin for libfabric (aws-ofi-nccl)"),
    "NCCL_FASTRAK_": Reader("Google's plugin for GPUDirect-TCPXO"),
    "NCCL_GPUDIRECTTCPX_": Reader("Google's plugin for GPUDirect-TCPX"),
    "NCCL_SHIMNET_": Reader("Google's check of the variables"),
    "NCCL_DYNAMIC_CHUNK_SIZE": Reader("Google's plugin for GPUDirect-TCPX"),
    "NCCL_TUNER_CONFIG_": Reader("a tuner plugin", "NCCL_TUNER_PLUGIN"),
    "NCCL_INSPECTOR_": Reader("NVIDIA's profiler plugin inspector", "NCCL_PROFILER_PLUGIN"),
    "NCCL_PROFILE_": Reader("a profiler plugin", "NCCL_PROFILER_PLUGIN"),
    "NCCL_PROFILER_CE_": Reader("a profiler plugin", "NCCL_PROFILER_PLUGIN"),
    "NCCL_TESTS_": Reader("nccl-tests"),
    "NCCL_RESHARD_": Reader("NCCL's additional library for resharding"),
    "NCCL_CHECKPOINT_": Reader("NCCL's additional library for checkpoints"),
    "NCCL_EP_": Reader("NCCL's additional library for experts"),
}
#: Names that only builds and images have.
BUILD = ("NCCL_VERSION", "NCCL_HOME", "NCCL_ROOT", "NCCL_ROOT_DIR", "NCCL_INCLUDE_DIR", "NCCL_LIB_DIR", "NCCL_LIBRARY", "NCCL_SUFFIX")
#: Names that PyTorch before 2.2 reads, and later versions with TORCH_ in front, with a warning for this one.
PYTORCH = ("NCCL_ASYNC_ERROR_HANDLING", "NCCL_BLOCKING_WAIT", "NCCL_DESYNC_DEBUG", "NCCL_ENABLE_TIMING")


def reader(name: str) -> Reader | None:
    """Return the reader of a name of a known plugin or program; None for NCCL's own and for unknown ones."""
    if name in VARIABLES or name in NEVER:
        return None
    if name in PYTORCH:
        return Reader("PyTorch")
    if name in BUILD:
        return Reader("builds and images")
    return next((whose for prefix, whose in PLUGINS.items() if name.startswith(prefix)), None)
