# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The state of each rail's port, by the rail's name: a driver may give its device another one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._rails import resolve


def states(rails: Sequence[Mapping[str, Any]], facts: Mapping[str, Any]) -> dict[str, str]:
    """Rail → "ACTIVE", "DOWN", … as the port's own file has it; "no RDMA device" for a rail without one."""
    found = {}
    for rail in resolve(rails, facts):
        is_there = rail.device is not None and rail.port is not None
        found[rail.name] = str(facts["devices"][rail.device]["ports"][rail.port]["state"]) if is_there else "no RDMA device"
    return found
