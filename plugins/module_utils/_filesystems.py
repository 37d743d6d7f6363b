# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How much room is left where packages, kernels and module builds are put, and in shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._command import Runner
from ansible_collections.rdma.cluster.plugins.module_utils._sysroot import SysRoot

PATHS = ("/", "/boot", "/var", "/dev/shm")  # noqa: S108 - shared memory


@dataclass(frozen=True)
class Filesystem:
    """The one that a path is on, its own or that of a folder above. free_bytes, free_inodes: without what is kept back for root.

    inodes: 0 on a file system that does not limit them.
    """

    free_bytes: int
    size_bytes: int
    free_inodes: int = 0
    inodes: int = 0


def read_filesystems(sys: SysRoot, runner: Runner | None, paths: Sequence[str] = PATHS) -> dict[str, Filesystem]:
    """Those of the paths that exist, of the running system; none for a tree that was captured: it lies on another host's disk."""
    if runner is None:
        return {}
    spaces = {path: sys.space(path) for path in paths}
    return {path: Filesystem(*space) for path, space in spaces.items() if space is not None}
