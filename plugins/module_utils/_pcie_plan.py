# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What PCIe settings the rails of a host ask for, and what its facts say of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._pcie_acs import AUTO, BARE_METAL, LEAVE, pcie_state, slot_of
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_wish import Wish
from ansible_collections.rdma.cluster.plugins.module_utils._rails import Facts, ResolvedRail, resolve

Intent = Mapping[str, Any]
DRIVER = "mlx5_core"


def pcie_wish(intent: Intent, facts: Facts, *, acs_allowed: bool) -> Wish:
    """What is to be made of a host: the cards of its rails by their physical functions, and what auto stands for.

    acs_allowed: whether ACS may be switched off, which takes isolation away; without it, it is left as it is.
    """
    nics = [address for rail in resolve(intent["rails"], facts) if (address := _card(rail, facts)) is not None]
    acs = planned_acs(intent, facts) or LEAVE
    return Wish(tuple(sorted(set(nics))), planned_mrrs_bytes(intent), LEAVE if acs == BARE_METAL and not acs_allowed else acs)


def planned_mrrs_bytes(intent: Intent) -> int | None:
    """The size of read requests, None where they are left as they are: the intent's word for it is "leave", as for ACS."""
    wished = intent["host"]["pcie"]["mrrs_bytes"]
    return None if wished == LEAVE else wished


def planned_acs(intent: Intent, facts: Facts) -> str | None:
    """The mode, or what auto stands for; None where that is not known."""
    mode: str | None = intent["host"]["pcie"]["acs"]
    return state_of(facts)["acs_mode"] if mode == AUTO else mode


def state_of(facts: Facts) -> dict[str, Any]:
    """That of pcie_state, which the digest has in brief."""
    told: dict[str, Any] | None = facts.get("pcie")
    return pcie_state(facts) if told is None else told


def read_requests(state: Mapping[str, Any], nic: str) -> dict[str, int | None]:
    """What each function of a NIC's card has set; in brief, what the NIC has, and those functions that have something else."""
    usual = {nic: state["usual_mrrs_bytes"]} if "usual_mrrs_bytes" in state else {}
    named = {address: size for address, size in state.get("mrrs_bytes", {}).items() if slot_of(address) == slot_of(nic)}
    return {**usual, **named}


def redirecting_bridges(state: Mapping[str, Any], wish: Wish) -> list[str]:
    """The bridges above GPUs and a wish's NICs that redirect."""
    above = {bridge for nic in wish.nics for bridge in state.get("redirecting", {}).get(nic, ())}
    return sorted(above | set(state.get("gpu_redirecting", ()))) if wish.nics else []


def _card(rail: ResolvedRail, facts: Facts) -> str | None:
    """The function that a rail's settings are on; None for what is not tuned: software, virtual functions, other drivers."""
    device = facts["devices"].get(rail.device) or {}
    if rail.rail.get("soft") or device.get("software") or device.get("driver") != DRIVER or device.get("function") != "pf":
        return None
    return (device.get("pci") or {}).get("address")
