# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Two switches of one GUID, which the tools take for one: who is behind a port is asked by directed routes."""

from __future__ import annotations

import json

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.doubles import find_doubles
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.graph import Graph, Twin
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.iblinkinfo import parse_iblinkinfo
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.ibnetdiscover import parse_ibnetdiscover
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.read import read_fabric
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.tools import Asked, Tools
from tests.unit.builders.fabric_texts import fabric_text
from tests.unit.builders.fakes import Call, FakeRunner

LEAF, SPINE1, SPINE2 = (f"0x506b4b03000000{number}0" for number in (1, 3, 4))
NODEINFO, NODEDESC = fabric_text("double-smpquery-nodeinfo"), fabric_text("double-smpquery-nodedesc")
FAILED = "smpquery: iberror: failed: operation nodeinfo: node info query failed\n"


def info(route: str, guid: str, port: int) -> Call:
    text = NODEINFO.replace("0x506b4b0300000010", guid).replace(f"{'.' * 23}3\n", f"{'.' * 23}{port}\n")
    return (["smpquery", "nodeinfo", "-D", route], 0, text, "")


def desc(route: str, name: str) -> Call:
    return (["smpquery", "nodedesc", "-D", route], 0, NODEDESC.replace("leaf1", name), "")


CALLS: list[Call] = [
    info("0,1,3", SPINE1, 3), info("0,1,3,1", LEAF, 3),
    info("0,1,3", SPINE1, 3), info("0,1,3,2", LEAF, 3),
    desc("0,1,3,1", "leaf1"), desc("0,1,3,2", "leaf2"),
    info("0,1,4", SPINE2, 4), info("0,1,4,1", LEAF, 4),
]  # fmt: skip
#: iblinkinfo has lost port 2 of spine1, port 1 of spine2; or port 2 of both.
BESIDE: list[Call] = [
    info("0,1,3", SPINE1, 3), info("0,1,3,2", LEAF, 3), info("0,1,3", SPINE1, 3), info("0,1,3,1", LEAF, 3),
    desc("0,1,3,1", "leaf1"), desc("0,1,3,2", "leaf2"), info("0,1,4", SPINE2, 4), info("0,1,4,1", LEAF, 4),
]  # fmt: skip
BOTH: list[Call] = [*BESIDE[:6], info("0,1,4", SPINE2, 4), info("0,1,4,2", LEAF, 4)]
FOUND = {LEAF: [Twin("leaf1", (SPINE1, 1)), Twin("leaf2", (SPINE1, 2))]}


def find(calls: list[Call], linkinfo: str = "double-iblinkinfo-l") -> tuple[dict[str, list[Twin]], list[str]]:
    runner = FakeRunner(calls)
    tools = Tools(runner, SysRoot("/nowhere"), Asked())
    found = find_doubles(tools, parse_ibnetdiscover(fabric_text("double-ibnetdiscover")), parse_iblinkinfo(fabric_text(linkinfo)), None)
    return found, tools.problems


def test_both_are_reported_by_their_names_and_places() -> None:
    assert find(CALLS) == (FOUND, [])


def test_without_a_lost_port_nobody_is_asked() -> None:
    assert find([], "iblinkinfo-l") == ({}, [])


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (info("0,1,3", SPINE2, 3), info("0,1,4", SPINE1, 4)),
        ((["smpquery", "nodeinfo", "-D", "0,1,3"], 255, FAILED, ""), (["smpquery", "nodeinfo", "-D", "0,1,4"], 255, FAILED, "")),
    ],
    ids=["the route leads elsewhere", "no answer"],
)
def test_what_the_routes_do_not_report_is_not_guessed(first: Call, second: Call) -> None:
    assert find([first, second]) == ({}, [])


def test_a_node_that_has_come_meanwhile_is_no_twin() -> None:
    strange = "0x506b4b0300000990"
    assert find([CALLS[0], info("0,1,3,1", strange, 3), CALLS[6], info("0,1,4,1", strange, 4)])[0] == {}


def other_cable(*spines: str) -> str:
    """The capture of iblinkinfo as if, on these spines, the node behind port 1 had answered before that behind port 2."""
    text = fabric_text("double-iblinkinfo-l")
    for spine in spines:
        first, second = (next(line for line in text.splitlines() if line.startswith(spine) and f"    {port}[" in line) for port in (1, 2))
        behind = second.partition("==>")[2]
        text = text.replace(first, f"{first.partition('==>')[0]}==>{behind}").replace(
            second, f'{second.partition("==>")[0]}==>      "Port not available"'
        )
    return text


@pytest.mark.parametrize(("spines", "calls"), [((SPINE1,), BESIDE), ((SPINE1, SPINE2), BOTH)], ids=["on one spine", "on both"])
def test_the_tools_may_keep_different_cables_of_twins(spines: tuple[str, ...], calls: list[Call]) -> None:
    """The answers of a sweep come in any order: what each tool drops of two nodes with one GUID is chance, and no change of the fabric."""
    graph = read(calls, other_cable(*spines))
    assert graph.problems == []
    assert list(graph.doubles) == [LEAF]
    assert {twin.description for twin in graph.doubles[LEAF]} == {"leaf1", "leaf2"}


TWICE = (
    "./libibnetdisc/ibnetdisc.c:667; Duplicate Port: Port with guid 0xa088c20300000091 already exists in ports DB\n"
    "./libibnetdisc/ibnetdisc.c:379; Error Occurred when trying to insert new port guid 0xa088c20300000091 to DB\n"
)


def read(calls: list[Call], linkinfo: str | None = None) -> Graph:
    found: Call = (["ibnetdiscover"], 0, fabric_text("double-ibnetdiscover"), TWICE)
    linked: Call = (["iblinkinfo", "-l"], 0, linkinfo or fabric_text("double-iblinkinfo-l"), TWICE)
    gone: Call = (["sminfo"], 255, "sminfo: iberror: failed: query\n", "ibwarn: [7] mad_rpc: _do_madrpc failed; dport (Lid 1)\n")
    runner = FakeRunner([found, linked, *calls, gone])
    return read_fabric(runner, SysRoot("/nowhere"), Asked(errors=False)).graph


def test_a_graph_with_twins_is_not_whole_and_says_it_once() -> None:
    graph = read(CALLS)
    assert (graph.complete, graph.problems, graph.doubles) == (False, [], FOUND)
    assert Graph.from_dict(json.loads(json.dumps(graph.to_dict()))) == graph


def test_where_nobody_could_be_asked_the_tools_themselves_are_reported() -> None:
    graph = read([(["smpquery", "nodeinfo", "-D", f"0,1,{port}"], 255, FAILED, "") for port in (3, 4)])
    assert graph.doubles == {}
    assert graph.problems[0] == "ibnetdiscover found the same GUID on two ports: 0xa088c20300000091"
    assert graph.problems[1] == "iblinkinfo found the same GUID on two ports: 0xa088c20300000091"
    assert graph.problems[-1] == "iblinkinfo did not find the node behind ports that are up: spine2 port 1, spine1 port 1"
