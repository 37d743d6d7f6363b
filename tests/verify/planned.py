# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plane of a planned fabric, run by ibsim and the real opensm."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.graph import Graph
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.read import read_fabric
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.tools import Asked
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.view import View
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.design import Design, Measures
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.families.choose import plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.output.cabling import cables_of_planes
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.output.found import FoundPlane, found_plane
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.request import read_request
from lab import fabric, fabric_plan
from lab.fabric_plan import GUID_STEP as STEP
from lab.fabric_plan import HCA_GUIDS, SWITCH_GUIDS, FabricPlan, Hca, Shape, Trunk
from tests.verify.fabric import OnFabric

#: All failures of a found plane.
EVERY = 10**6
ATTEMPTS, PAUSE_SECONDS = 8, 2.0


def net_of(design: Design, plane: str, nics: int, ports: int) -> FabricPlan:
    """A plane of a design as the lab builds it: rail N of a host is mlx5_N."""
    switches = [switch for switch in design.switches if switch.plane == plane]
    cables = cables_of_planes(design)[plane]

    def end(node: str, rail: str | None, port: int) -> fabric_plan.End:
        return fabric_plan.End(node, port) if rail is None else fabric_plan.End(f"{node} mlx5_{rail.removeprefix('rail')}", 1)

    trunks = [Trunk(end(cable.a.node, cable.a.rail, cable.a.port), end(cable.b.node, cable.b.rail, cable.b.port)) for cable in cables]
    hcas = dict.fromkeys(trunk.a.node for trunk in trunks if " " in trunk.a.node)
    return FabricPlan(
        Shape("rail", len(design.hosts), nics, ports=ports),
        tuple(fabric_plan.Switch(each.name, each.tier, SWITCH_GUIDS + number * STEP) for number, each in enumerate(switches, 1)),
        tuple(Hca(name, HCA_GUIDS + number * STEP) for number, name in enumerate(hcas, 1)),
        tuple(trunks),
    )


@dataclass
class Planned:
    """A plan, and the running fabric of its first plane."""

    name: str
    design: Design
    measures: Measures

    @property
    def plane(self) -> str:
        return self.design.planes[0]

    @property
    def graph(self) -> Graph:
        """As the fabric stage reads it. While opensm sweeps, a reading may not be whole."""
        for attempt in range(ATTEMPTS):
            time.sleep(PAUSE_SECONDS * attempt)
            graph = read_fabric(OnFabric(fabric.load(self.name)), SysRoot("/"), Asked("default", data=True)).graph
            if graph.complete:
                break
        return graph

    @property
    def found(self) -> FoundPlane:
        return found_plane(View(self.graph))

    @property
    def found_with_every_failure(self) -> FoundPlane:
        return found_plane(View(self.graph), EVERY)


@contextmanager
def running(name: str, wishes: Mapping[str, Any], folder: Path) -> Iterator[Planned]:
    """Run the first plane of the plan of these wishes. folder: of the lab's files."""
    wanted, _file = read_request({"rdma_plan": wishes})
    (chosen,) = [candidate for candidate in plan(wanted) if candidate.chosen]
    assert chosen.design is not None
    assert chosen.measures is not None
    net = net_of(chosen.design, chosen.design.planes[0], wanted.nics_per_host, wanted.switch.ports)
    with mock.patch.dict("os.environ", {"RDMA_LAB_DIR": str(folder)}), mock.patch.object(fabric_plan, "make", return_value=net):
        fabric.up(name, net.shape)
        try:
            yield Planned(name, chosen.design, chosen.measures)
        finally:
            fabric.down(name)


def leaf_end(planned: Planned) -> str:
    """The leaf's end of a cable to a spine."""
    cables = cables_of_planes(planned.design)[planned.plane]
    return next(f"{cable.a.node}/{cable.a.port}" for cable in cables if cable.a.rail is None)
