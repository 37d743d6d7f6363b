# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Determine the OFED of a host: installed, built for the running kernel, and loaded. Each of the three has its own answer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, OK
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._driver.dkms import BROKEN, INSTALLED, OFED
from ansible_collections.rdma.cluster.plugins.module_utils._driver.modinfo import ADD_ONS, KERNELS_OWN, compare, is_stock
from ansible_collections.rdma.cluster.plugins.module_utils._driver.planned import ADD_ON, DOCA, INBOX, KEEP, MLNX_OFED
from ansible_collections.rdma.cluster.plugins.module_utils._driver.stack import Stack

#: The module that decides: each stack has it, and every host with a ConnectX NIC needs it.
DRIVER = "mlx5_core"
#: The packages that identify a profile of DOCA, the smaller ones first; doca-host only contains the repository.
DOCA_PACKAGES = (
    *("doca-ofed", "doca-roce", "doca-networking", "doca-all"),
    *("doca-ofed-userspace", "doca-roce-userspace", "doca-networking-userspace", "doca-all-userspace"),
)
_NUMBER = re.compile(r"[0-9][\w.-]*")
#: Packages with an add-on's modules or scripts; doca-host, mlnx-tools and mlnx-fw-updater alone are no stack.
_ADD_ON_PACKAGES = re.compile(r"ofed-scripts|mlnx-ofed-kernel.*|kmod-.*|.*-dkms|mlnx-ofa_kernel.*")
_EPOCH = re.compile(r"[0-9]+:")


@dataclass(frozen=True)
class OfedState:
    """stack: "mlnx_ofed", "doca" or None for neither.

    version: "24.10-1.1.4.0", for doca that of its package if known ("3.2.0-125000"), else its OFED's. built: whether modprobe would load an
    add-on's mlx5_core for the running kernel; loaded: whether mlx5_core is loaded and the same as its file; None: unknown. why: the reasons
    against, and the unknown values, in words. is_release: version is one of DOCA's.
    """

    stack: str | None
    version: str | None
    built: bool | None
    loaded: bool | None
    why: list[str]
    is_release: bool = False


def ofed_state(stack: Stack) -> OfedState:
    """Return the state of OFED from stack of the facts."""
    name, version, is_release = _installed(stack)
    built, why_not_built = _built(stack, name)
    loaded, why_not_loaded = _loaded(stack)
    absent = [] if name else ["neither MLNX_OFED nor DOCA-OFED is installed"]
    return OfedState(name, version, built, loaded, [*absent, *why_not_built, *why_not_loaded], is_release)


def has_version(state: OfedState, stack: str, requested: str | None) -> bool | None:
    """Return whether a stack ("doca", "mlnx_ofed") is installed in the requested version; None if the version is unknown.

    requested: "24.10-1.1.4.0"; for DOCA a release, which is a prefix of its package versions: "3.2.0" matches doca-ofed 3.2.0-125000.
    """
    if state.stack is None:
        return None
    if state.stack != stack:
        return False
    if requested is None:
        return True
    if state.version is None or (stack == DOCA and not state.is_release):
        return None
    return state.version == requested or (stack == DOCA and state.version.startswith(f"{requested}-"))


def _installed(stack: Stack) -> tuple[str | None, str | None, bool]:
    line, vendor = stack.ofed_version, stack.distribution.vendor or {}
    package = next((bare_version(vendor[each]) for each in DOCA_PACKAGES if vendor.get(each)), None)
    if line is None:
        return (DOCA, package, True) if package else (None, None, False)
    number = _NUMBER.search(line)
    of_ofed = number[0] if number else None
    return (MLNX_OFED, of_ofed, False) if line.startswith("MLNX_OFED") else (DOCA, package or of_ofed, package is not None)


def kept_stack(stack: Stack) -> tuple[str, str | None]:
    """Return a host's stack, and the profile of DOCA: "mlnx_ofed", "doca", "inbox", or "add_on" for other add-on modules."""
    name = ofed_state(stack).stack
    vendor = stack.distribution.vendor or {}
    if name == DOCA:
        return DOCA, next((each for each in DOCA_PACKAGES if vendor.get(each)), None)
    if name is not None:
        return name, None
    return (ADD_ON if _has_add_on(stack, vendor) else INBOX), None


def with_kept_stack(intent: Intent, stack: Stack | None) -> Intent:
    """Return the intent with `stack: keep` replaced by the host's stack; any other intent is unchanged, and also without a known stack."""
    driver = intent["driver"]
    if driver["stack"] != KEEP or stack is None:
        return intent
    name, profile = kept_stack(stack)
    return {**intent, "driver": {**driver, "stack": name, "profile": profile or driver["profile"], "version": None, "kept": True}}


def _has_add_on(stack: Stack, vendor: Mapping[str, str]) -> bool:
    """Return whether there is a sign that a host's RDMA modules are not the kernel's, or not meant to be."""
    loaded = {name for name, module in stack.modules.items() if module.provenance in ADD_ONS}
    file = _driver_file(stack)
    return (
        stack.kind == "ofed"
        or bool({DRIVER, "ib_core"} & loaded)
        or (file is not None and not is_stock(file))
        or any(entry.name in OFED and entry.state != BROKEN for entry in stack.dkms)
        or any(_ADD_ON_PACKAGES.fullmatch(each) for each in vendor)
    )


def bare_version(version: str) -> str:
    """Return a package's version without its epoch: "1:3.2.0-125000" → "3.2.0-125000"."""
    return _EPOCH.sub("", version, count=1)


def _driver_file(stack: Stack) -> str | None:
    """Return the file that modprobe would load for the running kernel; None: unknown."""
    return None if stack.kernel is None else (stack.driver_files or {}).get(stack.kernel)


def _built(stack: Stack, name: str | None) -> tuple[bool | None, list[str]]:
    """Return whether it is built: by the file of the loaded module; without one by the file that modprobe would load, else by DKMS."""
    kernel, module = stack.kernel, stack.modules.get(DRIVER)
    if module is not None and module.provenance in ADD_ONS:
        return True, []
    if module is not None and module.provenance == KERNELS_OWN:
        return False, [f"modprobe loads the kernel's own {DRIVER} ({module.file})"]
    file = _driver_file(stack)
    if file is not None:
        return (False, [f"modprobe would load the kernel's own {DRIVER} ({file})"]) if is_stock(file) else (True, [])
    entries = [entry for entry in stack.dkms if entry.name in OFED]
    if any(entry.kernel == kernel and entry.state.startswith(INSTALLED) for entry in entries):
        return True, []
    if entries:
        return False, [f"DKMS has {entries[0].name}/{entries[0].version} not installed for {kernel}"]
    return (False, []) if name is None else (None, [f"whether it is built for {kernel} is unknown: DKMS does not have it"])


def _loaded(stack: Stack) -> tuple[bool | None, list[str]]:
    module = stack.modules.get(DRIVER)
    if module is None:
        return False, [f"{DRIVER} is not loaded"]
    compared = compare(module)
    if compared == OK:
        return True, []
    if compared == ERROR:
        return False, [f"the loaded {DRIVER} differs from the one on disk"]
    return None, [f"whether the loaded {DRIVER} is the one on disk is unknown"]
