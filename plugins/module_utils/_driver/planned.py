# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the plan in rdma_driver: the origin of the modules, and whether they are built on the host."""

from __future__ import annotations

import re

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._driver.distribution import Distribution
from ansible_collections.rdma.cluster.plugins.module_utils._driver.dkms import is_relevant
from ansible_collections.rdma.cluster.plugins.module_utils._driver.stack import Stack

INBOX, MLNX_OFED, DOCA = "inbox", "mlnx_ofed", "doca"
#: Plan no stack: use and judge the installed one.
KEEP = "keep"
#: The kept stack of a host that has add-on modules which are neither MLNX_OFED's nor DOCA's, as far as its packages show.
ADD_ON = "add_on"
#: Profiles of DOCA without modules end in this: they use the kernel's own modules.
USERSPACE = "-userspace"
#: From this release on DOCA has sources only, which DKMS builds on the host (its guide "Installation and DKMS Management").
DOCA_DKMS = (3, 2)
RPM_FAMILY = frozenset({"rhel", "fedora", "centos", "rocky", "almalinux"})
#: Options of mlnxofedinstall that disable DKMS on Debian's family.
NO_DKMS = frozenset({"--add-kernel-support", "--without-dkms"})
_NUMBERS = re.compile(r"[0-9]+")


def planned_stack(intent: Intent) -> str:
    """Return rdma_driver.stack: "inbox", "doca", "mlnx_ofed"; "add_on" is a kept stack of another kind.

    "keep" counts as "inbox" here: resolve it with `with_kept_stack` before you judge or change a host.
    """
    stack = str((intent.get("driver") or {}).get("stack") or INBOX)
    return INBOX if stack == KEEP else stack


def is_kept(intent: Intent) -> bool:
    """Return whether the host keeps its stack: nothing is removed, replaced or built."""
    driver = intent.get("driver") or {}
    return bool(driver.get("kept")) or driver.get("stack") == KEEP


def planned_modules(intent: Intent) -> str:
    """Return the origin of the planned modules: as planned_stack, but "inbox" if only DOCA's userspace is planned."""
    profile = str((intent.get("driver") or {}).get("profile") or "")
    stack = planned_stack(intent)
    return INBOX if stack == DOCA and profile.endswith(USERSPACE) else stack


def is_rpm(distribution: Distribution) -> bool:
    """Return whether packages are RPMs: from the facts, or by the distribution's id and its related ids."""
    if distribution.family is not None:
        return distribution.family == "rpm"
    return bool({distribution.id, *distribution.like} & RPM_FAMILY)


def is_dkms_release(release: str | None) -> bool:
    """Return whether a release of DOCA ("3.2.0") has its modules as sources only; True without a release."""
    numbers = tuple(int(number) for number in _NUMBERS.findall(release or "")[:2])
    return not numbers or numbers >= DOCA_DKMS


def builds_planned(intent: Intent, stack: Stack) -> bool:
    """Return whether the planned stack's modules are built on the host. stack: that of the facts.

    On Debian's family always. RPMs have ready-made modules for the distribution's kernels, except for DOCA since 3.2. Nothing is built for
    a kept stack.
    """
    planned, driver = planned_modules(intent), intent.get("driver") or {}
    if planned == INBOX or is_kept(intent):
        return False
    if not is_rpm(stack.distribution) or (planned == DOCA and is_dkms_release(driver.get("version"))):
        return True
    return driver.get("add_kernel_support") is not False


def bypasses_dkms(intent: Intent, stack: Stack) -> bool:
    """Return whether the planned stack's modules are built into packages for the running kernel, which DKMS neither signs nor rebuilds.

    mlnxofedinstall has no DKMS on RPMs; on Debian's family --add-kernel-support installs again --without-dkms (mlnxofedinstall_deb.pl).
    """
    if not builds_planned(intent, stack):
        return False
    driver = intent["driver"]
    if planned_stack(intent) == DOCA:
        return not is_dkms_release(driver.get("version")) and driver.get("add_kernel_support") is not False
    asked = driver.get("add_kernel_support") or bool(NO_DKMS & set(driver.get("flags") or ()))
    return bool(asked) or is_rpm(stack.distribution)


def builds_modules(intent: Intent, stack: Stack) -> bool:
    """Return whether modules for RDMA or a GPU are built for the kernels of a host, or will be."""
    return any(is_relevant(entry.name) for entry in stack.dkms) or builds_planned(intent, stack)


def headers_package(kernel: str, distribution: Distribution) -> str:
    """Return the package with the headers of a release of `uname -r`; kernels of RHEL's variants are named "5.14.0-427.el9.x86_64+rt"."""
    if is_rpm(distribution):
        release, plus, variant = kernel.partition("+")
        return f"kernel-{variant}-devel-{release}" if plus else f"kernel-devel-{release}"
    return f"linux-headers-{kernel}"
