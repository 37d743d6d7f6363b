# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether two rails reach each other, for pairs across rails."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from itertools import combinations

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent, Rail
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.rules.roce import Problem

#: The value of rdma_pairs.schedule that adds pairs across rails to `full`.
CROSS = "full+cross"


def apart(one: Rail, other: Rail, topology: str) -> str:
    """Return why two rails of a fabric do not reach each other, "" if they do. topology: rdma_fabric.topology.

    Rails of one plane reach each other on InfiniBand, and on RoCE in a common subnet or by a router of both.
    """
    reasons = {
        "the rails of a mesh are cables between two hosts": topology == "mesh",
        f"they are in separate planes, {one['plane']} and {other['plane']}": one["plane"] != other["plane"],
        f"one is {one['link_layer']}, the other {other['link_layer']}": one["link_layer"] != other["link_layer"],
    }
    why = next((reason for reason, holds in reasons.items() if holds), "")
    return why or ("" if one["link_layer"] == "infiniband" else _not_routed(one, other))


def _not_routed(one: Rail, other: Rail) -> str:
    if one["address"] is None or other["address"] is None:
        return "one has no address"
    first, second = (ipaddress.ip_interface(str(each["address"])).network for each in (one, other))
    if first.version != second.version:
        return "one has an IPv4 address, the other an IPv6 address"
    if first == second or (one["gateway"] and other["gateway"]):
        return ""
    return f"no router is planned between {first} and {second} (`gateway` of both rails)"


def cross_problems(intent: Intent) -> Iterator[Problem]:
    """Yield a problem, by its path below rdma_pairs, if pairs across rails are requested and no two rails reach each other."""
    if intent["pairs"]["schedule"] != CROSS or not intent["rails"]:
        return
    reasons = [apart(one, other, intent["fabric"]["topology"]) for one, other in combinations(intent["rails"], 2)]
    if all(reasons):
        why = reasons[0] if reasons else "the host has one rail"
        yield "schedule", f"is {CROSS}, but no two rails reach each other: {why}", "full, or two rails of a plane that reach each other"
