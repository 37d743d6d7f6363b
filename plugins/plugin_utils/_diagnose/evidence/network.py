# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of the causes of a failed job on a host: its addresses, GIDs and MTU."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ansible_collections.rdma.cluster.plugins.module_utils._nccl.devices import parse_list
from ansible_collections.rdma.cluster.plugins.module_utils._net.ip_address import is_ipv6
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.device import ROCE_V2, Port
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import rail_ip
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.sysfs import global_ipv6
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
from ansible_collections.rdma.cluster.plugins.plugin_utils._nccl.derive import FINDS_GID_SINCE


def _ports(scene: Scene) -> Iterator[tuple[str, Port]]:
    """The ports that the line or NCCL_IB_HCA names, else all that are ACTIVE, by "mlx5_0/1"."""
    named = [device.removesuffix("_dma") for device in scene.field_values("device")]
    if not named:
        yield from _usable(scene)
    for name in sorted(set(named) & set(scene.facts.devices)):
        for number, port in sorted(scene.facts.devices[name].ports.items()):
            yield f"{name}/{number}", port


def _usable(scene: Scene) -> Iterator[tuple[str, Port]]:
    """The ACTIVE ports of the host, limited to those of NCCL_IB_HCA if it is set, by "mlx5_0/1"."""
    lists = [parse_list(value) for value, _where in scene.variable("NCCL_IB_HCA")]
    for name, device in sorted(scene.facts.devices.items()):
        for number, port in sorted(device.ports.items()):
            if port.state == "ACTIVE" and all(each.has(name, int(number)) for each in lists):
                yield f"{name}/{number}", port


def gid_index(scene: Scene) -> Answer:
    """Whether the GID index in use is not one of RoCE v2 on an address of the family that the rails use."""
    if scene.devices is None:
        return unknown("the GIDs were not read")
    set_to = [
        (int(value), f"NCCL_IB_GID_INDEX={value} by {where}") for value, where in scene.variable("NCCL_IB_GID_INDEX") if _number(value)
    ]
    indexes = set_to or [(int(value), f"the line has index {value}") for value in scene.field_values("gid_index") if _number(value)]
    ethernet = [(name, port) for name, port in _ports(scene) if port.link_layer == "Ethernet"]
    if not ethernet:
        layers = {port.link_layer for _name, port in _ports(scene)}
        return excluded("there is no RoCE port") if layers == {"InfiniBand"} else unknown("no RoCE port was read")
    if not indexes:
        version = _version(scene)
        if version is None:
            return unknown("it is not set; NCCL before 2.21 uses index 0, and the log does not contain the version of NCCL")
        if version >= FINDS_GID_SINCE:
            return excluded(f"it is not set, and NCCL {version[0]}.{version[1]} finds the GID by itself")
        indexes = [(0, f"it is not set, so NCCL {version[0]}.{version[1]} uses index 0")]
    ipv6 = _uses_ipv6(scene)
    wrong = [f"{name} has {words}" for name, port in ethernet for index, _why in indexes if (words := _bad_gid(port, index, ipv6=ipv6))]
    if wrong:
        return confirmed(f"{indexes[0][1]}, and {listed(wrong)}")
    return excluded(
        f"{indexes[0][1]}, which is for RoCE v2 on an IPv{6 if ipv6 else 4} address of {listed([name for name, _port in ethernet])}"
    )


def gid_indexes_differ(scene: Scene) -> Answer:
    """Whether hosts of the job use different GID indexes, or an index that fits only some of them."""
    hosts = {name: replace(scene, host=known) for name, known in scene.job.items() if known.facts is not None}
    if len(hosts) < 2:
        return unknown("the GID indexes of two hosts were not read")
    values = {name: sorted({value for value, _where in each.variable("NCCL_IB_GID_INDEX")}) for name, each in hosts.items()}
    if len({tuple(each) for each in values.values()}) > 1 or any(len(each) > 1 for each in values.values()):
        words = [f"{name}: {', '.join(each) or 'not set'}" for name, each in values.items()]
        return confirmed(f"NCCL_IB_GID_INDEX differs: {listed(words)}")
    set_to = next(iter(values.values()))
    if not set_to or not _number(set_to[0]):
        return excluded("NCCL_IB_GID_INDEX is set on no host")
    bad = {name: found for name, each in hosts.items() if (found := _bad_gids(each, int(set_to[0])))}
    if bad and len(bad) < len(hosts):
        return confirmed(f"index {set_to[0]} fits on {listed([name for name in hosts if name not in bad])}; {'; '.join(bad.values())}")
    return excluded(f"NCCL_IB_GID_INDEX={set_to[0]} on all hosts, and it has the same meaning there")


