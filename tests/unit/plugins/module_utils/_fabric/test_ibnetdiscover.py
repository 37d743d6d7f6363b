# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""ibnetdiscover's topology: what it says of nodes and links, and what shows that a text is not whole."""

from __future__ import annotations

import re

import pytest
from hypothesis import given

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.build import fabric_graph
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.ibnetdiscover import FoundEnd, FoundPort, parse_ibnetdiscover
from tests.unit.builders.fabric_texts import LEAF1, NODE1_MLX5_0, SPINE1, fabric_text
from tests.unit.builders.garbled import garbled, read_or_refused

TOPOLOGY = fabric_text("ibnetdiscover")


def test_a_switch() -> None:
    discovery = parse_ibnetdiscover(TOPOLOGY)
    assert (len(discovery.nodes), discovery.problems, discovery.start) == (8, [], "0xe09d730300000020")
    leaf = next(node for node in discovery.nodes if node.guid == LEAF1)
    assert (leaf.kind, leaf.description, leaf.ports_total, leaf.lid, leaf.lmc) == ("switch", "leaf1", 8, 2, 0)
    assert (leaf.system_guid, leaf.vendor_id, leaf.device_id) == (LEAF1, 0x2C9, 0xD2F0)
    assert [port.number for port in leaf.ports] == [1, 2, 5, 6, 7]
    end = FoundEnd(NODE1_MLX5_0, "host", 1, "0xe09d730300000011", 1, "node1 mlx5_0")
    assert leaf.ports[0] == FoundPort(1, None, None, None, end, 4, "HDR")
    assert leaf.ports[2].end == FoundEnd(SPINE1, "switch", 1, None, 4, "spine1")


def test_an_hca() -> None:
    hca = next(node for node in parse_ibnetdiscover(TOPOLOGY).nodes if node.guid == NODE1_MLX5_0)
    assert (hca.kind, hca.description, hca.ports_total, hca.lid) == ("host", "node1 mlx5_0", 2, None)
    assert hca.ports == [FoundPort(1, "0xe09d730300000011", 1, 0, FoundEnd(LEAF1, "switch", 1, None, 2, "leaf1"), 4, "HDR")]


@pytest.mark.parametrize("form", ["f", "g", "m", "s"])
def test_options_that_print_more_change_nothing(form: str) -> None:
    found = parse_ibnetdiscover(fabric_text(f"ibnetdiscover-{form}"))
    assert found.problems == []
    assert fabric_graph("default", found) == fabric_graph("default", parse_ibnetdiscover(TOPOLOGY))


OLD = """\
vendid=0x8f1
devid=0x5a06
sysimgguid=0x8f10400410015
switchguid=0x8f10400410015
Switch\t24 "S-0008f10400410015"\t\t# "ISR 6000 Voltaire" port 0 lid 6 lmc 0
[13][ext 7]\t"H-0008f10403960558"[2][ext 3](8f1040396055a) \t\t# "MT23108 InfiniHost" lid 4 4xSDR slot 2

vendid=0x8f1
devid=0x5a44
caguid=0x8f10403960558
Ca\t2 "H-0008f10403960558"\t\t# "node "old" HCA-1" (scp)
[2](8f1040396055a) \t"S-0008f10400410015"[13][ext 7]\t\t# lid 4 lmc 1 "ISR 6000 Voltaire" lid 6 4xSDR
"""


def test_old_forms_short_guids_and_marks_of_chassis() -> None:
    found = parse_ibnetdiscover(OLD)
    assert found.problems == []
    switch, hca = found.nodes
    assert (switch.guid, switch.lid, switch.ports[0].number, switch.ports[0].speed) == ("0x0008f10400410015", 6, 13, "SDR")
    assert (hca.description, hca.system_guid, hca.ports[0].guid, hca.ports[0].lmc) == ('node "old" HCA-1', None, "0x0008f1040396055a", 1)
    assert fabric_graph("default", found).complete


def test_a_router_and_the_words_of_no_answer() -> None:
    text = TOPOLOGY.replace('Ca\t2 "H-e09d730300000010"', 'Rt\t2 "R-e09d730300000010"').replace(
        '"H-e09d730300000010"[1]', '"R-e09d730300000010"[1]'
    )
    graph = fabric_graph("default", parse_ibnetdiscover(text.replace("caguid=0xe09d730300000010", "rtguid=0xe09d730300000010")))
    assert (graph.nodes[NODE1_MLX5_0].kind, graph.complete) == ("router", True)
    lossy = parse_ibnetdiscover(fabric_text("lossy-ibnetdiscover"))
    assert len(lossy.problems) == 1
    assert re.match(r"line 18 of ibnetdiscover has a port that did not answer: .*\?\?\?\?\?'", lossy.problems[0])


