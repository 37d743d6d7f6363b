# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Probes which packet sizes get from one host to others: ICMP echo that no router may fragment, to many addresses at once.

Sources: RFC 792 and 4443 (echo, unreachable), RFC 1191 and 8201 (path MTU), ip(7) and ipv6(7) for IP_PMTUDISC_PROBE: the kernel sets "do
not fragment" and ignores the path MTU that it has learned.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import struct
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.probes import checksum

ATTEMPTS = 3
#: How long an attempt waits for its last answer.
ANSWER_SECONDS = 0.3
#: Packets sent before answers are read, and the pause after them: a receiver is not flooded by all of its partners at once.
BATCH, PAUSE_SECONDS = 32, 0.001
#: A packet that every path carries (RFC 791 requires 68 bytes, RFC 8200 requires 1280).
SMALL_BYTES = {socket.AF_INET: 68, socket.AF_INET6: 1280}
#: The IP header and that of ICMP or UDP, in bytes.
HEADER_BYTES = {socket.AF_INET: 28, socket.AF_INET6: 48}
#: A UDP port without a listener: the receiver's kernel answers with a small "port unreachable", which shows that the packet arrived.
CLOSED_PORT = 33434
#: How long packets to closed ports wait for their answers; they are sent twice in this time, to all peers at once.
DIRECTION_SECONDS = 1.2
#: How many failing peers of a rail are searched for the largest size. The others are known to fail.
MOST_SEARCHED = 8
SO_RCVBUFFORCE = 33
IP_MTU_DISCOVER, IPV6_MTU_DISCOVER, PMTUDISC_PROBE = 10, 23, 3
#: The filters of raw sockets, and the level of the one for ICMP (linux/icmp.h, linux/icmpv6.h). A bit that is set blocks its type.
SOL_RAW, ICMP_FILTER, ICMPV6_FILTER = 255, 1, 1
RECEIVE_BUFFER_BYTES = 8 * 2**20

#: How many sizes between the largest that passes and the smallest that does not are tried at once.
STEPS = 15

Sizes = dict[str, int]
"""Address → the size of an IP packet in bytes."""
Request = tuple[str, int]
"""An address and the size of an IP packet in bytes."""


@dataclass(frozen=True)
class Peer:
    """A partner on a rail. bytes: the planned size of an IP packet to it."""

    host: str
    address: str
    bytes: int


@dataclass(frozen=True)
class Short:
    """A peer from which the planned size has no answer, whenever it is sent.

    bytes: the largest size with an answer, or one that is known to have one if others were searched; 0 if even the smallest has none.
    sent: whether a packet of the planned size arrives at the peer; None if that could not be found out. hop: the router that reported a
    smaller MTU, and that MTU in bytes.
    """

    bytes: int
    sent: bool | None
    hop: tuple[str, int] | None = None


@dataclass(frozen=True)
class Probed:
    """The result of a rail. bad: host → what was found, for each peer that the planned size does not reach.

    unstable: hosts with an answer to some packets of a size and not to others: packets get lost, whatever their size. error: why nothing
    was probed.
    """

    peers: int
    bad: dict[str, Short] = field(default_factory=dict)
    unstable: list[str] = field(default_factory=list)
    error: str = ""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


