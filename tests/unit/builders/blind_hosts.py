# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Complete healthy hosts, from which a test takes one source of facts away at a time.

A host is a tree of files, what its commands print, and what its drivers answer. They are stand-ins; what reads them is the real code.
"""

from __future__ import annotations

import errno
import os
import platform
import struct
import sys as system
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar
from unittest import mock

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import CommandError, Completed
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._facts import host_state
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Asked, gather, to_dict
from ansible_collections.rdma.cluster.plugins.module_utils._host.clock import STA_UNSYNC, read_synchronized
from ansible_collections.rdma.cluster.plugins.module_utils._net import ethtool_ioctl as ioctl
from ansible_collections.rdma.cluster.plugins.module_utils._net import kernel_routes
from ansible_collections.rdma.cluster.plugins.module_utils._net.session import VARIABLE
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.sources import (
    COMMAND,
    DRIVER,
    ENTRY,
    FILE,
    FOLDER,
    KERNEL,
    LINK,
    Source,
)

_T = TypeVar("_T")
MISSING, FORBIDDEN, UNREADABLE, GARBLED, TIMEOUT, FAILING = "missing", "forbidden", "unreadable", "garbled", "timeout", "failing"
#: How each kind of source can fail. A folder or a link has no text that could be garbled.
WAYS: dict[str, tuple[str, ...]] = {
    FILE: (MISSING, FORBIDDEN, UNREADABLE, GARBLED),
    FOLDER: (MISSING, FORBIDDEN, UNREADABLE),
    ENTRY: (MISSING, FORBIDDEN),
    LINK: (MISSING, UNREADABLE),
    COMMAND: (MISSING, TIMEOUT, FAILING, GARBLED),
    DRIVER: (MISSING, UNREADABLE),
    KERNEL: (UNREADABLE,),
}
#: Free and all bytes. /dev/shm is so small that the size of the memory decides whether it is enough.
SPACES_BYTES = {"/": (20 * 2**30, 40 * 2**30), "/dev/shm": (700 * 2**20, 768 * 2**20)}
GARBAGE = b"\xf3\x28\x00%%garbled%%\xff\n\x1b[0m 0x: ,=\n"
#: What the host's clock says.
NOW_SECONDS = 1_764_000_000.0
NOISE = "%%garbled%% \ufffd\n0x: ,=\n"
ERRNO = {FORBIDDEN: errno.EACCES, UNREADABLE: errno.EIO}


@dataclass(frozen=True)
class Damage:
    """A source that is taken away, with all that would replace it."""

    source: Source
    way: str

    def of(self, kind: str, name: str) -> bool:
        """Whether a file, folder, link, request or call is taken away."""
        return any(each.kind == kind and any(fnmatchcase(name, pattern) for pattern in each.names) for each in self.source.all)

    def above(self, path: str) -> bool:
        """Whether a path is in a folder that is taken away."""
        folders = [pattern for each in self.source.all if each.kind == FOLDER for pattern in each.names]
        return any(fnmatchcase(path, f"{pattern}/*") for pattern in folders)

    def of_command(self, argv: Sequence[str]) -> bool:
        return any(each.kind == COMMAND and _is_command(each.names, argv) for each in self.source.all)


def _is_command(words: Sequence[str], argv: Sequence[str]) -> bool:
    return len(argv) >= len(words) and all(fnmatchcase(word, pattern) for word, pattern in zip(argv, words, strict=False))


class HurtRoot(SysRoot):
    """A SysRoot of which something is taken away, and which notes what it was asked for and had."""

    def __init__(self, path: str, damage: Damage | None = None) -> None:
        super().__init__(path)
        self.damage = damage
        self.had: set[tuple[str, str]] = set()

    def _lacks(self, kind: str, path: str) -> bool:
        """True where it is absent. Raises OSError where it cannot be read."""
        damage = self.damage
        if damage is None:
            return False
        hit = damage.of(kind, path) or damage.of(ENTRY, path) or damage.above(path)
        if hit and damage.way in ERRNO:
            raise OSError(ERRNO[damage.way], os.strerror(ERRNO[damage.way]), path)
        return hit and damage.way == MISSING

    def _is_absent(self, path: str) -> bool:
        """Of whatever kind; to be seen without reading it, unless a folder above is closed."""
        damage = self.damage
        if damage is None or not (damage.above(path) or any(damage.of(kind, path) for kind in (FILE, FOLDER, ENTRY, LINK))):
            return False
        if damage.way in ERRNO and (damage.above(path) or damage.of(ENTRY, path)):
            raise OSError(ERRNO[damage.way], os.strerror(ERRNO[damage.way]), path)
        return damage.way == MISSING

    def _is_garbled(self, path: str) -> bool:
        return self.damage is not None and self.damage.way == GARBLED and self.damage.of(FILE, path)

    def _note(self, kind: str, path: str, found: object) -> None:
        if found:
            self.had.add((kind, path))

    def read_bytes(self, path: str) -> bytes | None:
        if self._lacks(FILE, path):
            return None
        data = super().read_bytes(path)
        self._note(FILE, path, data is not None)
        self._note(ENTRY, path, data is not None)
        return GARBAGE if data is not None and self._is_garbled(path) else data

    def use(self, path: str, use: Callable[[int], _T]) -> _T | None:
        if self._lacks(FILE, path):
            return None
        self._note(FILE, path, self.exists(path))
        if not self._is_garbled(path):
            return super().use(path, use)
        with tempfile.TemporaryFile() as garbled:
            garbled.write(GARBAGE)
            garbled.flush()
            return use(garbled.fileno())

    def read_regular(self, path: str, size_bytes: int) -> tuple[bytes, os.stat_result] | None:
        if self._lacks(FILE, path):
            return None
        found = super().read_regular(path, size_bytes)
        self._note(FILE, path, found)
        return (GARBAGE, found[1]) if found is not None and self._is_garbled(path) else found

    def read_files(self, path: str) -> dict[str, str]:
        if self._lacks(FOLDER, path):
            return {}
        texts = {name: text for name, text in super().read_files(path).items() if not self._lacks(FILE, f"{path}/{name}")}
        self._note(FOLDER, path, texts)
        for name in texts:
            self._note(FILE, f"{path}/{name}", True)
        garbage = GARBAGE.decode("utf-8", "replace")
        return {name: garbage if self._is_garbled(f"{path}/{name}") else text for name, text in texts.items()}

    def list_dir(self, path: str) -> list[str]:
        if self._lacks(FOLDER, path):
            return []
        names = super().list_dir(path)
        self._note(FOLDER, path, names)
        missing = self.damage is not None and self.damage.way == MISSING
        return [name for name in names if not (missing and self._is_absent(f"{path.rstrip('/')}/{name}"))]

    def exists(self, path: str) -> bool:
        if self._is_absent(path):
            return False
        found = super().exists(path)
        self._note(FILE, path, found)
        self._note(FOLDER, path, found)
        self._note(ENTRY, path, found)
        return found

    def mode(self, path: str) -> int | None:
        return None if self._is_absent(path) else super().mode(path)

    def owner(self, path: str) -> str | None:
        return None if self._is_absent(path) or super().owner(path) is None else "0:0"

    def link_target(self, path: str) -> str | None:
        if self._lacks(LINK, path):
            return None
        target = super().link_target(path)
        self._note(LINK, path, target)
        return target

    def space(self, path: str) -> tuple[int, int, int, int] | None:
        if self.damage is not None and self.damage.of(KERNEL, "statvfs"):
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        self._note(KERNEL, "statvfs", path == "/")
        return (*SPACES_BYTES.get(path, (10 * 2**30, 12 * 2**30)), 250_000, 262_144)


class TableRunner:
    """A Runner that answers by a table: words → standard output. One that is not in it is not installed, or a fault of the test."""

    def __init__(self, answers: Mapping[Sequence[str], str], lacks: Sequence[str], damage: Damage | None = None) -> None:
        self._answers = {tuple(words): text for words, text in answers.items()}
        self._lacks, self._damage = frozenset(lacks), damage
        self.had: set[tuple[str, ...]] = set()

    def run(self, argv: Sequence[str], *, timeout_seconds: float = 30.0) -> Completed:
        words = tuple(argv)
        known = [answer for answer in self._answers if _is_command(answer, words)]
        hit = self._damage is not None and self._damage.of_command(words)
        assert known or words[0] in self._lacks, f"nobody has said what {' '.join(words)} answers"
        if not known or (hit and self._damage is not None and self._damage.way == MISSING):
            raise CommandError(f"command not found: {words[0]} (wanted to run {' '.join(words)})")
        self.had.add(words)
        if not hit or self._damage is None:
            return Completed(words, 0, self._answers[max(known, key=len)], "")
        if self._damage.way == TIMEOUT:
            raise CommandError(f"{' '.join(words)} did not end within {timeout_seconds:g} seconds")
        return Completed(words, 1, "", "%%garbled%%: cannot\n") if self._damage.way == FAILING else Completed(words, 0, NOISE, "")


@dataclass(frozen=True)
class Drivers:
    """What the drivers of all interfaces answer to ioctls, as bytes of the kernel's structures."""

    damage: Damage | None = None
    had: set[str] = field(default_factory=set)

    def exchange(self, name: str, message: bytearray) -> None:
        if name.startswith("eno"):
            raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP), name)
        command = int.from_bytes(message[:4], system.byteorder)
        request = REQUESTS[command]
        if name.startswith("ib") and request == "module":
            raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP), name)
        if self.damage is not None and self.damage.of(DRIVER, request):
            number = errno.EOPNOTSUPP if self.damage.way == MISSING else errno.EIO
            raise OSError(number, os.strerror(number), name)
        self.had.add(request)
        answer = _answer(command, message)
        message[: len(answer)] = answer


