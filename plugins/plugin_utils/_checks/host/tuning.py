# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks of the host gate on rings, CPUs, time and clock source: as requested, within the limits of the hardware."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._base.systemd import UnitState
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._host.clock import Chrony
from ansible_collections.rdma.cluster.plugins.module_utils._host.cpu import Cpu
from ansible_collections.rdma.cluster.plugins.module_utils._host.cpu_ensure import GOVERNOR, IDLE_STATES
from ansible_collections.rdma.cluster.plugins.module_utils._net.netdev import Netdev
from ansible_collections.rdma.cluster.plugins.module_utils._net.rings import RailRings, ring_difference
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.host.requests import cpu_request, cpu_wrong, irqbalance_wrong

_CLOCKSOURCE = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
declare(
    {
        "host.rings": Check(
            "host",
            "the ring sizes of each rail's NIC against the requested ones, or its maximum",
            "`ethtool -g`",
            "run the host stage with `-e nic_rings_reset_allowed=true`, which takes the link down briefly",
            sources=(reads.driver("rings", absent_means="the driver has no configurable rings"),),
        ),
        "host.cpu": Check(
            "host",
            "CPU governor, idle states and irqbalance, if `rdma_host.cpu` requests them",
            "`/sys/devices/system/cpu`, `/dev/cpu_dma_latency`",
            "find the service that resets it: tuned, cpupower",
            sources=(
                reads.file(
                    "/sys/devices/system/cpu/cpufreq/*/scaling_governor",
                    absent_means="the kernel does not scale frequencies",
                    about="governor*",
                ),
                reads.file("/sys/devices/system/cpu/cpu*/cpuidle/*/latency", about="idle*"),
                reads.file(
                    "/sys/devices/system/cpu/cpu*/cpuidle/*/disable",
                    absent_means="a state that cannot be disabled counts as entered",
                    about="idle*",
                ),
                reads.but(reads.UNITS, about="irqbalance"),
            ),
        ),
        "host.time": Check(
            "host",
            "whether the clock is synchronized, and its offset according to chrony",
            "`adjtimex`, `chronyc tracking`",
            "`timedatectl set-ntp true`; `chronyc tracking`",
            threshold="seconds that the clock may be off, instead of 0.1",
            sources=(
                reads.kernel("adjtimex"),
                reads.command("chronyc"),
                reads.entry(
                    "/run/chrony/chronyd.pid", absent_means="chrony does not run; the kernel reports if another service keeps the clock"
                ),
            ),
        ),
        "host.clocksource": Check(
            "host",
            "the clock source of the kernel: the CPU's own counter or a hypervisor's equivalent; any other is a warning",
            "`/sys/devices/system/clocksource/clocksource0`",
            "`dmesg | grep -iE 'clocksource|tsc'`; write `tsc` to `current_clocksource`; `tsc=nowatchdog` on the kernel command line",
            sources=(reads.file(_CLOCKSOURCE), reads.kernel("uname")),
        ),
    }
)

STAGE = "host"
RingRequests = Sequence[Mapping[str, Any]]


def check_rings(host: str, rings: RingRequests, facts: Facts, *, requested: bool) -> list[Finding]:
    """Finding `host.rings` of each rail: at most a warning, because RDMA does not use the rings.

    rings: name, netdev, and the requested rx and tx of each rail whose driver reports them. requested: whether the intent requests any.
    """
    if not rings:
        why = "no rail's driver reports its rings" if requested else "rdma_host.rings requests nothing"
        return [Finding(STAGE, "host.rings", host, "rings", NOT_APPLICABLE, why, "any")]
    return [_ring(host, rail, facts.netdevs[rail["netdev"]]) for rail in rings]


def _ring(host: str, rail: Mapping[str, Any], netdev: Netdev) -> Finding:
    rings = netdev.ethtool.rings if netdev.ethtool is not None else None
    seen = {"rx": rings.rx, "tx": rings.tx} if rings is not None else {}
    ways = [way for way in ("rx", "tx") if rail[way] is not None]
    observed = ", ".join(f"{way} {seen.get(way)}" for way in ways)
    expected = ", ".join(f"{way} {rail[way]}" for way in ways)
    remedy = (
        f"While no job runs, run the host stage for {host} with `-e nic_rings_reset_allowed=true`. It takes {rail['netdev']} down briefly."
    )
    good = ring_difference(RailRings(**rail), seen) is None
    subject = f"rings of {rail['name']} ({rail['netdev']})"
    return Finding(STAGE, "host.rings", host, subject, OK if good else WARNING, observed, expected, "" if good else remedy)


