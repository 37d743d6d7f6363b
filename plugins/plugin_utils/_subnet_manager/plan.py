# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The subnet managers planned on a host: from its intent, its facts, and for partitions the facts of their members."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import clean
from ansible_collections.rdma.cluster.plugins.module_utils._driver.distribution import RPM
from ansible_collections.rdma.cluster.plugins.module_utils._driver.ofed_state import with_kept_stack
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.tools import keys_text
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._host.load import busy_words
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.device import Port, port_guid
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import ResolvedRail, resolve
from ansible_collections.rdma.cluster.plugins.module_utils._subnet_manager.conf import KEYS, render_conf
from ansible_collections.rdma.cluster.plugins.module_utils._subnet_manager.partitions_conf import (
    DEFAULT_KEY,
    FULL_BIT,
    Partition,
    PartitionPort,
    everybody,
    render_partitions,
)
from ansible_collections.rdma.cluster.plugins.module_utils._subnet_manager.service import config_path, partitions_path
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.known import Known
from ansible_collections.rdma.cluster.plugins.plugin_utils._fleet.majority import some
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.rules.fabric import (
    OFED,
    manager_host_problems,
    member_problems,
    members_of,
)

#: The priority of the first host; the standby follows. 15 is reserved for a manual takeover.
PRIORITY = 14
NOT_READ = "not read in this run"
DROPPED = "not read again, because it failed or did not answer in this run"
SECRET = re.compile(r"0x[0-9a-fA-F]{16}")


@dataclass(frozen=True)
class PlanePort:
    """A port of a host on a plane."""

    device: str
    number: str
    guid: str
    lid: int | None = None


@dataclass
class ManagerPlan:
    """flavor: of _subnet_manager.service.FLAVORS. instances: in the shape of the module. problems: why it is impossible, as sentences.

    starts_at_install: whether the distribution's package may start opensm at installation. With a vendor's stack the flavor is the
    vendor's, but the package may still be the distribution's.
    """

    flavor: str
    starts_at_install: bool = True
    instances: list[dict[str, Any]] = field(default_factory=list)
    sharp: bool = False
    problems: list[str] = field(default_factory=list)


def priority_of(manager: Mapping[str, Any], host: str) -> int:
    """Return the opensm priority of one of a plane's manager hosts."""
    return PRIORITY - list(manager["hosts"]).index(host)


def plan_managers(
    host: str, fleet: Mapping[str, Known], inventory: Sequence[str], keys: Mapping[str, Mapping[str, str | None]]
) -> ManagerPlan:
    """Return the plan of one host. fleet: hosts of the run. inventory: all names. keys: plane → m_key, sm_key, sa_key."""
    intent = fleet[host].intent
    if intent is None:
        raise ValueError(f"{host} has no intent")
    flavor, family = _flavor(intent, fleet[host].facts)
    plan = ManagerPlan(flavor, starts_at_install=family != RPM)
    planes = {
        name: plane["subnet_manager"]
        for name, plane in intent["fabric"]["planes"].items()
        if plane["subnet_manager"] is not None and host in plane["subnet_manager"]["hosts"]
    }
    if not planes:
        return plan
    plan.problems += [f"rdma_fabric.{where} {message}: {do}" for where, message, do in manager_host_problems(_planes(intent), inventory)]
    plan.problems += [f"rdma_partitions.{where} {message}: {do}" for where, message, do in member_problems(intent["partitions"], inventory)]
    plan.problems += _missing_keys(intent, planes, keys)
    plan.problems += shared_guids(fleet)
    if len(planes) > 1 and plan.flavor != "debian":
        words = f"{host} is planned to run the subnet managers of {some(list(planes))}, but the service of its distribution runs only one"
        plan.problems.append(f"{words}: use different hosts for each plane")
    for name, manager in planes.items():
        ports = plane_ports(fleet[host], name)
        if not ports:
            plan.problems.append(f"{host} is planned to run the subnet manager of plane {name}, but has no known InfiniBand port on it")
            continue
        partitions, problems = plane_partitions(name, intent["partitions"], fleet)
        plan.problems += [each for each in problems if each not in plan.problems]
        plan.sharp = plan.sharp or (manager["sharp"] and manager["hosts"][0] == host)
        instance = _instance(host, name, manager, ports[0], keys.get(name, {}))
        default = manager["default_membership"]
        text = render_partitions(name, partitions, default or "full")
        given = default is not None or any(each.key == DEFAULT_KEY for each in partitions)
        plan.instances.append({**instance, "partitions": text, "default_given": given, **_named_managers(name, manager, fleet)})
    return plan


