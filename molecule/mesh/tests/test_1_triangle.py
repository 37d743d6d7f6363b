# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Three hosts in a triangle: planned from their cables and by discovery, built from nothing, and measured over each cable."""

from __future__ import annotations

from typing import Any

from lab import namespace
from lab.cluster import Lab
from lab.mesh import Cable
from tests.verify.meshes import Meshes, addresses, both_ways, measured
from tests.verify.nodes import run_with_netdev
from tests.verify.site import Site

HOSTS = ("node1", "node2", "node3")
#: One measurement: 200 messages of 64 KiB.
A_PAIR_BYTES = 200 * 65536
#: As prepare.yml wires them.
CABLES: list[Cable] = [((1, 0), (2, 0)), ((1, 1), (3, 1)), ((2, 1), (3, 0))]
#: The table of nccl-mesh-plugin's setup guide, with node1 for its host A, node2 for B and node3 for C.
TABLE = {
    "192.168.101.0/24": ("node1", "192.168.101.2/24", "node2", "192.168.101.3/24"),
    "192.168.100.0/24": ("node1", "192.168.100.2/24", "node3", "192.168.100.3/24"),
    "192.168.102.0/24": ("node2", "192.168.102.2/24", "node3", "192.168.102.3/24"),
}


def test_the_hosts_see_the_cables_that_are_wired(lab: Lab, meshes: Meshes) -> None:
    """The interfaces are up and have no IPv4 address; the bridges that are the cables answer nothing."""
    for name in HOSTS:
        for rail in range(2):
            run_with_netdev(lab, lab.plan.node(name), "ip link set dev $netdev up", rail=rail)
        assert [of for of in addresses(lab, lab.plan.node(name)).values() if of] == []
    inventory = meshes.inventory(CABLES)
    inventory["all"]["vars"]["rdma_fabric"]["mesh"]["cables"] = "discover"
    found = meshes.plan(inventory)
    assert set(found) == set(map(meshes.ends, CABLES))
    assert [of["name"] for of in found.values()] == ["node1-node2", "node1-node3", "node2-node3"]


def test_the_table_of_the_guide_comes_out_digit_for_digit(meshes: Meshes) -> None:
    """Its first cable has its addresses already, as if someone had begun by hand; the plan adds the other two."""
    inventory = meshes.inventory(CABLES)
    for end, address in zip(CABLES[0], ("192.168.101.2/24", "192.168.101.3/24"), strict=True):
        first_rail(inventory, f"node{end[0]}").update(name="A-B", address=address)
    found = meshes.plan(inventory)
    table = {
        of["subnet"]: tuple(word for end, address in zip(ends, of["addresses"], strict=True) for word in (end.partition("/")[0], address))
        for ends, of in found.items()
    }
    assert table == TABLE
    assert [(of["name"], of["kept"]) for of in found.values()] == [("A-B", True), ("node1-node3", False), ("node2-node3", False)]
    meshes.take_over()


def first_rail(inventory: dict[str, Any], host: str) -> dict[str, Any]:
    rail: dict[str, Any] = inventory["all"]["hosts"][host]["rdma_rails"][0]
    return rail


def test_the_triangle_is_built_from_nothing_and_each_cable_is_measured(lab: Lab, meshes: Meshes) -> None:
    site = meshes.site(meshes.inventory(CABLES))
    before = namespace.counters(lab.plan.namespace)
    done = site.run()
    assert done.returncode == 0, done.stdout
    after = namespace.counters(lab.plan.namespace)
    sent = {end: after[end]["from_node_bytes"] - before[end]["from_node_bytes"] for end in after}
    assert {end for end, count in sent.items() if count > A_PAIR_BYTES} == {meshes.rail(end).cable for cable in CABLES for end in cable}
    assert measured(site) == both_ways(("A-B", "node1", "node2"), ("node1-node3", "node1", "node3"), ("node2-node3", "node2", "node3"))
    assert statuses(site, "mesh.") == {("mesh.cable", "ok"), ("mesh.pool", "ok"), ("mesh.rails", "ok"), ("mesh.reach", "ok")}
    there = {(name, each) for name in HOSTS for of in addresses(lab, lab.plan.node(name)).values() for each in of}
    assert there == {pair for a, low, b, high in TABLE.values() for pair in ((a, low), (b, high))}


def statuses(site: Site, prefix: str) -> set[tuple[str, str]]:
    return {(line["check"], line["status"]) for line in site.lines("findings.jsonl") if line["check"].startswith(prefix)}
