# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan of NCCL's network plugin on a host: whether NCCL uses it, its variables, and its installation.

A mesh of cables needs a network that selects the NIC by the peer's subnet. NCCL does so itself since 2.30.7
(NCCL_IB_SUBNET_AWARE_ROUTING, src/transport/net_ib/connect.cc); before, nccl-mesh-plugin does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.lint.rules_plan import PLUGIN
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.plugin import MESH, NONE, library_path
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.variables.mesh import RELAY
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.nccl.plugin import PluginUse, plugin_is_installed, plugin_name
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema import nccl_profiles
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.nccl_profiles import relays

#: How a mesh is reached: by NCCL's own routing, or by the plugin.
BY_SUBNET, BY_PLUGIN = "subnet", "plugin"
_SINCE = ".".join(map(str, nccl_profiles.BY_SUBNET_SINCE))


@dataclass(frozen=True)
class MeshPath:
    """by: BY_SUBNET, BY_PLUGIN, or None without a mesh; reason: in words, after "because"."""

    by: str | None
    reason: str


def nccl_version(intent: Intent, facts: Facts) -> str | None:
    """Return the version of NCCL in use: rdma_nccl.version, otherwise that of the host's library; None if both are unknown."""
    return intent["nccl"]["version"] or (facts.nccl.version if facts.nccl else None)


def mesh_path(intent: Intent, facts: Facts) -> MeshPath:
    """Return how the hosts of a mesh reach each other. With both the profile mesh and the plugin, the installed NCCL decides."""
    routed, plugin = intent["nccl"]["profile"] == nccl_profiles.MESH, intent["nccl"]["plugin"]["kind"] == MESH
    version = nccl_version(intent, facts)
    if not plugin:
        return MeshPath(BY_SUBNET, "rdma_nccl.profile is mesh") if routed else MeshPath(None, "rdma_nccl.plugin is not set")
    if not routed:
        return MeshPath(BY_PLUGIN, "rdma_nccl.plugin requests it, and rdma_nccl.profile is not mesh")
    if relays(intent):
        return MeshPath(BY_PLUGIN, f"{RELAY} is 1, and NCCL's own routing reaches only hosts with a direct cable")
    if version is None:
        return MeshPath(BY_PLUGIN, f"the version of NCCL is unknown, and NCCL before {_SINCE} does not select the NIC by the peer's subnet")
    if nccl_profiles.knows(version, nccl_profiles.BY_SUBNET_SINCE):
        return MeshPath(BY_SUBNET, f"NCCL {version} selects the NIC by the peer's subnet itself")
    return MeshPath(BY_PLUGIN, f"NCCL {version} does not select the NIC by the peer's subnet ({_SINCE} does)")


def plugin_use(intent: Intent, facts: Facts) -> PluginUse:
    """Return whether NCCL uses the plugin of the intent on a host, and why."""
    kind, path, version = intent["nccl"]["plugin"]["kind"], mesh_path(intent, facts), nccl_version(intent, facts)
    if kind in (NONE, MESH):
        return PluginUse(path.by == BY_PLUGIN, path.reason, relays(intent), version)
    return PluginUse(True, "rdma_nccl.plugin requests it", None, version)


def plugin_variables(intent: Intent, facts: Facts) -> dict[str, str]:
    """Return NCCL_NET_PLUGIN, with the path of the library, and the plugin's own variables; {} if NCCL does not use it on this host."""
    plugin = intent["nccl"]["plugin"]
    if not plugin_use(intent, facts).used:
        return {}
    own = {name: str(value) for name, value in plugin["variables"].items()}
    return {PLUGIN: library_path(plugin_name(plugin)), **own}


def plugin_query(intent: Intent) -> dict[str, Any] | None:
    """Return the option nccl_plugin of rdma_facts; None without a plugin."""
    plugin = intent["nccl"]["plugin"]
    if plugin["kind"] == NONE:
        return None
    variables = {name: str(value) for name, value in plugin["variables"].items()}
    return {"name": plugin_name(plugin), "variables": variables, "nccl": intent["nccl"]["version"]}


def plugin_due(intent: Intent, facts: Facts) -> bool:
    """Return whether the plugin is used and is not installed as requested; False if it could not be read."""
    return plugin_missing(intent, facts) and not plugin_unread(facts)


def plugin_missing(intent: Intent, facts: Facts) -> bool:
    """Return whether the plugin is used and the facts do not prove that it is installed as requested. No file names it before."""
    seen = facts.nccl.plugin if facts.nccl else None
    return plugin_use(intent, facts).used and (seen is None or not plugin_is_installed(intent["nccl"]["plugin"], seen))


def plugin_unread(facts: Facts) -> bool:
    """Return whether the plugin could not be read."""
    return bool(facts.nccl and facts.nccl.plugin and facts.nccl.plugin.unread)
