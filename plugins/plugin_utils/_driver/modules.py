# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The driver stage's values derived from the intent."""

from __future__ import annotations

from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._driver.dkms import BROKEN, OFED
from ansible_collections.rdma.cluster.plugins.module_utils._driver.modinfo import is_stock
from ansible_collections.rdma.cluster.plugins.module_utils._driver.ofed_state import DRIVER
from ansible_collections.rdma.cluster.plugins.module_utils._driver.planned import INBOX, headers_package, is_kept, planned_modules
from ansible_collections.rdma.cluster.plugins.module_utils._driver.stack import Stack
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.nics import DRIVERS, module_of, modules_of
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import ResolvedRail, resolve, soft_device_name
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.driver.modules import dkms_versions

#: The modules of verbs and RDMA-CM, in the order of their dependencies.
CORE_MODULES = ("ib_core", "ib_uverbs", "rdma_cm", "rdma_ucm")
SOFT_MODULES = ("rdma_rxe",)
#: The modules that are checked and loaded for a planned MLNX_OFED or DOCA-OFED, for any card. They load mlx_compat. A kept stack loads only
#: modules that the rails need.
ADD_ON_MODULES = ("mlx5_core",)
#: Subnet management and IP over InfiniBand.
INFINIBAND_MODULES = ("ib_umad", "ib_ipoib")
#: Used if the card is unknown because its driver is not loaded yet.
USUAL_DRIVER = "mlx5_core"


def needed_modules(intent: Intent, facts: Facts) -> list[str]:
    """Return the kernel modules that must be loaded for these rails, in order; those of a card by the driver in the facts."""
    soft = any(rail["soft"] for rail in intent["rails"])
    drivers = dict.fromkeys(_driver(rail, facts) for rail in resolve(intent["rails"], facts) if not rail.rail["soft"])
    cards = [name for driver in drivers for name in modules_of(driver)]
    add_on = ADD_ON_MODULES if planned_modules(intent) != INBOX and not is_kept(intent) else ()
    infiniband = any(rail["link_layer"] == "infiniband" and not rail["soft"] for rail in intent["rails"])
    kinds = [*(INFINIBAND_MODULES if infiniband else ()), *(SOFT_MODULES if soft else ())]
    return list(dict.fromkeys([*CORE_MODULES, *add_on, *cards, *kinds]))


def _driver(rail: ResolvedRail, facts: Facts) -> str:
    """Return the driver of a rail's card: that of its RDMA device, else of its interface if it is an RDMA driver."""
    device = facts.devices[rail.device] if rail.device is not None else None
    if device is not None and device.driver and not device.software:
        return module_of(device.driver)
    driver = facts.netdevs[rail.netdev].driver if rail.netdev is not None else None
    return driver if driver in DRIVERS else USUAL_DRIVER


def boot_modules(intent: Intent) -> list[str]:
    """Return those modules that must be loaded explicitly at boot: udev and rdma-core load the rest when the device appears."""
    return list(SOFT_MODULES) if any(rail["soft"] for rail in intent["rails"]) else []


def soft_links(intent: Intent) -> list[dict[str, Any]]:
    """Return the Soft-RoCE links of a host, in the shape of rdma.cluster.soft_links."""
    return [{"name": soft_device_name(rail), "type": "rxe", "nic": rail["nic"]} for rail in intent["rails"] if rail["soft"]]


def has_sources(stack: Stack) -> bool:
    """Return whether DKMS has the sources of OFED's modules."""
    return any(entry.name in OFED and entry.state != BROKEN for entry in stack.dkms)


def can_build(stack: Stack, kernel: str) -> bool:
    """Return whether DKMS has OFED's modules, but has not installed them for a kernel. Headers are not checked."""
    return has_sources(stack) and not dkms_versions(stack, kernel)


def before_reboot(stack: Stack, newest: str) -> tuple[str | None, str | None]:
    """Return what must precede a reboot into the newest kernel: the release to build with DKMS, or the obstacle.

    Both are None if that kernel has the driver.
    """
    lacks = _lacks_driver(stack, newest)
    if lacks is False:
        return None, None
    if lacks is None:
        return None, f"which {DRIVER} {newest} would load is unknown: run `modinfo -k {newest} -F filename {DRIVER}`"
    stock = f"a reboot into {newest} would load another {DRIVER} than the installed one"
    if not has_sources(stack):
        todo = "reboot manually and rerun the driver stage, which installs it for that kernel, or hold the kernel"
        return None, f"{stock}, and DKMS does not have it: {todo}"
    if not can_build(stack, newest) and not _is_older(stack, newest):
        return None, f"{stock}, although DKMS has built it: run `depmod -a {newest}`, then check `modinfo -k {newest} {DRIVER}`"
    if not stack.headers.get(newest):
        package = headers_package(newest, stack.distribution)
        return None, f"{stock}, and its headers are missing: install {package}"
    return newest, None


def _lacks_driver(stack: Stack, kernel: str) -> bool | None:
    """Return whether a kernel would load its own driver, or an older add-on; None if unknown."""
    if kernel in (stack.driver_files or {}):
        file = (stack.driver_files or {})[kernel]
        return file is None or is_stock(file) or _is_older(stack, kernel)
    return not dkms_versions(stack, kernel) or _is_older(stack, kernel) if has_sources(stack) else None


def _is_older(stack: Stack, kernel: str) -> bool:
    """Return whether DKMS has other versions of OFED installed for a kernel than for the running one."""
    there, here = dkms_versions(stack, kernel), dkms_versions(stack, stack.kernel)
    return bool(there and here) and not there & here
