# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A planned fabric, built in ibsim and run by the real opensm: the fabric stage finds the planned cables, and failures cost as planned."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.output.cabling import cable_plans, cables_of_planes
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.output.found import difference
from lab import fabric, fabric_faults, preflight
from lab.shell import ENVIRONMENT
from tests.verify.fabric import Stage, brief
from tests.verify.planned import Planned, leaf_end, running

HOSTS, NICS, PORTS = 64, 8, 64
MISSING = [name for name in preflight.FABRIC_COMMANDS if shutil.which(name, path=ENVIRONMENT["PATH"]) is None]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Planned]:
    # ibsim knows HDR at most: 200 Gb/s.
    wishes = {"hosts": HOSTS, "nics_per_host": NICS, "nic_gbps": 200, "switch": {"ports": PORTS, "gbps": 200}, "topology": "rail_planes"}
    # Spare ports make each plane one of two levels, with four equal leaves: the fabric stage halves leaves. Without a spine to spare it
    # would have one, which the fabric stage reports.
    wishes |= {"spare_ports": 32, "survive": {"spines": 1}}
    with running("planned", wishes, tmp_path_factory.mktemp("lab")) as fabric_of_a_rail:
        yield fabric_of_a_rail


def test_the_fabric_stage_finds_what_was_planned(planned: Planned, tmp_path: Path) -> None:
    settings = {"ratio": 1.0, "plan": "cabling.yml"}
    stage = Stage(tmp_path, fabric.load(planned.name), settings, cable_plans(planned.design)[planned.plane])
    assert brief(stage.run()) == []
    # The same stage reports a cut cable: it does compare.
    fabric_faults.cut(planned.name, leaf_end(planned))
    assert [each[1] for each in brief(stage.run())] == ["fabric.cabling"]
    fabric_faults.restore(planned.name, leaf_end(planned))


def test_the_found_fabric_is_the_best_plan_for_its_hardware(planned: Planned) -> None:
    found = planned.found
    inside = [switch for switch in planned.design.switches if switch.plane == planned.plane]
    assert sum(found.switches.values()) == len(inside)
    assert found.hosts == HOSTS
    assert found.gbps == planned.measures.plane_bisection_gbps
    assert found.ratio is not None
    assert found.ratio[1] <= 1
    assert found.imbalance == 1
    assert "imbalance 1 (" in "\n".join(difference(found, None))


@pytest.mark.parametrize("part", ["leaf", "spine", "cable between switches"])
def test_a_failure_costs_what_was_computed(planned: Planned, part: str) -> None:
    (failure,) = [each for each in planned.measures.failures if each.part == part]
    name = failure.example if part != "cable between switches" else leaf_end(planned)
    before = planned.found_with_every_failure
    others = failure.bisection_gbps - failure.plane_share * planned.measures.plane_bisection_gbps
    planned_gbps = failure.bisection_gbps - others
    fabric_faults.cut(planned.name, name)
    try:
        after = planned.found
    finally:
        fabric_faults.restore(planned.name, name)
    # Bisection and ports of the fabric that opensm routes after the cut.
    assert before.ports - after.ports == failure.nics_cut
    if part != "leaf":
        assert after.gbps == pytest.approx(planned_gbps)
    # Computed on the found graph before the cut: the same as found after it.
    far = next((cable.b.node for cable in cables_of_planes(planned.design)[planned.plane] if name == f"{cable.a.node}/{cable.a.port}"), "")
    row = f"{name.partition('/')[0]} to {far}, one cable" if far else name
    (computed,) = [cut for cut in before.cuts if cut.part == row]
    assert (computed.gbps, computed.ports_cut) == (after.gbps, before.ports - after.ports)
    assert planned.found.gbps == before.gbps
