# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The journal of a host around a time (journalctl(1), systemd 236 and later): the kernel, and the services that RDMA and jobs need."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import CommandError, Runner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import clean
from ansible_collections.rdma.cluster.plugins.module_utils._recorder.ring import Moment

#: The services, by patterns of their units: subnet managers, Fabric Manager, clocks, Slurm.
SERVICES = ("opensm.service", "opensmd.service", "nvidia-fabricmanager.service", "chrony.service", "chronyd.service", "slurmd.service")
_FIELDS = "MESSAGE,SYSLOG_IDENTIFIER,_TRANSPORT,_SYSTEMD_UNIT,_BOOT_ID"
#: The most lines before and after the time, the longest text of a line, and the most text in all, in characters.
MOST_LINES, LONGEST_TEXT, MOST_TEXT = 2000, 400, 256 * 2**10
_USEC = 1e6


@dataclass(frozen=True)
class JournalLine:
    """A line of the journal. time: by the wall clock as it is now, seconds since 1970; source: "kernel", or the program's name."""

    time: float
    source: str
    text: str


def parse_journal(text: str, now: Moment) -> list[JournalLine]:
    """Parse lines of `journalctl --output=json`. Times of this boot are counted by the monotonic clock. Raises ParseError."""
    return [_line(line, now) for line in text.splitlines() if line.strip()]


def _line(line: str, now: Moment) -> JournalLine:
    try:
        found = json.loads(line)
        wall, mono = (int(found[name]) / _USEC for name in ("__REALTIME_TIMESTAMP", "__MONOTONIC_TIMESTAMP"))
        boot = found["_BOOT_ID"]
    except (ValueError, RecursionError, KeyError, TypeError, OverflowError) as error:
        raise ParseError(f"not a line of journalctl: {quoted(line)}, expected JSON with __REALTIME_TIMESTAMP and _BOOT_ID") from error
    at = now.offset + mono if boot == now.boot.replace("-", "") else wall
    source = "kernel" if found.get("_TRANSPORT") == "kernel" else _text(found.get("SYSLOG_IDENTIFIER"))
    return JournalLine(round(at, 3), clean(source, 60), clean(_text(found.get("MESSAGE")), LONGEST_TEXT))


def _text(value: Any) -> str:
    """Return a field. One that is not UTF-8 is a list of its bytes; one that is too long is null; one set twice is a list of texts."""
    if isinstance(value, list) and all(isinstance(byte, int) and 0 <= byte < 256 for byte in value):
        return bytes(value).decode("utf-8", "replace")
    if isinstance(value, list):
        return " ".join(str(each) for each in value)
    return "" if value is None else str(value)


def read_journal(runner: Runner, since: float, until: float, middle: float, now: Moment) -> dict[str, Any]:
    """Return "lines" between two times, "cut" (whether there were more), and "unread": why there are none, "" if they were read.

    since, until, middle: by the wall clock of the host, seconds since 1970. Before the middle the last lines are kept, after it too.
    """
    lines: list[JournalLine] = []
    cut = False
    for first, last in ((since, middle), (middle, until)):
        argv = ["journalctl", "--quiet", "--no-pager", "--output=json", f"--output-fields={_FIELDS}", f"--lines={MOST_LINES}"]
        argv += [f"--since=@{math.floor(first)}", f"--until=@{math.ceil(last)}", "_TRANSPORT=kernel", "+"]
        # opensm@GUID.service has an instance for each port, so that the programs' names are matched as well.
        argv += [*(f"_SYSTEMD_UNIT={unit}" for unit in SERVICES), "+", "SYSLOG_IDENTIFIER=opensm", "SYSLOG_IDENTIFIER=OpenSM"]
        try:
            done = runner.run(argv, timeout_seconds=60.0)
            if done.rc:
                return {"lines": [], "cut": False, "unread": clean(done.stderr.strip() or f"journalctl ends with {done.rc}", 300)}
            found = parse_journal(done.stdout, now)
        except (CommandError, ParseError) as error:
            return {"lines": [], "cut": False, "unread": clean(str(error), 300)}
        cut = cut or len(found) >= MOST_LINES
        lines += found
    kept, size = [], 0
    for line in sorted(dict.fromkeys(lines), key=lambda line: abs(line.time - middle)):
        size += len(line.text)
        if size > MOST_TEXT:
            cut = True
            break
        kept.append(line)
    return {"lines": [asdict(line) for line in sorted(kept, key=lambda line: line.time)], "cut": cut, "unread": ""}
