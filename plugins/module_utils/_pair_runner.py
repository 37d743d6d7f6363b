# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Measures one host's share of all pairs: meets each partner, runs perftest with it, records what came of it.

This file travels alone to the hosts and needs nothing but Python 3.9 and Linux; it also runs by hand, under srun or mpirun:

    python3 _pair_runner.py --plan plan.json --token-file token --host node1 --results results.jsonl

Every host gets the same plan. Each rail paces itself: in every round the host meets its partner there at
(endpoint address, rendezvous_port), each message signed with the token of the sweep. The lower-indexed host of a pair
starts perftest's server and, once that listens, lets the other start the client. The runner does not judge: it appends
one JSON line per rail and round to the results, with the raw output.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import hashlib
import hmac
import json
import os
import secrets
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from itertools import chain, repeat
from pathlib import Path
from typing import Any

CONNECT_TIMEOUT_SECONDS = 5.0
LATE_RETRY_SECONDS = 0.2
PING_SECONDS = (0.5, 1.0, 2.0)
"""How long to wait for a partner before asking whether it lives, and again, and every further time."""
LISTEN_TIMEOUT_SECONDS = 20.0
LISTEN_POLL_SECONDS = 0.02
ENDING_SECONDS = 5.0
"""How long one perftest may go on after the other one has ended well."""
FAILED_ENDING_SECONDS = 1.0
"""How long it may go on after the other one has failed, or the other host has gone."""
PERFTEST_OVERHEAD_SECONDS = 30.0
"""What perftest may take beside its measuring time, unless the plan's test says deadline_seconds."""
OUTPUT_HEAD_BYTES = 16 * 1024
OUTPUT_TAIL_BYTES = 48 * 1024
MESSAGE_BYTES = 4096
ERROR_CLASSES = ("dead", "refused", "token", "plan", "timeout", "listen", "start", "signal")
KEEPALIVE = (
    ((socket.SOL_SOCKET, socket.SO_KEEPALIVE), 1),
    ((socket.IPPROTO_TCP, socket.TCP_KEEPIDLE), 1),
    ((socket.IPPROTO_TCP, socket.TCP_KEEPINTVL), 1),
    ((socket.IPPROTO_TCP, socket.TCP_KEEPCNT), 5),
)
PR_SET_PDEATHSIG = 1
_PRCTL = ctypes.CDLL(None, use_errno=True).prctl
JsonDict = dict[str, Any]


def round_count(n: int) -> int:
    """Return how many rounds it takes until each of n hosts has met each other one: n-1, or n if n is odd."""
    return 0 if n < 2 else n - 1 + n % 2


def partner(index: int, round_number: int, n: int) -> int | None:
    """Return whom a host (0 to n-1) meets in a round (0 to round_count(n)-1), None for a bye.

    The circle method in closed form: with m rounds, i and j meet when i + j = round (mod m). Who would meet itself
    meets the last host if n is even, nobody if n is odd.
    """
    rounds = round_count(n)
    if not 0 <= index < n or not 0 <= round_number < rounds:
        raise ValueError(f"no host {index} of {n} in round {round_number} of {rounds}")
    if n % 2 == 0 and index == n - 1:
        return round_number * n // 2 % rounds  # n/2 is the inverse of 2 modulo n-1
    other = (round_number - index) % rounds
    if other != index:
        return other
    return n - 1 if n % 2 == 0 else None


class MeetingError(Exception):
    """A round that gives no measurement; error_class is one of ERROR_CLASSES."""

    def __init__(self, error_class: str, detail: str) -> None:
        super().__init__(detail)
        self.error_class = error_class
        self.detail = detail


def _refusal(error: MeetingError) -> JsonDict:
    return {"kind": "refused", "class": error.error_class, "detail": error.detail}


