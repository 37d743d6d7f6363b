# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The fabric gate over what hosts have read: whose findings are whose, what is kept, and what could not be read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.graph import Graph
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.tools import NO_MANAGER
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.cabling.change import parse_history
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.gate import NO_FABRIC, NOBODY, FabricGate, Found
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.links.counters import parse_baseline
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.readings import FABRIC
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder
from tests.unit.builders.fabrics import Fabric, leafspine, rail
from tests.unit.builders.known import known_of

RUNS = ("20261120T120000Z-1", "20261121T120000Z-1", "20261122T120000Z-1")


def known(fabric: Fabric, plane: str = "default", **settings: Any) -> dict[str, Any]:
    """Intent and facts of every host of a fabric."""
    hosts: dict[str, Any] = {}
    for name, its in fabric.nodes.items():
        host, _space, device = name.partition(" ")
        if its["kind"] == "host":
            planes = {plane: {"ratio": None, "plan": None, **settings}}
            empty = {"intent": {"rails": [], "fabric": {"planes": planes}}, "facts": {"netdevs": {}, "devices": {}}}
            rails, facts = hosts.setdefault(host, empty)["intent"]["rails"], hosts[host]["facts"]
            pci = f"0000:{len(rails) + 1:02x}:00.0"
            rails.append({"name": f"rail{len(rails)}", "nic": {"pci": pci}, "link_layer": "infiniband", "plane": plane, "rate_gbps": 400.0})
            guid = str(its["guid"])[2:]
            port = {"netdev": None, "state": "ACTIVE", "physical_state": "LinkUp"}
            grouped = ":".join(guid[at : at + 4] for at in range(0, 16, 4))
            facts["devices"][device] = {"node_guid": grouped, "pci": {"address": pci}, "ports": {"1": port}}
    return hosts


def read(folder: RunFolder, graph: Graph, host: str = "node1", plane: str = "default", at: float = 1000.0) -> None:
    reading = {"graph": graph.to_dict(), "subnet_managers": None, "no_subnet_manager": None, "read_at": at}
    folder.write_json(f"fabric/{plane}/graphs/{host}.json", reading)


def no_plan(name: str) -> str:
    raise ParseError(f"{name} cannot be read")


def judge(folder: Path, hosts: dict[str, Any], *, run: int = 2, text: str | None = None) -> Found:
    found = FabricGate(RunFolder(folder / RUNS[run]), known_of(hosts), RUNS[run], no_plan if text is None else lambda _name: text).judge()
    assert set(found.hosts) == set(hosts)
    assert all(found.hosts.values())
    assert {each.host for of in found.hosts.values() for each in of} <= set(hosts)
    assert all(each.host == f"plane {plane}" for plane, of in found.planes.items() for each in of)
    return found


def bad(findings: list[Finding]) -> list[tuple[str, str, str]]:
    return [(each.check, each.status, each.subject) for each in findings if each.status not in ("ok", "not_applicable")]


