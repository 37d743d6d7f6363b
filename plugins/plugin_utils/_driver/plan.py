# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The driver stage's plan for a host, made before any change from the intent and the facts only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._driver.build_report import BUNDLE
from ansible_collections.rdma.cluster.plugins.module_utils._driver.kernels import version_key
from ansible_collections.rdma.cluster.plugins.module_utils._driver.ofed_state import (
    OfedState,
    bare_version,
    has_version,
    kept_stack,
    ofed_state,
    with_kept_stack,
)
from ansible_collections.rdma.cluster.plugins.module_utils._driver.planned import (
    DOCA,
    INBOX,
    MLNX_OFED,
    builds_planned,
    bypasses_dkms,
    headers_package,
    is_kept,
    is_rpm,
    planned_modules,
    planned_stack,
)
from ansible_collections.rdma.cluster.plugins.module_utils._driver.stack import Stack
from ansible_collections.rdma.cluster.plugins.module_utils._driver.stack_removal import DISTRIBUTION_STACK, NO_PACKAGE, stack_uses
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._host.load import busy_words
from ansible_collections.rdma.cluster.plugins.plugin_utils._driver.blockers import reload_plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._driver.modules import can_build
from ansible_collections.rdma.cluster.plugins.plugin_utils._driver.reboot import newer_kernel, reboot_plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._driver.refusals import has_no_uninstaller, refusals
from ansible_collections.rdma.cluster.plugins.plugin_utils._driver.supplies import distribution_packages, doca, flags, hold
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import stack_of

NONE, INSTALL, UPGRADE, DOWNGRADE, SWITCH, REBUILD = "none", "install", "upgrade", "downgrade", "switch", "rebuild"


@dataclass(frozen=True)
class Change:
    """kind: one of the six. why: a sentence. remove: the stack to uninstall first.

    replaces: whether installed packages are removed, by the stack's uninstaller or by the installer of the new one.
    """

    kind: str
    why: str
    remove: str | None = None
    replaces: bool = False


def requested_change(intent: Intent, stack: Stack, state: OfedState) -> Change:
    """Return the change from the installed to the requested state. state: ofed_state of the stack in the facts."""
    planned, version = planned_stack(intent), (intent.get("driver") or {}).get("version")
    seen = " ".join(filter(None, (state.stack, state.version)))
    if is_kept(intent):
        return Change(NONE, f"{seen or 'The installed stack'} is kept (rdma_driver.stack: keep).")
    if state.stack is None:
        return (
            Change(NONE, "The distribution's own stack is requested, and no other is installed.")
            if planned == INBOX
            else _fresh(planned, version, stack)
        )
    if state.stack != planned:
        return Change(SWITCH, f"{seen} is installed, and {planned} {version or ''}".rstrip() + " is requested.", state.stack, True)
    other = _other_version(intent, stack, state)
    return other if other is not None else _rebuild(intent, stack, state, seen)


def _fresh(planned: str, version: str | None, stack: Stack) -> Change:
    """Return an installation without a known stack. It replaces existing add-on modules and packages of a stack."""
    vendor = sorted(stack.distribution.vendor or {})
    why = f"{planned} {version} is requested, and neither MLNX_OFED nor DOCA-OFED is installed."
    if not vendor and kept_stack(stack)[0] == INBOX:
        return Change(INSTALL, why)
    return Change(INSTALL, f"{why} It would replace {', '.join(vendor) or 'add-on modules that belong to no package'}.", replaces=True)


def _other_version(intent: Intent, stack: Stack, state: OfedState) -> Change | None:
    """Return the change to the requested version of the installed stack; None if it is already there."""
    driver, planned = intent["driver"], planned_stack(intent)
    requested = driver.get("version")
    if planned == DOCA:
        vendor, profile = stack.distribution.vendor, driver.get("profile") or "doca-ofed"
        if vendor and vendor.get(profile):
            state = replace(state, version=bare_version(vendor[profile]), is_release=True)
        elif vendor is not None and has_version(state, DOCA, requested) is not False:
            return Change(INSTALL, f"{profile} is requested, but not installed.", replaces=True)
    has_it = has_version(state, planned, requested)
    if has_it:
        return None
    if has_it is None or state.version is None or requested is None:
        why = f"{planned} is installed in an unknown version; {requested} is requested."
        return Change(INSTALL, why, replaces=True)
    kind = UPGRADE if version_key(requested) > version_key(state.version) else DOWNGRADE
    # mlnxofedinstall removes an older or newer one itself, after it has checked its own archive and the free space.
    why = f"{planned} {state.version} is installed, and {requested} is requested."
    return Change(kind, why, None if planned == MLNX_OFED else planned, True)


