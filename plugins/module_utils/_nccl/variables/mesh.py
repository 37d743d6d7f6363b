# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The variables of nccl-mesh-plugin, which NCCL itself does not read.

Names, defaults and limits: the getenv calls in src/mesh_plugin.c and src/mesh_routing.c of autoscriptlabs/nccl-mesh-plugin at 679a394. Its
first release (031bc48) reads NCCL_MESH_GID_INDEX and NCCL_MESH_DEBUG only. It reads numbers with atoi, so other text counts as 0.
"""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.module_utils._nccl.variables.model import integer, switch

PREFIX = "NCCL_MESH_"
RELAY, MAX_RELAY_HOPS = "NCCL_MESH_ENABLE_RELAY", "NCCL_MESH_MAX_RELAY_HOPS"
GID_INDEX, DISABLE_RDMA = "NCCL_MESH_GID_INDEX", "NCCL_MESH_DISABLE_RDMA"
VARIABLES = (
    integer(GID_INDEX, 0, 255, "3", "index of the RoCE v2 GID on every port"),
    integer("NCCL_MESH_DEBUG", 0, 2, "0", "messages of the plugin: 1 for steps, 2 for details"),
    switch("NCCL_MESH_FAST_FAIL", "0", "1 gives up a peer early"),
    integer("NCCL_MESH_TIMEOUT_MS", 100, None, "5000", "time limit of a connection"),
    integer("NCCL_MESH_RETRY_COUNT", 1, None, "3", "attempts of a connection"),
    switch(DISABLE_RDMA, "0", "1 sends everything over TCP"),
    switch("NCCL_MESH_CONN_POOL", "1", "0 does not reuse queue pairs"),
    switch("NCCL_MESH_ASYNC_CONNECT", "1", "0 connects one peer after the other"),
    switch(RELAY, "1", "0 does not reach hosts through other hosts"),
    integer(MAX_RELAY_HOPS, 1, 8, "4", "hosts that may relay between two others"),
    switch("NCCL_MESH_RING_LOAD_BALANCE", "1", "0 uses one direction of a ring of hosts"),
    switch("NCCL_MESH_RING_PREFER_SHORT", "0", "1 always uses the shorter direction of a ring"),
    integer("NCCL_MESH_RING_BALANCE_THRESHOLD", 0, None, "1048576", "bytes by which a direction may be ahead of the other"),
)