def _bad_gids(scene: Scene, index: int) -> str:
    ipv6 = _uses_ipv6(scene)
    ports = [(name, port) for name, port in _usable(scene) if port.link_layer == "Ethernet"]
    wrong = [f"{scene.host.name} {name} has {words}" for name, port in ports if (words := _bad_gid(port, index, ipv6=ipv6))]
    return listed(wrong) if wrong else ""


def hca_lists_differ(scene: Scene) -> Answer:
    """Whether hosts of the job select different numbers of ports, by NCCL_IB_HCA and by what is ACTIVE."""
    logged = list(scene.log.context.variables.get("NCCL_IB_HCA", {}))
    if len(logged) > 1:
        return confirmed(f"NCCL_IB_HCA has several values in the log: {listed(logged)}")
    hosts = {name: replace(scene, host=known) for name, known in scene.job.items() if known.facts is not None}
    if len(hosts) < 2:
        return unknown("the RDMA devices of two hosts were not read")
    ports = {name: [port for port, _facts in _usable(each)] for name, each in hosts.items()}
    if len({len(each) for each in ports.values()}) > 1:
        return confirmed("; ".join(f"{name} uses {len(each)}: {listed(each, 4)}" for name, each in list(ports.items())[:4]))
    count = len(next(iter(ports.values())))
    return excluded(f"each host uses {count} ports that are ACTIVE now")


def device_named(scene: Scene) -> Answer:
    """Whether the line names a device that the host does not have."""
    named = list(dict.fromkeys(device.removesuffix("_dma") for device in scene.field_values("device")))
    if not named and scene.field_values("none_at_all"):
        return excluded("the line is about all devices, not a named one")
    if not named:
        return unknown("the line does not name a device")
    if scene.devices is None:
        return unknown("the RDMA devices were not read")
    missing = [name for name in named if name not in scene.devices]
    there = listed(sorted(scene.devices)) if scene.devices else "none"
    return confirmed(f"no RDMA device {listed(missing)}; the host has {there}") if missing else excluded(f"the host has {listed(named)}")


def _version(scene: Scene) -> tuple[int, int] | None:
    """The oldest NCCL in the log, else the one that the intent names."""
    planned = scene.host.intent["nccl"]["version"] if scene.host.intent else None
    versions = [*scene.log.context.versions] or [str(planned or "")]
    numbers = [(int(major), int(minor)) for each in versions for major, minor in re.findall(r"^([0-9]+)\.([0-9]+)", each)]
    return min(numbers, default=None)


def _number(value: str) -> bool:
    return value.isdecimal()


def _uses_ipv6(scene: Scene) -> bool:
    """Whether the intent gives RDMA IPv6 addresses on this host."""
    rails = scene.host.intent["rails"] if scene.host.intent else []
    return any(is_ipv6(rail_ip(rail) or "") for rail in rails if rail["link_layer"] == "roce" and rail["role"] == "compute")


def _bad_gid(port: Port, index: int, *, ipv6: bool) -> str:
    """The fault of the GID at an index of a RoCE port; "" if there is none."""
    gid = next((gid for gid in port.gids if gid.index == index), None)
    if gid is None:
        return f"no GID at index {index}"
    if gid.type != ROCE_V2:
        return f"a GID for {gid.type} at index {index}"
    if ipv6:
        return "" if global_ipv6(gid.gid) else f"a link-local or IPv4 GID at index {index}"
    return "" if gid.ipv4 else f"a link-local or IPv6 GID at index {index}"


