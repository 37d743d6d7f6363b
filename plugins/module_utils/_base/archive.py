# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A tar archive from outside: verified by checksum, inspected before any of it is on the disk, and unpacked as a whole."""

from __future__ import annotations

import hashlib
import os
import posixpath
import re
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from lzma import LZMAError
from pathlib import Path

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import first_of

LONGEST_NAME_BYTES = 4096
_SET_ID = 0o6000


def member_name(member: tarfile.TarInfo) -> str:
    """Return the name as it will be below the folder: "./a//b" is "a/b"."""
    return posixpath.normpath(member.name)


def wrong_members(members: Iterable[tarfile.TarInfo]) -> Iterator[str]:
    """Yield each rejected member and why: "'etc/passwd' has an absolute name"."""
    kinds: dict[str, bytes] = {}
    links: set[str] = set()
    for member in members:
        name = member_name(member)
        reason = _reason(member)
        if reason is None and member.islnk() and kinds.get(posixpath.normpath(member.linkname)) not in tarfile.REGULAR_TYPES:
            # A hard link to a symbolic link is that link under another name, and its target may be outside the folder.
            reason = f"is a hard link to {quoted(member.linkname)}, which is no file before it in the archive"
        if reason is None and name in kinds and not (member.isdir() and kinds[name] == tarfile.DIRTYPE):
            reason = "is there twice"
        if reason is None and any(parent in links for parent in _parents(name)):
            reason = "lies behind a link"
        kinds[name] = member.type
        if member.issym():
            links.add(name)
        if reason is not None:
            yield f"{quoted(member.name)} {reason}"


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
        return f"is a link that leaves the folder: {quoted(member.linkname)}" if _leaves(member) else None
    if not (member.isreg() or member.isdir()):
        return "is a device or another special file"
    return "has the setuid or setgid bit" if member.mode & _SET_ID else None


def _leaves(member: tarfile.TarInfo) -> bool:
    """Return whether a link could lead out of the top folder. A hard link counts from the top of the archive.

    ".." is allowed only at the beginning: after a name that is itself a link, it would lead to another place.
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


_BLOCK_BYTES = 1024 * 1024
_UNPACKING, _UNPACKED = ".unpacking-", "unpacked"
_COPY = ".own-"
_SHOWN = 5
#: All exceptions of tarfile and the decompressors for an invalid archive: they pass numbers of its headers to int() and utime().
UNREADABLE = (tarfile.TarError, EOFError, OSError, ArithmeticError, LookupError, ValueError, RecursionError, zlib.error, LZMAError)


@dataclass(frozen=True)
class Contents:
    """The content of an archive: its one top folder, the bytes of all its files, and the number of members."""

    top: str
    size_bytes: int
    members: int


def verify(file: Path, checksum: str, archive: Path) -> None:
    """Compare a copy of an archive with "sha256:<64 hex digits>". Raises ApplyError, which names the archive, if they differ."""
    wanted = checksum.partition(":")[2].lower()
    if not re.fullmatch(r"sha256:[0-9a-fA-F]{64}", checksum):
        raise ApplyError(f"the checksum of {archive} has to be sha256: and 64 hex digits, got {quoted(checksum)}")
    found = _sha256(file)
    if found != wanted:
        raise ApplyError(f"{archive}: its sha256 is {found}, expected {wanted}: the download is damaged, or it is another file")


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as handle:
        for block in iter(lambda: handle.read(_BLOCK_BYTES), b""):
            digest.update(block)
    return digest.hexdigest()


@contextmanager
def own_copy(archive: Path, checksum: str, folder: Path) -> Iterator[Path]:
    """Copy a file into a folder of ours (0700), verify the copy's checksum, and yield the copy, which is removed afterwards.

    A user with write access to the original's folder can exchange the file after the check. So the copy is checked and unpacked.
    It has the original's name, and an ApplyError about it names the original. Raises ApplyError if the file is a different one, or missing.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=_COPY) as own:
        copy = Path(own) / archive.name
        try:
            shutil.copyfile(archive, copy)
        except FileNotFoundError as exc:
            raise ApplyError(f"{archive} is not there, expected the archive with {checksum[:100]}") from exc
        verify(copy, checksum, archive)
        try:
            yield copy
        except ApplyError as exc:
            raise ApplyError(str(exc).replace(str(copy), str(archive))) from exc


def read_members(archive: Path, what: str) -> list[tarfile.TarInfo]:
    """Return all members of an archive, before anything is unpacked. what: the expected content ("MLNX_OFED's .tgz").

    Raises ApplyError if it is not a tar, or has a member that could reach outside its own folder or gain rights.
    """
    try:
        with tarfile.open(archive) as tar:
            members = list(tar)
    except UNREADABLE as exc:
        raise ApplyError(f"{archive} cannot be read as a tar archive ({exc}), expected {what}") from exc
    wrong = list(wrong_members(members))
    if wrong:
        raise ApplyError(f"{archive} is not unpacked: {first_of(wrong, _SHOWN, '; ')}")
    return members


def contents_of(archive: Path, members: Sequence[tarfile.TarInfo]) -> Contents:
    """Summarize the members of an archive. Raises ApplyError unless they have exactly one top folder."""
    tops = sorted({member_name(member).partition("/")[0] for member in members} - {"."})
    if len(tops) != 1:
        raise ApplyError(f"{archive} has {len(tops)} folders or files at its top ({', '.join(tops[:_SHOWN])}), expected just one folder")
    return Contents(tops[0], sum(member.size for member in members if member.isreg()), len(members))


def unpack(archive: Path, contents: Contents, folder: Path) -> Path:
    """Unpack an inspected archive, and return its top folder. Leftovers of an earlier run are removed first.

    The folder has another name until it is complete. Its files belong to the current user, and no other user may write them.
    """
    remove_unpacked(folder)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = Path(tempfile.mkdtemp(dir=folder, prefix=_UNPACKING))
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                _extract(tar, member, new)
        os.replace(new, folder / _UNPACKED)
    except UNREADABLE as exc:
        shutil.rmtree(new, ignore_errors=True)
        raise ApplyError(f"{archive} is not unpacked: {exc}") from exc
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        raise
    return folder / _UNPACKED / contents.top


def _extract(tar: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mode = (member.mode & 0o755) | (0o700 if member.isdir() else 0o400)
    # Not in the first releases of Python 3.9 to 3.11. wrong_members refuses the same members on every Python.
    if hasattr(tarfile, "data_filter"):
        tar.extract(member, folder, filter="data")
    else:
        tar.extract(member, folder)


def remove_unpacked(folder: Path) -> None:
    """Remove the unpacked folder, and what an interrupted run has left of it."""
    for path in (folder / _UNPACKED, *folder.glob(f"{_UNPACKING}*")):
        shutil.rmtree(path, ignore_errors=False) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
