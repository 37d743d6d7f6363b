# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a host is as far as ACS is concerned."""

from __future__ import annotations

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._pcie_tuning.acs import platform, redirecting

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
