# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The neighbors behind NICs, by an IPv6 echo to all nodes of the link: one neighbor is a cable, several are a switch.

It needs no address, only the link-local one that IPv6 gives each interface that is up. Sources: RFC 4291 (ff02::1), RFC 4443 (echo),
packet(7), netdevice(7), ipv6(7), linux/filter.h. Linux answers unless net.ipv6.icmp.echo_ignore_multicast is 1.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import re
import select
import socket
import struct
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import clean
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._net.netdev import read_netdevs
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import find_netdev

#: Requests on each port, and how long one waits for its answers: all ports are asked at once.
ATTEMPTS, ANSWER_SECONDS = 3, 0.4
#: The most ports that are asked, neighbors that are kept for a port, and NICs of a host.
MOST_PORTS, MOST_NEIGHBORS, MOST_NICS = 64, 16, 256
ALL_NODES = "ff02::1"
_ETH_P_IPV6, _PACKET_HOST = 0x86DD, 0
_ECHO_REQUEST, _ECHO_REPLY, _ICMPV6 = 128, 129, 58
_ICMPV6_FILTER, _SO_ATTACH_FILTER, _SIOCGIFFLAGS = 1, 26, 0x8913
_IFF_UP, _IFF_RUNNING = 0x1, 0x40
_HEADER_BYTES = 40
#: The classic BPF program that passes ICMPv6 echo replies alone: the next header at 6, the type behind the header of 40 bytes.
_ONLY_REPLIES = (
    (0x30, 0, 0, 6),
    (0x15, 0, 3, _ICMPV6),
    (0x30, 0, 0, _HEADER_BYTES),
    (0x15, 0, 1, _ECHO_REPLY),
    (6, 0, 0, 256),
    (6, 0, 0, 0),
)
_MAC = re.compile(r"[0-9a-f]{2}(?::[0-9a-f]{2}){5}")
LONGEST_NAME = 255


@dataclass(frozen=True)
class PortPeers:
    """The neighbors of one port. netdev: its interface, None if there is none.

    carrier: whether it has a link; None if the interface is down or could not be asked. neighbors: the MAC addresses that answered, in
    order, at most MOST_NEIGHBORS. error: why nothing was sent, "" if it was.
    """

    netdev: str | None
    carrier: bool | None = None
    neighbors: list[str] = field(default_factory=list)
    error: str = ""


@dataclass(frozen=True)
class Nic:
    """A NIC of the host, also one that was not asked. pci: None for a device that is not on PCI."""

    mac: str | None
    pci: str | None


@dataclass(frozen=True)
class LinkPeers:
    """ports: NIC as it was asked for (PCI or MAC address) → its neighbors. nics: interface → NIC, all of the host."""

    ports: dict[str, PortPeers]
    nics: dict[str, Nic]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Any) -> LinkPeers:
        """Return the answer of a host, the inverse of to_dict; other keys are ignored. Raises ParseError for a wrong value."""
        try:
            ports = {_text(nic): _port(port) for nic, port in _sized(data["ports"], dict, MOST_PORTS).items()}
            nics = {
                _text(name): Nic(_optional(nic["mac"]), _optional(nic["pci"]))
                for name, nic in _sized(data["nics"], dict, MOST_NICS).items()
            }
        except (KeyError, TypeError, ValueError) as exc:
            raise ParseError(clean(f"not the neighbors of a host: {type(exc).__name__} {exc}", 1000)) from exc
        return cls(ports, nics)


def _port(data: Any) -> PortPeers:
    carrier, neighbors = data["carrier"], _sized(data["neighbors"], list, MOST_NEIGHBORS)
    if carrier is not None and not isinstance(carrier, bool):
        raise TypeError("carrier: expected true, false or null")
    for mac in neighbors:
        if _MAC.fullmatch(_text(mac)) is None:
            raise ValueError("neighbors: expected MAC addresses")
    return PortPeers(_optional(data["netdev"]), carrier, list(neighbors), clean(_text(data["error"]), 1000))


def _sized(value: Any, kind: type[Any], most: int) -> Any:
    if not isinstance(value, kind) or len(value) > most:
        raise TypeError(f"expected a {kind.__name__} of at most {most} entries")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected a text, got a {type(value).__name__}")
    return clean(value, LONGEST_NAME)


def _optional(value: Any) -> str | None:
    return None if value is None else _text(value)


def find_link_peers(sys: SysRoot, nics: Sequence[str]) -> LinkPeers:
    """Return the neighbors of NICs, named by PCI or MAC address. Sends ATTEMPTS small packets on each, on no other interface."""
    netdevs = read_netdevs(sys)
    found = {nic: find_netdev({"pci" if "." in nic else "mac": nic}, netdevs) for nic in nics[:MOST_PORTS]}
    peers = ask_ports([name for name in found.values() if name is not None])
    ports = {nic: PortPeers(None, error="no interface has this NIC") if name is None else peers[name] for nic, name in found.items()}
    known = {name: Nic(netdev.mac.lower() if netdev.mac else None, netdev.pci) for name, netdev in netdevs.items()}
    return LinkPeers(ports, dict(list(known.items())[:MOST_NICS]))


