# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The graph of a fabric: switches, HCAs and the links between their ports, from any tool."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import clean
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.words import rate_gbps

SCHEMA = 1
SWITCH, HOST, ROUTER, AGGREGATION = "switch", "host", "router", "aggregation"
KINDS = frozenset({SWITCH, HOST, ROUTER, AGGREGATION})
#: The longest name of a node, a port or a plane, in characters: that of a host in DNS.
LONGEST_NAME, LONGEST_PROBLEM, SHOWN = 255, 1000, 80
#: An InfiniBand subnet has 49151 unicast LIDs; no tool writes a larger graph, or a counter of more than 64 bits.
MOST_NODES, MOST_LINKS, MOST_PORTS, MOST_ENTRIES, MOST_COUNTERS, MOST_PROBLEMS = 50_000, 500_000, 1024, 50_000, 200, 200
LARGEST_COUNT = 2**64 - 1
T = TypeVar("T")

#: One end of a link: a node's GUID and the number of its port.
End = tuple[str, int]


@dataclass(frozen=True)
class Port:
    """A port; None: unknown. width: lanes; speed: "NDR"; could_be: (lanes, speed) that both ends support but the link does not use.

    guid and lid: an HCA's; state and physical: the kernel's words, "ACTIVE", "LinkUp". counters: by perfquery's names, only reported ones.
    label: an Ethernet switch's name for the port; the number is derived from it.
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
    """A node; kind: SWITCH | HOST | ROUTER | AGGREGATION. name: for messages, the GUID for an unnamed node; lid: a switch's."""

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
        """Return whether it has its own name."""
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
        """Return 10^9 bit/s over all lanes by the kernel's calculation (4X EDR: 100), None if width or speed is unknown."""
        return rate_gbps(self.width, self.speed)


@dataclass(frozen=True)
class Form:
    """A source's form of GUIDs, and its largest port number."""

    guid: re.Pattern[str]
    last_port: int


#: InfiniBand has 8 bits for the number of a port; LLDP has names, from which numbers and GUIDs are derived.
_FORMS = {"ibnetdiscover": Form(re.compile(r"0x[0-9a-f]{16}"), 255), "lldp": Form(re.compile(r".+"), 2**63 - 1)}
SOURCES = tuple(_FORMS)
_DIGITS = re.compile(r"0|[1-9][0-9]{0,18}", re.ASCII)


@dataclass(frozen=True)
class Twin:
    """One of several nodes that have the same GUID. description: its own description; behind: the switch's port that leads to it."""

    description: str
    behind: End


