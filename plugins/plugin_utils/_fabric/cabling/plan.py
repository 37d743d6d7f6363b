# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The cabling plan of a plane (rdma_fabric.planes.NAME.plan): text in, typed links out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import yaml

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import hint

TIERS = ("leaf", "spine", "core")
KEYS = ("switches", "links")
SWITCH_KEYS = ("guid", "tier")
LINK_KEYS = ("from", "to")
#: The highest port number, and the maximum number of ports in one range.
MOST_PORTS = 1024
#: In characters. The YAML reader takes seconds for a line of some MiB.
LONGEST_LINE = 128 * 1024
DEEPEST = 64
_GUID = re.compile(r"0x[0-9a-fA-F]{16}")
_PORTS = re.compile(r"[0-9]{1,4}(?:-[0-9]{1,4})?(?:,[0-9]{1,4}(?:-[0-9]{1,4})?)*")
_EXAMPLE = "write a switch port as 'leaf3/14' or 'leaf3/33-40', an HCA as 'node17 mlx5_3' or 'node17 mlx5_3/2'"


@dataclass(frozen=True)
class PlannedSwitch:
    """A switch. guid: "0x" and 16 lower-case hex digits, None if it is found by name. tier: one of TIERS, None if hop counts decide."""

    name: str
    guid: str | None = None
    tier: str | None = None


@dataclass(frozen=True)
class Spot:
    """One end of a planned cable: a port of a switch (device is None), or of a host's HCA."""

    name: str
    device: str | None
    port: int

    def __str__(self) -> str:
        if self.device is None:
            return f"{self.name} port {self.port}"
        return f"{self.name} {self.device}" + (f" port {self.port}" if self.port != 1 else "")


@dataclass(frozen=True)
class PlannedLink:
    """One cable, and the line of the file that plans it."""

    a: Spot
    b: Spot
    line: int


@dataclass(frozen=True)
class Plan:
    """The cabling of a plane."""

    switches: Mapping[str, PlannedSwitch]
    links: Sequence[PlannedLink]


def parse_plan(text: str, hosts: Sequence[str] = ()) -> Plan:
    """Return the plan in a file's text. hosts: the allowed host names; () allows any.

    Raises ParseError, which lists all problems with line and nearest name.
    """
    reader = _Reader(hosts)
    plan = reader.plan(text)
    if reader.problems:
        raise ParseError("the cabling plan: " + "; ".join(f"line {line}: {words}" for line, words in sorted(reader.problems)))
    return plan


def _refuse_endless(text: str) -> None:
    """Raise ParseError for lines and nesting that take the YAML reader seconds and that no plan needs."""
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > LONGEST_LINE:
            words = f"line {number} has {len(line)} characters, expected at most {LONGEST_LINE}: write one cable per line"
            raise ParseError(f"cannot read the cabling plan: {words}")
    depth = 0
    for bracket in re.findall(r"[\[\]{}]", text):
        depth = depth + 1 if bracket in "[{" else max(0, depth - 1)
        if depth > DEEPEST:
            raise ParseError(f"cannot read the cabling plan: more than {DEEPEST} nested brackets")