class Prober:
    """Sends echo requests from one address of one interface. Needs the capability CAP_NET_RAW."""

    def __init__(self, netdev: str, address: str) -> None:
        """Open the socket. Raises OSError, for example without CAP_NET_RAW, or if the interface lacks the address."""
        self.netdev, self.address = netdev, address
        self.family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.hops: dict[str, tuple[str, int]] = {}
        self.unsendable_bytes: int | None = None
        self._mark = os.urandom(8)
        self._ident = int.from_bytes(os.urandom(2), "big")
        with ExitStack() as stack:
            protocol = socket.IPPROTO_ICMPV6 if self.family == socket.AF_INET6 else socket.IPPROTO_ICMP
            self._sock = stack.enter_context(socket.socket(self.family, socket.SOCK_RAW, protocol))
            self._bind(self._sock)
            with suppress(OSError):
                self._sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BUFFER_BYTES)
            self._filter()
            self._sock.setblocking(False)
            stack.pop_all()

    def close(self) -> None:
        self._sock.close()

    def _bind(self, sock: socket.socket) -> None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, self.netdev.encode() + b"\0")
        if self.family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, IPV6_MTU_DISCOVER, PMTUDISC_PROBE)
        else:
            sock.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, PMTUDISC_PROBE)
        sock.bind((self.address, 0))

    def _filter(self) -> None:
        """Receive only echo replies and reports of packets that are too big: requests of all partners would fill the buffer."""
        if self.family == socket.AF_INET6:
            words = [0xFFFFFFFF] * 8
            for kind in (129, 2):
                words[kind >> 5] &= ~(1 << (kind & 31))
            self._sock.setsockopt(socket.IPPROTO_ICMPV6, ICMPV6_FILTER, struct.pack("=8I", *words))
        else:
            self._sock.setsockopt(SOL_RAW, ICMP_FILTER, struct.pack("=I", 0xFFFFFFFF & ~(1 << 0 | 1 << 3)))

    def answering(self, requests: Sequence[Request]) -> set[Request]:
        """Return the requests that are answered: an echo request of that size, by an equal reply."""
        silent = dict(enumerate(requests))
        answered: set[Request] = set()
        for _attempt in range(ATTEMPTS):
            for at in range(0, len(requests), BATCH):
                batch = [number for number in range(at, min(at + BATCH, len(requests))) if number in silent]
                for number in batch:
                    self._send(number, *requests[number])
                if batch:
                    time.sleep(PAUSE_SECONDS)
                    self._hear(silent, answered, 0.0)
            self._hear(silent, answered, ANSWER_SECONDS)
            if not silent:
                break
        return answered

    def _send(self, number: int, address: str, size: int) -> None:
        """Send one request. What cannot be sent has no answer."""
        data = self._mark + bytes(size - HEADER_BYTES[self.family] - len(self._mark))
        kind = 128 if self.family == socket.AF_INET6 else 8
        head = struct.pack("!BBHHH", kind, 0, 0, self._ident, number & 0xFFFF)
        if self.family == socket.AF_INET:
            # The zeros behind the mark do not change the sum. For IPv6 the kernel computes it.
            head = struct.pack("!BBHHH", kind, 0, checksum(head + self._mark), self._ident, number & 0xFFFF)
        for _again in range(ATTEMPTS):
            try:
                self._sock.sendto(head + data, (address, 0))
            except OSError as error:
                if error.errno == errno.EMSGSIZE:
                    self.unsendable_bytes = size
                if error.errno not in (errno.ENOBUFS, errno.EAGAIN):
                    return
                time.sleep(PAUSE_SECONDS)
            else:
                return

    def _hear(self, silent: dict[int, Request], answered: set[Request], seconds: float) -> None:
        """Read answers until none is missing or the time is over; without a time, those that are there, and not for long."""
        deadline = time.monotonic() + seconds
        for _read in range(4 * BATCH if not seconds else 2**31):
            if not silent or (seconds and time.monotonic() > deadline):
                return
            ready = select.select([self._sock], [], [], max(0.0, deadline - time.monotonic()))[0]
            if not ready:
                return
            with suppress(BlockingIOError):
                packet, sender = self._sock.recvfrom(65535)
                self._take(packet, str(sender[0]), silent, answered)

    def _take(self, packet: bytes, sender: str, silent: dict[int, Request], answered: set[Request]) -> None:
        body = packet if self.family == socket.AF_INET6 else packet[4 * (packet[0] & 0xF) :]
        if len(body) < 8:
            return
        kind, code, _sum, ident, number = struct.unpack_from("!BBHHH", body)
        reply, too_big = ((129, 0), (2, 0)) if self.family == socket.AF_INET6 else ((0, 0), (3, 4))
        if (kind, code) == reply and ident == self._ident and body[8:16] == self._mark:
            if number in silent and silent[number][0] == sender:
                answered.add(silent.pop(number))
        elif (kind, code) == too_big:
            quoted = quoted_destination(body[8:], self.family, self._ident)
            if quoted is not None:
                form, place = ("!I", 4) if self.family == socket.AF_INET6 else ("!H", 6)
                self.hops[quoted] = sender, int(struct.unpack_from(form, body, place)[0])

    def arriving(self, sizes: Sizes) -> dict[str, bool | None]:
        """Return for each address whether a UDP packet of its size arrives; None if even a small one shows nothing."""
        small = self._refused(dict.fromkeys(sizes, SMALL_BYTES[self.family]))
        large = self._refused({address: size for address, size in sizes.items() if address in small})
        return {address: address in large if address in small else None for address in sizes}

    def _refused(self, sizes: Sizes) -> set[str]:
        """Return the addresses whose kernel answers a packet of the size with "port unreachable"."""
        found: set[str] = set()
        with ExitStack() as stack:
            waiting: dict[int, tuple[str, socket.socket]] = {}
            for address in sizes:
                with suppress(OSError):
                    sock = stack.enter_context(socket.socket(self.family, socket.SOCK_DGRAM))
                    self._bind(sock)
                    sock.setblocking(False)
                    sock.connect((address, CLOSED_PORT))
                    waiting[sock.fileno()] = address, sock
            # Linux limits these answers: one a second to each asker after six at once, and 1000 a second in all (net/ipv4/icmp.c).
            for _attempt in range(2):
                for address, sock in list(waiting.values()):
                    try:
                        sock.send(bytes(sizes[address] - HEADER_BYTES[self.family]))
                    except ConnectionRefusedError:
                        # The answer to the first packet, which came late.
                        found.add(address)
                        del waiting[sock.fileno()]
                    except OSError:
                        continue
                found |= _refusing(waiting, DIRECTION_SECONDS / 2)
        return found


