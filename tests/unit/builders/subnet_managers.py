# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A plane's subnet manager as the intent has it."""

from __future__ import annotations

from typing import Any

#: Where nothing is said; written down, since hosts' Pythons cannot read an intent (test__intent_rules_fabric).
SUBNET_MANAGER: dict[str, Any] = {
    "default_membership": None,
    "hosts": ["n1"],
    "kind": "hosts",
    "lmc": 0,
    "log": {"flags": 3, "flush": False, "max_size_mb": 0},
    "m_key_lease_seconds": 0,
    "m_key_protection_level": 0,
    "partition_enforcement": "both",
    "qos": {"enabled": False, "high_limit": -1, "max_vls": 0, "sl2vl": None, "vlarb_high": None, "vlarb_low": None},
    "routing": None,
    "sharp": False,
    "subnet_prefix": "0xfe80000000000000",
    "sweep_interval_seconds": 10,
    "switch": None,
}


def manager(**given: Any) -> dict[str, Any]:
    """One of which some is said; a dictionary in it is filled up."""
    filled = {key: {**SUBNET_MANAGER[key], **value} if isinstance(value, dict) else value for key, value in given.items()}
    return {**SUBNET_MANAGER, **filled}
