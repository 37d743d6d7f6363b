# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks of the preflight gate on kernels: whether the newest one runs, its headers, Secure Boot and lockdown."""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._driver.modinfo import ADD_ONS
from ansible_collections.rdma.cluster.plugins.module_utils._driver.ofed_state import DRIVER, ofed_state
from ansible_collections.rdma.cluster.plugins.module_utils._driver.planned import (
    builds_modules,
    builds_planned,
    headers_package,
    is_kept,
    planned_stack,
)
from ansible_collections.rdma.cluster.plugins.module_utils._driver.secure_boot import LOCKED_DOWN, Mok
from ansible_collections.rdma.cluster.plugins.module_utils._driver.stack import Stack
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.driver.dkms import lacks_headers
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.driver.modules import build_steps, lacks_planned
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import stack_of

declare(
    {
        "preflight.newest": Check(
            "preflight",
            "whether the newest installed kernel of its flavor runs; an error only if modules are built for a kernel",
            "`/proc/sys/kernel/osrelease`, `/lib/modules`",
            "build the driver stack for the newest kernel if it is missing there, then reboot into it; or remove that kernel",
            sources=(reads.RELEASE, reads.KERNELS),
        ),
        "preflight.headers": Check(
            "preflight",
            "the headers of the running kernel, if DKMS or the planned stack builds modules",
            "`/lib/modules/RELEASE/build`",
            "install the package that the finding names (`linux-headers-RELEASE`, `kernel-devel-RELEASE`)",
            sources=(reads.RELEASE, reads.entry("/lib/modules/*/build/*", absent_means="missing headers are what this check reports")),
        ),
        "preflight.secure_boot": Check(
            "preflight",
            "whether Secure Boot blocks unsigned driver modules",
            "the EFI variable `SecureBoot`; `modinfo` (signer)",
            "enroll the key that DKMS signs with (`mokutil --import`), or disable Secure Boot",
            sources=(
                reads.folder("/sys/firmware/efi", absent_means="the host did not boot by EFI"),
                reads.file(
                    "/sys/firmware/efi/efivars/SecureBoot-*", absent_means="EFI firmware without this variable does not support Secure Boot"
                ),
                reads.MODINFO,
                reads.but(reads.DKMS, absent_means="DKMS has no signing key, which is an error if it builds modules"),
            ),
        ),
        "preflight.lockdown": Check(
            "preflight",
            "kernel lockdown, which forbids writes to PCI configuration space; informational",
            "`/sys/kernel/security/lockdown`",
            "nothing; `host.pcie` reports the settings that lockdown blocks",
            sources=(reads.file("/sys/kernel/security/lockdown"),),
        ),
    }
)

STAGE = "preflight"
NEWEST_SUBJECT, HEADERS_SUBJECT, SECURE_BOOT_SUBJECT = "running kernel", "headers of the running kernel", "Secure Boot"
LOCKDOWN_SUBJECT = "kernel lockdown"


def check_kernels(host: str, intent: Intent, facts: Facts, *, reboot_allowed: bool = False) -> list[Finding]:
    """Findings `preflight.newest`, `preflight.headers`, `preflight.secure_boot` and `preflight.lockdown` of one host.

    If only the newest kernel has headers while an older one runs, `preflight.newest` is the error and `preflight.headers` is not.
    A problem that the driver stage will fix is a warning: an allowed reboot, or headers for the planned stack.
    A kept stack that is also installed for the newest kernel is a warning too, because nothing is built for it.
    """
    stack = stack_of(facts)
    builds = builds_modules(intent, stack)
    # The driver stage installs a missing stack for the kernel that runs after the reboot.
    is_there = is_kept(intent) or ofed_state(stack).stack is not None
    lacks = lacks_planned(intent, stack, str(stack.newest)) if is_there else None
    asks = builds and (not reboot_allowed or is_kept(intent)) and not (is_kept(intent) and lacks is False)
    return [
        _newest(host, stack, ERROR if asks else WARNING, builds=builds, lacks=bool(lacks)),
        _headers(host, intent, stack, builds=builds),
        _secure_boot(host, intent, stack),
        _lockdown(host, stack),
    ]


