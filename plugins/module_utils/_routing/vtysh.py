# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the JSON that FRR's `vtysh -c 'show … json'` prints, as FRR 8.4.4 writes it (bgp_vty.c, bgp_route.c, bfdd_vty.c, zebra_vty.c).

A key that is missing is None or empty; a value of another type is a ParseError.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted

T = TypeVar("T")
ESTABLISHED = "Established"
#: peerState of a session that is up and has no policy (RFC 8212), so that it carries no route.
NO_POLICY = "Policy"
#: An instance of BGP that is not configured is an empty object, or this text.
_NO_BGP = re.compile(r"% BGP instance not found|% No BGP neighbors found", re.IGNORECASE)


@dataclass(frozen=True)
class BgpPeer:
    """A neighbor of BGP. state: "Idle", "Active", "Established"…; policy: "OK", "Policy", "Admin"…; received: accepted prefixes."""

    state: str
    policy: str | None
    remote_asn: int | None
    received: int | None


@dataclass(frozen=True)
class BgpSummary:
    """BGP of the default VRF. asn: None if it is not configured. peers: by interface or address. multipath_relax: None if not printed."""

    asn: int | None
    router_id: str | None
    peers: dict[str, BgpPeer]
    multipath_relax: bool | None


@dataclass(frozen=True)
class BgpNeighbor:
    """The other end of a session. router_id: None if it never answered. last_reset: the reason of the last end of the session."""

    router_id: str | None
    host_name: str | None
    last_reset: str | None


@dataclass(frozen=True)
class BgpRoute:
    """A prefix in BGP's table. own: whether this router brings it in by itself. peers: number of neighbors that sent it."""

    prefix: str
    own: bool
    peers: int


@dataclass(frozen=True)
class Route:
    """A selected route of the kernel. paths: the interfaces of its next hops that are installed, one for each path."""

    prefix: str
    protocol: str
    paths: list[str]


@dataclass(frozen=True)
class Interface:
    """An interface. up: it is enabled and has a carrier. addresses: with prefix length."""

    mtu_bytes: int | None
    up: bool
    addresses: list[str]


def parse_show_bgp_summary(text: str) -> BgpSummary:
    """Return the summary of `show bgp summary json`. Without BGP, or without its IPv4 address family, asn is None."""
    if _NO_BGP.search(text):
        return BgpSummary(None, None, {}, None)
    family = _table(_json(text).get("ipv4Unicast"), "ipv4Unicast")
    peers = {
        name: BgpPeer(
            _required(_text(peer, "state"), f"{name}: state"),
            _text(peer, "peerState"),
            _number(peer, "remoteAs") or None,
            _number(peer, "pfxRcd"),
        )
        for name, peer in _tables(family, "peers")
    }
    relax = _text(_table(family.get("bestPath"), "bestPath"), "multiPathRelax")
    return BgpSummary(_number(family, "as"), _address(family, "routerId"), peers, None if relax is None else relax == "true")


def parse_show_bgp_neighbors(text: str) -> dict[str, BgpNeighbor]:
    """Return the neighbors of `show bgp neighbors json`, by interface or address."""
    if _NO_BGP.search(text):
        return {}
    found = {}
    for name, neighbor in _json(text).items():
        if isinstance(neighbor, dict):
            router_id = _address(neighbor, "remoteRouterId")
            router_id = None if router_id == "0.0.0.0" else router_id  # noqa: S104 (the identifier of a neighbor that never answered)
            found[name] = BgpNeighbor(router_id, _text(neighbor, "hostname"), _text(neighbor, "lastResetDueTo"))
    return found


def parse_show_bgp_ipv4_unicast(text: str) -> list[BgpRoute]:
    """Return the table of `show bgp ipv4 unicast json`."""
    if _NO_BGP.search(text) or not text.strip():
        return []
    found = []
    for prefix, paths in _lists(_json(text), "routes"):
        sent = [path for path in paths if _text(path, "path")]
        found.append(BgpRoute(_prefix(prefix), len(sent) < len(paths), len(sent)))
    return found