def ask_ports(netdevs: Iterable[str]) -> dict[str, PortPeers]:
    """Return interface → its neighbors. Needs CAP_NET_RAW; without it, each port has an error. Takes ATTEMPTS × ANSWER_SECONDS."""
    names = list(dict.fromkeys(netdevs))
    found: dict[str, PortPeers] = {}
    with ExitStack() as stack:
        askers: dict[int, _Asker] = {}
        for name in names:
            try:
                carrier = read_carrier(name)
                if not carrier:
                    found[name] = PortPeers(name, carrier, error="the interface is down" if carrier is None else "")
                    continue
                asker = _Asker(name, stack)
            except OSError as error:
                found[name] = PortPeers(name, error=_words(name, error))
            else:
                askers[asker.descriptor] = asker
        for _attempt in range(ATTEMPTS if askers else 0):
            for asker in askers.values():
                asker.send()
            _hear(askers)
        for asker in askers.values():
            found[asker.netdev] = PortPeers(asker.netdev, True, sorted(asker.neighbors)[:MOST_NEIGHBORS], asker.error)
    return {name: found[name] for name in names}


def read_carrier(netdev: str) -> bool | None:
    """Return whether an interface has a link, None while it is down. Raises OSError for one that does not exist."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        answer = fcntl.ioctl(sock, _SIOCGIFFLAGS, struct.pack("16sH14x", netdev.encode(), 0))
    flags = struct.unpack("16sH14x", answer)[1]
    return bool(flags & _IFF_RUNNING) if flags & _IFF_UP else None


class _Asker:
    """The two sockets of one interface: the kernel sends the request, and the source MAC addresses of the replies are read."""

    def __init__(self, netdev: str, stack: ExitStack) -> None:
        self.netdev, self.error, self._sent = netdev, "", False
        self.neighbors: set[str] = set()
        self._mark, self._ident = os.urandom(8), os.urandom(2)
        self._index = socket.if_nametoindex(netdev)
        self._sender = stack.enter_context(socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6))
        self._sender.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, netdev.encode() + b"\0")
        # Nothing is read from this socket, and our own host need not answer.
        self._sender.setsockopt(socket.IPPROTO_ICMPV6, _ICMPV6_FILTER, b"\xff" * 32)
        self._sender.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_LOOP, 0)
        self._sender.setblocking(False)
        # Protocol 0: nothing is received before the filter and the interface are set.
        self._listener = stack.enter_context(socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0))
        _attach(self._listener)
        self._listener.bind((netdev, _ETH_P_IPV6))
        self._listener.setblocking(False)
        self.descriptor = self._listener.fileno()

    def send(self) -> None:
        """Send one request. The kernel fills in the checksum and its link-local source address."""
        request = struct.pack("!BBH2sH", _ECHO_REQUEST, 0, 0, self._ident, 1) + self._mark
        try:
            self._sender.sendto(request, (ALL_NODES, 0, 0, self._index))
        except OSError as error:
            self.error = self.error if self._sent else _words(self.netdev, error)
        else:
            self._sent, self.error = True, ""

    def read(self) -> None:
        """Read the replies that are there; none of an interface that went down or was removed in the meantime."""
        for _packet in range(4 * MOST_NEIGHBORS):
            try:
                data, (_netdev, _protocol, kind, _hardware, mac) = self._listener.recvfrom(256)
            except OSError:
                return
            body = data[_HEADER_BYTES:]
            is_ours = len(body) >= 16 and (body[0], body[4:6], body[8:16]) == (_ECHO_REPLY, self._ident, self._mark)
            if kind == _PACKET_HOST and is_ours:
                self.neighbors.add(":".join(f"{byte:02x}" for byte in mac[:6]))


def _attach(sock: socket.socket) -> None:
    """Attach the filter to a socket (struct sock_fprog of linux/filter.h): a rail may carry much other traffic."""
    code = b"".join(struct.pack("=HBBI", *each) for each in _ONLY_REPLIES)
    program = ctypes.create_string_buffer(code)
    sock.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("HL", len(_ONLY_REPLIES), ctypes.addressof(program)))


def _hear(askers: Mapping[int, _Asker]) -> None:
    """Read replies until the time of an attempt is over. More than one neighbor may answer, so the first reply does not end it."""
    deadline = time.monotonic() + ANSWER_SECONDS
    while (left := deadline - time.monotonic()) > 0:
        for descriptor in select.select(list(askers), [], [], left)[0]:
            askers[descriptor].read()


def _words(netdev: str, error: OSError) -> str:
    if error.errno in (errno.EADDRNOTAVAIL, errno.ENETUNREACH, errno.EAFNOSUPPORT):
        return f"{netdev} has no link-local IPv6 address: IPv6 is disabled there"
    return f"cannot send on {netdev}: {error.strerror or error}"
