# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The requested CPU settings and limits, and their comparison with the facts, by the same code as on hosts.

The plan, the gate and the explanation use it, so that each setting is requested and compared in one place.
"""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._base.systemd import UnitState
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._host.cpu import Cpu
from ansible_collections.rdma.cluster.plugins.module_utils._host.cpu_ensure import CpuRequest, cpu_differences
from ansible_collections.rdma.cluster.plugins.module_utils._host.limits import LimitsRequest, LoginLimit, Memlock
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import resolve


def cpu_request(intent: Intent) -> CpuRequest:
    """The requested settings of rdma.cluster.cpu_power."""
    cpu = intent["host"]["cpu"]
    return CpuRequest(cpu["governor"], cpu["max_cstate_latency_us"])


def cpu_of(cpu: Cpu | None) -> Cpu:
    """The CPUs of the facts; without any value if they were not read."""
    return cpu or Cpu(driver=None, governors={}, available=[], idle_states={}, latency_us=None, tuned=None)


def cpu_wrong(request: CpuRequest, cpu: Cpu | None) -> set[str]:
    """Which of GOVERNOR and IDLE_STATES differ from the request."""
    return {what for what, _seen, _planned in cpu_differences(request, cpu_of(cpu))}


def irqbalance_wrong(planned: str, unit: UnitState) -> bool:
    """Whether the service's state, now and after a boot, differs from the requested one."""
    return not unit.active == unit.enabled == (planned == "enabled")


def limits_request(intent: Intent) -> LimitsRequest:
    """The requested settings of rdma.cluster.limits."""
    host = intent["host"]
    return LimitsRequest(host["memlock_unlimited"], host["open_files"], host["keep_ipc"])


def memlock_of(limit: Memlock | LoginLimit | None) -> Memlock:
    """The memory that a service or a login may lock; not unlimited if it is not known."""
    return limit if isinstance(limit, Memlock) else Memlock(unlimited=bool(limit and limit.unlimited), bytes=None)


def ptp_netdev(intent: Intent, facts: Facts) -> str | None:
    """The interface that carries PTP; None without planned PTP, or if the host does not have it."""
    ptp = intent["host"]["time"]["ptp"]
    if ptp is None:
        return None
    if ptp["interface"] is not None:
        return ptp["interface"] if facts.interfaces is None or ptp["interface"] in facts.interfaces else None
    return next((rail.netdev for rail in resolve(intent["rails"], facts) if rail.name == ptp["rail"]), None)