REQUESTS = {
    ioctl.GDRVINFO: "drvinfo",
    ioctl.GRINGPARAM: "rings",
    ioctl.GPAUSEPARAM: "pause",
    ioctl.GSTRINGS: "statistics",
    ioctl.GSTATS: "statistics",
    ioctl.GSSET_INFO: "statistics",
    ioctl.GMODULEINFO: "module",
    ioctl.GLINKSETTINGS: "link",
    ioctl.GET_TS_INFO: "timestamping",
}
STATISTICS = ("rx_discards_phy", "link_down_events_phy", "rx_symbol_err_phy", "rx_prio3_bytes", "tx_prio3_bytes", "rx_prio3_pause")
_WORDS = 4


def _answer(command: int, message: bytes) -> bytes:
    if command == ioctl.GLINKSETTINGS:
        return _link_answer(message)
    names = b"".join(name.encode().ljust(32, b"\0") for name in STATISTICS)
    texts = [text.encode().ljust(32, b"\0") for text in ("mlx5_core", "24.10-1.1.4", "28.41.1000", "0000:3d:00.0", "")]
    return {
        ioctl.GDRVINFO: struct.pack("=I32s32s32s32s32s12s5I", command, *texts, b"", 0, len(STATISTICS), 0, 0, 0),
        ioctl.GRINGPARAM: struct.pack("=9I", command, 8192, 0, 0, 8192, 8192, 0, 0, 8192),
        ioctl.GPAUSEPARAM: struct.pack("=4I", command, 0, 0, 0),
        ioctl.GSSET_INFO: struct.pack("=2IQI", command, 0, 1 << ioctl.SS_STATS, len(STATISTICS)),
        ioctl.GSTRINGS: struct.pack("=3I", command, ioctl.SS_STATS, len(STATISTICS)) + names,
        ioctl.GSTATS: struct.pack(f"=2I{len(STATISTICS)}Q", command, len(STATISTICS), *(0 for _name in STATISTICS)),
        ioctl.GMODULEINFO: struct.pack("=11I", command, 4, 512, *(0,) * 8),
        ioctl.GET_TS_INFO: struct.pack("=2Ii8I", command, 0x5F, 0, 3, *(0,) * 3, 3, *(0,) * 3),
    }[command]


