# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the gate of the preflight stage asks about kernels: whether the newest runs, and whether it takes modules built for it."""

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
            "the running kernel against the installed ones of its flavour; an error only where modules are built for kernels",
            "`/proc/sys/kernel/osrelease`, `/lib/modules`",
            "build the driver stack for the newest if it lacks it, then reboot into it; or remove it",
            sources=(reads.RELEASE, reads.KERNELS),
        ),
        "preflight.headers": Check(
            "preflight",
            "the headers of the running kernel, where DKMS or the planned stack builds modules",
            "`/lib/modules/RELEASE/build`",
            "install the package named (`linux-headers-RELEASE`, `kernel-devel-RELEASE`)",
            sources=(reads.RELEASE, reads.entry("/lib/modules/*/build/*", absent_means="headers that are not there are the finding")),
        ),
        "preflight.secure_boot": Check(
            "preflight",
            "Secure Boot against modules that nobody has signed",
            "the EFI variable `SecureBoot`; `modinfo` (signer)",
            "enrol the key that DKMS signs with (`mokutil --import`), or switch Secure Boot off",
            sources=(
                reads.folder("/sys/firmware/efi", absent_means="the host was not booted by EFI"),
                reads.file(
                    "/sys/firmware/efi/efivars/SecureBoot-*", absent_means="firmware with variables but without this one cannot do it"
                ),
                reads.MODINFO,
            ),
        ),
        "preflight.lockdown": Check(
            "preflight",
            "kernel lockdown, which forbids writes to PCI configuration space; informational",
            "`/sys/kernel/security/lockdown`",
            "none needed; `host.pcie` reports the settings that are withheld",
            sources=(reads.file("/sys/kernel/security/lockdown"),),
        ),
    }
)

STAGE = "preflight"
NEWEST_SUBJECT, HEADERS_SUBJECT, SECURE_BOOT_SUBJECT = "running kernel", "headers of the running kernel", "Secure Boot"
LOCKDOWN_SUBJECT = "kernel lockdown"


def check_kernels(host: str, intent: Intent, facts: Facts, *, reboot_allowed: bool = False) -> list[Finding]:
    """Findings `preflight.newest`, `preflight.headers`, `preflight.secure_boot` and `preflight.lockdown` of one host.

    An older kernel that runs lacks its headers where those of the newest have replaced them: then only `preflight.newest` is an error.
    What the driver stage will do itself is a warning: reboot, where that is allowed, and install headers for the planned stack.
    A kept stack that the newest kernel has too is a warning as well: nothing is built for it.
    """
    stack = stack_of(facts)
    builds = builds_modules(intent, stack)
    # A stack that is not installed yet is in no kernel: the driver stage installs it for the one that runs after the reboot.
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
    """lacks: the newest kernel would load its own driver in the place of the planned, or kept, stack's."""
    kernel, newest, installed = stack.kernel, stack.newest, stack.kernels
    expected = "the newest of its flavour that is installed"
    if kernel is None or not installed:
        why = "no kernel is installed here that it could be compared with" if kernel else "preflight.kernel says that it is not known"
        return Finding(STAGE, "preflight.newest", host, NEWEST_SUBJECT, NOT_APPLICABLE, why, expected)
    if kernel == newest or (newest is None and kernel in installed):
        return Finding(STAGE, "preflight.newest", host, NEWEST_SUBJECT, OK, kernel, expected)
    there = f"{newest} is the newest of its flavour" if newest else f"there are {', '.join(installed[-3:])}"
    observed = f"{kernel} runs; {there}" if kernel in installed else f"{kernel} runs and is not installed; {there}"
    if lacks and newest is not None:
        observed += f", and would load its own {DRIVER}"
        return Finding(STAGE, "preflight.newest", host, NEWEST_SUBJECT, older, observed, expected, build_steps(host, [newest], stack))
    todo = f"Reboot {host} into {newest}, or remove it" if kernel in installed else f"Reboot {host} into a kernel that is installed"
    why = "modules are built for one kernel, and the next boot takes another" if builds else "the next boot takes another than this one"
    return Finding(STAGE, "preflight.newest", host, NEWEST_SUBJECT, older, observed, expected, f"{todo}: {why}.")


def _headers(host: str, intent: Intent, stack: Stack, *, builds: bool) -> Finding:
    def finding(status: str, observed: str, remedy: str = "") -> Finding:
        return Finding(STAGE, "preflight.headers", host, HEADERS_SUBJECT, status, observed, "there, to build modules for it", remedy)

    kernel, newest = stack.kernel, stack.newest
    if not builds:
        return finding(NOT_APPLICABLE, "nothing is built for it: the stack is inbox, and DKMS has no module that RDMA or a GPU needs")
    if kernel is None:
        return finding(NOT_APPLICABLE, "preflight.kernel says that it is not known which one runs")
    place = f"/lib/modules/{kernel}/build"
    if not lacks_headers(stack):
        return finding(OK, place)
    if newest not in {None, kernel} and stack.headers.get(newest or ""):
        return finding(NOT_APPLICABLE, f"those of {newest} are there: preflight.newest says to reboot into it")
    package = headers_package(kernel, stack.distribution)
    planned = builds_planned(intent, stack)
    todo = f"The driver stage installs {package} on {host}." if planned else f"Install {package} on {host}."
    return finding(WARNING if planned else ERROR, f"nothing at {place}", todo)


