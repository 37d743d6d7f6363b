# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a host is as far as ACS is concerned, and what facts tell of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import gather, to_dict
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_tuning.acs import pcie_state, platform, redirecting
from tests.unit.builders.cards import card_facts, first_pci
from tests.unit.builders.pcie_host import ABOVE_GPU, GPU, NIC, ROOT_PORT, pcie_host

H100, GB200 = "NVIDIA H100 80GB HBM3", "NVIDIA GB200"
PLATFORMS = [
    pytest.param([H100], ["0x1021"], False, "bare_metal", id="bare metal"),
    pytest.param([H100], ["0x1021"], True, "vm", id="virtual"),
    pytest.param([H100], ["0x1021", "0x1023"], False, "datadirect", id="ConnectX-8"),
    pytest.param([H100, GB200], ["0x1021"], False, "datadirect", id="Grace"),
    pytest.param([GB200], ["0x1021"], None, "datadirect", id="Grace, virtual or not"),
    pytest.param([H100], ["0x1021"], None, None, id="virtual or not"),
    pytest.param([H100, None], ["0x1021"], False, None, id="a GPU of no name"),
    pytest.param([], ["0x1021"], False, "leave", id="no GPU"),
]


@pytest.mark.parametrize(("models", "device_ids", "virtual_machine", "mode"), PLATFORMS)
def test_platforms(models: list[str | None], device_ids: list[str | None], virtual_machine: bool | None, mode: str | None) -> None:
    found = platform(models, device_ids, virtual_machine)
    assert found.mode == mode
    assert bool(found.why) == (mode != "bare_metal")


def test_which_controls_redirect() -> None:
    controls = ["SrcValid", "TransBlk", "ReqRedir", "CmpltRedir", "UpstreamFwd", "EgressCtrl", "DirectTrans"]
    assert redirecting(controls) == ["SrcValid", "ReqRedir", "CmpltRedir", "UpstreamFwd"]
    assert redirecting(None) == []


def facts_of(**changes: Any) -> dict[str, Any]:
    gpu = {"address": GPU, "model": H100, "pci": {"hops": [{"address": ABOVE_GPU, "acs": ["ReqRedir"]}]}}
    return {**card_facts(), "gpus": [gpu], "iommu": {"virtual_machine": False}, "nics": {}, **changes}


def test_the_state_of_a_host() -> None:
    facts = facts_of(nics={"0000:3d:00.1": {"mrrs_bytes": 512}, "0000:99:00.0": {"mrrs_bytes": 128}})
    first_pci(facts)["hops"][2]["acs"] = ["TransBlk", "SrcValid"]
    state = pcie_state(facts)
    assert state == {
        "acs_mode": "bare_metal",
        "acs_why": "",
        "mrrs_bytes": {"0000:3d:00.0": 4096, "0000:3d:00.1": 512, "0000:5e:00.0": 4096},
        "redirecting": {"0000:3d:00.0": ["0000:3a:01.0"]},
        "gpu_redirecting": [ABOVE_GPU],
    }
    assert pcie_state(facts_of(gpus=[]))["acs_mode"] == "leave"


def test_virtual_functions_and_software_have_no_state() -> None:
    facts = facts_of(gpus=None)
    facts["devices"]["mlx5_0"]["function"] = "vf"
    facts["devices"]["mlx5_1"]["pci"] = None
    state = pcie_state(facts)
    assert (state["mrrs_bytes"], state["acs_mode"], state["acs_why"]) == ({}, None, "GPUs were not looked for")


def test_the_facts_that_are_read_have_all_of_it(tmp_path: Path) -> None:
    state = pcie_state(to_dict(gather(SysRoot(str(pcie_host(tmp_path / "host"))))))
    assert (state["acs_mode"], state["gpu_redirecting"]) == ("bare_metal", [ROOT_PORT, ABOVE_GPU])
    # No RDMA device in this tree, so no card of a rail.
    assert NIC not in state["mrrs_bytes"]
