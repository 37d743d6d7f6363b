# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Strangers that disturb the pair runners of a plan on this machine: flood, scan, taken handshakes, replay, a stopped runner, state D.

Each is a thread that ends with the sweep, or after MOST_CONNECTIONS or MOST_SECONDS, and talks to the addresses of the plan only.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import secrets
import signal
import socket
import struct
import subprocess
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.perftest import COMMANDS
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.probes import Listeners
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.rail import IP_BIND_ADDRESS_NO_PORT
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.schedule import make_schedule
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.wire import MESSAGE_BYTES

MOST_CONNECTIONS = 200_000
MOST_SECONDS = 120.0
OPEN = 256
"""How many connections a flood keeps open."""
SCAN_PORTS = range(18480, 18640)
SCAN_PAUSE_SECONDS = 0.2
RESET = struct.pack("ii", 1, 0)
TAP = """
import os, sys
sys.path.insert(0, sys.argv[1])
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner import main, rail, reception, wire
tap = os.open("tap", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
class Wire(wire.Wire):
    sends = False
    def send(self, message):
        self.sends = True
        try:
            super().send(message)
        finally:
            self.sends = False
    def _sign(self, body):
        signature = super()._sign(body)
        if self.sends:
            os.write(tap, signature + b" " + body + b"\\n")
        return signature
rail.Wire = reception.Wire = Wire
sys.argv = sys.argv[1:]
sys.exit(main.main())
"""
"""Writes each message that a runner signs to the file `tap` of its folder: what somebody sees who listens on its cable."""
PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT = 17, 0x4206, 0x4207
PTRACE_O_TRACEEXIT = 0x40


class Stranger(threading.Thread):
    """One who disturbs a sweep from start to close. connections: how many were made; did: for a person."""

    def __init__(self, plan: dict[str, Any]) -> None:
        super().__init__(daemon=True)
        self.plan = plan
        self.addresses = [address for rail in plan["rails"] for address in rail["addresses"]]
        self.rendezvous, self.perftest = (
            [(address, int(plan[name]) + number) for number, rail in enumerate(plan["rails"]) for address in rail["addresses"]]
            for name in ("rendezvous_port", "perftest_port")
        )
        self.connections = 0
        self.failure: BaseException | None = None
        self._closed = threading.Event()
        self._deadline = time.monotonic() + MOST_SECONDS

    @property
    def goes_on(self) -> bool:
        return not self._closed.is_set() and self.connections < MOST_CONNECTIONS and time.monotonic() < self._deadline

    @property
    def did(self) -> str:
        return f"{self.connections} connections"

    def close(self) -> None:
        """End it. Raises what it failed with, for then something else was measured."""
        self._closed.set()
        self.join()
        if self.failure is not None:
            raise RuntimeError(f"the stranger failed: {self.failure!r}") from self.failure

    def run(self) -> None:
        try:
            self.disturb()
        except Exception as exc:  # noqa: BLE001 # it is raised again by close()
            self.failure = exc

    def disturb(self) -> None:
        raise NotImplementedError

    def connect(self, address: str, port: int, source: str = "") -> socket.socket | None:
        """A connection, None where nobody takes it."""
        sock = socket.socket()
        sock.settimeout(0.2)
        try:
            if source:
                sock.setsockopt(socket.IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1)
                sock.bind((source, 0))
            sock.connect((address, port))
        except OSError:
            sock.close()
            return None
        self.connections += 1
        return sock

    def visit(self, address: str, port: int) -> None:
        """Connect and close."""
        sock = self.connect(address, port)
        if sock is not None:
            sock.close()


class Flood(Stranger):
    """Connects to the runners' ports as fast as it can: garbage, too long messages, forged ones, resets; OPEN that say nothing."""

    def disturb(self) -> None:
        chance, kept = random.Random(1), deque[socket.socket]()
        try:
            while self.goes_on:
                sock = self.connect(*chance.choice(self.rendezvous))
                if sock is None:
                    time.sleep(0.001)
                    continue
                self._speak(sock, chance)
                if chance.random() < 0.2:
                    kept.append(sock)
                    if len(kept) > OPEN:
                        kept.popleft().close()
                else:
                    sock.close()
        finally:
            for sock in kept:
                sock.close()

    def _speak(self, sock: socket.socket, chance: random.Random) -> None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        with suppress(OSError):
            sock.send(self._words(chance))

    def _words(self, chance: random.Random) -> bytes:
        signature, host = secrets.token_hex(32).encode(), chance.choice(self.plan["hosts"])
        about = {"kind": chance.choice(("hello", "ping", "ready", "done", "failed")), "host": host, "round": chance.randrange(9)}
        forged = json.dumps({**about, "rail": "rail0", "sweep": self.plan["sweep"], "lacks": [0], "nonce": "n"}).encode()
        return chance.choice(
            (
                b"\n",
                chance.randbytes(200) + b"\n",
                b"x" * (3 * MESSAGE_BYTES),
                signature + b" " + forged + b"\n",
                signature + b" " + b"[" * 3000 + b"\n",
                b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
                signature + b" " + forged,
            )
        )


class Scan(Stranger):
    """Connects to every port of SCAN_PORTS of every host and closes at once, pass after pass."""

    passes = 0

    def disturb(self) -> None:
        while self.goes_on:
            for address in self.addresses:
                for port in SCAN_PORTS:
                    self.visit(address, port)
            self.passes += 1
            self._closed.wait(SCAN_PAUSE_SECONDS)

    @property
    def did(self) -> str:
        return f"{self.passes} passes over {len(SCAN_PORTS)} ports a host, {self.connections} connections"


