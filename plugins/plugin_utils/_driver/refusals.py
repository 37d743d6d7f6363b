# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The reasons for refusing a change on a host, each with its remedy; evaluated before any change."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._driver.ofed_state import DOCA_PACKAGES
from ansible_collections.rdma.cluster.plugins.module_utils._driver.planned import (
    DOCA,
    INBOX,
    MLNX_OFED,
    builds_planned,
    bypasses_dkms,
    is_rpm,
    planned_modules,
    planned_stack,
)
from ansible_collections.rdma.cluster.plugins.module_utils._driver.secure_boot import Mok
from ansible_collections.rdma.cluster.plugins.module_utils._driver.stack import Stack
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.preflight.kernel import enrollment, key_trouble
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.preflight.preflight import OLDEST_KERNEL
from ansible_collections.rdma.cluster.plugins.plugin_utils._driver.supplies import RHEL_LIKE, architecture, doca
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import stack_of

#: The distributions supported by the last MLNX_OFED, 24.10; of the RHEL family, all that are like 9.
MLNX_OFED_SYSTEMS = {"debian": ("12",), "ubuntu": ("22.04", "24.04")}
_RELEASE = re.compile(r"([0-9]+)\.([0-9]+)")
_BUNDLE = re.compile(r"MLNX_OFED_LINUX-([0-9.]+-[0-9.]+)-([a-z]+)[0-9._sp]*-(x86_64|aarch64)(?:[-.].*)?")
_FAMILY_NAMES = {"rhel": RHEL_LIKE, "debian": frozenset({"debian"}), "ubuntu": frozenset({"ubuntu"})}


def refusals(
    intent: Intent,
    facts: Facts,
    *,
    touched: Mapping[str, str],
    reboot_allowed: bool,
    removes: str | None = None,
    by_dkms: bool = False,
) -> list[str]:
    """Return each reason against a change, in a sentence or two; none without a change.

    touched: NVIDIA's packages that would be replaced or removed, name → version. removes: the stack to uninstall, if any. by_dkms: DKMS
    rebuilds the installed stack, and no installer runs.
    """
    stack, host = stack_of(facts), facts.boot.hostname or "the host"
    found = [*_held(host, stack, touched), *_removal(host, stack, removes)]
    if planned_stack(intent) == INBOX:
        return found
    if not by_dkms:
        found += [*_system(host, intent, stack), *_bundle(host, intent, stack)]
    if planned_modules(intent) != INBOX:
        found += list(_kernel(host, stack))
    if builds_planned(intent, stack):
        found += list(_newer_kernel(host, stack, reboot_allowed=reboot_allowed))
        bypasses = bypasses_dkms(intent, stack) and not by_dkms
        found += list(_nobody_signs(host, intent, stack) if bypasses else _secure_boot(host, stack))
    return found


def has_no_uninstaller(stack: Stack, removes: str | None) -> bool:
    """Return whether the stack to remove came without ofed-scripts, like DOCA's userspace. Then only its packages can be removed."""
    return removes is not None and stack.ofed_version is None


def _removal(host: str, stack: Stack, removes: str | None) -> Iterator[str]:
    if not has_no_uninstaller(stack, removes):
        return
    names = " ".join(name for name in DOCA_PACKAGES if (stack.distribution.vendor or {}).get(name))
    command = "dnf remove" if is_rpm(stack.distribution) else "apt purge --autoremove"
    yield f"{names} of {removes} came without an uninstaller. On {host}, run `{command} {names}`."


def _held(host: str, stack: Stack, touched: Mapping[str, str]) -> Iterator[str]:
    held = sorted(set(stack.distribution.held or ()) & set(touched))
    if held:
        yield f"{', '.join(held)} of the installed stack is held and cannot be replaced. On {host}, run `apt-mark unhold {' '.join(held)}`."


