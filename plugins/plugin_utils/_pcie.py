# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filters of the role pcie: what is asked of a host's cards and bridges, what is withheld, and whether anything differs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._files import files_differ
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_acs import BARE_METAL, DATADIRECT
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_plan import (
    pcie_wish,
    read_requests,
    redirecting_bridges,
    state_of,
)
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_tuning_service import UNIT, service_files
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_wish import Wish

Intent = Mapping[str, Any]
Facts = Mapping[str, Any]
RUNS = {"active": True, "enabled": True}


def pcie_settings(intent: Intent, facts: Facts, acs_allowed: bool = False) -> dict[str, Any]:
    """What rdma.cluster.pcie_tuning takes: {"nics": PCI addresses, "mrrs_bytes": size or None, "acs": mode}."""
    wish = pcie_wish(intent, facts, acs_allowed=acs_allowed)
    return {"nics": list(wish.nics), "mrrs_bytes": wish.mrrs_bytes, "acs": wish.acs}


def pcie_differs(intent: Intent, facts: Facts | None, acs_allowed: bool = False) -> bool:
    """True unless the facts prove that the service, the read requests and ACS are all as wished."""
    if facts is None:
        return True
    wish = pcie_wish(intent, facts, acs_allowed=acs_allowed)
    if files_differ(service_files(wish), facts):
        return True
    return bool(wish) and ((facts.get("units") or {}).get(UNIT) != RUNS or _live_differs(wish, facts))


def _live_differs(wish: Wish, facts: Facts) -> bool:
    state = state_of(facts)
    if wish.mrrs_bytes is not None and any(set(read_requests(state, nic).values()) != {wish.mrrs_bytes} for nic in wish.nics):
        return True
    # Where it may not be switched off, the module says so.
    return wish.acs == BARE_METAL and (state["acs_mode"] == DATADIRECT or bool(redirecting_bridges(state, wish)))


def pcie_acs_withheld(intent: Intent, facts: Facts) -> list[str]:
    """The bridges whose ACS would be switched off if that were allowed."""
    wish = pcie_wish(intent, facts, acs_allowed=True)
    return redirecting_bridges(state_of(facts), wish) if wish.acs == BARE_METAL else []
