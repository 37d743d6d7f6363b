# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Filters that derive the settings of NICs and switches from rdma_roce."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.rdma.cluster.plugins.plugin_utils._roce import profile, switch_config


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "roce_profile": profile.roce_profile,
            "switch_config": switch_config.switch_config,
        }
