# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The QoS stage's work on a host: the NICs with the profile, and whether one of them differs."""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.module_utils._base.files import files_differ
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._base.systemd import RUNS
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._qos.apply import to_write
from ansible_collections.rdma.cluster.plugins.module_utils._qos.plan import UNIT_PREFIX, unit_of
from ansible_collections.rdma.cluster.plugins.module_utils._qos.service import service_files
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import rail_nics, resolve
from ansible_collections.rdma.cluster.plugins.plugin_utils._roce.profile import roce_profile


def qos_nics(intent: Intent) -> list[dict[str, str]]:
    """Return the NICs of each RoCE rail, each once: {"pci"} or {"mac"}; none without rdma_roce."""
    nics = [dict(nic) for rail in intent["rails"] if rail["link_layer"] == "roce" for nic in rail_nics(rail)]
    return [nic for number, nic in enumerate(nics) if nic not in nics[:number]] if intent["roce"] is not None else []


def qos_differs(intent: Intent, facts: Facts, *, toggle_allowed: bool = False) -> bool:
    """Return whether a NIC differs from the profile, now or after a boot; True unless the facts prove that it does not.

    Settings that are withheld because a link would go down are not a reason to try. Without a plan, only our files or units in the facts
    differ.
    """
    profile, nics = roce_profile(intent), qos_nics(intent)
    if profile is None or not nics:
        return _has_files(facts) or bool(_enabled_units(facts))
    if files_differ(service_files(profile, nics), facts.files):
        return True
    states, units = facts.qos, facts.units or {}
    rails = [rail for rail in resolve(intent["rails"], facts) if rail.rail["link_layer"] == "roce"]
    netdevs = [name for rail in rails for name in rail.netdevs]
    stale = _enabled_units(facts) - {unit_of(name) for name in netdevs}
    if stale and len(netdevs) == sum(len(rail_nics(rail.rail)) for rail in rails):
        return True
    if states is None or any(name not in states for name in netdevs):
        return True
    return any(units.get(unit_of(name)) != RUNS or to_write(profile, states[name], toggle_allowed=toggle_allowed) for name in netdevs)


def _has_files(facts: Facts) -> bool:
    return facts.files is not None and files_differ(service_files(None, []), facts.files)


def _enabled_units(facts: Facts) -> set[str]:
    """Return the units of interfaces that a boot or a hot-plug starts."""
    return {name for name, state in (facts.units or {}).items() if name.startswith(UNIT_PREFIX) and state.enabled}
