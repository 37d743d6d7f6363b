# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Network interfaces in /sys/class/net, as net/core/net-sysfs.c of Linux prints them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._net.ethtool import Ethtool
from ansible_collections.rdma.cluster.plugins.module_utils._net.ip_address import IpAddresses
from ansible_collections.rdma.cluster.plugins.module_utils._net.network_files import BootNetwork
from ansible_collections.rdma.cluster.plugins.module_utils._pci.functions import (
    address_of,
    find_function,
    parse_numa_node,
    read_function_kind,
)

_INTEGER = re.compile(r"[0-9]{1,10}")
_FLAGS = re.compile(r"0x[0-9a-fA-F]{1,8}")
# Six bytes on Ethernet, twenty on IP over InfiniBand.
_MAC = re.compile(r"[0-9a-fA-F]{2}(?::[0-9a-fA-F]{2}){5,31}")
_IFF_UP = 1
#: phys_port_name of a VF's or SF's representor (devlink_port_phys_port_name_get of net/devlink): "pf0vf3", "c1pf0sf88".
REPRESENTOR = re.compile(r"(?:c[0-9]{1,5})?pf[0-9]{1,5}(?:vf|sf)[0-9]{1,6}")


@dataclass(frozen=True)
class Netdev:
    """One interface. type is the ARPHRD number (1 Ethernet, 32 InfiniBand); pci the address of its PCI function.

    carrier is None while the interface is administratively down: the kernel does not know it then.
    mac: its own, also where a bond hides it.
    driver is that of the device below ("mlx5_core", "virtio_net"), None for a bond, VLAN or bridge.
    function: "pf", "vf", "sf", or "representor" (the switch's end of a VF or SF, on the PCI function of its PF); None: unknown.
    master: the bond, bridge or VRF that it belongs to. carrier_downs: how often the link was lost since the interface was created.
    max_mtu_bytes, ipv4 ("192.168.100.1/24"), ipv6 ("2001:db8:100::1/64": global addresses in use) and dad_failed (IPv6 addresses that
    another host has) are not in sysfs: None unless read from the running system. The same holds for
    managers, which claim to configure it, boot, what systemd-networkd does with it at the next boot, profile, what NetworkManager does
    with it, and ethtool.
    """

    mac: str | None
    mtu_bytes: int | None
    operstate: str | None
    carrier: bool | None
    admin_up: bool | None
    type: int | None
    dev_port: int | None
    driver: str | None
    pci: str | None
    numa_node: int | None
    ifindex: int | None
    function: str | None
    master: str | None
    carrier_downs: int | None
    max_mtu_bytes: int | None = None
    ipv4: list[str] | None = None
    ipv6: list[str] | None = None
    dad_failed: list[str] | None = None
    managers: list[str] | None = None
    boot: BootNetwork | None = None
    profile: BootNetwork | None = None
    ethtool: Ethtool | None = None

    @property
    def addresses(self) -> list[str] | None:
        """Its addresses of both families; None if they were not read."""
        return addresses_of(self)


@dataclass(frozen=True)
class Interface:
    """One interface of any kind, including bonds, VLANs and bridges. admin_up: None if the kernel does not report it.

    ipv4: ["192.168.100.1/24"], ipv6: ["2001:db8:100::1/64"], as in Netdev; None unless read from the running system.
    """

    admin_up: bool | None
    ipv4: list[str] | None = None
    ipv6: list[str] | None = None

    @property
    def addresses(self) -> list[str] | None:
        """Its addresses of both families; None if they were not read."""
        return addresses_of(self)


def addresses_of(netdev: Netdev | Interface) -> list[str] | None:
    """Return the addresses of both families of an interface; None if they were not read."""
    return None if netdev.ipv4 is None else [*netdev.ipv4, *(netdev.ipv6 or ())]


