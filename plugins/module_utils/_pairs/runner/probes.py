# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Queries to the kernel and the network: which ports have listeners, and which addresses answer ARP and ICMP echo."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import socket
import struct
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.wire import CONNECT_TIMEOUT_SECONDS

PROBE_SECONDS = 0.5
"""How long a probe after a failure waits for an answer; each probe does so twice."""
NETLINK_SOCK_DIAG = 4
SOCK_DIAG_BY_FAMILY = 20
NLMSG_ERROR = 2
TCP_LISTEN = 10
TCP_STATE_LISTEN, TCP_STATES_TAKEN = "0A", ("01", "08")
"""How /proc/net/tcp writes the states LISTEN, and ESTABLISHED and CLOSE_WAIT."""
ETH_P_ARP = 0x0806
ARPHRD_ETHER = 1
ARP_REQUEST, ARP_REPLY = 1, 2
ARP_PACKET = struct.Struct("!HHBBH6s4s6s4s")
ICMP_ECHO, ICMP_ECHO_REPLY = 8, 0


def listens(tables: str, port: int, address: str, states: Sequence[str] = (TCP_STATE_LISTEN,)) -> bool:
    """Return whether the text of /proc/net/tcp and tcp6 shows a listener that accepts connections to address and port.

    states: the socket states that count.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    packed = socket.inet_pton(family, address)
    hosts = [packed, bytes(len(packed)), bytes(16)]
    if family == socket.AF_INET:
        hosts.append(bytes(10) + b"\xff\xff" + packed)
    local = {f"{_kernel_hex(host)}:{port:04X}" for host in hosts}
    cells = (line.split() for line in tables.splitlines())
    return any(len(row) > 3 and row[3] in states and row[1] in local for row in cells)


def _kernel_hex(packed: bytes) -> str:
    words = [packed[start : start + 4] for start in range(0, len(packed), 4)]
    return "".join(f"{int.from_bytes(word, sys.byteorder):08X}" for word in words)


def tables_show(port: int, address: str, states: Sequence[str] = (TCP_STATE_LISTEN,)) -> bool:
    texts = []
    for name in ("tcp", "tcp6"):
        with contextlib.suppress(FileNotFoundError):  # tcp6 is missing where IPv6 is off
            texts.append(Path("/proc/net", name).read_text(encoding="ascii"))
    return listens("\n".join(texts), port, address, states)


class Listeners:
    """Queries the kernel for listeners, and never connects: sock_diag(7) for one socket, or else the whole tables of /proc/net.

    The tables also hold every connection of the last minute; querying one socket costs the same however many there are.
    """

    def __init__(self) -> None:
        self._netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, NETLINK_SOCK_DIAG)
        self._netlink.settimeout(CONNECT_TIMEOUT_SECONDS)
        self._answers = False

    def prove(self, port: int, address: str) -> None:
        """Find out, with a port that has a listener, whether the kernel answers such queries here."""
        with contextlib.suppress(OSError):
            self._answers = self._ask(port, address)

    def on(self, port: int, address: str) -> bool:
        """Return whether a listener accepts connections to address and port."""
        return self._ask(port, address) if self._answers else tables_show(port, address)

    def _ask(self, port: int, address: str) -> bool:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        packed = socket.inet_pton(family, address).ljust(16, b"\0")
        wanted = struct.pack("=BBBBI", family, socket.IPPROTO_TCP, 0, 0, 1 << TCP_LISTEN)
        wanted += struct.pack("!HH", port, 0) + packed + bytes(16) + struct.pack("=I", 0) + b"\xff" * 8
        self._netlink.send(struct.pack("=IHHII", 16 + len(wanted), SOCK_DIAG_BY_FAMILY, 1, 0, 0) + wanted)
        answer = self._netlink.recv(8192)
        kind = struct.unpack_from("=H", answer, 4)[0]
        if kind == NLMSG_ERROR and struct.unpack_from("=i", answer, 16)[0] != -errno.ENOENT:
            raise OSError(-struct.unpack_from("=i", answer, 16)[0], "sock_diag")
        return bool(kind == SOCK_DIAG_BY_FAMILY and answer[17] == TCP_LISTEN)


def rail_netdev(profile: Mapping[str, Any], devices: Path = Path("/sys/class/infiniband")) -> str | None:
    """Return the network interface of an endpoint with a GID index (RoCE), None if there is none."""
    if profile.get("gid_index") is None:
        return None
    path = devices / str(profile["device"]) / "ports" / str(profile["port"]) / "gid_attrs/ndevs" / str(profile["gid_index"])
    try:
        return path.read_text(encoding="ascii").strip() or None
    except OSError:
        return None


def arp_request(mac: bytes, address: str) -> bytes:
    """Return an ARP probe (RFC 5227): it has no sender address, so that no host learns anything from it."""
    nobody = bytes(4), bytes(6)
    return ARP_PACKET.pack(ARPHRD_ETHER, 0x0800, 6, 4, ARP_REQUEST, mac, nobody[0], nobody[1], socket.inet_aton(address))


def arp_answer(packet: bytes, address: str) -> str | None:
    """Return the MAC address that a packet gives for an address, None if it is not such an answer."""
    if len(packet) < ARP_PACKET.size:
        return None
    *_form, operation, mac, sender, _to_mac, _to_address = ARP_PACKET.unpack_from(packet)
    return mac.hex(":") if operation == ARP_REPLY and sender == socket.inet_aton(address) else None


def ask_arp(netdevs: Mapping[str, str], address: str) -> dict[str, str | None]:
    """Ask on several interfaces at once which MAC has an IPv4 address. netdevs: rail → interface. Returns rail → MAC, None without answer.

    Interfaces that are not Ethernet, or cannot be used, are left out. Sends two requests on each and waits at most twice PROBE_SECONDS.
    """
    sockets: dict[int, tuple[str, socket.socket]] = {}
    found: dict[str, str | None] = {}
    with contextlib.ExitStack() as stack:
        for rail, netdev in netdevs.items():
            with contextlib.suppress(OSError):
                sock = stack.enter_context(socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ARP)))
                sock.bind((netdev, ETH_P_ARP))
                if sock.getsockname()[3] == ARPHRD_ETHER:
                    sockets[sock.fileno()] = rail, sock
                    found[rail] = None
        for _attempt in range(2):
            for rail, sock in sockets.values():
                if found[rail] is None:
                    with contextlib.suppress(OSError):
                        sock.sendto(arp_request(sock.getsockname()[4], address), (netdevs[rail], ETH_P_ARP, 0, 0, b"\xff" * 6))
            _hear_arp(sockets, address, found)
    return found


def _hear_arp(sockets: Mapping[int, tuple[str, socket.socket]], address: str, found: dict[str, str | None]) -> None:
    poll = select.poll()
    for descriptor in sockets:
        poll.register(descriptor, select.POLLIN)
    deadline = time.monotonic() + PROBE_SECONDS
    while None in found.values() and (left := deadline - time.monotonic()) > 0:
        for descriptor, _events in poll.poll(left * 1000):
            rail, sock = sockets[descriptor]
            with contextlib.suppress(OSError):
                found[rail] = found[rail] or arp_answer(sock.recv(512), address)


def checksum(data: bytes) -> int:
    """Return the Internet checksum (RFC 1071) of data of even length."""
    total = sum(int(word) for word in struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return 0xFFFF - total


def ask_echo(netdev: str | None, address: str) -> bool | None:
    """Return whether an IPv4 address answers ICMP echo on an interface; None if that cannot be probed."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as sock:
            if netdev is not None:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, netdev.encode() + b"\0")
            sock.connect((address, 0))
            mark = os.urandom(4)
            for _attempt in range(2):
                blank = struct.pack("!BBH", ICMP_ECHO, 0, 0) + mark
                with contextlib.suppress(ConnectionError):
                    sock.send(struct.pack("!BBH", ICMP_ECHO, 0, checksum(blank)) + mark)
                if _hears_echo(sock, mark):
                    return True
    except PermissionError:
        return None
    except OSError:
        return False
    return False


def _hears_echo(sock: socket.socket, mark: bytes) -> bool:
    deadline = time.monotonic() + PROBE_SECONDS
    while (left := deadline - time.monotonic()) > 0:
        sock.settimeout(left)
        try:
            packet = sock.recv(1024)
        except OSError:
            return False
        body = packet[4 * (packet[0] & 0xF) :]
        if body[:1] == bytes([ICMP_ECHO_REPLY]) and body[4:8] == mark:
            return True
    return False
