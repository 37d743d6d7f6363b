# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Network cards without an RDMA device (yet): their PCIe path is known before the driver is loaded."""

from __future__ import annotations

from collections.abc import Collection

from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._pci.functions import PCI_DEVICES, PciFunction, PciReader

#: PCI base class 0x02: Ethernet (0x0200) and InfiniBand (0x0207) among them.
NETWORK = "0x02"


def read_nics(sys: SysRoot, pci: PciReader, known: Collection[str]) -> dict[str, PciFunction]:
    """Return functions of network cards by address, without those known and without virtual functions whose card is here itself."""
    return {
        name: pci.function(path)
        for name in sys.list_dir(PCI_DEVICES)
        if name not in known and _is_nic(sys, name) and (path := sys.resolve(f"{PCI_DEVICES}/{name}")) is not None
    }


def _is_nic(sys: SysRoot, name: str) -> bool:
    return (sys.text(f"{PCI_DEVICES}/{name}/class") or "").startswith(NETWORK) and sys.link_target(f"{PCI_DEVICES}/{name}/physfn") is None


#: The modules of a NIC's driver, by the driver's name on the PCI bus: first that of its interfaces, then that of its RDMA devices.
DRIVERS = {
    "bnxt_en": ("bnxt_en", "bnxt_re"),
    "cxgb4": ("cxgb4", "iw_cxgb4"),
    "hns3": ("hns3", "hns_roce_hw_v2"),
    "i40e": ("i40e", "irdma"),
    "ice": ("ice", "irdma"),
    "ionic": ("ionic", "ionic_rdma"),
    "mana": ("mana", "mana_ib"),
    "mlx4_core": ("mlx4_core", "mlx4_ib"),
    "mlx5_core": ("mlx5_core", "mlx5_ib"),
    "qede": ("qede", "qedr"),
}
#: All of these modules.
DRIVER_MODULES = tuple(name for names in DRIVERS.values() for name in names)
#: The drivers that MLNX_OFED and DOCA-OFED install.
OFED_DRIVERS = ("mlx4_core", "mlx5_core")


def module_of(driver: str) -> str:
    """Return the kernel module of a driver as the bus names it: mlx5_core for a subfunction's "mlx5_core.sf"."""
    return driver.partition(".")[0]


def modules_of(driver: str) -> tuple[str, ...]:
    """Return all modules of a driver, by module_of of its name; an RDMA-only driver (efa, erdma) is a module of that name."""
    return DRIVERS.get(driver, (driver,))


FOLDER = "/dev/infiniband"
#: The node through which programs use RDMA-CM, one for the whole host.
RDMA_CM = f"{FOLDER}/rdma_cm"
#: Nodes by the beginning of their names; umad and issm are only for root.
_OPEN_TO_ALL = ("rdma_cm", "uverbs")


def read_nodes(sys: SysRoot) -> dict[str, int]:
    """Return the permission bits of each node that the kernel creates open to all: "/dev/infiniband/uverbs0" → 0o666."""
    paths = [f"{FOLDER}/{name}" for name in sys.list_dir(FOLDER) if name.startswith(_OPEN_TO_ALL)]
    modes = {path: sys.mode(path) for path in paths}
    return {path: mode for path, mode in modes.items() if mode is not None}