def all_bad(found: Found) -> dict[str, list[tuple[str, str, str]]]:
    by = {**found.hosts, **{f"plane {plane}": of for plane, of in found.planes.items()}}
    return {name: bad(of) for name, of in by.items() if bad(of)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for run in RUNS:
        (tmp_path / run).mkdir()
    return tmp_path


def test_a_fabric_that_is_well_says_of_each_host_where_it_is(folder: Path) -> None:
    fabric = rail(hosts=4, rails=2, spines=2, cables=1)
    read(RunFolder(folder / RUNS[2]), fabric.graph())
    found = judge(folder, known(fabric, plan="plan.yml", ratio=2.0), text=fabric.plan_text())
    assert all_bad(found) == {}
    assert [(each.check, each.status, each.observed) for each in found.hosts["node3"]] == [
        ("fabric.graph", "ok", "rail0 on leaf1 port 3, rail1 on leaf2 port 3")
    ]
    assert {each.check for each in found.planes["default"]} >= {"fabric.graph", "fabric.cabling", "fabric.ratio", "fabric.symmetry"}
    kept = json.loads((folder / RUNS[2] / FABRIC).read_text())
    assert (kept["schema"], [Graph.from_dict(each) for each in kept["planes"]]) == (1, [fabric.graph()])


def test_a_cable_of_a_host_is_its_own_and_one_of_a_spine_the_planes(folder: Path) -> None:
    fabric = leafspine(leaves=4, spines=4, hosts_per_leaf=4, cables=1)
    hosts, text = known(fabric, plan="plan.yml"), fabric.plan_text()
    fabric.slow(("node3 mlx5_0", 1), 2)
    fabric.cut(("leaf1", 5))
    read(RunFolder(folder / RUNS[2]), fabric.graph())
    found = all_bad(judge(folder, hosts, text=text))
    assert set(found) == {"node3", "plane default"}
    assert found["node3"] == [("fabric.link", "error", "node3 mlx5_0 to leaf1 port 3")]
    assert [(check, status) for check, status, _subject in found["plane default"]] == [("fabric.cabling", "error")]


def test_a_host_that_is_gone_with_its_leaf_is_not_reported_again(folder: Path) -> None:
    fabric = leafspine(leaves=4, spines=2, hosts_per_leaf=2)
    hosts, text = known(fabric, plan="plan.yml"), fabric.plan_text()
    fabric.remove("leaf1")
    fabric.remove("node1 mlx5_0")
    fabric.remove("node2 mlx5_0")
    read(RunFolder(folder / RUNS[2]), fabric.graph(), "node3")
    found = judge(folder, hosts, text=text)
    assert list(all_bad(found)) == ["plane default"]
    assert [(each.status, each.observed) for each in found.hosts["node1"]] == [
        ("not_applicable", "not found in the graph: see the findings of plane default")
    ]


def test_runs_are_compared_and_a_partial_graph_is_no_baseline(folder: Path) -> None:
    fabric = rail(hosts=4, rails=2, spines=2, cables=2)
    hosts = known(fabric)
    fabric.count(("leaf1", 1), SymbolErrorCounter=5)
    read(RunFolder(folder / RUNS[0]), fabric.graph(), at=0.0)
    assert all_bad(judge(folder, hosts, run=0)) == {}
    fabric.complete, fabric.problems = False, ["iblinkinfo is not installed on this host: install infiniband-diags"]
    read(RunFolder(folder / RUNS[1]), fabric.graph(), at=1800.0)
    assert all_bad(judge(folder, hosts, run=1)) == {"plane default": [("fabric.graph", "unknown", "discovery")]}
    assert not (folder / RUNS[1] / "fabric/default/graph.json").exists()
    fabric.complete, fabric.problems = True, []
    fabric.count(("leaf1", 1), SymbolErrorCounter=5000)
    fabric.cut(("leaf2", 5))
    read(RunFolder(folder / RUNS[2]), fabric.graph(), at=3600.0)
    found = all_bad(judge(folder, hosts, run=2))
    assert [check for checks in found.values() for check, _status, _subject in checks] == ["fabric.counters", "fabric.change"]
    assert "node1" in found


def test_a_plan_that_cannot_be_read_is_an_error_of_the_intent(folder: Path) -> None:
    fabric = rail(hosts=4, rails=2, spines=2, cables=1)
    read(RunFolder(folder / RUNS[2]), fabric.graph())
    hosts = known(fabric, plan="cables.yml", ratio=2.0)
    expected = {"plane default": [("intent.value", "error", "rdma_fabric.planes.default.plan")]}
    assert all_bad(judge(folder, hosts)) == expected
    assert all_bad(judge(folder, hosts, text="switches: [1")) == expected


def test_a_plane_that_nobody_could_ask_is_unknown_once(folder: Path) -> None:
    found = judge(folder, known(rail(hosts=2, rails=2, spines=2, cables=1)))
    assert all_bad(found) == {"plane default": [("fabric.graph", "unknown", "discovery")]}
    assert found.planes["default"][0].observed == NOBODY
    assert [each.status for each in found.hosts["node1"]] == ["not_applicable"]
    assert not (folder / RUNS[2] / FABRIC).exists()


def test_the_reader_that_was_given_most_counts(folder: Path) -> None:
    fabric = rail(hosts=4, rails=2, spines=2, cables=1)
    there = RunFolder(folder / RUNS[2])
    read(there, Graph("default", {}, [], "ibnetdiscover", False, ["ibnetdiscover is not installed on this host"]), "node1")
    read(there, fabric.graph(), "node2")
    assert all_bad(judge(folder, known(fabric, ratio=2.0))) == {}


def test_without_a_subnet_manager_there_is_one_finding(folder: Path) -> None:
    fabric = rail(hosts=4, rails=2, spines=2, cables=1)
    for end in fabric.cables:
        fabric.ports[end] = {"number": end[1], "state": "INIT", "physical": "LinkUp"}
    fabric.complete, fabric.problems = False, [f"ibqueryerrors {NO_MANAGER} on mlx5_0 port 1, and sent no query"]
    read(RunFolder(folder / RUNS[2]), fabric.graph())
    assert all_bad(judge(folder, known(fabric))) == {"plane default": [("fabric.link", "error", "all links")]}


def test_an_hca_on_another_plane_is_reported_by_the_planes_together(folder: Path) -> None:
    compute, storage = rail(hosts=4, rails=2, spines=2, cables=1, seed=1), rail(hosts=4, rails=1, spines=1, cables=1, seed=2)
    hosts = known(compute, "compute")
    for host, its in known(storage, "storage").items():
        its["intent"]["rails"][0].update(name="store", nic={"pci": "0000:aa:00.0"})
        its["facts"]["devices"]["mlx5_0"]["pci"]["address"] = "0000:aa:00.0"
        hosts[host]["intent"]["rails"] += its["intent"]["rails"]
        hosts[host]["intent"]["fabric"]["planes"] |= its["intent"]["fabric"]["planes"]
        hosts[host]["facts"]["devices"]["mlx5_9"] = its["facts"]["devices"]["mlx5_0"]
    moved = storage.nodes.pop("node2 mlx5_0")
    storage.cables.pop(storage.cables.pop(("node2 mlx5_0", 1)))
    compute.nodes["node2 mlx5_9"] = moved
    compute.join(("node2 mlx5_9", 1), ("leaf1", 30))
    there = RunFolder(folder / RUNS[2])
    read(there, compute.graph(), plane="compute")
    read(there, storage.graph(), plane="storage")
    found = judge(folder, hosts)
    words = [each.observed for each in found.hosts["node2"] if each.status == "error"]
    assert any("plane compute (leaf1 port 30)" in word for word in words), words


def test_virtual_machines_on_infiniband_have_no_fabric_to_ask(folder: Path) -> None:
    hosts = known(leafspine())
    for its in hosts.values():
        for device in its["facts"]["devices"].values():
            device["function"] = "vf"
    found = judge(folder, hosts)
    assert found.planes == {}
    assert {(each.status, each.observed) for of in found.hosts.values() for each in of} == {("not_applicable", NO_FABRIC)}


def test_hosts_without_a_fabric_say_so(folder: Path) -> None:
    rails = [{"name": "rail0", "nic": {"mac": "02:00:00:00:00:01"}, "link_layer": "roce", "plane": "default", "soft": True}]
    hosts = {"node1": {"intent": {"rails": rails, "fabric": {"planes": {}}}, "facts": {"netdevs": {}, "devices": {}}}}
    hosts["node2"] = {"intent": None, "facts": None}
    found = judge(folder, hosts)
    assert [(each.status, each.observed) for each in found.hosts["node1"]] == [("not_applicable", NO_FABRIC)]
    assert found.planes == {}


DAMAGED = [
    "",
    "[]",
    "{",
    "7",
    "[" * 200_000,
    '{"schema": 1}',
    '{"schema": 1, "counter_names": [], "nodes": {}, "links": [["a", 1, "b", 1, 4, "NDR"]]}',
]


@pytest.mark.parametrize("text", DAMAGED)
@pytest.mark.parametrize("what", ["graph", "baseline", "history"])
def test_damaged_evidence_of_an_earlier_run_is_not_compared_with(folder: Path, what: str, text: str) -> None:
    fabric = rail(hosts=4, rails=2, spines=2, cables=2)
    for run in (1, 2):
        read(RunFolder(folder / RUNS[run]), fabric.graph())
        if run == 1:
            judge(folder, known(fabric), run=1)
            (folder / RUNS[1] / f"fabric/default/{what}.json").write_text(text)
    found = judge(folder, known(fabric), run=2)
    assert all_bad(found) == {}


@pytest.mark.parametrize(
    "data",
    [
        {"schema": 1, "seconds": "1", "run": "r", "ports": {}},
        {"schema": 1, "seconds": True, "run": "r", "ports": {}},
        {"schema": 1, "seconds": float("nan"), "run": "r", "ports": {}},
        {"schema": 1, "seconds": 1, "run": "r", "ports": []},
        {"schema": 1, "seconds": 1, "run": "r", "ports": {"0x1/1": 7}},
        {"schema": 1, "seconds": 1, "run": "r", "ports": {"0x1/1": {"SymbolErrorCounter": "7"}}},
        {"schema": 1, "seconds": 1, "run": "r"},
    ],
)
def test_a_baseline_of_wrong_types_is_refused(data: dict[str, Any]) -> None:
    with pytest.raises(ParseError):
        parse_baseline(data)


@pytest.mark.parametrize("gone", [[], "x", {"a b": 7}])
def test_a_history_of_wrong_types_is_refused(gone: Any) -> None:
    with pytest.raises(ParseError):
        parse_history({"schema": 1, "gone": gone})
