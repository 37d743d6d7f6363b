# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse chrony's state: `chronyc -N -c -m tracking "sources -a"` (chronyc(1), 4.0 to 4.6), lines of values separated by commas.

The first line is that of tracking, 14 values: the source's id in hexadecimal and its name, stratum, time of the last update, remaining
correction of the clock in seconds, last and RMS offset, frequency, residual frequency, skew, root delay, root dispersion, update interval,
leap status. Each further line is a source: mode (^ server, = peer, # clock), state, name as configured (-N), … -a includes sources whose
name has no address yet.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import CommandError, Runner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._base.files import ManagedFile
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot

ASK = ("chronyc", "-N", "-c", "-m", "tracking", "sources -a")
#: chronyd's own, on Debian, Ubuntu and RHEL; chronyd removes it when it ends.
PID_FILE = "/run/chrony/chronyd.pid"
TRACKING_VALUES, SOURCE_VALUES = 14, 10
LEAPS = ("Normal", "Insert second", "Delete second", "Not synchronised")
MODES, STATES = "^=#", "*+-?x~"


@dataclass(frozen=True)
class Chrony:
    """source: the clock's reference, None without one; offset_seconds: how far the clock is ahead of it. sources: name → its state's mark.

    States: "*" selected, "+" combined with it, "-" not used, "?" not reached, "x" disagrees with most, "~" varies too much.
    """

    synchronized: bool
    source: str | None
    stratum: int | None
    offset_seconds: float | None
    sources: dict[str, str]


def parse_chrony(text: str) -> Chrony:
    """Parse the lines above. Raises ParseError with the line."""
    lines = [line.split(",") for line in text.splitlines() if line]
    tracking = lines[0] if lines else []
    if len(tracking) != TRACKING_VALUES or tracking[-1] not in LEAPS:
        raise ParseError(
            f"not chronyc's line of tracking: {quoted(','.join(tracking))}, expected 14 values, the last of {', '.join(LEAPS)}"
        )
    synchronized = tracking[-1] != LEAPS[-1]
    return Chrony(
        synchronized=synchronized,
        source=(tracking[1] or tracking[0]) if synchronized else None,
        stratum=int(_number(tracking[2], tracking)) if synchronized else None,
        # A negative correction slows a clock that is ahead.
        offset_seconds=0.0 - _number(tracking[4], tracking) if synchronized else None,
        sources=dict(_source(line) for line in lines[1:]),
    )


def _source(values: list[str]) -> tuple[str, str]:
    if len(values) != SOURCE_VALUES or values[0] not in tuple(MODES) or values[1] not in tuple(STATES):
        raise ParseError(f"not a source of chronyc: {quoted(','.join(values))}, expected 10 values like '^,*,ntp.example.com,2,6,…'")
    return values[2], values[1]


def _number(word: str, values: list[str]) -> float:
    try:
        number = float(word)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ParseError(f"not a number: {word!r} in {quoted(','.join(values))}")
    return number


def read_chrony(sys: SysRoot, runner: Runner | None) -> tuple[Chrony | None, str | None]:
    """Return chronyd's answer, or why there is none; both None if chronyd does not run: then no process is started."""
    if runner is None or not sys.exists(PID_FILE):
        return None, None
    try:
        done = runner.run(ASK, timeout_seconds=10.0)
        if done.rc == 0:
            return parse_chrony(done.stdout), None
    except (CommandError, ParseError) as error:
        return None, str(error)
    return None, f"`chronyc tracking` fails: {(done.stderr.strip() or done.stdout.strip())[-200:] or f'exit status {done.rc}'}"


# linux/timex.h
STA_UNSYNC = 0x0040
#: A folder of chrony's own on Debian and Ubuntu (sourcedir of chrony.conf(5), chrony 4.0).
SOURCES_FILE = "/etc/chrony/sources.d/rdma-cluster.sources"


CLOCKSOURCE = "/sys/devices/system/clocksource/clocksource0"


@dataclass(frozen=True)
class ClockSource:
    """The counter that the kernel reads the time from, and the available ones. Programs count CPU cycles with the tsc of an x86 CPU."""

    current: str
    available: list[str]


class Timex(ctypes.Structure):
    """struct timex up to its status, in the C library's types; the rest is space for the kernel's later fields.

    modes = 0 queries and sets nothing.
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
    """Return the status bits of this system's clock, or None if it cannot be queried (no such call, or forbidden in a container)."""
    timex = Timex()
    try:
        result: int = ctypes.CDLL(None).adjtimex(ctypes.byref(timex))
    except (OSError, AttributeError):
        return None
    return timex.status if result >= 0 else None


def is_synchronized(status: int) -> bool:
    """Return whether adjtimex(2) shows a synchronized clock. Without corrections the kernel sets the bit after some hours."""
    return not status & STA_UNSYNC


def read_synchronized(runner: Runner | None, ask: Callable[[], int | None] = clock_status) -> bool | None:
    """Return the state of the running system; None for a captured tree, which has no clock. No process is started."""
    status = ask() if runner is not None else None
    return None if status is None else is_synchronized(status)


def time_files(servers: Sequence[str]) -> list[ManagedFile]:
    """Return chrony's file of these servers; without servers, the file's removal. The distribution's servers stay unchanged."""
    lines = "".join(f"server {name} iburst\n" for name in servers)
    return [ManagedFile(SOURCES_FILE, f"# Managed by rdma.cluster.\n{lines}" if servers else None)]


def read_clocksource(sys: SysRoot) -> ClockSource | None:
    """Return the kernel's clock source (drivers/base, kernel/time/clocksource.c); None if its file is missing or unreadable."""
    try:
        current, available = (sys.text(f"{CLOCKSOURCE}/{name}_clocksource") for name in ("current", "available"))
    except OSError:
        return None
    return None if current is None else ClockSource(current, (available or "").split())


def read_hardware_clocks(sys: SysRoot) -> dict[str, str]:
    """Return interface → the clock of its NIC ("ptp0"): drivers create it below the device (drivers/ptp/ptp_clock.c).

    No process is started.
    """
    found = {name: sys.list_dir(f"/sys/class/net/{name}/device/ptp") for name in sys.list_dir("/sys/class/net")}
    return {name: clocks[0] for name, clocks in found.items() if clocks}
