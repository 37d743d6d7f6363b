# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Meshes among the machines of a lab: their inventories, the plans made from them, and what a run measured."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from lab.cluster import Lab
from lab.mesh import Cable, End
from lab.plan import Node, Rail
from tests.verify.nodes import run_with_netdev, say
from tests.verify.site import Site

#: The ends of a cable in the plan, for example node1/0000:21:00.0.
Ends = tuple[str, str]


class Meshes:
    """Inventories of meshes among the machines of a lab. rails: the proposed rails that were taken over, behind each inventory."""

    def __init__(self, lab: Lab, folder: Path) -> None:
        self.lab, self.folder = lab, folder
        self.rails: Path | None = None

    def rail(self, end: End) -> Rail:
        return self.lab.plan.rail(f"node{end[0]}", end[1])

    def ends(self, cable: Cable) -> Ends:
        """The ends of a cable as the plan names them."""
        one, other = (f"node{end[0]}/{self.rail(end).pci}" for end in cable)
        return one, other

    def inventory(self, cables: Sequence[Cable]) -> dict[str, Any]:
        """The lab's inventory with the hosts and ports of these cables alone."""
        found: dict[str, Any] = yaml.safe_load(self.lab.folder.inventory.read_text())
        found["all"]["vars"]["rdma_fabric"]["mesh"]["cables"] = [list(self.ends(cable)) for cable in cables]
        used = {(f"node{end[0]}", self.rail(end).pci) for cable in cables for end in cable}
        hosts = found["all"]["hosts"]
        for name, of in list(hosts.items()):
            of["rdma_rails"] = [rail for rail in of["rdma_rails"] if (name, rail["nic"]["pci"]) in used]
            if not of["rdma_rails"]:
                del hosts[name]
        return found

    def site(self, inventory: dict[str, Any]) -> Site:
        """An inventory, with the rails that were taken over behind it."""
        path = self.folder / f"hosts-{len(list(self.folder.glob('hosts-*')))}.yml"
        path.write_text(yaml.safe_dump(inventory))
        return Site(path, self.folder, [] if self.rails is None else ["-i", str(self.rails)])

    def plan(self, inventory: dict[str, Any]) -> dict[Ends, dict[str, Any]]:
        """Plan the rails. Return the ends of each cable → its name, subnet, addresses, and whether it was kept."""
        site = self.site(inventory)
        done = site.run("plan", "--tags", "mesh")
        assert done.returncode == 0, done.stdout
        return {(of["ends"][0], of["ends"][1]): of for of in site.json("plan/mesh.json")["cables"]}

    def take_over(self) -> None:
        """Put the rails that the last plan proposes behind each inventory."""
        self.rails = self.folder / "mesh.yml"
        shutil.copy(self.folder / "artifacts/latest/plan/mesh.yml", self.rails)


def carriers(lab: Lab, ends: Sequence[End]) -> list[str]:
    """What each port sees on its cable: "1" for a carrier, "0" for none."""
    return [run_with_netdev(lab, lab.plan.node(f"node{node}"), "cat /sys/class/net/$netdev/carrier", rail=port) for node, port in ends]


def addresses(lab: Lab, node: Node) -> dict[str, list[str]]:
    """NIC by MAC → its IPv4 addresses, as `ip` shows them."""
    return {
        link["address"]: [f"{each['local']}/{each['prefixlen']}" for each in link["addr_info"] if each["family"] == "inet"]
        for link in json.loads(say(lab, node, "ip -j address show"))
        if link["address"] in {rail.mac for rail in node.rails}
    }


def measured(site: Site) -> set[tuple[str, str, str]]:
    """(cable, server, client) of each pair with a rate in the last run."""
    return {
        (plan["rails"][row[0]]["name"], plan["hosts"][row[2]], plan["hosts"][row[3]])
        for plan, rows in site.sweeps()
        for row in rows
        if row[6] is not None
    }


def both_ways(*cables: tuple[str, str, str]) -> set[tuple[str, str, str]]:
    """The pairs of cables (name, host, host), in both directions."""
    return {pair for name, a, b in cables for pair in ((name, a, b), (name, b, a))}
