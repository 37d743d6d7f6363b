# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a host has recorded between two times, and how complete that is."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Runner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._recorder.events import BOOT, LOST, START, Event
from ansible_collections.rdma.cluster.plugins.module_utils._recorder.journal import read_journal
from ansible_collections.rdma.cluster.plugins.module_utils._recorder.ring import Moment, moment_now, on_wall_clock, read_alive, read_events

#: The most events of one host.
MOST_EVENTS = 5000
#: A recorder that has read nothing for this long does not run.
SILENT_SECONDS = 120.0
#: The form of a local time, as logs have it.
LOCAL_TIME = "%Y-%m-%d %H:%M:%S"


def local_seconds(text: str) -> float:
    """Return the time of a text in the time zone of this host: "2026-11-23 14:05:00" → seconds since 1970. Raises ParseError."""
    try:
        return time.mktime(time.strptime(text, LOCAL_TIME))
    except (ValueError, OverflowError) as error:
        raise ParseError(f"{quoted(text)} is no time, expected the form 2026-11-23 14:05:00") from error


def read_window(folder: str, since: float, until: float, now: Moment) -> dict[str, Any]:
    """Return "events" between two times of this host's clock (seconds since 1970), with "time" and "earliest", and what is missing.

    recorded: whether there is a record at all; gaps: [first, last] of each time within the window in which nothing was read;
    damaged: lines that cannot be read; cut: whether there were more than MOST_EVENTS.
    """
    if not Path(folder).is_dir():
        return {"recorded": False, "events": [], "gaps": [[since, until]], "damaged": 0, "cut": False}
    events, damaged = read_events(folder)
    placed = on_wall_clock(events, now)
    within = [event for event in placed if event["time"] >= since and (event["earliest"] or event["time"]) <= until]
    alive = read_alive(Path(folder))
    gaps = _gaps(placed, alive, now) if placed else [[since, now.at]]
    inside = [[max(first, since), min(last, until)] for first, last in gaps if last > since and first < until]
    cut = len(within) > MOST_EVENTS
    return {"recorded": True, "events": within[-MOST_EVENTS:], "gaps": inside, "damaged": damaged, "cut": cut}


def _gaps(events: Sequence[Event], alive: Moment | None, now: Moment) -> list[list[float]]:
    """Return the times in which the recorder did not run or could not write: before its first event, and as its own events say."""
    gaps = [[0.0, float(events[0]["time"])]]
    for event in events:
        if event["kind"] in (START, LOST) and event["earliest"] is not None:
            gaps.append([event["earliest"], event["time"]])
        if event["kind"] == BOOT:
            last_at = event.get("last_at")
            first = next((float(each["time"]) for each in events if each["boot"] == event["boot"] and each is not event), event["time"])
            gaps.append([float(last_at) if isinstance(last_at, (int, float)) else 0.0, first])
    last = float(events[-1]["time"])
    if alive is not None:
        last = max(last, alive.mono + now.offset if alive.boot == now.boot else alive.at)
    if now.at - last > SILENT_SECONDS:
        gaps.append([last, now.at])
    return gaps


def read_record(
    folder: str, runner: Runner | None, middle: float | str | None, around: tuple[float, float], *, now: Moment | None = None
) -> dict[str, Any]:
    """Return read_window, the "journal" unless runner is None, "now" by this host's clock, and "middle".

    middle: the time in question by this host's clock, in seconds since 1970 or as text in its time zone (local_seconds); None for now.
    around: how many seconds before and after it the window has. Raises ParseError and OSError.
    """
    now = now or moment_now(SysRoot().text("/proc/sys/kernel/random/boot_id") or "unknown")
    center = local_seconds(middle) if isinstance(middle, str) else now.at if middle is None else middle
    since, until = center - around[0], center + around[1]
    window = read_window(folder, since, until, now)
    journal = None if runner is None else read_journal(runner, since, until, center, now)
    return {**window, "journal": journal, "now": now.to_dict(), "middle": center, "since": since, "until": until}
