# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What DKMS can build of MLNX_OFED or DOCA-OFED, and whether a kernel that is booted next would have the driver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._dkms import BROKEN, OFED
from ansible_collections.rdma.cluster.plugins.module_utils._modules_dep import is_stock
from ansible_collections.rdma.cluster.plugins.module_utils._ofed_state import DRIVER
from ansible_collections.rdma.cluster.plugins.module_utils._planned_stack import headers_package
from ansible_collections.rdma.cluster.plugins.module_utils._stock_driver import dkms_versions

Stack = Mapping[str, Any]


def has_sources(stack: Stack) -> bool:
    """Whether DKMS has OFED's own modules to build from."""
    return any(entry["name"] in OFED and entry.get("state") != BROKEN for entry in stack.get("dkms") or ())


def can_build(stack: Stack, kernel: str) -> bool:
    """Whether DKMS has OFED's modules, and has not installed them for a kernel; of headers nothing is said."""
    return has_sources(stack) and not dkms_versions(stack, kernel)


def before_reboot(stack: Stack, newest: str) -> tuple[str | None, str | None]:
    """What a reboot into the newest kernel waits for: the release that DKMS has to build for, or why that cannot be; both None if it
    has the driver."""
    lacks = _lacks_driver(stack, newest)
    if lacks is False:
        return None, None
    if lacks is None:
        return None, f"it is not known which {DRIVER} {newest} would load: look at `modinfo -k {newest} -F filename {DRIVER}`"
    stock = f"a reboot into {newest} takes another {DRIVER} than the one that is installed now"
    if not has_sources(stack):
        todo = "reboot by hand and run the driver stage again, which installs it for that kernel, or hold the kernel"
        return None, f"{stock}, and DKMS does not have it: {todo}"
    if not can_build(stack, newest) and not _is_older(stack, newest):
        return None, f"{stock}, although DKMS has built for it: run `depmod -a {newest}`, and see `modinfo -k {newest} {DRIVER}`"
    if not (stack.get("headers") or {}).get(newest):
        package = headers_package(newest, stack.get("distribution") or {})
        return None, f"{stock}, and without its headers nothing can be built for it: install {package}"
    return newest, None


def _lacks_driver(stack: Stack, kernel: str) -> bool | None:
    """Whether a kernel would load its own driver, or an older add-on; None: not known."""
    files = stack.get("driver_files") or {}
    if kernel in files:
        return files[kernel] is None or is_stock(files[kernel]) or _is_older(stack, kernel)
    return not dkms_versions(stack, kernel) or _is_older(stack, kernel) if has_sources(stack) else None


def _is_older(stack: Stack, kernel: str) -> bool:
    """Whether DKMS has other versions of OFED installed for a kernel than for the one that runs."""
    there, here = dkms_versions(stack, kernel), dkms_versions(stack, str(stack.get("kernel")))
    return bool(there and here) and not there & here
