# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the main memory of a host: available memory, and its uses (proc_meminfo(5))."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Runner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot

MEMINFO = "/proc/meminfo"
_LINE = re.compile(r"([A-Za-z0-9_()]{1,64}):[ \t]+([0-9]{1,18})(?: kB)?[ \t]*", re.ASCII)
_KIB = 1024


@dataclass(frozen=True)
class Memory:
    """available_bytes: available to programs without swapping, None if the kernel does not report it.

    shared_bytes: shared memory and tmpfs, /dev/shm among them.

    huge_bytes: reserved by huge pages of all sizes, used or not; huge_free_bytes: unused ones of the default size.
    """

    total_bytes: int
    available_bytes: int | None
    shared_bytes: int = 0
    huge_bytes: int = 0
    huge_free_bytes: int = 0


def parse_meminfo(text: str) -> Memory:
    """Parse /proc/meminfo. MemAvailable exists since Linux 3.14. Raises ParseError if it has no MemTotal."""
    lines = [_LINE.fullmatch(line) for line in text.splitlines()]
    found = {line[1]: int(line[2]) for line in lines if line is not None}
    if "MemTotal" not in found:
        raise ParseError(f"no MemTotal in the memory of a host: {quoted(text)}, expected a line 'MemTotal: 16318480 kB'")
    page_bytes = found.get("Hugepagesize", 0) * _KIB
    return Memory(
        total_bytes=found["MemTotal"] * _KIB,
        available_bytes=found["MemAvailable"] * _KIB if "MemAvailable" in found else None,
        shared_bytes=found.get("Shmem", 0) * _KIB,
        # Hugetlb exists since Linux 4.20; before it, only the default size is known.
        huge_bytes=found["Hugetlb"] * _KIB if "Hugetlb" in found else found.get("HugePages_Total", 0) * page_bytes,
        huge_free_bytes=found.get("HugePages_Free", 0) * page_bytes,
    )


def read_memory(sys: SysRoot) -> Memory | None:
    """Return the memory of a host; None if /proc/meminfo is missing or unreadable."""
    try:
        return sys.value(MEMINFO, parse_meminfo)
    except OSError:
        return None


PATHS = ("/", "/boot", "/var", "/dev/shm")  # noqa: S108 - shared memory


@dataclass(frozen=True)
class Filesystem:
    """The file system of a path, its own or that of a parent folder. free_bytes, free_inodes: without the reserve for root.

    inodes: 0 on a file system that does not limit them.
    """

    free_bytes: int
    size_bytes: int
    free_inodes: int = 0
    inodes: int = 0


def read_filesystems(sys: SysRoot, runner: Runner | None, paths: Sequence[str] = PATHS) -> dict[str, Filesystem]:
    """Return the file systems of the existing paths on the running system; none for a captured tree: it is on another host's disk."""
    if runner is None:
        return {}
    spaces = {path: sys.space(path) for path in paths}
    return {path: Filesystem(*space) for path, space in spaces.items() if space is not None}