def _named_managers(plane: str, manager: Mapping[str, Any], fleet: Mapping[str, Known]) -> dict[str, Any]:
    """Return the known ports of the hosts that run a plane's subnet manager: any of them may be its master.

    An opensm on one of these hosts is ours only if the host has our file for the plane.
    """
    hosts = {host: plane_ports(known, plane) if (known := fleet.get(host)) else [] for host in manager["hosts"]}
    return {
        "managers": {port.guid: host for host, ports in hosts.items() for port in ports},
        "lids": [str(port.lid) for ports in hosts.values() for port in ports if port.lid],
        "unread": [host for host, ports in hosts.items() if not ports],
        "unconfigured": [host for host in hosts if config_path(plane) not in _files(fleet[host].facts if host in fleet else None)],
    }


def _files(facts: Facts | None) -> Mapping[str, Any]:
    return (facts.files if facts is not None else None) or {}


def fleet_ports(fleet: Mapping[str, Known]) -> dict[str, str]:
    """Return the GUIDs of all known InfiniBand ports → "node3 mlx5_0"."""
    return {guid: f"{host} {name}" for guid, host, name in _claims(fleet)}


def _claims(fleet: Mapping[str, Known]) -> Iterator[tuple[str, str, str]]:
    """Yield GUID, host and device of each known InfiniBand port."""
    for host, known in fleet.items():
        for name, device in known.facts.devices.items() if known.facts else ():
            for port in device.ports.values():
                if port.link_layer != "Ethernet" and (guid := port_guid(port)) is not None:
                    yield guid, host, name
        for plane in {rail["plane"] for rail in (known.intent["rails"] if known.intent else ())}:
            # The intent has it as InfiniBand, whatever the host reports.
            yield from ((port.guid, host, port.device) for port in plane_ports(known, plane))


def shared_guids(fleet: Mapping[str, Known]) -> list[str]:
    """Return GUIDs on more than one host, as problems: a port would get the partitions of another host."""
    owners: dict[str, dict[str, str]] = {}
    for guid, host, name in _claims(fleet):
        owners.setdefault(guid, {}).setdefault(host, name)
    return [
        f"{_named(claimed)} have the same port GUID {guid}, so each would get the partitions of the other: compare `ibstat` on these hosts "
        "with the labels of their cards, and check whether the inventory lists one machine twice"
        for guid, claimed in owners.items()
        if len(claimed) > 1
    ]


def _named(claimed: Mapping[str, str]) -> str:
    return " and ".join(f"{host} ({clean(name, 64)})" for host, name in claimed.items())


def busy_hosts(fleet: Mapping[str, Known], unread: Sequence[str], dropped: Sequence[str] = ()) -> dict[str, str]:
    """Return the hosts in use → by what, or why that is unknown.

    unread: hosts that this run does not read. dropped: failed hosts of the play, whose facts are outdated.
    """
    words = {host: busy_words(known.facts.load) if known.facts else NOT_READ for host, known in fleet.items()}
    in_use = {host: each for host, each in words.items() if each}
    return {**dict.fromkeys(dropped, DROPPED), **in_use, **dict.fromkeys(unread, NOT_READ)}


def runs_subnet_manager(intent: Intent, host: str, facts: Facts) -> bool:
    """Return whether a host runs one by the intent, or has our files for one."""
    planned = any(host in (plane["subnet_manager"] or {}).get("hosts", ()) for plane in _planes(intent).values())
    return planned or any(path.startswith(config_path("")[: -len(".conf")]) for path in _files(facts))