@pytest.mark.parametrize("end", range(700, len(TOPOLOGY) - 2, 31))
def test_a_text_that_was_cut_off_is_never_whole(end: int) -> None:
    """Wherever it ends before the rate of the last line."""
    graph = fabric_graph("default", parse_ibnetdiscover(TOPOLOGY[:end]))
    assert not graph.complete


@pytest.mark.parametrize(
    "damaged",
    [
        TOPOLOGY.replace("4xHDR", "4xHD", 1),
        TOPOLOGY.replace(" 4xHDR", "", 1),
        TOPOLOGY.replace('Switch\t8 "S-', 'Switch\t8 "H-', 1),
        TOPOLOGY.replace("switchguid=0x2c5eab0300000100", "switchguid=0x2c5eab0300000101", 1),
        TOPOLOGY.replace("devid=", "device=", 1),
        TOPOLOGY.replace('[5]\t"S-2c5eab0300000300"[1]', '[5]\t"S-2c5eab0300000300"[2]', 1),
        f"{TOPOLOGY}Connection timed out\n",
        TOPOLOGY + TOPOLOGY.replace("leaf1", "leaf9"),
    ],
    ids=["speed", "no rate", "letter", "guid", "key", "other end", "message", "guids twice"],
)
def test_damage_is_a_problem(damaged: str) -> None:
    graph = fabric_graph("default", parse_ibnetdiscover(damaged))
    assert graph.problems
    assert not graph.complete


@pytest.mark.parametrize("last", ["Ca\t1", '[7]\t"S-2c5eab0300000400"[1]'], ids=["all ports of an HCA", "one port of a switch"])
def test_a_link_that_only_one_end_reports(last: str) -> None:
    """The line behind the last title, or one in the middle, is not there."""
    lines = TOPOLOGY.rstrip().split("\n")
    at = max(number for number, line in enumerate(lines) if line.startswith(last))
    graph = fabric_graph(
        "default", parse_ibnetdiscover("\n".join(lines[: at + 1] if last.startswith("Ca") else lines[:at] + lines[at + 1 :]))
    )
    assert len(graph.links) == 9
    assert [problem.split(":")[0] for problem in graph.problems] == ["only one end reports some links"]


def test_the_same_node_twice_is_one() -> None:
    """As chassis are with -g: a spine of a director is printed with the spines and again with all switches."""
    switch = TOPOLOGY[TOPOLOGY.index("vendid") : TOPOLOGY.index("vendid", 300)]
    graph = fabric_graph("default", parse_ibnetdiscover(f"{TOPOLOGY}\n{switch}"))
    assert graph == fabric_graph("default", parse_ibnetdiscover(TOPOLOGY))


def test_many_problems_are_counted() -> None:
    reported = parse_ibnetdiscover(TOPOLOGY + "oh\n" * 100).problems
    assert len(reported) == 21
    assert reported[-1] == "80 more problems in what ibnetdiscover printed"


@pytest.mark.parametrize(
    "text", ["", "\n\n", "# Topology file: generated\n", "ibnetdiscover: iberror: failed: discover failed\n", "vendid=0x2c9\n"]
)
def test_what_is_no_topology(text: str) -> None:
    with pytest.raises(ParseError, match="not the output of ibnetdiscover"):
        parse_ibnetdiscover(text)


@given(text=garbled(TOPOLOGY[:900]))
def test_any_text_is_read_or_refused(text: str) -> None:
    assert read_or_refused(lambda damaged: fabric_graph("default", parse_ibnetdiscover(damaged)), text)


def test_a_port_with_a_width_and_without_a_speed_did_not_answer() -> None:
    """ibnetdiscover prints ??? for a speed that it does not know."""
    assert parse_ibnetdiscover(OLD).problems == []
    unknown = parse_ibnetdiscover(OLD.replace("4xSDR", "4x???"))
    assert [problem.partition(":")[0] for problem in unknown.problems] == [
        f"line {number} of ibnetdiscover has a port that did not answer"
        for number, line in enumerate(OLD.split("\n"), 1)
        if "4xSDR" in line
    ]
    assert {(port.width, port.speed) for node in unknown.nodes for port in node.ports} == {(4, None)}
