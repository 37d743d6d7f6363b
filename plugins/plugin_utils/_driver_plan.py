# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the driver stage does to a host: decided before anything is touched, by the intent and the facts alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._kernels import version_key
from ansible_collections.rdma.cluster.plugins.module_utils._ofed_state import OfedState, bare_version, has_version, ofed_state
from ansible_collections.rdma.cluster.plugins.module_utils._planned_stack import (
    DOCA,
    INBOX,
    MLNX_OFED,
    builds_planned,
    is_rpm,
    planned_modules,
    planned_stack,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._driver_blockers import reload_plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._driver_refusals import refusals
from ansible_collections.rdma.cluster.plugins.plugin_utils._driver_supplies import distribution_packages, doca, flags, hold
from ansible_collections.rdma.cluster.plugins.plugin_utils._firmware_plan import firmware_pending

NONE, INSTALL, UPGRADE, DOWNGRADE, SWITCH, REBUILD = "none", "install", "upgrade", "downgrade", "switch", "rebuild"
ENDED = "MLNX_OFED has ended with 24.10; DOCA-OFED follows it."
Intent = Mapping[str, Any]
Facts = Mapping[str, Any]


@dataclass(frozen=True)
class Change:
    """kind: one of the six; why: a sentence; remove: the stack that is uninstalled first."""

    kind: str
    why: str
    remove: str | None = None


def plan(intent: Intent, facts: Facts, *, reboot_allowed: bool) -> dict[str, Any]:
    """The plan of one host. facts: the whole tree; what they do not tell is taken for the worse.

    Keys: stack, version, kernel; installed {stack, version}; change "none", "install", "upgrade", "downgrade", "switch" or "rebuild",
    and why; refused: None or why nothing may be changed; remove: None or the stack to uninstall first; distribution_packages; flags
    (of mlnxofedinstall); doca: None or {packages, generation, repository, kernel_support}; reload {needed, why, live, obstacles,
    modules}; reboot {needed, first, why}, first: before anything is built; hold {packages, differs}; hook: later kernels are built for.
    Where something is changed, reload tells what is expected: facts that were read afterwards tell what is so.
    """
    stack, planned = facts["stack"], planned_stack(intent)
    driver = intent.get("driver") or {}
    state = ofed_state(stack)
    change = _change(intent, stack, state)
    builds = builds_planned(intent, stack)
    older = builds and _newer(stack) is not None
    kernel = _newer(stack) if older and reboot_allowed else stack.get("kernel")
    packages = distribution_packages(intent, stack, kernel, changes=change.kind != NONE)
    if planned == INBOX and packages and change.kind == NONE:
        change = Change(
            INSTALL, f"{', '.join(packages)} of the distribution {'is' if len(packages) == 1 else 'are'} not known to be installed."
        )
    touches_driver = change.kind != NONE and (planned_modules(intent) != INBOX or change.remove is not None)
    reload = reload_plan(intent, facts, changes=touches_driver)
    refused = [] if change.kind == NONE else refusals(intent, facts, touched=_touched(change, stack), reboot_allowed=reboot_allowed)
    return {
        "stack": planned,
        "version": None if planned == INBOX else driver.get("version"),
        "kernel": stack.get("kernel"),
        "installed": {"stack": state.stack or INBOX, "version": state.version},
        "change": change.kind,
        "why": f"{change.why} {ENDED}" if planned == MLNX_OFED else change.why,
        "refused": " ".join(refused) or None,
        "remove": change.remove,
        "distribution_packages": packages,
        "flags": flags(driver, rpm=is_rpm(stack.get("distribution") or {})) if planned == MLNX_OFED else [],
        "doca": doca(intent, stack),
        "reload": reload,
        "reboot": _reboot(intent, facts, reload, older=older, changes=change.kind != NONE),
        "hold": hold(intent, stack),
        "hook": builds,
    }


def _change(intent: Intent, stack: Mapping[str, Any], state: OfedState) -> Change:
    planned, version = planned_stack(intent), (intent.get("driver") or {}).get("version")
    seen = " ".join(filter(None, (state.stack, state.version)))
    if state.stack is None:
        return (
            Change(NONE, "The distribution's own stack is wished, and no other is installed.")
            if planned == INBOX
            else _fresh(planned, version)
        )
    if state.stack != planned:
        return Change(SWITCH, f"{seen} is installed, and {planned} {version or ''}".rstrip() + " is wished.", state.stack)
    other = _other_version(intent, stack, state)
    return other if other is not None else _rebuild(intent, stack, state, seen)


def _fresh(planned: str, version: str | None) -> Change:
    return Change(INSTALL, f"{planned} {version} is wished, and neither MLNX_OFED nor DOCA-OFED is installed.")


def _other_version(intent: Intent, stack: Mapping[str, Any], state: OfedState) -> Change | None:
    """The change to the wished version of the stack that is installed; None if it is there."""
    driver, planned = intent["driver"], planned_stack(intent)
    wished = driver.get("version")
    if planned == DOCA:
        vendor, profile = (stack.get("distribution") or {}).get("vendor"), driver.get("profile") or "doca-ofed"
        if vendor and vendor.get(profile):
            state = replace(state, version=bare_version(vendor[profile]), is_release=True)
        elif vendor is not None and has_version(state, DOCA, wished) is not False:
            return Change(INSTALL, f"{profile} is wished, and not installed.")
    has_it = has_version(state, planned, wished)
    if has_it:
        return None
    if has_it is None or state.version is None or wished is None:
        return Change(INSTALL, f"{planned} is installed, and it is not known in which version; {wished} is wished.")
    kind = UPGRADE if version_key(wished) > version_key(state.version) else DOWNGRADE
    # mlnxofedinstall removes an older or newer one itself, if it need not ask.
    removes_itself = planned == MLNX_OFED and driver.get("force", True)
    return Change(kind, f"{planned} {state.version} is installed, and {wished} is wished.", None if removes_itself else planned)


def _rebuild(intent: Intent, stack: Mapping[str, Any], state: OfedState, seen: str) -> Change:
    if planned_modules(intent) == INBOX:
        return Change(NONE, f"{seen} is installed.")
    if state.built is False:
        return Change(REBUILD, f"{seen} is installed, and not built for {stack.get('kernel')}: {'; '.join(state.why)}.")
    doubts = f"; {'; '.join(state.why)}" if state.why else " and loaded"
    return Change(NONE, f"{seen} is installed{', built' if state.built else ''}{doubts}.")


def _newer(stack: Mapping[str, Any]) -> str | None:
    """The newest kernel of the running one's flavour, if that is another."""
    newest: str | None = stack.get("newest")
    return newest if stack.get("kernel") is not None and newest not in {None, stack.get("kernel")} else None


def _touched(change: Change, stack: Mapping[str, Any]) -> Mapping[str, str]:
    vendor: Mapping[str, str] = (stack.get("distribution") or {}).get("vendor") or {}
    return vendor if change.kind in {UPGRADE, DOWNGRADE, SWITCH} else {}


def _reboot(intent: Intent, facts: Facts, reload: Mapping[str, Any], *, older: bool, changes: bool) -> dict[str, Any]:
    """Whether the host is rebooted: for the newest kernel, before anything is built; since the driver cannot be swapped live; or for
    firmware settings that wait for it."""
    stack = facts["stack"]
    reasons: Sequence[str] = [f"{stack.get('kernel')} runs, and the next boot takes {_newer(stack)}"] if older else []
    if reload["needed"] and not reload["live"]:
        reasons = [*reasons, f"the driver cannot be swapped live: {'; '.join(reload['obstacles'])}"]
    waiting = [f"{each['name']} of {each['device']}" for each in firmware_pending(intent, facts)] if "firmware" in intent else []
    if waiting:
        reasons = [*reasons, f"firmware settings wait for it: {', '.join(waiting)}"]
    return {"needed": bool(reasons), "first": older and changes, "why": "; ".join(reasons) or "nothing asks for it"}
