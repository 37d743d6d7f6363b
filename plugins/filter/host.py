# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter that returns the users of a host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._host.load import busy_words
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"in_use": lambda facts: busy_words(from_dict({"load": (facts or {}).get("load")}).load)}
