# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""rdma_host_plan: for each concern of a host, whether its role has work, and with which options. Derived on the control node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import resolve
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.driver.modules import module_options
from ansible_collections.rdma.cluster.plugins.plugin_utils._driver.modules import boot_modules, needed_modules, soft_links
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import RunFacts
from ansible_collections.rdma.cluster.plugins.plugin_utils._firmware.requests import firmware_differs, firmware_requests
from ansible_collections.rdma.cluster.plugins.plugin_utils._nccl import derive
from ansible_collections.rdma.cluster.plugins.plugin_utils._nccl.install import nccl_install
from ansible_collections.rdma.cluster.plugins.plugin_utils._plan import differences, host, ptp
from ansible_collections.rdma.cluster.plugins.plugin_utils._plan.gpudirect import gpudirect_differs, gpudirect_path
from ansible_collections.rdma.cluster.plugins.plugin_utils._roce.differs import qos_differs, qos_nics
from ansible_collections.rdma.cluster.plugins.plugin_utils._roce.profile import roce_profile
from ansible_collections.rdma.cluster.plugins.plugin_utils._subnet_manager.plan import runs_subnet_manager

#: The inputs of a plan besides intent and facts: the effects that the user allows.
NCCL_CONF, PCIE_ACS, PCIE_MRRS = "nccl_conf_replace_allowed", "pcie_acs_write_allowed", "pcie_mrrs_allowed"
LINK_TOGGLE = "roce_qos_link_toggle_allowed"
PERMITS = (NCCL_CONF, PCIE_ACS, PCIE_MRRS, LINK_TOGGLE)

Permits = Mapping[str, bool]


def host_plan(name: str, intent: Intent, facts: RunFacts, permits: Permits) -> dict[str, Any]:
    """Return the plan of a host: concern → whether its role has work; true unless the facts prove the opposite.

    "settings" has the options of the roles' modules. facts: the whole tree. permits: whether each of PERMITS is allowed.
    """
    down, install = netdevs_down(intent, facts), nccl_install(intent, facts)
    pcie = {"acs_allowed": permits[PCIE_ACS], "mrrs_allowed": permits[PCIE_MRRS]}
    return {
        "modules": differences.modules_differ(intent, facts),
        "soft_links": differences.soft_links_differ(intent, facts),
        "firmware": firmware_differs(intent, facts),
        "links": bool(down),
        "subnet_manager": runs_subnet_manager(intent, name, facts),
        "limits": host.limits_differ(intent, facts),
        "sysctl": host.sysctl_differs(intent, facts),
        "rings": host.rings_differ(intent, facts),
        "pcie": host.pcie_differs(intent, facts, **pcie),
        "cpu": host.cpu_differs(intent, facts),
        "irqbalance": host.irqbalance_differs(intent, facts),
        "time": host.time_differs(intent, facts),
        "ptp": ptp.ptp_differs(name, intent, facts),
        "recorder": host.recorder_differs(intent, facts),
        "network": differences.network_differs(intent, facts),
        "firewall": differences.firewall_differs(intent, facts),
        "qos": qos_differs(intent, facts, toggle_allowed=permits[LINK_TOGGLE]),
        "gpudirect": gpudirect_differs(intent, facts),
        "nccl_install": install["differs"],
        "nccl": derive.nccl_differs(intent, facts, permits[NCCL_CONF]),
        "settings": {
            "modules": {
                "names": needed_modules(intent, facts),
                "at_boot": boot_modules(intent),
                "options": module_options(intent),
            },
            "soft_links": soft_links(intent),
            "firmware": firmware_requests(intent, facts),
            "links": down,
            "limits": host.limits_options(intent),
            "sysctl": host.sysctl_settings(intent),
            "rings": host.ring_settings(intent, facts),
            "pcie": {**host.pcie_settings(intent, facts, **pcie), "withheld": host.pcie_withheld(intent, facts, **pcie)},
            "cpu": dict(intent["host"]["cpu"]),
            "time": host.time_content(intent),
            "ptp": ptp.ptp_settings(name, intent, facts),
            "recorder": host.recorder_settings(intent),
            "network": differences.network_rails(intent, facts),
            "network_manager": differences.network_manager(intent, facts),
            "firewall": differences.firewall_settings(intent, facts),
            "planes": differences.rail_interfaces(intent, facts),
            "qos": {"profile": roce_profile(intent), "nics": qos_nics(intent)},
            "gpudirect": gpudirect_path(intent, facts),
            "nccl_install": install,
            "nccl": {
                "files": derive.files_to_write(intent, facts, permits[NCCL_CONF]),
                "kept": derive.kept_words(intent, facts),
                "passed": derive.nccl_passed(intent, facts),
            },
        },
    }


def netdevs_down(intent: Intent, facts: RunFacts) -> list[str]:
    """Return the rails' interfaces that are administratively down."""
    names = [name for rail in resolve(intent["rails"], facts) for name in rail.netdevs]
    return [name for name in names if not facts.netdevs[name].admin_up]