def _system(host: str, intent: Intent, stack: Stack) -> Iterator[str]:
    machine = architecture(stack)
    name, version = stack.distribution.id, stack.distribution.version_id or ""
    if machine is None and stack.arch:
        yield f"NVIDIA has no driver stack for {stack.arch}: plan inbox for {host}."
    if planned_stack(intent) == DOCA:
        if (doca(intent, stack) or {}).get("repository") is None:
            yield (
                f"NVIDIA's repository of DOCA {intent['driver'].get('version')} for {name} {version} on "
                f"{machine or 'an unknown architecture'} is unknown: set rdma_driver.repository.url for {host}, or plan inbox."
            )
        return
    is_rhel = name in RHEL_LIKE and version.partition(".")[0] == "9"
    if not is_rhel and version not in MLNX_OFED_SYSTEMS.get(name or "", ()):
        yield (f"MLNX_OFED ended with 24.10, which does not support {name} {version}: plan doca for {host} (3.2 or later), or inbox.")


def _bundle(host: str, intent: Intent, stack: Stack) -> Iterator[str]:
    """Yield mismatches of a bundle. The names of NVIDIA's bundles show their target; other names show nothing."""
    if planned_stack(intent) != MLNX_OFED:
        return
    source = next(iter((intent["driver"].get("source") or {}).values()), "")
    found = _BUNDLE.fullmatch(str(source).rpartition("/")[2])
    if found is None:
        return
    version, system, machine = found.groups()
    requested, name, here = intent["driver"].get("version"), stack.distribution.id, architecture(stack)
    if requested is not None and version != requested:
        yield f"The bundle {found[0]} is {version}, but rdma_driver.version is {requested}: use the same version."
    if name not in _FAMILY_NAMES.get(system, {name}):
        yield f"The bundle {found[0]} is for {system}, but {host} runs {name}: use the bundle for its distribution."
    if here is not None and here != machine:
        yield f"The bundle {found[0]} is for {machine}, but {host} is {here}: use the bundle for its architecture."


def _kernel(host: str, stack: Stack) -> Iterator[str]:
    found = _RELEASE.match(stack.kernel or "")
    if found is None:
        yield f"The running kernel is unknown. On {host}, run `uname -r`."
    elif (int(found[1]), int(found[2])) < OLDEST_KERNEL:
        oldest = ".".join(map(str, OLDEST_KERNEL))
        yield f"Linux {stack.kernel} is older than {oldest}: boot {host} with a newer kernel of its distribution."
    elif not stack.kernels:
        yield f"{host} has no kernel of its own, like a container: install the driver on the machine below it, and plan inbox here."


def _newer_kernel(host: str, stack: Stack, *, reboot_allowed: bool) -> Iterator[str]:
    kernel, newest, kernels = stack.kernel, stack.newest, stack.kernels
    if kernel is None or not kernels or kernel == newest:
        return
    if newest is None and kernel not in kernels:
        yield f"{kernel} is running but not installed: reboot {host} into an installed kernel ({', '.join(kernels[-3:])})."
    elif newest is not None and not reboot_allowed:
        yield (
            f"{kernel} is running, but {newest} is installed: a build for {kernel} would be useless after the next boot, and headers may "
            f"exist for {newest} only. Reboot {host} into {newest}, allow the reboot (reboot_allowed), or remove {newest}."
        )


def _secure_boot(host: str, stack: Stack) -> Iterator[str]:
    mok = stack.mok or Mok(None, None)
    if not stack.secure_boot or (mok.key and mok.enrolled):
        return
    _status, what = key_trouble(mok)
    yield (
        f"Secure Boot is {what}: the kernel would reject modules built on the host. {enrollment(host, stack)} "
        "On the RHEL family, DOCA before 3.2 without kernel support has modules signed by NVIDIA."
    )


def _nobody_signs(host: str, intent: Intent, stack: Stack) -> Iterator[str]:
    if not stack.secure_boot:
        return
    if planned_stack(intent) == MLNX_OFED and not is_rpm(stack.distribution):
        todo = f"unset rdma_driver.add_kernel_support for {host}, so that DKMS signs, and enroll its key; or disable Secure Boot"
    else:
        todo = (
            f"set rdma_driver.add_kernel_support to false for {host} if NVIDIA has signed packages for its kernel; plan doca 3.2 or "
            "later, whose modules DKMS signs with an enrolled key; or disable Secure Boot"
        )
    yield f"Secure Boot is on, and modules built without DKMS are unsigned: {todo}."