def _secure_boot(host: str, intent: Intent, stack: Stack) -> Finding:
    def finding(status: str, observed: str, remedy: str = "") -> Finding:
        return Finding(STAGE, "preflight.secure_boot", host, SECURE_BOOT_SUBJECT, status, observed, "no obstacle to the driver", remedy)

    if stack.secure_boot is None:
        return finding(*_secure_boot_not_told(host, intent, stack))
    if not stack.secure_boot:
        return finding(OK, "off")
    if not builds_modules(intent, stack):
        return finding(OK, "on; the modules of the kernel are signed by the distribution")
    untold = sorted(name for name, module in stack.modules.items() if module.file is None)
    if untold and not any(module.provenance in ADD_ONS for module in stack.modules.values()):
        words = f"on, and it is not known whether the loaded modules are signed: modinfo tells nothing of {', '.join(untold[:3])}"
        return finding(UNKNOWN, words, f"Run `modinfo -F signer {untold[0]}` on {host}.")
    return finding(*_signing(host, intent, stack))


def _secure_boot_not_told(host: str, intent: Intent, stack: Stack) -> tuple[str, ...]:
    if "secure_boot" not in stack.unread:
        return NOT_APPLICABLE, "not told: no EFI, or a container"
    if not builds_modules(intent, stack):
        return NOT_APPLICABLE, "not read, and nothing is built: the modules of the kernel are signed by the distribution"
    remedy = f"On {host}, as root, see `ls /sys/firmware/efi/efivars` (`mount -t efivarfs efivarfs /sys/firmware/efi/efivars`)."
    return UNKNOWN, "the host was booted by EFI, and its variables could not be read", remedy


def _lockdown(host: str, stack: Stack) -> Finding:
    """Lockdown is no fault. The stage that it keeps from writing a setting says so: host.pcie, qos.cnp, qos.dcqcn."""
    state, expected = stack.lockdown, "known"
    if state is None and "lockdown" in stack.unread:
        why = "/sys/kernel/security/lockdown could not be read, or securityfs is not mounted"
        remedy = f"On {host}, as root, see `cat /sys/kernel/security/lockdown` (`mount -t securityfs securityfs /sys/kernel/security`)."
        return Finding(STAGE, "preflight.lockdown", host, LOCKDOWN_SUBJECT, UNKNOWN, why, expected, remedy)
    if state is None:
        why = "this kernel has no lockdown, or the host is a container"
        return Finding(STAGE, "preflight.lockdown", host, LOCKDOWN_SUBJECT, NOT_APPLICABLE, why, expected)
    if state not in LOCKED_DOWN:
        return Finding(STAGE, "preflight.lockdown", host, LOCKDOWN_SUBJECT, OK, state, expected)
    cause = "Secure Boot is on" if stack.secure_boot else "set by the kernel command line or configuration"
    observed = (
        f"{state} ({cause}): the kernel refuses writes to PCI configuration space (MRRS, ACS, `setpci`; mstconfig may fail), "
        "writes to debugfs (congestion control of RoCE without MLNX_OFED or DOCA-OFED) and modules without a valid signature; "
        "the build withholds MRRS and ACS"
    )
    return Finding(STAGE, "preflight.lockdown", host, LOCKDOWN_SUBJECT, OK, observed, expected)


def _signing(host: str, intent: Intent, stack: Stack) -> tuple[str, ...]:
    """Of a host with Secure Boot on, where modules are built: whether they are signed, and by a key that is enrolled."""
    built = {name: module for name, module in stack.modules.items() if module.provenance in ADD_ONS}
    unsigned = sorted(name for name, module in built.items() if module.signer is None)
    mok = stack.mok if builds_planned(intent, stack) else None
    if unsigned:
        return ERROR, f"on, and nobody has signed {', '.join(unsigned)}", enrolment(host, stack)
    if mok is not None and not mok.enrolled:
        return (*key_trouble(mok), enrolment(host, stack))
    if built:
        return OK, f"on; {len(built)} modules that do not come with the kernel are signed"
    if mok is not None:
        return OK, f"on; the key that DKMS signs with ({mok.key}) is enrolled"
    if builds_planned(intent, stack):
        return WARNING, f"on; what {planned_stack(intent)} builds will have to be signed", enrolment(host, stack)
    return OK, "on; no module of an add-on is loaded"


def key_trouble(mok: Mok) -> tuple[str, str]:
    """A status, and what is wrong with a key of DKMS that is not known to be enrolled. mok: stack.mok of the facts."""
    if not mok.key:
        return ERROR, "on, and DKMS has no key yet that it could sign with"
    key = f"the key that DKMS signs with ({mok.key})"
    if mok.enrolled is None:
        return UNKNOWN, f"on, and it is not known whether {key} is enrolled"
    return ERROR, f"on, and {key} is not enrolled"


def enrolment(host: str, stack: Stack) -> str:
    """What to do so that a host with Secure Boot on loads what DKMS builds: a key is made by dkms or by Ubuntu's shim-signed."""
    key = stack.mok.key if stack.mok else None
    file = f"`mokutil --import {key}`" if key else "`mokutil --import /var/lib/dkms/mok.pub` (Ubuntu: /var/lib/shim-signed/mok/MOK.der)"
    make = "" if key else " If there is none yet, install dkms and run `dkms generate_mok` (Ubuntu: `update-secureboot-policy --new-key`)."
    return (
        f"Enrol the key that DKMS signs with on {host}: {file}, reboot, confirm it on the console, build the modules again; "
        f"or switch Secure Boot off.{make}"
    )