def _newest(host: str, stack: Stack, older: str, *, builds: bool, lacks: bool) -> Finding:
    """Finding `preflight.newest`. lacks: the newest kernel would load its own driver instead of the planned or kept stack's."""
    kernel, newest, installed = stack.kernel, stack.newest, stack.kernels
    expected = "the newest installed kernel of its flavor"
    if kernel is None or not installed:
        why = "no installed kernel to compare it with" if kernel else "the running kernel is not known: see preflight.kernel"
        return Finding(STAGE, "preflight.newest", host, NEWEST_SUBJECT, NOT_APPLICABLE, why, expected)
    if kernel == newest or (newest is None and kernel in installed):
        return Finding(STAGE, "preflight.newest", host, NEWEST_SUBJECT, OK, kernel, expected)
    there = f"{newest} is the newest of its flavor" if newest else f"installed are {', '.join(installed[-3:])}"
    observed = f"{kernel} runs; {there}" if kernel in installed else f"{kernel} runs but is not installed; {there}"
    if lacks and newest is not None:
        observed += f", and would load its own {DRIVER}"
        return Finding(STAGE, "preflight.newest", host, NEWEST_SUBJECT, older, observed, expected, build_steps(host, [newest], stack))
    todo = f"Reboot {host} into {newest}, or remove that kernel" if kernel in installed else f"Reboot {host} into an installed kernel"
    why = "modules are built for one kernel, but the next boot starts another" if builds else "the next boot starts another kernel"
    return Finding(STAGE, "preflight.newest", host, NEWEST_SUBJECT, older, observed, expected, f"{todo}: {why}.")


def _headers(host: str, intent: Intent, stack: Stack, *, builds: bool) -> Finding:
    def finding(status: str, observed: str, remedy: str = "") -> Finding:
        return Finding(STAGE, "preflight.headers", host, HEADERS_SUBJECT, status, observed, "installed, to build modules", remedy)

    kernel, newest = stack.kernel, stack.newest
    if not builds:
        return finding(NOT_APPLICABLE, "no module is built: the stack is inbox, and DKMS has no module for RDMA or GPUs")
    if kernel is None:
        return finding(NOT_APPLICABLE, "the running kernel is not known: see preflight.kernel")
    place = f"/lib/modules/{kernel}/build"
    if not lacks_headers(stack):
        return finding(OK, place)
    if newest not in {None, kernel} and stack.headers.get(newest or ""):
        return finding(NOT_APPLICABLE, f"only the headers of {newest} are installed: see preflight.newest")
    package = headers_package(kernel, stack.distribution)
    planned = builds_planned(intent, stack)
    todo = f"The driver stage installs {package} on {host}." if planned else f"Install {package} on {host}."
    return finding(WARNING if planned else ERROR, f"{place} is missing", todo)


def _secure_boot(host: str, intent: Intent, stack: Stack) -> Finding:
    def finding(status: str, observed: str, remedy: str = "") -> Finding:
        return Finding(STAGE, "preflight.secure_boot", host, SECURE_BOOT_SUBJECT, status, observed, "off, or driver modules signed", remedy)

    if stack.secure_boot is None:
        return finding(*_secure_boot_unknown(host, intent, stack))
    if not stack.secure_boot:
        return finding(OK, "off")
    if not builds_modules(intent, stack):
        return finding(OK, "on; the distribution signed the kernel's modules")
    unreported = sorted(name for name, module in stack.modules.items() if module.file is None)
    if unreported and not any(module.provenance in ADD_ONS for module in stack.modules.values()):
        words = f"on; not known whether the loaded modules are signed: modinfo reports nothing for {', '.join(unreported[:3])}"
        return finding(UNKNOWN, words, f"Run `modinfo -F signer {unreported[0]}` on {host}.")
    return finding(*_signing(host, intent, stack))


def _secure_boot_unknown(host: str, intent: Intent, stack: Stack) -> tuple[str, ...]:
    if "secure_boot" not in stack.unread:
        return NOT_APPLICABLE, "not reported: no EFI, or a container"
    if not builds_modules(intent, stack):
        return NOT_APPLICABLE, "not read; no module is built, and the distribution signed the kernel's modules"
    remedy = (
        f"On {host}, run `ls /sys/firmware/efi/efivars` as root. If it is empty, run "
        "`mount -t efivarfs efivarfs /sys/firmware/efi/efivars`."
    )
    return UNKNOWN, "the host booted by EFI, but its variables could not be read", remedy


