# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""partitions.conf of opensm, as osm_prtn_config.c of 3.3.24 reads it: rendered, parsed, and the losses of each port by a change.

A line has at most 4094 bytes; opensm reads the rest as another line. So each port has its own line. A file with one bad line counts as
no file at all: then every port is a full member of the default partition, and no hosts are isolated from each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.words import plain_guid

DEFAULT_KEY = 0x7FFF
DEFAULT_NAME = "Default"
FULL_BIT = 0x8000
#: The code of an MTU in bytes (IBTA).
MTU_CODES = {256: 1, 512: 2, 1024: 3, 2048: 4, 4096: 5}
_UNSAFE = re.compile(r"[^ -~]")
_GUID = re.compile(r"0x[0-9a-fA-F]{1,16}")
_KEY = re.compile(r"0x[0-9a-fA-F]{1,4}|0[0-7]{0,6}|[1-9][0-9]{0,4}")
#: opensm's words for several ports, with the kind of node that each means; None: any kind.
_GROUPS = {"ALL": None, "ALL_CAS": "host", "ALL_SWITCHES": "switch", "ALL_ROUTERS": "router"}
_SELF = "SELF"
_MEMBERSHIPS = ("full", "limited", "both")
#: Flags of a partition → their names for people; those of its IP over InfiniBand interface; opensm's defaults.
_FLAGS = {"indx0": "index 0", "ipoib": "IP over InfiniBand", "sl": "service level", "mtu": "MTU", "rate": "rate code", "scope": "scope"}
_IPOIB_FLAGS = ("mtu", "rate", "scope")
_FLAG_DEFAULTS = {"sl": "0", "mtu": str(MTU_CODES[2048]), "rate": "3", "scope": "2"}
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]{1,8}|[1-9][0-9]{0,8}|0")
#: Flags of a multicast group, which follow its mgid= in the list of ports.
_GROUP_FLAGS = ("mgid", "mtu", "rate", "scope", "sl", "Q_Key", "TClass", "FlowLabel")


@dataclass(frozen=True)
class PartitionPort:
    """guid: of the port, "0x" and 16 digits, or one of opensm's words (ALL, SELF); membership: full or limited; label: for people."""

    guid: str
    membership: str
    label: str = ""


@dataclass(frozen=True)
class Partition:
    """key: of 15 bits; mtu_bytes: of its IP over InfiniBand; index0: it is first in its members' tables."""

    name: str
    key: int
    ports: Sequence[PartitionPort] = field(default_factory=list)
    ipoib: bool = False
    mtu_bytes: int = 2048
    sl: int = 0
    index0: bool = False


def everybody(membership: str) -> list[PartitionPort]:
    """Return all ports; the subnet manager's own is always a full member, or no port could query it."""
    return [PartitionPort("ALL", membership), *([PartitionPort("SELF", "full")] if membership == "limited" else [])]


def default_partition(membership: str = "full") -> Partition:
    """Return the default partition if rdma_partitions does not name it: every port is a full member, as without a file."""
    return Partition(DEFAULT_NAME, DEFAULT_KEY, everybody(membership), ipoib=True)


def render_partitions(plane: str, partitions: Sequence[Partition], default_membership: str = "full") -> str:
    """Return the file, the default partition first. Raises ValueError for an invalid key, or an MTU that InfiniBand does not have."""
    ordered = sorted(partitions, key=lambda each: (each.key != DEFAULT_KEY, each.name))
    if not any(each.key == DEFAULT_KEY for each in ordered):
        ordered.insert(0, default_partition(default_membership))
    lines = [f"# Managed by rdma.cluster: the partitions of plane {plane}."]
    for partition in ordered:
        lines += ["", *_block(partition)]
    return "\n".join(lines) + "\n"


def _block(partition: Partition) -> list[str]:
    return [_header(partition), *_ports(partition.ports)]


def with_limited_default(text: str) -> str:
    """Return a rendered file with its default partition made limited, if it is the full one of default_partition."""
    full, limited = ("\n".join(_block(default_partition(each))) for each in ("full", "limited"))
    return text.replace(full, limited)


