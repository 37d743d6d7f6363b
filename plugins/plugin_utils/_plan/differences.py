# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a role has something to do on a host: compares intent and facts on the control node, so that a converged host needs no module.

Each function returns True in case of doubt; the role's module then compares on the host, with the same functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError
from ansible_collections.rdma.cluster.plugins.module_utils._base.files import files_differ
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent, Rail
from ansible_collections.rdma.cluster.plugins.module_utils._base.systemd import RUNS
from ansible_collections.rdma.cluster.plugins.module_utils._driver.kernel_modules import module_files
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._host.load import host_users
from ansible_collections.rdma.cluster.plugins.module_utils._net import rail_network
from ansible_collections.rdma.cluster.plugins.module_utils._net.backends import choice
from ansible_collections.rdma.cluster.plugins.module_utils._net.bonds import bond_name
from ansible_collections.rdma.cluster.plugins.module_utils._net.firewall import missing, outdated, words_of
from ansible_collections.rdma.cluster.plugins.module_utils._net.ipoib import CONNECTED_MTU_BYTES, IPOIB_HEADER_BYTES
from ansible_collections.rdma.cluster.plugins.module_utils._net.managers import NETWORKD_BACKEND
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_links import link_differs, make_rails, membership_differs
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_network import NetworkRail
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_routes import routing_differences
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.device import Port
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import (
    ResolvedRail,
    address_netdev,
    nic_function,
    rail_addresses,
    resolve,
    soft_device_name,
)
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.soft_links import UNIT, service_files
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.driver.modules import module_options
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.network.openings import openings
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.network.routes import rail_tables
from ansible_collections.rdma.cluster.plugins.plugin_utils._driver.modules import boot_modules, needed_modules, soft_links
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import stack_of


def network_rails(intent: Intent, facts: Facts) -> list[dict[str, Any]]:
    """The rails that have an interface on this host, in the shape that rdma.cluster.rail_network takes.

    A rail whose bond others have made, or of which a member is missing, is left as it is.
    """
    rails = resolve(intent["rails"], facts)
    tables = rail_tables(intent["rails"], shared_subnet=intent["fabric"]["shared_subnet"])
    return [
        {
            "name": rail.name,
            "nic": nic_function(rail, facts),
            "netdev": rail.netdev,
            "device": rail.device,
            "port": None if rail.port is None else int(rail.port),
            "mac": facts.netdevs[rail.netdev].mac,
            "link_layer": rail.rail["link_layer"],
            "address": rail.rail["address"],
            "addresses": rail_addresses(rail.rail)[1:],
            "table": table,
            "gateway": rail.rail["gateway"],
            "routes": list(rail.rail["routes"]),
            "mtu_bytes": rail.rail["mtu_bytes"],
            "ipoib": _ipoib(rail, intent),
            **_bond(rail, facts),
            **_vlan(rail),
        }
        for rail, table in zip(rails, tables, strict=True)
        if rail.netdev is not None and None not in rail.members and rail.bond in (None, bond_name(rail.name))
    ]


def _bond(rail: ResolvedRail, facts: Facts) -> dict[str, Any]:
    """The bond of a rail; nothing for a rail without one."""
    planned = rail.rail.get("bond")
    if planned is None:
        return {}
    names = [name for name in rail.members if name is not None]
    members = [
        {"nic": dict(nic), "netdev": name, "mac": facts.netdevs[name].mac} for nic, name in zip(planned["members"], names, strict=True)
    ]
    return {"bond": {"interface": rail.bond, "members": members, **{key: planned[key] for key in ("mode", "lacp_rate", "hash")}}}


def _vlan(rail: ResolvedRail) -> dict[str, Any]:
    """The VLAN of a rail; nothing for a rail without one."""
    vlan = rail.rail.get("vlan")
    return {} if vlan is None else {"vlan": {"interface": rail.interface, "id": vlan["id"], "pcp": vlan["pcp"]}}


def network_manager(intent: Intent, facts: Facts) -> str:
    """The manager that configures the rails of this host at boot."""
    return choice.chosen(intent["host"]["network"]["backend"], facts.network_backend)


def _ipoib(rail: ResolvedRail, intent: Intent) -> dict[str, Any] | None:
    """The settings of IP over InfiniBand other than address and MTU, with the keys of the partitions."""
    ipoib = rail.rail.get("ipoib")
    if ipoib is None:
        return None
    children = []
    for name, child in ipoib["children"].items():
        partition = intent["partitions"][name]
        mtu_bytes = child["mtu_bytes"] or (partition["mtu"] - IPOIB_HEADER_BYTES if ipoib["mode"] == "datagram" else CONNECTED_MTU_BYTES)
        children.append({"key": partition["key"], "address": child["address"], "mtu_bytes": mtu_bytes})
    return {"mode": ipoib["mode"], "children": children}


def modules_differ(intent: Intent, facts: Facts) -> bool:
    """Whether a kernel module that the rails need is not loaded, or the file that loads them at boot differs."""
    loaded = stack_of(facts).modules
    files = module_files(boot_modules(intent), module_options(intent))
    return any(name not in loaded for name in needed_modules(intent, facts)) or files_differ(files, facts.files)


