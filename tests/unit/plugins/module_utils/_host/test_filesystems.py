# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Room on the filesystems that matter."""

from __future__ import annotations

import os
from pathlib import Path

from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._host.memory import Filesystem, read_filesystems
from tests.unit.builders.fakes import FakeRunner


class Disks(SysRoot):
    """A host with two filesystems and no /boot."""

    def space(self, path: str) -> tuple[int, int, int, int] | None:
        return {"/": (1000, 4000, 7, 9), "/var": (500, 2000, 0, 0)}.get(path)


def test_of_the_paths_that_are_there() -> None:
    assert read_filesystems(Disks(), FakeRunner([])) == {"/": Filesystem(1000, 4000, 7, 9), "/var": Filesystem(500, 2000)}


def test_a_tree_is_on_another_hosts_disk(tmp_path: Path) -> None:
    assert read_filesystems(SysRoot(str(tmp_path)), None) == {}


def test_the_running_system() -> None:
    found = read_filesystems(SysRoot(), FakeRunner([]), ["/", "/nowhere"])
    assert list(found) == ["/"]
    status = os.statvfs("/")
    assert found["/"].size_bytes == status.f_blocks * status.f_frsize
    assert 0 <= found["/"].free_bytes <= found["/"].size_bytes
