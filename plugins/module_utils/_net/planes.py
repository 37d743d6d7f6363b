# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a host needs for its management, and through which interface: default routes, name servers, forwarding, the SSH daemon.

Sources: /proc/net/route (net/ipv4/fib_trie.c) shows the main table of IPv4, and of a route with several next hops the first. Policy rules
are not read. /proc/net/ipv6_route mixes all tables, so the default routes of IPv6 are those that `ip` shows.
proc(5) for /proc/net/tcp and tcp6, which show listeners; resolv.conf(5).
"""

from __future__ import annotations

import ipaddress
import json
import re
import socket
import struct
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import CommandError, Runner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot

ROUTES = "/proc/net/route"
IPV4_LISTENERS, IPV6_LISTENERS = "/proc/net/tcp", "/proc/net/tcp6"
#: The default routes of IPv6 in the main table.
IPV6_DEFAULTS = ("ip", "-json", "-6", "route", "show", "default")
FORWARDING = "/proc/sys/net/ipv4/ip_forward"
#: The file that programs read, and the one that systemd-resolved writes with the real servers.
RESOLV_CONF, RESOLVED_CONF = "/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"
SSH_PORT = 22
_UP, _REJECT = 0x0001, 0x0200
_TCP_LISTEN = "0A"
_HEADER = "Iface"
_SERVER = re.compile(r"^[ \t]*nameserver[ \t]+(\S+)", re.MULTILINE)


@dataclass(frozen=True)
class Route:
    """One route of the main table of IPv4. gateway: None for a directly connected network."""

    network: ipaddress.IPv4Network
    netdev: str
    gateway: str | None
    metric: int


@dataclass(frozen=True)
class DefaultRoute:
    """A default route of the main table; the lowest metric wins."""

    netdev: str
    gateway: str | None
    metric: int


@dataclass(frozen=True)
class NameServer:
    """A name server, and the interface that leads to it: by the main table, or by the zone of its address ("fe80::1%eth0").

    None for a loopback address, for IPv6 without a zone, and without a route.
    """

    address: str
    netdev: str | None


@dataclass(frozen=True)
class Planes:
    """forwarding: whether IPv4 packets are forwarded between interfaces. ssh: the addresses on which a program listens on port 22.

    "0.0.0.0" and "::" mean all addresses. None: not read. default_routes: of IPv4. ipv6_default_routes: empty also where no RDMA port has
    an IPv6 address, because they are not read there.
    """

    default_routes: list[DefaultRoute]
    name_servers: list[NameServer]
    forwarding: bool | None
    ssh: list[str] | None
    ipv6_default_routes: list[DefaultRoute] | None = None


def parse_routes(text: str) -> list[Route]:
    """Parse /proc/net/route. Raises ParseError for another form."""
    head, *lines = text.splitlines() or [""]
    if not head.startswith(_HEADER):
        raise ParseError(f"not a table of routes: {head[:200]!r}")
    return [route for line in lines if line.strip() and (route := _route(line)) is not None]


def _route(line: str) -> Route | None:
    words = line.split()
    try:
        netdev, destination, gateway, flags = words[:4]
        metric, mask = int(words[6]), words[7]
        network = ipaddress.IPv4Network((_ipv4(destination), ipaddress.IPv4Address(_ipv4(mask)).compressed))
        if not int(flags, 16) & _UP or int(flags, 16) & _REJECT:
            return None
        return Route(network, netdev, None if int(gateway, 16) == 0 else _ipv4(gateway), metric)
    except (ValueError, IndexError, struct.error) as exc:
        raise ParseError(f"not a route: {line[:200]!r}") from exc


def _ipv4(text: str) -> str:
    """Convert "0164A8C0", as a little-endian kernel writes 192.168.100.1, to the address."""
    return socket.inet_ntoa(struct.pack("=I", int(text, 16)))


def parse_listeners(text: str) -> Iterator[tuple[str, int]]:
    """Yield address and port of each listener in /proc/net/tcp or tcp6. Raises ParseError for another form."""
    head, *lines = text.splitlines() or [""]
    if "local_address" not in head:
        raise ParseError(f"not a table of sockets: {head[:200]!r}")
    for line in lines:
        words = line.split()
        address, _colon, number = words[1].partition(":") if len(words) > 3 else ("", "", "")
        try:
            if words[3] == _TCP_LISTEN:
                packed = b"".join(struct.pack("=I", int(address[at : at + 8], 16)) for at in range(0, len(address), 8))
                found = ipaddress.ip_address(packed)
                yield str(getattr(found, "ipv4_mapped", None) or found), int(number, 16)
        except (ValueError, IndexError, struct.error) as exc:
            raise ParseError(f"not a socket: {line[:200]!r}") from exc


def parse_forwarding(text: str) -> bool:
    """Parse net.ipv4.ip_forward. Raises ParseError for anything but 0 and 1."""
    if text.strip() not in ("0", "1"):
        raise ParseError(f"neither 0 nor 1: {text[:200]!r}")
    return text.strip() == "1"


def netdev_towards(address: str, routes: Sequence[Route]) -> str | None:
    """Return the interface of the most specific route to an address, the one with the lowest metric; see NameServer."""
    bare, _percent, zone = address.partition("%")
    wanted = ipaddress.ip_address(bare)
    if zone or wanted.is_loopback or not isinstance(wanted, ipaddress.IPv4Address):
        return zone or None
    having = [route for route in routes if wanted in route.network]
    best = max(having, key=lambda route: (route.network.prefixlen, -route.metric), default=None)
    return None if best is None else best.netdev


def parse_ipv6_default_routes(text: str) -> list[DefaultRoute]:
    """Parse the output of IPV6_DEFAULTS. Raises ParseError for another form."""
    try:
        hops = [(route, hop) for route in json.loads(text or "[]") for hop in route.get("nexthops") or [route]]
        return [DefaultRoute(hop["dev"], hop.get("gateway"), int(route.get("metric", 0))) for route, hop in hops if "dev" in hop]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as exc:
        raise ParseError(f"not the JSON of `{' '.join(IPV6_DEFAULTS)}`: {exc!r} in {text[:200]!r}") from exc


def _ipv6_default_routes(runner: Runner) -> list[DefaultRoute] | None:
    try:
        done = runner.run(IPV6_DEFAULTS)
        return parse_ipv6_default_routes(done.stdout) if done.rc == 0 else None
    except (CommandError, ParseError):
        return None


def read_planes(sys: SysRoot, runner: Runner | None, families: Collection[int] = (4,)) -> Planes | None:
    """Return the planes of the running system; None for a captured tree (no runner), and for a kernel without IPv4.

    families: 6 among them if an RDMA port has an IPv6 address; the default routes of IPv6 are read only then.
    """
    routes = sys.value(ROUTES, parse_routes) if runner is not None else None
    if routes is None or runner is None:
        return None
    defaults = [DefaultRoute(each.netdev, each.gateway, each.metric) for each in routes if each.network.prefixlen == 0]
    return Planes(
        sorted(defaults, key=lambda route: route.metric),
        [NameServer(address, netdev_towards(address, routes)) for address in _name_servers(sys)],
        sys.value(FORWARDING, parse_forwarding),
        _ssh_addresses(sys),
        _ipv6_default_routes(runner) if 6 in families else [],
    )


def _ssh_addresses(sys: SysRoot) -> list[str] | None:
    """Return the addresses of the SSH daemon, None without a table for IPv4. A kernel without IPv6 has no table for it."""
    tables = [sys.value(path, lambda text: list(parse_listeners(text))) for path in (IPV4_LISTENERS, IPV6_LISTENERS)]
    if tables[0] is None:
        return None
    return sorted({address for table in tables for address, port in table or () if port == SSH_PORT})


def _name_servers(sys: SysRoot) -> list[str]:
    """Return the addresses of the name servers; behind a resolver of the host itself (systemd-resolved), its own."""
    found = _addresses(sys.read(RESOLV_CONF) or "")
    if found and all(ipaddress.ip_address(address.partition("%")[0]).is_loopback for address in found):
        found = _addresses(sys.read(RESOLVED_CONF) or "") or found
    return found


def _addresses(text: str) -> list[str]:
    """Return the valid addresses of name servers in a resolv.conf; the resolver ignores others too."""
    found = []
    for word in _SERVER.findall(text):
        try:
            ipaddress.ip_address(word.partition("%")[0])
        except ValueError:
            continue
        found.append(word)
    return found