def parse_show_ip_route(text: str) -> list[Route]:
    """Return the selected routes of `show ip route json`."""
    found = []
    for prefix, routes in _lists({"": _json(text)}, ""):
        for route in routes:
            if route.get("selected") is True:
                hops = [hop for hop in _items(route.get("nexthops"), prefix) if hop.get("fib") is True]
                paths = [_text(hop, "interfaceName") or "" for hop in hops]
                found.append(Route(_prefix(prefix), _required(_text(route, "protocol"), f"{prefix}: protocol"), paths))
    return found


def parse_show_bfd_peers(text: str) -> dict[str, str]:
    """Return interface → status of its BFD session ("up", "down", "init", "shutdown") of `show bfd peers json`."""
    peers = {}
    for peer in _items(_any(text), "the peers"):
        interface, status = _text(peer, "interface"), _text(peer, "status")
        if interface is not None and status is not None:
            peers[interface] = status
    return peers


def parse_show_interface(text: str) -> dict[str, Interface]:
    """Return the interfaces of `show interface json`, by name."""
    return {
        name: Interface(
            _number(interface, "mtu"),
            _text(interface, "administrativeStatus") == "up" and _text(interface, "operationalStatus") == "up",
            [address for each in _items(interface.get("ipAddresses"), name) if (address := _text(each, "address")) is not None],
        )
        for name, interface in _tables({"": _json(text)}, "")
    }


def parse_show_version(text: str) -> tuple[int, ...]:
    """Return (8, 4, 4) for "FRRouting 8.4.4 (leaf1) on Linux(6.1).", the first line of `show version`."""
    found = re.match(r"FRRouting ([0-9]{1,4}(?:\.[0-9]{1,4}){1,3})", text.lstrip()[:200])
    if found is None:
        raise ParseError(f"not `show version` of FRR: {quoted(text)}, expected 'FRRouting 8.4.4 …'")
    return tuple(int(part) for part in found.group(1).split("."))


def _any(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise ParseError(f"not JSON of vtysh: {quoted(text)}: {str(exc)[:200]}") from exc


def _json(text: str) -> dict[str, Any]:
    return _table(_any(text), "the answer")


def _table(value: Any, where: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ParseError(f"{where[:100]}: expected an object, got {quoted(value)}")
    return value


def _items(value: Any, where: str) -> list[dict[str, Any]]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise ParseError(f"{where[:100]}: expected a list, got {quoted(value)}")
    return [_table(each, where) for each in value]


def _tables(data: dict[str, Any], key: str) -> Iterator[tuple[str, dict[str, Any]]]:
    return ((name, _table(value, name)) for name, value in _table(data.get(key), key).items())


def _lists(data: dict[str, Any], key: str) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    return ((name, _items(value, name)) for name, value in _table(data.get(key), key).items())


def _text(data: dict[str, Any], key: str) -> str | None:
    value = data.get(key)
    if value is not None and not isinstance(value, str):
        raise ParseError(f"{key}: expected text, got {quoted(value)}")
    return value


def _number(data: dict[str, Any], key: str) -> int | None:
    value = data.get(key)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**32):
        raise ParseError(f"{key}: expected a number below 2^32, got {quoted(value)}")
    return value


def _address(data: dict[str, Any], key: str) -> str | None:
    value = _text(data, key)
    if value is None:
        return None
    try:
        return str(ipaddress.IPv4Address(value))
    except ValueError as exc:
        raise ParseError(f"{key}: expected an IPv4 address, got {quoted(value)}") from exc


def _prefix(text: str) -> str:
    try:
        return str(ipaddress.IPv4Network(text))
    except ValueError as exc:
        raise ParseError(f"expected an IPv4 prefix, got {quoted(text)}") from exc


def _required(value: T | None, where: str) -> T:
    if value is None:
        raise ParseError(f"{where[:100]}: missing")
    return value