def _refusing(waiting: dict[int, tuple[str, socket.socket]], seconds: float) -> set[str]:
    """Return the addresses whose sockets report a refused connection within the time, and remove them."""
    found: set[str] = set()
    deadline = time.monotonic() + seconds
    while waiting:
        poll = select.poll()
        for descriptor in waiting:
            poll.register(descriptor, select.POLLERR)
        events = poll.poll(max(0.0, deadline - time.monotonic()) * 1000)
        if not events:
            break
        for descriptor, _event in events:
            address, sock = waiting[descriptor]
            if sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == errno.ECONNREFUSED:
                found.add(address)
                del waiting[descriptor]
    return found


def quoted_destination(quoted: bytes, family: int, ident: int) -> str | None:
    """Return the destination of our echo request that an ICMP error quotes; None if it quotes another packet.

    quoted: the bytes behind the header of the error, from the IP header of the quoted packet on.
    """
    length = 40 if family == socket.AF_INET6 else 4 * (quoted[0] & 0xF) if quoted else 0
    if len(quoted) < length + 8 or length < 20:
        return None
    kind, _code, _sum, found = struct.unpack_from("!BBHH", quoted, length)
    if kind != (128 if family == socket.AF_INET6 else 8) or found != ident:
        return None
    place = quoted[24:40] if family == socket.AF_INET6 else quoted[16:20]
    return socket.inet_ntop(family, place)


