# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The record of a host: two files of events that rotate, the last known values, and the time of the last reading.

An event is a line of JSON. Besides its change (events.py) it has "at" (wall clock, seconds since 1970), "mono" (CLOCK_MONOTONIC of this
boot, in seconds), "boot" (boot_id), and "after": the "mono" of the reading before, None if that was in another boot or is not known. So the
change happened between "after" and "mono", whatever the wall clock did meanwhile.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._recorder.events import Event
from ansible_collections.rdma.cluster.plugins.module_utils._recorder.snapshot import LONGEST, MOST, Values

FOLDER = "/var/lib/rdma-cluster/recorder"
CURRENT, EARLIER, STATE_FILE, ALIVE = "events.jsonl", "events.1.jsonl", "state.json", "alive"
#: The size of both files together, by default and at least.
RING_BYTES, LEAST_BYTES = 16 * 2**20, 64 * 2**10
#: The longest line that is read, in bytes, and the length of the file ALIVE.
LONGEST_EVENT = 64 * 2**10
_ALIVE_BYTES = 128
_BOOT_LENGTH = 64


@dataclass(frozen=True)
class Moment:
    """One moment of a host. at: wall clock, seconds since 1970; mono: seconds of CLOCK_MONOTONIC in the boot boot."""

    at: float
    mono: float
    boot: str

    @property
    def offset(self) -> float:
        """The wall clock at the start of the boot, as the clock is now."""
        return self.at - self.mono

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of an event that state its time."""
        return {"at": round(self.at, 3), "mono": round(self.mono, 3), "boot": self.boot}


def moment_now(boot: str) -> Moment:
    """Return this moment by both clocks."""
    return Moment(time.time(), time.monotonic(), boot)


class Ring:
    """Writes a record. All methods leave whole lines behind, also on a full disk and after a kill."""

    def __init__(self, folder: str, size_bytes: int = RING_BYTES) -> None:
        self._folder, self._half = Path(folder), max(size_bytes, LEAST_BYTES) // 2

    def append(self, events: Iterable[Event]) -> None:
        """Add events in one write. Raises OSError if the disk refuses it; the file is then as before."""
        data = b"".join(json.dumps(event, separators=(",", ":"), sort_keys=True).encode() + b"\n" for event in events)
        if not data:
            return
        path = self._folder / CURRENT
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_size + len(data) > self._half:
                path.replace(self._folder / EARLIER)
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            size = os.lseek(file, 0, os.SEEK_END)
            if size and os.pread(file, 1, size - 1) != b"\n":
                # The writer was killed within a line, which readers skip.
                data = b"\n" + data
            try:
                _write(file, data)
                os.fdatasync(file)
            except OSError:
                os.ftruncate(file, size)
                raise
        finally:
            os.close(file)

    def save(self, values: Mapping[str, Values]) -> None:
        """Replace the last known values. Raises OSError; the earlier ones then stay."""
        new = self._folder / f".{STATE_FILE}"
        text = json.dumps(values, separators=(",", ":"))
        try:
            new.write_text(text, encoding="utf-8")
            new.replace(self._folder / STATE_FILE)
        except OSError:
            with contextlib.suppress(OSError):
                new.unlink()
            raise

    def load(self) -> dict[str, Values]:
        """Return the last known values; none if the file is missing or damaged."""
        try:
            return parse_state((self._folder / STATE_FILE).read_text(encoding="utf-8"))
        except (OSError, ParseError, UnicodeDecodeError):
            return {}

    def touch(self, moment: Moment) -> None:
        """Note that the recorder has read the host at this moment. The file keeps its size, so this also works on a full disk."""
        file = os.open(self._folder / ALIVE, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.pwrite(file, json.dumps(moment.to_dict()).encode().ljust(_ALIVE_BYTES - 1) + b"\n", 0)
        finally:
            os.close(file)

    def last_alive(self) -> Moment | None:
        """Return the moment of the last reading; None if it is not known."""
        return read_alive(self._folder)


def _write(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def read_alive(folder: Path) -> Moment | None:
    """Return the moment of the recorder's last reading; None if it is not known."""
    try:
        return parse_moment((folder / ALIVE).read_text(encoding="utf-8"))
    except (OSError, ParseError, UnicodeDecodeError):
        return None


def parse_moment(text: str) -> Moment:
    """Parse a moment: {"at": 1.0, "mono": 1.0, "boot": "…"}. Raises ParseError."""
    return _moment(_object(text), text)


def parse_state(text: str) -> dict[str, Values]:
    """Parse the last known values, kind → subject → value. Raises ParseError."""
    found = _object(text)
    if not all(isinstance(values, dict) and len(values) <= MOST and all(map(_is_value, values.items())) for values in found.values()):
        raise ParseError(f"not the values of a recorder: {quoted(text)}, expected an object of objects")
    return found


def _is_value(entry: tuple[str, Any]) -> bool:
    of, value = entry
    return len(of) <= LONGEST and isinstance(value, (str, int)) and not isinstance(value, bool)


def parse_event(line: str) -> Event:
    """Parse a line of the record. Raises ParseError for anything but an event of the form above."""
    event = _object(line)
    _moment(event, line)
    if event.get("after") is not None:
        _number(event["after"], line)
    texts = all(isinstance(event.get(name), str) and len(event[name]) <= 2 * LONGEST for name in ("kind", "of"))
    if not texts or not {"was", "now"} <= event.keys():
        raise ParseError(f"not an event of a recorder: {quoted(line)}")
    return event


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ParseError(f"not JSON: {quoted(text)}") from error
    if not isinstance(found, dict):
        raise ParseError(f"not an object of JSON: {quoted(text)}")
    return found


def _moment(tree: dict[str, Any], text: str) -> Moment:
    at, mono, boot = tree.get("at"), tree.get("mono"), tree.get("boot")
    if not isinstance(boot, str) or len(boot) > _BOOT_LENGTH:
        raise ParseError(f"no boot in {quoted(text)}, expected at, mono and boot")
    return Moment(_number(at, text), _number(mono, text), boot)


def _number(value: Any, text: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < 1e12:
        raise ParseError(f"{quoted(value)} is no time, in {quoted(text)}")
    return float(value)


def read_events(folder: str) -> tuple[list[Event], int]:
    """Return the events of a record in the order in which they were written, and how many lines are damaged. Raises OSError."""
    events: list[Event] = []
    damaged = 0
    for name in (EARLIER, CURRENT):
        try:
            stream = (Path(folder) / name).open(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            continue
        with stream:
            while line := stream.readline(LONGEST_EVENT):
                try:
                    if line.strip():
                        events.append(parse_event(line))
                except ParseError:
                    damaged += 1
    return events, damaged


def on_wall_clock(events: Sequence[Event], now: Moment) -> list[Event]:
    """Return the events with "time" and "earliest" (seconds since 1970), in the order of "time".

    Times of this boot are counted by CLOCK_MONOTONIC from now, so a step of the wall clock does not move them. Times of another boot use
    the wall clock at its last event. "earliest" is None if the reading before an event is not known.
    """
    offsets = {event["boot"]: event["at"] - event["mono"] for event in events}
    offsets[now.boot] = now.offset
    placed = []
    for event in events:
        offset, after = offsets[event["boot"]], event.get("after")
        placed.append({**event, "time": round(event["mono"] + offset, 3), "earliest": None if after is None else round(after + offset, 3)})
    return sorted(placed, key=lambda event: float(event["time"]))
