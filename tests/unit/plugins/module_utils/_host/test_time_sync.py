# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether the clock is kept in step, asked of the kernel."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._host import clock
from ansible_collections.rdma.cluster.plugins.module_utils._host.clock import (
    Timex,
    clock_status,
    is_synchronized,
    read_hardware_clocks,
    read_synchronized,
)
from tests.unit.builders.fakes import FakeRunner
from tests.unit.builders.trees import write_tree


# linux/timex.h: STA_PLL 1, STA_UNSYNC 0x40, STA_NANO 0x2000.
@pytest.mark.parametrize(("status", "expected"), [(0x2001, True), (0x0001, True), (0, True), (0x40, False), (0x2041, False)])
def test_the_bit_of_a_clock_that_is_not_in_step(status: int, expected: bool) -> None:
    assert is_synchronized(status) is expected
    assert read_synchronized(FakeRunner([]), lambda: status) is expected


def test_a_tree_has_no_clock() -> None:
    assert read_synchronized(None, lambda: 0) is None


def test_a_clock_that_may_not_be_asked_is_not_known() -> None:
    assert read_synchronized(FakeRunner([]), lambda: None) is None


def test_this_systems_clock_is_asked_and_not_set() -> None:
    status = clock_status()
    assert status is None or 0 <= status < 0x10000
    assert read_synchronized(FakeRunner([])) in (None, True, False)


def test_where_the_kernel_writes_the_status() -> None:
    """struct timex of linux/timex.h: an int, four longs, an int; it has 208 bytes where a long has 8."""
    long_bytes = ctypes.sizeof(ctypes.c_long)
    assert Timex.status.offset == 5 * long_bytes
    assert ctypes.sizeof(Timex) >= 26 * long_bytes
    assert Timex().modes == 0


@pytest.mark.parametrize("error", [OSError, AttributeError])
def test_a_c_library_without_the_call(monkeypatch: pytest.MonkeyPatch, error: type[Exception]) -> None:
    def fail(*arguments: object, **keywords: object) -> None:
        raise error

    monkeypatch.setattr(clock.ctypes, "CDLL", fail)
    assert clock_status() is None


@pytest.mark.parametrize(("result", "expected"), [(-1, None), (0, 0x2001), (5, 0x2001)])
def test_the_status_counts_unless_the_call_failed(monkeypatch: pytest.MonkeyPatch, result: int, expected: int | None) -> None:
    class Library:
        def adjtimex(self, timex: Timex) -> int:
            given = timex._obj
            assert given.modes == 0
            given.status = 0x2001
            return result

    monkeypatch.setattr(clock.ctypes, "CDLL", lambda *arguments, **keywords: Library())
    assert clock_status() == expected


def test_nics_with_a_clock_of_their_own(tmp_path: Path) -> None:
    function = "/sys/devices/pci0000:3a/0000:3d:00.0"
    write_tree(
        tmp_path,
        f"""
        /sys/class/net/ens1 -> ../../devices/pci0000:3a/0000:3d:00.0/net/ens1
        {function}/net/ens1/device -> ../../../0000:3d:00.0
        {function}/ptp/ptp2/clock_name: mlx5_ptp
        /sys/class/net/lo/mtu: 65536
        """,
    )
    assert read_hardware_clocks(SysRoot(str(tmp_path))) == {"ens1": "ptp2"}