class _Reader:
    """Reads YAML nodes, which know their lines, and collects problems."""

    def __init__(self, hosts: Sequence[str]) -> None:
        self.hosts = hosts
        self.problems: list[tuple[int, str]] = []
        self.taken: dict[Spot, int] = {}
        self.switches: dict[str, PlannedSwitch] = {}

    def plan(self, text: str) -> Plan:
        _refuse_endless(text)
        try:
            root = yaml.compose(text, Loader=yaml.SafeLoader)
        except (yaml.YAMLError, ValueError, RecursionError) as exc:
            raise ParseError(f"the cabling plan is not valid YAML: {' '.join(str(exc).split())[:200]}") from exc
        if root is None:
            raise ParseError("the cabling plan is empty; it needs 'switches' and 'links'")
        parts = self._mapping(root, KEYS)
        for key, value in self._pairs(parts["switches"]) if "switches" in parts else ():
            self._switch(key, value)
        links = [link for item in self._items(parts.get("links")) for link in self._links(item)]
        if not self.problems and not links:
            self._problem(root, "no cable is planned: 'links' must be a list of {from, to}")
        return Plan(self.switches, links)

    def _problem(self, node: yaml.Node, words: str) -> None:
        self.problems.append((node.start_mark.line + 1, words))

    def _pairs(self, node: yaml.Node) -> Iterator[tuple[yaml.Node, yaml.Node]]:
        if not isinstance(node, yaml.MappingNode):
            self._problem(node, "expected a dictionary")
            return
        seen: set[str] = set()
        for key, value in node.value:
            name = self._text(key)
            if name in seen:
                self._problem(key, f"'{name}' occurs twice")
            elif name is not None:
                seen.add(name)
                yield key, value

    def _mapping(self, node: yaml.Node, known: Sequence[str]) -> dict[str, yaml.Node]:
        """Return the values of a dictionary by key. Other keys than the known ones are problems."""
        found = {}
        for key, value in self._pairs(node):
            if key.value in known:
                found[key.value] = value
            else:
                self._problem(key, f"'{key.value}' is not a key here: {hint(key.value, known, 'keys')}")
        return found

    def _items(self, node: yaml.Node | None) -> list[yaml.Node]:
        if node is None or isinstance(node, yaml.SequenceNode):
            return list(node.value) if node is not None else []
        self._problem(node, "expected a list of {from, to}")
        return []

    def _text(self, node: yaml.Node) -> str | None:
        if isinstance(node, yaml.ScalarNode) and node.value:
            return str(node.value)
        self._problem(node, "expected a string")
        return None

    def _switch(self, key: yaml.Node, node: yaml.Node) -> None:
        name = str(key.value)
        empty = isinstance(node, yaml.ScalarNode) and node.value in ("", "null", "~")
        values = {} if empty else {word: self._text(value) for word, value in self._mapping(node, SWITCH_KEYS).items()}
        guid, tier = values.get("guid"), values.get("tier")
        if guid is not None and _GUID.fullmatch(guid) is None:
            self._problem(node, f"the GUID of {name} must be '0x' and 16 hexadecimal digits, not '{guid}'")
        if tier is not None and tier not in TIERS:
            self._problem(node, f"'{tier}' is not a tier for {name}: {hint(tier, TIERS, 'tiers')}")
        same = [other.name for other in self.switches.values() if guid is not None and other.guid == guid.lower()]
        if same:
            self._problem(node, f"{name} and {same[0]} have the same GUID")
        self.switches[name] = PlannedSwitch(name, guid.lower() if guid else None, tier)

    def _links(self, item: yaml.Node) -> Iterator[PlannedLink]:
        ends = self._mapping(item, LINK_KEYS)
        missing = [key for key in LINK_KEYS if key not in ends]
        if missing:
            self._problem(item, f"a cable needs 'from' and 'to'; {' and '.join(missing)} is missing")
            return
        a, b = (self._spots(ends[key]) for key in LINK_KEYS)
        if len(a) != len(b):
            if a and b:
                self._problem(item, f"{len(a)} ports on one side and {len(b)} on the other")
            return
        for one, other in zip(a, b, strict=True):
            for spot in (one, other):
                self._take(spot, item)
            yield PlannedLink(one, other, item.start_mark.line + 1)

    def _take(self, spot: Spot, item: yaml.Node) -> None:
        if spot in self.taken:
            self._problem(item, f"{spot} already has a cable (line {self.taken[spot]})")
        self.taken.setdefault(spot, item.start_mark.line + 1)

    def _spots(self, node: yaml.Node) -> list[Spot]:
        text = self._text(node)
        if text is None:
            return []
        words = text.split(maxsplit=1)
        if len(words) == 2:
            return self._hca(node, *words)
        name, slash, ports = text.partition("/")
        if not slash or _PORTS.fullmatch(ports) is None:
            self._problem(node, f"'{text}' is not a cable end: {_EXAMPLE}")
            return []
        if name not in self.switches:
            self._problem(node, f"'{name}' is not one of the switches: {hint(name, self.switches, 'switches')}")
            return []
        return [Spot(name, None, port) for port in self._numbers(node, ports)]

    def _hca(self, node: yaml.Node, host: str, device: str) -> list[Spot]:
        if self.hosts and host not in self.hosts:
            self._problem(node, f"'{host}' is not one of the hosts: {hint(host, self.hosts, 'hosts')}")
            return []
        device, slash, port = device.partition("/")
        if slash and not port.isdecimal():
            self._problem(node, f"'{port}' is not a port: {_EXAMPLE}")
            return []
        return [Spot(host, device.strip(), int(port) if slash else 1)]

    def _numbers(self, node: yaml.Node, text: str) -> list[int]:
        found: list[int] = []
        for part in text.split(","):
            first, dash, last = part.partition("-")
            low, high = int(first), int(last if dash else first)
            if not 1 <= low <= high <= MOST_PORTS:
                self._problem(node, f"'{part}' is not a port range: write the lower number first, from 1 to at most {MOST_PORTS}")
                return []
            found += range(low, high + 1)
        return found
