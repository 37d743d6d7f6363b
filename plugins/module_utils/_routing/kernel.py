# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The routes of BGP in the kernel's own table, by `ip -json -4 route show` (iproute2, ip/iproute.c).

FRR's table does not show a path that the kernel has dropped: FRR 8.4.4 listed two paths while the kernel used one.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted

KERNEL = ("ip", "-json", "-4", "route", "show")
#: The protocol of FRR's bgpd, as /etc/iproute2/rt_protos names it, and its number (Linux, include/uapi/linux/rtnetlink.h: RTPROT_BGP).
BGP = ("bgp", "186")
#: Flags of a next hop that the kernel does not use (net.ipv4.conf.all.ignore_routes_with_linkdown is 1).
UNUSED = {"dead", "linkdown"}


def parse_ip_route_show(text: str) -> dict[str, list[str]]:
    """Return prefix → the interfaces of the usable next hops of its route, one for each path; [] if the route is not BGP's.

    Of several routes of one prefix, the kernel uses the one with the smallest metric, and so does the result. Raises ParseError.
    """
    try:
        routes = json.loads(text or "[]")
    except (ValueError, RecursionError) as exc:
        raise ParseError(f"not the JSON of `{' '.join(KERNEL)}`: {quoted(text)}: {str(exc)[:200]}") from exc
    best: dict[str, tuple[int, list[str]]] = {}
    for route in _objects(routes, "the answer"):
        prefix, metric = _prefix(route.get("dst")), route.get("metric", 0)
        if isinstance(metric, bool) or not isinstance(metric, int):
            raise ParseError(f"metric of {prefix}: expected a number, got {quoted(metric)}")
        if prefix not in best or metric < best[prefix][0]:
            best[prefix] = (metric, _paths(prefix, route) if route.get("protocol") in BGP else [])
    return {prefix: paths for prefix, (_metric, paths) in best.items()}


def _paths(prefix: str, route: Mapping[str, Any]) -> list[str]:
    hops = _objects(route["nexthops"], prefix) if "nexthops" in route else [route] if "dev" in route else []
    if not hops and "nhid" in route:
        raise ParseError(f"{prefix} shows next hop group {str(route['nhid'])[:20]} and no path: net.ipv4.nexthop_compat_mode must be 1")
    paths = []
    for hop in hops:
        flags, interface = hop.get("flags", []), hop.get("dev")
        if not isinstance(flags, list) or not isinstance(interface, str):
            raise ParseError(f"a next hop of {prefix}: expected dev and flags, got {quoted(hop)}")
        if not UNUSED.intersection(map(str, flags)):
            paths.append(interface)
    return paths


def _objects(value: Any, where: str) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise ParseError(f"{where[:100]}: expected a list of objects, got {quoted(value)}")
    return value


def _prefix(value: Any) -> str:
    try:
        return str(ipaddress.IPv4Network("0.0.0.0/0" if value == "default" else str(value)))
    except ValueError as exc:
        raise ParseError(f"expected an IPv4 prefix, got {quoted(value)}") from exc
