# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reading /sys, /proc and /etc, of the running system or of a tree captured from another one.

A path is always the one on the host that is read ("/sys/class/net/eth0/mtu"), whatever folder contains the tree.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from typing import TypeVar

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError

_T = TypeVar("_T")
_ABSENT = (errno.ENOENT, errno.ENOTDIR)
# The attribute exists, but the driver has no value: reading carrier of an interface that is down (EINVAL),
# an unused gid_attrs entry (EINVAL), phys_port_name of a driver without one (EOPNOTSUPP).
_NO_VALUE = (errno.EINVAL, errno.ENODATA, errno.EOPNOTSUPP)
_MAX_LINKS = 40
# The size limit of a file of sysfs, and of each read of other files.
_PAGE, _CHUNK = 4096, 65536
_PLAIN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK


class SysRoot:
    """The files below one root. Symlinks are followed inside the root, as the kernel would after a chroot.

    An absolute link of a captured tree ("/sys/devices/...") starts at the root again and ".." stops at it, so
    that nothing of the machine that reads the capture gets into the result.
    Every method raises OSError, naming the path on the host, for any error but absence, even for permission denied.
    Directories are looked up only once: make a new SysRoot to read the system again.
    """

    def __init__(self, path: str = "/") -> None:
        real = os.path.realpath(path)
        self._root = "" if real == "/" else real
        self._directories: dict[str, str] = {}

    def read(self, path: str) -> str | None:
        """Return the whole text of a file, or None if it is absent or its driver has no value for it."""
        data = self.read_bytes(path)
        return None if data is None else data.decode("utf-8", "replace")

    def read_bytes(self, path: str) -> bytes | None:
        """Return all bytes of a file, or None if it is absent, a directory, or its driver has no value for it."""
        try:
            file = self._open(path)
            try:
                return b"".join(iter(lambda: os.read(file, _CHUNK), b""))
            finally:
                os.close(file)
        except IsADirectoryError:
            return None
        except OSError as exc:
            if exc.errno in _ABSENT or exc.errno in _NO_VALUE:
                return None
            raise _named(exc, path) from exc

    def use(self, path: str, use: Callable[[int], _T]) -> _T | None:
        """Return what use makes of the open file, which it need not read completely; None if it is absent or not a file."""
        try:
            file = self._open(path)
            try:
                return use(file)
            finally:
                os.close(file)
        except IsADirectoryError:
            return None
        except OSError as exc:
            if exc.errno in _ABSENT:
                return None
            raise _named(exc, path) from exc

    def read_regular(self, path: str, size_bytes: int) -> tuple[bytes, os.stat_result] | None:
        """Return the first bytes of a file that others may have put there, and its status; None if it is absent or not a regular file.

        Pipes and devices are not opened, so that nothing blocks. Links are followed: check the owner before you report the content.
        """
        try:
            host = self._host(path)
            if not stat.S_ISREG(os.stat(host).st_mode):
                return None
            file = os.open(host, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
            try:
                status = os.fstat(file)
                return (os.read(file, size_bytes), status) if stat.S_ISREG(status.st_mode) else None
            finally:
                os.close(file)
        except OSError as exc:
            if exc.errno in _ABSENT:
                return None
            raise _named(exc, path) from exc

    def mode(self, path: str) -> int | None:
        """Return the permission bits of what is at the path, links followed, or None if there is nothing."""
        try:
            return os.stat(self._host(path)).st_mode & 0o7777
        except OSError as exc:
            if exc.errno in _ABSENT:
                return None
            raise _named(exc, path) from exc

    def changed_seconds(self, path: str) -> float | None:
        """Return when a file, or the link to it, last changed (ctime, seconds since 1970); None if there is nothing."""
        try:
            link = os.lstat(self._root + self._locate(path, follow_last=False))
            return max(link.st_ctime, os.stat(self._host(path)).st_ctime)
        except OSError as exc:
            if exc.errno in _ABSENT:
                return None
            raise _named(exc, path) from exc

    def owner(self, path: str) -> str | None:
        """Return user and group of what is at the path by number ("0:0"), links followed, or None if there is nothing."""
        try:
            status = os.stat(self._host(path))
        except OSError as exc:
            if exc.errno in _ABSENT:
                return None
            raise _named(exc, path) from exc
        return f"{status.st_uid}:{status.st_gid}"

    def text(self, path: str) -> str | None:
        """Return the text of a file without white space and NUL bytes around it; None if that leaves nothing."""
        return (self.read(path) or "").strip(" \t\r\n\0") or None

    def value(self, path: str, parser: Callable[[str], _T]) -> _T | None:
        """Return what parser makes of text(path), or None if there is no text. A ParseError gets the path in front."""
        text = self.text(path)
        return None if text is None else named(path, parser, text)

    def list_dir(self, path: str) -> list[str]:
        """Return the sorted names in a directory; none if there is no such directory."""
        try:
            return sorted(os.listdir(self._host(path)))
        except OSError as exc:
            if exc.errno in _ABSENT:
                return []
            raise _named(exc, path) from exc

    def read_files(self, path: str) -> dict[str, str]:
        """Return the texts of the files directly in a directory; "" for those that have no value. Links are left out.

        The directory is looked up once: for tables of many small files (GIDs, counters).
        """
        try:
            directory = os.open(self._host(path), os.O_RDONLY | os.O_DIRECTORY)
        except OSError as exc:
            if exc.errno in _ABSENT:
                return {}
            raise _named(exc, path) from exc
        try:
            return dict(_texts(directory, path))
        finally:
            os.close(directory)

    def exists(self, path: str) -> bool:
        """Return whether there is something at the path, links followed."""
        try:
            os.stat(self._host(path))
        except OSError as exc:
            if exc.errno in _ABSENT:
                return False
            raise _named(exc, path) from exc
        return True

    def link_target(self, path: str) -> str | None:
        """Return the target of a symlink, unresolved ("../../bus/pci/drivers/mlx5_core"), or None if it is not a symlink.

        The target need not exist: a capture often has a link and not what it points to.
        """
        return self._read_link(self._locate(path, follow_last=False), path)

    def resolve(self, path: str) -> str | None:
        """Return the path with all links followed, inside the root ("/sys/devices/..."), or None if nothing is there.

        The last link may dangle, as in link_target.
        """
        if self.link_target(path) is None and not self.exists(path):
            return None
        return self._locate(path)

    def space(self, path: str) -> tuple[int, int, int, int] | None:
        """Return the size of the filesystem that a path is on: free bytes, bytes, free inodes, inodes; None if nothing is there.

        Free is the space for users, without the reserve for root.

        For a captured tree it is the filesystem of the machine that stores the tree.
        """
        try:
            status = os.statvfs(self._host(path))
        except OSError as exc:
            if exc.errno in _ABSENT:
                return None
            raise _named(exc, path) from exc
        return status.f_bavail * status.f_frsize, status.f_blocks * status.f_frsize, status.f_favail, status.f_files

    def _open(self, path: str) -> int:
        """Return a descriptor of a file. Most are not links, so the last part is resolved only if it is one."""
        _check_name(path)
        if not self._root:
            return os.open(path, os.O_RDONLY)
        parent, name = os.path.split(path.rstrip("/"))
        try:
            return os.open(f"{self._root}{self._directory(parent, path)}/{name}", os.O_RDONLY | os.O_NOFOLLOW)
        except OSError as exc:
            if exc.errno != errno.ELOOP:
                raise
            return os.open(self._host(path), os.O_RDONLY)

    def _host(self, path: str) -> str:
        _check_name(path)
        return path if not self._root else self._root + self._locate(path)

    def _locate(self, path: str, *, follow_last: bool = True) -> str:
        parent, name = os.path.split(path.rstrip("/"))
        directory = self._directory(parent, path)
        if follow_last or name in (".", ".."):
            return self._walk([part for part in directory.split("/") if part], name, path)
        return f"{directory.rstrip('/')}/{name}"

    def _directory(self, parent: str, asked: str) -> str:
        """Return a directory with all links followed; it starts from the resolved path of its own parent."""
        if parent not in self._directories:
            above, name = os.path.split(parent)
            known = self._directories.get(above)
            done = [] if known is None else [part for part in known.split("/") if part]
            self._directories[parent] = self._walk(done, parent if known is None else name, asked)
        return self._directories[parent]

    def _walk(self, done: list[str], path: str, asked: str) -> str:
        """Append path to the resolved components, following links; asked is for the error message."""
        pending = path.split("/")[::-1]
        links = 0
        while pending:
            part = pending.pop()
            if part in ("", "."):
                continue
            if part == "..":
                done = done[:-1]
                continue
            here = "/" + "/".join([*done, part])
            target = self._read_link(here, asked)
            if target is None:
                done = [*done, part]
                continue
            links += 1
            if links > _MAX_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), asked)
            if target.startswith("/"):
                done = []
            pending.extend(target.split("/")[::-1])
        return "/" + "/".join(done)

    def _read_link(self, path: str, asked: str) -> str | None:
        try:
            _check_name(path)
            return os.readlink(self._root + path)
        except OSError as exc:
            if exc.errno in _ABSENT or exc.errno == errno.EINVAL:
                return None
            raise _named(exc, asked) from exc


