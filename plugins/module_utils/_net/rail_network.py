# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A rail as the network managers see it, the places of our files for it, and the result of a change.

backends/ has the change itself: change.py is what all managers share; networkd.py, networkmanager.py and netplan.py write their files and
make them load these; choice.py chooses between them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.files import FileChange, listed_diff, setting_diff
from ansible_collections.rdma.cluster.plugins.module_utils._base.systemd import UnitState
from ansible_collections.rdma.cluster.plugins.module_utils._net.ip_address import is_ipv6
from ansible_collections.rdma.cluster.plugins.module_utils._net.ipoib import SUFFIXES, Ipoib, from_options, is_child_of
from ansible_collections.rdma.cluster.plugins.module_utils._net.links import NO_LINK, Link
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_routes import RailRouting
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_steps import missing_addresses, mtu_differs
from ansible_collections.rdma.cluster.plugins.module_utils._net.session import Session

NETWORKD_UNIT, NM_UNIT = "systemd-networkd.service", "NetworkManager.service"
#: Folders of our files, the prefix of their names, and their suffixes. networkd's prefix sorts before distributions' 70- and 80-, so that
#: ours win; netplan's sorts last, since later files override earlier ones.
NETWORKD_FOLDER, PROFILES, CONF, NETPLAN_FOLDER = (
    "/etc/systemd/network",
    "/etc/NetworkManager/system-connections",
    "/etc/NetworkManager/conf.d",
    "/etc/netplan",
)
PREFIX, NETPLAN_PREFIX = "60-rdma-", "90-rdma-"
#: Exists while the network manager has not loaded our files, because that was deferred. A boot removes it.
PENDING = "/run/rdma-cluster/network-reload"
SETTLE_SECONDS = 20.0
NO_SESSION = Session(None, None)


def places() -> list[tuple[str, tuple[str, ...]]]:
    """Return where our files are: the beginning of their paths, and their suffixes."""
    return [
        (f"{NETWORKD_FOLDER}/{PREFIX}", SUFFIXES),
        (f"{PROFILES}/{PREFIX}", (".nmconnection",)),
        (f"{CONF}/{PREFIX}", (".conf",)),
        (f"{NETPLAN_FOLDER}/{NETPLAN_PREFIX}", (".yaml",)),
    ]


def ours_among(paths: Sequence[str]) -> list[str]:
    """Return which of these paths are files of ours."""
    return [path for path in paths if any(path.startswith(start) and path.endswith(suffixes) for start, suffixes in places())]


def owner_of(path: str) -> str:
    """Return the name of a file of ours without prefix and suffix: the name of its rail, or of a child of it."""
    start = next(start for start, _suffixes in places() if path.startswith(start))
    return path[len(start) :].rsplit(".", maxsplit=1)[0]


def udev_path(pci: str) -> str:
    """Return a shell pattern for udev's ID_PATH of a PCI function: "pci-0000:21:00.0".

    Hyper-V gives devices passed to a virtual machine a PCI domain above 0, and the path begins with its bus:
    acpi-VMBUS:00-pci-0101:00:00.0.
    """
    path = f"pci-{pci.lower()}"
    return path if path.startswith("pci-0000:") else f"*{path}"


@dataclass(frozen=True)
class NetworkRail:
    """A rail as a network manager sees it. nic: {"pci"} or {"mac"}; address: "192.168.100.1/24"; ipoib: further IPoIB settings.

    addresses: further ones of any family; RDMA, rule and routes use the first one.

    mtu_bytes: None keeps the interface's MTU. Without address, MTU and ipoib nothing is configured, and the rail has no file.

    device, port: its RDMA port, used to find its users; None for a rail without one. mac: the hardware address of its interface, None if
    unknown. link_layer: "roce" or "infiniband". table, gateway, routes: as in RailRouting. link: see `rail_links.make_rails`, which makes
    two of these for a rail on a VLAN.
    """

    name: str
    nic: dict[str, str]
    netdev: str
    address: str | None
    mtu_bytes: int | None
    ipoib: Ipoib | None = None
    device: str | None = None
    port: int | None = None
    mac: str | None = None
    link_layer: str = "roce"
    table: int | None = None
    gateway: str | None = None
    routes: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    link: Link = NO_LINK

    @property
    def planned(self) -> list[str]:
        """All its addresses, the first one first."""
        return [*([self.address] if self.address else []), *self.addresses]

    @property
    def ipv4(self) -> list[str]:
        return [text for text in self.planned if not is_ipv6(text)]

    @property
    def ipv6(self) -> list[str]:
        return [text for text in self.planned if is_ipv6(text)]

    @property
    def is_configured(self) -> bool:
        """Whether anything is planned for its interface."""
        return self.address is not None or self.mtu_bytes is not None or self.ipoib is not None or self.link != NO_LINK

    @property
    def is_infiniband(self) -> bool:
        return self.link_layer == "infiniband"

    @property
    def routing(self) -> RailRouting:
        """Its rule and routes."""
        return RailRouting(self.netdev, self.address, self.table, self.gateway, self.routes)


