# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse `lldpcli show neighbors -f json` and `-f json0` of lldpd, and `net show lldp json` of Cumulus, which is the latter."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import CommandError, Runner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.graph import HOST, SWITCH, End, Graph, Link, Node, Port, shared_ends

_FORM = "expected what `lldpcli show neighbors -f json` prints"


@dataclass(frozen=True)
class Neighbor:
    """The system at the other end of one of our interfaces.

    chassis_id and port_id have the form of their types ("mac", "ifname", "ifalias", "local"…); system: its own name; capabilities:
    "Bridge", "Router", "Station" → whether enabled, {} if it reports none; addresses: of its management; vlan: the PVID; via: the protocol,
    "LLDP", "CDPv2"…
    """

    interface: str
    chassis_type: str | None
    chassis_id: str | None
    system: str | None
    description: str | None
    port_type: str | None
    port_id: str | None
    port_description: str | None
    capabilities: dict[str, bool]
    addresses: list[str]
    vlan: int | None
    via: str | None


def parse_lldpcli(text: str) -> list[Neighbor]:
    """Return the neighbors, [] without any. Raises ParseError for text that is not JSON of these forms, also for truncated text."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise ParseError(f"not JSON: {quoted(text)}, {_FORM}: {exc}") from exc
    if not isinstance(data, dict) or "lldp" not in data:
        raise ParseError(f"no object with 'lldp': {quoted(text)}, {_FORM}")
    return [_neighbor(name, entry) for part in _items(data["lldp"]) for name, entry in _interfaces(_table(part).get("interface"))]


def _items(value: Any) -> list[Any]:
    """Return a list. json0 always makes lists; json writes a single item without a list, and omits nothing."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _table(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ParseError(f"not an object: {quoted(value)}, {_FORM}")
    return value


