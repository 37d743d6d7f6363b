# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The graph of a fabric: switches, HCAs and the links between their ports, whatever tool told of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from ansible_collections.rdma.cluster.plugins.module_utils._errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._fabric_words import rate_gbps
from ansible_collections.rdma.cluster.plugins.module_utils._lines import clean

SCHEMA = 1
SWITCH, HOST, ROUTER, AGGREGATION = "switch", "host", "router", "aggregation"
KINDS = frozenset({SWITCH, HOST, ROUTER, AGGREGATION})
#: The longest name of a node, a port or a plane, in characters: that of a host in DNS.
LONGEST_NAME = 255
T = TypeVar("T")

#: One end of a link: a node's GUID and the number of its port.
End = tuple[str, int]


@dataclass(frozen=True)
class Port:
    """A port; None: not told. width: lanes; speed: "NDR"; could_be: (lanes, speed) that both ends could do and the link does not.

    guid and lid: an HCA's; state and physical: the kernel's words, "ACTIVE", "LinkUp". counters: by perfquery's names, only what was
    told. label: what an Ethernet switch calls the port, whose number is made of it.
    """

    number: int
    guid: str | None = None
    lid: int | None = None
    lmc: int | None = None
    state: str | None = None
    physical: str | None = None
    width: int | None = None
    speed: str | None = None
    could_be: tuple[int | None, str | None] | None = None
    counters: dict[str, int] = field(default_factory=dict)
    label: str | None = None


@dataclass(frozen=True)
class Node:
    """A node; kind: SWITCH | HOST | ROUTER | AGGREGATION. name: for a person, the GUID where nobody gave one; lid: a switch's."""

    guid: str
    kind: str
    name: str
    description: str | None = None
    device: str | None = None
    system_guid: str | None = None
    vendor_id: int | None = None
    device_id: int | None = None
    lid: int | None = None
    ports: dict[int, Port] = field(default_factory=dict)

    @property
    def named(self) -> bool:
        """Whether it has a name of its own."""
        return self.name != self.guid


@dataclass(frozen=True)
class Link:
    """A link, its ends in order (a < b). width: lanes; speed: "NDR"."""

    a: End
    b: End
    width: int | None = None
    speed: str | None = None

    @property
    def rate_gbps(self) -> float | None:
        """10^9 bit/s over all lanes as the kernel reckons them (4X EDR: 100), None if width or speed is not told."""
        return rate_gbps(self.width, self.speed)


@dataclass(frozen=True)
class Twin:
    """One of several nodes that have the same GUID. description: what it calls itself; behind: the switch's port that leads to it."""

    description: str
    behind: End


