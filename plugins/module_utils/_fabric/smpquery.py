# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse `smpquery nodeinfo`, `nodedesc`, `portinfo` and `pkeys` of infiniband-diags (rdma-core) for one node or port."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.words import (
    PHYSICAL,
    STATES,
    assigned,
    lanes,
    plain_guid,
    speed_name,
)

_FIELD = re.compile(r"([A-Za-z][A-Za-z0-9 ]{1,40}):\.*(.*)")
_NUMBER = re.compile(r"[0-9]{1,10}|0x[0-9a-fA-F]{1,16}")
_KEYS = re.compile(r"([0-9]{1,5}):((?: 0x[0-9a-fA-F]{4}){8})")
_DESCRIPTION = re.compile(r"Node Description:\.*(.*)")
_CAPACITY = re.compile(r"([0-9]{1,5}) pkeys capacity for this port")
_KINDS = {"Channel Adapter": "host", "Switch": "switch", "Router": "router"}
#: An empty entry of a table of P_Keys.
_NO_KEY = 0
_FULL_MEMBER = 0x8000


@dataclass(frozen=True)
class NodeInfo:
    """kind: "host" | "switch" | "router", None for another; the GUIDs as in the graph; pkeys_total: entries of its P_Key table.

    port: its port that received the query.
    """

    kind: str | None
    ports_total: int
    system_guid: str
    guid: str
    port_guid: str
    pkeys_total: int
    device_id: int
    vendor_id: int
    port: int


@dataclass(frozen=True)
class PortInfo:
    """states: the kernel's words; width: lanes; speeds by name, with extended ones if a port has any. Lists: all that are named.

    lid and sm_lid: None while none is assigned. is_sm: whether a subnet manager runs behind the port.
    """

    lid: int | None
    sm_lid: int | None
    lmc: int
    state: str | None
    physical: str | None
    width: int | None
    widths_enabled: list[int]
    widths_supported: list[int]
    speed: str | None
    speeds_enabled: list[str]
    speeds_supported: list[str]
    mtu_bytes: int | None
    is_sm: bool


@dataclass(frozen=True)
class PKey:
    """An entry of a port's table. key: 15 bits, 0x7fff for the default partition; full: whether the port is a full member."""

    index: int
    key: int
    full: bool


def parse_nodeinfo(text: str) -> NodeInfo:
    """Parse `smpquery nodeinfo`. Raises ParseError, also for truncated text."""
    fields = _fields(text, "# Node info: ", "VendorId")
    return NodeInfo(
        kind=_KINDS.get(_text(fields, "NodeType")),
        ports_total=_number(fields, "NumPorts"),
        system_guid=plain_guid(_text(fields, "SystemGuid")),
        guid=plain_guid(_text(fields, "Guid")),
        port_guid=plain_guid(_text(fields, "PortGuid")),
        pkeys_total=_number(fields, "PartCap"),
        device_id=_number(fields, "DevId"),
        vendor_id=_number(fields, "VendorId"),
        port=_number(fields, "LocalPort"),
    )


def parse_nodedesc(text: str) -> str:
    """Parse `smpquery nodedesc`: a node's own description. Raises ParseError."""
    match = _DESCRIPTION.fullmatch(text.strip())
    if match is None:
        raise ParseError(f"not what smpquery prints of a node's description: {quoted(text)}")
    return match.group(1)


def parse_portinfo(text: str) -> PortInfo:
    """Parse `smpquery portinfo`. Raises ParseError, also for truncated text."""
    fields = _fields(text, "# Port info: ", "RoundTrip")
    extended = speed_name(fields.get("LinkSpeedExtActive2", "")) or speed_name(fields.get("LinkSpeedExtActive", ""))
    mtu = fields.get("NeighborMTU", "")
    state = STATES.get(_text(fields, "LinkState"))
    up = state not in (None, "DOWN")
    return PortInfo(
        lid=assigned(str(_number(fields, "Lid"))),
        sm_lid=assigned(str(_number(fields, "SMLid"))),
        lmc=_number(fields, "LMC"),
        state=state,
        physical=PHYSICAL.get(_text(fields, "PhysLinkState")),
        width=lanes(_text(fields, "LinkWidthActive")) if up else None,
        widths_enabled=_widths(fields, "LinkWidthEnabled"),
        widths_supported=_widths(fields, "LinkWidthSupported"),
        speed=(extended or speed_name(_text(fields, "LinkSpeedActive"))) if up else None,
        speeds_enabled=_speeds(fields, "Enabled"),
        speeds_supported=_speeds(fields, "Supported"),
        mtu_bytes=int(mtu) if _NUMBER.fullmatch(mtu) and mtu.isascii() and mtu.isdigit() else None,
        is_sm="IsSM" in text.split(),
    )


def parse_pkeys(text: str) -> list[PKey]:
    """Parse `smpquery pkeys`, the entries that have a key. Raises ParseError, also for a truncated table."""
    keys: list[int] = []
    capacity = None
    for line in (raw.strip() for raw in text.split("\n") if raw.strip()):
        row, end = _KEYS.fullmatch(line), _CAPACITY.fullmatch(line)
        if capacity is not None or (row is None and end is None) or (row is not None and int(row.group(1)) != len(keys)):
            raise ParseError(f"not a line of a table of P_Keys, or one that is out of its turn: {quoted(line)}")
        if row is not None:
            keys += [int(word, 16) for word in row.group(2).split()]
        elif end is not None:
            capacity = int(end.group(1))
    if capacity is None or len(keys) < capacity:
        raise ParseError(f"not a whole table of P_Keys: {len(keys)} places of {capacity}, {text[-200:]!r}")
    table = enumerate(keys[:capacity])
    return [PKey(index, key & ~_FULL_MEMBER, bool(key & _FULL_MEMBER)) for index, key in table if key & ~_FULL_MEMBER != _NO_KEY]


def _fields(text: str, title: str, last: str) -> dict[str, str]:
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    if not lines or not lines[0].startswith(title):
        raise ParseError(f"not what smpquery prints under {title!r}: {quoted(text)}")
    fields: dict[str, str] = {}
    for match in filter(None, map(_FIELD.fullmatch, lines[1:])):
        if match.group(1) in fields:
            raise ParseError(f"a second {match.group(1)!r} in one answer: {quoted(match.group(0))}")
        fields[match.group(1)] = match.group(2)
    if last not in fields:
        raise ParseError(f"the output of smpquery is cut off after the line {quoted(lines[-1])}")
    return fields


def _text(fields: dict[str, str], key: str) -> str:
    if key not in fields:
        raise ParseError(f"the output of smpquery lacks {key}")
    return fields[key]


def _number(fields: dict[str, str], key: str) -> int:
    text = _text(fields, key)
    if _NUMBER.fullmatch(text) is None:
        raise ParseError(f"not a number: {quoted(f'{key}: {text}')}")
    return int(text, 16) if text.startswith("0x") else int(text)


def _widths(fields: dict[str, str], key: str) -> list[int]:
    found = (lanes(word) for word in fields.get(key, "").split(" or "))
    return [width for width in found if width is not None]


def _speeds(fields: dict[str, str], ending: str) -> list[str]:
    words = [word for name in ("LinkSpeed", "LinkSpeedExt") for word in fields.get(f"{name}{ending}", "").split(" or ")]
    return [speed for speed in map(speed_name, words) if speed is not None]
