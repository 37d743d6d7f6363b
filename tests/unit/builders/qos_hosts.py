# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""RoCE's quality of service as facts report it, and a profile to compare it with."""

from __future__ import annotations

from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._net.ethtool import Pause
from ansible_collections.rdma.cluster.plugins.module_utils._qos.state import QosState, as_tree
from ansible_collections.rdma.cluster.plugins.module_utils._qos.sysfs import NP_PARAMETERS, RP_PARAMETERS
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rdma_cm import RdmaCm
from ansible_collections.rdma.cluster.plugins.plugin_utils._roce.profile import roce_profile

#: rdma_roce as the intent has it where nothing is said; written down, since hosts' Pythons cannot read an intent (test__roce_profile).
ROCE: dict[str, Any] = {
    "priority": 3,
    "dscp": 26,
    "pfc": True,
    "ecn": True,
    "cnp_dscp": 48,
    "cnp_priority": 6,
    "rdma_percent": 50,
    "dcbx": "os",
    "cable_length_m": None,
    "dcqcn": {},
    "switches": {},
}


def profile(**roce: Any) -> dict[str, Any]:
    """What rdma_roce asks for by default, but for what is given."""
    found = roce_profile({"roce": {**ROCE, **roce}})
    assert found is not None
    return found


def mlx5_qos(device: str = "mlx5_0", **changes: Any) -> dict[str, Any]:
    """As much as facts can report of an interface: what mlnx_qos and OFED's files say of one that is as the profile says."""
    values: dict[str, Any] = {"trust": "dscp", "dscp_to_priority": {code: code // 8 for code in range(64)}, "dcbx": "os"}
    values.update(pfc=[priority == 3 for priority in range(8)], cable_length_m=7, traffic_class=106, traffic_class_settable=True)
    values.update(priority_to_tc=[0, 0, 0, 3, 0, 0, 6, 0], tsa=["ets"] * 6 + ["strict", "ets"])
    values.update(bandwidth_percent=[50, 0, 0, 50, 0, 0, 0, 0])
    values.update(np=dict.fromkeys(NP_PARAMETERS, 4), rp=dict.fromkeys(RP_PARAMETERS, 32767), ecn_np=[True] * 8, ecn_rp=[True] * 8)
    values["np"].update(cnp_dscp=48, cnp_802p_prio=6)
    values.update(rdma_cm=RdmaCm("RoCE v2", 106), warnings=["lldpad"], buffer_bytes=[1] * 8)
    pause = Pause(None, *changes.pop("pause", (False, False)))
    return as_tree(QosState(**{"backend": "mlnx_qos", "why": "it answers", "device": device, "port": "1", **values, **changes}), pause)


def dcb_qos(device: str = "mlx5_0", **changes: Any) -> dict[str, Any]:
    """The same by dcb and debugfs, which has no switches of congestion control; only codes with an entry are reported for DSCP."""
    values = {"backend": "dcb", "dscp_to_priority": {26: 3, 48: 6}, "ecn_np": None, "ecn_rp": None, "traffic_class": None}
    return mlx5_qos(device, **{**values, "traffic_class_settable": False, **changes})
