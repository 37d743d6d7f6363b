# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The inventory of a plan: refused with exactly what to fill in, and complete afterwards, also for routed planes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar
from ansible.vars.manager import VariableManager

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.planes import routed_planes
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.problem import IntentError
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.read import normalize
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.families.choose import plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.output.files import files_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.request import read_request

SHAPES: list[dict[str, Any]] = [
    {"hosts": 24, "nics_per_host": 2, "topology": "leaf_spine"},
    {"hosts": 40, "nics_per_host": 1, "topology": "fat_tree"},
    {"hosts": 24, "nics_per_host": 4, "topology": "rail_planes"},
    {"hosts": 5, "nics_per_host": 2, "topology": "single"},
    {"hosts": 24, "nics_per_host": 2, "topology": "leaf_spine", "fabric": "ethernet"},
    {"hosts": 24, "nics_per_host": 4, "topology": "rail", "fabric": "ethernet"},
    {"hosts": 24, "nics_per_host": 4, "topology": "rail_planes", "fabric": "ethernet"},
    {"hosts": 40, "nics_per_host": 1, "topology": "fat_tree", "fabric": "ethernet"},
    # Three levels: 17 leaves, 24 spines and 12 cores, with pods of different sizes.
    {"hosts": 130, "nics_per_host": 1, "topology": "fat_tree", "fabric": "ethernet"},
    {"hosts": 80, "nics_per_host": 2, "topology": "rail", "fabric": "ethernet"},
    # Not routed: cables between spines, too many spines, and one switch.
    {"hosts": 40, "nics_per_host": 1, "topology": "dragonfly_plus", "fabric": "ethernet"},
    {"hosts": 600, "nics_per_host": 1, "topology": "fat_tree", "fabric": "ethernet"},
    {"hosts": 5, "nics_per_host": 2, "topology": "single", "fabric": "ethernet"},
]
NOT_ROUTED = {
    "dragonfly_plus": "spines are cabled to each other",
    "fat_tree 600": "at most 64",
    "single": "it has no leaves and spines",
}
WORDS = [f"{shape['topology']}-{shape['hosts']}-{shape.get('fabric', 'infiniband')}" for shape in SHAPES]


def files(shape: dict[str, Any]) -> dict[str, str]:
    request, _file = read_request({"rdma_plan": {"switch": {"ports": 16, "gbps": 400}, **shape}})
    return files_of(request, plan(request)).files


def variables(folder: Path, text: str) -> dict[str, dict[str, Any]]:
    """Host → its variables, as Ansible reads them."""
    (folder / "hosts.yml").write_text(text)
    loader = DataLoader()
    inventory = InventoryManager(loader=loader, sources=[str(folder / "hosts.yml")])
    manager = VariableManager(loader=loader, inventory=inventory)
    found = {}
    for host in inventory.get_hosts():
        its = manager.get_vars(host=host)
        templar = Templar(loader=loader, variables=its)
        found[host.name] = {key: templar.template(its[key]) for key in its if key.startswith("rdma_")}
    return found


def filled(text: str, nics: int) -> str:
    for nic in range(nics):
        text = text.replace("FILL-IN}", f"'0000:{nic + 16:02x}:00.0'}}", 1)
    assert "FILL-IN}" not in text
    return text


@pytest.mark.parametrize("shape", SHAPES, ids=WORDS)
def test_only_the_nics_are_to_be_filled_in(shape: dict[str, Any], tmp_path: Path) -> None:
    found = variables(tmp_path, files(shape)["inventory.yml"])
    assert len(found) == shape["hosts"]
    for its in (found["node1"], found[f"node{shape['hosts']}"]):
        with pytest.raises(IntentError) as caught:
            normalize(its)
        where = [problem.where for problem in caught.value.problems]
        assert where == [f"rdma_rails[{rail}].nic.pci" for rail in range(shape["nics_per_host"])]


@pytest.mark.parametrize("shape", SHAPES, ids=WORDS)
def test_it_is_complete_afterwards_and_the_routing_fits(shape: dict[str, Any], tmp_path: Path) -> None:
    texts = files(shape)
    found = variables(tmp_path, filled(texts["inventory.yml"], shape["nics_per_host"]))
    intents: dict[str, Intent] = {host: normalize(its) for host, its in found.items()}
    ethernet = shape.get("fabric") == "ethernet"
    planes = routed_planes(intents, texts.__getitem__)
    why_not = NOT_ROUTED.get(f"{shape['topology']} {shape['hosts']}") or NOT_ROUTED.get(shape["topology"])
    assert bool(planes) == (ethernet and why_not is None)
    if ethernet and why_not is not None:
        assert why_not in texts["inventory.yml"]
    if planes:
        assert all(plane.has_cores == (" core" in texts["topology.txt"].partition("Chosen:")[2]) for plane in planes)
        ports = {(port.host, port.device): port.host_address for plane in planes for r in plane.routers.values() for port in r.host_ports}
        rails = {(host, rail["name"]): rail["address"] for host, intent in intents.items() for rail in intent["rails"]}
        assert ports == rails
    if not ethernet:
        prefixes = [each["subnet_manager"]["subnet_prefix"] for each in intents["node1"]["fabric"]["planes"].values()]  # type: ignore[index]
        assert len(set(prefixes)) == len(prefixes) == len(intents["node1"]["fabric"]["planes"])


def test_the_groups_are_the_racks_and_the_leaves(tmp_path: Path) -> None:
    text = files({"hosts": 24, "nics_per_host": 4, "topology": "rail_planes"})["inventory.yml"]
    (tmp_path / "hosts.yml").write_text(text)
    groups = InventoryManager(loader=DataLoader(), sources=[str(tmp_path / "hosts.yml")]).get_groups_dict()
    assert groups["rack_r1"] == ["node1", "node2", "node3", "node4"]
    leaves = [set(hosts) for name, hosts in groups.items() if name.startswith("leaves_")]
    assert [len(each) for each in leaves] == [8, 8, 8]
    assert set().union(*leaves) == set(groups["all"])