def _link_answer(message: bytes) -> bytes:
    """400 Gb/s by fibre; the first question is how long the masks are."""
    layout, command = "=2I7Bb4B28s", ioctl.GLINKSETTINGS
    if not struct.unpack_from(layout, message)[9]:
        return struct.pack(layout, command, 0, *(0,) * 7, -_WORDS, *(0,) * 4, b"")
    bit = ioctl.LINK_MODES_MBPS[400000][0][0]
    masks = struct.pack(f"={_WORDS}I", *((1 << bit) >> 32 * word & 0xFFFFFFFF for word in range(_WORDS)))
    return struct.pack(layout, command, 400000, 1, 3, 0, 1, 0, 0, 0, _WORDS, *(0,) * 4, b"") + masks


@dataclass(frozen=True)
class Host:
    """One healthy host. variables: its intent, as an inventory gives it; lacks: commands that it does not have."""

    name: str
    root: Path
    variables: Mapping[str, Any]
    answers: Mapping[Sequence[str], str]
    asked: Asked
    lacks: Sequence[str] = ()


@dataclass(frozen=True)
class Reading:
    """What was gathered, and what was read for it and had something: kind and name, a command by all its words."""

    facts: dict[str, Any]
    had: frozenset[tuple[str, str]]


def read(host: Host, damage: Damage | None = None) -> Reading:
    """The real gathering, between two looks at the control node's clock. Raises what it raises."""
    root, runner, drivers = HurtRoot(str(host.root), damage), TableRunner(host.answers, host.lacks, damage), Drivers(damage)
    with own_process(damage) as had:
        facts = to_dict(gather(root, runner, host.asked, ioctl.IoctlPort(drivers.exchange)))
    if facts["time"]["clock_seconds"] is not None:
        facts["time"]["between_seconds"] = [NOW_SECONDS - 0.5, NOW_SECONDS + 0.5]
    seen = {*root.had, *((COMMAND, " ".join(words)) for words in runner.had), *((DRIVER, name) for name in drivers.had), *had}
    return Reading(facts, frozenset(seen))


