# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""partitions.conf of opensm, as osm_prtn_config.c of 3.3.24 reads it.

A line is at most 4094 bytes there, and the rest is taken for another line: so each port has its own. A file with one bad line counts as
no file at all: then every port is a full member of the default partition, and nobody is apart from anybody.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

DEFAULT_KEY = 0x7FFF
DEFAULT_NAME = "Default"
FULL_BIT = 0x8000
#: The code of an MTU in bytes (IBTA).
MTU_CODES = {256: 1, 512: 2, 1024: 3, 2048: 4, 4096: 5}
_UNSAFE = re.compile(r"[^ -~]")


@dataclass(frozen=True)
class PartitionPort:
    """guid: of the port, "0x" and 16 digits, or one of opensm's words (ALL, SELF); membership: full or limited; label: for a person."""

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
    """All ports; the subnet manager's own is a full member in any case, or nobody could ask it."""
    return [PartitionPort("ALL", membership), *([PartitionPort("SELF", "full")] if membership == "limited" else [])]


def default_partition(*, tenants: bool) -> Partition:
    """What is made of the default partition that the intent does not name: limited where others keep tenants apart."""
    return Partition(DEFAULT_NAME, DEFAULT_KEY, everybody("limited" if tenants else "full"), ipoib=True)


def render_partitions(plane: str, partitions: Sequence[Partition]) -> str:
    """The file, the default partition first. Raises ValueError for a key that is no key, or an MTU that InfiniBand does not have."""
    ordered = sorted(partitions, key=lambda each: (each.key != DEFAULT_KEY, each.name))
    if not any(each.key == DEFAULT_KEY for each in ordered):
        ordered.insert(0, default_partition(tenants=bool(ordered)))
    lines = [f"# Managed by rdma.cluster: the partitions of plane {plane}."]
    for partition in ordered:
        lines += ["", _header(partition), *_ports(partition.ports)]
    return "\n".join(lines) + "\n"


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
    """A partition as a port's table has it: 0x8101 for a full member of 0x0101."""
    return key | FULL_BIT if membership == "full" else key
