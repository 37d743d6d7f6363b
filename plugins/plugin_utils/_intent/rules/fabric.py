# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Conflicts between the keys of rdma_fabric, rdma_partitions and the rails of an InfiniBand fabric."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._net.ipoib import CONNECTED_MTU_BYTES, IPOIB_HEADER_BYTES
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.rules.roce import Problem
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.fabric import ADAPTIVE_ENGINES, DEFAULT_KEY

OFED = ("doca", "mlnx_ofed")
#: Keys that only hosts with opensm use, with the value that has no effect.
OF_HOSTS = {
    "routing": None, "default_membership": None, "lmc": 0,
    "m_key_protection_level": 0, "m_key_lease_seconds": 0, "partition_enforcement": "both", "sharp": False,
}  # fmt: skip
LARGEST_DATAGRAM_BYTES = 4096 - IPOIB_HEADER_BYTES


@dataclass(frozen=True)
class Member:
    """A member of a partition: a host with all its ports, or a port by its GUID. place: its path in the list of members."""

    host: str | None
    guid: str | None
    membership: str
    place: str

    @property
    def label(self) -> str:
        return str(self.host or self.guid)


def members_of(partition: Mapping[str, Any]) -> list[Member] | None:
    """Return the members of a normalized partition in one form; None: all ports."""
    if partition["members"] == "all":
        return None
    return [_member(each, partition["membership"], f"members[{index}]") for index, each in enumerate(partition["members"])]


def _member(given: Any, membership: str, place: str) -> Member:
    if isinstance(given, str):
        is_guid = given.lower().startswith("0x") and len(given) == 18
        return Member(None if is_guid else given, given.lower() if is_guid else None, membership, place)
    return Member(given["host"], given["guid"], given["membership"] or membership, place)


def plane_problems(planes: Mapping[str, Mapping[str, Any]], stack: str | None) -> Iterator[Problem]:
    """Yield problems by paths below rdma_fabric. stack: rdma_driver.stack, None if unknown."""
    for name, plane in planes.items():
        manager = plane["subnet_manager"]
        if manager is not None:
            for path, message, expected in _manager(manager, stack):
                yield f"planes.{name}.subnet_manager.{path}", message, expected


def _manager(manager: Mapping[str, Any], stack: str | None) -> Iterator[Problem]:
    kind, hosts = manager["kind"], manager["hosts"]
    if kind == "hosts" and not hosts:
        yield "hosts", "is missing: kind is hosts", "the host that runs opensm, and optionally a standby host"
    if kind == "hosts" and len(hosts) > 2:
        yield "hosts", f"has {len(hosts)} hosts: more than one standby does not add safety", "one or two hosts"
    twice = sorted({host for host in hosts if hosts.count(host) > 1})
    if twice:
        yield "hosts", f"has {', '.join(twice)} twice", "each host once"
    if kind != "hosts":
        if hosts:
            yield "hosts", f"is given, but kind is {kind}", "nothing, or kind: hosts"
        for key, nothing in OF_HOSTS.items():
            if manager[key] != nothing:
                yield key, f"is {manager[key]}, but kind is {kind}: it can only be set on hosts", "nothing, or kind: hosts"
    if kind != "switch" and manager["switch"] is not None:
        yield "switch", f"is {manager['switch']}, but kind is {kind}", "nothing, or kind: switch"
    yield from _nvidia(manager, stack)
    if manager["routing"] == "torus-2QoS" and not manager["qos"]["enabled"]:
        yield "routing", "is torus-2QoS, which needs service levels, but qos.enabled is false", "qos.enabled: true"


def _nvidia(manager: Mapping[str, Any], stack: str | None) -> Iterator[Problem]:
    # The features of a kept stack are known only on the host.
    if stack in (None, "keep", *OFED):
        return
    if manager["routing"] in ADAPTIVE_ENGINES:
        message = f"is {manager['routing']}, which the distribution's opensm does not support, but rdma_driver.stack is {stack}"
        yield "routing", message, "another engine, or stack doca or mlnx_ofed"
    if manager["sharp"]:
        yield "sharp", f"is true, but rdma_driver.stack is {stack}, which has no sharp_am", "false, or stack doca or mlnx_ofed"