def with_default_of(text: str, present: str) -> str:
    """Return a rendered file with the limited default partition of the present file; the same text if that one is not limited."""
    return with_limited_default(text) if "\n".join(_block(default_partition("limited"))) in present else text


def _header(partition: Partition) -> str:
    if not 0 < partition.key < FULL_BIT:
        raise ValueError(f"partition {partition.name}: 0x{partition.key:x} is no key of 15 bits")
    if partition.mtu_bytes not in MTU_CODES:
        raise ValueError(f"partition {partition.name}: {partition.mtu_bytes} bytes is no MTU of InfiniBand")
    flags = [
        *(["indx0"] if partition.index0 else []),
        *(["ipoib", f"mtu={MTU_CODES[partition.mtu_bytes]}"] if partition.ipoib else []),
        *([f"sl={partition.sl}"] if partition.sl else []),
    ]
    return f"{', '.join([f'{partition.name}=0x{partition.key:04x}', *flags])} :"


def _ports(ports: Sequence[PartitionPort]) -> list[str]:
    last = len(ports) - 1
    lines = []
    for index, port in enumerate(ports):
        label = _UNSAFE.sub("?", port.label)
        lines.append(f"    {port.guid}={port.membership}{' ;' if index == last else ','}{f'  # {label}' if label else ''}")
    return lines or ["    ;"]


def table_key(key: int, membership: str) -> int:
    """Return a partition as a port's table has it: 0x8101 for a full member of 0x0101."""
    return key | FULL_BIT if membership == "full" else key


#: Key of 15 bits → "full" or "limited": a port's partitions.
Keys = Mapping[int, str]


@dataclass(frozen=True)
class FabricPort:
    """A port on the fabric. kind: "host", "switch" or "router"; is_manager: the subnet manager that reads the file runs on it."""

    guid: str
    kind: str = "host"
    is_manager: bool = False


@dataclass(frozen=True)
class Loss:
    """A port's loss in one partition: all of it (after is None), or full membership."""

    guid: str
    key: int
    before: str
    after: str | None

    def __str__(self) -> str:
        return f"loses 0x{self.key:04x} ({self.before})" if self.after is None else f"0x{self.key:04x} {self.before} → {self.after}"


@dataclass(frozen=True)
class Change:
    """A port's change in a partition that it keeps."""

    guid: str
    key: int
    words: str

    def __str__(self) -> str:
        return f"0x{self.key:04x}: {self.words}"


def parse_partitions(text: str) -> list[tuple[int, list[PartitionPort]]]:
    """Parse a partitions.conf: each definition's key and its members, in order. guid: "0x" and 16 digits, or one of opensm's words.

    Raises ParseError for text that opensm would not read, and for a partition without a key, to which opensm assigns one.
    """
    found = []
    for header, body in _statements(text):
        key, flags = _parsed_header(header)
        default = flags.get("defmember", "limited")
        if default not in _MEMBERSHIPS:
            raise ParseError(f"defmember in partitions.conf is {quoted(default)}, expected one of {', '.join(_MEMBERSHIPS)}")
        found.append((key, list(_parsed_ports(body, default))))
    return found


def parse_settings(text: str) -> dict[int, dict[str, str]]:
    """Return each key of a partitions.conf → its other settings: index 0, IP over InfiniBand, service level, MTU, rate, scope.

    A value that equals opensm's default counts as missing. Raises ParseError as parse_partitions does.
    """
    found: dict[int, dict[str, str]] = {}
    for header, _body in _statements(text):
        key, flags = _parsed_header(header)
        settings = found.setdefault(key, {})
        for name, value in flags.items():
            if name in _FLAGS:
                settings[name] = value
    return {key: _without_defaults(settings) for key, settings in found.items()}


