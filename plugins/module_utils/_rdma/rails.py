# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Matching the plan's rails to a host's hardware: NIC (PCI address, MAC or GUID) → network interface and RDMA device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Rail
from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import nearest
from ansible_collections.rdma.cluster.plugins.module_utils._net.bonds import SeenBond, bond_name, find_bond
from ansible_collections.rdma.cluster.plugins.module_utils._net.ip_address import ip_of
from ansible_collections.rdma.cluster.plugins.module_utils._net.links import SeenVlan, find_vlan, vlan_name
from ansible_collections.rdma.cluster.plugins.module_utils._net.netdev import Netdev
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.device import Device, Port, port_guid

#: The LINK_TYPE_P1 for the intent's link layer, on a card that supports both.
LINK_TYPES = {"roce": "ETH(2)", "infiniband": "IB(1)"}
#: The kernel's name of a port's link layer (sysfs ports/N/link_layer) for the intent's name.
LINK_LAYERS = {"roce": "Ethernet", "infiniband": "InfiniBand"}
#: Interfaces that are on the PCI function of another one.
PARTS = ("representor", "sf")


class Found(Protocol):
    """The part of a host's facts in which its rails are found."""

    @property
    def netdevs(self) -> Mapping[str, Netdev]: ...

    @property
    def devices(self) -> Mapping[str, Device]: ...

    @property
    def vlans(self) -> Mapping[str, SeenVlan] | None: ...

    @property
    def bonds(self) -> Mapping[str, SeenBond] | None: ...


@dataclass(frozen=True)
class ResolvedRail:
    """A planned rail and what was found for it; None if it was not found.

    netdev: the interface of the NIC, which has its link settings. interface: the one that carries the rail's address, with its MTU, routes
    and rules. Both are the same unless the rail is on a VLAN or a bond; that interface may not exist yet: see `address_netdev`.
    bond: the interface of its bond. members: those of the bond's NICs, None for a missing one; netdev is the first of them.
    """

    index: int
    rail: Rail
    netdev: str | None
    device: str | None
    port: str | None
    interface: str | None = None
    bond: str | None = None
    members: tuple[str | None, ...] = ()

    @property
    def name(self) -> str:
        return str(self.rail["name"])

    @property
    def netdevs(self) -> list[str]:
        """The interfaces of its NICs that are there: one, or those of the members of its bond."""
        return [name for name in self.members or (self.netdev,) if name is not None]

    @property
    def interfaces(self) -> list[str]:
        """All its interfaces, each once: those of its NICs, its bond, and the one that carries its address."""
        return [name for name in dict.fromkeys((*self.netdevs, self.bond, self.interface)) if name is not None]

    @property
    def nic(self) -> str:
        """The NIC as the intent names it: "0000:21:00.0", a MAC or a GUID."""
        return nic_label(self.rail["nic"])

    @property
    def subject(self) -> str:
        """The rail in plain words."""
        return f"rail {self.index} ({', '.join([self.name, self.nic, *self.interfaces])})"


def nic_label(nic: Mapping[str, str]) -> str:
    return next(iter(nic.values()))


def rail_nics(rail: Rail) -> list[dict[str, str]]:
    """Return the planned NICs of a rail: one, or the members of its bond."""
    bond = rail.get("bond")
    return [rail["nic"]] if bond is None else bond["members"]


def rail_ip(rail: Rail) -> str | None:
    """Return a rail's planned address without its prefix length."""
    return None if rail["address"] is None else ip_of(rail["address"])


def rail_addresses(rail: Rail) -> list[str]:
    """Return all planned addresses of a rail with their prefix lengths; the one that RDMA uses comes first."""
    return [] if rail["address"] is None else [str(rail["address"]), *(rail.get("addresses") or ())]


def soft_device_name(rail: Rail) -> str:
    """Return the name of a rail's Soft-RoCE device."""
    return f"rxe_{rail['name']}"


def resolve(rails: Sequence[Rail], facts: Found | None) -> list[ResolvedRail]:
    """Return each planned rail, in the plan's order, with its interface and its RDMA device. facts: None if the host is unknown."""
    if facts is None:
        return [ResolvedRail(index, rail, None, None, None) for index, rail in enumerate(rails)]
    nics = {name: netdev for name, netdev in facts.netdevs.items() if name not in (facts.vlans or ()) and name not in (facts.bonds or ())}
    return [_resolve(index, rail, nics, facts) for index, rail in enumerate(rails)]


def _resolve(index: int, rail: Rail, nics: Mapping[str, Netdev], facts: Found) -> ResolvedRail:
    if "guid" in rail["nic"]:
        return _resolve_guid(index, rail, nics, facts.devices)
    netdev, planned = find_netdev(rail["nic"], nics), rail.get("bond")
    if planned is None:
        return ResolvedRail(index, rail, netdev, *_find_port(rail, (netdev,), facts.devices), _interface(rail, netdev, facts.vlans))
    members = tuple(find_netdev(nic, nics) for nic in planned["members"])
    bond = find_bond([name for name in members if name is not None], facts.bonds) or bond_name(str(rail["name"]))
    port = _find_port(rail, (bond, *members), facts.devices)
    return ResolvedRail(index, rail, netdev, *port, _interface(rail, bond, facts.vlans), bond, members)


def _interface(rail: Rail, netdev: str | None, vlans: Mapping[str, SeenVlan] | None) -> str | None:
    """Return the interface that carries a rail's address: netdev, or its VLAN on it, which has this name also if it is missing.

    netdev: the interface of the NIC or of the bond.
    """
    vlan = rail.get("vlan")
    if netdev is None or vlan is None:
        return netdev
    return find_vlan(netdev, vlan["id"], vlans) or vlan_name(netdev, str(rail["name"]), vlan["id"])


