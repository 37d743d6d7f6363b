# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The RoCE profile: everything that follows from rdma_roce, derived in one place for NICs, switches, NCCL, RDMA-CM and perftest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent, Rail
from ansible_collections.rdma.cluster.plugins.module_utils._qos.sysfs import NP_PARAMETERS, RP_PARAMETERS

SCHEMA = 1
PRIORITIES = range(8)
#: The traffic class of all other traffic.
OTHERS_TC = 0
#: The two ECN bits beside the DSCP in the traffic class: the packet may be marked (ECT(0), RFC 3168).
ECN_CAPABLE = 0b10
#: The traffic class is an IP field, so only RoCE v2 has it. The name is the kernel's (drivers/infiniband/core/cma_configfs.c).
ROCE_MODE = "RoCE v2"


def roce_profile(intent: Intent) -> dict[str, Any] | None:
    """Return the profile of a host, in plain JSON types; None if the inventory has no rdma_roce. intent: normalized.

    pfc, priority_to_tc: by priority. tsa ("ets" or "strict", IEEE 802.1Qaz) and bandwidth_percent: by traffic class; a strict one has 0.
    dscp_to_priority: the required mappings, with the DSCP as text; any other DSCP keeps the NIC's own map (DSCP >> 3). np, rp: values of
    OFED's files in ecn/roce_np and ecn/roce_rp; missing ones are the firmware's. Without ECN both are empty. traffic_class: the IP byte for
    NCCL_IB_TC, perftest's --tclass and tc/PORT/traffic_class; rdma_cm.tos is the same.
    """
    roce = intent["roce"]
    if roce is None:
        return None
    dcqcn = {name: value for name, value in roce["dcqcn"].items() if value is not None}
    cnp = {"cnp_dscp": roce["cnp_dscp"], "cnp_802p_prio": roce["cnp_priority"]}
    byte = _traffic_class(roce)
    return {
        "schema": SCHEMA,
        **{key: roce[key] for key in ("priority", "dscp", "cnp_priority", "cnp_dscp", "ecn")},
        "trust": "dscp",
        "dcbx": roce["dcbx"],
        "pfc": [roce["pfc"] and priority == roce["priority"] for priority in PRIORITIES],
        "dscp_to_priority": {str(roce["dscp"]): roce["priority"], str(roce["cnp_dscp"]): roce["cnp_priority"]},
        **_classes(roce),
        "cable_length_m": roce["cable_length_m"],
        "global_pause": False,
        "np": {**cnp, **_of(NP_PARAMETERS, dcqcn)} if roce["ecn"] else {},
        "rp": _of(RP_PARAMETERS, dcqcn) if roce["ecn"] else {},
        "traffic_class": byte,
        "rdma_cm": {"mode": ROCE_MODE, "tos": byte},
    }


def service_level(rails: Sequence[Rail]) -> int | None:
    """Return the PCP of these rails' VLANs, which a NIC takes from the service level of a queue pair; None without one.

    The rules of the intent allow only one: the priority of the profile.
    """
    vlans = [rail.get("vlan") for rail in rails]
    return next((vlan["pcp"] for vlan in vlans if vlan is not None and vlan["pcp"] is not None), None)


def _traffic_class(roce: Mapping[str, Any]) -> int:
    """Return DSCP and ECN bits: 106 for DSCP 26 with ECN."""
    return int(roce["dscp"]) << 2 | (ECN_CAPABLE if roce["ecn"] else 0)


def _classes(roce: Mapping[str, Any]) -> dict[str, Any]:
    """Return the classes: RDMA and CNPs have one each, numbered like their priority; all others share one. CNPs are served first."""
    rdma, cnp = roce["priority"], roce["cnp_priority"]
    percent = {rdma: roce["rdma_percent"], OTHERS_TC: 100 - roce["rdma_percent"]}
    return {
        "priority_to_tc": [priority if priority in (rdma, cnp) else OTHERS_TC for priority in PRIORITIES],
        "tsa": ["strict" if tc == cnp != rdma else "ets" for tc in PRIORITIES],
        "bandwidth_percent": [percent.get(tc, 0) for tc in PRIORITIES],
    }


def _of(names: Mapping[str, Any], dcqcn: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in dcqcn.items() if name in names}
