# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The faults of one rail of a host for a drill: the commands that make and end each of them, and the state that must come back.

Sources: ip-link(8), ip-address(8), ip-route(8); drivers/infiniband/core/cache.c of Linux: a new GID gets the first free index.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Runner, run_checked
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._host.sockets import IPV4_LISTENERS, IPV6_LISTENERS, parse_established
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_steps import has_carrier, is_up

RAIL_DOWN, MTU_1500, ADDRESS_LOST, GID_MOVED = "rail_down", "mtu_1500", "address_lost", "gid_moved"
RAIL_KINDS = (RAIL_DOWN, MTU_1500, ADDRESS_LOST, GID_MOVED)
LOW_MTU_BYTES = 1500
#: Takes the first free GID index, so that the rail's address gets a later one. RFC 3927: no router forwards it.
PLACEHOLDER = "169.254.213.77/32"
_UPPER = re.compile(r"(upper_|lower_|master$)")
#: Words of `ip route show` that describe a state or pass with time.
_STATE_WORDS, _STATE_PAIRS = ("linkdown", "dead"), ("expires", "pref")
#: Routes that the kernel makes for each address by itself, and that a router announces again.
_LOCAL = ("local", "broadcast", "anycast", "multicast")
_FAMILIES = ("-4", "-6")


@dataclass(frozen=True)
class RailState:
    """What a fault may change on an interface. addresses: the words of `ip address add`. routes: "-4 10.0.0.0/24 proto kernel", sorted.

    gids: "mlx5_0/1 index 3" → the GID and its type. carrier counts too: a link that does not come up again is not as before.
    """

    up: bool
    carrier: bool
    mtu_bytes: int
    addresses: list[list[str]]
    routes: list[str]
    gids: dict[str, str]


@dataclass(frozen=True)
class Recipe:
    """make: the commands of the fault. restore: the commands that end it, which may be run more than once."""

    make: list[list[str]]
    restore: list[list[str]]


def read_rail(netdev: str, runner: Runner, sys: SysRoot) -> RailState:
    """Return the state of an interface. Raises ApplyError if a command fails or the interface is missing, ParseError for other output."""
    shown = run_checked(runner, "ip", "-json", "address", "show", "dev", netdev)
    mtu_bytes, addresses = parse_interface(shown, netdev)
    tables = {family: run_checked(runner, "ip", family, "route", "show", "table", "all") for family in _FAMILIES}
    routes = sorted(f"{family} {route}" for family, text in tables.items() for route in parse_routes(text, netdev))
    return RailState(is_up(netdev, sys), has_carrier(netdev, sys), mtu_bytes, addresses, routes, read_gids(netdev, sys))


def parse_interface(text: str, netdev: str) -> tuple[int, list[list[str]]]:
    """Return the MTU and the static addresses of an interface, each as the words of `ip address add`.

    text: of `ip -json address show dev IF`. Raises ParseError for another form.
    """
    found: list[list[str]] = []
    try:
        [shown] = [each for each in json.loads(text) if each]
        for each in shown["addr_info"]:
            if each["scope"] != "global" or each.get("dynamic") or each.get("temporary"):
                continue
            words = [f"{each['local']}/{int(each['prefixlen'])}"]
            for key, word in (("broadcast", "brd"), ("metric", "metric")):
                words += [word, str(each[key])] if key in each else []
            words += ["label", each["label"]] if each.get("label", netdev) != netdev else []
            words += [flag for flag in ("noprefixroute", "nodad") if each.get(flag)]
            found.append(words)
        return int(shown["mtu"]), found
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ParseError(f"not the JSON of `ip -json address show dev {netdev}`: {error!r} in {quoted(text)}") from error


def parse_routes(text: str, netdev: str) -> list[str]:
    """Return the routes through an interface that disappear with its address or link, as `ip route replace` reads them.

    text: of `ip -4 route show table all`, or with -6. Raises ApplyError for a route with several next hops, which cannot be set again.
    """
    found, route = [], ""
    for line in text.splitlines():
        if line[:1].isspace():
            if netdev in _after("dev", line.split()):
                raise ApplyError(f"{netdev} is a next hop of a route with several ({route}): this fault could not be undone exactly.")
            continue
        words = _route_words(line)
        route = " ".join(words)
        if words and netdev in _after("dev", words) and words[0] not in _LOCAL and "ra" not in _after("proto", words):
            found.append(route)
    return found


def _after(key: str, words: Sequence[str]) -> list[str]:
    return [words[words.index(key) + 1]] if key in words[:-1] else []


def _route_words(line: str) -> list[str]:
    words, kept = iter(line.split()), []
    for word in words:
        if word in _STATE_PAIRS:
            next(words, None)
        elif word not in _STATE_WORDS:
            kept.append(word)
    return kept


def read_gids(netdev: str, sys: SysRoot) -> dict[str, str]:
    """Return the GIDs of an interface in the tables of all RDMA ports: "mlx5_0/1 index 3" → "0000:…:0001 RoCE v2"."""
    found = {}
    for device in sys.list_dir("/sys/class/infiniband"):
        for port in sys.list_dir(f"/sys/class/infiniband/{device}/ports"):
            base = f"/sys/class/infiniband/{device}/ports/{port}"
            for index, text in sys.read_files(f"{base}/gids").items():
                if text.strip("0:\n") and sys.text(f"{base}/gid_attrs/ndevs/{index}") == netdev:
                    found[f"{device}/{port} index {index}"] = f"{text.strip()} {sys.text(f'{base}/gid_attrs/types/{index}')}"
    return found


