# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Filters of the host stage: what is asked for, and whether a host differs from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._load import busy_words
from ansible_collections.rdma.cluster.plugins.plugin_utils import _host, _host_tuning


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "in_use": lambda facts: busy_words((facts or {}).get("load")),
            "cpu_differs": _host_tuning.cpu_differs,
            "irqbalance_differs": _host_tuning.irqbalance_differs,
            "limits_differ": _host.limits_differ,
            "limits_options": _host.limits_options,
            "ring_settings": _host_tuning.ring_settings,
            "rings_differ": _host_tuning.rings_differ,
            "sysctl_differs": _host.sysctl_differs,
            "sysctl_settings": _host.sysctl_settings,
            "time_content": _host_tuning.time_content,
            "time_differs": _host_tuning.time_differs,
        }