@dataclass(frozen=True)
class Graph:
    """One plane. source: "ibnetdiscover" | "lldp"; problems: what could not be read, as sentences; complete is False then.

    doubles: GUID → the nodes that have it, of which the graph has one with cables of both; complete is False then, too.
    """

    plane: str
    nodes: dict[str, Node]
    links: list[Link]
    source: str
    complete: bool = True
    problems: list[str] = field(default_factory=list)
    doubles: dict[str, list[Twin]] = field(default_factory=dict)

    @cached_property
    def _peers(self) -> dict[End, End]:
        return {end: other for link in self.links for end, other in ((link.a, link.b), (link.b, link.a))}

    @cached_property
    def _neighbours(self) -> dict[str, list[str]]:
        found: dict[str, set[str]] = defaultdict(set)
        for (guid, _port), (other, _other_port) in self._peers.items():
            found[guid].add(other)
        return {guid: sorted(others) for guid, others in found.items()}

    def peer(self, guid: str, port: int) -> End | None:
        """The other end of what is plugged into a port."""
        return self._peers.get((guid, port))

    def neighbours(self, guid: str) -> list[str]:
        """The GUIDs of the nodes at the other ends of a node's links, once each and in order."""
        return self._neighbours.get(guid, [])

    def leaves(self) -> list[Node]:
        """The switches that hosts are plugged into."""
        return [
            node
            for node in self.nodes.values()
            if node.kind == SWITCH and any(self.nodes[other].kind == HOST for other in self.neighbours(node.guid))
        ]

    def hosts(self) -> dict[str, list[Node]]:
        """The HCAs of each host by its name; those of no name by what else they have in common, the GUID of their system."""
        hosts: dict[str, list[Node]] = {}
        systems: dict[str, str] = {}
        # Named ones first, so that an unnamed one finds the host that its system belongs to.
        for node in sorted(self.nodes.values(), key=lambda each: not each.named):
            if node.kind == HOST:
                system = node.system_guid or node.guid
                name = node.name if node.named else systems.get(system, node.name)
                systems.setdefault(system, name)
                hosts.setdefault(name, []).append(node)
        return hosts

    def port_name(self, guid: str, port: int) -> str:
        """What a person finds on the switch: "14", "swp14"."""
        node = self.nodes.get(guid)
        found = node.ports.get(port) if node is not None else None
        return found.label if found is not None and found.label is not None else str(port)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON without what was not told; counters are lists behind the number of their list of names, without zeros at the end."""
        sets: dict[tuple[str, ...], int] = {}
        nodes = {guid: _node_dict(node, sets) for guid, node in self.nodes.items()}
        return {
            "schema": SCHEMA,
            "plane": self.plane,
            "source": self.source,
            "complete": self.complete,
            "problems": list(self.problems),
            "doubles": {guid: [[twin.description, *twin.behind] for twin in twins] for guid, twins in self.doubles.items()},
            "counter_names": [list(names) for names in sets],
            "nodes": nodes,
            "links": [[*link.a, *link.b, link.width, link.speed] for link in self.links],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Graph:
        """The inverse of to_dict. Raises ParseError for another schema, and for what is not such a tree.

        A host has made the tree, partly of what its neighbours say. So every name becomes one line that prints, of bounded length.
        """
        if data.get("schema") != SCHEMA:
            raise ParseError(f"not a graph of schema {SCHEMA}: {data.get('schema')!r}")
        try:
            names = data["counter_names"]
            nodes = {(node := _node(guid, told, names)).guid: node for guid, told in data["nodes"].items()}
            if len(nodes) < len(data["nodes"]):
                raise ValueError("two nodes have one GUID")
            links = [_link(link, nodes) for link in data["links"]]
            # Graphs of earlier versions, which an earlier run may have kept, have none.
            told = data.get("doubles", {}).items()
            doubles = {_name(guid): [Twin(_name(twin[0]), (_name(twin[1]), _number(twin[2]))) for twin in twins] for guid, twins in told}
            problems = [clean(_typed(each, str)) for each in data["problems"]]
            return cls(_name(data["plane"]), nodes, links, _name(data["source"]), _typed(data["complete"], bool), problems, doubles)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as exc:
            raise ParseError(f"not the tree of a graph: {type(exc).__name__} {exc}") from exc


_NODE_KEYS = ("kind", "name", "description", "device", "system_guid", "vendor_id", "device_id", "lid")
_PORT_KEYS = ("guid", "lid", "lmc", "state", "physical", "width", "speed", "could_be", "label")


def _told(item: object, keys: tuple[str, ...]) -> dict[str, Any]:
    values = ((key, getattr(item, key)) for key in keys)
    return {key: list(value) if isinstance(value, tuple) else value for key, value in values if value is not None}


def _node_dict(node: Node, sets: dict[tuple[str, ...], int]) -> dict[str, Any]:
    ports = {}
    for number, port in node.ports.items():
        told = _told(port, _PORT_KEYS)
        if port.counters:
            told["counters"] = [sets.setdefault(tuple(port.counters), len(sets)), *_trimmed(list(port.counters.values()))]
        ports[str(number)] = told
    return {**_told(node, _NODE_KEYS), "ports": ports}


def _trimmed(values: list[int]) -> list[int]:
    """Without the zeros at the end: most ports have counted no error."""
    while values and not values[-1]:
        values.pop()
    return values


def _node(guid: str, told: Mapping[str, Any], names: list[list[str]]) -> Node:
    ports = {int(number): _port(int(number), port, names) for number, port in told["ports"].items()}
    if told["kind"] not in KINDS:
        raise ValueError(f"no kind of node: {str(told['kind'])[:80]!r}")
    return Node(guid=_name(guid), **{**_values(told, ("ports",)), "name": _name(told["name"]), "ports": ports})


def _port(number: int, told: Mapping[str, Any], names: list[list[str]]) -> Port:
    packed, could_be = told.get("counters"), told.get("could_be")
    counters = {**dict.fromkeys(names[packed[0]], 0), **dict(zip(names[packed[0]], packed[1:]))} if packed else {}
    for count in counters.values():
        _number(count)
    could = _values({"width": could_be[0], "speed": could_be[1]}, ()) if could_be else None
    return Port(number=number, could_be=(could["width"], could["speed"]) if could else None, counters=counters, **_values(told, _APART))


#: The values of a node or a port that are numbers; the others are texts.
_NUMBERS = frozenset({"vendor_id", "device_id", "lid", "lmc", "width"})
#: The values of a port that are lists.
_APART = ("counters", "could_be")


def _values(told: Mapping[str, Any], apart: tuple[str, ...]) -> dict[str, Any]:
    """The values of a node or a port, without those of `apart`."""
    known = {key: value for key, value in told.items() if key not in apart}
    return {key: None if value is None else _number(value) if key in _NUMBERS else _name(value) for key, value in known.items()}


def _link(told: Sequence[Any], nodes: Mapping[str, Node]) -> Link:
    a, b = (_name(told[0]), _number(told[1])), (_name(told[2]), _number(told[3]))
    for guid, _port in (a, b):
        if guid not in nodes:
            raise ValueError(f"a link ends at {guid!r}, which is no node")
    own = _values({"width": told[4], "speed": told[5]}, ())
    return Link(a, b, own["width"], own["speed"])


def _name(value: Any) -> str:
    return clean(_typed(value, str), LONGEST_NAME)


def _number(value: Any) -> int:
    return _typed(value, int)


def _typed(value: Any, kind: type[T]) -> T:
    if not isinstance(value, kind):
        raise TypeError(f"expected {kind.__name__}, got {str(value)[:80]!r}")
    return value
