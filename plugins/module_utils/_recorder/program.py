# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The recorder of a host: `recorder.pyz [--config FILE]`, the program of rdma-recorder.service. It reads only, and writes its own folder.

It reads links, devices and modules every few seconds, and the rest once a minute. A message of the kernel on a link or an address
(rtnetlink(7)) makes it read at once. It ends by itself after some time, and its timer starts it again: so it also comes back
after a kill.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._net.ethtool_ioctl import IoctlPort
from ansible_collections.rdma.cluster.plugins.module_utils._recorder.events import BOOT, LOST, START, STEP, Event, differences
from ansible_collections.rdma.cluster.plugins.module_utils._recorder.ring import (
    FOLDER,
    LEAST_BYTES,
    RING_BYTES,
    Moment,
    Ring,
    moment_now,
)
from ansible_collections.rdma.cluster.plugins.module_utils._recorder.snapshot import Reader, Reading, Values

CONFIG = "/etc/rdma-cluster/recorder.json"
QUICK_SECONDS, SLOW_SECONDS, RUN_SECONDS = 2.0, 60.0, 86400.0
#: The wall clock was stepped if it moved by more than this against CLOCK_MONOTONIC.
STEP_SECONDS = 0.5
#: How long after an address changed the GID table is read: the kernel fills it a moment later. And the least time between two readings.
GID_DELAY_SECONDS, LEAST_SECONDS = 1.0, 0.5
#: The recorder was not running if it made no reading for this long.
GAP_SECONDS = 10.0
# linux/rtnetlink.h: RTMGRP_LINK, RTMGRP_IPV4_IFADDR, RTMGRP_IPV6_IFADDR; RTM_NEWADDR, RTM_DELADDR; struct nlmsghdr.
_GROUPS = 0x1 | 0x10 | 0x100
_ADDRESSES = (20, 21)
_HEADER = struct.Struct("=LHHLL")
_MOST_PENDING = 64


