# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The program that measures how long traffic stops: two hosts send each other numbered UDP packets, and note which do not arrive.

A host sends one packet of each flow in each round. Flows differ in their source port, so that switches spread them over all paths. A
packet has the number of its round and the time at which it was sent, by the sender's monotonic clock. So the receiver needs no clock of
its own: a hole lasts from the last packet before it to the first one after it, minus one interval, by the clock of the sender.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import select
import signal
import socket
import struct
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: Token of the drill, flow, round, time of sending in ns.
PACKET = struct.Struct(">8sHQQ")
#: The first source port is the one after the port that receives.
MOST_FLOWS = 512
#: Holes in the result: the longest ones. All are counted.
MOST_HOLES = 2000
#: One read of the socket, at most, before the next round is due.
_BATCH = 1024
_BUFFER_BYTES = 4 * 1024 * 1024
NS = 10**9


@dataclass
class Hole:
    """Rounds first to last of a flow did not arrive. before_ns, after_ns: when the packets around them were sent."""

    first: int
    last: int
    before_ns: int
    after_ns: int


@dataclass
class Flow:
    """A received flow. A packet that arrives late, because it took another path, closes the hole that it had left."""

    last: int = -1
    last_ns: int = 0
    holes: list[Hole] = field(default_factory=list)

    def add(self, number: int, sent_ns: int) -> None:
        if number > self.last:
            if self.last >= 0 and number > self.last + 1:
                self.holes.append(Hole(self.last + 1, number - 1, self.last_ns, sent_ns))
            self.last, self.last_ns = number, sent_ns
            return
        for at, hole in enumerate(self.holes):
            if hole.first <= number <= hole.last:
                left = Hole(hole.first, number - 1, hole.before_ns, sent_ns)
                right = Hole(number + 1, hole.last, sent_ns, hole.after_ns)
                self.holes[at : at + 1] = [each for each in (left, right) if each.first <= each.last]
                return


class Receiver:
    """What has arrived, by flow."""

    def __init__(self, token: bytes) -> None:
        self._token = token
        self.flows: dict[int, Flow] = {}
        self.packets = 0
        self.first_ns: int | None = None
        self.arrived_ns = 0

    def add(self, packet: bytes, now_ns: int) -> None:
        """Count a packet of this drill; others are ignored. now_ns: the receiver's own clock."""
        if len(packet) != PACKET.size:
            return
        token, flow, number, sent_ns = PACKET.unpack(packet)
        if token != self._token or flow >= MOST_FLOWS:
            return
        if self.first_ns is None:
            self.first_ns = sent_ns
        self.packets += 1
        self.arrived_ns = now_ns
        self.flows.setdefault(flow, Flow()).add(number, sent_ns)

    def result(self, interval_ns: int, now_ns: int) -> dict[str, Any]:
        """Return what was received, with times in ms.

        holes: [flow, lost packets, start, length] of each, the longest first; start counts from the first packet of the stream. unfinished:
        [flow, start] of flows that had stopped while others still arrived. silent_ms: how long nothing had arrived at the end.
        """
        start_ns = self.first_ns or 0
        holes = [
            [flow, hole.last - hole.first + 1, _ms(hole.before_ns - start_ns), _ms(hole.after_ns - hole.before_ns - interval_ns)]
            for flow, each in self.flows.items()
            for hole in each.holes
        ]
        newest_ns = max((each.last_ns for each in self.flows.values()), default=0)
        stopped = [[flow, _ms(each.last_ns - start_ns)] for flow, each in self.flows.items() if newest_ns - each.last_ns > NS]
        return {
            "packets": self.packets,
            "flows": len(self.flows),
            "lost": sum(hole[1] for hole in holes),
            "hole_count": len(holes),
            "holes": sorted(holes, key=lambda hole: -hole[3])[:MOST_HOLES],
            "unfinished": sorted(stopped)[:MOST_HOLES],
            "silent_ms": _ms(now_ns - self.arrived_ns) if self.packets else None,
        }


def _ms(ns: int) -> float:
    return round(ns / 1e6, 1)


class Sender:
    """Sends a packet of each flow in each round. pause_ns: the longest time between two rounds; a busy host makes it longer."""

    def __init__(self, address: str, peer: str, port: int, flows: int, token: bytes) -> None:
        self._token, self._to = token, (peer, port)
        self._sockets = [_bound(address, port + 1 + flow) for flow in range(flows)]
        self.rounds = 0
        self.refused = 0
        self.pause_ns = 0
        self._sent_ns: int | None = None

    def send(self, now_ns: int) -> None:
        if self._sent_ns is not None:
            self.pause_ns = max(self.pause_ns, now_ns - self._sent_ns)
        for flow, each in enumerate(self._sockets):
            try:
                each.sendto(PACKET.pack(self._token, flow, self.rounds, time.monotonic_ns()), self._to)
            except OSError:
                # Without a route the kernel refuses the packet. It is lost like one on the way.
                self.refused += 1
        self._sent_ns = now_ns
        self.rounds += 1


def _bound(address: str, port: int) -> socket.socket:
    made = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
    made.setblocking(False)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)
    made.bind((address, port))
    return made


def exchange(sender: Sender, listener: socket.socket, receiver: Receiver, interval_ns: int, is_over: Callable[[int], bool]) -> None:
    """Send and receive until it is over. is_over: takes this host's monotonic clock, in ns."""
    due_ns = time.monotonic_ns()
    while not is_over(now_ns := time.monotonic_ns()):
        if now_ns >= due_ns:
            sender.send(now_ns)
            # A round that is late is not made up for: the packets have their own times.
            due_ns = max(due_ns + interval_ns, now_ns)
        wait = max(0, due_ns - time.monotonic_ns()) / NS
        with contextlib.suppress(InterruptedError):
            select.select([listener], [], [], wait)
        _receive(listener, receiver)


def _receive(listener: socket.socket, receiver: Receiver) -> None:
    for _count in range(_BATCH):
        try:
            packet = listener.recv(2048)
        except OSError:
            return
        receiver.add(packet, time.monotonic_ns())


def main(argv: Sequence[str] | None = None) -> int:
    """Run until SIGTERM or --seconds have passed, then write the result."""
    given = _parser().parse_args(argv)
    token = bytes.fromhex(Path(given.token_file).read_text(encoding="ascii"))
    interval_ns = given.interval_ms * 10**6
    stopped: list[bool] = []
    signal.signal(signal.SIGTERM, lambda *_args: stopped.append(True))
    listener = _bound(given.address, given.port)
    receiver, sender = Receiver(token), Sender(given.address, given.peer, given.port, given.flows, token)
    end_ns = time.monotonic_ns() + given.seconds * NS
    exchange(sender, listener, receiver, interval_ns, lambda now_ns: bool(stopped) or now_ns >= end_ns)
    found = receiver.result(interval_ns, time.monotonic_ns())
    sent = {"rounds": sender.rounds, "refused": sender.refused, "pause_ms": _ms(sender.pause_ns)}
    _write(given.result, {**found, **sent})
    return 0


def _write(path: str, result: Any) -> None:
    new = f"{path}.new"
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        json.dump(result, file)
    Path(new).replace(path)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Measure how long traffic between two hosts stops.")
    texts: Iterable[str] = ("--address", "--peer", "--token-file", "--result")
    numbers: Iterable[str] = ("--port", "--flows", "--interval-ms", "--seconds")
    for name in texts:
        parser.add_argument(name, required=True)
    for name in numbers:
        parser.add_argument(name, required=True, type=int)
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
