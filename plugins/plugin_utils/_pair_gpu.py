# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The GPU from whose memory a rail is measured: the nearest one, by the path that the gpu stage has chosen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._pci_distance import DISTANCES
from ansible_collections.rdma.cluster.plugins.module_utils._rails import ResolvedRail
from ansible_collections.rdma.cluster.plugins.plugin_utils._gpudirect_plan import DMABUF, gpudirect_path

Gpu = dict[str, Any]
"""{"bus_id", "dmabuf"}: perftest's --use_cuda_bus_id, and whether it registers the memory through DMA-BUF, not through nvidia_peermem."""


def gpus_of(rails: Sequence[ResolvedRail], intent: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, Gpu]:
    """Rail → its GPU; {} for a host without GPUs, or whose NICs shall or can not reach them. facts: of comparable().

    Of GPUs that are equally near each is taken as often as the others, in the order of their addresses, so that rails do not share one
    while another is idle. A GPU whose distance is not known is as far as can be.
    """
    path = gpudirect_path(intent, facts)["path"]
    distances: Mapping[str, Mapping[str, str | None]] = facts.get("distances") or {}
    if path is None or not distances:
        return {}
    taken = Counter[str]()
    found = {}
    for rail in rails:
        if rail.device is not None:
            gpu = min(sorted(distances), key=lambda address: (_far(distances[address].get(str(rail.device))), taken[address]))
            taken[gpu] += 1
            found[rail.name] = {"bus_id": gpu, "dmabuf": path == DMABUF}
    return found


def _far(distance: str | None) -> int:
    return DISTANCES.index(distance) if distance in DISTANCES else len(DISTANCES)