def named(path: str, parser: Callable[[str], _T], text: str) -> _T:
    """Return what parser makes of the text of a file. A ParseError gets the path in front."""
    try:
        return parser(text)
    except ParseError as exc:
        raise ParseError(f"{path}: {exc}") from exc


def _texts(directory: int, path: str) -> Iterator[tuple[str, str]]:
    """Yield names and texts of the files in an open directory; entries that are not files, or have vanished, are left out."""
    for name in os.listdir(directory):
        try:
            file = os.open(name, _PLAIN, dir_fd=directory)
            try:
                yield name, os.read(file, _PAGE).decode("utf-8", "replace")
            finally:
                os.close(file)
        except IsADirectoryError:
            continue
        except OSError as exc:
            if exc.errno in _NO_VALUE:
                yield name, ""
            elif exc.errno not in (*_ABSENT, errno.ELOOP, errno.ENXIO):
                raise _named(exc, f"{path}/{name}") from exc


def _check_name(path: str) -> None:
    """Raise FileNotFoundError for a path that cannot exist: it was made from a text with a NUL in it."""
    if "\0" in path:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)


def _named(exc: OSError, path: str) -> OSError:
    """Return the same error with the path on the host, which a failed read does not carry."""
    return OSError(exc.errno, os.strerror(exc.errno or 0), path)