def managers_of(intent: Intent) -> list[str]:
    """Return the hosts that run the subnet managers of a host's InfiniBand planes."""
    own = {rail["plane"] for rail in intent["rails"] if rail["link_layer"] == "infiniband"}
    planes = _planes(intent)
    return [host for name in sorted(own & set(planes)) for host in (planes[name]["subnet_manager"] or {}).get("hosts", ())]


def waiting(intent: Intent, facts: Facts) -> list[str]:
    """Return the rails with link but without a port activated by a subnet manager, on planes with one of ours."""
    if not managers_of(intent):
        return []
    ports = {rail.name: _port(rail, facts) for rail in resolve(intent["rails"], facts) if _is_ours(rail, intent)}
    return [name for name, port in ports.items() if port and port.physical_state == "LinkUp" and port.state in ("INIT", "ARMED")]


def _port(rail: ResolvedRail, facts: Facts) -> Port | None:
    return facts.devices[rail.device].ports[rail.port] if rail.device is not None and rail.port is not None else None


def _is_ours(rail: ResolvedRail, intent: Intent) -> bool:
    manager = (_planes(intent).get(rail.rail["plane"]) or {}).get("subnet_manager") or {}
    return rail.rail["link_layer"] == "infiniband" and bool(manager.get("hosts"))


def _planes(intent: Intent) -> Mapping[str, Mapping[str, Any]]:
    planes: Mapping[str, Mapping[str, Any]] = intent["fabric"]["planes"]
    return planes


def _flavor(intent: Intent, facts: Facts | None) -> tuple[str, str | None]:
    """Return the flavor of opensm, and the family of the distribution."""
    stack = facts.stack if facts is not None else None
    family = stack.distribution.family if stack is not None else None
    if with_kept_stack(intent, stack)["driver"]["stack"] in OFED:
        return "ofed", family
    return "rhel" if family == RPM else "debian", family


def _missing_keys(intent: Intent, planes: Mapping[str, Mapping[str, Any]], keys: Mapping[str, Any]) -> Iterator[str]:
    """Yield missing keys: protection without a key has no effect."""
    for name, manager in planes.items():
        level = manager["m_key_protection_level"]
        if level and not keys.get(name, {}).get("m_key"):
            yield f"plane {name} has m_key_protection_level {level}, but subnet_manager_keys.{name}.m_key is missing"
    for name, secrets in keys.items():
        if name not in _planes(intent):
            yield f"subnet_manager_keys has {name}, which is not a plane in rdma_fabric"
        for key, value in secrets.items():
            if key not in KEYS:
                yield f"subnet_manager_keys.{name} has {key}: valid keys are {', '.join(KEYS)}"
            elif value is not None and SECRET.fullmatch(str(value)) is None:
                yield f"subnet_manager_keys.{name}.{key} must be 64 bits in hexadecimal (0x and 16 digits)"


def _instance(host: str, name: str, manager: Mapping[str, Any], port: PlanePort, keys: Mapping[str, str | None]) -> dict[str, Any]:
    return {
        "plane": name,
        "guid": port.guid,
        "device": port.device,
        "number": port.number,
        "priority": priority_of(manager, host),
        "config": render_conf(name, manager, keys, partitions_path(name)),
        "diags": keys_text(keys.get("m_key"), keys.get("sa_key")),
    }


def plane_ports(known: Known, plane: str) -> list[PlanePort]:
    """Return the InfiniBand ports of a host on a plane with known GUIDs, in the order of its rails."""
    if not known.intent or not known.facts:
        return []
    found = []
    for rail in resolve(known.intent["rails"], known.facts):
        port = _port(rail, known.facts) if rail.rail["plane"] == plane and rail.rail["link_layer"] == "infiniband" else None
        if port is not None and (guid := port_guid(port)) is not None:
            found.append(PlanePort(str(rail.device), str(rail.port), guid, port.lid))
    return found


