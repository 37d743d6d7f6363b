# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The thread that answers all callers of a host."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import threading
import time
from collections.abc import Sequence

from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.rail import CALLERS, LATE_RETRY_SECONDS, Rail
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.wire import CONNECT_TIMEOUT_SECONDS, MeetingError, Wire


class Reception(threading.Thread):
    """Answers all callers on all rails of this host; a slow caller does not delay the others."""

    def __init__(self, rails: Sequence[Rail]) -> None:
        super().__init__(daemon=True)
        self._poll = select.poll()
        self._doors = {rail.listener.fileno(): (rail, rail.listener) for rail in rails if rail.listener is not None}
        self._callers: dict[int, tuple[Rail, Wire, str, float]] = {}
        self._reader, self._writer = os.pipe()
        for descriptor in (*self._doors, self._reader):
            self._poll.register(descriptor, select.POLLIN)

    def close(self) -> None:
        """End the thread, and wait for its end."""
        os.close(self._writer)
        self.join()

    def run(self) -> None:
        """Answer until closed."""
        while True:
            ready = [descriptor for descriptor, _events in self._poll.poll(1000 if self._callers else None)]
            if self._reader in ready:
                return
            for descriptor in ready:
                if descriptor in self._doors:
                    self._accept(*self._doors[descriptor])
                elif descriptor in self._callers:
                    self._listen_to(descriptor)
            now = time.monotonic()
            for descriptor in [each for each, caller in self._callers.items() if caller[3] < now]:
                self._dismiss(descriptor).close()

    def _accept(self, rail: Rail, listener: socket.socket) -> None:
        try:
            sock, peer = listener.accept()
            wire = Wire(sock, rail.sweep.token)
        except OSError:
            time.sleep(LATE_RETRY_SECONDS)
            return
        if len(self._callers) >= CALLERS:
            self._dismiss(next(iter(self._callers))).close()
        deadline = time.monotonic() + CONNECT_TIMEOUT_SECONDS
        self._callers[sock.fileno()] = (rail, wire, peer[0], deadline)
        self._poll.register(sock.fileno(), select.POLLIN)

    def _dismiss(self, descriptor: int) -> Wire:
        self._poll.unregister(descriptor)
        return self._callers.pop(descriptor)[1]

    def _listen_to(self, descriptor: int) -> None:
        rail, wire, address, _deadline = self._callers[descriptor]
        waits = False
        try:
            wire.take()
            if not wire.has_message:
                return
            self._dismiss(descriptor)
            waits = rail.greet(wire, address)
        except (MeetingError, OSError):
            self._callers.pop(descriptor, None)
            with contextlib.suppress(KeyError):
                self._poll.unregister(descriptor)
        if not waits:
            wire.close()
