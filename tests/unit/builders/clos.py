# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Routed planes: the settings, and the plan of a Clos network of any size, with the cables of the lab."""

from __future__ import annotations

from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import RoutingIntent
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.cabling.plan import parse_plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.model import RoutedPlane
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.plan import make_plan
from lab.clos_plan import ClosShape, cabling


def settings(**changes: Any) -> RoutingIntent:
    """Return the settings with every default."""
    default: Any = {
        "kind": "bgp_unnumbered", "asn_base": 4200000000, "spine_asn": "shared", "loopbacks": "10.0.0.0/24", "host_subnets": "10.1.0.0/16",
        "leaf_prefix_length": 24, "port_prefix": "swp", "port_lanes": None, "syntax": "frr",
        "switches": {}, "hosts_peer": False, "bfd": True, "maximum_paths": 64, "hash_policy": "l4", **changes,
    }  # fmt: skip
    result: RoutingIntent = default
    return result


def routed(leaves: int = 2, spines: int = 2, hosts: int = 1, **changes: Any) -> RoutedPlane:
    """Return the plan of a network as `lab clos up` makes it, for plane fab."""
    return make_plan("fab", settings(**changes), parse_plan(cabling(ClosShape(leaves, spines, hosts))))


def podded(shape: ClosShape, **changes: Any) -> RoutedPlane:
    """Return the plan of a network with any shape, for plane fab."""
    return make_plan("fab", settings(**changes), parse_plan(cabling(shape)))
