# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Filters of the host stage for PCIe: the settings to make, what is withheld, and whether anything differs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.rdma.cluster.plugins.plugin_utils._plan import host


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "pcie_settings": host.pcie_settings,
            "pcie_differs": host.pcie_differs,
            "pcie_withheld": host.pcie_withheld,
        }
