# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the host stage derives for rings, CPUs, the clock and RDMA-CM, and whether a host differs from it. True when in doubt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._cpu import Cpu, IdleState, Tuned
from ansible_collections.rdma.cluster.plugins.module_utils._cpu_ensure import CPU_UNIT, CpuWish, cpu_differences, cpu_files
from ansible_collections.rdma.cluster.plugins.module_utils._digest import rings_of
from ansible_collections.rdma.cluster.plugins.module_utils._files import files_differ
from ansible_collections.rdma.cluster.plugins.module_utils._rails import resolve
from ansible_collections.rdma.cluster.plugins.module_utils._rings import RailRings, rules_file
from ansible_collections.rdma.cluster.plugins.module_utils._time_sync import time_files

Intent = Mapping[str, Any]
Facts = Mapping[str, Any]
RUNS = {"active": True, "enabled": True}
#: chrony's unit by the distribution's family.
CHRONY_UNITS = {"debian": "chrony.service", "rpm": "chronyd.service"}


def ring_settings(intent: Intent, facts: Facts) -> list[dict[str, Any]]:
    """The rings of each RoCE rail whose driver tells them, the wish or the hardware's most, in the shape rdma.cluster.nic_rings takes."""
    wish = intent["host"]["rings"]
    found = []
    for rail in resolve(intent["rails"], facts):
        rings = _rings(facts, rail.netdev)
        lengths = {way: _least(wish[way], rings.get(f"{way}_max")) for way in ("rx", "tx")}
        if rail.rail["link_layer"] == "roce" and rail.netdev is not None and any(lengths.values()):
            found.append({"name": rail.name, "nic": dict(rail.rail["nic"]), "netdev": rail.netdev, **lengths})
    return found


def _rings(facts: Facts, netdev: str | None) -> Mapping[str, Any]:
    told = (facts.get("netdevs") or {}).get(netdev) or {}
    return rings_of(told)


def _least(wished: int | None, most: int | None) -> int | None:
    return None if wished is None or most is None else min(wished, most)


def rings_differ(intent: Intent, facts: Facts | None) -> bool:
    """True unless the facts prove that the rules are as wished, and the rings that the hardware can have too."""
    if facts is None:
        return True
    rings = ring_settings(intent, facts)
    if files_differ(rules_file([RailRings(**rail) for rail in rings]), facts):
        return True
    return any(rail[way] not in (None, _rings(facts, rail["netdev"]).get(way)) for rail in rings for way in ("rx", "tx"))


def cpu_wish(intent: Intent) -> CpuWish:
    """What rdma.cluster.cpu_power shall make, of the intent."""
    cpu = intent["host"]["cpu"]
    return CpuWish(cpu["governor"], cpu["max_cstate_latency_us"])


def cpu_differs(intent: Intent, facts: Facts | None) -> bool:
    """True unless the facts prove that tuned's profile or our unit is there, and that the CPUs are as wished, as far as they can be."""
    wish = cpu_wish(intent)
    if facts is None or (facts.get("cpu") is None and not wish.is_empty):
        return True
    seen = _cpu(facts.get("cpu") or {})
    if files_differ(cpu_files(wish, seen.tuned), facts):
        return True
    if not wish.is_empty and seen.tuned is None and (facts.get("units") or {}).get(CPU_UNIT) != RUNS:
        return True
    in_force = seen.tuned is None or wish.is_empty or seen.tuned.profile == "rdma-cluster"
    return not in_force or bool(cpu_differences(wish, seen))


def _cpu(told: Facts) -> Cpu:
    """The facts as the host's own code has them."""
    states = {
        name: IdleState(*(state.values() if isinstance(state, Mapping) else state))
        for name, state in (told.get("idle_states") or {}).items()
    }
    return Cpu(
        driver=told.get("driver"),
        governors=told.get("governors") or {},
        available=told.get("available") or [],
        idle_states=states,
        latency_us=told.get("latency_us"),
        tuned=Tuned(**told["tuned"]) if told.get("tuned") else None,
    )


def irqbalance_differs(intent: Intent, facts: Facts | None) -> bool:
    """True where the intent wishes something of irqbalance, and the facts do not prove it."""
    wished = intent["host"]["cpu"]["irqbalance"]
    if wished is None:
        return False
    unit = ((facts or {}).get("units") or {}).get("irqbalance.service")
    return unit is None or unit != {"active": wished == "enabled", "enabled": wished == "enabled"}


def time_content(intent: Intent) -> str | None:
    """The text of chrony's file of our servers; None where there shall be none."""
    (file,) = time_files(intent["host"]["time"]["servers"])
    return file.text or None


def time_differs(intent: Intent, facts: Facts | None) -> bool:
    """False where the clock is not ours to manage; else True unless the facts prove that chrony runs and knows our servers."""
    wish = intent["host"]["time"]
    if not wish["manage"]:
        return False
    if facts is None or files_differ(time_files(wish["servers"]), facts):
        return True
    units = facts.get("units") or {}
    known = ((facts.get("time") or {}).get("chrony") or {}).get("sources") or {}
    return not any(units.get(name) == RUNS for name in CHRONY_UNITS.values()) or not set(wish["servers"]) <= set(known)
