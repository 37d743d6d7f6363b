# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The presets of known machines, against the topology files that their makers publish."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._machines.presets import PRESETS

FIXTURES = Path(__file__).parents[2].parent / "shared" / "fixtures"
#: The class of an InfiniBand controller in a topology file of NCCL.
INFINIBAND, GPU = "0x020700", "0x030200"


@pytest.mark.parametrize("name", ["azhpc-ndv5-topo.xml", "sb-ndv5-topo.xml"])
def test_the_nics_of_nd_h100_v5(name: str) -> None:
    functions = re.findall(r'<pci busid="([^"]+)" class="([^"]+)"', (FIXTURES / "nccl-topo-xml" / name).read_text())
    preset = PRESETS["nd_h100_v5"]
    assert tuple(address for address, kind in functions if kind == INFINIBAND) == preset.pci
    assert sum(kind == GPU for _address, kind in functions) == preset.gpus
