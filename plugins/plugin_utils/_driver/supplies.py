# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The supplies of the planned driver stack: NVIDIA's repository for this host, distribution packages, installer options."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._driver.distribution import DEBIAN, PACKAGES, RPM, Distribution
from ansible_collections.rdma.cluster.plugins.module_utils._driver.kernels import flavor
from ansible_collections.rdma.cluster.plugins.module_utils._driver.planned import (
    DOCA,
    INBOX,
    MLNX_OFED,
    builds_planned,
    headers_package,
    is_dkms_release,
    is_kept,
    is_rpm,
    planned_modules,
    planned_stack,
)
from ansible_collections.rdma.cluster.plugins.module_utils._driver.stack import Stack

REPOSITORY = "https://linux.mellanox.com/public/repo/doca"
#: The names of architectures in the repository's folders.
DOCA_ARCHITECTURES = {"x86_64": "x86_64", "aarch64": "arm64-sbsa"}
#: The name of an architecture in kernels and packages → its name in `uname -m`.
ARCHITECTURES = {"amd64": "x86_64", "x86_64": "x86_64", "arm64": "aarch64", "aarch64": "aarch64"}
RHEL_LIKE = frozenset({"rhel", "rocky", "almalinux", "centos"})
#: The build tools in addition to the headers. MLNX_OFED's installer first builds RPMs from its sources.
BUILD_DEB = ("dkms", "gcc", "make")
BUILD_RPM = ("elfutils-libelf-devel", "gcc", "make")
BUNDLE_RPM = (
    *("autoconf", "automake", "createrepo_c", "gcc-gfortran", "kernel-rpm-macros", "libtool", "lsof", "patch", "perl"),
    *("python3-devel", "rpm-build", "tcl", "tk"),
)
#: The packages that install the next kernel on the RPM family.
KERNELS_RPM = ("kernel", "kernel-core", "kernel-devel", "kernel-modules", "kernel-modules-core")
#: mlnxofedinstall's options by the key of rdma_driver, in their order on the command line.
OPTIONS = {
    "add_kernel_support": "--add-kernel-support",
    "with_nvmf": "--with-nvmf",
    "without_fw_update": "--without-fw-update",
    "force": "--force",
}
_WORD = re.compile(r"[a-z0-9_]+")


def architecture(stack: Stack) -> str | None:
    """Return the output of `uname -m`: from arch in the facts, else the kernel release (not on Ubuntu) or DKMS builds; None if unknown."""
    words = _WORD.findall(stack.kernel or "")
    candidates = [stack.arch] if stack.arch else [*words, *(each.arch or "" for each in stack.dkms)]
    return next((ARCHITECTURES[word] for word in candidates if word in ARCHITECTURES), None)


def flags(driver: Mapping[str, Any], *, rpm: bool) -> list[str]:
    """Return the options of mlnxofedinstall in order, those of the site last, none twice.

    rpm: whether the host uses RPMs. On the Debian family --add-kernel-support reinstalls with --without-dkms (mlnxofedinstall_deb.pl).
    """
    adds = driver.get("add_kernel_support")
    options = {**driver, "add_kernel_support": rpm if adds is None else adds}
    typed = [option for key, option in OPTIONS.items() if options.get(key)]
    return list(dict.fromkeys([*typed, *(driver.get("flags") or ())]))


def doca(intent: Intent, stack: Stack) -> dict[str, Any] | None:
    """Return the DOCA packages and their source. repository is None if NVIDIA has none for this host and the site sets none.

    generation: "dkms" since 3.2, "packages" before. kernel_support: whether doca-kernel-support builds packages for the running kernel
    first.
    """
    if planned_stack(intent) != DOCA:
        return None
    driver = intent["driver"]
    dkms = is_dkms_release(driver.get("version"))
    given = (driver.get("repository") or {}).get("url")
    return {
        "packages": [driver.get("profile") or "doca-ofed"],
        "generation": "dkms" if dkms else "packages",
        "repository": given or _derived(driver.get("version"), stack, dkms=dkms),
        "kernel_support": not dkms and driver.get("add_kernel_support") is not False and planned_modules(intent) != INBOX,
    }


def _derived(version: str | None, stack: Stack, *, dkms: bool) -> str | None:
    system, machine = _doca_system(stack.distribution, dkms=dkms), DOCA_ARCHITECTURES.get(architecture(stack) or "")
    return f"{REPOSITORY}/{version}/{system}/{machine}/" if version and system and machine else None


def _doca_system(distribution: Distribution, *, dkms: bool) -> str | None:
    """Return the folder of a distribution. Before 3.2, there is one for each minor release."""
    name, version = distribution.id, distribution.version_id or ""
    if name == "ubuntu" and version in ("22.04", "24.04"):
        return f"ubuntu{version}"
    if name == "debian" and version in (("12", "13") if dkms else ("12",)):
        return f"debian{version}" if dkms else "debian12.5"
    if name in RHEL_LIKE and version.partition(".")[0] == "9":
        return "rhel9" if dkms else f"rhel{version}"
    return None


def distribution_packages(intent: Intent, stack: Stack, kernel: str | None, *, changes: bool, removes: bool = False) -> list[str]:
    """Return the distribution packages to install: missing ones of inbox, missing headers, and tools if something is built.

    kernel: the kernel to build modules for. changes: whether something is built now. The facts do not have the installed tools. removes:
    whether another stack is removed first: that removes its rdma-core and perftest, whatever is installed now. If the packages of a kept
    stack cannot be read, nothing is installed.
    """
    rpm = is_rpm(stack.distribution)
    if planned_stack(intent) == INBOX:
        known = stack.distribution.packages
        if known is None or removes:
            return [] if is_kept(intent) else list(PACKAGES[RPM if rpm else DEBIAN])
        return [name for name, version in known.items() if version is None]
    if not builds_planned(intent, stack) or kernel is None:
        return []
    headers = [] if stack.headers.get(kernel) else [headers_package(kernel, stack.distribution)]
    if not changes:
        return headers
    if not rpm:
        return [*headers, *BUILD_DEB]
    return [*headers, *BUILD_RPM, *(BUNDLE_RPM if planned_stack(intent) == MLNX_OFED else ("dkms",))]


def hold(intent: Intent, stack: Stack) -> dict[str, Any]:
    """Return the packages that would install the next kernel, if the site wants them held. differs: one of them is not known to be held.

    The facts do not have the holds of RPM's versionlock. Existing holds are not released.
    """
    if planned_stack(intent) == INBOX or not intent["driver"].get("hold_kernel"):
        return {"packages": [], "differs": False}
    there = stack.distribution.kernels
    packages = kernel_packages(stack) if there is None else there
    return {"packages": packages, "differs": bool(set(packages) - set(stack.distribution.held or ()))}


def kernel_packages(stack: Stack) -> list[str]:
    """Return the meta-packages of newer kernels of the running one's flavor: "6.1.0-10-cloud-amd64" → linux-image-cloud-amd64, …"""
    if is_rpm(stack.distribution):
        return list(KERNELS_RPM)
    if stack.kernel is None:
        return []
    name = "-".join(flavor(stack.kernel))
    if stack.distribution.id != "ubuntu":
        return [f"linux-image-{name}", f"linux-headers-{name}"]
    flavors = [name, f"{name}-hwe-{stack.distribution.version_id}"]
    return [f"{kind}-{each}" for each in flavors for kind in ("linux", "linux-image", "linux-headers")]