@dataclass(frozen=True)
class Graph:
    """One plane. source: "ibnetdiscover" | "lldp"; problems: data that could not be read, as sentences; complete is False then.

    doubles: GUID → the nodes that have it; the graph has one of them with cables of both. complete is False then, too.
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
    def _neighbors(self) -> dict[str, list[str]]:
        found: dict[str, set[str]] = defaultdict(set)
        for (guid, _port), (other, _other_port) in self._peers.items():
            found[guid].add(other)
        return {guid: sorted(others) for guid, others in found.items()}

    def peer(self, guid: str, port: int) -> End | None:
        """Return the other end of the cable in a port."""
        return self._peers.get((guid, port))

    def neighbors(self, guid: str) -> list[str]:
        """Return the GUIDs of the nodes at the other ends of a node's links, each once and in order."""
        return self._neighbors.get(guid, [])

    def leaves(self) -> list[Node]:
        """Return the switches with hosts on them."""
        return [
            node
            for node in self.nodes.values()
            if node.kind == SWITCH and any(self.nodes[other].kind == HOST for other in self.neighbors(node.guid))
        ]

    def hosts(self) -> dict[str, list[Node]]:
        """Return the HCAs of each host by its name; unnamed HCAs are grouped by the GUID of their system."""
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
        """Return the port's name on the switch: "14", "swp14"."""
        node = self.nodes.get(guid)
        found = node.ports.get(port) if node is not None else None
        return found.label if found is not None and found.label is not None else str(port)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON without unknown values; counters are lists after the number of their list of names, without trailing zeros."""
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
    def from_dict(cls, data: Any) -> Graph:
        """Return the graph; the inverse of to_dict. Raises ParseError for another schema or an invalid tree.

        A host has created the tree, partly from data of its neighbors. So every value is checked for type and range, and every name becomes
        one printable line of limited length.
        """
        try:
            return _graph(data)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError, RecursionError) as exc:
            raise ParseError(clean(f"not the tree of a graph: {type(exc).__name__} {exc}", LONGEST_PROBLEM)) from exc


_NODE_KEYS = ("kind", "name", "description", "device", "system_guid", "vendor_id", "device_id", "lid")
_PORT_KEYS = ("guid", "lid", "lmc", "state", "physical", "width", "speed", "could_be", "label")


def _without_none(item: object, keys: tuple[str, ...]) -> dict[str, Any]:
    values = ((key, getattr(item, key)) for key in keys)
    return {key: list(value) if isinstance(value, tuple) else value for key, value in values if value is not None}


def _node_dict(node: Node, sets: dict[tuple[str, ...], int]) -> dict[str, Any]:
    ports = {}
    for number, port in node.ports.items():
        packed = _without_none(port, _PORT_KEYS)
        if port.counters:
            packed["counters"] = [sets.setdefault(tuple(port.counters), len(sets)), *_trimmed(list(port.counters.values()))]
        ports[str(number)] = packed
    return {**_without_none(node, _NODE_KEYS), "ports": ports}


def _trimmed(values: list[int]) -> list[int]:
    """Return the list without trailing zeros: most ports have counted no error."""
    while values and not values[-1]:
        values.pop()
    return values


def _graph(data: Any) -> Graph:
    schema = _sized(data, dict).get("schema")
    if _number(schema) != SCHEMA:
        raise ValueError(f"schema {schema}, expected {SCHEMA}")
    source = _typed(data["source"], str)
    if source not in SOURCES:
        raise ValueError(f"source {_shown(source)}, expected one of {', '.join(SOURCES)}")
    form = _FORMS[source]
    names = [[_name(name) for name in _sized(each, list, MOST_COUNTERS)] for each in _sized(data["counter_names"], list)]
    packed = _sized(data["nodes"], dict, MOST_NODES)
    nodes = {(node := _node(guid, each, names, form)).guid: node for guid, each in packed.items()}
    if len(nodes) < len(packed):
        raise ValueError("two nodes have the same GUID")
    links = [_link(link, nodes) for link in _sized(data["links"], list, MOST_LINKS)]
    # Graphs of earlier versions, kept from an earlier run, have none.
    doubles = {
        _guid(guid, form): [_twin(twin, nodes) for twin in _sized(twins, list)]
        for guid, twins in _sized(data.get("doubles", {}), dict).items()
    }
    problems = _sized(data["problems"], list, MOST_NODES)
    kept = [clean(_typed(each, str), LONGEST_PROBLEM) for each in problems[:MOST_PROBLEMS]]
    if len(problems) > MOST_PROBLEMS:
        kept.append(f"{len(problems) - MOST_PROBLEMS} more problems")
    complete = _typed(data["complete"], bool) and not kept and not doubles
    return Graph(_name(data["plane"]), nodes, links, source, complete, kept, doubles)


def _node(guid: Any, item: Any, names: list[list[str]], form: Form) -> Node:
    _sized(item, dict)
    ports = {}
    for key, port in _sized(item["ports"], dict, MOST_PORTS).items():
        if _DIGITS.fullmatch(_typed(key, str)) is None or int(key) > form.last_port:
            raise ValueError(f"port {_shown(key)}, expected a number up to {form.last_port}")
        ports[int(key)] = _port(int(key), port, names, form)
    if item["kind"] not in KINDS:
        raise ValueError(f"kind {_shown(item['kind'])}, expected one of {', '.join(sorted(KINDS))}")
    return Node(guid=_guid(guid, form), **{**_values(item, ("ports",), form), "name": _name(item["name"]), "ports": ports})


def _port(number: int, item: Any, names: list[list[str]], form: Form) -> Port:
    packed, could_be = _sized(item, dict).get("counters"), item.get("could_be")
    counters = _counters(packed, names) if packed is not None else {}
    could: tuple[int | None, str | None] | None = None
    if could_be is not None:
        width, speed = _sized(could_be, list, 2)
        own = _values({"width": width, "speed": speed}, (), form)
        could = own["width"], own["speed"]
    return Port(number=number, could_be=could, counters=counters, **_values(item, _APART, form))


def _counters(packed: Any, names: list[list[str]]) -> dict[str, int]:
    chosen, *values = _sized(packed, list, MOST_COUNTERS + 1)
    called = names[_number(chosen)]
    if len(values) > len(called):
        raise ValueError(f"{len(values)} counters of {len(called)} names")
    return {**dict.fromkeys(called, 0), **dict(zip(called, map(_number, values)))}


#: The largest values of a node or a port that are numbers; the others are texts.
_NUMBERS = {"vendor_id": 2**32 - 1, "device_id": 2**32 - 1, "lid": 2**16 - 1, "lmc": 7, "width": 64}
_GUIDS = frozenset({"guid", "system_guid"})
#: The values of a port that are lists.
_APART = ("counters", "could_be")


def _values(item: Mapping[str, Any], apart: tuple[str, ...], form: Form) -> dict[str, Any]:
    """Return the values of a node or a port, without those of `apart`."""
    return {key: None if value is None else _value(key, value, form) for key, value in item.items() if key not in apart}


def _value(key: str, value: Any, form: Form) -> Any:
    if key in _NUMBERS:
        return _number(value, _NUMBERS[key])
    return _guid(value, form) if key in _GUIDS else _name(value)


def _link(item: Any, nodes: Mapping[str, Node]) -> Link:
    guid_a, port_a, guid_b, port_b, width, speed = _sized(item, list, 6)
    a, b = _end(guid_a, port_a, nodes), _end(guid_b, port_b, nodes)
    if a >= b:
        raise ValueError(f"a link from {a} to {b}: its ends are not in order")
    return Link(a, b, None if width is None else _number(width, _NUMBERS["width"]), None if speed is None else _name(speed))


def _twin(item: Any, nodes: Mapping[str, Node]) -> Twin:
    description, guid, port = _sized(item, list, 3)
    # ibnetdiscover omits a switch's port without a visible node behind it.
    if guid not in nodes:
        raise ValueError(f"a node behind {_shown(guid)}, which is not a node")
    return Twin(_name(description), (guid, _number(port)))


def _end(guid: Any, port: Any, nodes: Mapping[str, Node]) -> End:
    end = _name(guid), _number(port)
    if end[0] not in nodes or end[1] not in nodes[end[0]].ports:
        raise ValueError(f"a link ends at {end}, which is not a port")
    return end


def _guid(value: Any, form: Form) -> str:
    name = _name(value)
    if form.guid.fullmatch(name) is None:
        raise ValueError(f"GUID {_shown(name)}, expected the form {form.guid.pattern}")
    return name


def _name(value: Any) -> str:
    return clean(_typed(value, str), LONGEST_NAME)


def _number(value: Any, most: int = LARGEST_COUNT) -> int:
    if _typed(value, int) < 0 or value > most:
        raise ValueError(f"expected a number from 0 to {most}, got {_shown(value)}")
    return int(value)


def _typed(value: Any, kind: type[T]) -> T:
    # A boolean is an integer in Python.
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise TypeError(f"expected {kind.__name__}, got {_shown(value)}")
    return value


def _sized(value: Any, kind: type[T], most: int = MOST_ENTRIES) -> T:
    typed = _typed(value, kind)
    if len(value) > most:
        raise ValueError(f"expected at most {most} entries, got {len(value)}")
    return typed


def _shown(value: Any) -> str:
    """Return a refused value, short and printable. Python refuses to print integers of thousands of digits."""
    if isinstance(value, (dict, list)):
        return f"{type(value).__name__} of {len(value)}"
    if isinstance(value, int) and abs(value) > LARGEST_COUNT:
        return "an integer of more than 64 bits"
    return ascii(value[:SHOWN] if isinstance(value, str) else value)


_SHOWN = 3


def merged(plane: str, graphs: Sequence[Graph]) -> Graph:
    """Merge the graphs of hosts that each know their own neighbors, or of two hosts on one fabric."""
    nodes: dict[str, Node] = {}
    links: dict[tuple[End, End], Link] = {}
    for graph in graphs:
        for guid, node in graph.nodes.items():
            known = nodes.get(guid)
            nodes[guid] = node if known is None else replace(known, ports={**node.ports, **known.ports})
        for link in graph.links:
            links.setdefault((link.a, link.b), link)
    problems = [problem for graph in graphs for problem in graph.problems]
    problems += shared_ends(nodes, links)
    if graphs and not links:
        problems.append("no host found a link of its own")
    source = graphs[0].source if graphs else "lldp"
    complete = bool(graphs) and not problems and all(graph.complete for graph in graphs)
    ordered = {guid: replace(nodes[guid], ports=dict(sorted(nodes[guid].ports.items()))) for guid in sorted(nodes)}
    return Graph(plane, ordered, [links[key] for key in sorted(links)], source, complete, problems)


def shared_ends(nodes: Mapping[str, Node], links: Iterable[tuple[End, End]]) -> list[str]:
    """Return a problem if several links end at one port, which takes one cable."""
    ends = Counter(end for link in links for end in link)
    twice = sorted(f"{nodes[end[0]].name} port {end[1]}" for end, count in ends.items() if count > 1)
    return [f"several links end at the same port: {', '.join(twice[:_SHOWN])}"] if twice else []
