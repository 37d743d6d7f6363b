# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The variables of this collection, which only the inventory, the play and the command line may set.

Ansible also turns every fact that a module on a host returns into a variable, which overrides the inventory. A host could thus set the
intent, a permission or a path of the control node. Facts with these names are therefore refused.
"""

from __future__ import annotations

from collections.abc import Iterable

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import first_of

PREFIX = "rdma_"
#: Private variables of roles and playbooks.
PRIVATE = "__"
#: The facts of our own actions, in addition to EFFECT_required and EFFECT_reason.
OWN_FACTS = ("rdma", "rdma_intent")
#: The public variables of the roles.
ROLE_VARIABLES = (
    "collectives_measure",
    "collectives_user",
    "cpu_change_allowed",
    "driver_reload_allowed",
    "driver_switch_allowed",
    "driver_tmpdir",
    "firewall_allowed",
    "firmware_write_allowed",
    "frr_allowed",
    "frr_replace_allowed",
    "gpudirect_rebuild_allowed",
    "nccl_conf_replace_allowed",
    "nccl_install_allowed",
    "nccl_transfer_measure",
    "network_change_allowed",
    "nic_rings_reset_allowed",
    "pairs_measure",
    "pairs_path_mtu",
    "pairs_qos_load_sources",
    "pcie_acs_write_allowed",
    "pcie_mrrs_allowed",
    "planes_proof_allowed",
    "reboot_after",
    "reboot_allowed",
    "reboot_before",
    "reboot_ports_timeout_seconds",
    "reboot_timeout_seconds",
    "roce_qos_change_allowed",
    "roce_qos_link_toggle_allowed",
    "soft_roce_replace_allowed",
    "subnet_manager_keys",
    "subnet_manager_partition_change_allowed",
    "subnet_manager_restart_allowed",
    "subnet_manager_settings_change_allowed",
    "subnet_manager_stop_allowed",
    "subnet_manager_takeover_allowed",
    "sysctl_replace_allowed",
    "time_sync_ptp_allowed",
    "time_sync_restart_allowed",
)
#: The variables that the run may need for a host whose facts have one of our names: they are recorded with the intent.
NOTED = (
    "rdma_load_allowed",
    "rdma_proof_max_age_hours",
    "rdma_facts_max_age_seconds",
    "rdma_measure",
    "rdma_soak_hours",
    "pairs_measure",
    "pairs_path_mtu",
    "collectives_measure",
    "nccl_transfer_measure",
    "pairs_qos_load_sources",
)
SHOWN = 5
CHECK = "host.facts"
EXPECTED = "facts that do not set variables of rdma.cluster"


def is_own(name: str) -> bool:
    """Whether only the inventory, the play and the command line may set this variable."""
    if name in OWN_FACTS:
        return False
    return name in ROLE_VARIABLES or name.startswith((PREFIX, PRIVATE))


def own_names(facts: Iterable[str]) -> list[str]:
    """The names in a host's facts that a host may not set."""
    return sorted(name for name in map(str, facts) if is_own(name))


def refused(names: Iterable[str]) -> str:
    """The fault in words. names: the result of own_names, or rdma_intent if a host has changed it."""
    there = [name if name.isprintable() and len(name) <= 80 else ascii(name)[:80] for name in names]
    return f"its facts set {first_of(there, SHOWN)}"


def remedy(host: str) -> str:
    return (
        f"1. On {host}, find the module or facts.d file that returns it, and who changed this machine. "
        "2. If your own play sets it with `set_fact` and `cacheable: true`, set it in the inventory. "
        f"3. If facts are cached, run once with `--flush-cache`. To exclude the host: `--limit '!{host}'`."
    )


def names_finding(stage: str, host: str, names: Iterable[str]) -> Finding:
    return Finding(stage, CHECK, host, "facts", ERROR, refused(names), EXPECTED, remedy(host))