@contextmanager
def own_process(damage: Damage | None) -> Iterator[set[tuple[str, str]]]:
    """Our session and our kernel's clock."""
    has_status, has_session, has_clock = (damage is None or not damage.of(KERNEL, name) for name in ("adjtimex", VARIABLE, "clock_gettime"))
    environment = {VARIABLE: "192.0.2.9 50022 192.0.2.1 22"} if has_session else {}
    has_way = damage is None or not damage.of(KERNEL, "RTM_GETROUTE")

    def way(_address: str) -> str | None:
        if not has_way:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return "eno1"

    def default_routes6() -> list[tuple[str, str | None, int]]:
        way("::")
        return []

    def multipath_routes() -> list[tuple[str, list[str]]]:
        way("::")
        return [("10.1.0.0/16", ["ens1np0", "ens2np0"])]

    left = {name: value for name, value in os.environ.items() if name != VARIABLE}

    def synchronized(runner: Any) -> bool | None:
        return read_synchronized(runner, lambda: 0x2001 & ~STA_UNSYNC if has_status else None)

    with (
        mock.patch.dict(os.environ, {**left, **environment}, clear=True),
        mock.patch.object(host_state, "read_synchronized", synchronized),
        mock.patch.object(kernel_routes, "kernel_way", way),
        mock.patch.object(kernel_routes, "kernel_default_routes6", default_routes6),
        mock.patch.object(kernel_routes, "kernel_multipath_routes", multipath_routes),
        mock.patch.object(host_state, "time", SimpleNamespace(time=lambda: NOW_SECONDS if has_clock else None)),
        mock.patch.object(platform, "machine", return_value="x86_64" if damage is None or not damage.of(KERNEL, "uname") else ""),
    ):
        yield {(KERNEL, "adjtimex"), (KERNEL, VARIABLE), (KERNEL, "clock_gettime"), (KERNEL, "uname"), (KERNEL, "RTM_GETROUTE")}


def has_read(source: Source, had: frozenset[tuple[str, str]]) -> bool:
    """Whether a source, or what replaces it, was read and had something."""
    return any(_has_read(each, had) for each in source.all)


def _has_read(source: Source, had: frozenset[tuple[str, str]]) -> bool:
    if source.kind == COMMAND:
        return any(kind == COMMAND and _is_command(source.names, name.split(" ")) for kind, name in had)
    if source.kind != FOLDER:
        return any(kind == source.kind and any(fnmatchcase(name, pattern) for pattern in source.names) for kind, name in had)
    patterns = [pattern + below for pattern in source.names for below in ("", "/*")]
    return any(kind in (FILE, FOLDER, LINK) and any(fnmatchcase(name, pattern) for pattern in patterns) for kind, name in had)
