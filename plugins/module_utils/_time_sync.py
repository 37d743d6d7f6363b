# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether the kernel counts its clock as kept in step by chrony, ntpd, timesyncd or phc2sys (B79): adjtimex(2), read only.

And which NICs have a clock of their own that stamps packets, which linuxptp could follow; chrony is what the collection sets up.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._command import Runner
from ansible_collections.rdma.cluster.plugins.module_utils._files import ManagedFile
from ansible_collections.rdma.cluster.plugins.module_utils._sysroot import SysRoot

# linux/timex.h
STA_UNSYNC = 0x0040
#: A folder of chrony's own on Debian and Ubuntu (sourcedir of chrony.conf(5), chrony 4.0).
SOURCES_FILE = "/etc/chrony/sources.d/rdma-cluster.sources"


CLOCKSOURCE = "/sys/devices/system/clocksource/clocksource0"


@dataclass(frozen=True)
class ClockSource:
    """The counter that the kernel reads the time from, and those that it could use. Programs count CPU cycles by the tsc of an x86 CPU."""

    current: str
    available: list[str]


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


def time_files(servers: Sequence[str]) -> list[ManagedFile]:
    """chrony's file of these servers; none: that it shall go. Servers that the distribution names stay where they are."""
    lines = "".join(f"server {name} iburst\n" for name in servers)
    return [ManagedFile(SOURCES_FILE, f"# Managed by rdma.cluster.\n{lines}" if servers else None)]


def read_clocksource(sys: SysRoot) -> ClockSource | None:
    """The clock source of the kernel (drivers/base, kernel/time/clocksource.c); None if its file is not there or not readable."""
    try:
        current, available = (sys.text(f"{CLOCKSOURCE}/{name}_clocksource") for name in ("current", "available"))
    except OSError:
        return None
    return None if current is None else ClockSource(current, (available or "").split())


def read_hardware_clocks(sys: SysRoot) -> dict[str, str]:
    """Interface → the clock of its NIC ("ptp0"): drivers put it below the device (drivers/ptp/ptp_clock.c). No process is started."""
    found = {name: sys.list_dir(f"/sys/class/net/{name}/device/ptp") for name in sys.list_dir("/sys/class/net")}
    return {name: clocks[0] for name, clocks in found.items() if clocks}
