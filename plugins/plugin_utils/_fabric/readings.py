# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What hosts have read of the fabrics in this run, as the run's folder keeps it: each reader a file of its own.

fabric/PLANE/graphs/HOST.json and fabric/PLANE/managers/HOST.json are what fabric_facts returned of an InfiniBand plane,
fabric/PLANE/loaded/HOST.json what it returned after the load of the pairs stage; lldp/HOST.json of Ethernet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent, subnet_manager_of
from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import clean
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.graph import Graph
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import ResolvedRail, resolve
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.entry import (
    GraphError,
    Reading,
    admitted,
    graph_finding,
    refused_reading,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.expected import is_virtual
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.managers import Seen
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder, natural

GRAPHS, MANAGERS, LOADED = "graphs", "managers", "loaded"
LLDP = "lldp"
#: What the fabric stage leaves to the pairs stage of the same run: {"schema": 1, "planes": graphs as of Graph.to_dict}; paths_of also takes
#: "routes": plane → switch's GUID → LID → port.
FABRIC = "fabric.json"
#: So many hosts ask a plane, the second one if the first was not told all.
READERS = 2
#: So many hosts of a plane are looked at, in order, for one that can ask it.
CANDIDATES = 8
#: Kinds of subnet manager that somebody is to be.
MANAGED = ("hosts", "switch")

#: From this m_key_protection_level on a port does not answer reads without the M_Key.
READ_PROTECTED = 2


def folder_of(what: str, plane: str) -> str:
    return f"fabric/{plane}/{what}"


def readings(folder: RunFolder, name: str) -> dict[str, Reading]:
    """Host → what it has read, of one of the folders above. A damaged file counts as an answer that is refused."""
    graph = not name.endswith(f"/{MANAGERS}")
    found = {}
    for host, file in _files(folder, name).items():
        try:
            found[host] = admitted(folder.read_json(f"{name}/{file.name}"), graph=graph)
        except (ParseError, GraphError) as error:
            found[host] = refused_reading(name, host, str(error), graph=graph)
    return found


def _files(folder: RunFolder, name: str) -> dict[str, Path]:
    files = sorted((folder.path / name).glob("*.json"), key=lambda file: natural(file.stem))
    return {unquote(file.stem): file for file in files}


def is_whole(what: str, reading: Reading) -> bool:
    """Whether a reading tells all that was asked for."""
    return reading.managers is not None if what == MANAGERS else reading.graph is not None and reading.graph.complete


def _is_whole_file(folder: RunFolder, name: str, what: str) -> bool:
    """The same of a file of reading_of. Every host of a run asks, and the whole check of a large graph takes a while."""
    try:
        kept = folder.read_json(name)
        return kept["subnet_managers"] is not None if what == MANAGERS else kept["graph"]["complete"] is True
    except (ParseError, KeyError, TypeError):
        return False


def reading_of(what: str, plane: str, host: str, said: Mapping[str, Any]) -> Reading:
    """What to keep of what the module fabric_facts has returned; one that failed has read nothing, and its message says why."""
    graph = what != MANAGERS
    if said.get("failed"):
        why = clean(next(iter(str(said.get("msg") or "").strip().splitlines()), "fabric_facts failed"))
        return Reading(Graph(plane, {}, [], "ibnetdiscover", False, [why]) if graph else None, None, why, 0.0)
    try:
        # Only our own files may say that an answer was refused.
        reading = replace(admitted(said, graph=graph), refused=None)
    except GraphError as error:
        return refused_reading(plane, host, str(error), graph=graph)
    # Which plane it is, the control node has asked for.
    return reading if reading.graph is None else replace(reading, graph=replace(reading.graph, plane=plane))


def refused_answers(folder: RunFolder, stage: str, check: str, what: str) -> dict[str, list[Finding]]:
    """Host → findings on its answers that were refused. what: GRAPHS with the neighbors of Ethernet, or another of the kinds above."""
    planes = {path.parent.name: folder_of(what, path.parent.name) for path in sorted(folder.path.glob(f"fabric/*/{what}"))}
    if what == GRAPHS:
        planes[LLDP] = LLDP
    found: dict[str, list[Finding]] = {}
    for plane, name in planes.items():
        for host, reading in readings(folder, name).items():
            if reading.refused is not None:
                found.setdefault(host, []).append(graph_finding(stage, check, host, plane, reading.refused))
    return found


def ports_of(intent: Intent, facts: Facts, what: str) -> dict[str, tuple[str, int]]:
    """The InfiniBand planes of a host that can be asked from it: plane → device and port, one whose cable carries.

    what: MANAGERS leaves out planes whose subnet manager nobody has planned.
    """
    found: dict[str, tuple[str, int]] = {}
    for rail in _rails(intent, facts, "infiniband"):
        plane = str(rail.rail["plane"])
        manager = subnet_manager_of(intent, plane)
        if rail.device is None or rail.port is None or (what == MANAGERS and (manager is None or manager["kind"] not in MANAGED)):
            continue
        device = facts.devices[rail.device]
        if device.ports[rail.port].physical_state == "LinkUp" and not is_virtual(device):
            found.setdefault(plane, (rail.device, int(rail.port)))
    return found


def ethernet(intent: Intent, facts: Facts) -> dict[str, list[ResolvedRail]]:
    """Plane → the rails of a host on Ethernet that are no software and have an interface."""
    found: dict[str, list[ResolvedRail]] = {}
    for rail in _rails(intent, facts, "roce"):
        if rail.netdev is not None:
            found.setdefault(str(rail.rail["plane"]), []).append(rail)
    return found


def _rails(intent: Intent, facts: Facts, link_layer: str) -> Iterator[ResolvedRail]:
    for rail in resolve(intent["rails"], facts):
        software = rail.rail.get("soft") or (rail.device and facts.devices[rail.device].software)
        if rail.rail["link_layer"] == link_layer and not software:
            yield rail


def reader(folder: RunFolder, what: str, plane: str, playing: Iterable[str]) -> str | None:
    """The host that is to ask a plane next, None if enough have; hosts of the run's folder are known by intent and facts.

    If an M_Key protects a plane from reading, only the hosts of its subnet manager can: the key is on no other host.
    """
    name = folder_of(what, plane)
    there = _files(folder, name)
    if len(there) >= READERS or any(_is_whole_file(folder, f"{name}/{file.name}", what) for file in there.values()):
        return None
    candidates = 0
    for host in playing:
        intent: Intent | None = folder.read_if_there(folder.host_file("intent", host))
        if host in there or intent is None or not any(rail["plane"] == plane for rail in intent["rails"]):
            continue
        manager = subnet_manager_of(intent, plane)
        if manager is not None and manager["m_key_protection_level"] >= READ_PROTECTED and host not in manager["hosts"]:
            continue
        candidates += 1
        facts = folder.read_if_there(folder.host_file("facts", host))
        if facts is not None and plane in ports_of(intent, from_dict(facts), what):
            return host
        if candidates >= CANDIDATES:
            break
    return None


def best_graph(there: Mapping[str, Reading]) -> tuple[Graph, float] | None:
    """The graph that tells most, and when it was read, in seconds since 1970; None if nobody was asked."""
    if not there:
        return None
    graphs = [(each.graph, each.read_at) for each in there.values() if each.graph is not None]
    return max(graphs, key=lambda each: (each[0].complete, len(each[0].links)))


def seen_managers(folder: RunFolder) -> dict[str, Seen]:
    """Plane → what was told of its subnet managers, by the host that was told all, or by the last one."""
    found = {}
    for path in sorted(folder.path.glob(f"fabric/*/{MANAGERS}")):
        there = list(readings(folder, folder_of(MANAGERS, path.parent.name)).values())
        there.sort(key=lambda each: is_whole(MANAGERS, each))
        if there:
            found[path.parent.name] = Seen(there[-1].managers, there[-1].why_not)
    return found