def address_netdev(rail: ResolvedRail, facts: Found) -> Netdev | None:
    """Return the interface that carries a rail's address; None if it is missing, as that of a VLAN before the network stage."""
    return facts.netdevs.get(rail.interface or "")


def _resolve_guid(index: int, rail: Rail, netdevs: Mapping[str, Netdev], devices: Mapping[str, Device]) -> ResolvedRail:
    """Return the rail of a port that the intent names by a GUID. An ambiguous GUID finds nothing."""
    found = guid_ports(rail["nic"]["guid"], devices)
    if len(found) != 1:
        return ResolvedRail(index, rail, None, None, None)
    name, number = found[0]
    seen = devices[name].ports[number].netdev
    netdev = seen if seen in netdevs else None
    return ResolvedRail(index, rail, netdev, name, number, netdev)


def guid_ports(guid: str, devices: Mapping[str, Device]) -> list[tuple[str, str]]:
    """Return the ports (device, number) with this port GUID; without any, all ports of the device with this node GUID.

    guid: "0x0c42a103007aca90". Several ports make it ambiguous: the node GUID of a card with two ports.
    """
    wanted = guid.lower()
    ports = [(name, number) for name, device in sorted(devices.items()) for number in sorted(device.ports)]
    by_port = [(name, number) for name, number in ports if _port_guid(devices[name].ports[number]) == wanted]
    return by_port or [(name, number) for name, number in ports if _node_guid(devices[name]) == wanted]


def _port_guid(port: Port) -> str | None:
    """Return the GUID of an InfiniBand port. The first GID of an Ethernet port has none."""
    return port_guid(port) if port.link_layer == LINK_LAYERS["infiniband"] else None


def _node_guid(device: Device) -> str | None:
    """Return the node GUID of a card in the form of the intent; None for a software device."""
    return None if device.software or device.node_guid is None else f"0x{device.node_guid.replace(':', '').removeprefix('0x')}"


def nic_function(rail: ResolvedRail, facts: Found) -> dict[str, str]:
    """Return what identifies a rail's NIC at boot, {"pci"} or {"mac"}: udev and the network managers know no GUIDs."""
    device = facts.devices[rail.device] if rail.device is not None else None
    if "guid" in rail.rail["nic"] and device is not None and device.pci is not None:
        return {"pci": device.pci.address}
    return dict(rail.rail["nic"])


def find_netdev(nic: Mapping[str, str], netdevs: Mapping[str, Netdev]) -> str | None:
    """Return the interface of a NIC; of several on one PCI function, that with the lowest port, and one of PARTS only without others."""
    wanted = nic_label(nic).lower()
    found = [name for name, netdev in netdevs.items() if (_label(nic, netdev) or "").lower() == wanted]
    return min(found, key=lambda name: (netdevs[name].function in PARTS, netdevs[name].dev_port or 0, name), default=None)


def _label(nic: Mapping[str, str], netdev: Netdev) -> str | None:
    """Return the property of an interface by which the NIC is named."""
    return netdev.pci if "pci" in nic else netdev.mac


def no_nic_words(rail: ResolvedRail, facts: Found) -> str:
    """Return a sentence that a rail's NIC is missing, and which NICs exist, named as the intent names it."""
    nic = rail.rail["nic"]
    if "guid" in nic:
        return _no_guid_words(nic["guid"], facts.devices)
    there = sorted(label for netdev in facts.netdevs.values() if (label := _label(nic, netdev)))
    return f"no NIC with {next(iter(nic))} {rail.nic}; there are {', '.join(there) or 'none'}"


def _no_guid_words(guid: str, devices: Mapping[str, Device]) -> str:
    """Return the same for a GUID: the ports among which it does not decide, or the nearest GUID and all of them."""
    several = guid_ports(guid, devices)
    if several:
        named = [f"{name}/{number} ({_port_guid(devices[name].ports[number]) or 'port GUID not read'})" for name, number in several]
        return f"guid {guid} is that of several ports: {', '.join(named)}"
    there = {
        known: f"{known} ({name}/{number})"
        for name, device in sorted(devices.items())
        for number, port in sorted(device.ports.items())
        if (known := _port_guid(port)) is not None
    }
    for name, device in sorted(devices.items()):
        if (node := _node_guid(device)) is not None:
            there.setdefault(node, f"{node} (node GUID of {name})")
    near = nearest(guid, there)
    words = f"; the nearest is {there[near]}" if near is not None else ""
    return f"no port with guid {guid}{words}; there are {', '.join(there.values()) or 'none'}"


def _find_port(rail: Rail, netdevs: Sequence[str | None], devices: Mapping[str, Device]) -> tuple[str | None, str | None]:
    """Return the RDMA device and port on one of these interfaces, or (InfiniBand without IPoIB) on the PCI function itself."""
    pci = rail["nic"].get("pci")
    wanted = bool(rail.get("soft"))
    for name, device in sorted(devices.items(), key=lambda item: (bool(item[1].software) != wanted, item[0])):
        for number, port in sorted(device.ports.items()):
            if port.netdev is not None and port.netdev in netdevs:
                return name, number
            if port.netdev is None and pci and device.pci is not None and device.pci.address == pci.lower():
                return name, number
    return None, None


def rocev2_gid_index(port: Port, address: str | None) -> int | None:
    """Return the GID index for RoCE v2 on an address of a port, or None. Never a constant (see Port.rocev2)."""
    return None if address is None else port.rocev2.get(address)
