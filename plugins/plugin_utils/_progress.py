# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A sign of life from a task that takes long: how long, how many hosts are done, for whom it waits."""

from __future__ import annotations

from collections.abc import Callable

from ansible_collections.rdma.cluster.plugins.plugin_utils._summary import names

#: The first line after so long, and then again and again; less often once it has taken a minute.
FIRST_SECONDS = 10.0
LATER_SECONDS = 30.0
SLOW_SECONDS = 60.0


#: What else can tell how far a task is, at a time of the clock; None while it cannot.
Watch = Callable[[float], str | None]


class Progress:
    """The task under way. Times are those of a monotonic clock, in seconds."""

    def __init__(self) -> None:
        self._task = ""
        self._begun = 0.0
        self._said = 0.0
        self._waiting: dict[str, None] = {}
        self._done = 0
        self._watch: Watch | None = None

    def begin(self, task: str, now: float, watch: Watch | None = None) -> None:
        self._task, self._begun, self._said = task, now, now
        self._waiting, self._done = {}, 0
        self._watch = watch

    def host_begins(self, host: str) -> None:
        self._waiting[host] = None

    def host_ends(self, host: str) -> None:
        self._done += self._waiting.pop(host, 0) is None

    def due(self, now: float) -> str | None:
        """The line to print now, if one is due."""
        elapsed = now - self._begun
        interval = FIRST_SECONDS if elapsed <= SLOW_SECONDS else LATER_SECONDS
        if not self._waiting or now - self._said < interval:
            return None
        self._said = now
        seen = self._watch(now) if self._watch is not None else None
        known = seen or f"{self._done} hosts done, waiting for {names(list(self._waiting))}"
        return f"  … {self._task}: {elapsed:.0f} s, {known}"
