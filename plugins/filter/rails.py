# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Filters that turn intent and facts into what roles hand to modules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import resolve
from ansible_collections.rdma.cluster.plugins.plugin_utils._driver import modules
from ansible_collections.rdma.cluster.plugins.plugin_utils._plan import differences


def netdevs_down(intent: Mapping[str, Any], facts: Mapping[str, Any]) -> list[str]:
    """The rails' interfaces that are administratively down."""
    names = [rail.netdev for rail in resolve(intent["rails"], facts) if rail.netdev is not None]
    return [name for name in names if not facts["netdevs"][name]["admin_up"]]


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "network_rails": differences.network_rails,
            "network_differs": differences.network_differs,
            "netdevs_down": netdevs_down,
            "modules_differ": differences.modules_differ,
            "soft_links_differ": differences.soft_links_differ,
            "needed_modules": modules.needed_modules,
            "boot_modules": modules.boot_modules,
            "soft_links": modules.soft_links,
        }
