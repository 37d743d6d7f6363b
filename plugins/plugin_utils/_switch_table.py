# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The RoCE profile as a plain table, for a switch whose language nobody here speaks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.plugin_utils._pfc_headroom import METRES_PER_SECOND, headroom_bytes

Profile = Mapping[str, Any]
Switch = Mapping[str, Any]
WIDTH = 21


def render_table(profile: Profile, switch: Switch) -> str:
    """Every value that the ports need, a line each."""
    rows = [
        ("ports", ", ".join(switch["ports"])),
        ("MTU", f"{switch['mtu_bytes']} bytes"),
        ("trust", "DSCP"),
        ("PFC", _pfc(profile)),
        ("link pause (802.3x)", "off"),
        *(("headroom" if not index else "", line) for index, line in enumerate(_headroom(profile, switch))),
        ("ECN", f"marks the class of priority {profile['priority']}" if profile["ecn"] else "off"),
        ("priority of a DSCP", _map(profile)),
        *_classes(profile),
    ]
    head = [
        f"RoCE on {switch['name']}: what its ports need, in no switch's language.",
        "Made of rdma_roce by rdma.cluster, for the network team.",
        "Nothing was applied.",
    ]
    return "\n".join([*head, "", *(f"{name:{WIDTH}}{value}" for name, value in rows)]) + "\n"


def _pfc(profile: Profile) -> str:
    return f"on for priority {profile['priority']}, off for all others" if any(profile["pfc"]) else "off for all priorities"


def _map(profile: Profile) -> str:
    mapped = sorted((int(dscp), priority) for dscp, priority in profile["dscp_to_priority"].items())
    return ", ".join(f"DSCP {dscp}: {priority}" for dscp, priority in mapped) + "; others: DSCP / 8"


def _classes(profile: Profile) -> list[tuple[str, str]]:
    """The traffic classes with their priorities and shares. Their numbers are the NIC's; a switch may have others."""
    rows = []
    for tc in sorted(set(profile["priority_to_tc"])):
        priorities = ", ".join(str(priority) for priority, of in enumerate(profile["priority_to_tc"]) if of == tc)
        share = "strict, before all others" if profile["tsa"][tc] == "strict" else f"ETS, {profile['bandwidth_percent'][tc]} %"
        rows.append((f"traffic class {tc}", f"priorities {priorities}: {share}"))
    return rows


def _headroom(profile: Profile, switch: Switch) -> list[str]:
    """The bytes and how they come about, or what is missing to tell."""
    if not any(profile["pfc"]):
        return ["none: nothing is lossless"]
    cable_length_m, rate_gbps = switch["cable_length_m"], switch["rate_gbps"]
    missing = [key for key in ("cable_length_m", "rate_gbps") if switch[key] is None]
    if missing:
        return [f"not known without {' and '.join(missing)}", f"(rdma_roce.switches.{switch['name']})"]
    size_bytes = headroom_bytes(cable_length_m, rate_gbps, switch["mtu_bytes"])
    if size_bytes is None:
        return [f"not known: how fast a pause is obeyed at {rate_gbps:g} Gb/s"]
    return [
        f"{size_bytes} bytes for priority {profile['priority']} of each port:",
        f"{cable_length_m} m there and back at {METRES_PER_SECOND} m/s, {rate_gbps:g} Gb/s,",
        "two frames, the pause frame, the time to obey;",
        "add the switch's own delays",
    ]
