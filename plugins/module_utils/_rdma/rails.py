# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Joining the plan's rails to what a host really has: NIC (PCI address or MAC) → network interface → RDMA device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#: One rail of the normalised intent: name, nic {pci | mac}, link_layer, plane, address, mtu_bytes, soft, …
Rail = Mapping[str, Any]
#: What LINK_TYPE_P1 of a card that can be both is set to for the intent's link layer.
LINK_TYPES = {"roce": "ETH(2)", "infiniband": "IB(1)"}
#: The kernel's name of a port's link layer (sysfs ports/N/link_layer) for the intent's.
LINK_LAYERS = {"roce": "Ethernet", "infiniband": "InfiniBand"}
#: Interfaces that stand on the PCI function of another one.
PARTS = ("representor", "sf")
#: The tree of rdma_facts, or its digest.
Facts = Any
#: The normalised intent of a host.
Intent = Mapping[str, Any]


@dataclass(frozen=True)
class ResolvedRail:
    """A planned rail and what was found of it; None where it was not."""

    index: int
    rail: Rail
    netdev: str | None
    device: str | None
    port: str | None

    @property
    def name(self) -> str:
        return str(self.rail["name"])

    @property
    def nic(self) -> str:
        """The NIC as the intent names it: "0000:21:00.0" or a MAC."""
        return nic_label(self.rail["nic"])

    @property
    def subject(self) -> str:
        """The rail in a person's words."""
        where = [self.name, self.nic, *([self.netdev] if self.netdev else [])]
        return f"rail {self.index} ({', '.join(where)})"


def nic_label(nic: Mapping[str, str]) -> str:
    return nic.get("pci") or nic["mac"]


def rail_ip(rail: Rail) -> str | None:
    """A rail's planned address without the length of its prefix."""
    return None if rail["address"] is None else str(rail["address"]).split("/", maxsplit=1)[0]


def soft_device_name(rail: Rail) -> str:
    """The name of a rail's Soft-RoCE device."""
    return f"rxe_{rail['name']}"


def resolve(rails: Sequence[Rail], facts: Facts) -> list[ResolvedRail]:
    """Each planned rail, in the plan's order, with its interface and its RDMA device."""
    return [_resolve(index, rail, facts) for index, rail in enumerate(rails)]


def _resolve(index: int, rail: Rail, facts: Facts) -> ResolvedRail:
    netdev = find_netdev(rail["nic"], facts.get("netdevs", {}))
    device, port = _find_port(rail, netdev, facts.get("devices", {}))
    return ResolvedRail(index, rail, netdev, device, port)


def find_netdev(nic: Mapping[str, str], netdevs: Mapping[str, Any]) -> str | None:
    """The interface of a NIC; of several on one PCI function, that with the lowest port, and one of PARTS only if no other is there."""
    key, wanted = next(iter(nic.items()))
    found = [name for name, netdev in netdevs.items() if (netdev.get(key) or "").lower() == wanted.lower()]
    return min(found, key=lambda name: (netdevs[name].get("function") in PARTS, netdevs[name].get("dev_port") or 0, name), default=None)


def no_nic_words(rail: ResolvedRail, facts: Facts) -> str:
    """That a rail's NIC is not there, and which are, named as the intent names it."""
    key = next(iter(rail.rail["nic"]))
    there = sorted(netdev[key] for netdev in facts.get("netdevs", {}).values() if netdev.get(key))
    return f"no NIC with {key} {rail.nic}; there are {', '.join(there) or 'none'}"


def _find_port(rail: Rail, netdev: str | None, devices: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """The RDMA device and port on an interface, or (InfiniBand without IPoIB) on the PCI function itself."""
    pci = rail["nic"].get("pci")
    wanted = bool(rail.get("soft"))
    for name, device in sorted(devices.items(), key=lambda item: (bool(item[1].get("software")) != wanted, item[0])):
        for number, port in sorted(device["ports"].items()):
            if netdev is not None and port["netdev"] == netdev:
                return name, number
            if port["netdev"] is None and pci and (device.get("pci") or {}).get("address") == pci.lower():
                return name, number
    return None, None


def rocev2_gid_index(port: Mapping[str, Any], ipv4: str | None) -> int | None:
    """The GID index for RoCE v2 on an IPv4 address of a port, or None. Never a constant (see Port.rocev2)."""
    index: int | None = port["rocev2"].get(ipv4)
    return index