def check_cpu(host: str, intent: Intent, facts: Facts) -> list[Finding]:
    """Findings `host.cpu`: governor, idle states and irqbalance, each if the intent requests it."""
    cpu = facts.cpu
    asked = intent["host"]["cpu"]
    if asked["governor"] is None and asked["max_cstate_latency_us"] is None and asked["irqbalance"] is None:
        return [Finding(STAGE, "host.cpu", host, "CPUs", NOT_APPLICABLE, "rdma_host.cpu requests nothing", "any")]
    found, wrong = [], cpu_wrong(cpu_request(intent), cpu)
    if asked["governor"] is not None:
        found.append(_governor(host, asked["governor"], cpu, good=GOVERNOR not in wrong))
    if asked["max_cstate_latency_us"] is not None:
        found.append(_idle(host, asked["max_cstate_latency_us"], cpu, good=IDLE_STATES not in wrong))
    if asked["irqbalance"] is not None:
        found.append(_irqbalance(host, asked["irqbalance"], (facts.units or {}).get("irqbalance.service")))
    return found


def _governor(host: str, planned: str, cpu: Cpu | None, *, good: bool) -> Finding:
    subject = GOVERNOR
    if cpu is None:
        return _unknown(host, subject, planned)
    if not cpu.governors:
        why = "the kernel does not scale frequencies here: a virtual machine, or the firmware controls them"
        return Finding(STAGE, "host.cpu", host, subject, NOT_APPLICABLE, why, planned)
    observed = ", ".join(cpu.governors)
    if good:
        return Finding(STAGE, "host.cpu", host, subject, OK, observed, planned)
    remedy = f"1. Run the host stage for {host}. 2. If it changes again, find what resets it: `systemctl status cpupower tuned` there."
    if planned not in cpu.available:
        remedy = f"Correct rdma_host.cpu.governor: {cpu.driver} on {host} has {', '.join(cpu.available) or 'none'}."
    return Finding(STAGE, "host.cpu", host, subject, ERROR, observed, planned, remedy)


def _idle(host: str, most_us: int, cpu: Cpu | None, *, good: bool) -> Finding:
    subject, expected = IDLE_STATES, f"at most {most_us} µs to wake up"
    if cpu is None:
        return _unknown(host, subject, expected)
    if not cpu.idle_states:
        return Finding(STAGE, "host.cpu", host, subject, NOT_APPLICABLE, "the kernel reports no idle states here", expected)
    if cpu.latency_us is not None and cpu.latency_us <= most_us:
        return Finding(STAGE, "host.cpu", host, subject, OK, f"{cpu.latency_us} µs, requested by a process", expected)
    entered = {name: state.latency_us for name, state in cpu.idle_states.items() if state.disabled < state.cpus}
    observed = ", ".join(f"{name} ({latency_us} µs)" for name, latency_us in entered.items()) or "none entered"
    return Finding(
        STAGE, "host.cpu", host, subject, OK if good else ERROR, observed, expected, "" if good else f"Run the host stage for {host}."
    )


def _irqbalance(host: str, planned: str, unit: UnitState | None) -> Finding:
    if unit is None:
        return _unknown(host, "irqbalance", planned)
    observed = f"{'active' if unit.active else 'not active'}, {'enabled' if unit.enabled else 'disabled'}"
    good = not irqbalance_wrong(planned, unit)
    remedy = "" if good else f"Run the host stage for {host}."
    return Finding(STAGE, "host.cpu", host, "irqbalance", OK if good else ERROR, observed, planned, remedy)


def _unknown(host: str, subject: str, expected: str) -> Finding:
    return Finding(STAGE, "host.cpu", host, subject, UNKNOWN, "not read", expected, f"Read the facts of {host} again.")


#: Machine (uname) → the clock sources that are as fast as the CPU's own counter; those after tsc are a hypervisor's.
GOOD_SOURCES = {"x86_64": ("tsc", "kvm-clock", "hyperv_clocksource_tsc_page"), "aarch64": ("arch_sys_counter",)}
SOURCE_FILE = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
EXPECTED = "synchronized with a time server"
#: Small enough for leases and to compare logs of several hosts; chrony keeps a clock within a thousandth of it.
OFFSET_SECONDS = 0.1