def partition_problems(partitions: Mapping[str, Mapping[str, Any]], planes: Mapping[str, Mapping[str, Any]] | None) -> Iterator[Problem]:
    """Yield problems by paths below rdma_partitions. planes: rdma_fabric.planes, None if they are invalid."""
    keys: dict[int, str] = {}
    names: dict[str, str] = {}
    for name, partition in partitions.items():
        first = keys.setdefault(partition["key"], name)
        if first != name:
            yield (
                f"{name}.key",
                f"is 0x{partition['key']:04x}, like that of {first}: opensm would merge them",
                "a unique key",
            )
        first = names.setdefault(name.lower(), name)
        if first != name:
            yield name, f"has the same name as {first}", "each name once"
        yield from ((f"{name}.{path}", message, expected) for path, message, expected in _partition(partition))
        yield from _service_level(name, partition, planes)
    yield from _tenants(partitions)
    named = next((name for name, partition in partitions.items() if partition["key"] == DEFAULT_KEY), None)
    given = [name for name, plane in (planes or {}).items() if (plane["subnet_manager"] or {}).get("default_membership")]
    if named is not None and given:
        yield named, f"is the default partition, whose membership plane {given[0]} also sets (default_membership)", "one of the two"


def _partition(partition: Mapping[str, Any]) -> Iterator[Problem]:
    members = members_of(partition)
    for member in members or ():
        if (member.host is None) == (member.guid is None):
            yield member.place, "names both a host and a GUID, or neither", "one of host and guid"
    seen: dict[str, Member] = {}
    for member in members or ():
        first = seen.setdefault(member.label, member)
        if first is not member:
            yield member.place, f"is {member.label}, like {first.place}", "each member once"
    if partition["key"] != DEFAULT_KEY and members is None and partition["membership"] == "limited":
        yield (
            "membership",
            "is limited for all: limited members reach only full members, and there is none",
            "full, or a list with a full member",
        )
    if members is not None and all(member.membership == "limited" for member in members):
        yield "members", "are all limited: limited members reach only full members, and there is none", "a full member"
    if partition["mtu"] not in (2048, 4096):
        yield "mtu", f"is {partition['mtu']}, which is not an InfiniBand MTU", "2048 or 4096"
    if partition["mtu"] != 2048 and not partition["ipoib"]:
        yield "mtu", "is given, but ipoib is false: it is only the MTU of IP over InfiniBand", "nothing, or ipoib: true"


def _service_level(name: str, partition: Mapping[str, Any], planes: Mapping[str, Mapping[str, Any]] | None) -> Iterator[Problem]:
    """Yield service levels that opensm would set to 0, because its qos is off (partition_create of osm_prtn_config.c)."""
    if not partition["sl"] or planes is None:
        return
    for plane, each in planes.items():
        manager = each["subnet_manager"]
        if manager is not None and manager["kind"] == "hosts" and not manager["qos"]["enabled"]:
            message = f"is {partition['sl']}, but opensm of plane {plane} would set it to 0"
            yield f"{name}.sl", message, f"0, or qos.enabled: true for plane {plane}"