class Taker(Stranger):
    """Takes the place of the client at every other perftest that listens, so that a measurement is disturbed and its repetition is not."""

    def disturb(self) -> None:
        listeners = Listeners()
        address, port = self.rendezvous[0]
        while self.goes_on and not listeners.on(port, address):
            time.sleep(0.01)
        listeners.prove(port, address)  # to read all connections of /proc/net would take too long
        listened, spared = set[tuple[str, int]](), set(self.perftest)
        while self.goes_on:
            for place in self.perftest:
                if not listeners.on(place[1], place[0]):
                    listened.discard(place)
                elif place not in listened:
                    listened.add(place)
                    if place in spared:
                        spared.discard(place)
                        self.visit(*place)
                    else:
                        spared.add(place)
            time.sleep(0.001)


class Replay(Stranger):
    """Sends the messages of the sweep again, as its runners signed them (TAP), in their hosts' names and from their addresses.

    Every fifth one is signed with another token.
    """

    def __init__(self, plan: dict[str, Any], tap: Path) -> None:
        super().__init__(plan)
        self._tap = tap
        self.captured = 0

    def disturb(self) -> None:
        chance, seen = random.Random(1), list[bytes]()
        tap = self._lines()
        while self.goes_on:
            new = next(tap)
            seen += new
            self.captured = len(seen)
            for line in new or chance.choices(seen, k=min(len(seen), 1)):
                for place in (*(self._meant_for(line) if new else ()), chance.choice(self.rendezvous)):
                    self._send(line, place, chance)
            if not seen:
                time.sleep(0.01)

    def _lines(self) -> Iterator[list[bytes]]:
        """What has come since the last time, whole lines."""
        place, rest = 0, b""
        while True:
            if self._tap.exists():
                with self._tap.open("rb") as file:
                    file.seek(place)
                    rest += file.read()
                    place = file.tell()
            *whole, rest = rest.split(b"\n")
            yield whole

    def _meant_for(self, line: bytes) -> list[tuple[str, int]]:
        """The host to which a hello was said, on all rails: the other ones may not have heard of the round yet."""
        message = json.loads(line.partition(b" ")[2])
        if message["kind"] != "hello":
            return []
        hosts = self.plan["hosts"]
        other, _serving = make_schedule(self.plan["schedule"], len(hosts)).of(hosts.index(message["host"]))[message["round"]]
        return [self.rendezvous[rail * len(hosts) + other] for rail in range(len(self.plan["rails"]))]

    def _send(self, line: bytes, place: tuple[str, int], chance: random.Random) -> None:
        _signature, _blank, body = line.partition(b" ")
        host = json.loads(body).get("host")
        addresses = self.plan["rails"][place[1] - int(self.plan["rendezvous_port"])]["addresses"]
        sock = self.connect(*place, addresses[self.plan["hosts"].index(host)] if host in self.plan["hosts"] else "")
        if sock is None:
            return
        with sock, suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            sock.sendall((secrets.token_hex(32).encode() + b" " + body if self.connections % 5 == 0 else line) + b"\n")
            if chance.random() < 0.5:
                sock.recv(MESSAGE_BYTES)

    @property
    def did(self) -> str:
        return f"{self.captured} messages captured, {self.connections} sent"


class Pause(Stranger):
    """Stops a runner after a time (SIGSTOP), and lets it go on after another, or when closed."""

    def __init__(self, plan: dict[str, Any], process: subprocess.Popen[bytes], after: float, seconds: float) -> None:
        super().__init__(plan)
        self._process, self._after, self._seconds = process, after, seconds

    def disturb(self) -> None:
        if self._closed.wait(self._after):
            return
        self._process.send_signal(signal.SIGSTOP)
        try:
            self._closed.wait(self._seconds)
        finally:
            self._process.send_signal(signal.SIGCONT)

    @property
    def did(self) -> str:
        return f"stopped after {self._after:g} s"


class Undying(Stranger):
    """Makes one perftest of a runner hang so that SIGKILL does not end it, as in state D: traced, it stops, and again where it would end.

    Nothing in the runner is changed: its kernel does not give the process back. close() lets it end.
    """

    def __init__(self, plan: dict[str, Any], process: subprocess.Popen[bytes], after: float) -> None:
        super().__init__(plan)
        self._parent, self._after = process.pid, after
        self.pid: int | None = None

    def disturb(self) -> None:
        self._closed.wait(self._after)
        libc = ctypes.CDLL(None, use_errno=True)
        while self.goes_on and (self.pid is None or libc.ptrace(PTRACE_SEIZE, self.pid, None, ctypes.c_void_p(PTRACE_O_TRACEEXIT))):
            self.pid = self._child()
            time.sleep(0.002)
        if self.pid is None:
            return
        libc.ptrace(PTRACE_INTERRUPT, self.pid, None, None)
        self._closed.wait()
        libc.ptrace(PTRACE_DETACH, self.pid, None, None)

    def close(self) -> None:
        if self.pid is not None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
        super().close()

    def _child(self) -> int | None:
        """A perftest of the runner that runs."""
        for file in Path(f"/proc/{self._parent}/task").glob("*/children"):
            for pid in map(int, file.read_text(encoding="ascii").split()):
                with suppress(OSError):
                    if Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip() in COMMANDS and self._runs(pid):
                        return pid
        return None

    @staticmethod
    def _runs(pid: int) -> bool:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] not in ("Z", "X")

    @property
    def did(self) -> str:
        return "no perftest was held" if self.pid is None else "one perftest was held"