def check_time(host: str, facts: Facts, limit_seconds: float | None = None) -> list[Finding]:
    """Finding `host.time` of one host: whether the kernel reports a synchronized clock, and its offset according to chrony.

    limit_seconds: the limit instead of OFFSET_SECONDS.
    """
    time = facts.time
    if time is None or time.synchronized is None:
        return [_finding(host, UNKNOWN, "the clock's state was not read", f"Run `timedatectl` on {host}.")]
    chrony = time.chrony
    if not time.synchronized:
        remedy = f"1. Run `timedatectl set-ntp true` on {host}. 2. Check `timedatectl timesync-status` or `chronyc tracking` there."
        return [_finding(host, WARNING, _not_synchronized(chrony), remedy)]
    if time.chrony_unread:
        observed = f"synchronized, but chrony does not report the offset: {time.chrony_unread}"
        return [_finding(host, UNKNOWN, observed, f"Run `chronyc tracking` on {host}.")]
    if chrony is None or chrony.offset_seconds is None:
        return [_finding(host, OK, "synchronized")]
    limit = OFFSET_SECONDS if limit_seconds is None else limit_seconds
    observed = f"synchronized with {chrony.source}, {offset_words(chrony.offset_seconds)}"
    if abs(chrony.offset_seconds) <= limit:
        return [_finding(host, OK, observed)]
    remedy = f"1. On {host}, run `chronyc tracking`. 2. While no job runs, set the clock at once: `chronyc makestep`."
    return [_finding(host, WARNING, observed, remedy, f"{EXPECTED}, off by {limit:g} s at most")]


def check_clocksource(host: str, facts: Facts) -> list[Finding]:
    """Finding `host.clocksource` of one host: the kernel uses the CPU's own counter as its clock source.

    With another one, for example after the watchdog marked the counter unstable, reading the time is slow, and perftest, which counts
    CPU cycles, cannot calibrate.
    """

    def finding(status: str, observed: str, expected: str, remedy: str = "") -> list[Finding]:
        return [Finding(STAGE, "host.clocksource", host, "clock source", status, observed, expected, remedy)]

    source = facts.time.clocksource if facts.time is not None else None
    if source is None:
        return finding(UNKNOWN, f"{SOURCE_FILE} could not be read", "the CPU's own counter", f"On {host}, run `cat {SOURCE_FILE}`.")
    machine, current = facts.stack.arch if facts.stack is not None else None, source.current
    good = GOOD_SOURCES.get(machine or "")
    if machine is None:
        return finding(UNKNOWN, f"{current}; the machine type was not read", "the CPU's own counter", f"On {host}, run `uname -m`.")
    if good is None:
        return finding(NOT_APPLICABLE, f"{current}; which one is best on {machine} is not known", "the CPU's own counter")
    expected = " or ".join(good)
    if current in good:
        return finding(OK, current, expected)
    best = next((name for name in good if name in source.available), None)
    why = f"1. On {host}, `dmesg | grep -iE 'clocksource|tsc'` shows why the kernel does not use {good[0]}."
    if best is not None:
        now = f"2. Until the next boot, run `echo {best} > {SOURCE_FILE}` there."
    else:
        now = f"2. The kernel offers only {', '.join(source.available) or current}: update the BIOS and reboot."
    lasting = f"3. If it happens again, add `tsc=nowatchdog` to the kernel command line of {host}" if machine == "x86_64" else ""
    remedy = " ".join(filter(None, [why, now, f"{lasting} (in a virtual machine also `tsc=reliable`)." if lasting else ""]))
    return finding(WARNING, f"{current}; perftest may fail to calibrate", expected, remedy)


def _finding(host: str, status: str, observed: str, remedy: str = "", expected: str = EXPECTED) -> Finding:
    return Finding(STAGE, "host.time", host, "clock", status, observed, expected, remedy)


def offset_words(seconds: float) -> str:
    """The offset of a clock in words; above 0 it is ahead of the time."""
    return f"{abs(seconds):.6f} s {'ahead' if seconds >= 0 else 'behind'}"


def _not_synchronized(chrony: Chrony | None) -> str:
    if chrony is None:
        return "not synchronized"
    return f"not synchronized; chrony has {', '.join(chrony.sources) or 'no server'} but uses none"