def _without_defaults(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings without defaults. MTU, rate and scope apply only to an interface of IP over InfiniBand."""
    named = {name: value for name, value in settings.items() if "ipoib" in settings or name not in _IPOIB_FLAGS}
    numbers = {name: str(int(value, 0)) if _NUMBER.fullmatch(value) else value for name, value in named.items()}
    return {name: value for name, value in numbers.items() if name not in _FLAG_DEFAULTS or value != _FLAG_DEFAULTS[name]}


def setting_changes(before: Mapping[int, Mapping[str, str]], after: Mapping[int, Mapping[str, str]]) -> dict[int, str]:
    """Return keys that two files define with different settings → the differences, in words."""
    return {
        key: ", ".join(
            f"{_FLAGS[name]} {_setting(before[key], name)} → {_setting(then, name)}"
            for name in _FLAGS
            if before[key].get(name) != then.get(name)
        )
        for key, then in after.items()
        if key in before and before[key] != then
    }


def _setting(settings: Mapping[str, str], name: str) -> str:
    if name not in _FLAG_DEFAULTS:
        return "yes" if name in settings else "no"
    value = settings.get(name, _FLAG_DEFAULTS[name])
    if name != "mtu":
        return value
    return next((f"{size_bytes} bytes" for size_bytes, code in MTU_CODES.items() if str(code) == value), f"code {value}")


def _statements(text: str) -> Iterator[tuple[str, str]]:
    """Yield the definitions: the text before the colon, and the ports after it."""
    statements = "\n".join(line.partition("#")[0] for line in text.splitlines()).split(";")
    for statement in (each.strip() for each in statements):
        if not statement:
            continue
        header, colon, body = statement.partition(":")
        if not colon:
            raise ParseError(f"no ':' in a definition of partitions.conf: {quoted(statement)}")
        yield header, body


def _parsed_header(text: str) -> tuple[int, dict[str, str]]:
    """Return the key of 15 bits, and the flags with their values."""
    first, *flags = ([part.strip() for part in word.partition("=")[::2]] for word in text.split(","))
    number = first[1] or first[0]
    key = _as_strtoul(number) if _KEY.fullmatch(number) else 0
    if key > 0xFFFF or key & ~FULL_BIT == 0:
        raise ParseError(f"no key of a partition in partitions.conf: {quoted(text.strip())}")
    return key & ~FULL_BIT, dict(flags)


def _as_strtoul(number: str) -> int:
    """Return a number of base 0 as C reads it: octal if it begins with 0."""
    return int(number, 8 if number.isdigit() and number.startswith("0") else 0)


def _parsed_ports(text: str, default: str) -> Iterator[PartitionPort]:
    for word in (each.strip() for each in text.split(",") if each.strip()):
        name, _equals, membership = (part.strip() for part in word.partition("="))
        if name in _GROUP_FLAGS or name == "NONE":
            continue
        if name not in _GROUPS and name != _SELF:
            if _GUID.fullmatch(name) is None:
                raise ParseError(f"no port in partitions.conf: {quoted(word)}")
            name = plain_guid(name)
        if (membership or default) not in _MEMBERSHIPS:
            raise ParseError(f"no membership in partitions.conf: {quoted(word)}, expected one of {', '.join(_MEMBERSHIPS)}")
        yield PartitionPort(name, "limited" if (membership or default) == "limited" else "full")


def keys_of(partitions: Sequence[tuple[int, Sequence[PartitionPort]]] | None, port: FabricPort) -> dict[int, str]:
    """Return opensm's partitions for a port by a parsed file; None: there is no file. The last entry of a port wins (osm_prtn_add_port)."""
    if partitions is None:
        return {DEFAULT_KEY: "full"}
    # With a file, opensm starts with every port as a limited member of the default partition and itself as a full one.
    found = {DEFAULT_KEY: "full" if port.is_manager else "limited"}
    for key, members in partitions:
        for member in members:
            group = member.guid in _GROUPS and _GROUPS[member.guid] in (None, port.kind)
            if group or member.guid == port.guid or (member.guid == _SELF and port.is_manager):
                found[key] = member.membership
    return found


def losses(guid: str, before: Keys, after: Keys) -> list[Loss]:
    """Return what a port has before a change and lacks after it."""
    gone = [(key, have, after.get(key)) for key, have in sorted(before.items())]
    return [Loss(guid, key, have, then) for key, have, then in gone if then is None or (have, then) == ("full", "limited")]
