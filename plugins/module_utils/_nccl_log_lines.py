# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lines of a log kept once each, with how often and where they stand: bounded, however long the log is."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ansible_collections.rdma.cluster.plugins.module_utils._nccl_log_model import LogLine

#: What differs in each line and says nothing: pointers, and the ports of sockets.
_DIFFERS = re.compile(r"0x[0-9a-fA-F]+|<[0-9]+>")
_LONGEST = 500
_MOST_LINES = 500
_MOST_OF_A_PLACE = 20
_MOST_HOSTS = 16


@dataclass
class _Kept:
    text: str
    count: int = 0
    hosts: list[str] = field(default_factory=list)


class Lines:
    """Lines that differ in pointers and ports alone are one; of one place in the source _MOST_OF_A_PLACE are kept, the rest is counted."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str | None, int | None, str], _Kept] = {}
        self._of_place: dict[tuple[str | None, int], int] = {}
        self.left_out = 0

    def add(self, text: str, host: str | None, file: str | None = None, line: int | None = None) -> None:
        text = text.strip()[:_LONGEST]
        key = (file, line, _DIFFERS.sub("", text))
        kept = self._kept.get(key)
        if kept is None:
            if not self._room(file, line):
                self.left_out += 1
                return
            kept = self._kept[key] = _Kept(text)
        kept.count += 1
        if host is not None and len(kept.hosts) < _MOST_HOSTS and host not in kept.hosts:
            kept.hosts.append(host)

    def _room(self, file: str | None, line: int | None) -> bool:
        if len(self._kept) >= _MOST_LINES:
            return False
        if line is None:
            return True
        there = self._of_place[file, line] = self._of_place.get((file, line), 0) + 1
        return there <= _MOST_OF_A_PLACE

    def told(self) -> tuple[LogLine, ...]:
        """In the order in which they came first."""
        return tuple(LogLine(kept.text, file, line, kept.count, tuple(kept.hosts)) for (file, line, _text), kept in self._kept.items())
