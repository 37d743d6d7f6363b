# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One rail of a host: the calls of its partners, and its own calls to them."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import socket
import threading
import time
from collections.abc import Iterator
from itertools import chain, repeat
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.perftest import (
    KILL_SECONDS,
    SHOWN_CHARACTERS,
    Group,
    Perftest,
)
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.probes import Listeners, ask_arp, ask_echo, rail_netdev
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.sweep import Sweep
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.wire import (
    CONNECT_TIMEOUT_SECONDS,
    JsonDict,
    MeetingError,
    Wire,
    refusal,
    whole_number,
)

RUMOUR_TIMEOUT_SECONDS = 1.0
"""How long to try to connect to a host that was found dead before, by this host or by one that reported it."""
LATE_RETRY_SECONDS = 0.2
PING_SECONDS = (0.5, 1.0, 2.0)
"""How long to wait for a partner before the first ping, the second, and every further one."""
HOP_SECONDS, HOPS = 5.0, 8
"""Additional waiting time for a partner that waits itself: per host between it and the one that all wait for; for at most so many hosts."""
CALLERS = 512
"""How many callers may be connected without having sent a request."""
CALLS = 8
"""How many different calls may wait for one round: the client's own, and those from before it or this host was restarted."""
IP_BIND_ADDRESS_NO_PORT = 24
Call = tuple[Wire, JsonDict]
"""A caller's connection, and its hello."""


def ping_intervals(at_once: bool) -> Iterator[float]:
    return chain([0.0] if at_once else [], PING_SECONDS, repeat(PING_SECONDS[-1]))


