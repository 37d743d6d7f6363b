# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the QoS stage does on a host: which NICs get the profile, and whether one lacks something of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._files import files_differ
from ansible_collections.rdma.cluster.plugins.module_utils._qos_apply import to_write
from ansible_collections.rdma.cluster.plugins.module_utils._qos_digest import unpack_states
from ansible_collections.rdma.cluster.plugins.module_utils._qos_file import unit_of
from ansible_collections.rdma.cluster.plugins.module_utils._qos_service import service_files
from ansible_collections.rdma.cluster.plugins.module_utils._rails import resolve
from ansible_collections.rdma.cluster.plugins.plugin_utils._roce_profile import roce_profile

Intent = Mapping[str, Any]
RUNS = {"active": True, "enabled": True}


def qos_nics(intent: Intent) -> list[dict[str, str]]:
    """The NIC of each RoCE rail, each once: {"pci"} or {"mac"}; none without rdma_roce."""
    nics = [dict(rail["nic"]) for rail in intent["rails"] if rail["link_layer"] == "roce"]
    return [nic for number, nic in enumerate(nics) if nic not in nics[:number]] if intent["roce"] is not None else []


def qos_differs(intent: Intent, facts: Mapping[str, Any] | None, *, toggle_allowed: bool = False) -> bool:
    """Whether a NIC of the host is not as the profile says, or would not be after a boot; True where the facts do not prove it is.

    facts: the digest. What is withheld, since a link would go down for it, is no reason to try.
    """
    profile, nics = roce_profile(intent), qos_nics(intent)
    if profile is None or not nics:
        return False
    if facts is None or files_differ(service_files(profile, nics), facts):
        return True
    states, units = unpack_states(facts.get("qos")), facts.get("units") or {}
    netdevs = [rail.netdev for rail in resolve(intent["rails"], facts) if rail.rail["link_layer"] == "roce" and rail.netdev is not None]
    if states is None or any(name not in states for name in netdevs):
        return True
    return any(units.get(unit_of(name)) != RUNS or to_write(profile, states[name], toggle_allowed=toggle_allowed) for name in netdevs)
