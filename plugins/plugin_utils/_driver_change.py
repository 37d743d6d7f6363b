# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What of the driver is installed, replaced, built again or removed: by the intent, and what is installed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._kernels import version_key
from ansible_collections.rdma.cluster.plugins.module_utils._ofed_state import OfedState, bare_version, has_version, kept_stack
from ansible_collections.rdma.cluster.plugins.module_utils._planned_stack import (
    DOCA,
    INBOX,
    MLNX_OFED,
    is_kept,
    planned_modules,
    planned_stack,
)

NONE, INSTALL, UPGRADE, DOWNGRADE, SWITCH, REBUILD = "none", "install", "upgrade", "downgrade", "switch", "rebuild"
Intent = Mapping[str, Any]


@dataclass(frozen=True)
class Change:
    """kind: one of the six; why: a sentence; remove: the stack that is uninstalled first; replaces: installed packages are removed, by the
    stack's uninstaller or by the installer of the new one."""

    kind: str
    why: str
    remove: str | None = None
    replaces: bool = False


def wished_change(intent: Intent, stack: Mapping[str, Any], state: OfedState) -> Change:
    """The change from what is installed to what is wished. state: ofed_state of the stack of the facts."""
    planned, version = planned_stack(intent), (intent.get("driver") or {}).get("version")
    seen = " ".join(filter(None, (state.stack, state.version)))
    if is_kept(intent):
        return Change(NONE, f"{seen or 'The stack that is installed'} is kept (rdma_driver.stack: keep).")
    if state.stack is None:
        return (
            Change(NONE, "The distribution's own stack is wished, and no other is installed.")
            if planned == INBOX
            else _fresh(planned, version, stack)
        )
    if state.stack != planned:
        return Change(SWITCH, f"{seen} is installed, and {planned} {version or ''}".rstrip() + " is wished.", state.stack, True)
    other = _other_version(intent, stack, state)
    return other if other is not None else _rebuild(intent, stack, state, seen)


def _fresh(planned: str, version: str | None, stack: Mapping[str, Any]) -> Change:
    """An installation where no stack is known. It replaces add-on modules, and packages of a stack, that are there all the same."""
    vendor = sorted((stack.get("distribution") or {}).get("vendor") or {})
    why = f"{planned} {version} is wished, and neither MLNX_OFED nor DOCA-OFED is installed."
    if not vendor and kept_stack(stack)[0] == INBOX:
        return Change(INSTALL, why)
    return Change(INSTALL, f"{why} It would replace {', '.join(vendor) or 'add-on modules that belong to no package'}.", replaces=True)


def _other_version(intent: Intent, stack: Mapping[str, Any], state: OfedState) -> Change | None:
    """The change to the wished version of the stack that is installed; None if it is there."""
    driver, planned = intent["driver"], planned_stack(intent)
    wished = driver.get("version")
    if planned == DOCA:
        vendor, profile = (stack.get("distribution") or {}).get("vendor"), driver.get("profile") or "doca-ofed"
        if vendor and vendor.get(profile):
            state = replace(state, version=bare_version(vendor[profile]), is_release=True)
        elif vendor is not None and has_version(state, DOCA, wished) is not False:
            return Change(INSTALL, f"{profile} is wished, and not installed.", replaces=True)
    has_it = has_version(state, planned, wished)
    if has_it:
        return None
    if has_it is None or state.version is None or wished is None:
        why = f"{planned} is installed, and it is not known in which version; {wished} is wished."
        return Change(INSTALL, why, replaces=True)
    kind = UPGRADE if version_key(wished) > version_key(state.version) else DOWNGRADE
    # mlnxofedinstall removes an older or newer one itself, after it has looked at its own archive and the free space.
    return Change(kind, f"{planned} {state.version} is installed, and {wished} is wished.", None if planned == MLNX_OFED else planned, True)


def _rebuild(intent: Intent, stack: Mapping[str, Any], state: OfedState, seen: str) -> Change:
    if planned_modules(intent) == INBOX:
        return Change(NONE, f"{seen} is installed.")
    if state.built is False:
        why = f"{seen} is installed, and not built for {stack.get('kernel')}: {'; '.join(state.why)}."
        return Change(REBUILD, why, replaces=planned_stack(intent) == MLNX_OFED)
    doubts = f"; {'; '.join(state.why)}" if state.why else " and loaded"
    return Change(NONE, f"{seen} is installed{', built' if state.built else ''}{doubts}.")
