# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where a line of NCCL's log comes from (src/debug.cc): "host:pid:thread [device] NCCL INFO …", whatever a launcher puts before it."""

from __future__ import annotations

import re
from dataclasses import dataclass

INFO = "NCCL INFO "
WARN = "NCCL WARN "
#: Newer versions put a time before it, and between it and a warning the place in the source, with a function since 2.29.
_ORIGIN = re.compile(
    r"(?<![A-Za-z0-9_.])([A-Za-z0-9][A-Za-z0-9_.-]{0,253}):([0-9]{1,10}):([0-9]{1,10}) (?:\[(-?[0-9]{1,5})\])?"
    r"(?: ([^\s:]{1,200}):([0-9]{1,7})(?: \((.{0,200})\))?)?\s*$"
)
#: The same where a row of nccl-tests has begun on the line: its last number stands before the host's name without a blank.
_GLUED = re.compile(r"(?<=\s)-?[0-9]+(?=[A-Za-z][A-Za-z0-9_.-]*:[0-9]+:[0-9]+ \[)")


@dataclass(frozen=True)
class Origin:
    """host: without its domain. file, line, function: where in NCCL's source, of a warning. What is not told is None."""

    host: str | None
    pid: int | None
    device: int | None = None
    file: str | None = None
    line: int | None = None
    function: str | None = None


def origin(head: str) -> Origin:
    """Read what stands before "NCCL INFO" or "NCCL WARN" on a line."""
    found = _ORIGIN.search(_GLUED.sub(" ", head) if " " in head[:40] else head)
    if found is None:
        return Origin(None, None)
    host, pid, _thread, device, file, line, function = found.groups()
    place = None if line is None else int(line)
    return Origin(host, int(pid), None if device is None else int(device), file, place, function)


def before_log(line: str) -> str | None:
    """What stands on a line before NCCL's log begins, None on a line without log: often a row that nccl-tests had begun."""
    at = max(line.find(INFO), line.find(WARN))
    if at < 0:
        return None
    head = line[:at]
    glued = _GLUED.search(head)
    if glued is not None:
        return head[: glued.end()]
    found = _ORIGIN.search(head)
    return head if found is None else head[: found.start()]