def soft_links_differ(intent: Intent, facts: Facts) -> bool:
    """Whether a file of the Soft-RoCE service, its state, or a device differs from the plan."""
    links = soft_links(intent)
    if files_differ(service_files(links), facts.files):
        return True
    return bool(links) and ((facts.units or {}).get(UNIT) != RUNS or not _soft_devices_right(intent, facts))


def _soft_devices_right(intent: Intent, facts: Facts) -> bool:
    """Whether each soft rail has the device of its name on its interface."""
    return all(
        rail.netdev is not None and [port.netdev for port in _ports(facts, soft_device_name(rail.rail))] == [rail.netdev]
        for rail in resolve(intent["rails"], facts)
        if rail.rail["soft"]
    )


def _ports(facts: Facts, device: str) -> list[Port]:
    return list(facts.devices[device].ports.values()) if device in facts.devices else []


def rail_interfaces(intent: Intent, facts: Facts) -> list[str]:
    """Return the interfaces of the rails that are set up, for the proof that the management does not need them."""
    found = [name for rail in resolve(intent["rails"], facts) for name in rail.netdevs]
    return [netdev for netdev in dict.fromkeys(found) if facts.netdevs[netdev].admin_up]


def live_rails(intent: Intent, facts: Facts) -> str:
    """Why a change of this host's rails could do harm, in words; "" if no rail has an address and nothing uses the host.

    facts: the complete facts, since a digest has no queue pairs.
    """
    rails = resolve(intent["rails"], facts)
    seen = {rail.name: address_netdev(rail, facts) for rail in rails}
    live = [f"{name} has {netdev.addresses[0]}" for name, netdev in seen.items() if netdev is not None and netdev.addresses]
    return "; ".join(filter(None, [", ".join(live), host_users(facts.load)]))


def network_differs(intent: Intent, facts: Facts) -> bool:
    """Whether a rail's file, its live address or MTU, or the network manager differs from the plan."""
    given = network_rails(intent, facts)
    rails = _make(given)
    if rails is None or any(rail["ipoib"] is not None for rail in given):
        # The module reports what it cannot make. The facts do not contain mode and partition of an interface.
        return True
    units = facts.units or {}
    if rail_network.PENDING in (facts.files or ()):
        return True
    backend = network_manager(intent, facts)
    present, planned = rail_network.ours_among(list(facts.files or ())), [rail["name"] for rail in intent["rails"]]
    unit = units.get(choice.UNITS[backend])
    # The module enables systemd-networkd alone; network.boot reports the others.
    up = unit == RUNS if backend == NETWORKD_BACKEND else unit is not None and unit.active
    serves = rail_network.needs_service(rails) and not up
    try:
        files = choice.files(backend, rails, present, planned, rail_network.running_of(units))
    except ApplyError:
        # What the manager cannot do; the module reports it.
        return True
    if files_differ(files, facts.files) or serves:
        return True
    seen = facts.netdevs
    if _routing_differs(rails, facts) or any(
        rail.netdev not in seen
        or link_differs(rail, facts.vlans, is_up=seen[rail.netdev].admin_up)
        or membership_differs(rail, facts.bonds)
        for rail in rails
    ):
        return True
    return any(rail_network.live_differences(rail, seen[rail.netdev].mtu_bytes, seen[rail.netdev].addresses or ()) for rail in rails)


def _make(given: list[dict[str, Any]]) -> list[NetworkRail] | None:
    """Return the rails as the module makes them; None if it refuses them, as two on one NIC."""
    try:
        return make_rails(given)
    except ApplyError:
        return None


def _routing_differs(rails: Sequence[NetworkRail], facts: Facts) -> bool:
    """Whether a rule or route of a rail is missing, or one of a former rail is left."""
    routing = [rail.routing for rail in rails]
    if facts.routing is None:
        return any(each.planned for each in routing)
    return bool(routing_differences(routing, facts.routing))


def firewall_settings(intent: Intent, facts: Facts) -> dict[str, Any]:
    """The options of rdma.cluster.firewall, and the reason to run it in words."""
    needed = openings(intent["rails"], facts)
    reason = ""
    if facts.firewall is not None and facts.firewall.backend is not None:
        closed = [words_of(name) for name in missing(needed, facts.firewall)]
        backend = facts.firewall.backend
        reason = f"{backend} has no rules for {'; '.join(closed)}" if closed else f"{backend} has rules that are no longer needed"
    return {"openings": [{**asdict(each), "kinds": list(each.kinds)} for each in needed], "reason": reason}


def firewall_differs(intent: Intent, facts: Facts) -> bool:
    """Whether a firewall runs that does not let the traffic of the rails pass, or has rules of ours that it no longer needs."""
    seen = facts.firewall
    if seen is None or seen.backend is None or seen.unread is not None:
        return False
    needed = openings(intent["rails"], facts)
    return bool(missing(needed, seen) or outdated(needed, seen))


def states(rails: Sequence[Rail], facts: Facts) -> dict[str, str]:
    """Rail → the state in the port's own file, "ACTIVE", "DOWN", …; "no RDMA device" for a rail without one."""
    found = {}
    for rail in resolve(rails, facts):
        port = facts.devices[rail.device].ports[rail.port] if rail.device is not None and rail.port is not None else None
        found[rail.name] = str(port.state) if port else "no RDMA device"
    return found
