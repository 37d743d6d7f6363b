# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The hosts' readings of the fabrics in this run, in the run folder: one file for each reader.

fabric/PLANE/graphs/HOST.json and fabric/PLANE/managers/HOST.json: the answers of fabric_facts on an InfiniBand plane.
fabric/PLANE/loaded/HOST.json: the answer after the load of the pairs stage. lldp/HOST.json: Ethernet.
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
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.manager_views import Seen
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder, natural

GRAPHS, MANAGERS, LOADED = "graphs", "managers", "loaded"
LLDP = "lldp"
#: The fabric stage's output for the pairs stage of the same run: {"schema": 1, "planes": graphs as of Graph.to_dict}. paths_of also takes
#: "routes": plane → switch GUID → LID → port.
FABRIC = "fabric.json"
#: The number of hosts that read a plane. The second one reads it only if the first reading is incomplete.
READERS = 2
#: The maximum number of hosts of a plane that are considered as readers, in order.
CANDIDATES = 8
#: Kinds of subnet manager that must exist.
MANAGED = ("hosts", "switch")

#: From this m_key_protection_level on, a port does not answer reads without the M_Key.
READ_PROTECTED = 2


def folder_of(what: str, plane: str) -> str:
    return f"fabric/{plane}/{what}"


def readings(folder: RunFolder, name: str) -> dict[str, Reading]:
    """Return host → its reading, from one of the folders above. A damaged file counts as a rejected answer."""
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
    """Return whether a reading is complete."""
    return reading.managers is not None if what == MANAGERS else reading.graph is not None and reading.graph.complete


def _is_whole_file(folder: RunFolder, name: str, what: str) -> bool:
    """Return the same for a file of reading_of, without a full check.

    Every host of a run calls this, and a full check of a large graph is slow.
    """
    try:
        kept = folder.read_json(name)
        return kept["subnet_managers"] is not None if what == MANAGERS else kept["graph"]["complete"] is True
    except (ParseError, KeyError, TypeError):
        return False


def reading_of(what: str, plane: str, host: str, answer: Mapping[str, Any]) -> Reading:
    """Return the reading to store of an answer of fabric_facts. If the module failed, it is empty and its message is the reason."""
    graph = what != MANAGERS
    if answer.get("failed"):
        why = clean(next(iter(str(answer.get("msg") or "").strip().splitlines()), "fabric_facts failed"))
        return Reading(Graph(plane, {}, [], "ibnetdiscover", False, [why]) if graph else None, None, why, 0.0)
    try:
        # Only our own files may state that an answer was rejected.
        reading = replace(admitted(answer, graph=graph), refused=None)
    except GraphError as error:
        return refused_reading(plane, host, str(error), graph=graph)
    # The control node sets the plane: it is the one that it has requested.
    return reading if reading.graph is None else replace(reading, graph=replace(reading.graph, plane=plane))


def refused_answers(folder: RunFolder, stage: str, check: str, what: str) -> dict[str, list[Finding]]:
    """Return host → findings on its rejected answers. what: GRAPHS including LLDP neighbors, or another of the kinds above."""
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
    """Return plane → device and port for each InfiniBand plane that can be read from a host, with a port whose link is up.

    what: MANAGERS omits planes without a planned subnet manager.
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
    """Return plane → the Ethernet rails of a host that are hardware and have an interface."""
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
    """Return the host that reads a plane next, None if enough have. The hosts of the run folder are known by intent and facts.

    If an M_Key protects a plane from reading, only the hosts of its subnet manager can read it: no other host has the key.
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
    """Return the most complete graph, and when it was read, in seconds since 1970. None if no host has read one."""
    if not there:
        return None
    graphs = [(each.graph, each.read_at) for each in there.values() if each.graph is not None]
    return max(graphs, key=lambda each: (each[0].complete, len(each[0].links)))


def seen_managers(folder: RunFolder) -> dict[str, Seen]:
    """Return plane → its subnet managers as seen by the host with a complete reading, else by the last one."""
    found = {}
    for path in sorted(folder.path.glob(f"fabric/*/{MANAGERS}")):
        there = list(readings(folder, folder_of(MANAGERS, path.parent.name)).values())
        there.sort(key=lambda each: is_whole(MANAGERS, each))
        if there:
            found[path.parent.name] = Seen(there[-1].managers, there[-1].why_not)
    return found
