# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A planned rail for checks on its link: its device, port and interface, and helpers for findings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import NOT_APPLICABLE, UNKNOWN, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Rail
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._net.ethtool import Ethtool
from ansible_collections.rdma.cluster.plugins.module_utils._net.netdev import Netdev
from ansible_collections.rdma.cluster.plugins.module_utils._pci.functions import PciFunction, PciHop
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.device import Device, Port
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import LINK_LAYERS, ResolvedRail, address_netdev, resolve

NO_DEVICE = "no RDMA device, so no port to check: see link.state"
WRONG_KIND = "the port has the wrong link layer: see link.layer"
NO_FUNCTION = "no PCI function is known for this NIC"
NOT_UP = "the port is not up: see link.state"


@dataclass(frozen=True)
class RailPort:
    """A rail of a host with the facts of its device, port and interface; each is None if missing.

    stage: the stage whose gate runs the check; card: its PCI function while it has no RDMA device; carries: the interface with its address.
    """

    stage: str
    host: str
    rail: ResolvedRail
    device: Device | None
    port: Port | None
    netdev: Netdev | None
    card: PciFunction | None
    carries: Netdev | None = None

    @property
    def name(self) -> str:
        """The port's name as the tools print it: "mlx5_0/1"."""
        return f"{self.rail.device}/{self.rail.port}"

    @property
    def sysfs(self) -> str:
        return f"/sys/class/infiniband/{self.rail.device}/ports/{self.rail.port}"

    @property
    def software(self) -> bool:
        """Whether the rail's device is a software device, which has no line rate and no PCIe path."""
        return bool(self.rail.rail.get("soft")) or (self.device is not None and self.device.software is True)

    @property
    def virtual(self) -> bool:
        """Whether it is a port of a virtual function."""
        return self.device is not None and self.device.function == "vf"

    @property
    def driver(self) -> str | None:
        return self.device.driver if self.device else None

    @property
    def link_layer(self) -> str | None:
        return self.port.link_layer if self.port else None

    @property
    def infiniband(self) -> bool:
        return self.link_layer == "InfiniBand"

    @property
    def wrong_kind(self) -> bool:
        """Whether the port is known to have a link layer other than the planned one."""
        return self.link_layer not in (LINK_LAYERS[self.rail.rail["link_layer"]], None)

    @property
    def up(self) -> bool:
        return self.port is not None and (self.port.state, self.port.physical_state) == ("ACTIVE", "LinkUp")

    @property
    def pci(self) -> PciFunction | None:
        """The PCI function of the card, also before it has an RDMA device; None for a software device."""
        return (self.device.pci if self.device else None) or (None if self.software else self.card)

    @property
    def address(self) -> str:
        """The card's name for a command: its PCI address, or else `nic` of the intent."""
        return self.pci.address if self.pci else self.rail.nic

    @property
    def ethtool(self) -> Ethtool | None:
        return self.netdev.ethtool if self.netdev else None

    def unread_by_driver(self, what: str) -> str | None:
        """Why a value of the interface's driver could not be read; None if it was read."""
        return self.ethtool.unread.get(what) if self.ethtool else None

    @property
    def planned_gbps(self) -> float | None:
        return self.rail.rail.get("rate_gbps")

    @property
    def rate_gbps(self) -> float | None:
        """The port's current rate.

        On Ethernet it is the interface's speed, if known: an RDMA driver reports another speed if it does not know the actual one.
        """
        if self.ethtool and self.ethtool.speed_mbps and not self.infiniband:
            return self.ethtool.speed_mbps / 1000
        return self.port.rate_gbps if self.port else None

    @property
    def cable(self) -> str:
        return f"the cable of rail {self.rail.index} on {self.host} ({self.name}, {self.address})"

    @property
    def look(self) -> str:
        """The commands that show most about the link."""
        if self.infiniband or self.rail.netdev is None:
            return f"`mstlink -d {self.address} -m -c`"
        return f"`ethtool {self.rail.netdev}` and `ethtool -m {self.rail.netdev}`"

    @property
    def not_judged(self) -> str | None:
        """Why checks that need an active link do not apply; None for an active link."""
        if not self.port:
            return NO_DEVICE
        if self.wrong_kind:
            return WRONG_KIND
        return None if self.up else NOT_UP

    @property
    def no_pci(self) -> str | None:
        """Why checks that need a PCIe path do not apply; None if there is one."""
        if self.software:
            return "a software device has no PCIe path"
        return None if self.pci else NO_FUNCTION

    def finding(self, check: str, status: str, observed: str, expected: str, remedy: str = "", *, ratio: float | None = None) -> Finding:
        return Finding(self.stage, check, self.host, self.rail.subject, status, observed, expected, remedy, rate_ratio=ratio)

    def skip(self, check: str, why: str, expected: str) -> Finding:
        """A not_applicable finding with the reason; unknown if the PCI function of an existing NIC is not known."""
        if why == NO_FUNCTION and (self.rail.device or self.rail.netdev):
            return self.unread(check, why, expected)
        return self.finding(check, NOT_APPLICABLE, why, expected)

    def unread(self, check: str, why: str, expected: str) -> Finding:
        """An unknown finding of a NIC's PCI function or path, with the reason."""
        remedy = f"1. On {self.host}, run `lspci -vvv -s {self.address}` as root. 2. Read its facts as root, then run the stage again."
        return self.finding(check, UNKNOWN, why, expected, remedy)


def way_of(pci: PciFunction) -> list[PciFunction | PciHop]:
    """A function and the bridges above it, up to the root."""
    return [pci, *pci.hops]


def rail_ports(stage: str, host: str, rails: Sequence[Rail], facts: Facts) -> list[RailPort]:
    """Each planned rail of a host, in the plan's order."""
    return [rail_port(stage, host, rail, facts) for rail in resolve(rails, facts)]


def rail_port(stage: str, host: str, rail: ResolvedRail, facts: Facts) -> RailPort:
    """A planned rail with the facts of its device, port and interface."""
    device = facts.devices[rail.device] if rail.device is not None else None
    port = device.ports[rail.port] if device is not None and rail.port is not None else None
    netdev = facts.netdevs[rail.netdev] if rail.netdev is not None else None
    address = rail.rail["nic"].get("pci") or (netdev.pci if netdev else None)
    return RailPort(stage, host, rail, device, port, netdev, facts.nics.get(address or ""), address_netdev(rail, facts))
