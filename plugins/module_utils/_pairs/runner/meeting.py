# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The measurements of one rail: meeting after meeting, test after test."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.perftest import (
    ENDING_SECONDS,
    LISTEN_TIMEOUT_SECONDS,
    LOST_CLOCK,
    SHOWN_CHARACTERS,
    Perftest,
    allowed_seconds,
    first_line,
    node_cpus,
    perftest_argv,
    poll_intervals,
)
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.probes import TCP_STATES_TAKEN, tables_show
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.rail import Patience, Rail, ping_intervals
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.wire import JsonDict, MeetingError, Wire, refusal, whole_number

FAILED_ENDING_SECONDS = 1.0
"""How long a perftest may continue after its partner has failed, or the other host is gone."""
STRANGER_SECONDS = 1.0
"""How long perftest's port may have no listener before the runner looks for a connection that has closed it."""
CLOCK_SOURCE = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
ATTEMPTS = 3
"""How often two partners measure a test at most, if the client's clock is lost, or a stranger took the client's place."""


class Meeting:
    """One meeting of two hosts on a rail: all its tests, one after another, over one connection.

    The client says hello. For each test, the server says "ready" once its perftest listens. Both then say "done" with perftest's
    exit code when it has ended; "failed" can replace either message. A client that has lost its clock reports it with "done"; if both
    were done, the same test is repeated. It is also repeated if both report with "done" that a stranger took the client's place at
    perftest's port. These messages also carry:
    hello: which tests the client lacks; ready: which of them are left; both: which hosts the sender found dead; ready, done, failed: the
    number of the test.
    """

    def __init__(self, rail: Rail, number: int, other: int, serving: bool, tests: list[int]) -> None:
        self._rail, self._sweep = rail, rail.sweep
        self._number, self._other, self._serving = number, other, serving
        self._left = tests
        self._attempts: Counter[int] = Counter()
        self._again = False
        self._done: JsonDict | None = None
        self._waited_since: float | None = time.monotonic()
        self._parted = False
        self._running: Perftest | None = None
        self._first_attempt: dict[int, float] = {}
        self._strangers: Counter[int] = Counter()
        self._probe: JsonDict | None = None

    def hold(self) -> None:
        """Measure and record every test, whatever happens."""
        try:
            if self._rail.broken is not None:
                raise self._rail.broken
            if self._serving:
                wire, hello = self._rail.await_client(self._number, self._other)
                with contextlib.closing(wire):
                    self._serve(wire, hello)
            else:
                with contextlib.closing(self._rail.call_server(self._number, self._other, self._left)) as wire:
                    self._follow(wire)
        except MeetingError as exc:
            error = self._rail.last_word(self._number, exc) if exc.error_class == "dead" else exc
            if error is exc and exc.error_class == "dead":
                self._sweep.found_dead(self._other)
            for test in list(self._left):
                self._record(self._blank(test), error)

    def _serve(self, wire: Wire, hello: JsonDict) -> None:
        """Measure the tests that the client lacks. The client keeps the values, so the records of this host do not matter."""
        theirs = self._rail.known_tests(hello.get("lacks"))
        self._refuse_all_but(theirs)
        self._left = theirs
        if not theirs:
            wire.send(MeetingError("refused", f"{self._sweep.host} was asked for none of the plan's tests").to_message())
        while self._left:
            self._attempt(self._left[0], wire)

    def _follow(self, wire: Wire) -> None:
        while self._left:
            message = self._await_ready(wire)
            self._refuse_all_but(message.get("lacks"))
            test = whole_number(message.get("test"))
            if test not in self._left:
                raise MeetingError("refused", f"{self._name} is at test {str(message.get('test'))[:SHOWN_CHARACTERS]}, which is not due")
            if message.get("kind") == "ready":
                self._attempt(test, wire)
            else:
                self._record(self._blank(test), refusal(message, self._name))

    @property
    def _name(self) -> str:
        return self._sweep.hosts[self._other]

    def _refuse_all_but(self, tests: Any) -> None:
        for test in [test for test in self._left if test not in (tests if isinstance(tests, list) else ())]:
            self._record(self._blank(test), MeetingError("refused", f"{self._name} holds a good record of this test already"))

    def _await_ready(self, wire: Wire) -> JsonDict:
        patience = Patience(self._rail, self._number, self._other)
        for seconds in ping_intervals(False):
            if self._sweep.heard(wire, seconds):
                break
            pong = self._rail.ping(self._number, self._other)
            if pong is not None and not self._sweep.heard(wire, 0.0):
                patience.hear(pong)
        return self._rail.hear(wire, self._other)

    def _blank(self, test: int) -> JsonDict:
        pair = (self._sweep.index, self._other) if self._serving else (self._other, self._sweep.index)
        waited = 0.0 if self._waited_since is None else time.monotonic() - self._waited_since
        self._waited_since = None if self._serving else time.monotonic()
        return {
            "rail": self._rail.name_in_plan,
            "round": self._number,
            "test": self._sweep.tests[test]["name"],
            "server": self._sweep.hosts[pair[0]],
            "client": self._sweep.hosts[pair[1]],
            "role": "server" if self._serving else "client",
            "argv": [],
            "exit_code": None,
            "started": time.time(),
            "seconds": 0.0,
            "waited_seconds": round(waited, 3),
            "stdout": "",
            "stderr": "",
            "error": None,
        }

    def _record(self, record: JsonDict, error: MeetingError | None = None) -> None:
        if error is not None:
            record["error"] = {"class": error.error_class, "detail": error.detail}
        failed = error is not None or record["exit_code"] != 0
        if failed and self._sweep.plan.get("probe") and not self._sweep.stopping:
            self._probe = self._probe or self._rail.probe(self._other)
            record["probe"] = self._probe
        if LOST_CLOCK in record["stderr"]:
            with contextlib.suppress(OSError):
                record["clock_source"] = CLOCK_SOURCE.read_text(encoding="ascii").strip()
        self._left = [test for test in self._left if self._sweep.tests[test]["name"] != record["test"]]
        self._sweep.results.write(record)

    def _attempt(self, test: int, wire: Wire) -> None:
        """Measure one test and record it, unless it will be repeated. Raises MeetingError if the meeting is over."""
        record, error = self._blank(test), None
        self._attempts[test] += 1
        self._first_attempt.setdefault(test, time.monotonic())
        try:
            self._measure(record, test, wire)
        except MeetingError as exc:
            error = exc
        broken = self._rail.broken
        if broken is not None:
            error = MeetingError("timeout", broken.detail if error is None else f"{error.detail}; {broken.detail}")
        if self._strangers[test]:
            record["strangers"] = self._strangers[test]
        if error is not None or not self._again:
            self._record(record, error)
        if not self._serving:
            self._waited_since = time.monotonic()
        if broken is not None:
            with contextlib.suppress(MeetingError):
                wire.send(broken.to_message())
            raise broken
        if error is not None and error.ends_meeting:
            raise error

    def _measure(self, record: JsonDict, number: int, wire: Wire) -> None:
        """Run perftest alongside the partner's; in every case, notify the partner and leave no process behind."""
        self._running = None
        begun = time.monotonic()
        self._parted, self._done, self._again, under_way = False, None, False, not self._serving
        try:
            perftest = self._listening(record, number) if self._serving else self._start(record, self._sweep.tests[number])
            if self._serving:
                wire.send({"kind": "ready", "test": number, "lacks": self._left, **self._sweep.rumours()})
                under_way = True
            parting = self._supervise(perftest, allowed_seconds(self._sweep.tests[number]), wire)
            may_repeat = self._may_repeat(number)
            lost = may_repeat and not self._serving and perftest.end() == 0 and LOST_CLOCK in perftest.stderr.text()
            stranger = perftest.lost_its_handshake
            self._say_done(wire, number, perftest.end(), again=lost, stranger=stranger and may_repeat)
            parting = parting or self._await_parting(wire)
            if perftest.end() != 0 and parting is not None and parting.error_class == "dead":
                raise parting
            self._strangers[number] += stranger and self._partner_says("stranger")
            asked = lost or (self._serving and self._partner_says("again") and self._attempts[number] < ATTEMPTS)
            self._again = (asked and self._done is not None) or (stranger and may_repeat and self._partner_says("stranger"))
        except MeetingError as exc:
            if self._stranger_stays(exc, number):
                self._strangers[number] += 1
                self._again = True
                self._say_done(wire, number, None, again=False, stranger=True)
                return
            with contextlib.suppress(MeetingError):
                wire.send(exc.to_message("failed", test=number, lacks=self._left))
            if under_way and not self._parted and not exc.ends_meeting and len(self._left) > 1:
                self._await_parting(wire)  # else it would be taken for an answer about the next test
            raise
        finally:
            record["seconds"] = round(time.monotonic() - begun, 3)
            if self._running is not None:
                code = self._running.end()
                record.update(exit_code=code, stdout=self._running.stdout.text(), stderr=self._running.stderr.text())
                if self._running.stuck:
                    self._rail.give_up(self._running)

    def _may_repeat(self, test: int) -> bool:
        """Return whether an attempt and time are left for a test that was lost to its client's clock, or to a stranger."""
        spent = time.monotonic() - self._first_attempt[test]
        return self._attempts[test] < ATTEMPTS and spent < allowed_seconds(self._sweep.tests[test])

    def _say_done(self, wire: Wire, test: int, code: int | None, *, again: bool, stranger: bool) -> None:
        wire.send({"kind": "done", "test": test, "exit_code": code, "again": again, "stranger": stranger})

    def _partner_says(self, word: str) -> bool:
        return self._done is not None and self._done.get(word) is True

    def _stranger_stays(self, error: MeetingError, test: int) -> bool:
        """Return whether to try again: perftest's server still serves a stranger, the client found the port closed, an attempt is left."""
        running = self._running
        if not self._serving or running is None or error.ends_meeting or not self._partner_says("stranger") or not self._may_repeat(test):
            return False
        return not self._rail.listeners.on(self._rail.perftest_port, self._rail.address)

    def _listening(self, record: JsonDict, number: int) -> Perftest:
        """Return perftest's server once it listens. If a stranger connected before that was noticed, start it again."""
        for _attempt in range(ATTEMPTS):
            perftest = self._start(record, self._sweep.tests[number])
            if self._await_listen(perftest):
                return perftest
            perftest.end()
            self._strangers[number] += 1
        port = self._rail.perftest_port
        raise MeetingError("listen", f"another process connected to perftest's port {port} before its client, {ATTEMPTS} times")

    def _start(self, record: JsonDict, test: JsonDict) -> Perftest:
        rail = self._rail
        record["argv"] = perftest_argv(test, rail.profile, rail.perftest_port, None if self._serving else rail.addresses[self._other])
        if self._serving and rail.listeners.on(rail.perftest_port, rail.address):
            raise MeetingError("listen", f"TCP port {rail.perftest_port} is taken by another process")
        self._running = Perftest(record["argv"], rail.group, self._sweep.environment)
        return self._running

    def _await_listen(self, perftest: Perftest) -> bool:
        """Wait for perftest's server by looking, never by connecting: it accepts exactly one client.

        Returns False if a stranger was that client before the listener was noticed.
        """
        begun = time.monotonic()
        deadline, look_at = begun + LISTEN_TIMEOUT_SECONDS, begun + STRANGER_SECONDS
        place = self._rail.perftest_port, self._rail.address
        for seconds in poll_intervals():
            if self._rail.listeners.on(*place):
                return True
            if perftest.ended():
                if perftest.lost_its_handshake:
                    return False
                code, output = perftest.end(), first_line(perftest.stderr.text(), perftest.stdout.text())
                words = f"perftest's server ended with exit code {code} before it listened"
                raise MeetingError("listen", f"{words}: {output}" if output else words)
            if time.monotonic() > look_at:
                if tables_show(*place, TCP_STATES_TAKEN):
                    return False
                look_at = time.monotonic() + STRANGER_SECONDS
            if time.monotonic() > deadline:
                break
            self._sweep.poll([], seconds)
        raise MeetingError("listen", f"perftest's server did not listen within {LISTEN_TIMEOUT_SECONDS:g} s")

    def _supervise(self, perftest: Perftest, allowed: float, wire: Wire) -> MeetingError | None:
        """Collect the output until perftest ends. Returns the partner's parting if that came first.

        Raises MeetingError when perftest outlives its deadline, or its partner by more than ENDING_SECONDS.
        """
        deadline = time.monotonic() + allowed
        parting: MeetingError | None = None
        pipes = dict(perftest.streams)
        looks = poll_intervals()
        while pipes or not perftest.ended():
            if time.monotonic() > deadline:
                raise parting or MeetingError("timeout", f"perftest did not end within {allowed:g} seconds")
            watched = [*pipes, wire.sock.fileno()] if parting is None else list(pipes)
            spare = deadline - time.monotonic()
            ready = self._sweep.poll(watched, 0.0 if wire.has_message and parting is None else min(spare, 1.0 if pipes else next(looks)))
            for pipe in [pipe for pipe in ready if pipe in pipes and not pipes[pipe].take(pipe)]:
                del pipes[pipe]
            if parting is None and (wire.has_message or wire.sock.fileno() in ready):
                parting, ending_seconds = self._parting(wire)
                deadline = min(deadline, time.monotonic() + ending_seconds)
        return parting

    def _await_parting(self, wire: Wire) -> MeetingError | None:
        return self._parting(wire)[0] if self._sweep.heard(wire, ENDING_SECONDS) else None

    def _parting(self, wire: Wire) -> tuple[MeetingError, float]:
        """Return what the partner's last message means for a perftest of ours that still runs, and how long it may continue."""
        self._parted = True
        try:
            message, authentic = wire.receive()
        except MeetingError as exc:
            return exc, FAILED_ENDING_SECONDS
        if not authentic or message.get("kind") != "done":
            return refusal(message, "the partner"), FAILED_ENDING_SECONDS
        self._done = message
        code = message.get("exit_code")
        error = MeetingError("timeout", f"the partner's perftest ended with exit code {code} and ours went on")
        return error, FAILED_ENDING_SECONDS if code else ENDING_SECONDS


class Rounds(threading.Thread):
    """The thread that works through the rounds of one rail."""

    def __init__(self, rail: Rail) -> None:
        super().__init__(daemon=True)
        self._rail = rail

    def run(self) -> None:
        """Hold each meeting that has a test due."""
        rail, sweep = self._rail, self._rail.sweep
        cpus = node_cpus(rail.profile.get("numa_node"))
        if cpus:
            with contextlib.suppress(OSError):
                os.sched_setaffinity(0, cpus)  # of this thread, and of the perftests that it starts
        try:
            for number, (other, serving) in rail.meetings.items():
                rail.enter(number)
                due = rail.lacking(number) or ([] if rail.broken is not None else rail.requested_tests(number, other))
                if due and not sweep.stopping:
                    Meeting(rail, number, other, serving, due).hold()
        except Exception as exc:  # noqa: BLE001 # pylint: disable=broad-exception-caught
            sweep.failures.append(f"{rail.name_in_plan}: {type(exc).__name__}: {exc}")
        finally:
            rail.finish()
