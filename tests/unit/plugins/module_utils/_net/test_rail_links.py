# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Interfaces set up, and the look afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Completed
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_steps import ensure_up
from tests.unit.builders.fakes import FakeRunner
from tests.unit.builders.trees import write_tree

SET_UP = ["ip", "link", "set", "dev", "ens2", "up"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_tree(
        tmp_path,
        """
        /sys/class/net/ens1/flags: 0x1003
        /sys/class/net/ens1/carrier: 1
        /sys/class/net/ens2/flags: 0x1002
        /sys/class/net/ens2/carrier: 0
        """,
    )


class Kernel(FakeRunner):
    """A scripted `ip` with the effect of the real one on sysfs."""

    def __init__(self, root: Path) -> None:
        super().__init__([(SET_UP, 0, "", "")])
        self.root = root

    def run(self, argv, *, timeout_seconds: float = 30.0) -> Completed:  # type: ignore[no-untyped-def]
        write_tree(self.root, "/sys/class/net/ens2/flags: 0x1003\n/sys/class/net/ens2/carrier: 1")
        return super().run(argv, timeout_seconds=timeout_seconds)


def test_only_what_is_down_is_set_up(root: Path) -> None:
    runner = Kernel(root)
    down = ensure_up(["ens1", "ens2"], runner=runner, sys=SysRoot(str(root)), wait_seconds=5, check_mode=False)
    assert down == ["ens2"]
    assert ensure_up(["ens1", "ens2"], runner=FakeRunner([]), sys=SysRoot(str(root)), wait_seconds=5, check_mode=False) == []


def test_check_mode_runs_nothing(root: Path) -> None:
    runner = FakeRunner([])
    assert ensure_up(["ens2"], runner=runner, sys=SysRoot(str(root)), wait_seconds=5, check_mode=True) == ["ens2"]


def test_a_link_that_stays_down_is_an_error(root: Path) -> None:
    runner = FakeRunner([(SET_UP, 0, "", "")])
    with pytest.raises(ApplyError, match=r"ens2.*still down"):
        ensure_up(["ens2"], runner=runner, sys=SysRoot(str(root)), wait_seconds=5, check_mode=False)


def test_an_unknown_interface_is_an_error(root: Path) -> None:
    with pytest.raises(ApplyError, match="no interface ens9"):
        ensure_up(["ens9"], runner=FakeRunner([]), sys=SysRoot(str(root)), wait_seconds=5, check_mode=False)
