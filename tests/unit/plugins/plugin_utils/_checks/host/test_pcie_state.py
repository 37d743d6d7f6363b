# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What facts report of PCIe: MRRS, and which bridges redirect."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import gather
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.host.pcie_tuning import PcieState, pcie_state
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from tests.unit.builders.cards import card_facts, first_pci
from tests.unit.builders.pcie_host import ABOVE_GPU, GPU, NIC, ROOT_PORT, pcie_host

H100 = "NVIDIA H100 80GB HBM3"


def facts_of(**changes: Any) -> dict[str, Any]:
    gpu = {"address": GPU, "model": H100, "pci": {"hops": [{"address": ABOVE_GPU, "acs": ["ReqRedir"]}]}}
    return {**card_facts(), "gpus": [gpu], "iommu": {"virtual_machine": False}, "nics": {}, **changes}


def test_the_state_of_a_host() -> None:
    facts = facts_of(nics={"0000:3d:00.1": {"mrrs_bytes": 512}, "0000:99:00.0": {"mrrs_bytes": 128}})
    first_pci(facts)["hops"][2]["acs"] = ["TransBlk", "SrcValid"]
    state = pcie_state(from_dict(facts))
    assert state == PcieState(
        acs_mode="bare_metal",
        acs_why="",
        mrrs_bytes={"0000:3d:00.0": 4096, "0000:3d:00.1": 512, "0000:5e:00.0": 4096},
        redirecting={"0000:3d:00.0": ["0000:3a:01.0"]},
        gpu_redirecting=[ABOVE_GPU],
    )
    assert pcie_state(from_dict(facts_of(gpus=[]))).acs_mode == "leave"


def test_virtual_functions_and_software_have_no_state() -> None:
    facts = facts_of(gpus=None)
    facts["devices"]["mlx5_0"]["function"] = "vf"
    facts["devices"]["mlx5_1"]["pci"] = None
    state = pcie_state(from_dict(facts))
    assert (state.mrrs_bytes, state.acs_mode, state.acs_why) == ({}, None, "GPUs were not read")


def test_the_facts_that_are_read_have_all_of_it(tmp_path: Path) -> None:
    state = pcie_state(gather(SysRoot(str(pcie_host(tmp_path / "host")))))
    assert (state.acs_mode, state.gpu_redirecting) == ("bare_metal", [ROOT_PORT, ABOVE_GPU])
    # No RDMA device in this tree, so no card of a rail.
    assert NIC not in state.mrrs_bytes
