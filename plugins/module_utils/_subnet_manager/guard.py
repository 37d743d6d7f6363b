# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The effects on others of starting or changing opensm on a live fabric: who is master now, and which ports would lose P_Keys."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Runner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.ibnetdiscover import Discovery, FoundNode, parse_ibnetdiscover
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.managers import SmInfo, read_managers
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.smpquery import parse_pkeys, parse_portinfo
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.tools import SILENT_MANAGER, Asked, Tools
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.sysfs import parse_lid, parse_state
from ansible_collections.rdma.cluster.plugins.module_utils._subnet_manager.partitions_conf import (
    DEFAULT_KEY,
    Change,
    FabricPort,
    Keys,
    Loss,
    keys_of,
    losses,
    parse_partitions,
    parse_settings,
    setting_changes,
)
from ansible_collections.rdma.cluster.plugins.module_utils._subnet_manager.service import Instance

#: How long a port must stay in INIT without a master's LID. A master sweeps every 10 s by default.
NO_MASTER_SECONDS = 12.0
#: How often, and at which interval, to read the subnet managers while the master answers and its records do not.
MANAGER_READS, MANAGER_SECONDS = 3, 5.0
TOOL_SECONDS = 120.0
#: Stands for all ports that neither a file nor the facts name.
OTHERS = "every other port of the fabric"


@dataclass(frozen=True)
class Fleet:
    """The hosts of the inventory. ports: a port's GUID → "node3 mlx5_0"; busy: host → what runs there, or why that is unknown."""

    ports: Mapping[str, str] = field(default_factory=dict)
    busy: Mapping[str, str] = field(default_factory=dict)

    def busy_of(self, lost: Losses) -> dict[str, str]:
        """Return those of busy that lose or may lose something: an unknown port may belong to a host whose ports are unknown."""
        known = {port.split()[0] for port in self.ports.values()}
        return {name: words for name, words in self.busy.items() if name in lost.hosts or (lost.outside and name not in known)}


@dataclass(frozen=True)
class MasterReading:
    """The subnet manager that the port knows as its master. others: further ones that claim to be master.

    why_unknown: why these could not all be read. Both None: there is no master.
    """

    master: SmInfo | None
    why_unknown: str | None = None
    others: Sequence[SmInfo] = ()


@dataclass(frozen=True)
class FoundHostPort:
    """A port of a host on the fabric. path: its direct route from ours; lid: None if no subnet manager assigned one."""

    guid: str
    number: int
    description: str | None
    lid: int | None
    path: tuple[int, ...]


@dataclass(frozen=True)
class Losses:
    """Which ports would lose what, as sentences; hosts: the affected hosts of the inventory; outside: affected ports of unknown hosts.

    unknown: why some could not be compared. limited, full: the ports besides subnet managers, by their present membership in the default
    partition, where it was read.
    """

    words: Sequence[str] = ()
    hosts: Sequence[str] = ()
    unknown: Sequence[str] = ()
    outside: bool = False
    limited: Sequence[str] = ()
    full: Sequence[str] = ()


