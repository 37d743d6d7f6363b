# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The results file of a host."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import stat
import threading
from pathlib import Path

from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.plan import SCHEMA
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.wire import JsonDict, whole_number


class Results:
    """The results file: one JSON object per line, written whole or not at all. Records that cannot be written are counted.

    To resume a sweep, the file is cut after its last record; good: (rail, round, test) of everything that need not be measured again.
    Raises OSError, ValueError.
    """

    def __init__(self, path: Path, sweep: str, resume: bool) -> None:
        self.good: set[tuple[str, int, str]] = set()
        self.records = 0
        self.lost = 0
        self.reason: OSError | None = None
        self._sweep = sweep
        self.resumed = resume
        self._lock = threading.Lock()
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        self._end = 0
        if stat.S_ISREG(os.fstat(self._file).st_mode):  # runners may share a device such as /dev/null
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as exc:
                raise ValueError(f"{path}: another runner writes to it") from exc
            if resume:
                self._take_up(path)
        self._cut()

    def _take_up(self, path: Path) -> None:
        for number, line in enumerate(path.read_bytes().splitlines(keepends=True)):
            try:
                record = _whole_record(line)
            except (ValueError, RecursionError) as exc:
                raise ValueError(f"{path}: line {number + 1} is no record of a sweep: {exc}") from exc
            if record is None or "finished" in record:
                break
            if record.get("sweep") != self._sweep or record.get("schema") != SCHEMA:
                raise ValueError(f"{path}: it holds results of sweep {record.get('sweep')}, not of {self._sweep}")
            self._end += len(line)
            self.records += 1
            if record["exit_code"] == 0 and record["error"] is None:
                self.good.add((str(record["rail"]), whole_number(record["round"]), str(record["test"])))

    def _cut(self) -> None:
        with contextlib.suppress(OSError):  # only a regular file can be cut, and needs it
            os.ftruncate(self._file, self._end)

    def write(self, record: JsonDict) -> None:
        """Append one line, at once."""
        line = json.dumps({"schema": SCHEMA, "sweep": self._sweep, **record}).encode() + b"\n"
        with self._lock:
            try:
                if os.write(self._file, line) != len(line):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            except OSError as exc:
                self.lost += 1
                self.reason = exc
                self._cut()
                return
            self._end += len(line)
            self.records += 1

    def close(self) -> None:
        """Close the file. Raises OSError, also if a record was not written."""
        os.close(self._file)
        if self.reason is not None:
            raise OSError(f"{self.lost} of {self.lost + self.records} lines of the results could not be written: {self.reason}")


def _whole_record(line: bytes) -> JsonDict | None:
    """Return the record in a line, None for a line that was cut off. Raises ValueError, RecursionError for an unreadable line."""
    try:
        record = json.loads(line) if line.endswith(b"\n") else None
    except (json.JSONDecodeError, UnicodeDecodeError):
        return None
    return (
        record
        if isinstance(record, dict) and ("finished" in record or {"rail", "round", "test", "exit_code", "error"} <= set(record))
        else None
    )