def parse_config(text: str) -> tuple[list[str], int]:
    """Parse the settings: {"interfaces": ["bond0"], "size_bytes": 16777216}; both may be missing. Raises ParseError."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ParseError(f"not JSON: {quoted(text)}") from error
    interfaces = found.get("interfaces", []) if isinstance(found, dict) else None
    size = found.get("size_bytes", RING_BYTES) if isinstance(found, dict) else None
    good = isinstance(interfaces, list) and all(isinstance(name, str) for name in interfaces)
    if not good or not isinstance(size, int) or not LEAST_BYTES <= size <= 2**30:
        raise ParseError(f"not the settings of a recorder: {quoted(text)}, expected interfaces and size_bytes of {LEAST_BYTES} or more")
    return list(interfaces or ()), size


class Recorder:
    """Compares readings with the last known values, and records the changes.

    The known values advance only when their change is on disk: after a full disk, the next reading finds the change again.
    """

    def __init__(self, reader: Reader, ring: Ring, boot: str) -> None:
        self._reader, self._ring, self._boot = reader, ring, boot
        self._values: dict[str, Values] = ring.load()
        self._seen: dict[str, float] = {}
        self._same_boot, self._unsaved = True, False
        self._pending: list[Event] = []
        self._offset: float | None = None
        self._full_since: tuple[Moment, str] | None = None

    def start(self, now: Moment) -> None:
        """Note a boot, or a gap since the last reading, and take over its values."""
        alive = self._ring.last_alive()
        if alive is None:
            self._own(START, None, "first start", now)
        elif alive.boot != now.boot:
            self._same_boot = False
            began = Moment(now.offset, 0.0, now.boot)
            self._own(BOOT, alive.boot, now.boot, began, last_at=round(alive.at, 3))
        else:
            self._offset = alive.offset
            self._seen = dict.fromkeys(self._values, alive.mono)
            if now.mono - alive.mono > GAP_SECONDS:
                self._own(START, None, f"not recorded for {now.mono - alive.mono:.0f} s", now, after=round(alive.mono, 3))

    def _own(self, kind: str, was: Any, now: Any, moment: Moment, after: float | None = None, **more: Any) -> None:
        if len(self._pending) < _MOST_PENDING:
            self._pending.append({"kind": kind, "of": "recorder", "was": was, "now": now, "after": after, **more, **moment.to_dict()})

    def record(self, readings: Sequence[Reading], now: Moment) -> int:
        """Record the changes of readings that were made now; returns their number."""
        self._step(now)
        events: list[Event] = []
        values = dict(self._values)
        for reading in readings:
            for event in differences(self._values, reading, same_boot=self._same_boot):
                after = self._seen.get(event["kind"])
                events.append({**event, "after": None if after is None else round(after, 3), **now.to_dict()})
            values.update(reading.values)
        try:
            self._ring.append([*self._pending, *self._lost(now), *events])
        except OSError as error:
            self._full_since = self._full_since or (now, error.strerror or str(error))
            return 0
        self._pending, self._full_since = [], None
        self._unsaved = self._unsaved or values != self._values
        self._values = values
        if self._unsaved:
            # Without space for them, a restart would only record the last changes once more.
            with contextlib.suppress(OSError):
                self._ring.save(values)
                self._unsaved = False
        for reading in readings:
            self._seen.update(dict.fromkeys(reading.values, now.mono))
        # Counters of an earlier boot are compared with none of this one.
        self._same_boot = self._same_boot or self._seen.keys() >= self._values.keys()
        return len(events)

    def alive(self, now: Moment) -> None:
        """Note that the host was read."""
        with contextlib.suppress(OSError):
            self._ring.touch(now)

    def _lost(self, now: Moment) -> list[Event]:
        """Return the event that says since when the disk refused to be written."""
        if self._full_since is None:
            return []
        since, why = self._full_since
        words = f"no event could be written for {now.mono - since.mono:.0f} s: {why}"
        return [{"kind": LOST, "of": "recorder", "was": None, "now": words, "after": round(since.mono, 3), **now.to_dict()}]

    def _step(self, now: Moment) -> None:
        if self._offset is not None and abs(now.offset - self._offset) > STEP_SECONDS:
            self._own(STEP, None, f"{now.offset - self._offset:+.3f} s", now)
        self._offset = now.offset

    def run(self, seconds: float, wake: Waker, quick_seconds: float = QUICK_SECONDS, slow_seconds: float = SLOW_SECONDS) -> None:
        """Record for some seconds."""
        self.start(moment_now(self._boot))
        end = time.monotonic() + seconds
        slow_due, gids_due = 0.0, float("inf")
        while True:
            begun = time.monotonic()
            changed = self.record([self._reader.quick()], moment_now(self._boot))
            if changed or begun >= slow_due:
                # Settings and rates follow a link or a driver.
                self.record([self._reader.slow()], moment_now(self._boot))
                slow_due, gids_due = begun + slow_seconds, float("inf")
            elif begun >= gids_due:
                self.record([self._reader.gids()], moment_now(self._boot))
                gids_due = float("inf")
            self.alive(moment_now(self._boot))
            if time.monotonic() >= end or wake.stopped:
                return
            time.sleep(min(LEAST_SECONDS, quick_seconds))
            wait = min(begun + quick_seconds, gids_due, end) - time.monotonic()
            if wake.wait(max(wait, 0.0)):
                gids_due = time.monotonic() + GID_DELAY_SECONDS


class Waker:
    """Waits for messages of the kernel on links and addresses, or for the time to pass; without rtnetlink only the latter."""

    def __init__(self, *, netlink: bool = True) -> None:
        self.stopped = False
        self._socket: socket.socket | None = None
        if netlink:
            with contextlib.suppress(OSError):
                self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 0)
                self._socket.bind((0, _GROUPS))
                self._socket.setblocking(False)

    def stop(self, _signal: int, _frame: FrameType | None) -> None:
        """End the run after the current reading; the handler of SIGTERM."""
        self.stopped = True

    def wait(self, seconds: float) -> bool:
        """Wait for a message, at most some seconds. Returns whether an address changed."""
        if self.stopped:
            return False
        if self._socket is None:
            time.sleep(seconds)
            return False
        with contextlib.suppress(InterruptedError):
            select.select([self._socket], [], [], seconds)
        addresses = False
        while True:
            try:
                data = self._socket.recv(65536)
            except BlockingIOError:
                return addresses
            except OSError:
                # ENOBUFS: messages were dropped.
                addresses = True
                continue
            addresses = addresses or any(kind in _ADDRESSES for kind in _kinds(data))


def _kinds(data: bytes) -> list[int]:
    found, at = [], 0
    while at + _HEADER.size <= len(data):
        length, kind, _flags, _sequence, _port = _HEADER.unpack_from(data, at)
        found.append(kind)
        if length < _HEADER.size:
            break
        at += (length + 3) & ~3
    return found


def main() -> int:
    """Record for a day; 1 if the settings or the folder cannot be used, or if another recorder runs."""
    parser = argparse.ArgumentParser(description="Record what changes on this host.")
    parser.add_argument("--config", default=CONFIG)
    parser.add_argument("--folder", default=FOLDER)
    parser.add_argument("--root", default="/", help="of /sys, /proc and /etc")
    parser.add_argument("--seconds", type=float, default=RUN_SECONDS)
    parser.add_argument("--quick-seconds", type=float, default=QUICK_SECONDS)
    parser.add_argument("--slow-seconds", type=float, default=SLOW_SECONDS)
    given = parser.parse_args()
    try:
        config = Path(given.config)
        interfaces, size = parse_config(config.read_text(encoding="utf-8") if config.exists() else "{}")
        Path(given.folder).mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(given.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        boot = SysRoot(given.root).text("/proc/sys/kernel/random/boot_id") or "unknown"
    except (ParseError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    wake = Waker(netlink=given.root == "/")
    signal.signal(signal.SIGTERM, wake.stop)
    statistics = IoctlPort().statistics if given.root == "/" else None
    recorder = Recorder(Reader(given.root, interfaces, statistics), Ring(given.folder, size), boot)
    recorder.run(given.seconds, wake, given.quick_seconds, given.slow_seconds)
    return 0
