# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The archive of MLNX_OFED: whether it is one, of the right version, and whether there is room for it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.rdma.cluster.plugins.module_utils._archive import Contents, contents_of, read_members
from ansible_collections.rdma.cluster.plugins.module_utils._archive_members import member_name
from ansible_collections.rdma.cluster.plugins.module_utils._errors import ApplyError

INSTALLER = "mlnxofedinstall"
#: What the build of the modules needs besides the unpacked archive.
BUILD_BYTES = 2 * 1024**3
# MLNX_OFED_LINUX-24.10-1.1.4.0-ubuntu22.04-x86_64
_NAME = re.compile(r"MLNX_OFED(?:_LINUX)?-([0-9]+\.[0-9]+-[0-9]+(?:\.[0-9]+)*)(?:-.*)?", re.ASCII)


@dataclass(frozen=True)
class Space:
    """Bytes that root may use there, and which filesystem it is."""

    free_bytes: int
    filesystem: int


def inspect_archive(archive: Path, version: str) -> Contents:
    """Look through an archive, of which nothing is unpacked yet. version: the one that it shall have ("24.10-1.1.4.0").

    Raises ApplyError if it is no tar, has a member that could reach outside of its own folder or get rights, has not just one top
    folder with the installer, or says by its name that it is another version.
    """
    members = read_members(archive, "MLNX_OFED's .tgz")
    contents = contents_of(archive, members)
    top = contents.top
    if not any(member_name(member) == f"{top}/{INSTALLER}" and member.isreg() for member in members):
        raise ApplyError(f"{archive} has no {top}/{INSTALLER}: it is not the archive of MLNX_OFED's installer")
    named = _NAME.fullmatch(top)
    if named and named[1] != version:
        raise ApplyError(f"{archive} is MLNX_OFED {named[1]} by its folder {top}, expected {version}")
    return contents


def read_space(path: Path) -> Space:
    """The filesystem that a folder is on, or will be once it is made."""
    there = next(each for each in (path, *path.parents) if each.exists())
    status = os.statvfs(there)
    return Space(status.f_bavail * status.f_frsize, there.stat().st_dev)


def check_space(contents: Contents, folder: Path, tmpdir: Path, read: Callable[[Path], Space] = read_space) -> None:
    """Raise ApplyError unless there is room for what is unpacked (a tenth more than its files have) and for the build."""
    unpacked = contents.size_bytes * 11 // 10
    here, there = read(folder), read(tmpdir)
    if here.filesystem == there.filesystem:
        wishes = [(folder, here, unpacked + BUILD_BYTES, "to unpack the archive and to build in")]
    else:
        wishes = [(folder, here, unpacked, "to unpack the archive"), (tmpdir, there, BUILD_BYTES, "to build in")]
    short = [
        f"{path} has {space.free_bytes / 2**20:.0f} MiB free, expected {need / 2**20:.0f} MiB {what}"
        for path, space, need, what in wishes
        if space.free_bytes < need
    ]
    if short:
        raise ApplyError(f"there is not enough room: {'; '.join(short)}. Make room there, or set driver_tmpdir to a folder that has it.")