class Guard:
    """Reads the fabric for one instance of opensm, from the port that it will run on."""

    def __init__(self, instance: Instance, fleet: Fleet, runner: Runner, sys: SysRoot) -> None:
        self.instance, self.fleet, self.sys = instance, fleet, sys
        asked = Asked(instance.plane, instance.device, int(instance.number), timeout_seconds=TOOL_SECONDS)
        self.tools = Tools(runner, sys, asked)

    def read_master(self) -> MasterReading:
        """Return the current master. "No master" requires positive evidence: from the own port, and from the fabric that it sees."""
        state, sm_lid = self._state(), self._lid("sm_lid")
        if state not in ("INIT", "ARMED", "ACTIVE"):
            return MasterReading(None, f"port {self.instance.device}/{self.instance.number} is {state or 'in an unknown state'}")
        if state == "INIT" and sm_lid == 0 and self._stays_without():
            return MasterReading(None, self._trace_of_a_master())
        managers = read_managers(self.tools, identify=True)
        # A master that was just started, for example on the other host of the plane, answers sminfo before it keeps records.
        for _again in range(MANAGER_READS - 1):
            if managers.master is None or managers.why_not is None:
                break
            time.sleep(MANAGER_SECONDS)
            managers = read_managers(self.tools, identify=True)
        if managers.master is not None:
            others = [each for each in managers.known or () if each.guid != managers.master.guid and each.state == "MASTER"]
            return MasterReading(managers.master, managers.why_not, others)
        why = managers.why_not or "sminfo returned nothing"
        ours = {str(self._lid("lid")), *self.instance.lids}
        if sm_lid and str(sm_lid) in ours and f"{SILENT_MANAGER} at LID {sm_lid}" in why.split("; "):
            return MasterReading(None, self._trace_of_a_master(sm_lid))
        return MasterReading(None, why)

    def _trace_of_a_master(self, dead_lid: int | None = None) -> str | None:
        """Return what suggests that the fabric has a master that the own port does not know; None if nothing does.

        dead_lid: the LID of a master that does not answer, which the fabric's ports still have; None: no port may have a LID.
        """
        before = len(self.tools.problems)
        discovery = self.tools.run("ibnetdiscover", [], parse_ibnetdiscover)
        problems = [*self.tools.problems[before:], *(discovery.problems if discovery is not None else ())]
        if discovery is None or problems:
            return f"the fabric could not be read: {'; '.join(problems)}"
        start = next((node for node in discovery.nodes if node.guid == discovery.start), None)
        own = next((port for port in start.ports if port.number == int(self.instance.number)), None) if start is not None else None
        if own is None or own.end is None:
            return f"ibnetdiscover shows no link of port {self.instance.device}/{self.instance.number}"
        if dead_lid is None and (managed := _port_with_lid(discovery, self.instance.guid)) is not None:
            return f"this port has no LID, but {managed}: a subnet manager has configured the fabric"
        end = own.end
        path = ["-D", "portinfo", f"0,{own.number}", "0" if end.kind == "switch" else str(end.port)]
        neighbor = self.tools.run("smpquery", path, parse_portinfo)
        name = end.description or end.guid
        if neighbor is None:
            return f"the port of {name!r}, to which this port is linked, could not be read: {'; '.join(self.tools.problems[before:])}"
        if neighbor.sm_lid is not None and neighbor.sm_lid != dead_lid:
            return f"{name!r}, to which this port is linked, has a master at LID {neighbor.sm_lid}"
        return None

    def _state(self) -> str | None:
        return self.sys.value(f"{self._folder}/state", parse_state)

    def _lid(self, name: str) -> int | None:
        """Return the LID; 0 if no subnet manager has set it; None if it cannot be read."""
        try:
            text = self.sys.text(f"{self._folder}/{name}")
            return None if text is None else parse_lid(text) or 0
        except (ParseError, OSError):
            return None

    @property
    def _folder(self) -> str:
        return f"/sys/class/infiniband/{self.instance.device}/ports/{self.instance.number}"

    def _stays_without(self) -> bool:
        deadline = time.monotonic() + NO_MASTER_SECONDS
        while time.monotonic() < deadline:
            time.sleep(0.5)
            if (self._state(), self._lid("sm_lid")) != ("INIT", 0):
                return False
        return True

    def takeover_reasons(self, reading: MasterReading, *, active: bool, ours: bool) -> list[str]:
        """Return why this opensm would act against a subnet manager that the intent does not name; empty if it would not.

        active: whether the unit runs; ours: whether it runs with our files.
        """
        reasons = []
        if active and not ours:
            reasons.append("opensm already runs on this port and was not configured by this role")
        if reading.why_unknown is not None:
            reasons.append(f"the master of the plane could not be read: {reading.why_unknown}")
        master = reading.master
        if master is not None and master.state != "MASTER":
            reasons.append(f"the subnet manager that the port has as its master is not the master: {master.words}")
        reasons += [f"another subnet manager is master of the plane: {each.words}" for each in reading.others]
        if master is not None and master.guid not in self.instance.managers:
            host = self.fleet.ports.get(master.guid)
            words = f"{host}: {master.words}" if host else master.words
            unread = f" (the ports of {', '.join(self.instance.unread)} were not read in this run)" if self.instance.unread else ""
            reasons.append(f"the master of the plane is not one that rdma_fabric names: {words}{unread}")
        elif master is not None and master.guid == self.instance.guid and not active:
            reasons.append(f"a subnet manager that this role did not start runs on this host's own port: {master.words}")
        elif master is not None and master.guid != self.instance.guid:
            host = self.instance.managers[master.guid]
            if host in self.instance.unconfigured:
                reasons.append(f"{host} runs an opensm that this role did not configure: {master.words}")
        return reasons

    def losses_between(self, present: str | None) -> Losses:
        """Return what ports lose if opensm reads our partitions instead of the present file; None: there is no present file."""
        if present == self.instance.partitions:
            return Losses()
        after = parse_partitions(self.instance.partitions)
        try:
            before = None if present is None else parse_partitions(present)
            changes = setting_changes(parse_settings(present or ""), parse_settings(self.instance.partitions))
        except ParseError as error:
            return Losses(unknown=[f"the present partitions could not be read: {error}"])
        named = {port.guid for _key, ports in (*(before or ()), *after) for port in ports if port.guid.startswith("0x")}
        guids = list(dict.fromkeys([self.instance.guid, *self.fleet.ports, *sorted(named)]))

        def compare(these: Sequence[str]) -> list[Loss | Change]:
            found: list[Loss | Change] = []
            for port in (FabricPort(guid, is_manager=guid == self.instance.guid) for guid in these):
                had, has = keys_of(before, port), keys_of(after, port)
                found += losses(port.guid, had, has)
                found += [Change(port.guid, key, words) for key, words in changes.items() if key in had and key in has]
            return found

        if not compare([*guids, OTHERS]):
            return Losses()
        found = self._discover()
        descriptions = {port.guid: port.description for port in found or ()}
        others = [guid for guid in descriptions if guid not in guids] if found is not None else [OTHERS]
        return self._losses(compare([*guids, *others]), descriptions)

    def losses_from_tables(self, reading: MasterReading) -> Losses:
        """Return what ports lose of their current P_Keys if opensm starts with our partitions.

        A port without a LID belongs to no fabric yet, and loses nothing. Without a master, an unread table counts as the usual one.
        """
        after = parse_partitions(self.instance.partitions)
        found = self._discover()
        if found is None:
            why = f"the ports of the fabric could not be read: {'; '.join(self.tools.problems)}"
            return Losses(unknown=[why] if reading.master is not None or reading.why_unknown is not None else [])
        lost: list[Loss | Change] = []
        unknown = []
        members: dict[str, list[str]] = {"limited": [], "full": []}
        first = [key for key, settings in parse_settings(self.instance.partitions).items() if "indx0" in settings]
        managers = {self.instance.guid, *self.instance.managers, *(each.guid for each in (reading.master, *reading.others) if each)}
        for port in (each for each in found if each.lid is not None):
            table = self.tools.run("smpquery", ["-D", "pkeys", ",".join(map(str, port.path)), str(port.number)], parse_pkeys)
            before: Keys = {DEFAULT_KEY: "full"}
            if table is not None:
                before = {key.key: "limited" for key in table if not key.full}
                before.update({key.key: "full" for key in table if key.full})
                if port.guid not in managers and DEFAULT_KEY in before:
                    members[before[DEFAULT_KEY]].append(self._label(port.guid, port.description))
            elif reading.master is not None or reading.why_unknown is not None:
                unknown.append(f"the P_Keys of {self._label(port.guid, port.description)} could not be read")
            planned = keys_of(after, FabricPort(port.guid, is_manager=port.guid == self.instance.guid))
            lost += losses(port.guid, before, planned)
            at_0 = next((key.key for key in table or () if key.index == 0), None)
            moved = [key for key in first if key in planned and at_0 is not None]
            lost += [Change(port.guid, key, f"replaces 0x{at_0:04x} at index 0") for key in moved if key != at_0]
        done = self._losses(lost, {port.guid: port.description for port in found})
        return replace(done, unknown=unknown, limited=members["limited"], full=members["full"])

    def _losses(self, lost: Sequence[Loss | Change], descriptions: Mapping[str, str | None]) -> Losses:
        by_port: dict[str, list[str]] = {}
        for loss in lost:
            by_port.setdefault(loss.guid, []).append(str(loss))
        words = [f"{self._label(guid, descriptions.get(guid))}: {', '.join(each)}" for guid, each in by_port.items()]
        hosts = dict.fromkeys(self.fleet.ports[guid].split()[0] for guid in by_port if guid in self.fleet.ports)
        return Losses(words, list(hosts), outside=any(guid not in self.fleet.ports for guid in by_port))

    def _label(self, guid: str, description: str | None) -> str:
        if guid == OTHERS:
            return OTHERS
        known = self.fleet.ports.get(guid)
        return f"{known} ({guid})" if known else f"{guid} ({description!r}, not in the inventory)" if description else guid

    def _discover(self) -> list[FoundHostPort] | None:
        discovery = self.tools.run("ibnetdiscover", [], parse_ibnetdiscover)
        return None if discovery is None else list(host_ports(discovery, int(self.instance.number)))


