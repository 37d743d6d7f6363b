# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The reboot of a host for its driver: the reasons, the steps before it, and what withholds it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._driver.planned import is_kept
from ansible_collections.rdma.cluster.plugins.module_utils._driver.stack import Stack
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._firmware.ensure import WRITTEN
from ansible_collections.rdma.cluster.plugins.module_utils._host.load import busy_words
from ansible_collections.rdma.cluster.plugins.plugin_utils._driver.blockers import differing, unsigned_replacements
from ansible_collections.rdma.cluster.plugins.plugin_utils._driver.modules import before_reboot
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import stack_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._firmware.requests import firmware_pending

#: A setting that is still pending after a boot in this time will not be applied by the next boot either.
JUST_BOOTED_SECONDS = 1800


def newer_kernel(stack: Stack) -> str | None:
    """Return the newest kernel of the running one's flavor, if it is another one."""
    return stack.newest if stack.kernel is not None and stack.newest != stack.kernel else None


def reboot_plan(
    intent: Intent, facts: Facts, reload: Mapping[str, Any], *, newest: str | None, first: bool, settled: bool
) -> dict[str, Any]:
    """Return the reboot plan: needed and why: for the newest kernel, because the driver cannot be swapped live, or for pending firmware.

    first: it comes before any build. withheld: None, or why it cannot happen now: the host is busy (needed stays True), or it would boot
    without its driver. drainable: whether a drained host could reboot. build_first: None, or the kernel to build with DKMS first. newest:
    the kernel of the next boot, None if that is the running one or nothing is built. For a kept stack nothing is built: such a kernel is no
    reason for a reboot, and withholds one if it lacks the stack. settled: whether no installation is pending; otherwise only `first` is a
    reason for a reboot.
    """
    stack, busy = stack_of(facts), busy_words(facts.load)
    kept = is_kept(intent)
    reasons = [f"{stack.kernel} is running, but the next boot uses {newest}"] if newest and (settled or first) and not kept else []
    notes: list[str] = []
    if settled:
        swap = _swap(facts, reload, busy)
        firmware = _firmware(intent, facts)
        reasons += [*swap[0], *firmware[0]]
        notes += [*swap[1], *firmware[1]]
    build_first, trouble = before_reboot(stack, newest) if settled and newest else (None, None)
    if kept and build_first is not None:
        trouble = f"a reboot uses {build_first}, for which the kept stack is not built: run `dkms autoinstall -k {build_first}` first"
        build_first = None
    hard = [*(unsigned_replacements(stack) if settled else ()), *([trouble] if trouble else ())]
    waits = [f"{busy}: drain the host (reboot_before), or wait"] if busy and reasons else []
    return {
        "needed": bool(reasons),
        "first": first,
        "why": "; ".join([*reasons, *notes]) or "no reason",
        "withheld": "; ".join([*hard, *waits]) or None,
        "drainable": bool(waits) and not hard,
        "build_first": build_first,
    }


def _swap(facts: Facts, reload: Mapping[str, Any], busy: str) -> tuple[list[str], list[str]]:
    """Return why the driver needs a reboot, and notes. A busy host is no reason, nor is a fault that a reboot does not fix."""
    passing = {busy, *unsigned_replacements(stack_of(facts))}
    obstacles = [each for each in reload["obstacles"] if each not in passing]
    if not reload["needed"] or not obstacles:
        return [], []
    if _just_booted(facts) and not differing(stack_of(facts).modules):
        return [], [f"{reload['why']}, after a boot {_minutes(facts)} minutes ago: check `modprobe --showconfig` and the initramfs"]
    return [f"the driver cannot be swapped live: {'; '.join(obstacles)}"], []


def _firmware(intent: Intent, facts: Facts) -> tuple[list[str], list[str]]:
    """Return the firmware settings that need a reboot. Those that a recent boot has not applied are only noted.

    Settings that were written after that boot have not had one yet.
    """
    waiting = ", ".join(_waiting(intent, facts))
    if not waiting:
        return [], []
    if _just_booted(facts) and WRITTEN not in (facts.files or ()):
        note = f"firmware settings are still pending after a boot {_minutes(facts)} minutes ago ({waiting}): try a cold power cycle"
        return [], [note]
    return [f"firmware settings are pending: {waiting}"], []


def _waiting(intent: Intent, facts: Facts) -> Iterator[str]:
    if "firmware" in intent:
        yield from (f"{each['name']} of {each['device']}" for each in firmware_pending(intent, facts))


def _just_booted(facts: Facts) -> bool:
    uptime = facts.boot.uptime_seconds
    return uptime is not None and uptime < JUST_BOOTED_SECONDS


def _minutes(facts: Facts) -> int:
    return int((facts.boot.uptime_seconds or 0) // 60)
