# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the intent wishes of CPUs and limits, and what facts tell of them, as the hosts' own code compares the two.

The plan, the gate and the explanation ask this, so that each setting has one wish and one comparison.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._host.cpu import Cpu, IdleState, Tuned
from ansible_collections.rdma.cluster.plugins.module_utils._host.cpu_ensure import CpuWish, cpu_differences
from ansible_collections.rdma.cluster.plugins.module_utils._host.limits import LimitsWish, Memlock
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import Facts, Intent


def cpu_wish(intent: Intent) -> CpuWish:
    """What rdma.cluster.cpu_power shall make."""
    cpu = intent["host"]["cpu"]
    return CpuWish(cpu["governor"], cpu["max_cstate_latency_us"])


def cpu_of(told: Facts) -> Cpu:
    """The CPUs as the facts have them; what is not told of an idle state keeps nobody awake."""
    return Cpu(
        driver=told.get("driver"),
        governors=told.get("governors") or {},
        available=told.get("available") or [],
        idle_states={name: _idle_state(state) for name, state in (told.get("idle_states") or {}).items()},
        latency_us=told.get("latency_us"),
        tuned=Tuned(**told["tuned"]) if told.get("tuned") else None,
    )


def _idle_state(state: Mapping[str, Any] | None) -> IdleState:
    told = state or {}
    return IdleState(told.get("latency_us") or 0, told.get("cpus") or 1, told.get("disabled") or 0)


def cpu_wrong(wish: CpuWish, told: Facts) -> set[str]:
    """Which of GOVERNOR and IDLE_STATES is not as wished."""
    return {what for what, _seen, _wished in cpu_differences(wish, cpu_of(told))}


def irqbalance_wrong(wished: str, unit: Mapping[str, bool]) -> bool:
    """Whether the service does not run, now and after a boot, where it shall, or does where it shall not."""
    return not unit["active"] == unit["enabled"] == (wished == "enabled")


def limits_wish(intent: Intent) -> LimitsWish:
    """What rdma.cluster.limits shall make."""
    host = intent["host"]
    return LimitsWish(host["memlock_unlimited"], host["open_files"], host["keep_ipc"])


def memlock_of(told: Facts) -> Memlock:
    """What a service, or a login, may lock."""
    return Memlock(unlimited=bool(told.get("unlimited")), bytes=told.get("bytes"))
