# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The events of a drill in the run folder. Times are those of the control node, in seconds since 1970."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._host.load import Load, host_users
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder

#: The timer on a switch or a host ends a fault at the latest so long after the drill should have.
TIMER_EXTRA_SECONDS = 60
STARTED, MADE, ENDED, RESTORED, RESULT = "started", "made", "ended", "restored", "result"


class Record:
    """The events of the steps of one drill, each in a file of its own. PART: keeps the drills of one run apart."""

    PART = ""

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder

    def note(self, number: int, what: str, host: str, **data: Any) -> None:
        """Record an event of a step."""
        self.folder.write_json(self._file(number, what, host), {"at": time.time(), **data})

    def noted(self, number: int, what: str, host: str) -> dict[str, Any] | None:
        found: dict[str, Any] | None = self.folder.read_if_there(self._file(number, what, host))
        return found

    def _file(self, number: int, what: str, host: str) -> str:
        return self.folder.host_file(f"drill/{self.PART}{number}/{what}", host)

    def busy(self, hosts: Iterable[str]) -> list[str]:
        """Return the hosts in use, also by queue pairs, a sentence each. A host whose facts were not read in this run counts as in use."""
        users = {host: host_users(self._load(host)) for host in hosts}
        return [f"{host} is in use: {words}" for host, words in users.items() if words]

    def _load(self, host: str) -> Load | None:
        tree = self.folder.read_if_there(self.folder.host_file("facts", host))
        try:
            return from_dict(tree).load if tree else None
        except Exception:  # noqa: BLE001 (whatever a host's data does: it then counts as in use)
            return None

    def token(self, number: int) -> str:
        """Return what marks the packets and the timer of a step, 16 hexadecimal digits, other ones in each drill. No secret."""
        return hashlib.sha256(f"{self.folder.path.name} {self.PART}{number}".encode()).hexdigest()[:16]