def plane_partitions(
    plane: str, partitions: Mapping[str, Mapping[str, Any]], fleet: Mapping[str, Known]
) -> tuple[list[Partition], list[str]]:
    """Return the partitions of a plane with the ports of their members, and hosts with unknown ports, which would be missing in them."""
    found, unknown = [], []
    for name, partition in partitions.items():
        ports, hosts = _partition_ports(plane, partition, fleet)
        unknown += [each for each in hosts if each not in unknown]
        if ports:
            found.append(
                Partition(
                    name, partition["key"], ports, ipoib=partition["ipoib"], mtu_bytes=partition["mtu"], sl=partition["sl"],
                    index0=partition["index0"],
                )
            )  # fmt: skip
    if not unknown:
        return found, []
    words = f"The ports of {some(unknown)} on plane {plane} are unknown, so the partitions would lose members"
    return found, [f"{words}: run the stage for all hosts, or list their port GUIDs in rdma_partitions."]


def _partition_ports(plane: str, partition: Mapping[str, Any], fleet: Mapping[str, Known]) -> tuple[list[PartitionPort], list[str]]:
    members = members_of(partition)
    if members is None:
        default = partition["key"] == DEFAULT_KEY
        return everybody(partition["membership"]) if default else [PartitionPort("ALL", partition["membership"])], []
    ports: dict[str, PartitionPort] = {}
    unknown = []
    for member in (each for each in members if each.host is not None):
        known = fleet.get(str(member.host))
        theirs = plane_ports(known, plane) if known else []
        if not theirs and (not known or not known.intent or not known.facts or _planned(known.intent, plane)):
            unknown.append(str(member.host))
        ports.update({port.guid: PartitionPort(port.guid, member.membership, f"{member.host} {port.device}") for port in theirs})
    for member in (each for each in members if each.guid is not None):
        label = ports[str(member.guid)].label if member.guid in ports else ""
        ports[str(member.guid)] = PartitionPort(str(member.guid), member.membership, label)
    return list(ports.values()), unknown


def _planned(intent: Intent, plane: str) -> bool:
    return any(rail["plane"] == plane and rail["link_layer"] == "infiniband" for rail in intent["rails"])


class Place(NamedTuple):
    """pkey: of 15 bits. pkey_index: its index in the port's table. Both are None without partitions, or if no table was read."""

    pkey: int | None
    pkey_index: int | None


NO_PARTITION = Place(None, None)


def partition_place(port: Port, intent: Intent) -> Place | None:
    """Return the partition in which a port is measured, None if it is not a full member of any. intent: normalized.

    The default partition comes first, then those of rdma_partitions in their order, then the rest by key: the order is the same on every
    host, independent of its table.
    """
    if port.pkeys is None:
        return NO_PARTITION
    full = {key & ~FULL_BIT: int(index) for index, key in reversed(list(port.pkeys.items())) if key & FULL_BIT}
    named = [partition["key"] for partition in intent["partitions"].values()]
    order = [*([] if DEFAULT_KEY in named else [DEFAULT_KEY]), *named, *sorted(full)]
    return next((Place(key, full[key]) for key in order if key in full), None)


def limited_places(port: Port) -> dict[int, int]:
    """Return the partitions of which a port is a limited member: key of 15 bits → index in its table."""
    return {key: int(index) for index, key in reversed(list((port.pkeys or {}).items())) if not key & FULL_BIT}


def limited_only(port: Port, intent: Intent) -> str:
    """Return why a port cannot be measured, if it is a limited member only; else ""."""
    if partition_place(port, intent) is not None:
        return ""
    keys = ", ".join(f"0x{key:04x}" for key in (port.pkeys or {}).values()) or "nothing"
    return f"its port is a full member of no partition (its table has {keys}), and limited members cannot reach each other"


def partition_words(pkey: int | None) -> str:
    """ "partition 0x8001", as tools print the key of a full member; "" of none."""
    return "" if pkey is None else f"partition 0x{pkey | FULL_BIT:04x}"
