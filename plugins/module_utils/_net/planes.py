# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a host needs for its management, and through which interface: default routes, servers, forwarding, listening daemons.

Sources: /proc/net/route (net/ipv4/fib_trie.c) shows the main table of IPv4, and of a route with several next hops the first. The kernel
itself names the default routes of IPv6 and the way to a server, by all its rules and tables (_net/kernel_routes.py).
proc(5) for /proc/net/tcp and tcp6, which show listeners; resolv.conf(5).
"""

from __future__ import annotations

import ipaddress
import re
import socket
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._host.services import CONTROL, Remote, is_address, read_remotes
from ansible_collections.rdma.cluster.plugins.module_utils._host.sockets import (
    IPV4_LISTENERS,
    IPV6_ADDRESSES,
    IPV6_LISTENERS,
    Listener,
    Socket,
    is_bound,
    parse_ipv6_addresses,
    read_listeners,
    read_sockets,
)
from ansible_collections.rdma.cluster.plugins.module_utils._net import kernel_routes
from ansible_collections.rdma.cluster.plugins.module_utils._net.kernel_routes import Way
from ansible_collections.rdma.cluster.plugins.module_utils._net.session import find_netdev_of, read_client

__all__ = [
    "IPV4_LISTENERS",
    "IPV6_LISTENERS",
    "SSH_PORT",
    "DefaultRoute",
    "NameServer",
    "Planes",
    "RoutedNetwork",
    "Service",
    "read_planes",
]

ROUTES = "/proc/net/route"
FORWARDING = "/proc/sys/net/ipv4/ip_forward"
HASH_POLICY = "/proc/sys/net/ipv4/fib_multipath_hash_policy"
#: The file that programs read, and the one that systemd-resolved writes with the real servers.
RESOLV_CONF, RESOLVED_CONF = "/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"
SSH_PORT = 22
#: A host that speaks BGP may have the routes of the whole internet.
MOST_NETWORKS = 1000
_UP, _REJECT = 0x0001, 0x0200
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
    """A default route of the main table; the lowest metric wins. version: 4 or 6, of the IP protocol."""

    netdev: str
    gateway: str | None
    metric: int
    version: int = 4


@dataclass(frozen=True)
class RoutedNetwork:
    """An IPv4 network of the main table behind a gateway, "10.0.0.0/8", and the interface that leads to it."""

    network: str
    netdev: str


@dataclass(frozen=True)
class NameServer:
    """A name server, and the interface that leads to it. None for an address of the host itself, and without a route."""

    address: str
    netdev: str | None


@dataclass(frozen=True)
class Service:
    """A remote service of the host, and the interface that leads to it; None for a name, which is not resolved, and without a route.

    kind: "NTP server", "syslog server", "NFS server" or "control node". where: the file that names it, or the session.
    """

    kind: str
    address: str
    netdev: str | None
    where: str


@dataclass(frozen=True)
class MultipathRoute:
    """A route of IPv4 with several next hops, in any table. netdevs: the interface of each."""

    network: str
    netdevs: list[str]


@dataclass(frozen=True)
class Planes:
    """forwarding: whether IPv4 packets are forwarded between interfaces. ssh: the addresses on which a program listens on port 22.

    "0.0.0.0" and "::" mean all addresses. listeners: the sockets of management daemons. hash_policy: net.ipv4.fib_multipath_hash_policy, 0
    to 3 (ip-sysctl.rst of Linux). None: not read. For name_servers, services, multipath and the default routes of IPv6 that is the case if
    the kernel does not answer which way leads to an address; way_error says why.
    networks: those behind gateways, without the default routes; None also if there are more than MOST_NETWORKS.
    """

    default_routes: list[DefaultRoute]
    name_servers: list[NameServer] | None
    forwarding: bool | None
    ssh: list[str] | None
    services: list[Service] | None = None
    listeners: list[Listener] | None = None
    way_error: str | None = None
    networks: list[RoutedNetwork] | None = None
    multipath: list[MultipathRoute] | None = None
    hash_policy: int | None = None


def parse_routes(text: str) -> list[Route]:
    """Parse /proc/net/route. Raises ParseError for another form."""
    head, *lines = text.splitlines() or [""]
    if not head.startswith(_HEADER):
        raise ParseError(f"not a table of routes: {quoted(head)}")
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
        raise ParseError(f"not a route: {quoted(line)}") from exc


def _ipv4(text: str) -> str:
    """Convert "0164A8C0", as a little-endian kernel writes 192.168.100.1, to the address."""
    return socket.inet_ntoa(struct.pack("=I", int(text, 16)))


def parse_forwarding(text: str) -> bool:
    """Parse net.ipv4.ip_forward. Raises ParseError for anything but 0 and 1."""
    if text.strip() not in ("0", "1"):
        raise ParseError(f"neither 0 nor 1: {quoted(text)}")
    return text.strip() == "1"


def parse_hash_policy(text: str) -> int:
    """Parse net.ipv4.fib_multipath_hash_policy. Raises ParseError for anything but 0 to 3."""
    if text.strip() not in ("0", "1", "2", "3"):
        raise ParseError(f"not a number from 0 to 3: {quoted(text)}")
    return int(text)


def read_planes(
    sys: SysRoot,
    *,
    running: bool,
    addresses: Mapping[str, Sequence[str]] | None = None,
    way: Way | None = None,
    default_routes6: Callable[[], list[tuple[str, str | None, int]]] | None = None,
    multipath_routes: Callable[[], list[tuple[str, list[str]]]] | None = None,
) -> Planes | None:
    """Return the planes of the running system; None for a captured tree, and for a kernel without IPv4.

    addresses: interface → its IPv4 addresses, "192.168.100.1/24". way, default_routes6, multipath_routes: query the kernel; by default the
    running one.
    """
    routes = sys.value(ROUTES, parse_routes) if running else None
    if routes is None:
        return None
    defaults = [DefaultRoute(each.netdev, each.gateway, each.metric) for each in routes if each.network.prefixlen == 0]
    networks = [RoutedNetwork(str(each.network), each.netdev) for each in routes if each.gateway is not None and each.network.prefixlen]
    name_servers, services, multipath, way_error = None, None, None, None
    try:
        several = (multipath_routes or kernel_routes.kernel_multipath_routes)()
        multipath = [MultipathRoute(network, netdevs) for network, netdevs in several]
        six = (default_routes6 or kernel_routes.kernel_default_routes6)()
        defaults += [DefaultRoute(netdev, gateway, metric, 6) for netdev, gateway, metric in six]
        leads = way or kernel_routes.kernel_way
        name_servers = [NameServer(address, leads(address)) for address in read_name_servers(sys)]
        services = [_service(each, leads) for each in (*read_remotes(sys), *_control_node(sys))]
    except (OSError, ParseError) as error:
        way_error = str(error) or type(error).__name__
    sockets = read_sockets(sys)
    return Planes(
        sorted(defaults, key=lambda route: (route.version, route.metric)),
        name_servers,
        sys.value(FORWARDING, parse_forwarding),
        None if sockets is None else sorted({each.address for each in sockets if each.port == SSH_PORT}),
        services,
        None if sockets is None else _listeners(sys, sockets, addresses or {}),
        way_error,
        networks if len(networks) <= MOST_NETWORKS else None,
        multipath,
        sys.value(HASH_POLICY, parse_hash_policy),
    )


def _service(remote: Remote, leads: Way) -> Service:
    return Service(remote.kind, remote.address, leads(remote.address) if is_address(remote.address) else None, remote.where)


def _control_node(sys: SysRoot) -> list[Remote]:
    """Return the other end of our own SSH session, unless it comes through a forwarded port."""
    client = read_client(sys)
    if client is None or not is_address(client) or not is_bound(client.partition("%")[0]):
        return []
    return [Remote(CONTROL, client, "the SSH session")]


def _listeners(sys: SysRoot, sockets: Sequence[Socket], addresses: Mapping[str, Sequence[str]]) -> list[Listener] | None:
    """Return the sockets of management daemons, each with the interface that has its address."""
    found = read_listeners(sys, sockets)
    if not found:
        return None if found is None else []
    six = sys.value(IPV6_ADDRESSES, parse_ipv6_addresses) or {}
    return [
        Listener(program, each.port, each.address, six.get(each.address) or find_netdev_of(each.address, addresses))
        for program, each in found
    ]


def read_name_servers(sys: SysRoot) -> list[str]:
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
