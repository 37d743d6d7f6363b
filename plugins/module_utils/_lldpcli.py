# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What `lldpcli show neighbors -f json` and `-f json0` of lldpd say, and `net show lldp json` of Cumulus, which is the latter."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._errors import ParseError

_FORM = "expected what `lldpcli show neighbors -f json` prints"


@dataclass(frozen=True)
class Neighbour:
    """Who is at the other end of one of our interfaces.

    chassis_id and port_id have the form that their types say ("mac", "ifname", "ifalias", "local"…); system: the name that it gives
    itself; capabilities: "Bridge", "Router", "Station" → whether enabled, {} if it tells none; addresses: of its management; vlan: the
    PVID; via: the protocol, "LLDP", "CDPv2"…
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


def parse_lldpcli(text: str) -> list[Neighbour]:
    """The neighbours, [] where there are none. Raises ParseError for what is not JSON of these forms, also if it is cut off."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise ParseError(f"not JSON: {text[:200]!r}, {_FORM}: {exc}") from exc
    if not isinstance(data, dict) or "lldp" not in data:
        raise ParseError(f"no object with 'lldp': {text[:200]!r}, {_FORM}")
    return [_neighbour(name, told) for part in _items(data["lldp"]) for name, told in _interfaces(_table(part).get("interface"))]


def _items(value: Any) -> list[Any]:
    """json0 makes a list of everything; json leaves one thing alone, and nothing out."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _table(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ParseError(f"not an object: {str(value)[:200]!r}, {_FORM}")
    return value


def _interfaces(value: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    for item in map(_table, _items(value)):
        if isinstance(item.get("name"), str) and not isinstance(item.get(item["name"]), dict):
            yield item["name"], item
        else:
            for name, told in item.items():
                yield name, _table(told)


def _value(item: dict[str, Any], key: str) -> str | None:
    """The first text of a key: "x", {"value": "x"} or [{"value": "x"}]."""
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
    """The name and what is told: {"name": [...], "id": …} or {"leaf01": {"id": …}}."""
    parts = [_table(part) for part in _items(value)]
    if not parts:
        return None, {}
    item = parts[0]
    if "id" not in item and len(item) == 1:
        name, told = next(iter(item.items()))
        if isinstance(told, dict):
            return name, told
    return _value(item, "name"), item


def _neighbour(interface: str, told: dict[str, Any]) -> Neighbour:
    system, chassis = _chassis(told.get("chassis"))
    port = _table((_items(told.get("port")) or [{}])[0])
    capabilities = [item for item in _items(chassis.get("capability")) if isinstance(item, dict)]
    vlans = [item for item in _items(told.get("vlan")) if isinstance(item, dict) and item.get("pvid") in (True, "yes")]
    vlan = str(vlans[0].get("vlan-id", "")) if vlans else ""
    addresses = (item.get("value") if isinstance(item, dict) else item for item in _items(chassis.get("mgmt-ip")))
    return Neighbour(
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
        via=told.get("via") if isinstance(told.get("via"), str) else None,
    )
