# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lists of devices and interfaces in NCCL's format: [^][=]name[:port[:rail[:plane]]],… (NCCL src/misc/utils.cc, parseStringList).

Names are prefixes unless they have a leading =: mlx5_1 also means mlx5_10. A leading ^ excludes these names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._rdma.device import Device

#: The maximum number of devices in NCCL (src/transport/net_ib/common.h, MAX_IB_DEVS); it ignores further entries.
MAX_DEVICES = 32
_NUMBER = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True)
class Entry:
    """One entry. port: None for every port; well_formed: False if a port, rail or plane is not a number, or there are too many."""

    name: str
    port: int | None
    well_formed: bool = True

    def __str__(self) -> str:
        return self.name if self.port is None else f"{self.name}:{self.port}"


@dataclass(frozen=True)
class DeviceList:
    """excluded: all except these; exact: whole names."""

    excluded: bool
    exact: bool
    entries: tuple[Entry, ...]

    def named(self, entry: Entry, name: str) -> bool:
        """Return whether an entry matches a device or interface, on any port."""
        return name == entry.name if self.exact else name.startswith(entry.name)

    def has(self, name: str, port: int | None = None) -> bool:
        """Return whether NCCL may use a port, or any of a device or interface; without entries all are allowed, and with a ^ none."""
        listed = any(self.named(entry, name) and (port is None or entry.port in (None, port)) for entry in self.entries)
        return (listed or not self.entries) != self.excluded


#: NCCL itself reads 32 devices (MAX_IB_DEVS of nccl:src/transport/net_ib.cc).
_MOST_ENTRIES = 1024


def parse_list(value: str) -> DeviceList:
    """Parse a value of NCCL_IB_HCA or NCCL_SOCKET_IFNAME; parts that NCCL does not understand become entries that are not well formed."""
    excluded = value.startswith("^")
    rest = value[1:] if excluded else value
    exact = rest.startswith("=")
    words = (rest[1:] if exact else rest).split(",", _MOST_ENTRIES)[:_MOST_ENTRIES]
    return DeviceList(excluded, exact, tuple(_entry(word) for word in words if word and not word.startswith(":")))


def _entry(word: str) -> Entry:
    name, *fields = word.split(":")
    well_formed = len(fields) <= 3 and all(not field or _NUMBER.fullmatch(field) for field in fields)
    found = _NUMBER.match(fields[0]) if fields else None
    port = None if not fields or not fields[0] else int(found[0]) if found else 0
    return Entry(name, port, well_formed)


def missing_entries(listed: DeviceList, devices: Mapping[str, Device]) -> list[str]:
    """Return the entries that match no port of a host, in any state; none of a list that excludes."""
    if listed.excluded:
        return []
    ports = [(name, int(number)) for name, device in devices.items() for number in device.ports]
    return [
        str(entry)
        for entry in listed.entries
        if not any(listed.named(entry, name) and entry.port in (None, number) for name, number in ports)
    ]


def used_ports(devices: Mapping[str, Any], listed: DeviceList | None) -> list[tuple[str, str]]:
    """Return the ports that NCCL uses: (device, port) of each that is ACTIVE and allowed.

    devices: of the facts; None: every port is allowed.
    """
    return [
        (name, number)
        for name, device in sorted(devices.items())
        for number, port in sorted(device["ports"].items())
        if port["state"] == "ACTIVE" and (listed is None or listed.has(name, int(number)))
    ]