def _port_with_lid(discovery: Discovery, own_guid: str) -> str | None:
    """Return the first node other than our port to which a subnet manager assigned a LID, in words."""
    for node in discovery.nodes:
        lids = [node.lid] if node.kind == "switch" else [port.lid for port in node.ports if port.guid != own_guid]
        lid = next((each for each in lids if each is not None), None)
        if lid is not None:
            return f"{node.description or node.guid!r} has LID {lid}"
    return None


def host_ports(discovery: Discovery, start_port: int) -> Iterator[FoundHostPort]:
    """Yield the linked ports of hosts and routers, each with its shortest direct route from the querying port (breadth first)."""
    nodes = {node.guid: node for node in discovery.nodes}
    start = nodes.get(discovery.start or "")
    if start is None:
        return
    first = next((port for port in start.ports if port.number == start_port), None)
    if first is None or first.end is None:
        return
    yield FoundHostPort(first.guid or start.guid, start_port, start.description, first.lid, (0,))
    seen = {(start.guid, start_port)}
    queue: list[tuple[FoundNode | None, int, tuple[int, ...]]] = [(nodes.get(first.end.guid), first.end.port, (0, start_port))]
    while queue:
        node, entry, path = queue.pop(0)
        if node is None or (node.guid, entry if node.kind != "switch" else 0) in seen:
            continue
        seen.add((node.guid, entry if node.kind != "switch" else 0))
        if node.kind != "switch":
            port = next((each for each in node.ports if each.number == entry), None)
            yield FoundHostPort((port.guid if port else None) or node.guid, entry, node.description, port.lid if port else None, path)
            continue
        queue += [(nodes.get(port.end.guid), port.end.port, (*path, port.number)) for port in node.ports if port.end is not None]
