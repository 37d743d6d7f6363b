# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The quality of service of a host's interfaces in a few hundred bytes: what a profile is compared with, and no more.

Interfaces that are set alike, as they all should be, share one state. Flags are bits, parameters a list in the order of their names'
table, and of the DSCP map only what differs from a NIC's default is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._dcb import PRIORITIES
from ansible_collections.rdma.cluster.plugins.module_utils._qos_sysfs import NP_PARAMETERS, RP_PARAMETERS

_SAME = ("backend", "dcbx", "trust", "priority_to_tc", "tsa", "bandwidth_percent", "cable_length_m", "traffic_class", "rdma_cm")
DSCPS = 64
_FLAGS = ("pfc", "ecn_np", "ecn_rp")
_PARAMETERS = {"np": tuple(NP_PARAMETERS), "rp": tuple(RP_PARAMETERS)}


def pack_states(qos: Mapping[str, Mapping[str, Any]] | None) -> dict[str, Any] | None:
    """Interface → as_tree of its QosState: as {"states": [...], "netdevs": {interface: its state's number}}; None for None."""
    if qos is None:
        return None
    states: list[dict[str, Any]] = []
    netdevs = {}
    for name, state in qos.items():
        packed = _pack(state)
        if packed not in states:
            states.append(packed)
        netdevs[name] = states.index(packed)
    return {"states": states, "netdevs": netdevs}


def unpack_states(packed: Mapping[str, Any] | None) -> dict[str, dict[str, Any]] | None:
    """Interface → what differences compares of its state; None where it was not read."""
    return None if packed is None else {name: _unpack(packed["states"][number]) for name, number in packed["netdevs"].items()}


def _pack(state: Mapping[str, Any]) -> dict[str, Any]:
    packed = {key: state.get(key) for key in _SAME}
    packed.update({key: _bits(state[key]) for key in _FLAGS if state.get(key) is not None})
    packed.update({key: [state[key].get(name) for name in names] for key, names in _PARAMETERS.items() if state.get(key)})
    codes = state.get("dscp_to_priority")
    if codes is not None:
        packed["dscp"] = {code: priority for code, priority in codes.items() if priority != int(code) >> 3}
        packed["dscp_default"] = sum(1 << int(code) for code, priority in codes.items() if priority == int(code) >> 3)
    packed["pause"] = state.get("pause") if any((state.get("pause") or {}).values()) else None
    packed["settable"] = state.get("traffic_class_settable") or None
    return {key: value for key, value in packed.items() if value is not None}


def _unpack(packed: Mapping[str, Any]) -> dict[str, Any]:
    state = {key: packed.get(key) for key in _SAME}
    state.update({key: _flags(packed[key]) for key in _FLAGS if key in packed})
    for key, names in _PARAMETERS.items():
        state[key] = {name: value for name, value in zip(names, packed.get(key) or ()) if value is not None}
    return {
        **state,
        "pause": packed.get("pause"),
        "dscp_to_priority": _codes(packed),
        "traffic_class_settable": bool(packed.get("settable")),
    }


def _codes(packed: Mapping[str, Any]) -> dict[str, int] | None:
    """Entries of a DSCP's upper three bits, which are most, are kept as one number; a DSCP without an entry is in neither."""
    if "dscp" not in packed:
        return None
    defaults = {str(code): code >> 3 for code in range(DSCPS) if packed["dscp_default"] >> code & 1}
    return {**defaults, **packed["dscp"]}


def _bits(flags: Sequence[bool]) -> int:
    return sum(1 << priority for priority, flag in enumerate(flags) if flag)


def _flags(bits: int) -> Iterable[bool]:
    return [bool(bits >> priority & 1) for priority in range(PRIORITIES)]
