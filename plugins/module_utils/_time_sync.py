# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether the kernel counts its clock as kept in step by chrony, ntpd, timesyncd or phc2sys (B79): adjtimex(2), read only."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from ansible_collections.rdma.cluster.plugins.module_utils._command import Runner

# linux/timex.h
STA_UNSYNC = 0x0040


class Timex(ctypes.Structure):
    """struct timex as far as its status, in the C library's types; the rest is room for what the kernel writes behind it.

    modes = 0 asks and sets nothing.
    """

    _fields_ = (
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long),
        ("status", ctypes.c_int),
        ("rest", ctypes.c_char * 512),
    )


def clock_status() -> int | None:
    """The status bits of this system's clock, or None where it cannot be asked (no such call, or forbidden in a container)."""
    timex = Timex()
    try:
        result: int = ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(timex))
    except (OSError, AttributeError):
        return None
    return timex.status if result >= 0 else None


def is_synchronised(status: int) -> bool:
    """Whether a status of adjtimex(2) is that of a clock in step; without corrections the kernel itself sets the bit after some hours."""
    return not status & STA_UNSYNC


def read_synchronised(runner: Runner | None, ask: Callable[[], int | None] = clock_status) -> bool | None:
    """Of the running system; None for a tree that was captured, which has no clock. No process is started."""
    status = ask() if runner is not None else None
    return None if status is None else is_synchronised(status)
