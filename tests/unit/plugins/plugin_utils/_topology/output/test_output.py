# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files of a planned fabric: the fabric stage reads the cables, and a later plan reads the design."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.cabling.plan import Spot, parse_plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.design import Candidate, Plug
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.families.choose import plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.output.cabling import cable_plans
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.output.places import places
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.output.stored import read_design, to_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.output.table import comparison, plan_text
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.wishes import CablePrices, PlanRequest, Survive, SwitchModel

SHAPES = [
    ("single", 5, 2, 16, 400, 1),
    ("leaf_spine", 24, 2, 16, 400, 1),
    ("leaf_spine", 24, 2, 16, 200, 2),
    ("fat_tree", 40, 1, 8, 400, 1),
    ("rail", 24, 4, 16, 400, 1),
    ("rail_planes", 24, 4, 16, 400, 1),
    ("mesh", 4, 7, 16, 400, 1),
    ("ring", 5, 4, 16, 400, 1),
    ("dragonfly_plus", 24, 2, 16, 400, 1),
]


def planned(*shape: Any, **more: Any) -> tuple[PlanRequest, list[Candidate]]:
    """shape: as in SHAPES."""
    family, hosts, nics, ports, nic, split = shape
    model = SwitchModel("switch", ports, 400, (1, 2))
    request = PlanRequest(hosts, hosts, 8, nics, nic, model, family, host_parts=split, **more)
    return request, plan(request)


def spot(plug: Plug) -> Spot:
    return Spot(plug.node, None, plug.port) if plug.rail is None else Spot(plug.node, plug.rail, 1)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"{shape[0]}-{shape[5]}")
def test_the_fabric_stage_reads_the_same_cables(shape: tuple[Any, ...]) -> None:
    _request, candidates = planned(*shape)
    (design,) = [candidate.design for candidate in candidates if candidate.design is not None]
    texts = cable_plans(design)
    assert tuple(texts) == design.planes
    read = {plane: parse_plan(text, design.hosts) for plane, text in texts.items()}
    links = {(link.a, link.b) for each in read.values() for link in each.links}
    assert links == {(spot(cable.a), spot(cable.b)) for cable in design.cables}
    assert sum(len(each.links) for each in read.values()) == len(design.cables)
    tiers = {(plane, name): switch.tier for plane, each in read.items() for name, switch in each.switches.items()}
    assert tiers == {(switch.plane, switch.name): switch.tier for switch in design.switches}


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"{shape[0]}-{shape[5]}")
def test_a_stored_design_is_read_back(shape: tuple[Any, ...]) -> None:
    request, candidates = planned(*shape)
    (design,) = [candidate.design for candidate in candidates if candidate.design is not None]
    stored = json.loads(json.dumps(to_dict(request, candidates, places(design, request.room))))
    assert read_design(stored) == design
    assert stored["request"]["hosts"] == shape[1]
    assert [row["family"] for row in stored["candidates"] if row["chosen"]] == [shape[0]]


@pytest.mark.parametrize(
    "data",
    [None, [], {}, {"design": None}, {"design": {"family": "rail", "hosts": [], "planes": [], "switches": ["x"], "cables": []}},
     {"design": {"family": "rail", "hosts": [], "planes": [], "switches": [], "cables": ["node1 1 leaf1"]}}],
    ids=["none", "list", "empty", "no design", "switch", "cable"],
)  # fmt: skip
def test_another_file_is_refused(data: Any) -> None:
    with pytest.raises(ParseError, match=r"it is not a plan/topology\.json of this collection"):
        read_design(data)


def test_the_text_has_the_comparison_the_figures_and_the_failures() -> None:
    request, candidates = planned("auto", 32, 8, 64, 400, 1, survive=Survive(1, 0, 0.5))
    text = plan_text(request, candidates)
    lines = text.splitlines()
    assert lines[0] == "Plan for 32 hosts with 8 NICs of 400 Gb/s each: 256 NICs"
    assert [line for line in lines if line.startswith("*")] == [line for line in lines if line.startswith("*  rail_planes")]
    assert "Chosen: rail_planes" in lines
    assert "  switches: 8 leaf" in lines
    assert "  longest path: 1 switches" in text
    assert lines[-1].split() == ["host", "cable", "256", "0", "1", "50,800", "93.8%", "node32", "to", "rail0-leaf1"]


def test_prices_are_a_column_only_if_there_are_any() -> None:
    _request, candidates = planned("auto", 32, 8, 64, 400, 1)
    assert "price" not in comparison(candidates)[0]
    model = SwitchModel("switch", 64, 400, (1,), price=80000.0)
    priced = plan(PlanRequest(32, 32, 8, 8, 400, model, cables=CablePrices(dac=100.0, aoc=900.0)))
    assert "price" in comparison(priced)[0]
    assert "665,600" in next(line for line in comparison(priced) if line.startswith("*"))
