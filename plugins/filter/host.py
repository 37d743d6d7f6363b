# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Filters of the host stage: what is asked for, and whether a host differs from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._host.load import busy_words
from ansible_collections.rdma.cluster.plugins.plugin_utils._plan import host
from ansible_collections.rdma.cluster.plugins.plugin_utils._plan import host as plan_host


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "in_use": lambda facts: busy_words((facts or {}).get("load")),
            "cpu_differs": plan_host.cpu_differs,
            "irqbalance_differs": plan_host.irqbalance_differs,
            "limits_differ": host.limits_differ,
            "limits_options": host.limits_options,
            "ring_settings": plan_host.ring_settings,
            "rings_differ": plan_host.rings_differ,
            "sysctl_differs": host.sysctl_differs,
            "sysctl_settings": host.sysctl_settings,
            "time_content": plan_host.time_content,
            "time_differs": plan_host.time_differs,
        }
