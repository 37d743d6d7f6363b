# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The RoCE profile as NVUE commands, for Spectrum switches with Cumulus Linux.

The commands are those of NVIDIA's user guide for Cumulus Linux 5.10 to 5.16, "RDMA over Converged Ethernet - RoCE" and "Quality of
Service": `nv set qos roce mode` exists since 5.0, the single settings since 5.3 (NVUE reference, "QoS"). None was run on a switch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Profile = Mapping[str, Any]
Switch = Mapping[str, Any]
#: The settings of NVUE's RoCE mode ("Default RoCE Configuration"): RDMA in priority 3, CNPs in 6, both by DSCP >> 3; RDMA in traffic class
#: 3 with half of the link, CNPs in 6, strict. The buffers of RoCE and ECN belong to these classes, independent of the priorities.
PRIORITY, CNP_PRIORITY = 3, 6
RDMA_TC, CNP_TC, OTHERS_TC = 3, 6, 0
RDMA_PERCENT = 50
HEADER = """\
# RoCE on {name}: {what}.
# Generated from rdma_roce by rdma.cluster, for the network team.
# Nothing was applied. For Cumulus Linux 5.3 and later on Spectrum.
# These commands change the pending configuration. `nv config diff`
# shows it. `nv config apply` applies it, and may drop packets while
# buffers are reallocated.
# Everything except the MTU applies to every port of the switch.
"""
SHORT = """\
# The mode sets the rest: priority = DSCP / 8; priority 3 in class 3
# with 50 %; priority 6 (CNP) in class 6, strict; others in class 0.
"""


def render_nvue(profile: Profile, switch: Switch) -> str:
    """Return the commands of one switch: only the mode if NVUE's defaults match the profile, else each setting by name."""
    mode = "lossless" if any(profile["pfc"]) else "lossy"
    short = _classes_are_nvue_s(profile)
    lines = [
        *_comments(profile, switch, short=short),
        f"nv set qos roce mode {mode}",
        *_cable(profile, switch, "roce"),
        *(() if short else (*_pfc(profile, switch), *_map(profile), *_queues(profile), *_scheduler(profile))),
        *(() if profile["ecn"] else (f"nv set qos congestion-control default-global traffic-class {RDMA_TC} ecn disable",)),
        f"nv set interface {','.join(switch['ports'])} link mtu {switch['mtu_bytes']}",
    ]
    return "\n".join(lines) + "\n"


def _comments(profile: Profile, switch: Switch, *, short: bool) -> list[str]:
    """Return comments on the file, and on the mode's settings without a command."""
    what = f"{'lossless (PFC)' if any(profile['pfc']) else 'lossy (no PFC)'}, ECN {'on' if profile['ecn'] else 'off'}"
    lines = HEADER.format(name=switch["name"], what=what).splitlines()
    if short:
        lines += SHORT.splitlines()
    if profile["ecn"]:
        lines.append(f"# The mode enables ECN for class {RDMA_TC}.")
    return lines


def _cable(profile: Profile, switch: Switch, of: str) -> Iterator[str]:
    if any(profile["pfc"]) and switch["cable_length_m"]:
        yield f"nv set qos {of} cable-length {switch['cable_length_m']}"


def _classes_are_nvue_s(profile: Profile) -> bool:
    """Return whether priorities, DSCPs and shares are those of the RoCE mode."""
    own = all(int(dscp) >> 3 == priority for dscp, priority in profile["dscp_to_priority"].items())
    same = (profile["priority"], profile["cnp_priority"]) == (PRIORITY, CNP_PRIORITY)
    return own and same and profile["bandwidth_percent"][profile["priority"]] == RDMA_PERCENT


def _pfc(profile: Profile, switch: Switch) -> Iterator[str]:
    if not any(profile["pfc"]):
        return
    for setting in (f"switch-priority {profile['priority']}", "rx enable", "tx enable"):
        yield f"nv set qos pfc default-global {setting}"
    yield from _cable(profile, switch, "pfc default-global")


def _map(profile: Profile) -> Iterator[str]:
    """Yield the map. `both` is the RoCE mode's own setting: for a packet with an IP header, the DSCP counts."""
    yield "nv set qos mapping default-global trust both"
    for dscp, priority in sorted(profile["dscp_to_priority"].items(), key=lambda pair: int(pair[0])):
        yield f"nv set qos mapping default-global dscp {dscp} switch-priority {priority}"


def _queues(profile: Profile) -> Iterator[str]:
    """Yield the queues, with NVUE's class numbers, not the NIC's: they mean nothing on the wire, and the switch's buffers use them."""
    classes = {profile["cnp_priority"]: CNP_TC, profile["priority"]: RDMA_TC}
    for priority in range(8):
        tc = classes.get(priority, OTHERS_TC)
        yield f"nv set qos egress-queue-mapping default-global switch-priority {priority} traffic-class {tc}"


def _scheduler(profile: Profile) -> Iterator[str]:
    rdma = profile["bandwidth_percent"][profile["priority"]]
    for tc, percent in ((OTHERS_TC, 100 - rdma), (RDMA_TC, rdma)):
        yield f"nv set qos egress-scheduler default-global traffic-class {tc} mode dwrr"
        yield f"nv set qos egress-scheduler default-global traffic-class {tc} bw-percent {percent}"
    yield f"nv set qos egress-scheduler default-global traffic-class {CNP_TC} mode strict"