def _rebuild(intent: Intent, stack: Stack, state: OfedState, seen: str) -> Change:
    if planned_modules(intent) == INBOX:
        return Change(NONE, f"{seen} is installed.")
    if state.built is False:
        why = f"{seen} is installed, but not built for {stack.kernel}: {'; '.join(state.why)}."
        return Change(REBUILD, why, replaces=planned_stack(intent) == MLNX_OFED)
    doubts = f"; {'; '.join(state.why)}" if state.why else " and loaded"
    return Change(NONE, f"{seen} is installed{', built' if state.built else ''}{doubts}.")


ENDED = "MLNX_OFED ended with 24.10; DOCA-OFED is its successor."


def plan(
    intent: Intent, facts: Facts, *, reboot_allowed: bool, switch_allowed: bool = False, removal: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the plan of one host. facts: the whole tree; unknown values count as the worse case.

    removal: the current answer of rdma.cluster.driver_removal, without which an installed stack is not removed.

    Keys: stack, version, kernel; installed {stack, version, packages}; change "none", "install", "upgrade", "downgrade", "switch" or
    "rebuild", and why; refused: None or why no change is possible; remove: None or the stack to uninstall first; distribution_packages;
    installer: whether mlnxofedinstall or DOCA's packages make the change; flags (of mlnxofedinstall); dkms_build: None or the kernel to
    build with DKMS instead; doca: None or {packages, generation, repository, kernel_support}; busy: the use of the host, "" if idle; reload
    {needed, why, live, obstacles, modules, always}; reboot {needed, first, why, withheld, drainable, build_first}, as in reboot_plan; hold
    {packages, differs}; hook: whether later kernels are built, hook_dkms: by DKMS.

    While an installation is pending, nothing is reloaded or rebooted, except for a kernel that must run first: a failed installation may
    have left a host without a driver. reload then has the expected state; facts read afterwards have the real one.

    switch {needed, withheld, reason, packages, dependants, lists, allow}: the change removes packages of an installed stack, removes the
    distribution's packages by force, or must wait because the host is in use. If it is withheld, change and why describe the plan, and
    everything else is unchanged. lists: the packages for driver_removal. allow: what permits it. files: whether repository and hook are
    managed.
    """
    stack = stack_of(facts)
    intent = with_kept_stack(intent, stack)
    planned, kept = planned_stack(intent), is_kept(intent)
    driver, state = intent.get("driver") or {}, ofed_state(stack)
    change = requested_change(intent, stack, state)
    builds = builds_planned(intent, stack)
    newest = newer_kernel(stack) if builds or (kept and planned_modules(intent) != INBOX) else None
    kernel = newest if newest and (reboot_allowed or change.kind == NONE) else stack.kernel
    packages = distribution_packages(intent, stack, kernel, changes=change.kind != NONE, removes=change.kind == SWITCH)
    change = _of_packages(planned, change, packages)
    settled = change.kind == NONE
    by_dkms = change.kind == REBUILD and _can_build(stack, packages)
    options = flags(driver, rpm=is_rpm(stack.distribution)) if planned == MLNX_OFED else []
    # A first installation after a reboot checks again then: the reboot drains the host first.
    reboots_before = newest is not None and not settled and reboot_allowed and not change.replaces
    in_use = [] if reboots_before else stack_uses(stack, facts.load)
    kind = "" if by_dkms else _switch_kind(planned, change, options, in_use)
    stops = change.remove is None and planned == MLNX_OFED and "--force" not in options
    forced = DISTRIBUTION_STACK if "--force" in options else ()
    if not reboots_before:
        in_use = list(dict.fromkeys([*((removal or {}).get("in_use") or ()), *in_use]))
    switch = _switch(facts, change, kind, allowed=switch_allowed, removal=removal, in_use=in_use, stops=stops, forced=forced)
    waits = switch["withheld"] is not None
    # A kept stack does not fail its host; an impossible first installation does, even while it waits.
    refused = (
        [] if settled or (waits and change.replaces) else _refused(intent, facts, change, by_dkms=by_dkms, reboot_allowed=reboot_allowed)
    )
    first = newest is not None and not settled and reboot_allowed and not refused and not waits
    reload = _reload(intent, facts, change)
    return {
        "stack": planned,
        "version": None if planned == INBOX else driver.get("version"),
        "kernel": stack.kernel,
        "installed": {"stack": state.stack or INBOX, "version": state.version, "packages": _vendor(stack)},
        "change": change.kind,
        "why": f"{change.why} {ENDED}" if planned == MLNX_OFED else change.why,
        "refused": " ".join(refused) or None,
        "switch": switch,
        "remove": None if waits or has_no_uninstaller(stack, change.remove) else change.remove,
        "distribution_packages": [] if waits else packages,
        "installer": not settled and planned != INBOX and not by_dkms and not waits,
        "flags": options,
        "dkms_build": stack.kernel if by_dkms and not first else None,
        "doca": doca(intent, stack),
        "busy": busy_words(facts.load),
        "reload": reload,
        "reboot": reboot_plan(intent, facts, reload, newest=newest, first=first, settled=settled),
        "hold": hold(intent, stack),
        "files": not kept and not waits,
        "hook": builds,
        "hook_dkms": not bypasses_dkms(intent, stack),
    }


#: Why a change must wait or be allowed: it replaces a stack, it removes the distribution's packages by force, or the host is in use.
REPLACES, FORCED, WAITS = "replaces", "forced", "waits"


def _switch_kind(planned: str, change: Change, options: Sequence[str], in_use: Sequence[str]) -> str:
    """Return REPLACES, FORCED or WAITS; "" for a change without obstacles."""
    if change.replaces:
        return REPLACES
    if change.kind != INSTALL or planned == INBOX:
        return ""
    if "--force" in options:
        return FORCED
    return WAITS if in_use else ""


def _switch(
    facts: Facts,
    change: Change,
    kind: str,
    *,
    allowed: bool,
    removal: Mapping[str, Any] | None,
    in_use: Sequence[str],
    stops: bool,
    forced: Sequence[str],
) -> dict[str, Any]:
    """Return whether the change must wait or be allowed, the packages that it removes, and what withholds it. kind: of _switch_kind.

    stops: whether the installer stops if other packages depend on those to remove. forced: packages of the distribution that it removes
    anyway. in_use combines the host's current answer and the facts: one of them is enough.
    """
    vendor = stack_of(facts).distribution.vendor
    if not kind:
        return {"needed": False, "withheld": None, "reason": "", "packages": {}, "dependants": {}, "lists": [], "allow": ""}
    read = removal or {"unread": "the packages to remove were not read from the host"}
    packages, dependants, unread = read.get("packages") or {}, read.get("dependants") or {}, read.get("unread")
    if kind == WAITS or (unread == NO_PACKAGE and vendor == {}):
        unread = None
    reasons = [
        *([] if allowed or kind == WAITS else ["driver_switch_allowed is false"]),
        *([f"the host is in use: {'; '.join(in_use)}"] if in_use else []),
        *(["other packages depend on the stack, and rdma_driver.force is false"] if dependants and stops else []),
        *([f"the packages to remove are unknown: {unread}"] if unread is not None else []),
    ]
    removed = [
        f"Packages that would be removed: {_versions(packages)}." if packages else "",
        f"Other packages that depend on them and would be removed too: {_versions(dependants)}." if dependants else "",
    ]
    withheld = "; ".join(reasons) or None
    words = [change.why, *filter(None, removed), f"Withheld: {withheld}." if withheld else ""]
    return {
        "needed": True,
        "withheld": withheld,
        "reason": " ".join(filter(None, words)),
        "packages": dict(packages),
        "dependants": dict(dependants),
        "lists": sorted({*(vendor or {}), *forced}) if kind != WAITS else [],
        "allow": "drain the host, then rerun" if kind == WAITS else "driver_switch_allowed: true, on an idle host",
    }


def _versions(packages: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in packages.items())


def _of_packages(planned: str, change: Change, packages: Sequence[str]) -> Change:
    """Return the change; for inbox, the installation of missing packages of the distribution's stack."""
    if planned != INBOX or change.kind != NONE or not packages:
        return change
    return Change(INSTALL, f"Packages of the distribution that may be missing: {', '.join(packages)}.")


def _can_build(stack: Stack, packages: Sequence[str]) -> bool:
    """Return whether DKMS can build for the running kernel once the packages are there.

    The remains of a failed installer are not built again: the next run of the installer replaces them.
    """
    kernel, failed = stack.kernel, stack.last_build
    if kernel is None or not can_build(stack, kernel) or (failed is not None and failed.source == BUNDLE):
        return False
    return bool(stack.headers.get(kernel)) or headers_package(kernel, stack.distribution) in packages


def _refused(intent: Intent, facts: Facts, change: Change, *, by_dkms: bool, reboot_allowed: bool) -> list[str]:
    touched = _vendor(stack_of(facts)) if change.kind in {UPGRADE, DOWNGRADE, SWITCH} else {}
    return refusals(intent, facts, touched=touched, reboot_allowed=reboot_allowed, removes=change.remove, by_dkms=by_dkms)


def _vendor(stack: Stack) -> dict[str, str]:
    """Return the installed packages of MLNX_OFED and DOCA, name → version."""
    return dict(stack.distribution.vendor or {})


def _reload(intent: Intent, facts: Facts, change: Change) -> dict[str, Any]:
    touches_driver = change.kind != NONE and (planned_modules(intent) != INBOX or change.remove is not None)
    found = reload_plan(intent, facts, changes=touches_driver)
    if change.kind == NONE or not found["needed"]:
        return found
    return {**found, "needed": False, "always": False, "why": f"after the installation: {found['why']}"}