def no_ip_gid(scene: Scene) -> Answer:
    """Whether a RoCE port has no GID for RoCE v2 on the family of its rails, which exists while its interface has such an address."""
    ethernet = [(name, port) for name, port in _ports(scene) if port.link_layer == "Ethernet"]
    if not ethernet:
        return unknown("no RoCE port was read")
    ipv6 = _uses_ipv6(scene)
    without = [name for name, port in ethernet if not any(is_ipv6(address) is ipv6 for address in port.rocev2)]
    what = f"RoCE v2 GID on IPv{6 if ipv6 else 4}"
    return confirmed(f"no {what} at {listed(without)}") if without else excluded(f"each RoCE port has a {what}")


def subnets_differ(scene: Scene) -> Answer:
    """Whether the two ends of a connection are in different subnets, by the host that has the local address."""
    pairs = _ends(scene)
    if not pairs:
        return unknown("the line does not contain both GIDs, or they are link-local")
    hosts = (scene.host, *scene.others.values())
    if not any(_interfaces(known) for known in hosts):
        return unknown("the addresses of the hosts were not read")
    for local, remote in pairs:
        own = next(((each, known.name) for known in hosts for each in _interfaces(known) if str(each.ip) == local), None)
        if own is not None:
            network, name = own[0].network, own[1]
            inside = ipaddress.ip_address(remote) in network
            observed = f"{local} of {name} is in {network}, {remote} is {'too' if inside else 'not'}"
            return excluded(observed) if inside else confirmed(observed)
    return unknown(f"no host that was read has the address {pairs[0][0]} now")


def _interfaces(known: Known) -> list[ipaddress.IPv4Interface | ipaddress.IPv6Interface]:
    """The addresses of a host with their networks."""
    return [ipaddress.ip_interface(ip) for ips in addresses(known.facts).values() for ip in ips] if known.facts else []


def _ends(scene: Scene) -> list[tuple[str, str]]:
    """(local, remote) addresses of the GIDs in one line: of this kind of line, or of the line below it."""
    lines = [scene.occurrence, *(each for each in scene.log.occurrences if each.name == "qp.gids")]
    # Each field lists its different values: only the first ones are known to be of the same line.
    first = [(each.fields["gid"][0], each.fields["remote_gid"][0]) for each in lines if {"gid", "remote_gid"} <= set(each.fields)]
    ends = [(ip_of(own), ip_of(other)) for own, other in first]
    return [(local, remote) for local, remote in ends if local and remote]


def ip_of(gid: str) -> str | None:
    """The IP address of a GID, or an address itself; None for a link-local GID and for other texts."""
    try:
        address = ipaddress.ip_address(gid)
    except ValueError:
        return None
    if address.version == 4:
        return str(address)
    return str(address.ipv4_mapped) if address.ipv4_mapped is not None else None if address.is_link_local else str(address)


def mtus_of_job_differ(scene: Scene) -> Answer:
    """Whether the RDMA ports that the job may use differ in MTU; InfiniBand and Ethernet ports are compared separately."""
    scenes = [scene, *(replace(scene, host=known) for known in scene.others.values() if known.facts is not None)]
    layers: dict[str, dict[int, list[str]]] = {}
    for each in scenes:
        for name, port in _usable(each):
            if port.active_mtu_bytes:
                by_mtu = layers.setdefault(str(port.link_layer), {})
                by_mtu.setdefault(port.active_mtu_bytes, []).append(f"{each.host.name} {name}")
    differing = next((by_mtu for by_mtu in layers.values() if len(by_mtu) > 1), None)
    if differing is not None:
        words = _mtu_words(differing)
        named = all(any(each.variable("NCCL_IB_HCA")) for each in scenes)
        return confirmed(words) if named else unknown(f"{words}; neither the log nor NCCL's files show which ports the job uses")
    if not layers:
        return unknown("the MTU of no RDMA port was read")
    words = "; ".join(f"{layer}: {_mtu_words(by_mtu)}" for layer, by_mtu in sorted(layers.items()))
    return excluded(f"{words}; switches between them were not read")


def _mtu_words(by_mtu: Mapping[int, Sequence[str]]) -> str:
    return "; ".join(f"{mtu} bytes at {listed(ports, 3)}" for mtu, ports in sorted(by_mtu.items()))
