# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The RoCE profile as a plain table, for a switch of another vendor."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.plugin_utils._roce.profile import roce_profile
from ansible_collections.rdma.cluster.plugins.plugin_utils._roce.switch_nvue import render_nvue

#: In glass and copper, as in SONiC (sonic-swss, cfgmgr/buffer_headroom_*.lua).
METRES_PER_SECOND = 198_000_000
#: The maximum response time to a pause frame, in quanta of 512 bits by rate in 10^9 bit/s: IEEE 802.3, 31B.3.7, as listed in SONiC.
PAUSE_QUANTA = {10: 67, 25: 80, 40: 118, 50: 147, 100: 394, 200: 453, 400: 905}
QUANTUM_BYTES = 64
#: In addition to the MTU: the Ethernet header with a VLAN tag, and the checksum.
FRAME_BYTES = 22
#: The pause frame itself, with preamble and gap.
PAUSE_FRAME_BYTES = 64 + 20


def headroom_bytes(cable_length_m: float, rate_gbps: float, mtu_bytes: int) -> int | None:
    """Return the headroom of one lossless priority of one port; None for a rate with an unknown response time.

    The parts, as in IEEE 802.1Q's annex on buffers for PFC: the data in the cable while the pause frame travels there and the last bits
    travel back; one of our frames that delays the pause frame, and one of theirs that has just begun; the pause frame; the response time.
    The vendor of the switch must add the delay of its MAC and PHY.
    """
    quanta = PAUSE_QUANTA.get(int(rate_gbps)) if float(rate_gbps).is_integer() else None
    if quanta is None:
        return None
    in_cable = 2 * cable_length_m / METRES_PER_SECOND * rate_gbps * 1e9 / 8
    frames = 2 * (mtu_bytes + FRAME_BYTES)
    return math.ceil(in_cable) + frames + PAUSE_FRAME_BYTES + quanta * QUANTUM_BYTES


Profile = Mapping[str, Any]
Switch = Mapping[str, Any]
WIDTH = 21


def render_table(profile: Profile, switch: Switch) -> str:
    """Return all values for the ports, one per line."""
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
        f"RoCE on {switch['name']}: the settings of its ports, as a vendor-neutral table.",
        "Generated from rdma_roce by rdma.cluster, for the network team.",
        "Nothing was applied.",
    ]
    return "\n".join([*head, "", *(f"{name:{WIDTH}}{value}" for name, value in rows)]) + "\n"


def _pfc(profile: Profile) -> str:
    return f"on for priority {profile['priority']}, off for all others" if any(profile["pfc"]) else "off for all priorities"


def _map(profile: Profile) -> str:
    mapped = sorted((int(dscp), priority) for dscp, priority in profile["dscp_to_priority"].items())
    return ", ".join(f"DSCP {dscp}: {priority}" for dscp, priority in mapped) + "; others: DSCP / 8"


def _classes(profile: Profile) -> list[tuple[str, str]]:
    """Return the traffic classes with their priorities and shares. The numbers are the NIC's; a switch may use others."""
    rows = []
    for tc in sorted(set(profile["priority_to_tc"])):
        priorities = ", ".join(str(priority) for priority, of in enumerate(profile["priority_to_tc"]) if of == tc)
        share = "strict, before all others" if profile["tsa"][tc] == "strict" else f"ETS, {profile['bandwidth_percent'][tc]} %"
        rows.append((f"traffic class {tc}", f"priorities {priorities}: {share}"))
    return rows


def _headroom(profile: Profile, switch: Switch) -> list[str]:
    """Return the bytes and their parts, or the missing inputs."""
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


"""{"name", "ports", "mtu_bytes", "cable_length_m" or None, "rate_gbps" or None}"""
RENDERERS: dict[str, Callable[[Profile, Switch], str]] = {"nvue": render_nvue, "table": render_table}
#: The file name suffixes.
SUFFIXES = {"nvue": ".nv", "table": ".txt"}


def switches_of(intent: Intent) -> dict[str, dict[str, Any]]:
    """Return the complete switches of a host's intent, by name.

    Without its own values, a switch has the cable length of rdma_roce, and the rate of the host's RoCE rails. The rate is None if the rails
    have several, or none is planned.
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
    """Return the file of a switch, with a final line break."""
    return RENDERERS[switch["syntax"]](profile, switch)


def switch_config(intent: Intent, name: str) -> str:
    """Return the file of one switch of a host's intent. Raises ValueError for a name that is not in rdma_roce.switches."""
    profile, switches = roce_profile(intent), switches_of(intent)
    if profile is None or name not in switches:
        raise ValueError(f"rdma_roce.switches has no {name}; it has {', '.join(switches) or 'none'}")
    return render(profile, switches[name])
