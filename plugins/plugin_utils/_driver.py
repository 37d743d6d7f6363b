# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the driver stage derives from the intent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._rails import soft_device_name

#: What verbs and RDMA-CM need, in the order of their dependencies.
CORE_MODULES = ("ib_core", "ib_uverbs", "rdma_cm", "rdma_ucm")
SOFT_MODULES = ("rdma_rxe",)
NVIDIA_MODULES = ("mlx5_core", "mlx5_ib")


def needed_modules(intent: Mapping[str, Any]) -> list[str]:
    """The kernel modules that must be loaded for these rails, in order."""
    soft = any(rail["soft"] for rail in intent["rails"])
    hard = any(not rail["soft"] for rail in intent["rails"])
    return [*CORE_MODULES, *(NVIDIA_MODULES if hard else ()), *(SOFT_MODULES if soft else ())]


def boot_modules(intent: Mapping[str, Any]) -> list[str]:
    """Those of them that nothing else loads at boot: udev and rdma-core load the rest when the device appears."""
    return [name for name in needed_modules(intent) if name in SOFT_MODULES]


def soft_links(intent: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The Soft-RoCE links of a host, in the shape that rdma.cluster.soft_links takes."""
    return [{"name": soft_device_name(rail), "type": "rxe", "nic": rail["nic"]} for rail in intent["rails"] if rail["soft"]]
