# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What in a tar archive could reach outside of its own folder, or get rights: told before anything of it is on the disk."""

from __future__ import annotations

import os
import posixpath
import tarfile
from collections.abc import Iterable, Iterator

LONGEST_NAME_BYTES = 4096
_SET_ID = 0o6000


def member_name(member: tarfile.TarInfo) -> str:
    """The name as it will be below the folder: "./a//b" is "a/b"."""
    return posixpath.normpath(member.name)


def wrong_members(members: Iterable[tarfile.TarInfo]) -> Iterator[str]:
    """Each member that is wrong, and why: "'etc/passwd' has an absolute name"."""
    kinds: dict[str, bytes] = {}
    links: set[str] = set()
    for member in members:
        name = member_name(member)
        reason = _reason(member)
        if reason is None and member.islnk() and kinds.get(posixpath.normpath(member.linkname)) not in tarfile.REGULAR_TYPES:
            # A hard link to a symbolic link is that link under another name, and what lies behind it leaves the folder.
            reason = f"is a hard link to {member.linkname[:200]!r}, which is no file before it in the archive"
        if reason is None and name in kinds and not (member.isdir() and kinds[name] == tarfile.DIRTYPE):
            reason = "is there twice"
        if reason is None and any(parent in links for parent in _parents(name)):
            reason = "lies behind a link"
        kinds[name] = member.type
        if member.issym():
            links.add(name)
        if reason is not None:
            yield f"{member.name[:200]!r} {reason}"


def _parents(name: str) -> Iterator[str]:
    while "/" in name:
        name = name.rpartition("/")[0]
        yield name


def _reason(member: tarfile.TarInfo) -> str | None:
    return _wrong_name(member) or _wrong_kind(member)


def _wrong_name(member: tarfile.TarInfo) -> str | None:
    if not member.name.isprintable() or not member.linkname.isprintable():
        return "has a name with characters that cannot be printed"
    if len(os.fsencode(member.name)) > LONGEST_NAME_BYTES or len(os.fsencode(member.linkname)) > LONGEST_NAME_BYTES:
        return f"has a name of more than {LONGEST_NAME_BYTES} bytes"
    if member.name.startswith("/"):
        return "has an absolute name"
    return "leaves the folder by '..'" if ".." in member.name.split("/") else None


def _wrong_kind(member: tarfile.TarInfo) -> str | None:
    if member.issym() or member.islnk():
        return f"is a link that leaves the folder: {member.linkname[:200]!r}" if _leaves(member) else None
    if not (member.isreg() or member.isdir()):
        return "is a device or another special file"
    return "has the setuid or setgid bit" if member.mode & _SET_ID else None


def _leaves(member: tarfile.TarInfo) -> bool:
    """Whether a link could lead out of the top folder. A hard link counts from the top of the archive.

    ".." is good at the beginning only: behind a name that is a link itself it would not be where it seems to be.
    """
    target = member.linkname.split("/")
    if member.linkname.startswith("/"):
        return True
    leading = next((place for place, part in enumerate(target) if part not in (".", "..")), len(target))
    if ".." in target[leading:] or (member.islnk() and ".." in target):
        return True
    start = "" if member.islnk() else posixpath.dirname(member_name(member))
    end = posixpath.normpath(posixpath.join(start, member.linkname))
    return end.partition("/")[0] != member_name(member).partition("/")[0]
