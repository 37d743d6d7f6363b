# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of the causes of a failed job on a host: interfaces and addresses of sockets, and firewalls."""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from ansible_collections.rdma.cluster.plugins.module_utils._nccl.devices import parse_list
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.evidence.network import ip_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.evidence.words import said
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.scene import (
    Answer,
    Known,
    Scene,
    addresses,
    confirmed,
    excluded,
    unknown,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._explain.text import listed

#: Addresses that no other host can reach.
_LOOPBACK = ("127.0.0.0/8", "::1/128")
#: Names of interfaces that lead to no other host: of Docker, libvirt and loopback.
_INNER = re.compile(r"(?:docker\d|virbr\d|lo$)")
#: Link-local addresses, and those of Docker's bridge, which a site may use for rails.
_LOCAL = ("169.254.0.0/16", "172.17.0.0/16")


def _inner_interfaces(scene: Scene) -> Answer | None:
    """Whether NCCL uses interfaces, according to the log, by which hosts do not reach each other; None if it does not show that."""
    used = scene.log.context.bootstraps
    uses = Counter(address for _name, address in used.values())
    inner = [
        f"{name} ({address}) on {host}"
        for host, (name, address) in used.items()
        if _INNER.match(name) or uses[address] > 1 or (ip_of(address) and _within(address, _LOOPBACK))
    ]
    if not inner:
        return None
    words = f"NCCL uses {listed(inner, 4)}, according to the log"
    return confirmed(words) if len(used) > 1 else unknown(f"{words}; other hosts may not reach it")


def socket_interface(scene: Scene) -> Answer:
    """Whether NCCL_SOCKET_IFNAME matches no interface of the host that is up and has an address, or NCCL uses one within the host."""
    inner = _inner_interfaces(scene)
    if inner is not None:
        return inner
    there = scene.facts.interfaces
    if not there:
        return unknown("interfaces other than NICs, such as bonds and bridges, were not read")
    values = list(scene.variable("NCCL_SOCKET_IFNAME"))
    for value, where in values:
        if not any(parse_list(value).has(name) for name in there):
            return confirmed(f"NCCL_SOCKET_IFNAME={value} by {where} matches no interface; the host has {listed(sorted(there), 8)}")
    if all(netdev.addresses is None for netdev in there.values()):
        return unknown("the addresses of the interfaces were not read")
    return _socket_address(
        values, [name for name, netdev in sorted(there.items()) if netdev.admin_up and netdev.addresses and name != "lo"]
    )


def _socket_address(values: Sequence[tuple[str, str]], ready: Sequence[str]) -> Answer:
    """The answer on NCCL_SOCKET_IFNAME. values: its values and their sources; ready: the interfaces that are up with an address."""
    for value, where in values:
        wanted = parse_list(value)
        if not any(wanted.has(name) for name in ready):
            return confirmed(f"NCCL_SOCKET_IFNAME={value} by {where} matches none that is up with an address; usable: {listed(ready)}")
    if values:
        return excluded(f"NCCL_SOCKET_IFNAME={values[0][0]} fits {listed([name for name in ready if parse_list(values[0][0]).has(name)])}")
    return excluded(f"NCCL_SOCKET_IFNAME is not set; usable: {listed(ready)}") if ready else confirmed("no interface is up with an address")


def wrong_address(scene: Scene) -> Answer:
    """Whether a rank connects to an address that is not one of another host."""
    peers = [peer for peer in scene.field_values("peer") if ip_of(peer)]
    if not peers:
        return unknown("the line does not contain the address")
    owners = {peer: [name for known in (scene.host, *scene.others.values()) for name in _owner(known, peer)] for peer in peers}
    for peer in peers:
        if _within(peer, _LOOPBACK) or (len(owners[peer]) != 1 and _within(peer, _LOCAL)):
            return confirmed(f"{peer} is an address within a host: loopback, link-local or Docker's bridge")
    if owners[peers[0]]:
        return excluded(f"{peers[0]} is {owners[peers[0]][0]}")
    return unknown(f"{peers[0]} is not an address of a host that was read")


def _within(address: str, networks: tuple[str, ...]) -> bool:
    return any(ipaddress.ip_address(address) in ipaddress.ip_network(network) for network in networks)


def _owner(known: Known, address: str) -> Iterator[str]:
    """The interfaces of a host with an address, except Docker's bridge, which has the same one on every host."""
    for name, ips in addresses(known.facts).items() if known.facts else ():
        if name != "docker0" and any(ip.partition("/")[0] == address for ip in ips):
            yield f"{name} of {known.name}"


def firewall(scene: Scene) -> Answer:
    """Whether a firewall runs; its rules are not known."""
    units = scene.facts.units or {}
    names = ("firewalld.service", "nftables.service", "ufw.service")
    if not any(name in units for name in names):
        return unknown("the services were not read")
    active = [name for name in names if name in units and units[name].active]
    return unknown(f"{listed(active)} is active; its rules were not read") if active else excluded("no firewall service is active")


def gloo_loopback(scene: Scene) -> Answer:
    """Whether Gloo uses an address that no other host reaches."""
    return said(scene, "gloo.fallback") or wrong_address(scene)
