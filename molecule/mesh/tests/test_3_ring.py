# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The triangle becomes a ring of four hosts with a double cable; exchanged plugs are named with both ends and the fix."""

from __future__ import annotations

import itertools
import re
from typing import Any

import pytest

from lab import cluster
from lab.cluster import Lab
from tests.verify.meshes import Meshes, both_ways, carriers, measured
from tests.verify.site import Site

HOSTS = ("node1", "node2", "node3", "node4")


@pytest.fixture(scope="module")
def inventory(lab: Lab, meshes: Meshes) -> dict[str, Any]:
    """All four machines with all cables of the lab."""
    return meshes.inventory(lab.plan.mesh)


@pytest.fixture(scope="module")
def ring(meshes: Meshes, inventory: dict[str, Any]) -> Site:
    assert meshes.rails is not None, "test_1_triangle.py plans and builds the triangle"
    return meshes.site(inventory)


def found(site: Site, check: str, *statuses: str) -> list[dict[str, str]]:
    """The findings of a check in the last run with one of these statuses."""
    return [line for line in site.lines("findings.jsonl") if line["check"] == check and line["status"] in statuses]


def test_the_plan_keeps_the_cables_that_stay(lab: Lab, meshes: Meshes, inventory: dict[str, Any]) -> None:
    """The plugs that prepare.yml exchanged are where they belong: the triangle's third cable is gone, and three are new."""
    cluster.swap(lab.plan.name, "node1/1", "node4/0")
    planned = meshes.plan(inventory)
    by_cable = [planned.pop(meshes.ends(cable)) for cable in lab.plan.mesh]
    assert [(of["name"], of["subnet"], of["kept"]) for of in by_cable] == [
        ("A-B", "192.168.101.0/24", True),
        ("node1-node4", "192.168.103.0/24", False),
        ("node1-node2", "192.168.100.0/24", False),
        ("node2-node3", "192.168.102.0/24", True),
        ("node3-node4", "192.168.104.0/24", False),
    ]
    assert planned == {}
    meshes.take_over()


def test_the_ring_is_built_and_its_new_cables_are_measured(ring: Site) -> None:
    """Hosts without a common cable are named, and only neighbors are measured."""
    done = ring.run("site", "-e", "network_change_allowed=true")
    assert done.returncode == 0, done.stdout
    new = [("node1-node4", "node1", "node4"), ("node1-node2", "node1", "node2"), ("node3-node4", "node3", "node4")]
    assert measured(ring) >= both_ways(*new)
    neighbors = both_ways(*new, ("A-B", "node1", "node2"), ("node2-node3", "node2", "node3"))
    assert measured(ring) <= neighbors
    apart = {(line["host"], line["observed"].partition(":")[0]) for line in found(ring, "mesh.reach", "warning")}
    assert apart == {("node1", "node1 has no common cable with node3"), ("node2", "node2 has no common cable with node4")}
    assert {line["host"] for line in found(ring, "mesh.cable", "ok")} == set(HOSTS)


def test_a_second_run_changes_nothing_and_measures_nothing(ring: Site) -> None:
    done = ring.run()
    assert done.returncode == 0, done.stdout
    recap = re.findall(r"^(node\d) .*?changed=(\d+) +unreachable=0 +failed=0", done.stdout, re.M)
    assert recap == [(name, "0") for name in HOSTS], done.stdout
    assert ring.results() == []


def test_a_cut_cable_has_no_carrier_at_both_ends(lab: Lab) -> None:
    cluster.cable(lab.plan.name, "node3", 1, {"cut": True})
    assert carriers(lab, [(3, 1), (4, 0), (3, 0)]) == ["0", "0", "1"]
    cluster.cable(lab.plan.name, "node4", 0, {"restore": True})
    assert carriers(lab, [(3, 1), (4, 0)]) == ["1", "1"]


@pytest.mark.fault("exchanged-plugs")
def test_exchanged_plugs_are_named_with_both_ends_and_the_fix(lab: Lab, ring: Site) -> None:
    """Ports 1 and 2 of node1 lead to node4 and node2, and the plugs are exchanged."""
    cluster.swap(lab.plan.name, "node1/1", "node1/2")
    try:
        done = ring.run("fabric")
    finally:
        cluster.swap(lab.plan.name, "node1/1", "node1/2")
    assert done.returncode != 0
    (line,) = found(ring, "mesh.cable", "error", "unknown", "warning")
    print(line)
    assert line["host"] == "node1"
    ports = [lab.plan.rail("node1", port).pci for port in (2, 1)]
    far = [f"{name} .*{lab.plan.rail(name, port).pci}.*" for name, port in (("node4", 1), ("node2", 2))]
    leads = "; ".join(f".*{port}.* leads to {there}planned .*" for port, there in zip(ports, far, strict=True))
    assert re.match(f"the cables of .*{ports[0]}.* and .*{ports[1]}.* are exchanged on node1: {leads}", line["observed"]), line
    assert re.match(r"1\. Exchange the two plugs in .* of node1\.", line["remedy"]), line


def test_with_the_plugs_back_the_finding_is_gone(ring: Site) -> None:
    done = ring.run("fabric")
    assert done.returncode == 0, done.stdout
    assert {line["host"] for line in found(ring, "mesh.cable", "ok")} == set(HOSTS)
    assert found(ring, "mesh.cable", "error", "unknown", "warning") == []


def test_a_fifth_node_adds_only_its_own_cables(meshes: Meshes, inventory: dict[str, Any]) -> None:
    """It is not up: the plan reads the inventory."""
    before = meshes.plan(inventory)
    own = [["node1/0000:41:00.1", "node5/0000:21:00.0"], ["node3/0000:21:00.1", "node5/0000:41:00.0"]]
    mesh = inventory["all"]["vars"]["rdma_fabric"]["mesh"]
    hosts = {**inventory["all"]["hosts"], "node5": {"ansible_port": 1}}
    changed = {**inventory["all"]["vars"]["rdma_fabric"], "mesh": {**mesh, "cables": [*mesh["cables"], *own]}}
    after = meshes.plan({"all": {"vars": {**inventory["all"]["vars"], "rdma_fabric": changed}, "hosts": hosts}})
    assert {ends: of for ends, of in after.items() if list(ends) not in own} == before
    assert [(of["name"], of["subnet"]) for ends, of in after.items() if list(ends) in own] == [
        ("node1-node5", "192.168.105.0/24"),
        ("node3-node5", "192.168.106.0/24"),
    ]


def test_a_full_mesh_of_33_hosts_is_refused_with_the_reason(meshes: Meshes, inventory: dict[str, Any]) -> None:
    names = [f"node{number}" for number in range(1, 34)]
    used = dict.fromkeys(names, 0)
    cables = []
    for pair in itertools.combinations(names, 2):
        cables.append([f"{name}/0000:{used[name]:02x}:00.0" for name in pair])
        used.update({name: used[name] + 1 for name in pair})
    fabric = {**inventory["all"]["vars"]["rdma_fabric"], "mesh": {"pool": "10.0.0.0/8", "cables": cables}}
    hosts: dict[str, Any] = {name: {} for name in names}
    site = Meshes(meshes.lab, meshes.folder).site({"all": {"vars": {"rdma_fabric": fabric}, "hosts": hosts}})
    done = site.run("plan", "--tags", "mesh")
    assert done.returncode != 0
    assert "a full mesh of 33 hosts, which needs 32 NICs a host" in " ".join(done.stdout.split()), done.stdout
