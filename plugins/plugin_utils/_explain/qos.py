# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The part of an explanation on RoCE's quality of service of a rail: the profile, the differences and their source, the boot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._base.systemd import UnitState
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._qos.differences import Difference, differences, format_value
from ansible_collections.rdma.cluster.plugins.module_utils._qos.plan import unit_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.qos.qos import overwriting
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.rail_port import RailPort
from ansible_collections.rdma.cluster.plugins.plugin_utils._explain.text import NOT_READ, Item
from ansible_collections.rdma.cluster.plugins.plugin_utils._roce.profile import roce_profile

#: Setting → the keys of rdma_roce from which the requested value is derived (see docs/qos.md).
REQUESTED_BY = {
    "dcbx": "dcbx",
    "global_pause": "",
    "trust": "",
    "dscp": "dscp, priority, cnp_dscp, cnp_priority",
    "pfc": "pfc, priority",
    "ets": "priority, cnp_priority, rdma_percent",
    "cable_length": "cable_length_m",
    "ecn_np": "ecn",
    "ecn_rp": "ecn",
    "np": "cnp_dscp, cnp_priority, dcqcn",
    "rp": "dcqcn",
    "traffic_class": "dscp, ecn",
    "rdma_cm": "dscp, ecn",
}
_CONGESTION = frozenset({"ecn_np", "ecn_rp", "np", "rp"})
_READ_BY = {"global_pause": "ethtool", "traffic_class": "sysfs", "rdma_cm": "configfs"}


def qos_items(port: RailPort, intent: Intent | None, facts: Facts) -> list[Item]:
    """The lines of a RoCE rail; none for other rails."""
    if intent is None or port.rail.rail["link_layer"] != "roce":
        return []
    profile = roce_profile(intent)
    if profile is None:
        return [Item("QoS", "rdma_roce is not set: no traffic is marked")]
    words, netdev = _profile_words(profile), str(port.rail.netdev)
    state = (facts.qos or {}).get(netdev)
    if not state:
        return [Item("QoS", f"{words}; {NOT_READ}")]
    backend = state.get("backend")
    by = f"by {backend}" if backend else f"no tool can set it: {state.get('why') or NOT_READ}"
    found = [_difference(each, state) for each in differences(profile, state)]
    boot = _boot(unit_of(netdev), facts.units or {})
    return [Item("QoS", f"{words}; {by}", not backend and not port.software), *found, *_agents(state), boot]


def _profile_words(profile: Mapping[str, Any]) -> str:
    pfc, ecn = ("" if any(profile["pfc"]) else "no "), ("" if profile["ecn"] else "no ")
    cnp = f"CNPs DSCP {profile['cnp_dscp']} in priority {profile['cnp_priority']}, " if profile["ecn"] else ""
    marks = f"DSCP {profile['dscp']} in priority {profile['priority']}, {pfc}PFC, {ecn}ECN"
    return f"{marks}, {cnp}traffic class {profile['traffic_class']}"


def _difference(difference: Difference, state: Mapping[str, Any]) -> Item:
    keys = REQUESTED_BY[difference.setting]
    why = f"rdma_roce: {keys}" if keys else "the same for every profile"
    read_by = state.get("dcqcn_source") if difference.setting in _CONGESTION else _READ_BY.get(difference.setting, state.get("backend"))
    seen = f"{difference.name} is {_shown(difference.was)} by {read_by or 'an unknown source'}"
    return Item("differs", f"{seen}, requested {_shown(difference.requested)} ({why})", marked=True)


def _shown(value: Any) -> str:
    return "not set" if value is None else format_value(value)


def _agents(state: Mapping[str, Any]) -> Iterator[Item]:
    for name in overwriting(state):
        yield Item("agent", f"{name} would overwrite PFC and ETS", marked=True)


def _boot(unit: str, units: Mapping[str, UnitState]) -> Item:
    if unit not in units:
        return Item("boot", f"{unit}: {NOT_READ}")
    state = units[unit]
    lacking = [word for word, there in (("active", state.active), ("enabled", state.enabled)) if not there]
    return Item("boot", f"{unit}, {'not ' + ' and not '.join(lacking) if lacking else 'active and enabled'}", bool(lacking))