class Rail:
    """One rail of this host: it answers calls of partners, and calls them.

    Each rail runs at its own pace. In every round the host meets its partner at (endpoint address, rendezvous_port + the rail's number).
    The server starts perftest's server; when that listens, the client starts its own. With --resume, tests with a good record are
    skipped, unless the client has lost its record, which holds the value.
    """

    def __init__(self, sweep: Sweep, number: int) -> None:
        rail = sweep.plan["rails"][number]
        self.sweep, self.name_in_plan = sweep, str(rail["name"])
        self.addresses: list[str | None] = rail["addresses"]
        self.address = str(self.addresses[sweep.index])
        self.profile: JsonDict = sweep.plan["profiles"][rail["profiles"][sweep.index]]
        self.perftest_port = int(sweep.plan["perftest_port"]) + number
        self.place = (self.address, int(sweep.plan["rendezvous_port"]) + number)
        self.meetings = sweep.meetings[number]
        self.round = 0
        self.group = Group()
        self.listeners = Listeners()
        self.listener: socket.socket | None = None
        self.broken: MeetingError | None = None
        self._end = max(self.meetings, default=-1) + 1
        self._parked: dict[int, list[Call] | MeetingError] = {}
        self._calls: str | None = None
        self._lock = threading.Lock()
        self._asks_back = threading.Lock()
        self._waits: tuple[int, int] | None = None
        self._bell, self._rope = socket.socketpair()
        self._rope.setblocking(False)

    def open(self) -> None:
        """Listen for partners on this rail's own address, before any rail starts."""
        family = socket.AF_INET6 if ":" in self.address else socket.AF_INET
        try:
            self.listener = socket.create_server(self.place, family=family, backlog=CALLERS)
        except OSError as exc:
            self.broken = MeetingError("start", f"cannot listen on {self.place[0]} port {self.place[1]}: {exc}")
            return
        self.listeners.prove(self.place[1], self.address)

    def close(self) -> None:
        """Stop listening."""
        if self.listener is not None:
            self.listener.close()

    def lacking(self, number: int) -> list[int]:
        """Return the tests of a round without a good record; if all have one, none is measured again."""
        good = self.sweep.results.good
        tests = enumerate(self.sweep.tests)
        return [place for place, test in tests if not good or (self.name_in_plan, number, test["name"]) not in good]

    def enter(self, number: int) -> None:
        """Begin a round, and refuse the calls for earlier rounds."""
        with self._lock:
            self.round, self._waits, self._calls = number, None, None
            for passed in [key for key in self._parked if key < number]:
                for wire, _hello in self._calls_for(passed):
                    with contextlib.closing(wire), contextlib.suppress(MeetingError):
                        wire.send((self.broken or MeetingError("refused", f"round {passed} has passed")).to_message())
                del self._parked[passed]

    def finish(self) -> None:
        """Refuse all remaining calls: there is no further round."""
        self.enter(self._end)

    def give_up(self, perftest: Perftest) -> None:
        """Stop measuring on this rail, because one of its perftests hangs in the kernel."""
        words = f"process {perftest.pid} of perftest hangs in the kernel: it did not end within {KILL_SECONDS:g} seconds of SIGKILL"
        self.broken = MeetingError("start", words)

    def requested_tests(self, number: int, other: int) -> list[int]:
        """Return the tests of a round that is good here, but which this host has to serve because the client lacks them.

        The partner learns that the round is good here: a server that lacks it need not wait for a client that has moved on or ended.
        Wait for a partner that does not answer only during the first RESUME_SHARE of the start, because it may have ended.
        """
        try:
            while (arrival := self.own_call(number, other, keep=True)) is None:
                pong = self.ping(number, other)
                if pong is not None:
                    comes = self.meetings[number][1] and self.round_of(pong, other) <= number
                    return self.known_tests(pong.get("lacks")) if comes else []
                if time.monotonic() > self.sweep.resume_deadline:
                    return []
                self.sweep.poll([], LATE_RETRY_SECONDS)
            return self.known_tests(arrival[1].get("lacks"))
        except MeetingError:
            return []

    def known_tests(self, numbers: Any) -> list[int]:
        """Return the tests of the plan that a partner has listed, in the plan's order."""
        return [test for test in range(len(self.sweep.tests)) if isinstance(numbers, list) and test in numbers]

    def await_client(self, number: int, other: int) -> Call:
        """Return the connection of this round's client with its hello. Until then, check now and then whether the client makes progress."""
        patience = Patience(self, number, other)
        intervals = ping_intervals(self.sweep.is_called_dead(other))
        passed, ping_at = False, time.monotonic() + next(intervals)
        while (arrival := self.own_call(number, other)) is None:
            if passed:
                raise MeetingError("refused", f"{self.sweep.hosts[other]} has gone on without this round")
            spare = ping_at - time.monotonic()
            if spare > 0 and self.sweep.poll([self._bell.fileno()], spare):
                self._bell.recv(64)
                continue
            try:
                pong = self.ping(number, other)
            except MeetingError:
                if (arrival := self.own_call(number, other)) is None:
                    raise
                return arrival
            if pong is not None:
                passed = self.round_of(pong, other) > number or not pong.get("lacks", True)
                if not passed:
                    patience.hear(pong)
            ping_at = time.monotonic() + (0.0 if passed else next(intervals))
        return arrival

    def round_of(self, pong: JsonDict, other: int) -> int:
        """Return the round that a partner reports. Raises MeetingError if it is invalid, or the partner has given up this rail."""
        name = self.sweep.hosts[other]
        if pong.get("broken"):
            raise MeetingError("start", f"{name}: {pong['broken']}")
        at = pong.get("at", -1)
        if not isinstance(at, int) or isinstance(at, bool):
            raise MeetingError("refused", f"{name} says a round that is none: {str(at)[:SHOWN_CHARACTERS]!r}")
        return at

    def waits_behind(self, low: int, hops: int) -> None:
        """Record, for hosts that wait for this one, the lowest round of the hosts that it waits for, and how many these are."""
        self._waits = low, hops

    def arrived(self, number: int) -> Call | None:
        """Return the caller that waits for a round, None if there is none. Raises MeetingError if it was turned away."""
        with self._lock:
            parked = self._parked.pop(number, [])
            if isinstance(parked, MeetingError):
                raise parked
            self._parked[number] = parked[1:]
        return parked[0] if parked else None

    def own_call(self, number: int, other: int, keep: bool = False) -> Call | None:
        """Return the same as arrived, but drop calls that are not the client's own.

        A hello from before this host or the client was restarted is signed, and anyone who has heard it can send it again. The client
        names its own call in its answer to a ping, which cannot be sent again.
        """
        with self._lock:
            doubtful = list(self._calls_for(number))
        if not doubtful:
            return self.arrived(number)
        sure = len(doubtful) == 1 and not self.sweep.results.resumed
        pong = None if sure else self.ping(number, other)
        own = doubtful[0][0].nonce if sure else None if pong is None else pong.get("calls")
        with self._lock:  # a call that has come since the ping was sent is in doubt the next time
            calls = self._calls_for(number)
            kept = next((call for call in calls if call[0].nonce == own), None)
            self._parked[number] = [call for call in calls if (keep if call is kept else call not in doubtful)]
        for call in doubtful:
            if call is not kept:
                call[0].close()
        return kept

    def _calls_for(self, number: int) -> list[Call]:
        parked = self._parked.get(number, [])
        return [] if isinstance(parked, MeetingError) else parked

    def last_word(self, number: int, error: MeetingError) -> MeetingError:
        """Return the refusal that a partner sent for a round before it left, else the error that it is gone."""
        try:
            arrival = self.arrived(number)
        except MeetingError as refusal:
            return refusal
        if arrival is not None:
            arrival[0].close()
        return error

    def probe(self, other: int) -> JsonDict | None:
        """Return whether a partner answers at its address on this rail: ICMP echo, and ARP on all rails of this host. None for IPv6.

        If the address answers ARP on another rail, the cable of its NIC ends on that rail.
        """
        address = str(self.addresses[other])
        if ":" in address:
            return None
        plan, own = self.sweep.plan, self.sweep.index
        numbers = {rail["name"]: rail["profiles"][own] for rail in plan["rails"] if rail["addresses"][own] is not None}
        netdevs = {name: rail_netdev(plan["profiles"][number]) for name, number in numbers.items()}
        known = {name: netdev for name, netdev in netdevs.items() if netdev is not None}
        return {"echo": ask_echo(known.get(self.name_in_plan), address), "arp": ask_arp(known, address)}

    def call_server(self, number: int, other: int, lacking: list[int]) -> Wire:
        """Return a connection to the server of this round, after asking it to measure."""
        while (wire := self._dial(other)) is None:
            self.arrived(number)
            self.sweep.poll([], LATE_RETRY_SECONDS)
        wire.keep_alive()
        try:
            self._say(wire, "hello", number, lacking)
        except MeetingError:
            wire.close()
            raise
        return wire

    def ping(self, number: int, other: int) -> JsonDict | None:
        """Return the partner's answer about a round, None if it may still be starting. Raises MeetingError if it is dead."""
        wire = self._dial(other)
        if wire is None:
            return None
        with contextlib.closing(wire):
            self._say(wire, "ping", number, self.lacking(number))
            return self.hear(wire, other)

    def _dial(self, other: int) -> Wire | None:
        """Connect to a partner. Returns None when it refuses and may just be late. Raises MeetingError if it is dead."""
        place = (str(self.addresses[other]), self.place[1])
        seconds = RUMOUR_TIMEOUT_SECONDS if self.sweep.is_called_dead(other) else CONNECT_TIMEOUT_SECONDS
        sock = socket.socket(socket.AF_INET6 if ":" in place[0] else socket.AF_INET, socket.SOCK_STREAM)
        try:
            self._connect(sock, place, seconds)
        except OSError as exc:
            sock.close()
            if isinstance(exc, ConnectionRefusedError) and self.sweep.may_be_late(other):
                return None
            self.sweep.found_dead(other)
            raise MeetingError("dead", f"{self.sweep.hosts[other]} at {place[0]} port {place[1]}: {exc}") from exc
        except MeetingError:
            sock.close()
            raise
        return Wire(sock, self.sweep.token)

    def _connect(self, sock: socket.socket, place: tuple[str, int], seconds: float) -> None:
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1)
        sock.bind((self.address, 0))
        sock.setblocking(False)
        code = sock.connect_ex(place)
        if code == errno.EINPROGRESS:
            if not self.sweep.poll([sock.fileno()], seconds, select.POLLOUT):
                raise TimeoutError(errno.ETIMEDOUT, f"no answer within {seconds:g} seconds")
            code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            raise OSError(code, os.strerror(code))

    def _say(self, wire: Wire, kind: str, number: int, lacking: list[int]) -> None:
        """Open a conversation: "hello" requests measurements, "ping" asks whether the partner is alive."""
        wire.nonce = os.urandom(16).hex()
        if kind == "hello":
            self._calls = wire.nonce
        about = {"rail": self.name_in_plan, "round": number, "host": self.sweep.host, "lacks": lacking, **self.sweep.rumours()}
        wire.send({"kind": kind, "sweep": self.sweep.plan["sweep"], "plan": self.sweep.digest, **about})

    def hear(self, wire: Wire, other: int) -> JsonDict:
        """Return the answer. Raises MeetingError if it is forged, or a refusal."""
        message, authentic = wire.receive()
        if not authentic:
            raise MeetingError("token", f"the answer of {self.sweep.hosts[other]} is not signed with this sweep's token")
        self.sweep.saw(other)
        self.sweep.hear_rumours(message)
        if message.get("kind") == "refused":
            raise refusal(message, self.sweep.hosts[other])
        return message

    def greet(self, wire: Wire, address: str) -> bool:
        """Answer one caller; return whether it is kept waiting for its round."""
        message, authentic = wire.receive()
        wire.nonce = str(message.get("nonce"))
        number, host = message.get("round"), message.get("host")
        number = number if isinstance(number, int) else -1
        other, serving = self.meetings.get(number, (-1, False))
        due = other >= 0 and self.sweep.hosts[other] == host
        objection = self._objection(message, authentic, other if due else None, serving)
        if objection is None and message["kind"] == "hello":
            wire.keep_alive()
            objection = self._park(number, (wire, message))
            if objection is None:
                return True
        if objection is None:
            lacking = self.lacking(number)
            if serving and lacking and not message.get("lacks"):
                self._park(number, MeetingError("refused", f"{host} holds a good record of round {number} already"))
            low, hops = self._waits or (self.round, 0)
            where = {"at": self.round, "low": low, "hops": hops, **({"broken": self.broken.detail} if self.broken is not None else {})}
            wire.send({"kind": "pong", **where, "calls": self._calls, "lacks": lacking, **self.sweep.rumours()})
        else:
            if due and not authentic and address == self.addresses[other] and self._asks_back.acquire(blocking=False):
                threading.Thread(target=self._ask_back, args=(wire, number, other, objection), daemon=True).start()
                return True
            wire.send(objection.to_message())  # first, for this may be the last that our own round waits for
            if due and authentic and objection.error_class != "refused":  # it may be a call of another rail, sent here by anyone
                self._park(number, objection)
        return False

    def _ask_back(self, wire: Wire, number: int, other: int, objection: MeetingError) -> None:
        """Check whether a message without our signature is from the partner, and only then accept it as the answer for its round.

        Any program on the partner's host can send such a message. The partner itself also answers at its own port without our signature.
        Only one call at a time is checked, and it is answered after the check, because the caller may end with its answer.
        """
        try:
            with contextlib.closing(wire):
                try:
                    self.ping(number, other)
                except MeetingError as exc:
                    if exc.error_class == "token":
                        self._park(number, objection)
                with contextlib.suppress(MeetingError):
                    wire.send(objection.to_message())
        finally:
            self._asks_back.release()

    def _objection(self, message: JsonDict, authentic: bool, other: int | None, serving: bool) -> MeetingError | None:
        """Return why a caller is turned away, None if it is welcome. other: the calling host, None if it has no such meeting."""
        host, here = message.get("host"), self.sweep.host
        if not authentic:
            return MeetingError("token", f"a message in the name of {host} is not signed with the token that {here} has")
        theirs, ours = (message.get("sweep"), message.get("plan")), (self.sweep.plan["sweep"], self.sweep.digest)
        if theirs != ours:
            return MeetingError("plan", f"{host} has sweep {theirs[0]}, plan {theirs[1]}; {here} has {ours[0]}, {ours[1]}")
        kind = message.get("kind")
        if other is None or kind not in ("ping", "hello" if serving else "ping") or message.get("rail") != self.name_in_plan:
            return MeetingError("refused", f"{here} has no such meeting with {host} on {self.name_in_plan}")
        if not self.sweep.results.resumed:  # else it may be a call from before this host was restarted, which anyone can send
            self.sweep.saw(other)
            self.sweep.hear_rumours(message)
        return None

    def _park(self, number: int, arrival: Call | MeetingError) -> MeetingError | None:
        """Keep an arrival for a round until the rail gets there. Returns why not if that is impossible."""
        with self._lock:
            if self.broken is not None:
                return self.broken
            if number < self.round or not self._is_new_call(number, arrival):
                return MeetingError("refused", f"round {number} has passed or has its caller, {self.sweep.host} says")
            self._parked[number] = arrival if isinstance(arrival, MeetingError) else [*self._calls_for(number), arrival]
        with contextlib.suppress(BlockingIOError):  # the rings in it already wake the rail
            self._rope.send(b".")
        return None

    def _is_new_call(self, number: int, arrival: Call | MeetingError) -> bool:
        """Return whether no call waits for a round yet, or only other calls of its client, which has been restarted since."""
        calls = self._calls_for(number)
        if isinstance(arrival, MeetingError) or not calls:
            return not self._parked.get(number)
        return len(calls) < CALLS and arrival[0].nonce not in [wire.nonce for wire, _hello in calls]