def _refused(message: JsonDict, who: str) -> MeetingError:
    """Return what a partner's refusal means here. A partner that was stopped is as good as dead."""
    error_class = message["class"] if message.get("class") in ERROR_CLASSES else "refused"
    return MeetingError("dead" if error_class == "signal" else error_class, f"{who}: {message.get('detail')}")


def load_plan(path: Path, host: str) -> JsonDict:
    """Read the plan and check what would otherwise fail in the middle of a sweep. Raises ValueError."""
    try:
        plan: JsonDict = json.loads(path.read_text(encoding="utf-8"))
        if plan["schema"] != 1:
            raise ValueError(f"{path}: this runner knows schema 1, the plan has {plan['schema']!r}")
        if host not in plan["hosts"] or len(set(plan["hosts"])) != len(plan["hosts"]):
            raise ValueError(f"{path}: {host!r} is not among the plan's hosts, or a host stands there twice")
        for number, rail in enumerate(plan["rails"]):
            for endpoint in rail["endpoints"].values():
                perftest_argv(plan["test"], endpoint, int(plan["test"]["port"]) + number, None)
                str(endpoint["address"]), str(rail["name"])
        str(plan["sweep"]), int(plan["rendezvous_port"]), float(plan["start_deadline_seconds"])
    except (KeyError, TypeError, AttributeError) as exc:
        raise ValueError(f"{path}: not a plan of a sweep: {type(exc).__name__} {exc}") from exc
    return plan


def load_token(path: Path) -> bytes:
    """Read the secret of the sweep. Raises ValueError."""
    token = path.read_bytes().strip()
    if not token:
        raise ValueError(f"{path}: the token is empty")
    return token


