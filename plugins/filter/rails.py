# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Filters that turn intent and facts into what roles hand to modules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._rails import resolve
from ansible_collections.rdma.cluster.plugins.plugin_utils import _driver


def network_rails(intent: Mapping[str, Any], facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rails that have an interface on this host, in the shape that rdma.cluster.rail_network takes."""
    return [
        {
            "name": rail.name,
            "nic": dict(rail.rail["nic"]),
            "netdev": rail.netdev,
            "address": rail.rail["address"],
            "mtu_bytes": rail.rail["mtu_bytes"],
        }
        for rail in resolve(intent["rails"], facts)
        if rail.netdev is not None
    ]


def netdevs_down(intent: Mapping[str, Any], facts: Mapping[str, Any]) -> list[str]:
    """The rails' interfaces that are administratively down."""
    names = [rail.netdev for rail in resolve(intent["rails"], facts) if rail.netdev is not None]
    return [name for name in names if not facts["netdevs"][name]["admin_up"]]


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "network_rails": network_rails,
            "netdevs_down": netdevs_down,
            "needed_modules": _driver.needed_modules,
            "boot_modules": _driver.boot_modules,
            "soft_links": _driver.soft_links,
        }
