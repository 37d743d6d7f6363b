# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan of a simulated fabric and its texts: every port is used once, every rail has its own leaves, and names are a person's."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
import yaml

from lab import fabric_plan, fabric_texts
from lab.errors import LabError
from lab.fabric_plan import End, Shape, make

SHAPES = [
    Shape("rail", 8, 4),
    Shape("rail", 33, 2),
    Shape("rail", 512, 4),
    Shape("rail", 256, 8),
    Shape("leafspine", 8, 1),
    Shape("leafspine", 9, 2),
    Shape("leafspine", 100, 1, spines=3, uplinks=10),
    Shape("leafspine", 2, 1, ports=8),
]
IDS = ["-".join(str(word) for word in (shape.kind, shape.hosts, shape.rails, shape.spines, shape.ports)) for shape in SHAPES]


@pytest.mark.parametrize("shape", SHAPES, ids=IDS)
def test_every_port_is_used_once_and_exists(shape: Shape) -> None:
    plan = make(shape)
    ends = [end for cable in plan.cables() for end in cable]
    assert max(Counter(ends).values()) == 1
    assert all(1 <= end.port <= (1 if " " in end.node else shape.ports) for end in ends)
    assert {end.node for end in ends} == {node.name for node in plan.nodes}


@pytest.mark.parametrize("shape", SHAPES, ids=IDS)
def test_guids_are_unique_with_room_for_those_of_ports(shape: Shape) -> None:
    guids = sorted(node.guid for node in make(shape).nodes)
    assert all(after - before >= 2 for before, after in pairwise(guids))


@pytest.mark.parametrize("shape", SHAPES, ids=IDS)
def test_every_leaf_has_as_many_cables_to_every_spine(shape: Shape) -> None:
    plan = make(shape)
    between = Counter((a.node, b.node) for a, b in plan.cables() if a.node.startswith("leaf"))
    leaves, spines = ({s.name for s in plan.switches if s.tier == tier} for tier in ("leaf", "spine"))
    assert set(between) == {(leaf, spine) for leaf in leaves for spine in spines}
    assert len(set(between.values())) == 1


def leaves_of(shape: Shape) -> dict[str, set[str]]:
    """HCA → its leaf."""
    found: dict[str, set[str]] = {}
    for a, b in make(shape).cables():
        if " " in a.node:
            found.setdefault(a.node, set()).add(b.node)
    return found


def test_a_leaf_of_a_rail_plan_has_one_rail_only() -> None:
    by_leaf: dict[str, set[str]] = {}
    for hca, leaves in leaves_of(Shape("rail", 70, 4)).items():
        for leaf in leaves:
            by_leaf.setdefault(leaf, set()).add(hca.split()[1])
    assert len(by_leaf) == 12
    assert all(len(devices) == 1 for devices in by_leaf.values())


def test_all_hcas_of_a_leafspine_host_are_on_one_leaf() -> None:
    by_host: dict[str, set[str]] = {}
    for hca, leaves in leaves_of(Shape("leafspine", 20, 4)).items():
        by_host.setdefault(hca.split()[0], set()).update(leaves)
    assert len(by_host) == 20
    assert all(len(leaves) == 1 for leaves in by_host.values())


def test_2048_hcas_are_on_96_switches_without_oversubscription() -> None:
    plan = make(Shape("rail", 512, 4))
    assert (len(plan.hcas), len(plan.switches), len(list(plan.cables()))) == (2048, 96, 4096)
    ports = Counter(end.node for cable in plan.cables() for end in cable)
    assert all(ports[switch.name] == 64 for switch in plan.switches)


WRONG = [
    (Shape("ring", 8, 1), "A fabric's plan is rail or leafspine; got 'ring'."),
    (Shape("rail", 1, 1), "A fabric has 2 hosts at least and 4096 HCAs at most; got 1 hosts of 1 rails."),
    (Shape("rail", 1025, 4), "A fabric has 2 hosts at least and 4096 HCAs at most; got 1025 hosts of 4 rails."),
    (Shape("rail", 8, 17), "A host has 1 to 16 rails; got 17."),
    (Shape("rail", 8, 4, ports=7), "A switch has 8 (two for each rail) to 254 ports; got 7."),
    (Shape("rail", 8, 4, spines=0), "A fabric has one spine and a leaf one uplink at least."),
    (Shape("rail", 512, 4, spines=2), "64 leaves with 32 uplinks each do not fit on 2 spines of 64 ports."),
]


@pytest.mark.parametrize(("shape", "sentence"), WRONG, ids=[sentence[:30] for _shape, sentence in WRONG])
def test_what_cannot_be_is_one_sentence(shape: Shape, sentence: str) -> None:
    with pytest.raises(LabError) as error:
        make(shape)
    assert str(error.value) == sentence


def test_the_topology_names_both_ends_of_every_cable() -> None:
    plan = make(Shape("leafspine", 2, 1, ports=4))
    assert fabric_texts.topology(plan).startswith(
        "vendid=0x2c9\ndevid=0xd2f0\nsysimgguid=0x506b4b0300000010\nswitchguid=0x506b4b0300000010\n"
        'Switch\t4 "leaf1"\t\t# "leaf1" base port 0 lid 0 lmc 0\n'
        '[1]\t"node1 mlx5_0"[1]\t\t# lid 0 "node1 mlx5_0" lid 0 4xHDR\n'
        '[2]\t"spine1"[1]\t\t# lid 0 "spine1" lid 0 4xHDR\n'
    )
    assert '# "Quantum Mellanox Technologies" base' in fabric_texts.topology(plan, named=False)


def test_the_planned_cabling_is_yaml_with_ranges_for_parallel_cables() -> None:
    plan = make(Shape("leafspine", 8, 1))
    answer = yaml.safe_load(fabric_texts.cabling(plan))
    assert answer["switches"]["spine1"] == {"guid": "0x506b4b0300000030", "tier": "spine"}
    assert answer["links"][0] == {"from": "node1 mlx5_0", "to": "leaf1/1"}
    assert answer["links"][-1] == {"from": "leaf2/7-8", "to": "spine2/3-4"}
    assert len(answer["links"]) == 12


def test_the_name_map_has_every_switch() -> None:
    text = fabric_texts.name_map(make(Shape("leafspine", 8, 1)))
    assert text.splitlines()[0] == '0x506b4b0300000010 "leaf1"'
    assert len(text.splitlines()) == 4


ENDS = [("leaf1/33", End("leaf1", 33)), ("node17 mlx5_3", End("node17 mlx5_3", 1)), ("spine1", End("spine1", 0))]


@pytest.mark.parametrize(("word", "end"), ENDS, ids=[word for word, _end in ENDS])
def test_a_link_is_named_by_an_end(word: str, end: End) -> None:
    assert fabric_plan.end(word) == end


@pytest.mark.parametrize("word", ["", "leaf1/", "leaf1/0", "leaf1/x", 'a"b', "/3"])
def test_what_names_no_link(word: str) -> None:
    with pytest.raises(LabError, match="A link is named by one of its ends"):
        fabric_plan.end(word)
