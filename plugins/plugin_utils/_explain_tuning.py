# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What an explanation says of how a host is tuned, a line each: its CPUs, its clock, how many files may be open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.plugin_utils._explain_text import NOT_READ, Item, at, listed, part

Facts = Mapping[str, Any]
Intent = Mapping[str, Any]


def cpus(intent: Intent | None, facts: Facts) -> Item:
    """Governors, idle states and tuned; marked where they are not as the intent wishes."""
    cpu = part(facts, "cpu")
    if not cpu:
        return Item("CPUs", NOT_READ)
    wished, most_us = at(intent, "host", "cpu", "governor"), at(intent, "host", "cpu", "max_cstate_latency_us")
    governors, deep = part(cpu, "governors"), _deep(cpu, most_us)
    words = [f"governor {listed([str(name) for name in governors])}" if governors else "frequencies are not the kernel's to scale"]
    wrong = bool(wished and governors and set(governors) != {wished})
    if wrong:
        words.append(f"planned {wished}")
    if part(cpu, "idle_states"):
        words.append(f"idle states {listed(_entered(cpu))}" + (f", planned none that takes more than {most_us} µs" if deep else ""))
    if cpu.get("tuned"):
        words.append(f"tuned's profile {at(cpu, 'tuned', 'profile') or 'not told'}")
    return Item("CPUs", ", ".join(words), wrong or bool(deep))


def _entered(cpu: Facts) -> list[str]:
    """The idle states that some CPU may enter: "C6 (133 µs)"."""
    return [name if latency_us is None else f"{name} ({latency_us} µs)" for name, latency_us in _waking_us(cpu).items()]


def _waking_us(cpu: Facts) -> dict[str, int | None]:
    """Idle state that some CPU may enter → how long it takes to wake up from it, None where that is not told."""
    states = part(cpu, "idle_states")
    entered = [name for name in states if (at(states, name, "disabled") or 0) < (at(states, name, "cpus") or 1)]
    return {name: at(states, name, "latency_us") for name in entered}


def _deep(cpu: Facts, most_us: int | None) -> bool:
    """Whether an idle state may be entered that takes too long to wake up from, and nobody keeps the CPUs from it."""
    allowed = cpu.get("latency_us")
    if most_us is None or (allowed is not None and allowed <= most_us):
        return False
    return any((latency_us or 0) > most_us for latency_us in _waking_us(cpu).values())


def clock(facts: Facts) -> Item:
    """Whether the clock is kept, and what chrony follows."""
    synchronised = at(facts, "time", "synchronised")
    if synchronised is None:
        return Item("clock", NOT_READ)
    words = ["kept in step with a time server" if synchronised else "not in step with any time server"]
    source, offset = at(facts, "time", "chrony", "source"), at(facts, "time", "chrony", "offset_seconds")
    if source:
        words.append(f"chrony follows {source}" + (f", {abs(offset) * 1e6:.0f} µs off" if offset is not None else ""))
    return Item("clock", ", ".join(words), not synchronised)


def open_files(intent: Intent | None, facts: Facts) -> Item:
    """How many files a service and a login may have open; marked where that is less than planned."""
    service, login = at(facts, "limits", "service_open_files"), at(facts, "limits", "login_open_files", "*")
    if service is None and login is None:
        return Item("open files", NOT_READ)
    wished = at(intent, "host", "open_files") or 0
    most = at(login, "value")
    words = [
        f"a service {NOT_READ if service is None else service}",
        "a login the kernel's default" if login is None else f"a login {'unlimited' if at(login, 'unlimited') else most or NOT_READ}",
    ]
    few = service is not None and service < wished
    return Item("open files", ", ".join([*words, *([f"planned {wished}"] if few else [])]), few)
