# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the driver stage derives from the intent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._nic_drivers import DRIVERS, module_of, modules_of
from ansible_collections.rdma.cluster.plugins.module_utils._planned_stack import INBOX, is_kept, planned_modules
from ansible_collections.rdma.cluster.plugins.module_utils._rails import ResolvedRail, resolve, soft_device_name

#: What verbs and RDMA-CM need, in the order of their dependencies.
CORE_MODULES = ("ib_core", "ib_uverbs", "rdma_cm", "rdma_ucm")
SOFT_MODULES = ("rdma_rxe",)
#: What MLNX_OFED and DOCA-OFED are judged by, and loaded where those are planned, whatever the cards are. Theirs brings mlx_compat along.
#: A kept stack loads nothing that the rails do not need.
ADD_ON_MODULES = ("mlx5_core",)
#: Subnet management and IP over InfiniBand.
INFINIBAND_MODULES = ("ib_umad", "ib_ipoib")
#: Taken where nothing tells of the card: its driver is not loaded yet.
USUAL_DRIVER = "mlx5_core"


def needed_modules(intent: Mapping[str, Any], facts: Mapping[str, Any] | None = None) -> list[str]:
    """The kernel modules that must be loaded for these rails, in order; those of a card by the driver that the facts name."""
    soft = any(rail["soft"] for rail in intent["rails"])
    drivers = dict.fromkeys(_driver(rail, facts or {}) for rail in resolve(intent["rails"], facts or {}) if not rail.rail["soft"])
    cards = [name for driver in drivers for name in modules_of(driver)]
    add_on = ADD_ON_MODULES if planned_modules(intent) != INBOX and not is_kept(intent) else ()
    infiniband = any(rail["link_layer"] == "infiniband" and not rail["soft"] for rail in intent["rails"])
    kinds = [*(INFINIBAND_MODULES if infiniband else ()), *(SOFT_MODULES if soft else ())]
    return list(dict.fromkeys([*CORE_MODULES, *add_on, *cards, *kinds]))


def _driver(rail: ResolvedRail, facts: Mapping[str, Any]) -> str:
    """The driver of a rail's card: of its RDMA device, else of its interface if that is one for RDMA."""
    device = facts["devices"][rail.device] if rail.device is not None else {}
    netdev = facts["netdevs"][rail.netdev] if rail.netdev is not None else {}
    if device.get("driver") and not device.get("software"):
        return module_of(str(device["driver"]))
    return str(netdev["driver"]) if netdev.get("driver") in DRIVERS else USUAL_DRIVER


def boot_modules(intent: Mapping[str, Any]) -> list[str]:
    """Those of them that nothing else loads at boot: udev and rdma-core load the rest when the device appears."""
    return [name for name in needed_modules(intent) if name in SOFT_MODULES]


def soft_links(intent: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The Soft-RoCE links of a host, in the shape that rdma.cluster.soft_links takes."""
    return [{"name": soft_device_name(rail), "type": "rxe", "nic": rail["nic"]} for rail in intent["rails"] if rail["soft"]]
