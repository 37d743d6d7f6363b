# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lines of a log kept once each, with their number and place: the size is limited for a log of any length."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ansible_collections.rdma.cluster.plugins.module_utils._nccl.log.model import LogLine

#: Varying parts of lines without meaning: pointers, and the ports of sockets.
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
    """The lines. Those that differ only in pointers and ports count as one; at most _MOST_OF_A_PLACE of a place in the source are kept."""

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

    def to_lines(self) -> tuple[LogLine, ...]:
        """Return the lines in the order of their first occurrence."""
        return tuple(LogLine(kept.text, file, line, kept.count, tuple(kept.hosts)) for (file, line, _text), kept in self._kept.items())


INFO = "NCCL INFO "
WARN = "NCCL WARN "
#: Newer versions put a time before it, and between it and a warning the place in the source, with a function since 2.29.
_ORIGIN = re.compile(
    r"(?<![A-Za-z0-9_.])([A-Za-z0-9][A-Za-z0-9_.-]{0,253}):([0-9]{1,10}):([0-9]{1,10}) (?:\[(-?[0-9]{1,5})\])?"
    r"(?: ([^\s:]{1,200}):([0-9]{1,7})(?: \((.{0,200})\))?)?\s*$"
)
#: The same on a line that a row of nccl-tests has started: its last number is before the host's name without a blank.
_GLUED = re.compile(r"(?<=\s)-?[0-9]+(?=[A-Za-z][A-Za-z0-9_.-]*:[0-9]+:[0-9]+ \[)")


@dataclass(frozen=True)
class Origin:
    """host: without its domain. file, line, function: where in NCCL's source, of a warning; thread: its ID. Unknown values are None."""

    host: str | None
    pid: int | None
    device: int | None = None
    file: str | None = None
    line: int | None = None
    function: str | None = None
    thread: int | None = None


def origin(head: str) -> Origin:
    """Parse the text before "NCCL INFO" or "NCCL WARN" on a line."""
    found = _ORIGIN.search(_GLUED.sub(" ", head) if " " in head[:40] else head)
    if found is None:
        return Origin(None, None)
    host, pid, thread, device, file, line, function = found.groups()
    place = None if line is None else int(line)
    return Origin(host, int(pid), None if device is None else int(device), file, place, function, int(thread))


def before_log(line: str) -> str | None:
    """Return the text on a line before NCCL's log starts, None on a line without log: often the start of a row of nccl-tests."""
    at = max(line.find(INFO), line.find(WARN))
    if at < 0:
        return None
    head = line[:at]
    glued = _GLUED.search(head)
    if glued is not None:
        return head[: glued.end()]
    found = _ORIGIN.search(head)
    return head if found is None else head[: found.start()]