def _tenants(partitions: Mapping[str, Mapping[str, Any]]) -> Iterator[Problem]:
    """Yield members of two partitions that must be separate, or that both must be first in the same table."""
    for flag, words in (("shared", "a host in two tenants connects them"), ("index0", "a table has one first entry")):
        first: dict[str, str] = {}
        everybody: str | None = None
        for name, partition in partitions.items():
            if partition["key"] == DEFAULT_KEY or partition[flag] is (flag == "shared"):
                continue
            members = members_of(partition)
            common = sorted({each.label for each in members or () if each.label in first})
            other = first[common[0]] if common else everybody or (next(iter(first.values()), None) if members is None else None)
            if other is not None:
                who = ", ".join(common[:4]) + (" …" if len(common) > 4 else "") if common else "every member"
                expected = "no common member, or shared: true on one of them" if flag == "shared" else "index0 on one of them"
                yield f"{name}.members", f"have {who} in common with {other}: {words}", expected
            everybody = everybody or (name if members is None else None)
            first.update({each.label: name for each in members or () if each.label not in first})


def member_problems(partitions: Mapping[str, Mapping[str, Any]], inventory: Iterable[str]) -> Iterator[Problem]:
    """Yield members that are not in the inventory, by paths below rdma_partitions."""
    known = list(inventory)
    for name, partition in partitions.items():
        for member in members_of(partition) or ():
            if member.host is not None and member.host not in known:
                yield f"{name}.{member.place}", f"is {member.host}, which is not in the inventory", nearest(member.host, known)


def manager_host_problems(planes: Mapping[str, Mapping[str, Any]], inventory: Iterable[str]) -> Iterator[Problem]:
    """Yield hosts of a subnet manager that are not in the inventory, by paths below rdma_fabric."""
    known = list(inventory)
    for name, plane in planes.items():
        for index, host in enumerate((plane["subnet_manager"] or {}).get("hosts", ())):
            if host not in known:
                where = f"planes.{name}.subnet_manager.hosts[{index}]"
                yield where, f"is {host}, which is not in the inventory", nearest(host, known)


def nearest(name: str, known: Iterable[str]) -> str:
    """Return words with the host that is probably meant, by its name."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"a host of the inventory; did you mean {near[0]}?" if near else "a host of the inventory"


def ipoib_problems(intent: Intent) -> Iterator[Problem]:
    """Yield conflicts of a rail's IP over InfiniBand, by paths below rdma_rails: "[0].ipoib"."""
    for index, rail in enumerate(intent["rails"]):
        if rail["link_layer"] == "infiniband":
            yield from ((f"[{index}].{path}", message, expected) for path, message, expected in _ipoib(rail, intent["partitions"]))
        elif rail["ipoib"] is not None:
            yield f"[{index}].ipoib", f"is given, but {rail['name']} is RoCE", "nothing, or link_layer infiniband"


def _ipoib(rail: Mapping[str, Any], partitions: Mapping[str, Mapping[str, Any]]) -> Iterator[Problem]:
    ipoib = rail["ipoib"] or {"mode": "datagram", "children": {}}
    datagram = ipoib["mode"] == "datagram"
    most = LARGEST_DATAGRAM_BYTES if datagram else CONNECTED_MTU_BYTES
    if rail["mtu_bytes"] is not None and rail["mtu_bytes"] > most:
        why = " (an MTU of 4096 minus 4 for its header)" if datagram else ""
        yield "mtu_bytes", f"is {rail['mtu_bytes']}, but IP over InfiniBand carries {most} in {ipoib['mode']} mode{why}", f"at most {most}"
    for name, child in ipoib["children"].items():
        where, partition = f"ipoib.children.{name}", partitions.get(name)
        if partition is None:
            yield where, "is not a partition in rdma_partitions", "the name of a partition"
            continue
        if not partition["ipoib"]:
            yield where, "is a partition without ipoib, so it has no broadcast group", f"ipoib: true in rdma_partitions.{name}"
        if partition["key"] == DEFAULT_KEY:
            yield where, "is the default partition, which the rail's own interface uses", "another partition"
        if datagram and (child["mtu_bytes"] or 0) > partition["mtu"] - IPOIB_HEADER_BYTES:
            carried = partition["mtu"] - IPOIB_HEADER_BYTES
            yield f"{where}.mtu_bytes", f"is {child['mtu_bytes']}, but the partition carries {carried}", f"at most {carried}"