def _interfaces(value: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    for item in map(_table, _items(value)):
        if isinstance(item.get("name"), str) and not isinstance(item.get(item["name"]), dict):
            yield item["name"], item
        else:
            for name, entry in item.items():
                yield name, _table(entry)


def _value(item: dict[str, Any], key: str) -> str | None:
    """Return the first text of a key: "x", {"value": "x"} or [{"value": "x"}]."""
    for found in _items(item.get(key)):
        text = found.get("value") if isinstance(found, dict) else found
        if isinstance(text, (str, int)) and not isinstance(text, bool) and str(text).strip():
            return str(text).strip()
    return None


def _type(item: dict[str, Any], key: str) -> str | None:
    for found in _items(item.get(key)):
        if isinstance(found, dict) and isinstance(found.get("type"), str):
            return str(found["type"])
    return None


def _chassis(value: Any) -> tuple[str | None, dict[str, Any]]:
    """Return the name and the data: {"name": [...], "id": …} or {"leaf01": {"id": …}}."""
    parts = [_table(part) for part in _items(value)]
    if not parts:
        return None, {}
    item = parts[0]
    if "id" not in item and len(item) == 1:
        name, entry = next(iter(item.items()))
        if isinstance(entry, dict):
            return name, entry
    return _value(item, "name"), item


def _neighbor(interface: str, entry: dict[str, Any]) -> Neighbor:
    system, chassis = _chassis(entry.get("chassis"))
    port = _table((_items(entry.get("port")) or [{}])[0])
    capabilities = [item for item in _items(chassis.get("capability")) if isinstance(item, dict)]
    vlans = [item for item in _items(entry.get("vlan")) if isinstance(item, dict) and item.get("pvid") in (True, "yes")]
    vlan = str(vlans[0].get("vlan-id", "")) if vlans else ""
    addresses = (item.get("value") if isinstance(item, dict) else item for item in _items(chassis.get("mgmt-ip")))
    return Neighbor(
        interface=interface,
        chassis_type=_type(chassis, "id"),
        chassis_id=_value(chassis, "id"),
        system=system,
        description=_value(chassis, "descr"),
        port_type=_type(port, "id"),
        port_id=_value(port, "id"),
        port_description=_value(port, "descr"),
        capabilities={str(item.get("type")): item.get("enabled") in (True, "on") for item in capabilities},
        addresses=[address for address in addresses if isinstance(address, str)],
        vlan=int(vlan) if vlan.isascii() and vlan.isdigit() and len(vlan) < 6 else None,
        via=entry.get("via") if isinstance(entry.get("via"), str) else None,
    )


SOURCE = "lldp"
_NUMBERS = re.compile(r"([0-9]+(?:[^0-9a-zA-Z]+[0-9]+|s[0-9]+)*)([a-h]?)$")
_MAC = re.compile(r"(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}")
_PROTOCOL = "LLDP"


def lldp_graph(plane: str, views: Mapping[str, Sequence[Neighbor]], switches: Collection[str] = ()) -> Graph:
    """Build the graph. views: system → its neighbors; switches: the systems that are switches.

    A switch is identified by its chassis id, a host's interface by "node17 ens1f0np0"; both ends of a link may see each other.
    """
    chassis = {near.system: near.chassis_id for seen in views.values() for near in seen if near.system and near.chassis_id}
    nodes: dict[str, Node] = {}
    links: dict[tuple[End, End], Link] = {}
    problems: list[str] = []
    for system, seen in views.items():
        for near in _single(system, seen, problems):
            here = _end(nodes, system, chassis.get(system), system in switches, near.interface)
            if near.chassis_id is None or near.port_id is None:
                problems.append(f"{system} {near.interface}: its neighbor {near.system or '?'} does not report its port")
                continue
            label = near.port_description if near.port_type == "mac" and near.port_description else near.port_id
            there = _end(nodes, near.system or near.chassis_id, near.chassis_id, _is_switch(near, views, switches), label)
            links[min(here, there), max(here, there)] = Link(min(here, there), max(here, there))
    problems += shared_ends(nodes, links)
    ordered = {guid: nodes[guid] for guid in sorted(nodes)}
    return Graph(plane, ordered, [links[key] for key in sorted(links)], SOURCE, not problems, problems)


def _is_switch(near: Neighbor, views: Mapping[str, Sequence[Neighbor]], switches: Collection[str]) -> bool:
    if near.system in views:
        return near.system in switches
    capabilities = near.capabilities
    # A host may route, too.
    return bool(capabilities.get("Bridge") or (capabilities.get("Router") and not capabilities.get("Station")))


def _single(system: str, seen: Sequence[Neighbor], problems: list[str]) -> list[Neighbor]:
    """Return the single neighbor of each interface. An interface with several is a problem, because a cable has two ends."""
    by_interface: dict[str, list[Neighbor]] = {}
    for near in seen:
        by_interface.setdefault(near.interface, []).append(near)
    found = []
    for interface, several in by_interface.items():
        candidates = [near for near in several if near.via in (_PROTOCOL, None)] or several
        if len(candidates) > 1:
            names = ", ".join(str(near.system or near.chassis_id) for near in candidates[:3])
            problems.append(f"{system} {interface} sees {len(candidates)} neighbors at once: {names}")
        else:
            found += candidates
    return found


def _end(nodes: dict[str, Node], system: str, chassis: str | None, switch: bool, label: str) -> End:
    guid, number = (chassis or system, port_number(label)) if switch else (f"{system} {label}", 1)
    node = nodes.get(guid) or Node(guid, SWITCH if switch else HOST, system, device=None if switch else label)
    nodes[guid] = replace(node, ports={**node.ports, number: Port(number, label=label)})
    return guid, number


def port_number(label: str) -> int:
    """Return a number for a switch's port name, the same in every run: "swp14" → 14, "swp1s2" → 1002, "25GE1/0/39" → 1000039.

    A part of a split port may have a letter, as in SONiC: "etp1b" → 1002. If a name has more numbers than a port, the last ones count: the
    number fits in 63 bits.
    """
    if _MAC.fullmatch(label):
        return int(label.replace(":", ""), 16)
    match = _NUMBERS.search(label)
    if match is None:
        return 0
    body, letter = match.groups()
    number = 0
    for digits in [*re.findall(r"[0-9]+", body), *([str("abcdefgh".index(letter) + 1)] if letter else [])]:
        number = (number * 1000 + int(digits[-9:])) % 10**18
    return number


_SHOW = ("lldpcli", "show", "neighbors", "-f")
#: json0 always uses the same structure; lldpd before 1.0 has only json.
_FORMS = ("json0", "json")


def read_lldp(runner: Runner, plane: str, system: str, timeout_seconds: float, interfaces: Collection[str] | None = None) -> Graph:
    """Return the host's own part of the graph; _fabric.build.merged joins those of all hosts. system: the name for this host.

    interfaces: those that count, None for all.
    """
    why = ""
    for form in _FORMS:
        try:
            done = runner.run([*_SHOW, form], timeout_seconds=timeout_seconds)
            if done.rc == 0:
                seen = parse_lldpcli(done.stdout)
                return lldp_graph(plane, {system: [near for near in seen if interfaces is None or near.interface in interfaces]})
            why = f"lldpcli failed: {(done.stderr or done.stdout).strip()[:300] or done.rc} (is lldpd running?)"
        except CommandError as exc:
            missing = str(exc).startswith("command not found")
            why = "lldpcli is not installed on this host: install lldpd" if missing else str(exc)
            break
        except ParseError as exc:
            why = str(exc)
            break
    return Graph(plane, {}, [], SOURCE, False, [why])