class Patience:
    """How long one meeting waits for a partner that answers: as long as the partner, or the host that it waits for, makes progress.

    The host that is behind all others measures, so one of them makes progress within the time of one meeting. A host that waits for a
    waiting host has a little more time than that one. So a host without progress is given up first by its own partner.
    """

    def __init__(self, rail: Rail, number: int, other: int) -> None:
        self._rail, self._number, self._other = rail, number, other
        self._name = rail.sweep.hosts[other]
        self._at = self._low = -1
        self._since = time.monotonic()

    def hear(self, pong: JsonDict) -> None:
        """Record the partner's position. Raises MeetingError if it has made no progress for too long."""
        now, at = time.monotonic(), self._rail.round_of(pong, self._other)
        low = min(at, whole_number(pong.get("low", at)))
        hops = max(0, min(HOPS, whole_number(pong.get("hops", 0))))
        if at > self._at or low > self._low:
            self._at, self._low, self._since = max(at, self._at), max(low, self._low), now
        self._rail.waits_behind(min(self._number, low), min(HOPS, hops + 1))
        allowed = self._rail.sweep.meeting_seconds + hops * HOP_SECONDS
        if now > max(self._since, self._rail.sweep.start_deadline) + allowed:
            where = f"it stays in round {at}, and this is round {self._number}"
            raise MeetingError("dead", f"{self._name} answers and has measured nothing for {now - self._since:.0f} seconds: {where}")
