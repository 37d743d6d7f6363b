# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The drivers of RDMA NICs: how the PCI bus names them, and which kernel modules they are (Linux 5.4 to 6.18, the Makefiles of
drivers/net/ethernet and drivers/infiniband/hw).
"""

from __future__ import annotations

#: The modules of a NIC's driver, by the name of the driver on the PCI bus: that of its interfaces, then that of its RDMA devices.
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
#: Those of the drivers that MLNX_OFED and DOCA-OFED bring.
OFED_DRIVERS = ("mlx4_core", "mlx5_core")


def module_of(driver: str) -> str:
    """The kernel module of a driver as the bus names it: that of a subfunction's "mlx5_core.sf" is mlx5_core."""
    return driver.partition(".")[0]


def modules_of(driver: str) -> tuple[str, ...]:
    """All modules of a driver, by what module_of makes of its name; one of RDMA alone (efa, erdma) is a module of that name."""
    return DRIVERS.get(driver, (driver,))
