# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The host gate's checks on the clock (B79): a wrong one breaks certificates, leases and the comparison of logs; a slow one perftest."""

from __future__ import annotations

from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._findings import NOT_APPLICABLE, OK, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._rails import Facts

STAGE = "host"
#: By machine (uname), the clock sources that are as fast as the CPU's own counter; those behind tsc are a hypervisor's.
GOOD_SOURCES = {"x86_64": ("tsc", "kvm-clock", "hyperv_clocksource_tsc_page"), "aarch64": ("arch_sys_counter",)}
SOURCE_FILE = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
EXPECTED = "kept in step with a time server"
#: Logs of several hosts can be laid side by side, and leases hold; chrony keeps a clock to a thousandth of it.
OFFSET_SECONDS = 0.1


def check_time(host: str, facts: Facts, limit_seconds: float | None = None) -> list[Finding]:
    """Finding `host.time` of one host: whether the kernel counts its clock as synchronised, and how far chrony says it is off.

    limit_seconds: another limit than OFFSET_SECONDS.
    """
    time = facts.get("time") or {}
    synchronised, chrony = time.get("synchronised"), time.get("chrony") or {}
    if synchronised is None:
        return [_finding(host, UNKNOWN, "the kernel was not asked", f"Run `timedatectl` on {host}.")]
    if not synchronised:
        remedy = f"Run `timedatectl set-ntp true` on {host}, and see `timedatectl timesync-status` or `chronyc tracking` there."
        return [_finding(host, WARNING, _not_synchronised(chrony), remedy)]
    if time.get("chrony_unread"):
        observed = f"synchronised, and chrony does not say how far off: {time['chrony_unread']}"
        return [_finding(host, UNKNOWN, observed, f"Run `chronyc tracking` on {host}.")]
    offset_seconds, limit = chrony.get("offset_seconds"), OFFSET_SECONDS if limit_seconds is None else limit_seconds
    if offset_seconds is None:
        return [_finding(host, OK, "synchronised")]
    observed = f"synchronised with {chrony['source']}, {offset_words(offset_seconds)}"
    if abs(offset_seconds) <= limit:
        return [_finding(host, OK, observed)]
    remedy = f"See `chronyc tracking` on {host}; `chronyc makestep` there sets the clock at once, when no job runs."
    return [_finding(host, WARNING, observed, remedy, f"{EXPECTED}, off by {limit:g} s at most")]


def check_clocksource(host: str, facts: Facts) -> list[Finding]:
    """Finding `host.clocksource` of one host: the kernel reads the time from the CPU's own counter.

    Where it left it, as after a watchdog that found the counter unstable, each reading of the time is slow, and perftest, which counts
    the cycles of the CPU, cannot calibrate.
    """

    def finding(status: str, observed: str, expected: str, remedy: str = "") -> list[Finding]:
        return [Finding(STAGE, "host.clocksource", host, "clock source", status, observed, expected, remedy)]

    source = (facts.get("time") or {}).get("clocksource")
    if source is None:
        return finding(UNKNOWN, f"{SOURCE_FILE} could not be read", "the CPU's own counter", f"On {host}, see `cat {SOURCE_FILE}`.")
    machine, current = (facts.get("stack") or {}).get("arch"), source["current"]
    good = GOOD_SOURCES.get(machine or "")
    if machine is None:
        return finding(UNKNOWN, f"{current}; the machine type was not read", "the CPU's own counter", f"On {host}, see `uname -m`.")
    if good is None:
        return finding(NOT_APPLICABLE, f"{current}; which one is best on {machine} is not known", "the CPU's own counter")
    expected = " or ".join(good)
    if current in good:
        return finding(OK, current, expected)
    best = next((name for name in good if name in source["available"]), None)
    why = f"1. On {host}, `dmesg | grep -iE 'clocksource|tsc'` shows why the kernel left {good[0]}."
    if best is not None:
        now = f"2. `echo {best} > {SOURCE_FILE}` there, until the next boot."
    else:
        now = f"2. The kernel offers only {', '.join(source['available']) or current}: boot it again, with the newest BIOS."
    lasting = f"3. If it happens again, add `tsc=nowatchdog` to the kernel command line of {host}" if machine == "x86_64" else ""
    remedy = " ".join(filter(None, [why, now, f"{lasting} (in a virtual machine also `tsc=reliable`)." if lasting else ""]))
    return finding(WARNING, f"{current}; perftest may fail to calibrate", expected, remedy)


def _finding(host: str, status: str, observed: str, remedy: str = "", expected: str = EXPECTED) -> Finding:
    return Finding(STAGE, "host.time", host, "clock", status, observed, expected, remedy)


def offset_words(seconds: float) -> str:
    """How far a clock is ahead (above 0) of the time."""
    return f"{abs(seconds):.6f} s {'ahead' if seconds >= 0 else 'behind'}"


def _not_synchronised(chrony: dict[str, Any]) -> str:
    sources = chrony.get("sources") or {}
    if not chrony:
        return "not synchronised"
    return f"not synchronised; chrony has {', '.join(sources) or 'no server'} and follows none of them"
