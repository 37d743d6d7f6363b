# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the tuning of PCIe depends on, out of the facts of a host."""

from __future__ import annotations

from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._pci.functions import PciFunction
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_tuning.acs import platform, redirecting, slot_of


def pcie_state(facts: Facts) -> dict[str, Any]:
    """{"acs_mode": what auto stands for, or None, "acs_why": why, "mrrs_bytes": {physical function of a NIC: bytes, or None},
    "redirecting": {a NIC's function: the bridges above it that redirect}, of those that have any, "gpu_redirecting": those above GPUs}
    """
    devices = [device for device in facts.devices.values() if device.function == "pf"]
    own, gpus = {device.pci.address: device.pci for device in devices if device.pci is not None}, facts.gpus or []
    slots = {slot_of(address) for address in own}
    beside = {address: pci for address, pci in facts.nics.items() if slot_of(address) in slots}
    virtual_machine = facts.iommu.virtual_machine if facts.iommu is not None else None
    found = platform([gpu.model for gpu in gpus], [pci.device_id for pci in own.values()], virtual_machine)
    blocked = {address: _redirecting_hops(pci) for address, pci in sorted(own.items())}
    return {
        "acs_mode": found.mode if facts.gpus is not None else None,
        "acs_why": found.why if facts.gpus is not None else "GPUs were not looked for",
        "mrrs_bytes": {address: pci.mrrs_bytes for address, pci in sorted({**own, **beside}.items())},
        "redirecting": {address: bridges for address, bridges in blocked.items() if bridges},
        "gpu_redirecting": sorted({bridge for gpu in gpus if gpu.pci is not None for bridge in _redirecting_hops(gpu.pci)}),
    }


def _redirecting_hops(pci: PciFunction) -> list[str]:
    return [hop.address for hop in pci.hops if redirecting(hop.acs)]
