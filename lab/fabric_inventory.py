# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The inventory of containers on a simulated fabric, as data: connections come from the lab, the intent from the fabric. Pure."""

from __future__ import annotations

from typing import Any

from lab import fabric_tree, plan
from lab.fabric_plan import FabricPlan
from lab.paths import FabricFolder, LabFolder
from lab.plan import Plan

PLANE = "compute"
RATE_GBPS = 200
ACCESS = "ansible_"
#: mstlink opens the PCI function of an HCA, which a stand-in does not have.
NO_MODULES = {"silenced_by": "the lab", "reason": "the HCAs are stand-ins without a cable module", "until": "2099-12-31"}
NO_CONFIGURATION = {**NO_MODULES, "reason": "the HCAs are stand-ins without a PCI configuration space"}


def inventory(lab: Plan, fabric: FabricPlan, lab_folder: LabFolder, folder: FabricFolder, *, own_manager: bool) -> dict[str, Any]:
    """Return the inventory. own_manager: opensm runs outside of the hosts, as on a switch; else the role runs it on the first host."""
    group = plan.inventory(lab, str(lab_folder.key), str(lab_folder.known_hosts))["all"]
    manager = {"kind": "switch"} if own_manager else {"hosts": [lab.nodes[0].name]}
    access = {key: value for key, value in group["vars"].items() if key.startswith(ACCESS)}
    intent = {
        "rdma_fabric": {"topology": "switched", "planes": {PLANE: {"subnet_manager": manager, "plan": str(folder.cabling), "ratio": 1}}},
        "rdma_driver": {"stack": "inbox"},
        "rdma_checks": {"link.optic": NO_MODULES, "pcie.payload": NO_CONFIGURATION},
        "rdma_rails": [_rail(index) for index in range(fabric.shape.rails)],
    }
    hosts = {name: {"ansible_port": host["ansible_port"]} for name, host in group["hosts"].items()}
    return {"all": {"vars": {**access, **intent}, "hosts": hosts}}


def _rail(index: int) -> dict[str, Any]:
    return {
        "name": f"rail{index}",
        "nic": {"pci": fabric_tree.pci_address(index)},
        "link_layer": "infiniband",
        "plane": PLANE,
        "rate_gbps": RATE_GBPS,
    }
