# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The switch side of the RoCE profile: a file for the network team, in the switch's own language. Nothing here reaches a switch.

A renderer is a pure function (profile, switch) → text. profile: as roce_profile makes it; switch: one of rdma_roce.switches, complete as
`switches_of` makes it. Another vendor's is one more function here, and its name in SYNTAXES of _intent_schema_roce.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.plugin_utils._roce_profile import roce_profile
from ansible_collections.rdma.cluster.plugins.plugin_utils._switch_nvue import render_nvue
from ansible_collections.rdma.cluster.plugins.plugin_utils._switch_table import render_table

Profile = Mapping[str, Any]
Switch = Mapping[str, Any]
"""{"name", "ports", "mtu_bytes", "cable_length_m" or None, "rate_gbps" or None}"""
RENDERERS: dict[str, Callable[[Profile, Switch], str]] = {"nvue": render_nvue, "table": render_table}
#: What a file's name ends with.
SUFFIXES = {"nvue": ".nv", "table": ".txt"}


def switches_of(intent: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The switches of a host's intent by name, complete: the length of cables is rdma_roce's, and the rate that of the host's RoCE
    rails, where the switch has none of its own. The rate is None where rails have several, or none is planned.
    """
    roce = intent["roce"]
    if roce is None:
        return {}
    rates = {rail["rate_gbps"] for rail in intent["rails"] if rail["link_layer"] == "roce"}
    rate_gbps = rates.pop() if len(rates) == 1 else None
    return {
        name: {
            **switch,
            "name": name,
            "cable_length_m": switch["cable_length_m"] or roce["cable_length_m"],
            "rate_gbps": switch["rate_gbps"] or rate_gbps,
        }
        for name, switch in roce["switches"].items()
    }


def render(profile: Profile, switch: Switch) -> str:
    """The file of a switch, with a line break at its end."""
    return RENDERERS[switch["syntax"]](profile, switch)


def switch_config(intent: Mapping[str, Any], name: str) -> str:
    """The file of one of the switches of a host's intent. Raises ValueError for a name that rdma_roce.switches does not have."""
    profile, switches = roce_profile(intent), switches_of(intent)
    if profile is None or name not in switches:
        raise ValueError(f"rdma_roce.switches has no {name}: it has {', '.join(switches) or 'none'}")
    return render(profile, switches[name])
