# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Times that a user gives, and times in words."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import clean
from ansible_collections.rdma.cluster.plugins.plugin_utils._explain.text import duration_words
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RUN_ID, RunFolder

_TIME = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[ T]+([0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?) *(\S.*)?)?")
_OFFSET = re.compile(r"([+-])([0-9]{2}):?([0-9]{2})?")
_EPOCH = re.compile(r"@([0-9]{1,11}(?:\.[0-9]{1,9})?)")
_DURATION = re.compile(r"([0-9]{1,6}) ?(s|seconds?|m|min|minutes?|h|hours?|d|days?)(?: ago)?")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
#: How far a time may be ahead of the control node's clock, which may be slow.
AHEAD_SECONDS = 60.0


class GivenTimeError(ValueError):
    """A given time cannot be used. The message has the variable, the value and the remedy."""


def time_or_run(name: str, text: str, now: float, folder: RunFolder) -> float:
    """Return a given time in seconds since 1970, as given_time does with durations; for the ID of a run, the end of that run.

    folder: of this run; the other run is beside it. Raises GivenTimeError also for a run that is missing or has not ended.
    """
    run = clean(str(text), 100).strip()
    if RUN_ID.fullmatch(run) is None:
        return given_time(name, text, now, durations=True)
    base = folder.path.parent
    if not (base / run).is_dir():
        raise GivenTimeError(f"{name} '{run}' is not a run in {base}. Use an ID of `ls {base}`, or a time.")
    summary: dict[str, Any] = folder.of_run(run, "summary.json") or {}
    ended = summary.get("ended")
    if isinstance(ended, bool) or not isinstance(ended, (int, float)) or not 0 < ended <= now:
        raise GivenTimeError(f"{name}: the end of run {run} is not known: it was killed, still runs, or has another format. Use a time.")
    return float(ended)


def given_time(name: str, text: str, now: float, *, durations: bool = False) -> float:
    """Return a given time in seconds since 1970. name: of the variable, for messages; now: the same by the control node's clock.

    Forms: "2026-11-23 14:05 UTC", "2026-11-23T14:05:30+01:00", "2026-11-23 14:05 Europe/Berlin", "@1795733900", and with durations a
    time before now: "2h". Raises GivenTimeError for any other form, a time without a time zone, and one in the future.
    """
    text = " ".join(clean(str(text), 100).split())
    duration = _DURATION.fullmatch(text) if durations else None
    if duration is not None:
        return now - int(duration[1]) * _SECONDS[duration[2][0]]
    epoch = _EPOCH.fullmatch(text)
    seconds = float(epoch[1]) if epoch is not None else _calendar(name, text, durations)
    if seconds > now + AHEAD_SECONDS:
        raise GivenTimeError(
            f"{name} '{text}' is {duration_words(seconds - now)} in the future: it is {time_words(now)} by the clock of the control node. "
            "Check the date and the time zone."
        )
    return seconds


def _calendar(name: str, text: str, durations: bool) -> float:
    found = _TIME.fullmatch(text)
    example = f"-e \"{name}='2026-11-23 14:05 UTC'\""
    if found is None:
        forms = "2026-11-23 14:05 UTC, 2026-11-23T14:05:30+01:00" + (", 2h or the ID of a run" if durations else "")
        raise GivenTimeError(f"{name} '{text}' is not a time. Use one of these forms: {forms}.")
    day, clock, zone = found.groups()
    if clock is None:
        raise GivenTimeError(f"{name} '{text}' has no time of day. Ansible splits a value at blanks: quote it twice, as in {example}.")
    if zone is None:
        raise GivenTimeError(
            f"{name} '{text}' has no time zone. Add one: '{day} {clock} UTC', '{day} {clock} +01:00' or '{day} {clock} Europe/Berlin'."
        )
    try:
        return datetime.fromisoformat(f"{day} {clock:0>5}").replace(tzinfo=_zone(name, text, zone)).timestamp()
    except (ValueError, OverflowError) as error:
        if isinstance(error, GivenTimeError):
            raise
        raise GivenTimeError(f"{name} '{text}' is not a time: {error}.") from error


def _zone(name: str, text: str, zone: str) -> timezone | ZoneInfo:
    if zone.upper() in ("UTC", "Z", "GMT"):
        return UTC
    offset = _OFFSET.fullmatch(zone)
    if offset is not None:
        minutes = int(offset[2]) * 60 + int(offset[3] or 0)
        return timezone(timedelta(minutes=-minutes if offset[1] == "-" else minutes))
    try:
        if "/" in zone:
            return ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        pass
    raise GivenTimeError(
        f"{name} '{text}': the time zone '{zone}' is not known or not unique. Use UTC, an offset such as +01:00, or a name such as "
        "Europe/Berlin."
    )


def time_words(seconds: float) -> str:
    """Return a time for people: "2026-11-23 14:05:00 UTC"."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def clock_words(seconds: float) -> str:
    """Return the time of day: "14:05:00.123"."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%H:%M:%S.%f")[:-3]
