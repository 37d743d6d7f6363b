# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps and events of a drill in the run folder. Times are those of the control node, in seconds since 1970."""

from __future__ import annotations

import hashlib
import time
from typing import Any, Generic, TypeVar

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import DrillIntent, Intent
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.known import stored_intents
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder

#: The timer on a switch or a host ends a fault at the latest so long after the drill should have.
TIMER_EXTRA_SECONDS = 60
STARTED, MADE, ENDED, RESTORED, RESULT = "started", "made", "ended", "restored", "result"


StepT = TypeVar("StepT")


class Record(Generic[StepT]):
    """The steps of one drill and their events, each in a file of its own. PART: keeps the drills of one run apart."""

    PART = ""
    steps: list[StepT]

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder
        self.intents: dict[str, Intent] = stored_intents(folder)

    @property
    def settings(self) -> DrillIntent:
        return next(iter(self.intents.values()))["drill"]

    def step(self, number: int) -> StepT:
        """Return a step by its number, from 1. Raises ParseError."""
        if not 1 <= number <= len(self.steps):
            raise ParseError(f"The drill has no step {number}; it has {len(self.steps)}.")
        return self.steps[number - 1]

    def note(self, number: int, what: str, host: str, **data: Any) -> None:
        """Record an event of a step."""
        self.folder.write_json(self._file(number, what, host), {"at": time.time(), **data})

    def noted(self, number: int, what: str, host: str) -> dict[str, Any] | None:
        found: dict[str, Any] | None = self.folder.read_if_there(self._file(number, what, host))
        return found

    def _file(self, number: int, what: str, host: str) -> str:
        return self.folder.host_file(f"drill/{self.PART}{number}/{what}", host)

    def token(self, number: int) -> str:
        """Return what marks the packets and the timer of a step, 16 hexadecimal digits, other ones in each drill. No secret."""
        return hashlib.sha256(f"{self.folder.path.name} {self.PART}{number}".encode()).hexdigest()[:16]
