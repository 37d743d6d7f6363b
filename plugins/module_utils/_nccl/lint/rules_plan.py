# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules that compare NCCL's variables with the host's plan: RDMA and not TCP, GPUDirect, the traffic class."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, UNKNOWN, WARNING
from ansible_collections.rdma.cluster.plugins.module_utils._driver.kernel_modules import PEERMEM_MODULES
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.lint.problem import Case, Violation, take_out
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.lint.rules import Rule
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.lint.values import read_level

DISABLE, NET, PLUGIN = "NCCL_IB_DISABLE", "NCCL_NET", "NCCL_NET_PLUGIN"
LEVEL, DMABUF = "NCCL_NET_GDR_LEVEL", "NCCL_DMABUF_ENABLE"
TRAFFIC_CLASS, SERVICE_LEVEL, CROSS_NIC = "NCCL_IB_TC", "NCCL_IB_SL", "NCCL_CROSS_NIC"


def sockets_forced(case: Case) -> Iterator[Violation]:
    """Yield forced sockets. A plugin may have its own RDMA, and a host without a device loses none."""
    if case.facts.get("devices") == {}:
        return
    net = (case.value(NET) or "").lower()
    plugin = (case.value(PLUGIN) or "none").lower() != "none" or net not in ("", "ib", "socket")
    if net == "socket":
        yield Violation((NET,), f"{case.words(NET)}: all traffic uses TCP", "RDMA", take_out(case, [NET]))
    elif case.number(DISABLE) and not plugin:
        yield Violation((DISABLE,), f"{case.words(DISABLE)}: all traffic uses TCP", "RDMA", take_out(case, [DISABLE]))


def gpudirect_off(case: Case) -> Iterator[Violation]:
    if read_level(case.value(LEVEL)) != "LOC":
        return
    expected = "GPUDirect RDMA"
    if case.plan.gpudirect in ("dmabuf", "peermem"):
        observed = f"{case.words(LEVEL)}: no GPUDirect RDMA, but {case.plan.gpudirect} is planned"
        yield Violation((LEVEL,), observed, expected, take_out(case, [LEVEL]))
    elif case.number(DMABUF):
        yield Violation((LEVEL, DMABUF), f"{case.words(LEVEL, DMABUF)}: no GPUDirect RDMA", expected, take_out(case, [LEVEL]))


def dmabuf_off(case: Case) -> Iterator[Violation]:
    if case.number(DMABUF) != 0 or case.plan.gpudirect == "none":
        return
    loaded = _modules(case)
    remedy = take_out(case, [DMABUF])
    if loaded is None:
        yield Violation((DMABUF,), "the loaded modules are not in the facts", "nvidia_peermem is loaded", remedy, UNKNOWN)
    elif not any(name in loaded for name in PEERMEM_MODULES):
        observed = f"{case.words(DMABUF)}, but nvidia_peermem is not loaded: no GPUDirect RDMA"
        yield Violation((DMABUF,), observed, "DMA-BUF, or nvidia_peermem", remedy)


def traffic_class_differs(case: Case) -> Iterator[Violation]:
    wanted = case.plan.traffic_class
    value = case.number(TRAFFIC_CLASS)
    if wanted is None or value == wanted:
        return
    remedy = f"Set {TRAFFIC_CLASS}={wanted} in {case.places(TRAFFIC_CLASS) if value is not None else '/etc/nccl.conf'}."
    severity = WARNING if value is None else None
    yield Violation((TRAFFIC_CLASS,), case.words(TRAFFIC_CLASS), f"{wanted}, as in the RoCE profile", remedy, severity)


def service_level_with_dscp(case: Case) -> Iterator[Violation]:
    if case.plan.trust == "dscp" and case.number(SERVICE_LEVEL) != case.plan.service_level and (case.number(SERVICE_LEVEL) or 0) > 0:
        observed = f"{case.words(SERVICE_LEVEL)}, but switches and NICs use DSCP"
        yield Violation((SERVICE_LEVEL,), observed, f"{TRAFFIC_CLASS}, and no {SERVICE_LEVEL}", take_out(case, [SERVICE_LEVEL]))


def rails_crossed(case: Case) -> Iterator[Violation]:
    number = case.number(CROSS_NIC)
    if case.plan.rails_apart and number != 0:
        observed = f"{case.words(CROSS_NIC)}, but no network connects the rails"
        severity = WARNING if number is None else None
        place = case.places(CROSS_NIC) if number is not None else "/etc/nccl.conf"
        yield Violation((CROSS_NIC,), observed, f"{CROSS_NIC}=0", f"Set {CROSS_NIC}=0 in {place}.", severity)


def _modules(case: Case) -> Collection[str] | None:
    """Return the loaded modules, from the facts or from /sys/module."""
    stack = case.facts.get("stack")
    names: Collection[str] | None = stack["modules"] if stack else case.facts.get("modules")
    return names


PLAN_RULES = (
    Rule("sockets_forced", ERROR, sockets_forced),
    Rule("gpudirect_off", ERROR, gpudirect_off),
    Rule("dmabuf_off", ERROR, dmabuf_off),
    Rule("traffic_class_differs", ERROR, traffic_class_differs),
    Rule("service_level_with_dscp", WARNING, service_level_with_dscp),
    Rule("rails_crossed", ERROR, rails_crossed),
)