def plan_digest(plan: JsonDict) -> str:
    """Return the SHA-256 of the plan's content, whatever its spacing and order of keys."""
    return hashlib.sha256(json.dumps(plan, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def perftest_argv(test: JsonDict, endpoint: JsonDict, tcp_port: int, server_address: str | None) -> list[str]:
    """Return perftest's command line; with a server_address, the client's."""
    argv = [test["command"], "-d", endpoint["device"], "-i", str(endpoint["port"])]
    if endpoint.get("gid_index") is not None:
        argv += ["-x", str(endpoint["gid_index"])]
    argv += ["-s", str(test["size_bytes"]), "-q", str(test["queue_pairs"])]
    amount = ("-D", "duration_seconds") if test.get("iterations") is None else ("-n", "iterations")
    argv += [amount[0], str(test[amount[1]])]
    argv += ["--report_gbits", "-F", "-p", str(tcp_port)]
    if test.get("mtu_bytes") is not None:
        argv += ["-m", str(test["mtu_bytes"])]
    if test.get("qp_timeout") is not None:
        argv += ["-u", str(test["qp_timeout"])]
    if test.get("traffic_class") is not None:
        argv.append(f"--tclass={test['traffic_class']}")
    return argv if server_address is None else [*argv, server_address]


def node_cpus(node: int | None, nodes: Path = Path("/sys/devices/system/node")) -> set[int]:
    """Return the CPUs of a NUMA node; none if the NIC belongs to no node, or to one without CPUs."""
    if node is None or node < 0:
        return set()
    try:
        text = (nodes / f"node{node}" / "cpulist").read_text(encoding="ascii").strip()
    except OSError:
        return set()
    spans = [span.partition("-") for span in text.split(",") if span]
    return {cpu for first, _dash, last in spans for cpu in range(int(first), int(last or first) + 1)}


def listens(tables: str, port: int, address: str) -> bool:
    """Say whether the text of /proc/net/tcp and tcp6 shows a listener that takes connections to address and port."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    packed = socket.inet_pton(family, address)
    hosts = [packed, bytes(len(packed)), bytes(16)]
    if family == socket.AF_INET:
        hosts.append(bytes(10) + b"\xff\xff" + packed)
    local = {f"{_kernel_hex(host)}:{port:04X}" for host in hosts}
    cells = (line.split() for line in tables.splitlines())
    return any(len(row) > 3 and row[3] == "0A" and row[1] in local for row in cells)


def _kernel_hex(packed: bytes) -> str:
    words = [packed[start : start + 4] for start in range(0, len(packed), 4)]
    return "".join(f"{int.from_bytes(word, sys.byteorder):08X}" for word in words)


def _listening_now(port: int, address: str) -> bool:
    texts = []
    for name in ("tcp", "tcp6"):
        with contextlib.suppress(FileNotFoundError):  # tcp6 is missing where IPv6 is off
            texts.append(Path("/proc/net", name).read_text(encoding="ascii"))
    return listens("\n".join(texts), port, address)


def _ping_intervals() -> Iterator[float]:
    return chain(PING_SECONDS, repeat(PING_SECONDS[-1]))


class Captured:
    """The head and the tail of an output that may be long."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._tail = bytearray()
        self._left_out = 0

    def add(self, data: bytes) -> None:
        """Append; between the first 16 and the last 48 KiB nothing is kept."""
        room = OUTPUT_HEAD_BYTES - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        excess = max(0, len(self._tail) - OUTPUT_TAIL_BYTES)
        del self._tail[:excess]
        self._left_out += excess

    def take(self, stream: Any) -> bool:
        """Read what has come on a pipe; False at its end."""
        piece: bytes = stream.read(65536) or b""
        self.add(piece)
        return bool(piece)

    def text(self) -> str:
        """Return what was kept, with a line in the gap if there is one."""
        gap = f"\n[{self._left_out} bytes left out]\n".encode() if self._left_out else b""
        return bytes(self._head + gap + self._tail).decode("utf-8", "replace")


class Perftest:
    """One running perftest in a process group of its own. It dies with the thread that started it."""

    def __init__(self, argv: list[str], cpus: set[int]) -> None:
        parent = os.getpid()

        def prepare() -> None:
            _PRCTL(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != parent:
                os._exit(127)
            if cpus:
                with contextlib.suppress(OSError):
                    os.sched_setaffinity(0, cpus)

        self.stdout, self.stderr = Captured(), Captured()
        environment = {**os.environ, "LC_ALL": "C"}
        pipe = subprocess.PIPE
        try:
            self._process = subprocess.Popen(  # pylint: disable=ansible-bad-function
                argv,
                stdin=subprocess.DEVNULL,
                stdout=pipe,
                stderr=pipe,
                bufsize=0,
                env=environment,
                start_new_session=True,
                preexec_fn=prepare,  # noqa: PLW1509 # pylint: disable=subprocess-popen-preexec-fn
            )
        except (OSError, ValueError, subprocess.SubprocessError) as exc:
            raise MeetingError("start", f"cannot start {argv[0]}: {exc}") from exc

    @property
    def streams(self) -> list[tuple[Any, Captured]]:
        """The pipes with where their content goes."""
        return [(self._process.stdout, self.stdout), (self._process.stderr, self.stderr)]

    def ended(self) -> bool:
        """Say whether the process has ended; it stays unreaped, so that its group keeps its number."""
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, self._process.pid, flags) is not None

    def end(self) -> int:
        """Kill what is left of the group, keep what it had printed, and return its exit code."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            for stream, captured in self.streams:
                os.set_blocking(stream.fileno(), False)
                captured.take(stream)
                stream.close()
        return self._process.returncode


class Wire:
    """One rendezvous connection. A message is a line: the HMAC-SHA256 of a JSON object, a blank, the object.

    All messages of a connection carry the nonce that the caller chose for it.
    """

    def __init__(self, sock: socket.socket, token: bytes) -> None:
        self.sock = sock
        self.nonce = ""
        self._token = token
        sock.settimeout(CONNECT_TIMEOUT_SECONDS)
        for option, value in KEEPALIVE:  # a host that loses its power says no goodbye
            sock.setsockopt(*option, value)

    def send(self, message: JsonDict) -> None:
        """Send one signed message. Raises MeetingError when the partner is gone."""
        body = json.dumps({**message, "nonce": self.nonce}).encode()
        try:
            self.sock.sendall(self._sign(body) + b" " + body + b"\n")
        except OSError as exc:
            raise MeetingError("dead", f"the partner left the meeting: {exc}") from exc

    def receive(self) -> tuple[JsonDict, bool]:
        """Return the next message and whether it is signed with our token, for this connection.

        Raises MeetingError when the partner is gone or silent, or sends something else.
        """
        line = b""
        try:
            while not line.endswith(b"\n"):
                piece = self.sock.recv(1)
                if not piece or len(line) > MESSAGE_BYTES:
                    raise MeetingError("dead", "the partner left the meeting")
                line += piece
            signature, _blank, body = line.strip().partition(b" ")
            message = json.loads(body)
        except (OSError, ValueError, RecursionError) as exc:
            raise MeetingError("dead", f"no message from the partner: {exc}") from exc
        if not isinstance(message, dict):
            raise MeetingError("dead", "no message from the partner, but something else")
        fresh = not self.nonce or message.get("nonce") == self.nonce
        return message, fresh and hmac.compare_digest(signature, self._sign(body))

    def close(self) -> None:
        """Close the connection."""
        self.sock.close()

    def _sign(self, body: bytes) -> bytes:
        return hmac.new(self._token, body, hashlib.sha256).hexdigest().encode()


class Sweep:
    """What the rails of one host share: the plan, the token, the results, and whether to stop."""

    def __init__(self, plan: JsonDict, token: bytes, host: str, results: Path) -> None:
        self.plan, self.token, self.host = plan, token, host
        self.digest = plan_digest(plan)
        self.hosts = [str(name) for name in plan["hosts"]]
        self.index = self.hosts.index(host)
        self.started = time.monotonic()
        self.start_deadline = self.started + float(plan["start_deadline_seconds"])
        self.seen: set[str] = set()
        self.failures: list[str] = []
        self.signal_number = 0
        self.recorded = 0
        self._stop_reader, self._stop_writer = os.pipe()
        self._lock = threading.Lock()
        self._results = results.open("w", encoding="utf-8")

    @property
    def stopping(self) -> bool:
        """Whether a signal has come."""
        return self.signal_number != 0

    def stop(self, number: int, _frame: object) -> None:
        """Handle a signal: everything that waits looks at the stop pipe, whose other end this closes."""
        if not self.stopping:
            self.signal_number = number
            os.close(self._stop_writer)

    def select(self, selector: selectors.BaseSelector, seconds: float) -> list[Any]:
        """Return the data of what became readable. Raises MeetingError when a signal has come."""
        if self._stop_reader not in selector.get_map():
            selector.register(self._stop_reader, selectors.EVENT_READ)
        ready = selector.select(max(0.0, seconds))
        if self.stopping:
            raise MeetingError("signal", f"the runner was stopped by {signal.Signals(self.signal_number).name}")
        return [key.data for key, _events in ready]

    def wait(self, seconds: float, sock: socket.socket | None = None) -> bool:
        """Wait until sock is readable, or the time is over (then False). Raises MeetingError when a signal has come."""
        with selectors.DefaultSelector() as selector:
            if sock is not None:
                selector.register(sock, selectors.EVENT_READ, sock)
            return bool(self.select(selector, seconds))

    def write(self, record: JsonDict) -> None:
        """Append one line to the results, at once."""
        with self._lock:
            self._results.write(json.dumps({"schema": 1, "sweep": self.plan["sweep"], **record}) + "\n")
            self._results.flush()
            self.recorded += 1

    def finish(self) -> None:
        """Write the last line and close the results."""
        reason = signal.Signals(self.signal_number).name if self.stopping else "; ".join(self.failures) or None
        seconds = round(time.monotonic() - self.started, 3)
        last = {"host": self.host, "records": self.recorded, "seconds": seconds, "reason": reason}
        self.write({"finished": reason is None, **last})
        self._results.close()


class Rail(threading.Thread):
    """One rail of this host: works through its rounds, and answers partners that are ahead of it."""

    def __init__(self, sweep: Sweep, number: int) -> None:
        super().__init__(daemon=True)
        rail = sweep.plan["rails"][number]
        self.sweep, self.rail_name = sweep, str(rail["name"])
        self.endpoints: dict[str, JsonDict] = rail["endpoints"]
        self.mine = self.endpoints.get(sweep.host, {})
        self.perftest_port = int(sweep.plan["test"]["port"]) + number
        self.rounds = round_count(len(sweep.hosts))
        self.round = 0
        self._parked: dict[int, Wire | MeetingError] = {}
        self._lock = threading.Lock()
        self._bell, self._rope = socket.socketpair()
        self._listener: socket.socket | None = None
        self._broken: MeetingError | None = None
        self._closed = threading.Event()

    def open(self) -> None:
        """Listen for partners on this rail's own address, before any rail starts."""
        place = (self.mine["address"], int(self.sweep.plan["rendezvous_port"]))
        family = socket.AF_INET6 if ":" in place[0] else socket.AF_INET
        try:
            self._listener = socket.create_server(place, family=family, backlog=128)
        except OSError as exc:
            self._broken = MeetingError("start", f"cannot listen on {place[0]} port {place[1]}: {exc}")
            return
        threading.Thread(target=self._answer_all, args=(self._listener,), daemon=True).start()

    def close(self) -> None:
        """Stop listening."""
        self._closed.set()
        if self._listener is not None:
            with contextlib.suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()

    def run(self) -> None:
        """Work through the rounds."""
        try:
            for number in range(self.rounds):
                self._enter(number)
                other = self._partner(number)
                if other is not None and not self.sweep.stopping:
                    self._round(number, other)
        except Exception as exc:  # noqa: BLE001 # pylint: disable=broad-exception-caught
            self.sweep.failures.append(f"{self.rail_name}: {type(exc).__name__}: {exc}")
        finally:
            self._enter(self.rounds)

    def _enter(self, number: int) -> None:
        with self._lock:
            self.round = number
            for passed in [key for key in self._parked if key < number]:
                parked = self._parked.pop(passed)
                if isinstance(parked, Wire):
                    with contextlib.closing(parked), contextlib.suppress(MeetingError):
                        parked.send(_refusal(MeetingError("refused", f"round {passed} has passed")))

    def _partner(self, number: int) -> str | None:
        """Return the partner of a round, None without one or where it has no NIC on this rail."""
        index = partner(self.sweep.index, number, len(self.sweep.hosts))
        host = None if index is None else self.sweep.hosts[index]
        return host if host in self.endpoints else None

    def _serves(self, other: str) -> bool:
        return self.sweep.index < self.sweep.hosts.index(other)

    def _round(self, number: int, other: str) -> None:
        serving = self._serves(other)
        pair = (self.sweep.host, other) if serving else (other, self.sweep.host)
        role = "server" if serving else "client"
        record = {"rail": self.rail_name, "round": number, "server": pair[0], "client": pair[1], "role": role}
        record.update(argv=[], exit_code=None, started=time.time(), seconds=0.0, stdout="", stderr="", error=None)
        record["waited_seconds"] = 0.0
        entered = time.monotonic()
        try:
            if self._broken is not None:
                raise self._broken
            try:
                wire = self._await_client(number, other) if serving else self._call_server(number, other)
            finally:
                record["waited_seconds"] = round(time.monotonic() - entered, 3)
            with contextlib.closing(wire):
                self._measure(record, wire, None if serving else self.endpoints[other]["address"])
        except MeetingError as exc:
            record["error"] = {"class": exc.error_class, "detail": exc.detail}
        self.sweep.write(record)

    def _measure(self, record: JsonDict, wire: Wire, server_address: str | None) -> None:
        """Run perftest beside the partner's; whatever happens, tell the partner and leave no process."""
        test: Perftest | None = None
        record["started"], begun = time.time(), time.monotonic()
        record["argv"] = perftest_argv(self.sweep.plan["test"], self.mine, self.perftest_port, server_address)
        try:
            if server_address is None:
                self._check_port_is_free()
            test = Perftest(record["argv"], node_cpus(self.mine.get("numa_node")))
            if server_address is None:
                self._await_listen(test)
                wire.send({"kind": "ready"})
            parting = self._supervise(test, wire)
            wire.send({"kind": "done", "exit_code": test.end()})
            if parting is None and self.sweep.wait(ENDING_SECONDS, wire.sock):
                parting = self._parting(wire)[0]
            if test.end() != 0 and parting is not None and parting.error_class == "dead":
                raise parting
        except MeetingError as exc:
            with contextlib.suppress(MeetingError):
                wire.send(_refusal(exc))
            raise
        finally:
            record["seconds"] = round(time.monotonic() - begun, 3)
            if test is not None:
                record.update(exit_code=test.end(), stdout=test.stdout.text(), stderr=test.stderr.text())

    def _check_port_is_free(self) -> None:
        if _listening_now(self.perftest_port, self.mine["address"]):
            raise MeetingError("listen", f"TCP port {self.perftest_port} is taken by another process")

    def _await_listen(self, test: Perftest) -> None:
        """Wait for perftest's server by looking, never by connecting: it takes one client and no other."""
        deadline = time.monotonic() + LISTEN_TIMEOUT_SECONDS
        while not _listening_now(self.perftest_port, self.mine["address"]):
            if test.ended():
                raise MeetingError("listen", f"perftest's server ended with exit code {test.end()} before it listened")
            if time.monotonic() > deadline:
                raise MeetingError("listen", f"perftest's server did not listen within {LISTEN_TIMEOUT_SECONDS:g} s")
            self.sweep.wait(LISTEN_POLL_SECONDS)

    def _supervise(self, test: Perftest, wire: Wire) -> MeetingError | None:
        """Collect the output until perftest ends. Returns the partner's parting if it was first.

        Raises MeetingError when perftest outlives its deadline, or its partner by more than ENDING_SECONDS.
        """
        plan = self.sweep.plan["test"]
        allowed = float(plan.get("deadline_seconds") or plan["duration_seconds"] + PERFTEST_OVERHEAD_SECONDS)
        deadline = time.monotonic() + allowed
        parting: MeetingError | None = None
        with selectors.DefaultSelector() as selector:
            selector.register(wire.sock, selectors.EVENT_READ, wire)
            for stream in test.streams:
                selector.register(stream[0], selectors.EVENT_READ, stream)
            running = len(test.streams)
            while running or not test.ended():
                if time.monotonic() > deadline:
                    raise parting or MeetingError("timeout", f"perftest did not end within {allowed:g} seconds")
                for source in self.sweep.select(selector, min(deadline - time.monotonic(), 1 if running else 0.01)):
                    if source is wire:
                        selector.unregister(wire.sock)
                        parting, ending_seconds = self._parting(wire)
                        deadline = min(deadline, time.monotonic() + ending_seconds)
                    elif not source[1].take(source[0]):
                        selector.unregister(source[0])
                        running -= 1
        return parting

    @staticmethod
    def _parting(wire: Wire) -> tuple[MeetingError, float]:
        """Return what the partner's last message means for a perftest of ours that still runs, and how long it may."""
        try:
            message, authentic = wire.receive()
        except MeetingError as exc:
            return exc, FAILED_ENDING_SECONDS
        if not authentic or message.get("kind") != "done":
            return _refused(message, "the partner"), FAILED_ENDING_SECONDS
        code = message.get("exit_code")
        error = MeetingError("timeout", f"the partner's perftest ended with exit code {code} and ours went on")
        return error, FAILED_ENDING_SECONDS if code else ENDING_SECONDS

    def _await_client(self, number: int, other: str) -> Wire:
        """Return the connection of this round's client. While it has not come, ask now and then whether it lives."""
        passed = False
        for seconds in _ping_intervals():
            wire = self._arrived(number)
            if wire is not None:
                return wire
            if passed:
                raise MeetingError("refused", f"{other} has gone on without this round")
            if self.sweep.wait(seconds, self._bell):
                self._bell.recv(64)
            else:
                passed = self._ping(number, other) > number
        raise AssertionError("the intervals have no end")

    def _arrived(self, number: int) -> Wire | None:
        """Return the caller that waits for a round, None if there is none. Raises MeetingError if it was turned away."""
        with self._lock:
            parked = self._parked.pop(number, None)
        if isinstance(parked, MeetingError):
            raise parked
        return parked

    def _call_server(self, number: int, other: str) -> Wire:
        """Return a connection on which the server of this round has said that its perftest listens."""
        while (wire := self._dial(other)) is None:
            self._arrived(number)
            self.sweep.wait(LATE_RETRY_SECONDS)
        try:
            self._say(wire, "hello", number)
            for seconds in _ping_intervals():
                if self.sweep.wait(seconds, wire.sock):
                    break
                self._ping(number, other)
            self._hear(wire, other)
        except MeetingError:
            wire.close()
            raise
        return wire

    def _ping(self, number: int, other: str) -> int:
        """Return the round in which the partner is, -1 if it may still be starting. Raises MeetingError if it is dead."""
        wire = self._dial(other)
        if wire is None:
            return -1
        with contextlib.closing(wire):
            self._say(wire, "ping", number)
            return int(self._hear(wire, other)["at"])

    def _dial(self, other: str) -> Wire | None:
        """Connect to a partner. Returns None when it refuses and may just be late. Raises MeetingError if it is dead."""
        place = (self.endpoints[other]["address"], int(self.sweep.plan["rendezvous_port"]))
        try:
            sock = socket.create_connection(place, CONNECT_TIMEOUT_SECONDS, source_address=(self.mine["address"], 0))
        except OSError as exc:
            late = other not in self.sweep.seen and time.monotonic() < self.sweep.start_deadline
            if late and isinstance(exc, ConnectionRefusedError):
                return None
            raise MeetingError("dead", f"{other} at {place[0]} port {place[1]}: {exc}") from exc
        return Wire(sock, self.sweep.token)

    def _say(self, wire: Wire, kind: str, number: int) -> None:
        """Open a conversation: "hello" to be measured, "ping" to ask whether the partner lives."""
        wire.nonce = secrets.token_hex(16)
        about = {"rail": self.rail_name, "round": number, "host": self.sweep.host}
        wire.send({"kind": kind, "sweep": self.sweep.plan["sweep"], "plan": self.sweep.digest, **about})

    def _hear(self, wire: Wire, other: str) -> JsonDict:
        """Return the answer. Raises MeetingError when it is forged, or a refusal."""
        message, authentic = wire.receive()
        if not authentic:
            raise MeetingError("token", f"the answer of {other} is not signed with this sweep's token")
        self.sweep.seen.add(other)
        if message.get("kind") == "refused":
            raise _refused(message, other)
        return message

    def _answer_all(self, listener: socket.socket) -> None:
        while True:
            try:
                sock, peer = listener.accept()
            except OSError:
                if self._closed.wait(LATE_RETRY_SECONDS):
                    return
                continue
            threading.Thread(target=self._greet, args=(sock, peer[0]), daemon=True).start()

    def _greet(self, sock: socket.socket, address: str) -> None:
        """Answer one caller; the client of a round to come is kept waiting."""
        wire = Wire(sock, self.sweep.token)
        try:
            message, authentic = wire.receive()
            wire.nonce = str(message.get("nonce"))
            number, host = message.get("round"), str(message.get("host"))
            if not isinstance(number, int) or not 0 <= number < self.rounds:
                number = self.rounds
            due = number < self.rounds and self._partner(number) == host
            objection = self._objection(message, authentic, due)
            if objection is None and message.get("kind") == "hello":
                objection = self._park(number, wire)
                if objection is None:
                    return
            if objection is None:
                wire.send({"kind": "pong", "at": self.round})
            else:
                wire.send(_refusal(objection))  # first, for this may be the last that our own round waits for
                if due and (authentic or address == self.endpoints[host]["address"]):
                    self._park(number, objection)
        except MeetingError:
            pass
        wire.close()

    def _objection(self, message: JsonDict, authentic: bool, due: bool) -> MeetingError | None:
        """Return why a caller is turned away, None if it is welcome."""
        host, here = message.get("host"), self.sweep.host
        if not authentic:
            return MeetingError("token", f"a message in the name of {host} is not signed with the token that {here} has")
        self.sweep.seen.add(str(host))
        theirs, ours = (message.get("sweep"), message.get("plan")), (self.sweep.plan["sweep"], self.sweep.digest)
        if theirs != ours:
            return MeetingError("plan", f"{host} has sweep {theirs[0]}, plan {theirs[1]}; {here} has {ours[0]}, {ours[1]}")
        wrong_way = message.get("kind") == "hello" and due and not self._serves(str(host))
        if not due or wrong_way or message.get("rail") != self.rail_name:
            return MeetingError("refused", f"{here} has no such meeting with {host} on {self.rail_name}")
        return None

    def _park(self, number: int, arrival: Wire | MeetingError) -> MeetingError | None:
        """Keep what arrived for a round until the rail gets there. Returns why not if it cannot."""
        with self._lock:
            if number < self.round or number in self._parked:
                return MeetingError("refused", f"round {number} has passed or has its caller, {self.sweep.host} says")
            self._parked[number] = arrival
        self._rope.send(b".")
        return None


def run(sweep: Sweep) -> int:
    """Work through all rails, side by side, and return the exit code."""
    mine = [number for number, rail in enumerate(sweep.plan["rails"]) if sweep.host in rail["endpoints"]]
    rails = [Rail(sweep, number) for number in mine]
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, sweep.stop)
    for rail in rails:
        rail.open()
    for rail in rails:
        rail.start()
    for rail in rails:
        while rail.is_alive():
            rail.join(1.0)
    for rail in rails:
        rail.close()
    try:
        sweep.finish()
    except OSError as exc:
        sys.stderr.write(f"pair runner: the results cannot be written: {exc}\n")
        return 1
    if sweep.stopping:
        return 128 + sweep.signal_number
    return 1 if sweep.failures else 0


def main() -> int:
    """Run one host's share of a sweep. Returns 0 when every round was recorded, whatever it gave.

    1: the recording failed; 2: plan, token or results file cannot be used; 128 + n: stopped by signal n.
    """
    parser = argparse.ArgumentParser(description="Run one host's share of a sweep of pairwise RDMA measurements.")
    parser.add_argument("--plan", type=Path, required=True, help="the plan, the same on every host (JSON)")
    parser.add_argument("--token-file", type=Path, required=True, help="a file with the secret of this sweep")
    parser.add_argument("--host", required=True, help="this host's name in the plan")
    parser.add_argument("--results", type=Path, required=True, help="the file to write, a JSON object a line")
    arguments = parser.parse_args()
    try:
        plan = load_plan(arguments.plan, arguments.host)
        return run(Sweep(plan, load_token(arguments.token_file), arguments.host, arguments.results))
    except (OSError, ValueError) as exc:
        sys.stderr.write(f"pair runner: {exc}\n")
        return 2


if __name__ == "__main__":
    raise SystemExit(main())
