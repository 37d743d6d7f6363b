# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The management network of a host: its interface by rdma_fabric.management, and the check that it is not a rail."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, OK, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._net.links import interfaces_below
from ansible_collections.rdma.cluster.plugins.module_utils._net.netdev import Interface
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import ResolvedRail, resolve
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, declare

declare(
    {
        "planes.management": Check(
            "network",
            "the interface of the management network (`rdma_fabric.management`): there is one, and it is not a rail. Without the key, a "
            "warning if Ansible reaches the host by a rail, because the host then has one network for everything",
            "`ip -json address show`; without the key, the session's address",
            "correct `rdma_fabric.management`, or add the interface to the host",
            sources=(reads.ADDRESSES,),
        )
    }
)
STAGE, CHECK, SUBJECT = "network", "planes.management", "management network"
KEY = "rdma_fabric.management"
_EXPECTED = "one interface that is not a rail"


@dataclass(frozen=True)
class Management:
    """The interface of the management network; None with the reason in `why_not`. read: whether the host's addresses were read."""

    netdev: str | None
    why_not: str = ""
    read: bool = True


def management_of(intent: Intent, facts: Facts) -> Management | None:
    """Return the interface that rdma_fabric.management selects on a host; None without the key."""
    wanted = intent["fabric"]["management"]
    if not wanted:
        return None
    interfaces = facts.interfaces or {}
    if not any(_addresses(each) for each in interfaces.values()):
        return Management(None, "the addresses of the host's interfaces were not read", read=False)
    there = f"the host has {_listed(interfaces)}"
    if "interface" in wanted:
        words, found = f"interface {wanted['interface']}", [name for name in interfaces if name == wanted["interface"]]
    else:
        network = ipaddress.ip_network(wanted["subnet"])
        words, found = f"interface with an address in {network}", [name for name, each in interfaces.items() if _is_in(each, network)]
    session = facts.session.netdev if facts.session else None
    if len(found) > 1 and session in found:
        found = [session]
    if len(found) != 1:
        return Management(None, f"no {words}; {there}" if not found else f"more than one {words}: {', '.join(sorted(found))}; {there}")
    rail = rail_under(found[0], resolve(intent["rails"], facts), facts)
    if rail is not None:
        return Management(None, f"{found[0]} is {rail.name}; {there}")
    if not _addresses(interfaces[found[0]]):
        return Management(None, f"{found[0]} has no address; {there}")
    return Management(found[0])


def rail_under(netdev: str | None, rails: Sequence[ResolvedRail], facts: Facts) -> ResolvedRail | None:
    """Return the rail that an interface uses: it is one of the rail's interfaces, a VLAN on one of them, or their bond or bridge."""
    if not netdev:
        return None
    below = set(interfaces_below(netdev, facts.vlans, facts.bonds))
    for rail in rails:
        masters = {facts.netdevs[name].master for name in rail.interfaces if name in facts.netdevs}
        if below & {*rail.interfaces, *masters}:
            return rail
    return None


def one_network(intent: Intent, facts: Facts) -> ResolvedRail | None:
    """Return the rail by which Ansible reaches the host, if the intent names no management network: one network for everything."""
    if intent["fabric"]["management"] or facts.session is None:
        return None
    return rail_under(facts.session.netdev, resolve(intent["rails"], facts), facts)


def check_management(host: str, intent: Intent, facts: Facts) -> list[Finding]:
    """Finding `planes.management` of one host; none without the key, unless the host has one network for everything."""
    found, rail = management_of(intent, facts), one_network(intent, facts)
    if rail is not None:
        words = f"Ansible reaches {host} by {rail.interface}, which is {rail.name}: one network for management and data"
        remedy = (
            f"1. If {host} has a second network, set `ansible_host` to its address there, and {KEY} to its subnet. "
            f"2. Otherwise accept it: set `silenced_by` and `reason` for {CHECK} in rdma_checks."
        )
        return [Finding(STAGE, CHECK, host, SUBJECT, WARNING, words, _EXPECTED, remedy)]
    if found is None:
        return []
    if found.netdev is not None:
        return [Finding(STAGE, CHECK, host, SUBJECT, OK, found.netdev, _EXPECTED)]
    if not found.read:
        remedy = f"Run `ip -json address show` on {host}."
        return [Finding(STAGE, CHECK, host, SUBJECT, UNKNOWN, found.why_not, _EXPECTED, remedy)]
    remedy = f"1. On {host}, run `ip -brief address`. 2. Correct {KEY} for the host, or give the management interface its address."
    return [Finding(STAGE, CHECK, host, SUBJECT, ERROR, found.why_not, _EXPECTED, remedy)]


def _addresses(interface: Interface) -> list[str]:
    return [*(interface.ipv4 or ()), *(interface.ipv6 or ())]


def _is_in(interface: Interface, network: ipaddress.IPv4Network | ipaddress.IPv6Network) -> bool:
    return any(ipaddress.ip_interface(each).ip in network for each in _addresses(interface))


def _listed(interfaces: dict[str, Interface]) -> str:
    named = [f"{name} ({', '.join(_addresses(each)) or 'no address'})" for name, each in sorted(interfaces.items()) if name != "lo"]
    return ", ".join(named[:12]) + (" …" if len(named) > 12 else "") or "no interfaces"
