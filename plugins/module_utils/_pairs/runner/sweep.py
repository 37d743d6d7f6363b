# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The state that all rails of a host share during a sweep."""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from collections.abc import Sequence

from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.perftest import meeting_seconds
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.plan import Plan
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.results import Results
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.wire import JsonDict, MeetingError, Wire

RUMOURS = 32
"""How many hosts a message may report as dead: the most recently found ones."""
RESUME_SHARE = 0.1
"""The share of the plan's start_deadline_seconds to wait for a partner that may only need to hear that a round is good here."""


class Sweep:
    """The state that the rails of one host share: the plan, the token, the results, the dead hosts, and whether to stop."""

    def __init__(self, plan: Plan, token: bytes, results: Results) -> None:
        self.plan, self.digest, self.index, self.meetings = plan.content, plan.digest, plan.host, plan.meetings
        self.token, self.results = token, results
        self.hosts: list[str] = self.plan["hosts"]
        self.host = self.hosts[self.index]
        self.tests: list[JsonDict] = self.plan["tests"]
        self.meeting_seconds = meeting_seconds(self.tests)
        self.environment = {**os.environ, "LC_ALL": "C"}
        self.started = time.monotonic()
        self.start_deadline = self.started + float(self.plan["start_deadline_seconds"])
        self.resume_deadline = self.started + RESUME_SHARE * float(self.plan["start_deadline_seconds"])
        self.seen: set[int] = set()
        self.failures: list[str] = []
        self.signal_number = 0
        self._dead: dict[int, None] = {}
        self._gone: set[int] = set()
        self._lock = threading.Lock()
        self._stop_reader, self._stop_writer = os.pipe()

    @property
    def stopping(self) -> bool:
        """Return whether a signal has arrived."""
        return self.signal_number != 0

    def stop(self, number: int, _frame: object) -> None:
        """Handle a signal: close the other end of the stop pipe, which every wait also watches."""
        if not self.stopping:
            self.signal_number = number
            os.close(self._stop_writer)

    def poll(self, descriptors: Sequence[int], seconds: float, events: int = select.POLLIN) -> list[int]:
        """Return the descriptors with data, none after the timeout. Raises MeetingError if a signal has arrived."""
        poll = select.poll()
        for descriptor in descriptors:
            poll.register(descriptor, events)
        poll.register(self._stop_reader, select.POLLIN)
        ready = poll.poll(max(0.0, seconds) * 1000)
        if self.stopping:
            raise MeetingError("signal", f"the runner was stopped by {signal.Signals(self.signal_number).name}")
        return [descriptor for descriptor, _events in ready]

    def heard(self, wire: Wire, seconds: float) -> bool:
        """Wait for a message on a wire; False after the timeout. Raises MeetingError if a signal has arrived."""
        return wire.has_message or bool(self.poll([wire.sock.fileno()], seconds))

    def saw(self, host: int) -> None:
        """Record that a host is alive."""
        with self._lock:
            self.seen.add(host)
            self._dead.pop(host, None)
            self._gone.discard(host)

    def found_dead(self, host: int) -> None:
        """Record that a host was found dead, here or elsewhere. This never prevents another attempt."""
        with self._lock:
            self._dead.pop(host, None)
            self._dead[host] = None
            if host in self.seen:
                self._gone.add(host)

    def may_be_late(self, host: int) -> bool:
        """Return whether a host that refuses connections may just not have started yet: it was never seen, and there is time left."""
        return host not in self.seen and host not in self._gone and time.monotonic() < self.start_deadline

    def is_called_dead(self, host: int) -> bool:
        """Return whether a host was reported dead."""
        return host in self._dead

    def rumours(self) -> dict[str, list[int]]:
        """Return, for a message, the last hosts that were found dead, and which of them are gone: those had been seen before."""
        with self._lock:
            dead = list(self._dead)[-RUMOURS:]
            return {"dead": dead, "gone": [host for host in dead if host in self._gone]}

    def hear_rumours(self, message: JsonDict) -> None:
        """Record the dead hosts that a signed message reports."""
        dead, gone = (names[:RUMOURS] if isinstance(names, list) else [] for names in (message.get("dead"), message.get("gone")))
        for host in dead:
            if isinstance(host, int) and 0 <= host < len(self.hosts) and host != self.index:
                if host not in self._dead:
                    self.found_dead(host)
                if host in gone:
                    self._gone.add(host)

    def finish(self) -> None:
        """Write the last line and close the results. Raises OSError."""
        if self.results.lost:
            self.failures.append(f"{self.results.lost} records could not be written: {self.results.reason}")
        reason = signal.Signals(self.signal_number).name if self.stopping else "; ".join(self.failures) or None
        seconds = round(time.monotonic() - self.started, 3)
        last = {"host": self.host, "records": self.results.records, "seconds": seconds, "reason": reason}
        self.results.write({"finished": reason is None, **last})
        self.results.close()
