# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A planned fabric that all rails share, built in ibsim and run by the real opensm: the fabric stage reads it back without a finding."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.output.cabling import cable_plans
from lab import fabric, fabric_faults, preflight
from lab.shell import ENVIRONMENT
from tests.verify.fabric import Stage, brief
from tests.verify.planned import Planned, leaf_end, running

MISSING = [name for name in preflight.FABRIC_COMMANDS if shutil.which(name, path=ENVIRONMENT["PATH"]) is None]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")


@pytest.fixture(scope="module")
def rails(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Planned]:
    """All rails of all hosts on one fabric: rail r of a group of hosts on leaf r of the group, and spines that join all leaves."""
    wishes = {"hosts": 16, "nics_per_host": 4, "nic_gbps": 200, "switch": {"ports": 16, "gbps": 200}, "topology": "rail"}
    with running("rails", wishes, tmp_path_factory.mktemp("lab")) as whole_fabric:
        yield whole_fabric


def test_the_fabric_stage_finds_all_rails_on_one_fabric(rails: Planned, tmp_path: Path) -> None:
    """No finding, and each rail is where it is planned: the cables of two rails of a host are exchanged, which the stage reports."""
    assert Counter(switch.tier for switch in rails.design.switches) == {"leaf": 8, "spine": 4}
    leaf_of = {(cable.a.node, cable.a.rail): cable.b.node for cable in rails.design.cables if cable.a.rail is not None}
    assert {rail: len({leaf_of[host, rail] for host in rails.design.hosts}) for rail in ("rail0", "rail3")} == {"rail0": 2, "rail3": 2}
    stage = Stage(tmp_path, fabric.load(rails.name), {"ratio": 1.0, "plan": "cabling.yml"}, cable_plans(rails.design)[rails.plane])
    assert brief(stage.run()) == []
    fabric_faults.swap(rails.name, "node5 mlx5_0/1", "node5 mlx5_1/1")
    try:
        assert {each[1] for each in brief(stage.run())} >= {"fabric.cabling"}
    finally:
        fabric_faults.swap(rails.name, "node5 mlx5_0/1", "node5 mlx5_1/1")
    assert brief(stage.run()) == []


@pytest.mark.parametrize("part", ["leaf", "spine", "cable between switches"])
def test_a_failure_of_a_fabric_with_all_rails_costs_what_was_planned(rails: Planned, part: str) -> None:
    (failure,) = [each for each in rails.measures.failures if each.part == part]
    before = rails.found
    assert before.gbps == rails.measures.bisection_gbps
    name = failure.example if part != "cable between switches" else leaf_end(rails)
    fabric_faults.cut(rails.name, name)
    try:
        after = rails.found
    finally:
        fabric_faults.restore(rails.name, name)
    assert (before.hosts - after.hosts, before.ports - after.ports) == (failure.hosts_cut, failure.nics_cut)
    if part != "leaf":
        assert after.gbps == pytest.approx(failure.bisection_gbps)