@dataclass(frozen=True)
class Running:
    """Which managers run, or start at boot: they must release a rail that another one has."""

    networkd: bool
    networkmanager: bool


def running_of(units: Mapping[str, UnitState]) -> Running:
    """Return which managers run or start at boot, by their units; a missing one does neither."""
    seen = {name: name in units and (units[name].active or units[name].enabled) for name in (NETWORKD_UNIT, NM_UNIT)}
    return Running(networkd=seen[NETWORKD_UNIT], networkmanager=seen[NM_UNIT])


@dataclass(frozen=True)
class Withheld:
    """A change that is withheld because the rail is in use. rail: its name; netdev: None for one that is no longer planned."""

    rail: str
    netdev: str | None
    change: str
    users: str

    @property
    def words(self) -> str:
        where = f"{self.rail} ({self.netdev})" if self.netdev else self.rail
        return f"{where}: {self.change}; withheld because of {self.users}"


@dataclass(frozen=True)
class NetworkResult:
    """The changes that were made, or would be in check mode.

    live: interface → its differences (current, planned); service: the unit that was not up; withheld: changes not made.
    """

    files: list[FileChange]
    live: dict[str, list[tuple[str, str]]]
    service: str | None
    withheld: list[Withheld] = field(default_factory=list)
    reloaded: bool = False

    @property
    def changed(self) -> bool:
        return bool(self.files or self.live or self.service or self.reloaded)

    @property
    def diffs(self) -> list[dict[str, str]]:
        """Return the changes in the form that Ansible's --diff prints."""
        live = [setting_diff(name, *each) for name, differences in self.live.items() for each in differences]
        service = listed_diff(self.service, ["enabled and started"]) if self.service else []
        return [*(file.to_diff() for file in self.files), *service, *live]


def make_rail(given: Mapping[str, Any]) -> NetworkRail:
    """Return the rail in a module's options. Raises ApplyError for a child whose name would be too long."""
    given = {**given, "routes": tuple(given.get("routes") or ()), "addresses": tuple(given.get("addresses") or ())}
    return NetworkRail(**{**given, "ipoib": from_options(given["netdev"], given.get("ipoib"))})


def rail_of(owner: str) -> str:
    """Return the rail of an owner: "rail0@vlan" → "rail0"."""
    return owner.partition("@")[0]


def is_of(owner: str, names: Sequence[str]) -> bool:
    """Return whether a file with this owner belongs to one of these rails. That of a rail's VLAN, "rail0@vlan", belongs to the rail."""
    return owner in names or rail_of(owner) in names or is_child_of(f"{owner}.network", names)


def live_differences(rail: NetworkRail, mtu_bytes: int | None, there: Sequence[str]) -> list[tuple[str, str]]:
    """Return the differences of a live interface as texts (current, planned). there: its addresses, "192.168.100.1/24"."""
    found = []
    if mtu_differs(rail.mtu_bytes, mtu_bytes):
        found.append((f"MTU {mtu_bytes} bytes", f"MTU {rail.mtu_bytes} bytes"))
    found += [(f"address {', '.join(there) or 'none'}", f"address {text}") for text in missing_addresses(rail.planned, there)]
    return found


def needs_service(rails: Sequence[NetworkRail]) -> bool:
    """Return whether the network manager must run: not if no rail has settings, because then it has no file of ours."""
    return not rails or any(rail.is_configured for rail in rails)
