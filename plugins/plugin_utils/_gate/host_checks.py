# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The checks that the gate of each stage runs for one host: (host, normalized intent, its facts) → findings.

The gate adds `allowed` to the intent's sections: the effects of roles ("reboot", "pcie_mrrs", …) → whether the run allows them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._driver.ofed_state import with_kept_stack
from ansible_collections.rdma.cluster.plugins.module_utils._driver.planned import INBOX, planned_modules
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.driver.dkms import check_dkms
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.driver.driver import check_driver, check_nodes
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.driver.firmware import check_firmware
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.driver.modules import check_modules, check_options
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.driver.next_kernel import check_next_kernel
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.gpu.gpu import check_gpu
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.host.host import check_host, check_limits, check_memory
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.host.pcie_tuning import check_pcie_tuning, planned_mrrs_bytes
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.host.ptp import check_ptp
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.host.recorder import check_recorder
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.host.tuning import check_clocksource, check_cpu, check_rings, check_time
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.link.counters import check_counters
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.link.link import check_link
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.link.optic import check_optic
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.link.pkey import check_pkeys
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.nccl.nccl import HCA, check_nccl, check_others
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.nccl.nccl_host import (
    check_install,
    check_lint,
    check_topology,
    check_version,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.nccl.outage import check_outage
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.nccl.plugin import check_plugin
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.network.addressing import check_addressing
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.network.boot import check_boot
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.network.links import check_bonds, check_vlans
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.network.management import check_management
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.network.multipath import check_multipath
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.network.network import check_network, check_rdma_mtu
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.network.planes import check_planes
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.network.routes import check_routes
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.pcie import check_pcie
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.preflight.kernel import check_kernels
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.preflight.preflight import (
    check_firewall,
    check_preflight,
    check_space,
    check_ssh,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.preflight.preset import check_preset
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.qos.qos import check_qos
from ansible_collections.rdma.cluster.plugins.plugin_utils._driver.blockers import with_obstacles
from ansible_collections.rdma.cluster.plugins.plugin_utils._driver.modules import needed_modules
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.entry import facts_finding, place_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import RunFacts, from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.nccl_profiles import TOPOLOGY
from ansible_collections.rdma.cluster.plugins.plugin_utils._mesh.reach import check_pool
from ansible_collections.rdma.cluster.plugins.plugin_utils._nccl.derive import (
    check_gid_index,
    check_pkey,
    check_socket,
    effective_variables,
    kept_variables,
    nccl_files,
    planned_rails,
    with_missing_devices,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._nccl.lint import host_problems
from ansible_collections.rdma.cluster.plugins.plugin_utils._nccl.plugin import plugin_use
from ansible_collections.rdma.cluster.plugins.plugin_utils._plan.gpudirect import gpudirect_path
from ansible_collections.rdma.cluster.plugins.plugin_utils._plan.host import ring_settings, sysctl_settings
from ansible_collections.rdma.cluster.plugins.plugin_utils._roce.profile import roce_profile

HostCheck = Callable[[str, Intent, RunFacts], list[Finding]]


def threshold(intent: Intent, check: str) -> float | None:
    """The site's threshold for a check, instead of the built-in one; None if it has not set one."""
    rule = intent["checks"].get(check)
    return rule["threshold"] if rule is not None else None


def _preflight(host: str, intent: Intent, facts: RunFacts) -> list[Finding]:
    intent, rails = with_kept_stack(intent, facts.stack), intent["rails"]
    return [
        *check_preflight(host, facts),
        *check_preset(host, intent, facts),
        *check_kernels(host, intent, facts, reboot_allowed=(intent.get("allowed") or {}).get("reboot", False)),
        *check_space(host, facts, threshold(intent, "preflight.disk")),
        *check_ssh(host, rails, facts),
        *check_firewall(host, rails, facts),
        *check_pool(host, intent, facts),
        *check_pcie(host, rails, facts, "preflight", mrrs_planned=planned_mrrs_bytes(intent) is not None),
    ]


def _driver(host: str, intent: Intent, facts: RunFacts) -> list[Finding]:
    intent, rails = with_kept_stack(intent, facts.stack), intent["rails"]
    return [
        *check_driver(host, rails, facts, needed_modules(intent, facts)),
        *check_nodes(host, rails, facts),
        *check_dkms(host, facts, stack_judged=planned_modules(intent) != INBOX),
        *with_obstacles(check_modules(host, intent, facts), intent, facts),
        *check_next_kernel(host, intent, facts),
        *check_options(host, intent, facts),
        *check_firmware(host, intent, facts),
    ]


def _link(host: str, intent: Intent, facts: RunFacts) -> list[Finding]:
    rails = intent["rails"]
    return [
        *check_link(host, rails, facts),
        *check_pcie(host, rails, facts, "link"),
        *check_counters(host, rails, facts, threshold(intent, "link.errors"), threshold(intent, "link.flaps")),
        *check_optic(host, rails, facts),
        *check_pkeys(host, intent, facts),
    ]


def _host(host: str, intent: Intent, facts: RunFacts) -> list[Finding]:
    rings = ring_settings(intent, facts)
    return [
        *check_host(host, intent, facts, sysctl_settings(intent)),
        *check_limits(host, intent, facts),
        *check_rings(host, rings, facts, requested=any(intent["host"]["rings"].values())),
        *check_cpu(host, intent, facts),
        *check_pcie_tuning(host, intent, facts),
        *check_time(host, facts, threshold(intent, "host.time")),
        *check_clocksource(host, facts),
        *check_recorder(host, intent, facts),
        *check_ptp(host, intent, facts),
        *check_memory(host, facts, threshold(intent, "host.memory"), threshold(intent, "host.shm")),
    ]


def _network(host: str, intent: Intent, facts: RunFacts) -> list[Finding]:
    rails = intent["rails"]
    return [
        *check_network(host, rails, facts),
        *check_rdma_mtu(host, rails, facts),
        *check_addressing(host, rails, facts),
        *check_bonds(host, rails, facts),
        *check_vlans(host, rails, facts),
        *check_routes(host, rails, facts, shared_subnet=intent["fabric"]["shared_subnet"]),
        *check_boot(host, rails, facts, intent["host"]["network"]["backend"]),
        *check_management(host, intent, facts),
        *check_planes(host, intent, facts),
        *check_multipath(host, intent, facts),
    ]


def _qos(host: str, intent: Intent, facts: RunFacts) -> list[Finding]:
    return check_qos(host, intent, facts, roce_profile(intent))


def _gpu(host: str, intent: Intent, facts: RunFacts) -> list[Finding]:
    return check_gpu(host, intent, facts, gpudirect_path(intent, facts))


def _nccl(host: str, intent: Intent, facts: RunFacts) -> list[Finding]:
    nccl, variables = intent["nccl"], effective_variables(intent, facts)
    computes, asks_for_hca = any(rail["role"] == "compute" for rail in intent["rails"]), HCA in nccl["variables"]
    found = [
        *check_nccl(host, nccl_files(intent, facts), facts, variables, computes=computes, asks_for_hca=asks_for_hca),
        *check_others(host, nccl["conf_file"], kept_variables(intent, facts), nccl["variables"], facts),
        *check_socket(host, intent, facts),
        *check_gid_index(host, intent, facts),
        *check_pkey(host, intent, facts),
        *check_topology(host, variables.get(TOPOLOGY), facts),
        *check_version(host, nccl, facts),
        *check_install(host, nccl, facts),
        *check_plugin(host, nccl["plugin"], plugin_use(intent, facts), planned_rails(intent, facts), facts),
        *check_outage(host, intent, variables),
        *check_lint(host, host_problems(intent, facts)),
    ]
    return with_missing_devices(found, host, intent, facts)


#: Stage → its checks of one host. The stages fabric, pairs and collectives check graphs and measurements of several hosts.
HOST_CHECKS: dict[str, HostCheck] = {
    "preflight": _preflight,
    "driver": _driver,
    "link": _link,
    "host": _host,
    "network": _network,
    "qos": _qos,
    "gpu": _gpu,
    "nccl": _nccl,
}


def host_findings(stage: str, host: str, intent: Intent, facts: Mapping[str, Any]) -> list[Finding]:
    """The findings of a stage on one host. If its facts break a check, only this host is unknown."""
    try:
        return HOST_CHECKS[stage](host, intent, from_dict(facts))
    except Exception as error:  # noqa: BLE001 (whatever a host's data does)
        return [facts_finding(stage, host, place_of(error))]
