# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filters of the role pcie: the settings to make, whether anything differs, and what is withheld."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils import _pcie_plan
from ansible_collections.rdma.cluster.plugins.module_utils._files import files_differ
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_acs import BARE_METAL, DATADIRECT
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_plan import (
    boot_wish,
    kept_effects,
    mrrs_changes,
    pcie_wish,
    redirecting_bridges,
    state_of,
)
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_tuning_service import UNIT, service_files
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_wish import Wish

Intent = Mapping[str, Any]
Facts = Mapping[str, Any]
RUNS = {"active": True, "enabled": True}


def pcie_settings(intent: Intent, facts: Facts, acs_allowed: bool = False, mrrs_allowed: bool = False) -> dict[str, Any]:
    """The options of rdma.cluster.pcie_tuning: {"nics": PCI addresses, "mrrs_nics", "mrrs_bytes": size or None, "acs": mode}.

    Where a permission is withdrawn, "kept" has its effects.
    """
    made = pcie_wish(intent, facts, acs_allowed=acs_allowed, mrrs_allowed=mrrs_allowed)
    wish = boot_wish(intent, facts, acs_allowed=acs_allowed, mrrs_allowed=mrrs_allowed)
    some = None if wish.mrrs_nics is None else list(wish.mrrs_nics)
    kept = kept_effects(wish, made)
    options = {"nics": list(wish.nics), "mrrs_bytes": wish.mrrs_bytes, "acs": wish.acs, "mrrs_nics": some}
    return {**options, "kept": kept} if kept else options


def pcie_differs(intent: Intent, facts: Facts | None, acs_allowed: bool = False, mrrs_allowed: bool = False) -> bool:
    """True unless the facts prove that the service, MRRS and ACS are all as requested, as far as they may be changed."""
    if facts is None:
        return True
    wish = boot_wish(intent, facts, acs_allowed=acs_allowed, mrrs_allowed=mrrs_allowed)
    if files_differ(service_files(wish), facts):
        return True
    made = pcie_wish(intent, facts, acs_allowed=acs_allowed, mrrs_allowed=mrrs_allowed)
    return bool(wish) and ((facts.get("units") or {}).get(UNIT) != RUNS or _live_differs(made, facts))


def _live_differs(wish: Wish, facts: Facts) -> bool:
    state = state_of(facts)
    if any(not _pcie_plan.mrrs_of(state, nic) for nic in wish.mrrs_cards) or mrrs_changes(wish, facts):
        return True
    # Where it may not be switched off, the module says so.
    return wish.acs == BARE_METAL and (state["acs_mode"] == DATADIRECT or bool(redirecting_bridges(state, wish)))


def pcie_withheld(intent: Intent, facts: Facts, acs_allowed: bool = False, mrrs_allowed: bool = False) -> dict[str, str]:
    """Effect ("mrrs", "acs_write") → the change that is withheld and why; empty where nothing is."""
    found = _pcie_plan.withheld(intent, facts, acs_allowed=acs_allowed, mrrs_allowed=mrrs_allowed)
    return {effect: each.words for effect, each in found.items()}
