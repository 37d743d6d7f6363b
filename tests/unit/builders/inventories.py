# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The example inventories, loaded as Ansible loads them."""

from __future__ import annotations

from pathlib import Path

from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar
from ansible.vars.manager import VariableManager

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.read import normalize

INVENTORIES = Path(__file__).parents[3] / "inventories"


def load(name: str) -> dict[str, Intent]:
    """The normalized intent of every host of an inventory."""
    loader = DataLoader()
    inventory = InventoryManager(loader=loader, sources=[str(INVENTORIES / name / "hosts.yml")])
    manager = VariableManager(loader=loader, inventory=inventory)
    intents = {}
    for host in inventory.get_hosts():
        variables = manager.get_vars(host=host)
        templar = Templar(loader=loader, variables=variables)
        intents[host.name] = normalize({key: templar.template(variables[key]) for key in variables if key.startswith("rdma_")})
    return intents
