# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""IP over InfiniBand through systemd-networkd: the mode of a rail's interface, and its children on other partitions.

Its MTU does not limit RDMA's: that depends on the port and the subnet manager. Sources: RFC 4391; Documentation/infiniband/ipoib.rst
and drivers/infiniband/ulp/ipoib of Linux; systemd.netdev(5), systemd.network(5). Kind=ipoib and [IPoIB] came with systemd 250.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Runner, run_checked
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._base.files import FileChange

DATAGRAM = "datagram"
#: The header of each packet in datagram mode.
IPOIB_HEADER_BYTES = 4
CONNECTED_MTU_BYTES = 65520
FULL_BIT = 0x8000
NAME_BYTES = 15
SUFFIXES = (".network", ".netdev")


@dataclass(frozen=True)
class Child:
    """An interface on another partition. key: of 15 bits; address: "172.16.8.1/24"."""

    key: int
    mtu_bytes: int
    address: str | None = None

    def name(self, parent: str) -> str:
        """Return the kernel's name for it, "ib0.8001". Raises ApplyError if that is longer than a name can be."""
        name = f"{parent}.{self.key | FULL_BIT:04x}"
        if len(name) > NAME_BYTES:
            raise ApplyError(f"{name} has {len(name)} characters, and an interface {NAME_BYTES} at most: give {parent} a shorter name.")
        return name


@dataclass(frozen=True)
class Ipoib:
    """The IPoIB settings of a rail beyond address and MTU. netdev: the rail's own interface."""

    netdev: str
    mode: str = DATAGRAM
    children: Sequence[Child] = field(default_factory=list)

    @property
    def hint(self) -> str:
        """Why the interface may be missing."""
        partitions = "A child needs its partition in the port's table, and its MTU the partition's (link.pkey, rdma_partitions)."
        return partitions if self.mode == DATAGRAM else "The driver of ConnectX-4 and later has datagram mode only (ib_ipoib, enhanced)."


def from_options(netdev: str, given: Mapping[str, Any] | None) -> Ipoib | None:
    """Return the IPoIB settings in a module's options."""
    return None if given is None else Ipoib(netdev, given["mode"], [Child(**each) for each in given["children"]])


def parent_lines(ipoib: Ipoib) -> list[str]:
    """Return the additional lines of the rail's .network file; they continue the section [Network]."""
    return [*(f"IPoIB={child.name(ipoib.netdev)}" for child in ipoib.children), "", "[IPoIB]", f"Mode={ipoib.mode}"]


def child_files(rail: str, ipoib: Ipoib) -> list[tuple[str, str]]:
    """Return (name after our prefix, text) of the files of its children.

    The children are on the rail's NIC, which the rail's file matches too. "-" sorts before ".", so that their files are found first.
    """
    return [file for child in ipoib.children for file in _child_files(rail, ipoib, child)]


def _child_files(rail: str, ipoib: Ipoib, child: Child) -> list[tuple[str, str]]:
    key, name = child.key | FULL_BIT, child.name(ipoib.netdev)
    head = f"# Managed by rdma.cluster: {rail} on partition 0x{child.key:04x}."
    netdev = [head, "[NetDev]", f"Name={name}", "Kind=ipoib", "", "[IPoIB]", f"PartitionKey=0x{key:04x}", f"Mode={ipoib.mode}"]
    network = [head, "[Match]", f"Name={name}", "", "[Link]", f"MTUBytes={child.mtu_bytes}", "RequiredForOnline=no", "", "[Network]"]
    network += ["DHCP=no", "IPv6AcceptRA=no", "ConfigureWithoutCarrier=yes", *([f"Address={child.address}"] if child.address else [])]
    return [(f"{rail}-{key:04x}{suffix}", "\n".join(lines) + "\n") for suffix, lines in ((".netdev", netdev), (".network", network))]


def is_child_of(name: str, rails: Sequence[str]) -> bool:
    """Return whether a file, given its name after our prefix, belongs to a child of one of these rails."""
    stem = name.rsplit(".", maxsplit=1)[0]
    rail, _dash, key = stem.rpartition("-")
    return rail in rails and len(key) == 4 and not key.strip("0123456789abcdef")


def netdev_of(change: FileChange) -> str | None:
    """Return the interface of IP over InfiniBand that a removed .netdev file had created."""
    if not change.path.endswith(".netdev") or "Kind=ipoib" not in (change.before or ""):
        return None
    return next((line.split("=", 1)[1] for line in (change.before or "").splitlines() if line.startswith("Name=")), None)


def ipoib_differences(netdev: str, ipoib: Ipoib, runner: Runner) -> list[tuple[str, str]]:
    """Return the differences of mode and children as texts (current, planned)."""
    own = read_interface(netdev, runner)
    found = [] if own is None or own["mode"] in (None, ipoib.mode) else [(f"mode {own['mode']}", f"mode {ipoib.mode}")]
    for child in ipoib.children:
        name = child.name(netdev)
        seen = read_interface(name, runner)
        if seen is None:
            found.append((f"no {name}", f"{name} on P_Key 0x{child.key | FULL_BIT:04x}"))
            continue
        for what, value, planned in (
            ("P_Key", seen["key"], f"0x{child.key | FULL_BIT:04x}"),
            ("MTU", seen["mtu"], child.mtu_bytes),
            ("mode", seen["mode"], ipoib.mode),
        ):
            if value not in (None, planned):
                found.append((f"{name} {what} {value}", f"{name} {what} {planned}"))
        if child.address and child.address not in seen["ipv4"]:
            found.append((f"{name} address {', '.join(seen['ipv4']) or 'none'}", f"{name} address {child.address}"))
    return found


def read_interface(name: str, runner: Runner) -> dict[str, Any] | None:
    """Return the current MTU, addresses, mode and P_Key of an interface; None if it does not exist."""
    done = runner.run(["ip", "-j", "-d", "address", "show", "dev", name])
    return parse_interface(done.stdout) if done.rc == 0 else None


def parse_interface(text: str) -> dict[str, Any]:
    """Parse `ip -j -d address show dev NAME`. mode and key ("0x8001") are None without IP over InfiniBand, or if iproute2 omits them."""
    try:
        shown = next(each for each in json.loads(text) if each)
        data = (shown.get("linkinfo") or {}).get("info_data") or {}
        ipv4 = [f"{each['local']}/{each['prefixlen']}" for each in shown["addr_info"] if each["family"] == "inet"]
        return {"mtu": shown["mtu"], "ipv4": ipv4, "mode": data.get("mode"), "key": data.get("key", data.get("pkey"))}
    except (ValueError, KeyError, TypeError, AttributeError, StopIteration, RecursionError) as exc:
        raise ParseError(f"ip -j -d address: not an interface: {quoted(text)}") from exc


def delete_child(name: str, runner: Runner) -> None:
    """Delete the interface of a partition, if it exists: removing its file does not."""
    if runner.run(["ip", "-j", "address", "show", "dev", name]).rc == 0:
        run_checked(runner, "ip", "link", "delete", "dev", name)
