# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the planned driver stack takes: NVIDIA's repository for this host, packages of the distribution, the installer's options."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._driver.distribution import DEBIAN, PACKAGES, RPM, Distribution
from ansible_collections.rdma.cluster.plugins.module_utils._driver.kernels import flavour
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
#: How its folders name architectures.
DOCA_ARCHITECTURES = {"x86_64": "x86_64", "aarch64": "arm64-sbsa"}
#: What kernels and packages call an architecture → what `uname -m` calls it.
ARCHITECTURES = {"amd64": "x86_64", "x86_64": "x86_64", "arm64": "aarch64", "aarch64": "aarch64"}
RHEL_LIKE = frozenset({"rhel", "rocky", "almalinux", "centos"})
#: What modules are built with, beside the headers. MLNX_OFED's installer makes RPMs of its sources first.
BUILD_DEB = ("dkms", "gcc", "make")
BUILD_RPM = ("elfutils-libelf-devel", "gcc", "make")
BUNDLE_RPM = (
    *("autoconf", "automake", "createrepo_c", "gcc-gfortran", "kernel-rpm-macros", "libtool", "lsof", "patch", "perl"),
    *("python3-devel", "rpm-build", "tcl", "tk"),
)
#: The packages that bring the next kernel on the RPM family.
KERNELS_RPM = ("kernel", "kernel-core", "kernel-devel", "kernel-modules", "kernel-modules-core")
#: mlnxofedinstall's options by the key of rdma_driver, in the order in which they are given.
OPTIONS = {
    "add_kernel_support": "--add-kernel-support",
    "with_nvmf": "--with-nvmf",
    "without_fw_update": "--without-fw-update",
    "force": "--force",
}
_WORD = re.compile(r"[a-z0-9_]+")


def architecture(stack: Stack) -> str | None:
    """What `uname -m` says: by arch of the facts, else by the kernel's release (Ubuntu's does not tell) or what DKMS has built for;
    None: not told."""
    words = _WORD.findall(stack.kernel or "")
    told = [stack.arch] if stack.arch else [*words, *(each.arch or "" for each in stack.dkms)]
    return next((ARCHITECTURES[word] for word in told if word in ARCHITECTURES), None)


def flags(driver: Mapping[str, Any], *, rpm: bool) -> list[str]:
    """The options of mlnxofedinstall in order, those of the site last, none twice.

    rpm: whether the host keeps RPMs. On Debian's family --add-kernel-support installs again --without-dkms (mlnxofedinstall_deb.pl).
    """
    adds = driver.get("add_kernel_support")
    wished = {**driver, "add_kernel_support": rpm if adds is None else adds}
    typed = [option for key, option in OPTIONS.items() if wished.get(key)]
    return list(dict.fromkeys([*typed, *(driver.get("flags") or ())]))


def doca(intent: Intent, stack: Stack) -> dict[str, Any] | None:
    """What of DOCA is installed, and from where; repository is None where NVIDIA has none for this host and the site names none.

    generation: "dkms" since 3.2, "packages" before; kernel_support: doca-kernel-support makes packages for the running kernel first.
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
    """The folder of a distribution. Before 3.2 there is one for each minor release."""
    name, version = distribution.id, distribution.version_id or ""
    if name == "ubuntu" and version in ("22.04", "24.04"):
        return f"ubuntu{version}"
    if name == "debian" and version in (("12", "13") if dkms else ("12",)):
        return f"debian{version}" if dkms else "debian12.5"
    if name in RHEL_LIKE and version.partition(".")[0] == "9":
        return "rhel9" if dkms else f"rhel{version}"
    return None


def distribution_packages(intent: Intent, stack: Stack, kernel: str | None, *, changes: bool, removes: bool = False) -> list[str]:
    """The packages of the distribution to install: those of inbox that are missing, headers that are, and tools where something is built.

    kernel: the one that modules shall be built for; changes: whether something is built now. Which tools are there, the facts do not tell.
    removes: whether another stack is removed first: it takes its own rdma-core and perftest along, whatever is installed now.
    Where the packages of a kept stack cannot be read, nothing is installed.
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
    """The packages that would bring the next kernel, where the site wants them held. differs: one of them is not known to be.

    What RPM's versionlock holds the facts do not tell. Nothing is released that somebody has held.
    """
    if planned_stack(intent) == INBOX or not intent["driver"].get("hold_kernel"):
        return {"packages": [], "differs": False}
    there = stack.distribution.kernels
    packages = kernel_packages(stack) if there is None else there
    return {"packages": packages, "differs": bool(set(packages) - set(stack.distribution.held or ()))}


def kernel_packages(stack: Stack) -> list[str]:
    """The meta-packages that pull in newer kernels of the running one's flavour: "6.1.0-10-cloud-amd64" → linux-image-cloud-amd64, …"""
    if is_rpm(stack.distribution):
        return list(KERNELS_RPM)
    if stack.kernel is None:
        return []
    name = "-".join(flavour(stack.kernel))
    if stack.distribution.id != "ubuntu":
        return [f"linux-image-{name}", f"linux-headers-{name}"]
    flavours = [name, f"{name}-hwe-{stack.distribution.version_id}"]
    return [f"{kind}-{each}" for each in flavours for kind in ("linux", "linux-image", "linux-headers")]
