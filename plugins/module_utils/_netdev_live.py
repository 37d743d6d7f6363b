# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The interfaces that have to do with RDMA, and what only the running system tells of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from ansible_collections.rdma.cluster.plugins.module_utils._command import Runner
from ansible_collections.rdma.cluster.plugins.module_utils._ethtool import Ethtool, EthtoolPort, read_ethtool
from ansible_collections.rdma.cluster.plugins.module_utils._ip_address import IpAddresses, read_ip_addresses
from ansible_collections.rdma.cluster.plugins.module_utils._net_managers import read_managers
from ansible_collections.rdma.cluster.plugins.module_utils._netdev import Netdev, read_netdev
from ansible_collections.rdma.cluster.plugins.module_utils._network_files import read_boot_networks
from ansible_collections.rdma.cluster.plugins.module_utils._rdma_device import Device
from ansible_collections.rdma.cluster.plugins.module_utils._sysroot import SysRoot


def add_named(sys: SysRoot, known: Mapping[str, Netdev], devices: Mapping[str, Device]) -> dict[str, Netdev]:
    """The interfaces known, with those that ports and GIDs of RDMA devices name: a bond has no device below it."""
    ports = [port for device in devices.values() for port in device.ports.values()]
    used = {name for port in ports for name in (port.netdev, *(gid.netdev for gid in port.gids)) if name is not None}
    return {**known, **{name: read_netdev(sys, name) for name in sorted(used - known.keys())}}


def read_addresses(runner: Runner) -> dict[str, IpAddresses]:
    """What `ip` says of every interface; nothing where there is no iproute2."""
    return read_ip_addresses(runner) or {}


def add_live(
    sys: SysRoot,
    runner: Runner,
    port: EthtoolPort,
    netdevs: Mapping[str, Netdev],
    addresses: Mapping[str, IpAddresses],
    *,
    subset: Collection[str],
) -> dict[str, Netdev]:
    """The interfaces with addresses, who claims them, now and at boot, and what their drivers report.

    subset: whether counters and optics are wanted.
    """
    boot = read_boot_networks(sys, netdevs)
    return {
        name: replace(
            netdev,
            max_mtu_bytes=addresses[name].max_mtu_bytes if name in addresses else None,
            ipv4=addresses[name].ipv4 if name in addresses else None,
            managers=read_managers(sys, name, netdev.ifindex),
            boot=boot[name],
            ethtool=_ethtool(port, runner, name, subset),
        )
        for name, netdev in netdevs.items()
    }


def _ethtool(port: EthtoolPort, runner: Runner, name: str, subset: Collection[str]) -> Ethtool | None:
    told = read_ethtool(port, runner if "optics" in subset else None, name)
    return told if told is None or "counters" in subset else replace(told, counters={})