def largest(prober: Prober, sizes: Sizes) -> Sizes:
    """Return the largest size up to its own that each address answers, 0 if it answers none. sizes: those that had no answer before.

    Each round tries STEPS sizes of each address at once, between the largest that passes and the smallest that does not.
    """
    smallest = SMALL_BYTES[prober.family]
    lows = {address: smallest for address, _size in prober.answering([(address, smallest) for address in sizes])}
    highs = {address: sizes[address] + 1 for address in lows}
    while undecided := [address for address in lows if highs[address] - lows[address] > 1]:
        tried = {address: between(lows[address], highs[address]) for address in undecided}
        passed = prober.answering([(address, size) for address, each in tried.items() for size in each])
        for address, each in tried.items():
            good = [size for size in each if (address, size) in passed]
            lows[address] = max(good, default=lows[address])
            highs[address] = min((size for size in each if size > lows[address]), default=highs[address])
    return {address: lows.get(address, 0) for address in sizes}


def between(low: int, high: int) -> list[int]:
    """Return at most STEPS evenly spaced sizes above low and below high, at least one if there is any."""
    step = max(1.0, (high - low) / (STEPS + 1))
    return sorted({size for number in range(1, STEPS + 1) if low < (size := round(low + number * step)) < high})


def is_stable(prober: Prober, found: Sizes) -> set[str]:
    """Return the addresses for which a size always has an answer, and one byte more never does, in several attempts."""
    stable = {address for address, size in found.items() if size}
    for _attempt in range(ATTEMPTS):
        passed = prober.answering([(address, size) for address in stable for size in (found[address], found[address] + 1)])
        stable = {address for address in stable if (address, found[address]) in passed and (address, found[address] + 1) not in passed}
    return stable


def probe_rail(netdev: str, address: str, peers: Sequence[Peer]) -> Probed:
    """Probe all peers of one rail. An OSError of the socket becomes the error of the result."""
    try:
        prober = Prober(netdev, address)
    except OSError as error:
        return Probed(len(peers), error=f"cannot send from {address} on {netdev}: {error}")
    try:
        return _probe(prober, peers)
    finally:
        prober.close()


def _probe(prober: Prober, peers: Sequence[Peer]) -> Probed:
    sizes = {peer.address: peer.bytes for peer in peers}
    passed = prober.answering(list(sizes.items()))
    if prober.unsendable_bytes is not None:
        return Probed(len(peers), error=f"{prober.netdev} cannot send {prober.unsendable_bytes} bytes: its MTU is smaller by now")
    failed = {address: size for address, size in sizes.items() if (address, size) not in passed}
    if not failed:
        return Probed(len(peers))
    searched = dict(list(failed.items())[:MOST_SEARCHED])
    reached = largest(prober, searched)
    stable = is_stable(prober, {address: size for address, size in reached.items() if size < failed[address]})
    smallest = SMALL_BYTES[prober.family]
    rest = [address for address in failed if address not in searched]
    answered = prober.answering([request for address in rest for request in ((address, smallest), (address, failed[address]))])
    for address in rest:
        reached[address] = smallest if (address, smallest) in answered else 0
        if reached[address] and (address, failed[address]) not in answered:
            stable.add(address)
    sent = prober.arriving({address: failed[address] for address in sorted(stable)}) if stable else {}
    names = {peer.address: peer.host for peer in peers}
    return Probed(
        len(peers),
        {
            names[address]: Short(reached[address], sent.get(address), prober.hops.get(address))
            for address in failed
            if address in stable or not reached[address]
        },
        [names[address] for address in failed if reached[address] and address not in stable],
    )


def probe(rails: Iterable[Mapping[str, Any]]) -> dict[str, Probed]:
    """Return the name and the result of each rail. All rails are probed at once.

    rails: {"name", "netdev", "address", "peers": [{"host", "address", "bytes"}]}.
    """
    found: dict[str, Probed] = {}

    def of_rail(rail: Mapping[str, Any]) -> None:
        found[str(rail["name"])] = probe_rail(rail["netdev"], rail["address"], [Peer(**peer) for peer in rail["peers"]])

    threads = [threading.Thread(target=of_rail, args=(rail,)) for rail in rails]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found
