# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Filters of the nccl stage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._nccl import lint


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "nccl_lint": lint.nccl_lint,
            "nccl_lint_plan": lambda intent, facts: lint.nccl_lint_plan(intent, from_dict(facts)),
        }
