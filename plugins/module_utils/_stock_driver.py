# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The stock driver in the place of one that was to be installed: why it is there, and what of the one before is still loaded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._checks_dkms import missing
from ansible_collections.rdma.cluster.plugins.module_utils._dkms import INSTALLED, OFED
from ansible_collections.rdma.cluster.plugins.module_utils._findings import ERROR
from ansible_collections.rdma.cluster.plugins.module_utils._loaded_module import KERNELS_OWN, compare
from ansible_collections.rdma.cluster.plugins.module_utils._modules_dep import is_stock
from ansible_collections.rdma.cluster.plugins.module_utils._ofed_state import DRIVER
from ansible_collections.rdma.cluster.plugins.module_utils._planned_stack import INBOX, headers_package, planned_modules
from ansible_collections.rdma.cluster.plugins.module_utils._rails import Facts

#: How many modules a finding names.
NAMED = 6
#: How many lines of a log.
LINES = 4
Modules = Mapping[str, Mapping[str, Any]]


def left_over_modules(intent: Mapping[str, Any], facts: Facts) -> Modules:
    """The modules that are still loaded of an add-on whose place on disk the kernel's own have taken, since an installation failed."""
    stack = facts["stack"]
    if planned_modules(intent) == INBOX or not why_stock(intent, stack):
        return {}
    modules: Modules = stack.get("modules") or {}
    found = {name: each for name, each in modules.items() if each.get("provenance") == KERNELS_OWN and compare(each) == ERROR}
    return found if any(each.get("version") for each in found.values()) else {}


def still_loaded(host: str, intent: Mapping[str, Any], left_over: Modules, stack: Mapping[str, Any]) -> tuple[str, ...]:
    """Status, words and remedy of left_over_modules: the driver of before still works, and goes with a reload or a reboot."""
    names = sorted(left_over, key=lambda name: (name != DRIVER, not left_over[name].get("version"), name))
    first, version = names[0], next(left_over[name]["version"] for name in names if left_over[name].get("version"))
    others = f" (and {some(names[1:])})" if len(names) > 1 else ""
    observed = f"{first}{others} of OFED {version} is still loaded, and the stock {first} is on disk: {why_stock(intent, stack)}"
    return ERROR, observed, f"Do not reload the driver of {host}, and do not reboot it: it would come up with the stock one. {mend(host)}"


def mend(host: str) -> str:
    """What to do after an installation that failed."""
    return (
        f"Mend that on {host} and run the driver stage again. The log is driver/{host}.log in the folder of the run that failed; "
        f"see also /var/lib/dkms/*/*/build/make.log on {host}."
    )


def why_stock(intent: Mapping[str, Any], stack: Mapping[str, Any]) -> str:
    """Why the planned stack is not there: what DKMS has not built, and how the last installation failed, with the lines of its log.

    An installation of another version than the planned one is passed over, where it is told which it was.
    """
    lacking = [each.words for each in missing(stack) if each.name in OFED]
    failure = stack.get("last_build") or {}
    if failure.get("version") not in {None, (intent.get("driver") or {}).get("version")}:
        failure = {}
    return "; ".join([*lacking, *([str(failure["meaning"]), *failure["lines"][:LINES]] if failure else [])])


def lacks_planned(intent: Mapping[str, Any], stack: Mapping[str, Any], kernel: str) -> bool | None:
    """Whether a kernel would load its own driver in the place of the planned stack's; None where that is not known, or nothing is planned
    beside the kernel's own."""
    if planned_modules(intent) == INBOX:
        return None
    files = stack.get("driver_files") or {}
    if kernel in files:
        return files[kernel] is None or is_stock(files[kernel])
    if not any(entry["name"] in OFED for entry in stack.get("dkms") or ()):
        return None
    return not dkms_versions(stack, kernel)


def dkms_versions(stack: Mapping[str, Any], kernel: str) -> set[str]:
    """The versions of OFED's modules that DKMS has installed, or linked, for a kernel."""
    return {
        str(entry.get("version"))
        for entry in stack.get("dkms") or ()
        if entry["name"] in OFED and entry.get("kernel") == kernel and str(entry.get("state")).startswith(INSTALLED)
    }


def build_steps(host: str, kernels: Sequence[str], stack: Mapping[str, Any]) -> str:
    """How to build the installed stack for kernels that lack it, and to boot the newest of them; without DKMS only its installer can."""
    newest = kernels[-1]
    them = newest if len(kernels) == 1 else "them"
    if not any(entry["name"] in OFED for entry in stack.get("dkms") or ()):
        return (
            f"1. Install the stack's packages for {' and '.join(kernels)} on {host}, or remove {them} there. "
            f"2. Reboot {host} only after that."
        )
    headers = stack.get("headers") or {}
    packages = [headers_package(kernel, stack.get("distribution") or {}) for kernel in kernels if not headers.get(kernel)]
    install = f"install {' and '.join(packages)}, then " if packages else ""
    builds = " and ".join(f"`dkms autoinstall -k {kernel}`" for kernel in kernels)
    return f"1. On {host} {install}run {builds}. 2. Reboot {host} into {newest} only after that. 3. Or remove {them} there instead."


def some(names: Iterable[str]) -> str:
    """The first of these modules, and how many more there are."""
    listed = list(names)
    more = len(listed) - NAMED
    return ", ".join(listed[:NAMED]) + (f" and {more} more" if more > 0 else "")
