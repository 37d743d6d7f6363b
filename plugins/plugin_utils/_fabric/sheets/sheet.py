# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is planned for each switch of the Ethernet planes, from the cabling plans, the rails, the routing and the RoCE profile."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent, Rail
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.cabling.plan import Plan, Spot, parse_plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.model import RoutedPlane, Router
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.planes import routed_planes
from ansible_collections.rdma.cluster.plugins.plugin_utils._roce.plan import make_plan as make_roce_plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._roce.profile import roce_profile
from ansible_collections.rdma.cluster.plugins.plugin_utils._roce.switch_config import switches_of

#: A host's end that is not the name of a rail, so its VLAN is not known before the host is read.
NOT_KNOWN = "not known"


@dataclass(frozen=True)
class SheetPort:
    """A port and what is planned behind it. port: its interface, or "port N" if nothing names it. number: that of the cabling plan.

    to, its_end: a host and its rail or HCA, or a switch and its port. address, its_address: with prefix length, "" without routing. vlan:
    the tags, "" none. its_asn: of a switch that routes, None: no BGP session.
    """

    plane: str
    number: int
    port: str
    to: str
    its_end: str
    is_host: bool
    address: str = ""
    its_address: str = ""
    vlan: str = ""
    its_asn: int | None = None


@dataclass
class Sheet:
    """A switch. tiers: plane → its tier there, "" if none is planned. routed: its plane and its plan if it routes.

    qos: the RoCE profile and the switch of rdma_roce.switches, None: not in it.
    """

    name: str
    tiers: dict[str, str] = field(default_factory=dict)
    ports: list[SheetPort] = field(default_factory=list)
    routed: tuple[RoutedPlane, Router] | None = None
    qos: tuple[Mapping[str, Any], Mapping[str, Any]] | None = None


def make_sheets(intents: Mapping[str, Intent], read_plan: Callable[[str], str]) -> dict[str, Sheet]:
    """Return switch → its sheet. read_plan: returns the text of a cabling plan, or raises ParseError.

    Raises RoutingError for planes that cannot be routed, and ValueError for switches of which hosts need different QoS.
    """
    make_roce_plan(intents)
    routed = {plane.name: plane for plane in routed_planes(intents, read_plan)}
    sheets: dict[str, Sheet] = {}
    for name, file in _ethernet_planes(intents).items():
        rails = {host: [rail for rail in intent["rails"] if rail["plane"] == name] for host, intent in intents.items()}
        _Reader(name, parse_plan(read_plan(file)), rails, routed.get(name), sheets).read()
    for intent in intents.values():
        profile = roce_profile(intent)
        for switch, settings in switches_of(intent).items() if profile is not None else ():
            sheets.setdefault(switch, Sheet(switch)).qos = (profile, settings)  # type: ignore[assignment]
    return sheets


def _ethernet_planes(intents: Mapping[str, Intent]) -> dict[str, str]:
    """Return plane → its cabling plan, for the planes that are not InfiniBand."""
    infiniband = {rail["plane"] for intent in intents.values() for rail in intent["rails"] if rail["link_layer"] == "infiniband"}
    found: dict[str, str] = {}
    for intent in intents.values():
        for name, plane in intent["fabric"]["planes"].items():
            if plane["plan"] is not None and plane["subnet_manager"] is None and name not in infiniband:
                found.setdefault(name, plane["plan"])
    return dict(sorted(found.items()))


@dataclass
class _Reader:
    """Reads the cables of one plane into the sheets of its switches. rails: host → its rails in this plane."""

    plane: str
    cabling: Plan
    rails: Mapping[str, list[Rail]]
    routed: RoutedPlane | None
    sheets: dict[str, Sheet]

    def read(self) -> None:
        for name, switch in self.cabling.switches.items():
            sheet = self.sheets.setdefault(name, Sheet(name))
            sheet.tiers[self.plane] = switch.tier or ""
            if self.routed is not None:
                sheet.routed = (self.routed, self.routed.routers[name])
        for link in self.cabling.links:
            for spot, other in ((link.a, link.b), (link.b, link.a)):
                if spot.device is None:
                    self.sheets[spot.name].ports.append(self._port(spot, other))
        for name in self.cabling.switches:
            self.sheets[name].ports.sort(key=lambda each: (each.plane, each.number))

    def _port(self, spot: Spot, other: Spot) -> SheetPort:
        if self.routed is not None:
            return self._routed_port(self.routed, spot, other)
        is_host = other.device is not None
        vlan = self._vlan(other) if is_host else ", ".join(map(str, sorted(self._vlans())))
        return SheetPort(self.plane, spot.port, f"port {spot.port}", other.name, self._end(other), is_host, vlan=vlan)

    def _routed_port(self, routed: RoutedPlane, spot: Spot, other: Spot) -> SheetPort:
        port = routed.names[spot.name, spot.port]
        if other.device is None:
            end = routed.names[other.name, other.port]
            return SheetPort(self.plane, spot.port, port, other.name, end, is_host=False, its_asn=routed.routers[other.name].asn)
        host = next(each for each in routed.routers[spot.name].host_ports if each.port == port)
        return SheetPort(self.plane, spot.port, port, other.name, self._end(other), True, host.address, host.host_address)

    @staticmethod
    def _end(spot: Spot) -> str:
        if spot.device is None:
            return f"port {spot.port}"
        return spot.device + (f" port {spot.port}" if spot.port != 1 else "")

    def _vlan(self, spot: Spot) -> str:
        """Return the VLAN of a host's port: that of the rail with its name, or the one that all rails of the host in the plane have."""
        rails = self.rails.get(spot.name, [])
        named = [rail for rail in rails if rail["name"] == spot.device]
        vlans = {rail["vlan"]["id"] if rail["vlan"] is not None else None for rail in named or rails}
        if len(vlans) != 1:
            return NOT_KNOWN
        vlan = vlans.pop()
        return "" if vlan is None else str(vlan)

    def _vlans(self) -> set[int]:
        return {rail["vlan"]["id"] for rails in self.rails.values() for rail in rails if rail["vlan"] is not None}
