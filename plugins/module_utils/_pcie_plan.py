# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The PCIe settings that the rails of a host need, which of them may be made, and why the others are withheld.

MRRS (maximum read request size) limits what a card reads from memory: by default it is judged for cards of 100 Gb/s or more only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._files import differs
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_acs import AUTO, BARE_METAL, LEAVE, pcie_state, slot_of
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_tuning_runner import CONFIG
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_tuning_service import service_files
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_wish import ACS_EFFECT, EFFECTS, MRRS_EFFECT, Wish
from ansible_collections.rdma.cluster.plugins.module_utils._rails import Facts, ResolvedRail, resolve
from ansible_collections.rdma.cluster.plugins.module_utils._secure_boot import LOCKED_DOWN, lockdown_words

Intent = Mapping[str, Any]
DRIVER = "mlx5_core"
#: What auto gives the cards of ports that reach FAST_GBPS. A slower port is fast enough with the kernel's 512 bytes.
BEST_MRRS_BYTES = 4096
FAST_GBPS = 100.0


@dataclass(frozen=True)
class Withheld:
    """Changes that are requested and not made, in words, and the reason."""

    changes: str
    reason: str

    @property
    def words(self) -> str:
        return f"{self.changes}; {self.reason}"


def requested(intent: Intent, facts: Facts) -> Wish:
    """The settings that the intent requests for the cards of a host's rails, allowed or not."""
    rates = {address: rate_gbps(rail, facts) for rail in resolve(intent["rails"], facts) if (address := _card(rail, facts)) is not None}
    nics = tuple(sorted(rates))
    fast = tuple(nic for nic in nics if (rates[nic] or 0) >= FAST_GBPS) if mrrs_setting(intent) == AUTO else nics
    size = planned_mrrs_bytes(intent) if fast else None
    return Wish(nics, size, planned_acs(intent, facts) or LEAVE, None if fast == nics or size is None else fast)


def pcie_wish(intent: Intent, facts: Facts, *, acs_allowed: bool, mrrs_allowed: bool) -> Wish:
    """The requested settings that may be made: those that are allowed, and none that kernel lockdown forbids."""
    wish = requested(intent, facts)
    locked = lockdown_of(facts) in LOCKED_DOWN
    mrrs_made = mrrs_allowed and not locked
    return Wish(
        wish.nics,
        wish.mrrs_bytes if mrrs_made else None,
        LEAVE if wish.acs == BARE_METAL and (locked or not acs_allowed) else wish.acs,
        wish.mrrs_nics if mrrs_made else None,
    )


def boot_wish(intent: Intent, facts: Facts, *, acs_allowed: bool, mrrs_allowed: bool) -> Wish:
    """The settings that the service has to apply at boot.

    These are the settings that may be made. A permission that is withdrawn takes no setting out of the service that is there: these are
    then the requested settings that its file has, or all of them if the file differs from every plan.
    """
    made = pcie_wish(intent, facts, acs_allowed=acs_allowed, mrrs_allowed=mrrs_allowed)
    permits = ((True, True), (True, mrrs_allowed), (acs_allowed, True))
    plans = [pcie_wish(intent, facts, acs_allowed=acs, mrrs_allowed=mrrs) for acs, mrrs in permits]
    if not plans[0] or plans[0] == made or CONFIG not in (facts.get("files") or {}):
        return made
    return next((wish for wish in (*plans, made) if wish and not differs(service_files(wish)[0], facts)), plans[0])


def kept_effects(boot: Wish, made: Wish) -> list[str]:
    """The effects whose settings the service has although they are not allowed any more."""
    mrrs = boot.mrrs_bytes is not None and made.mrrs_bytes is None
    return [effect for effect, is_kept in ((MRRS_EFFECT, mrrs), (ACS_EFFECT, boot.acs != made.acs)) if is_kept]


def withheld(intent: Intent, facts: Facts, *, acs_allowed: bool, mrrs_allowed: bool, busy: str = "") -> dict[str, Withheld]:
    """Effect of the role → the change that is requested and not made, and why; only what differs from the facts.

    busy: what works on the host, in words; it withholds every change.
    """
    wish, lockdown = requested(intent, facts), lockdown_of(facts)
    changes = {MRRS_EFFECT: ", ".join(mrrs_changes(wish, facts)), ACS_EFFECT: ""}
    if wish.acs == BARE_METAL and (bridges := redirecting_bridges(state_of(facts), wish)):
        changes[ACS_EFFECT] = f"{', '.join(bridges)} redirect traffic between GPUs and NICs to the root complex"
    allowed = {MRRS_EFFECT: mrrs_allowed, ACS_EFFECT: acs_allowed}
    reasons = {effect: "" if allowed[effect] else f"pcie_{effect}_allowed is false" for effect in EFFECTS}
    if lockdown in LOCKED_DOWN:
        reasons = dict.fromkeys(EFFECTS, lockdown_words(lockdown))
    else:
        reasons = {effect: reason or busy for effect, reason in reasons.items()}
    return {effect: Withheld(changes[effect], reasons[effect]) for effect in EFFECTS if changes[effect] and reasons[effect]}


def mrrs_changes(wish: Wish, facts: Facts) -> list[str]:
    """The functions whose MRRS is not the requested one, in words: "0000:3d:00.0 MRRS of 512 bytes → 4096 bytes"."""
    state = state_of(facts)
    sizes = {address: size for nic in wish.mrrs_cards for address, size in mrrs_of(state, nic).items()}
    return [
        f"{address} MRRS of {size} bytes → {wish.mrrs_bytes} bytes" for address, size in sorted(sizes.items()) if size != wish.mrrs_bytes
    ]


def rate_gbps(rail: ResolvedRail, facts: Facts) -> float | None:
    """The planned rate; without one the rate of a port that is up."""
    planned: float | None = rail.rail.get("rate_gbps")
    port = ((facts["devices"].get(rail.device) or {}).get("ports") or {}).get(rail.port) or {}
    current: float | None = port.get("rate_gbps") if port.get("state") == "ACTIVE" else None
    return current if planned is None else planned


def mrrs_setting(intent: Intent) -> int | str:
    """The intent's rdma_host.pcie.mrrs_bytes: a size, "auto" or "leave"."""
    setting: int | str = intent["host"]["pcie"]["mrrs_bytes"]
    return setting


def planned_mrrs_bytes(intent: Intent) -> int | None:
    """The requested MRRS in bytes, None if it is left as it is. By auto it is the MRRS of fast cards."""
    setting = mrrs_setting(intent)
    return {LEAVE: None, AUTO: BEST_MRRS_BYTES}.get(setting) if isinstance(setting, str) else setting


def lockdown_of(facts: Facts) -> str | None:
    """The state of kernel lockdown; None if the facts do not have it."""
    state: str | None = (facts.get("stack") or {}).get("lockdown")
    return state


def planned_acs(intent: Intent, facts: Facts) -> str | None:
    """The mode, or what auto stands for; None where that is not known."""
    mode: str | None = intent["host"]["pcie"]["acs"]
    return state_of(facts)["acs_mode"] if mode == AUTO else mode


def state_of(facts: Facts) -> dict[str, Any]:
    """That of pcie_state, which the digest has in brief."""
    told: dict[str, Any] | None = facts.get("pcie")
    return pcie_state(facts) if told is None else told


def mrrs_of(state: Mapping[str, Any], nic: str) -> dict[str, int | None]:
    """The MRRS of each function of a NIC's card; of the digest, the NIC's own and those of functions that differ from it."""
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
