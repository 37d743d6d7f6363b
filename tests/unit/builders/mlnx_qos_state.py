# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A capture of mlnx_qos as the settings that its stand-in prints: what went in must come out again."""

from __future__ import annotations

from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._qos.mlnx_qos import TrafficClass, parse_mlnx_qos

TSA = {"strict": 0, "ets": 2, "vendor": 255, "unknown": 1}
NO_CLASS = TrafficClass(None, "vendor", None, [])


def state_of(text: str) -> dict[str, Any]:
    """The stand-in's state file for an output of the real one."""
    qos = parse_mlnx_qos(text)
    classes = qos.traffic_classes or {}
    by_tc = [classes.get(tc, NO_CLASS) for tc in range(8)]
    tc_of = {priority: tc for tc, found in classes.items() for priority in found.priorities}
    return {
        "dcbx_host": qos.dcbx_mode == "OS controlled",
        "trust": qos.trust or "none",
        "apps": [list(pair) for pair in (qos.dscp_to_priority or {}).items()],
        "priority_to_tc": [tc_of[priority] for priority in range(8)],
        "tsa": [TSA[found.tsa] for found in by_tc],
        "bandwidth_percent": [found.bandwidth_percent or 0 for found in by_tc],
        "maxrate_kbps": [round((found.ratelimit_gbps or 0) * 1000 * 1000) for found in by_tc],
        "pfc": sum(on << priority for priority, on in enumerate(qos.pfc_enabled or [])),
        "cable_length_m": qos.cable_length_m,
        "buffer_bytes": qos.buffer_sizes_bytes,
        "max_buffer_bytes": qos.max_buffer_bytes,
        "priority_to_buffer": qos.pfc_buffer,
        "form": {
            "dcbx": qos.dcbx_mode is not None,
            "trust": qos.trust is not None,
            "default_priority": "default priority:" in text,
            "total": "max_buffer_size" if qos.max_buffer_bytes is not None else "",
            "sorted": list(classes) == sorted(classes),
        },
    }
