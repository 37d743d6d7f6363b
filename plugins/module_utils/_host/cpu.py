# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the limits on the speed and sleep of a host's CPUs: frequency governors, idle states, and tuned, which sets both.

Sources: Documentation/admin-guide/pm/cpufreq.rst, cpuidle.rst and pm_qos_interface.rst of Linux; tuned-adm(8).
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._base.systemd import service_group

CPUS = "/sys/devices/system/cpu"
POLICIES = f"{CPUS}/cpufreq"
#: The current maximum wake-up latency that processes have requested: 32 bits in the machine's order, 2000 s without a request.
DMA_LATENCY = "/dev/cpu_dma_latency"
NOBODY_ASKED_US = 2_000_000_000
TUNED, ACTIVE_PROFILE = "tuned.service", "/etc/tuned/active_profile"
OUR_PROFILE = "rdma-cluster"
PROFILE_FILE = f"/etc/tuned/{OUR_PROFILE}/tuned.conf"
#: tuned's default for a server.
USUAL_PROFILE = "throughput-performance"
_CPU = re.compile(r"cpu[0-9]+")
_POLICY = re.compile(r"policy[0-9]+")
_INCLUDE = re.compile(r"^include=([A-Za-z0-9_.:-]+)$", re.MULTILINE)


@dataclass(frozen=True)
class IdleState:
    """One idle state. latency_us: its wake-up time; disabled: how many of the cpus that have it may not enter it."""

    latency_us: int
    cpus: int
    disabled: int


@dataclass(frozen=True)
class Tuned:
    """tuned, if it runs. profile: the active one; base: the base of our profile, current or planned."""

    profile: str | None
    base: str


@dataclass(frozen=True)
class Cpu:
    """driver: None if the kernel does not scale frequencies, as in most virtual machines. governors: each active one → policies.

    available: the governors that every policy has. idle_states: by name. latency_us: the maximum that processes request; None: unknown, or
    no request. tuned: None if it does not run.
    """

    driver: str | None
    governors: dict[str, int]
    available: list[str]
    idle_states: dict[str, IdleState]
    latency_us: int | None
    tuned: Tuned | None


def parse_number(text: str) -> int:
    """Parse latency or disable: a decimal number. Raises ParseError."""
    if not re.fullmatch(r"[0-9]{1,20}", text.strip(), re.ASCII):
        raise ParseError(f"not a number: {quoted(text)}, expected the form '133'")
    return int(text)


def read_cpu(sys: SysRoot, *, running: bool) -> Cpu:
    """Return the settings of a host's CPUs. running: whether sys is that of a running system. No process is started."""
    policies = [f"{POLICIES}/{name}" for name in sys.list_dir(POLICIES) if _POLICY.fullmatch(name)]
    governors = [sys.text(f"{policy}/scaling_governor") for policy in policies]
    available = [set((sys.text(f"{policy}/scaling_available_governors") or "").split()) for policy in policies]
    return Cpu(
        driver=sys.text(f"{policies[0]}/scaling_driver") if policies else None,
        governors=dict(Counter(sorted(governor for governor in governors if governor is not None))),
        available=sorted(set.intersection(*available)) if available else [],
        idle_states=_read_idle_states(sys),
        latency_us=_read_latency(sys) if running else None,
        tuned=read_tuned(sys),
    )


def _read_idle_states(sys: SysRoot) -> dict[str, IdleState]:
    """Return the idle states of all CPUs together; if CPUs have different states with one name, the longest latency counts."""
    found: dict[str, IdleState] = {}
    for cpu in filter(_CPU.fullmatch, sys.list_dir(CPUS)):
        for state in sys.list_dir(f"{CPUS}/{cpu}/cpuidle"):
            base = f"{CPUS}/{cpu}/cpuidle/{state}"
            name, latency_us = sys.text(f"{base}/name"), sys.value(f"{base}/latency", parse_number)
            if name is None or latency_us is None:
                continue
            known = found.get(name, IdleState(0, 0, 0))
            disabled = bool(sys.value(f"{base}/disable", parse_number))
            found[name] = IdleState(max(known.latency_us, latency_us), known.cpus + 1, known.disabled + disabled)
    return found


def _read_latency(sys: SysRoot) -> int | None:
    try:
        data = sys.read_bytes(DMA_LATENCY)
    except OSError:
        # Only root may open it, and a container may not have it.
        return None
    latency_us = int.from_bytes(data, "little", signed=True) if data is not None and len(data) == 4 else NOBODY_ASKED_US
    return None if latency_us >= NOBODY_ASKED_US else latency_us


def read_tuned(sys: SysRoot) -> Tuned | None:
    """Return tuned's active profile; None if it does not run."""
    if service_group(sys, TUNED) is None:
        return None
    profile = sys.text(ACTIVE_PROFILE)
    ours = _INCLUDE.search(sys.read(PROFILE_FILE) or "")
    base = profile if profile is not None and profile != OUR_PROFILE else (ours[1] if ours is not None else USUAL_PROFILE)
    return Tuned(profile, base)