def rail_recipe(kind: str, netdev: str, address: str | None, before: RailState) -> Recipe:
    """Return the commands of a fault. address: the rail's planned address. Raises ApplyError if the fault would change nothing."""
    back = _back(netdev, before)
    if kind == RAIL_DOWN:
        return Recipe([["ip", "link", "set", "dev", netdev, "down"]], back)
    if kind == MTU_1500:
        if before.mtu_bytes <= LOW_MTU_BYTES:
            raise ApplyError(f"{netdev} has an MTU of {before.mtu_bytes} bytes already, so this fault would change nothing.")
        return Recipe([["ip", "link", "set", "dev", netdev, "mtu", str(LOW_MTU_BYTES)]], back)
    own = next((words for words in before.addresses if words[0] == address), None)
    if own is None:
        raise ApplyError(f"{netdev} does not have the rail's address {address} as a static address.")
    delete = ["ip", "address", "del", own[0], "dev", netdev]
    if kind == ADDRESS_LOST:
        return Recipe([delete], back)
    if not before.gids or ipaddress.ip_interface(own[0]).version != 4:
        raise ApplyError(f"{netdev} has no GID of an IPv4 address, so no GID can be moved.")
    placeholder = ["ip", "address", "add", PLACEHOLDER, "dev", netdev]
    return Recipe([delete, placeholder, *back], [delete, ["ip", "address", "del", PLACEHOLDER, "dev", netdev], *back])


def _back(netdev: str, before: RailState) -> list[list[str]]:
    """Return the commands that set link, MTU, addresses and routes again, routes without a router first."""
    commands = [["ip", "link", "set", "dev", netdev, "mtu", str(before.mtu_bytes)], ["ip", "link", "set", "dev", netdev, "up"]]
    commands += [["ip", "address", "replace", *words, "dev", netdev] for words in before.addresses]
    for route in sorted(before.routes, key=lambda each: " via " in each):
        family, _space, words = route.partition(" ")
        commands.append(["ip", family, "route", "replace", *words.split()])
    return commands


def rail_differences(netdev: str, before: RailState, now: RailState) -> list[str]:
    """Return what is not as before the fault, as sentences."""
    found = []
    if (before.up and not now.up) or (before.carrier and not now.carrier):
        found.append(f"{netdev} has no carrier or is disabled: ip link set dev {netdev} up")
    if now.mtu_bytes != before.mtu_bytes:
        found.append(f"the MTU of {netdev} is {now.mtu_bytes} bytes, before it was {before.mtu_bytes}")
    for what, old, new in (
        ("address", [" ".join(each) for each in before.addresses], [" ".join(each) for each in now.addresses]),
        ("route", before.routes, now.routes),
        ("GID", _lines(before.gids), _lines(now.gids)),
    ):
        found += [f"{netdev} has lost its {what} {each}" for each in old if each not in new]
        found += [f"{netdev} has a new {what} {each}" for each in new if each not in old]
    return found


def _lines(gids: dict[str, str]) -> list[str]:
    return [f"{place}: {gid}" for place, gid in gids.items()]


def refuse_rail(kind: str, netdev: str, before: RailState, sys: SysRoot) -> None:
    """Raise ApplyError if something besides the rail's RDMA depends on the interface: another one, the default route, TCP, storage."""
    parts = [name for name in sys.list_dir(f"/sys/class/net/{netdev}") if _UPPER.match(name)]
    if parts:
        names = ", ".join(name.partition("_")[2] or name for name in parts)
        raise ApplyError(f"{netdev} is part of a bond, a VLAN or a bridge ({names}). The drill makes faults on single interfaces only.")
    if default := [route for route in before.routes if re.match(r"-[46] (default|0\.0\.0\.0/0|::/0)", route) and " table " not in route]:
        raise ApplyError(f"The default route is through {netdev} ({default[0]}): this fault could cut the host off.")
    if not before.addresses and kind in (ADDRESS_LOST, GID_MOVED):
        raise ApplyError(f"{netdev} has no static address.")
    ipv4 = [words[0] for words in before.addresses if ipaddress.ip_interface(words[0]).version == 4]
    if kind in (ADDRESS_LOST, GID_MOVED) and len(ipv4) > 1:
        raise ApplyError(f"{netdev} has several IPv4 addresses ({', '.join(ipv4)}), whose order could not be restored exactly.")
    ours = {str(ipaddress.ip_interface(words[0]).ip) for words in before.addresses}
    if used := sorted(f"{local} to {remote}" for local, remote in established(sys) if local in ours):
        raise ApplyError(f"TCP connections use {netdev}, for example storage or a login: {', '.join(used[:3])}. End them first.")


def established(sys: SysRoot) -> list[tuple[str, str]]:
    """Return the established TCP connections of the host, those of the kernel's storage clients too: (local address, remote address).

    Raises ApplyError if they cannot be read, and ParseError for another form of /proc/net/tcp (proc(5)).
    """
    tables = [sys.value(path, parse_established) for path in (IPV4_LISTENERS, IPV6_LISTENERS)]
    if tables[0] is None:
        raise ApplyError(f"The TCP connections of this host are unknown: there is no {IPV4_LISTENERS}.")
    return [each for table in tables for each in table or ()]
