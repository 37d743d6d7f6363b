# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The memory that running services may lock, read where the kernel keeps it."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._host.limits import Memlock, RunningService, read_running_services
from tests.unit.builders.limits import LIMITED, limits
from tests.unit.builders.trees import write_tree

SLICE = "/sys/fs/cgroup/system.slice"
TREE = rf"""
    {SLICE}/ssh.service/cgroup.procs: 700
    {SLICE}/containerd.service/cgroup.procs: 655\n812\n990
    {SLICE}/slurmd.service/cgroup.procs: 901
    {SLICE}/cron.service/cgroup.procs: 500
    /proc/700/comm: sshd
    /proc/655/comm: containerd-shim
    /proc/812/comm: containerd
    /proc/990/comm: containerd
    /proc/901/comm: slurmd
    /proc/500/comm: cron
"""


def machine(root: Path) -> SysRoot:
    write_tree(root, TREE)
    for pid, text in (("700", LIMITED), ("655", LIMITED), ("812", limits("unlimited", "unlimited")), ("990", LIMITED)):
        (root / f"proc/{pid}/limits").write_text(text)
    return SysRoot(str(root))


def test_the_main_process_of_each_counts(tmp_path: Path) -> None:
    # slurmd has ended between its group and its limits; a shim is not containerd.
    assert read_running_services(machine(tmp_path)) == {
        "ssh.service": RunningService(700, Memlock(unlimited=False, bytes=8388608)),
        "containerd.service": RunningService(812, Memlock(unlimited=True, bytes=None)),
    }


@pytest.mark.parametrize("version", ["/sys/fs/cgroup/systemd", "/sys/fs/cgroup/unified"])
def test_the_older_places_of_control_groups(tmp_path: Path, version: str) -> None:
    write_tree(tmp_path, f"{version}/system.slice/sshd.service/cgroup.procs: 700\n/proc/700/comm: sshd")
    (tmp_path / "proc/700/limits").write_text(LIMITED)
    assert list(read_running_services(SysRoot(str(tmp_path)))) == ["sshd.service"]


def test_a_host_without_any_has_none(tmp_path: Path) -> None:
    assert read_running_services(SysRoot(str(tmp_path))) == {}


class Ending(SysRoot):
    """A stand-in for /proc of a process that ends while it is read (ESRCH), or that may not be read (EPERM)."""

    def __init__(self, path: str, error: OSError) -> None:
        super().__init__(path)
        self._error = error

    def read(self, path: str) -> str | None:
        if path == "/proc/812/limits":
            raise self._error
        return super().read(path)


@pytest.mark.parametrize("code", [errno.ESRCH, errno.EPERM])
def test_a_process_that_ends_meanwhile_or_may_not_be_read_is_left_out(tmp_path: Path, code: int) -> None:
    machine(tmp_path)
    found = read_running_services(Ending(str(tmp_path), OSError(code, "no limits")))
    # The next process of containerd counts.
    assert found["containerd.service"] == RunningService(990, Memlock(unlimited=False, bytes=8388608))
