# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Network cards that have no RDMA device (yet): before the driver is there, their PCIe path can be told already."""

from __future__ import annotations

from collections.abc import Collection

from ansible_collections.rdma.cluster.plugins.module_utils._pci import PCI_DEVICES, PciFunction, PciReader
from ansible_collections.rdma.cluster.plugins.module_utils._sysroot import SysRoot

#: PCI base class 0x02: Ethernet (0x0200) and InfiniBand (0x0207) among them.
NETWORK = "0x02"


def read_nics(sys: SysRoot, pci: PciReader, known: Collection[str]) -> dict[str, PciFunction]:
    """Functions of network cards by address, without those known and without virtual functions of a card that is here itself."""
    return {
        name: pci.function(path)
        for name in sys.list_dir(PCI_DEVICES)
        if name not in known and _is_nic(sys, name) and (path := sys.resolve(f"{PCI_DEVICES}/{name}")) is not None
    }


def _is_nic(sys: SysRoot, name: str) -> bool:
    return (sys.text(f"{PCI_DEVICES}/{name}/class") or "").startswith(NETWORK) and sys.link_target(f"{PCI_DEVICES}/{name}/physfn") is None
