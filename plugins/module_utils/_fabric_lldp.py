# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The graph of an Ethernet fabric out of the neighbours that hosts and switches see by LLDP."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from ansible_collections.rdma.cluster.plugins.module_utils._fabric_graph import HOST, SWITCH, End, Graph, Link, Node, Port
from ansible_collections.rdma.cluster.plugins.module_utils._fabric_merge import shared_ends
from ansible_collections.rdma.cluster.plugins.module_utils._lldpcli import Neighbour

SOURCE = "lldp"
_NUMBERS = re.compile(r"([0-9]+(?:[^0-9a-zA-Z]+[0-9]+|s[0-9]+)*)([a-h]?)$")
_MAC = re.compile(r"(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}")
_PROTOCOL = "LLDP"


def lldp_graph(plane: str, views: Mapping[str, Sequence[Neighbour]], switches: Collection[str] = ()) -> Graph:
    """views: system → the neighbours that it sees; switches: which of those systems are switches.

    A switch is known by its chassis id, a host's interface by "node17 ens1f0np0"; both ends of a link may see each other.
    """
    chassis = {near.system: near.chassis_id for seen in views.values() for near in seen if near.system and near.chassis_id}
    nodes: dict[str, Node] = {}
    links: dict[tuple[End, End], Link] = {}
    problems: list[str] = []
    for system, seen in views.items():
        for near in _single(system, seen, problems):
            here = _end(nodes, system, chassis.get(system), system in switches, near.interface)
            if near.chassis_id is None or near.port_id is None:
                problems.append(f"{system} {near.interface}: its neighbour {near.system or '?'} does not tell its port")
                continue
            label = near.port_description if near.port_type == "mac" and near.port_description else near.port_id
            there = _end(nodes, near.system or near.chassis_id, near.chassis_id, _is_switch(near, views, switches), label)
            links[min(here, there), max(here, there)] = Link(min(here, there), max(here, there))
    problems += shared_ends(nodes, links)
    ordered = {guid: nodes[guid] for guid in sorted(nodes)}
    return Graph(plane, ordered, [links[key] for key in sorted(links)], SOURCE, not problems, problems)


def _is_switch(near: Neighbour, views: Mapping[str, Sequence[Neighbour]], switches: Collection[str]) -> bool:
    if near.system in views:
        return near.system in switches
    told = near.capabilities
    # A host may route, too.
    return bool(told.get("Bridge") or (told.get("Router") and not told.get("Station")))


def _single(system: str, seen: Sequence[Neighbour], problems: list[str]) -> list[Neighbour]:
    """Of each interface its one neighbour; an interface that sees several is a problem, since a cable has two ends."""
    by_interface: dict[str, list[Neighbour]] = {}
    for near in seen:
        by_interface.setdefault(near.interface, []).append(near)
    found = []
    for interface, several in by_interface.items():
        said = [near for near in several if near.via in (_PROTOCOL, None)] or several
        if len(said) > 1:
            names = ", ".join(str(near.system or near.chassis_id) for near in said[:3])
            problems.append(f"{system} {interface} sees {len(said)} neighbours at once: {names}")
        else:
            found += said
    return found


def _end(nodes: dict[str, Node], system: str, chassis: str | None, switch: bool, label: str) -> End:
    guid, number = (chassis or system, port_number(label)) if switch else (f"{system} {label}", 1)
    node = nodes.get(guid) or Node(guid, SWITCH if switch else HOST, system, device=None if switch else label)
    nodes[guid] = replace(node, ports={**node.ports, number: Port(number, label=label)})
    return guid, number


def port_number(label: str) -> int:
    """A number for what a switch calls a port, the same in every run: "swp14" → 14, "swp1s2" → 1002, "25GE1/0/39" → 1000039.

    A part of a split port may have a letter, as SONiC calls it: "etp1b" → 1002. Of a name with more numbers than a port has, the last ones
    count: the number fits in 63 bits.
    """
    if _MAC.fullmatch(label):
        return int(label.replace(":", ""), 16)
    match = _NUMBERS.search(label)
    if match is None:
        return 0
    told, letter = match.groups()
    number = 0
    for digits in [*re.findall(r"[0-9]+", told), *([str("abcdefgh".index(letter) + 1)] if letter else [])]:
        number = (number * 1000 + int(digits[-9:])) % 10**18
    return number
