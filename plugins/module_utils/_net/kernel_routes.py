# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Query the kernel for the interface that leads to an address, as `ip route get` does: all rules and tables count. No process is started.

Sources: rtnetlink(7), netlink(7), linux/rtnetlink.h. The numbers are those of the header.
"""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
import struct
import sys as system
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError

#: Address → the interface that leads to it, None if none does or the address is the host's own. Raises OSError if there is no answer.
Way = Callable[[str], "str | None"]

_NEWROUTE, _GETROUTE, _ERROR, _DONE = 24, 26, 2, 3
_REQUEST, _DUMP = 0x1, 0x300
_DST, _OIF, _GATEWAY, _PRIORITY, _MULTIPATH, _TABLE = 1, 4, 5, 6, 9, 15
_MAIN, _UNICAST = 254, 1
#: The address of a default route, which the kernel does not name.
DEFAULT = str(ipaddress.IPv4Address(0))
_HEADER, _ROUTE, _ATTRIBUTE = struct.Struct("=IHHII"), struct.Struct("=8BI"), struct.Struct("=HH")
#: struct rtnexthop: its length with attributes, flags, weight - 1, the number of the interface.
_NEXT_HOP = struct.Struct("=HBBi")
#: No route, or one that rejects: unreachable, prohibit, blackhole.
_NO_WAY = (errno.ENETUNREACH, errno.EHOSTUNREACH, errno.EACCES, errno.EINVAL)
#: A kernel without IPv6.
_NO_FAMILY = (errno.EOPNOTSUPP, errno.EAFNOSUPPORT)
_TIMEOUT_SECONDS = 5.0
_BUFFER_BYTES = 1 << 16


@dataclass(frozen=True)
class KernelRoute:
    """One route in an answer. kind: 1 unicast, 2 the host's own address; bits: of its network; netdev: the number of the interface.

    destination: the first address of its network, None for a default route. hops: the numbers of the interfaces of several next hops.
    """

    kind: int
    bits: int
    table: int
    netdev: int | None
    gateway: str | None
    metric: int
    destination: str | None = None
    hops: tuple[int, ...] = ()


def request(address: str) -> bytes:
    """Return the message that asks for the way to an address."""
    wanted = ipaddress.ip_address(address)
    return _message(wanted.version, wanted.max_prefixlen, _REQUEST, _attribute(_DST, wanted.packed))


def _message(version: int, bits: int, flags: int, body: bytes = b"") -> bytes:
    family = socket.AF_INET if version == 4 else socket.AF_INET6
    route = _ROUTE.pack(family, bits, 0, 0, 0, 0, 0, 0, 0)
    return _HEADER.pack(_HEADER.size + len(route) + len(body), _GETROUTE, flags, 1, 0) + route + body


def _attribute(kind: int, value: bytes) -> bytes:
    return _ATTRIBUTE.pack(_ATTRIBUTE.size + len(value), kind) + value + bytes(-len(value) % 4)


def parse_routes(data: bytes) -> tuple[list[KernelRoute], bool]:
    """Return the routes in an answer, and whether the answer is complete: a dump has an end mark.

    Raises OSError with the kernel's error, and ParseError for an answer of another form.
    """
    routes: list[KernelRoute] = []
    at = 0
    try:
        while at < len(data):
            length, kind, _flags, _sequence, _port = _HEADER.unpack_from(data, at)
            body = data[at + _HEADER.size : at + length]
            if kind == _DONE:
                return routes, True
            if kind == _ERROR:
                (code,) = struct.unpack_from("=i", body)
                raise OSError(-code, os.strerror(-code))
            if kind == _NEWROUTE:
                routes.append(_route(body))
            if length < _HEADER.size:
                raise ParseError(f"rtnetlink answers with a message of {length} bytes")
            at += (length + 3) & ~3
    except struct.error as exc:
        raise ParseError(f"rtnetlink answers with {len(data)} bytes of another form: {data[:32].hex()}") from exc
    return routes, False


def _route(body: bytes) -> KernelRoute:
    family, bits, _source, _tos, table, _protocol, _scope, kind, _flags = _ROUTE.unpack_from(body)
    values = dict(_attributes(body[_ROUTE.size :]))
    gateway = values.get(_GATEWAY)
    number = {name: int.from_bytes(values[name][:4], system.byteorder) for name in (_OIF, _PRIORITY, _TABLE) if name in values}
    return KernelRoute(
        kind, bits, number.get(_TABLE, table), number.get(_OIF),
        None if gateway is None else socket.inet_ntop(family, gateway), number.get(_PRIORITY, 0),
        socket.inet_ntop(family, values[_DST]) if _DST in values else None, tuple(_hops(values.get(_MULTIPATH, b""))),
    )  # fmt: skip


def _hops(data: bytes) -> Iterator[int]:
    at = 0
    while at + _NEXT_HOP.size <= len(data):
        length, _flags, _weight, netdev = _NEXT_HOP.unpack_from(data, at)
        if length < _NEXT_HOP.size:
            raise ParseError(f"rtnetlink answers with a next hop of {length} bytes")
        yield netdev
        at += (length + 3) & ~3


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + _ATTRIBUTE.size <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, at)
        if length < _ATTRIBUTE.size:
            raise ParseError(f"rtnetlink answers with an attribute of {length} bytes")
        yield kind & 0x3FFF, data[at + _ATTRIBUTE.size : at + length]
        at += (length + 3) & ~3


def _exchange(message: bytes, *, dump: bool = False) -> list[KernelRoute]:
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as port:
        port.settimeout(_TIMEOUT_SECONDS)
        port.sendto(message, (0, 0))
        routes, complete = parse_routes(port.recv(_BUFFER_BYTES))
        while dump and not complete:
            more, complete = parse_routes(port.recv(_BUFFER_BYTES))
            routes += more
        return routes


def kernel_way(address: str) -> str | None:
    """Return the interface that leads from this system to an address; see Way. A zone ("fe80::1%eth0") names the interface itself."""
    bare, _percent, zone = address.partition("%")
    if zone:
        return zone
    try:
        routes = _exchange(request(bare))
    except OSError as error:
        if error.errno in (*_NO_WAY, *_NO_FAMILY):
            return None
        raise
    return next((socket.if_indextoname(each.netdev) for each in routes if each.kind == _UNICAST and each.netdev), None)


def kernel_default_routes6() -> list[tuple[str, str | None, int]]:
    """Return interface, router and metric of each default route of IPv6 in the main table. Raises OSError if there is no answer."""
    try:
        routes = _exchange(_message(6, 0, _REQUEST | _DUMP), dump=True)
    except OSError as error:
        if error.errno in _NO_FAMILY:
            return []
        raise
    return [
        (socket.if_indextoname(each.netdev), each.gateway, each.metric)
        for each in routes
        if each.bits == 0 and each.table == _MAIN and each.kind == _UNICAST and each.netdev
    ]


def kernel_multipath_routes() -> list[tuple[str, list[str]]]:
    """Return network and interfaces of each route of IPv4 with several next hops, of all tables. Raises OSError if there is no answer."""
    routes = _exchange(_message(4, 0, _REQUEST | _DUMP), dump=True)
    return [
        (f"{each.destination or DEFAULT}/{each.bits}", [socket.if_indextoname(hop) for hop in each.hops])
        for each in routes
        if each.kind == _UNICAST and len(each.hops) > 1
    ]