def _lockdown(host: str, stack: Stack) -> Finding:
    """Finding `preflight.lockdown`: never an error. host.pcie, qos.cnp and qos.dcqcn report the settings that lockdown blocks."""
    state, expected = stack.lockdown, "known"
    if state is None and "lockdown" in stack.unread:
        why = "/sys/kernel/security/lockdown could not be read, or securityfs is not mounted"
        remedy = (
            f"On {host}, run `cat /sys/kernel/security/lockdown` as root. If it is missing, run "
            "`mount -t securityfs securityfs /sys/kernel/security`."
        )
        return Finding(STAGE, "preflight.lockdown", host, LOCKDOWN_SUBJECT, UNKNOWN, why, expected, remedy)
    if state is None:
        why = "this kernel has no lockdown, or the host is a container"
        return Finding(STAGE, "preflight.lockdown", host, LOCKDOWN_SUBJECT, NOT_APPLICABLE, why, expected)
    if state not in LOCKED_DOWN:
        return Finding(STAGE, "preflight.lockdown", host, LOCKDOWN_SUBJECT, OK, state, expected)
    cause = "Secure Boot is on" if stack.secure_boot else "set by the kernel command line or configuration"
    observed = (
        f"{state} ({cause}): the kernel refuses writes to PCI configuration space (MRRS, ACS, `setpci`; mstconfig may fail), "
        "writes to debugfs (RoCE congestion control without MLNX_OFED or DOCA-OFED) and modules without a valid signature; "
        "the build does not set MRRS and ACS"
    )
    return Finding(STAGE, "preflight.lockdown", host, LOCKDOWN_SUBJECT, OK, observed, expected)


def _signing(host: str, intent: Intent, stack: Stack) -> tuple[str, ...]:
    """Whether the built modules of a host with Secure Boot are signed with an enrolled key: status, observed, remedy."""
    built = {name: module for name, module in stack.modules.items() if module.provenance in ADD_ONS}
    unsigned = sorted(name for name, module in built.items() if module.signer is None)
    mok = stack.mok if builds_planned(intent, stack) else None
    if unsigned:
        return ERROR, f"on; unsigned modules: {', '.join(unsigned)}", enrollment(host, stack)
    if mok is not None and not mok.enrolled:
        return (*key_trouble(mok), enrollment(host, stack))
    if built:
        return OK, f"on; {len(built)} add-on modules are signed"
    if mok is not None:
        return OK, f"on; the key that DKMS signs with ({mok.key}) is enrolled"
    if builds_planned(intent, stack):
        return WARNING, f"on; the modules that {planned_stack(intent)} builds must be signed", enrollment(host, stack)
    return OK, "on; no add-on module is loaded"


def key_trouble(mok: Mok) -> tuple[str, str]:
    """The status and the problem of a DKMS key that is not known to be enrolled. mok: stack.mok of the facts."""
    if not mok.key:
        return ERROR, "on; DKMS has no signing key yet"
    key = f"the key that DKMS signs with ({mok.key})"
    if mok.enrolled is None:
        return UNKNOWN, f"on; not known whether {key} is enrolled"
    return ERROR, f"on; {key} is not enrolled"


def enrollment(host: str, stack: Stack) -> str:
    """The steps that make a host with Secure Boot load the modules that DKMS builds: dkms or Ubuntu's shim-signed creates the key."""
    key = stack.mok.key if stack.mok else None
    file = f"`mokutil --import {key}`" if key else "`mokutil --import /var/lib/dkms/mok.pub` (Ubuntu: /var/lib/shim-signed/mok/MOK.der)"
    make = "" if key else " If there is no key, install dkms, run `dkms generate_mok` (Ubuntu: `update-secureboot-policy --new-key`)."
    return (
        f"1. On {host}, enroll the key that DKMS signs with: {file}.{make} "
        f"2. Reboot {host} and confirm the key on its console. 3. Build the modules again; or disable Secure Boot."
    )
