# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The interfaces of planned NICs, and the RDMA port on each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._netdev import read_netdevs
from ansible_collections.rdma.cluster.plugins.module_utils._pci import PciReader
from ansible_collections.rdma.cluster.plugins.module_utils._qos_apply import QosPort
from ansible_collections.rdma.cluster.plugins.module_utils._qos_state import roce_interfaces
from ansible_collections.rdma.cluster.plugins.module_utils._rails import find_netdev
from ansible_collections.rdma.cluster.plugins.module_utils._rdma_device import read_devices
from ansible_collections.rdma.cluster.plugins.module_utils._sysroot import SysRoot


@dataclass(frozen=True)
class QosPorts:
    """found: interface → its port, in the order of the NICs. waiting: interfaces that have no RDMA device. missing: NICs not there."""

    found: dict[str, QosPort]
    waiting: list[str]
    missing: list[str]


def find_ports(sys: SysRoot, nics: Sequence[Mapping[str, str]]) -> QosPorts:
    """nics: each named by pci or mac."""
    netdevs = read_netdevs(sys)
    ports = roce_interfaces(netdevs, read_devices(sys, netdevs, PciReader(sys), counters=False))
    told: dict[str, Mapping[str, Any]] = {name: vars(netdev) for name, netdev in netdevs.items()}
    names = [(nic, find_netdev(nic, told)) for nic in nics]
    there = [name for _nic, name in names if name is not None]
    return QosPorts(
        found={name: QosPort(name, *ports[name]) for name in there if name in ports},
        waiting=[name for name in there if name not in ports],
        missing=[next(iter(nic.values())) for nic, name in names if name is None],
    )
