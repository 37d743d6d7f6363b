# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What each endpoint of a plan allows by itself: host → rail → limit, and the same in the shape in which a matrix takes it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._findings import NOT_APPLICABLE
from ansible_collections.rdma.cluster.plugins.module_utils._rails import resolve
from ansible_collections.rdma.cluster.plugins.plugin_utils._pair_endpoint import NoLimit, endpoints
from ansible_collections.rdma.cluster.plugins.plugin_utils._pair_expected import Limit, pair_limit

Limits = Mapping[str, Mapping[str, Limit | NoLimit]]


def limits(plan: Mapping[str, Any], intents: Mapping[str, Any], facts: Mapping[str, Any]) -> Limits:
    """By what a pair of two such endpoints could reach in the plan's first test. Hosts without facts here are not in it."""
    test = plan["tests"][0]
    rails = {rail["name"] for rail in plan["rails"]}
    return {host: _of_host(intents[host], facts[host], rails, test) for host in plan["hosts"] if host in intents}


def _of_host(intent: Mapping[str, Any], facts: Mapping[str, Any], rails: set[str], test: Mapping[str, Any]) -> dict[str, Limit | NoLimit]:
    measured = [rail for rail in resolve(intent["rails"], facts) if rail.name in rails]
    ends = zip(measured, endpoints(measured, facts), strict=True)
    return {rail.name: pair_limit(end, end, bidirectional=test["bidirectional"], mtu_bytes=test["mtu_bytes"]) for rail, end in ends}


def is_software(limit: Limit | NoLimit) -> bool:
    """Whether there is no limit because software has none; a card of which none is known is another thing."""
    return isinstance(limit, NoLimit) and limit.status == NOT_APPLICABLE


def grid(plan: Mapping[str, Any], known: Limits) -> list[list[float | None]]:
    """[rail][host] in Gb/s, None without a limit. Of a host that is not in `known` (a proven partner of another play) nothing is asked."""
    return [[_gbps(known.get(host, {}).get(rail["name"]), host in known) for host in plan["hosts"]] for rail in plan["rails"]]


def _gbps(limit: Limit | NoLimit | None, is_known: bool) -> float | None:
    if not is_known:
        return math.inf
    return limit.gbps if isinstance(limit, Limit) else None