def parse_mac(text: str) -> str:
    """Parse address, "02:00:00:00:01:02", into lower case."""
    if _MAC.fullmatch(text.strip()) is None:
        raise ParseError(f"not a hardware address: {quoted(text)}, expected the form '02:00:00:00:01:02'")
    return text.strip().lower()


def parse_integer(text: str) -> int:
    """Parse mtu, type, dev_port: a decimal number."""
    if _INTEGER.fullmatch(text.strip()) is None:
        raise ParseError(f"not a number: {quoted(text)}, expected the form '1500'")
    return int(text.strip())


def parse_carrier(text: str) -> bool:
    """Parse carrier, "1" or "0"."""
    if text.strip() not in ("0", "1"):
        raise ParseError(f"not a carrier state: {quoted(text)}, expected '0' or '1'")
    return text.strip() == "1"


def parse_admin_up(text: str) -> bool:
    """Return whether IFF_UP is set in flags, "0x1003": "ip link set up" sets it."""
    if _FLAGS.fullmatch(text.strip()) is None:
        raise ParseError(f"not interface flags: {quoted(text)}, expected the form '0x1003'")
    return bool(int(text.strip(), 16) & _IFF_UP)


def read_netdevs(sys: SysRoot) -> dict[str, Netdev]:
    """Return every interface that has a device below it, by name."""
    return {
        name: read_netdev(sys, name)
        for name in sys.list_dir("/sys/class/net")
        if sys.link_target(f"/sys/class/net/{name}/device") is not None
    }


def read_interfaces(sys: SysRoot, addresses: Mapping[str, IpAddresses] | None = None) -> dict[str, Interface] | None:
    """Return every interface by name, lo included; None for a tree without any. addresses: name → its addresses, if they were read.

    Next to the interfaces, which are links to folders, there are files for all of one kind, such as bonding_masters.
    """
    places = {name: f"/sys/class/net/{name}" for name in sys.list_dir("/sys/class/net")}
    names = [name for name, place in places.items() if sys.link_target(place) is not None or sys.list_dir(place)]
    ups = {name: sys.value(f"{places[name]}/flags", parse_admin_up) for name in names}
    known = addresses or {}
    return {
        name: Interface(up, list(known[name].ipv4), list(known[name].ipv6)) if name in known else Interface(up) for name, up in ups.items()
    } or None


def read_netdev(sys: SysRoot, name: str) -> Netdev:
    """Return one interface; None in every field if it is not in the tree."""
    base = f"/sys/class/net/{name}"
    function = find_function(sys, f"{base}/device")
    driver = sys.link_target(f"{base}/device/driver")
    return Netdev(
        # A bond gives all its members its own address.
        mac=sys.value(f"{base}/bonding_slave/perm_hwaddr", parse_mac) or sys.value(f"{base}/address", parse_mac),
        mtu_bytes=sys.value(f"{base}/mtu", parse_integer),
        operstate=sys.text(f"{base}/operstate"),
        carrier=sys.value(f"{base}/carrier", parse_carrier),
        admin_up=sys.value(f"{base}/flags", parse_admin_up),
        type=sys.value(f"{base}/type", parse_integer),
        dev_port=sys.value(f"{base}/dev_port", parse_integer),
        driver=_name_of(driver),
        pci=address_of(function) if function is not None else None,
        numa_node=sys.value(f"{function}/numa_node", parse_numa_node) if function is not None else None,
        ifindex=sys.value(f"{base}/ifindex", parse_integer),
        function=_function(sys, base) if function is not None else None,
        master=_name_of(sys.link_target(f"{base}/master")),
        carrier_downs=sys.value(f"{base}/carrier_down_count", parse_integer),
    )


def _function(sys: SysRoot, base: str) -> str | None:
    """Return "representor" if the name of its port is that of one, else the kind of the device below it."""
    if REPRESENTOR.fullmatch(sys.text(f"{base}/phys_port_name") or ""):
        return "representor"
    return read_function_kind(sys, f"{base}/device")[0]


def _name_of(link: str | None) -> str | None:
    return PurePosixPath(link).name if link is not None else None
