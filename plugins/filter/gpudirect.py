# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Filters of GPUDirect and of the options of kernel modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.driver.modules import module_options
from ansible_collections.rdma.cluster.plugins.plugin_utils._plan import gpudirect


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "gpudirect_path": gpudirect.gpudirect_path,
            "gpudirect_differs": gpudirect.gpudirect_differs,
            "module_options": module_options,
        }
