# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A planned fabric, built in ibsim and run by the real opensm: the fabric stage finds the planned cables, and failures cost as planned."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.graph import Graph
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.read import read_fabric
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.tools import Asked
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.view import View
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.design import Design, Failure
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.families.choose import plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.output.cabling import cable_plans, cables_of_planes
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.output.found import Cut, FoundPlane, difference, found_plane
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.request import read_request
from lab import fabric, fabric_faults, fabric_plan, preflight
from lab.fabric_plan import GUID_STEP as STEP
from lab.fabric_plan import HCA_GUIDS, SWITCH_GUIDS, FabricPlan, Hca, Shape, Trunk
from lab.shell import ENVIRONMENT
from tests.verify.fabric import OnFabric, Stage, brief

NAME = "planned"
HOSTS, NICS, PORTS = 64, 8, 64
MISSING = [name for name in preflight.FABRIC_COMMANDS if shutil.which(name, path=ENVIRONMENT["PATH"]) is None]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")


def net_of(design: Design, plane: str) -> FabricPlan:
    """A plane of a design as the lab builds it: rail N of a host is mlx5_N."""
    switches = [switch for switch in design.switches if switch.plane == plane]
    cables = cables_of_planes(design)[plane]

    def end(node: str, rail: str | None, port: int) -> fabric_plan.End:
        return fabric_plan.End(node, port) if rail is None else fabric_plan.End(f"{node} mlx5_{rail.removeprefix('rail')}", 1)

    trunks = [Trunk(end(cable.a.node, cable.a.rail, cable.a.port), end(cable.b.node, cable.b.rail, cable.b.port)) for cable in cables]
    hcas = dict.fromkeys(trunk.a.node for trunk in trunks if " " in trunk.a.node)
    return FabricPlan(
        Shape("rail", len(design.hosts), NICS, ports=PORTS),
        tuple(fabric_plan.Switch(each.name, each.tier, SWITCH_GUIDS + number * STEP) for number, each in enumerate(switches, 1)),
        tuple(Hca(name, HCA_GUIDS + number * STEP) for number, name in enumerate(hcas, 1)),
        tuple(trunks),
    )


@dataclass
class Planned:
    """A plan, and the running fabric of one of its planes."""

    design: Design
    plane: str
    failures: tuple[Failure, ...]
    bisection_gbps: float

    @property
    def graph(self) -> Graph:
        """As the fabric stage reads it."""
        return read_fabric(OnFabric(fabric.load(NAME)), SysRoot("/"), Asked("default", data=True)).graph

    @property
    def found(self) -> FoundPlane:
        return found_plane(View(self.graph))


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Planned]:
    # ibsim knows HDR at most: 200 Gb/s.
    wishes = {"hosts": HOSTS, "nics_per_host": NICS, "nic_gbps": 200, "switch": {"ports": PORTS, "gbps": 200}, "topology": "rail_planes"}
    # Spare ports make each plane one of two levels, with four equal leaves: the fabric stage halves leaves. Without a spine to spare it
    # would have one, which the fabric stage reports.
    wishes |= {"spare_ports": 32, "survive": {"spines": 1}}
    wanted, _file = read_request({"rdma_plan": wishes})
    (chosen,) = [candidate for candidate in plan(wanted) if candidate.chosen]
    assert chosen.design is not None
    assert chosen.measures is not None
    plane = chosen.design.planes[0]
    net = net_of(chosen.design, plane)
    patch = pytest.MonkeyPatch()
    patch.setenv("RDMA_LAB_DIR", str(tmp_path_factory.mktemp("lab")))
    patch.setattr(fabric_plan, "make", lambda _shape: net)
    fabric.up(NAME, net.shape)
    yield Planned(chosen.design, plane, chosen.measures.failures, chosen.measures.plane_bisection_gbps)
    fabric.down(NAME)
    patch.undo()


def test_the_fabric_stage_finds_what_was_planned(planned: Planned, tmp_path: Path) -> None:
    settings = {"ratio": 1.0, "plan": "cabling.yml"}
    stage = Stage(tmp_path, fabric.load(NAME), settings, cable_plans(planned.design)[planned.plane])
    assert brief(stage.run()) == []
    # The same stage reports a cut cable: it does compare.
    fabric_faults.cut(NAME, _leaf_end(planned))
    assert [each[1] for each in brief(stage.run())] == ["fabric.cabling"]
    fabric_faults.restore(NAME, _leaf_end(planned))


def test_the_found_fabric_is_the_best_plan_for_its_hardware(planned: Planned) -> None:
    found = planned.found
    inside = [switch for switch in planned.design.switches if switch.plane == planned.plane]
    assert sum(found.switches.values()) == len(inside)
    assert found.hosts == HOSTS
    assert found.gbps == planned.bisection_gbps
    assert found.ratio is not None
    assert found.ratio[1] <= 1
    assert found.imbalance == 1
    assert "imbalance 1 (" in "\n".join(difference(found, None))


def _leaf_end(planned: Planned) -> str:
    """The leaf's end of a cable to a spine."""
    cables = cables_of_planes(planned.design)[planned.plane]
    return next(f"{cable.a.node}/{cable.a.port}" for cable in cables if cable.a.rail is None)


def _computed(found: FoundPlane, part: str) -> Cut:
    return next(cut for cut in found.cuts if cut.part == part)


@pytest.mark.parametrize("part", ["leaf", "spine", "cable between switches"])
def test_a_failure_costs_what_was_computed(planned: Planned, part: str) -> None:
    (failure,) = [each for each in planned.failures if each.part == part]
    name = failure.example if part != "cable between switches" else _leaf_end(planned)
    before = planned.found
    others = failure.bisection_gbps - failure.plane_share * planned.bisection_gbps
    planned_gbps = failure.bisection_gbps - others
    fabric_faults.cut(NAME, name)
    try:
        after = planned.found
    finally:
        fabric_faults.restore(NAME, name)
    # Bisection and ports of the fabric that opensm routes after the cut.
    assert before.ports - after.ports == failure.nics_cut
    if part != "leaf":
        assert after.gbps == pytest.approx(planned_gbps)
    # Computed on the found graph before the cut: the same as found after it.
    computed = [cut for cut in before.cuts if cut.part == name]
    for cut in computed:
        assert (cut.gbps, cut.ports_cut) == (after.gbps, before.ports - after.ports)
    assert planned.found.gbps == before.gbps
