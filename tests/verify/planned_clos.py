# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A routed Clos network that `rdma.cluster.plan --tags topology` has planned, built as a lab: its inventory, addresses and routing."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.cabling.plan import parse_plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.model import RoutedPlane
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.plan import make_plan
from lab.cluster import Lab
from lab.plan import Node
from tests.verify.clos import SETTINGS
from tests.verify.site import Site

CABLING, PLANE = "cabling/fabric.yml", "fabric"
FILL_IN, RATIO = "pci: FILL-IN}", "          ratio: 2\n"


@dataclass(frozen=True)
class PlannedClos:
    """The files of a plan. folder: plan/ of its run folder."""

    folder: Path

    @classmethod
    def of(cls, request: Path, folder: Path) -> PlannedClos:
        """Plan a request again: the same request gives the same files."""
        site = Site(Path("/dev/null"), folder)
        done = site.run("plan", "--tags", "topology", "-e", f"@{request}")
        assert done.returncode == 0, done.stdout
        return cls(site.evidence / "plan")

    @property
    def cabling(self) -> str:
        return (self.folder / CABLING).read_text()

    def inventory(self, lab: Lab) -> Path:
        """Complete the planned inventory as its first lines request, with the NICs of the lab. Return its path.

        They are Soft-RoCE, which has no fabric to discover, so its ratio cannot be checked.
        """
        text = (self.folder / "inventory.yml").read_text()
        assert text.count(RATIO) == 1
        text = text.replace(RATIO, "")
        assert text.count(FILL_IN) == len(lab.plan.nodes[0].rails)
        for rail in lab.plan.nodes[0].rails:
            text = text.replace(FILL_IN, f"pci: '{rail.pci}'}}\n        soft: true\n        mtu_bytes: 9000", 1)
        path = self.folder / "completed.yml"
        path.write_text(text)
        return path

    def site(self, lab: Lab, folder: Path) -> Site:
        """The planned inventory, and the connections to the lab's nodes and switches behind it."""
        return Site(self.inventory(lab), folder, ["-i", str(lab.folder.inventory)])

    def of_lab(self, lab: Lab) -> Lab:
        """Return the lab with the planned addresses, which it does not know itself."""
        hosts = yaml.safe_load((self.folder / "inventory.yml").read_text())["all"]["hosts"]
        nodes = tuple(_addressed(node, hosts[node.name]) for node in lab.plan.nodes)
        return dataclasses.replace(lab, plan=dataclasses.replace(lab.plan, nodes=nodes))

    @property
    def plane(self) -> RoutedPlane:
        planes = yaml.safe_load((self.folder / "inventory.yml").read_text())["all"]["vars"]["rdma_fabric"]["planes"]
        settings: Any = {**SETTINGS, "spine_asn": "shared", **planes[PLANE]["routing"]}
        return make_plan(PLANE, settings, parse_plan(self.cabling))


def _addressed(node: Node, variables: dict[str, list[str]]) -> Node:
    planned = zip(node.rails, variables["rail_addresses"], variables["rail_gateways"], strict=True)
    return dataclasses.replace(node, rails=tuple(dataclasses.replace(rail, address=one, gateway=other) for rail, one, other in planned))
