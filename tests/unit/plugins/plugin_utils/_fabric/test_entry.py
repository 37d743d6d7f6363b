# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What one host says of a fabric, changed in one place at a time: it is refused and named, or the gates can bear it."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import UNKNOWN, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.build import fabric_graph
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.graph import MOST_PROBLEMS, Graph, Twin
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.iblinkinfo import parse_iblinkinfo
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.ibnetdiscover import parse_ibnetdiscover
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.ibqueryerrors import parse_ibqueryerrors
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.lldp import port_number
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.managers import SmInfo
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.discover.inventory import inventory
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.draw.marks import bad_links
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.draw.svg import graphml, svg
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.entry import MOST_MANAGERS, GraphError, admitted
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.expected import expected_hcas
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.gate import FabricGate
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.managers import check_managers
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.readings import GRAPHS, LLDP, LOADED, MANAGERS, reading_of, seen_managers
from ansible_collections.rdma.cluster.plugins.plugin_utils._gate.fleet_checks import compared
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.fabric import paths_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.loads.fabric import judge_load
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder
from tests.unit.builders.fabric_texts import fabric_text
from tests.unit.builders.fabrics import rail
from tests.unit.builders.known import known_of
from tests.unit.plugins.plugin_utils._fabric import test_ethernet as ethernet
from tests.unit.plugins.plugin_utils._fabric.test_gate import known, no_plan
from tests.unit.plugins.plugin_utils._facts.test_entry import REMOVED, VALUES, changed, places
from tests.unit.plugins.plugin_utils._gate.test_fleet_checks import lab

#: How many changes a run of the tests makes.
EXAMPLES = int(os.environ.get("RDMA_TEST_MUTATIONS", "300"))
READER = "node1"
RUNS = ("20261120T120000Z-1", "20261121T120000Z-1")
GUID = "0x2c5eab0300b87b40"


def captured() -> Graph:
    """What the real tools have printed of a fabric, with the names and counters of every kind."""
    graph = fabric_graph(
        "default",
        parse_ibnetdiscover(fabric_text("cut-ibnetdiscover")),
        linkinfo=parse_iblinkinfo(fabric_text("cut-iblinkinfo-l")),
        counters=parse_ibqueryerrors(fabric_text("cut-ibqueryerrors")).counters,
    )
    assert graph.complete
    return graph


def managers(count: int = 2) -> list[dict[str, Any]]:
    return [
        asdict(SmInfo(number + 1, GUID, "STANDBY" if number else "MASTER", 14, 7, "host", f"node{number + 1} mlx5_0"))
        for number in range(count)
    ]


def answer(graph: Graph | None = None) -> dict[str, Any]:
    """What the module returns. Ansible brings it through JSON."""
    reported = {
        "graph": None if graph is None else graph.to_dict(),
        "subnet_managers": managers(),
        "no_subnet_manager": None,
        "read_at": 1_700_007_200.0,
        "changed": False,
    }
    return dict(json.loads(json.dumps(reported)))


@dataclass
class Case:
    """An answer, and what reads it: the name of its kind, the plane that was asked, and the consumers."""

    what: str
    plane: str
    said: dict[str, Any]
    use: Callable[[Any], Mapping[str, Sequence[Finding]]]


def gate_case(path: Path, name: str, graph: Graph, hosts: dict[str, Any]) -> Case:
    """An InfiniBand graph: the fabric gate with an earlier run, the load of the pairs stage, the paths of pairs, and the drawings."""
    for run in RUNS:
        (path / name / run).mkdir(parents=True)
    before, folder = RunFolder(path / name / RUNS[0]), RunFolder(path / name / RUNS[1])
    first = reading_of(GRAPHS, "default", READER, {**answer(graph), "read_at": 1_700_000_000.0})
    before.write_json(f"fabric/default/graphs/{READER}.json", first.to_dict())
    FabricGate(before, known_of(hosts), RUNS[0], no_plan).judge()
    folder.write_json(f"fabric/default/graphs/{READER}.json", first.to_dict())
    assert expected_hcas(known_of(hosts))

    def use(reading: Any) -> dict[str, list[Finding]]:
        folder.write_json(f"fabric/default/loaded/{READER}.json", reading.to_dict())
        folder.write_json(f"fabric/default/graphs/{READER}.json", first.to_dict())
        loads = [doubt.finding for doubt in judge_load(folder, known_of(hosts))]
        folder.write_json(f"fabric/default/graphs/{READER}.json", reading.to_dict())
        found = FabricGate(folder, known_of(hosts), RUNS[1], no_plan).judge()
        kept = folder.read_json("fabric.json")
        paths_of(kept, {"hosts": [], "rails": [], "profiles": []}, {})
        drawn = [Graph.from_dict(each) for each in kept["planes"]]
        for each in drawn:
            graphml(each, bad_links(each))
            svg(each, bad_links(each))
        inventory(drawn, {})
        return {**found.hosts, **found.planes, "loads": loads}

    return Case(GRAPHS, "default", answer(graph), use)


def lldp_case(path: Path) -> Case:
    folder, hosts = RunFolder(path / "lldp"), ethernet.known(3)
    for number in (2, 3):
        folder.write_json(
            f"lldp/n{number}.json",
            reading_of(LLDP, LLDP, f"n{number}", answer(ethernet.neighbors(f"n{number}", f"swp{number}"))).to_dict(),
        )

    def use(reading: Any) -> dict[str, list[Finding]]:
        folder.write_json("lldp/n1.json", reading.to_dict())
        found = FabricGate(folder, known_of(hosts), "R1", no_plan).judge()
        return {**found.hosts, **found.planes}

    return Case(LLDP, LLDP, {**answer(ethernet.neighbors("n1", "swp1")), "subnet_managers": None}, use)


def manager_case(path: Path, kind: str) -> Case:
    folder, hosts = RunFolder(path / f"managers-{kind}"), link_hosts(kind)

    def use(reading: Any) -> dict[str, list[Finding]]:
        folder.write_json(f"fabric/default/managers/{READER}.json", reading.to_dict())
        return check_managers(known_of(hosts), seen_managers(folder))

    return Case(MANAGERS, "default", answer(), use)


def link_hosts(kind: str = "hosts") -> dict[str, Any]:
    hosts = known(rail(hosts=3, rails=1, spines=1, cables=1))
    manager = {"kind": kind, "hosts": ["node1", "node2"] if kind == "hosts" else [], "switch": None, "priorities": {}}
    for number, each in enumerate(hosts.values(), 1):
        each["intent"]["fabric"]["planes"]["default"]["subnet_manager"] = manager
        each["facts"]["devices"]["mlx5_0"]["ports"]["1"].update(lid=number, sm_lid=1)
    return hosts


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Case]:
    path = tmp_path_factory.mktemp("readings")
    made = rail(hosts=4, rails=2, spines=2, cables=1)
    made.count(("leaf1", 1), SymbolErrorCounter=5, PortXmitWait=9, PortXmitData=7)
    twins = replace(made.graph(), doubles={made.guid("node1 mlx5_0"): [Twin("node1 mlx5_0", (made.guid("leaf1"), 1))] * 2}, complete=False)
    return {
        "captured": gate_case(path, "captured", captured(), known(made)),
        "made": gate_case(path, "made", made.graph(), known(made)),
        "twins": gate_case(path, "twins", twins, known(made)),
        "lldp": lldp_case(path),
        "managers": manager_case(path, "hosts"),
        "switch": manager_case(path, "switch"),
    }


def test_a_changed_answer_is_refused_or_borne(cases: dict[str, Case], capsys: pytest.CaptureFixture[str]) -> None:
    """RDMA_TEST_EXAMPLES=new draws others. RDMA_TEST_MUTATIONS: how many."""
    seed = random.SystemRandom().randrange(10**9) if os.environ.get("RDMA_TEST_EXAMPLES") == "new" else 7
    drawn, begun, calls, refused, slowest = random.Random(seed), time.monotonic(), 0, 0, (0.0, "")
    for name, case in cases.items():
        changes = [(path, value) for path in places(case.said) if path[0] != "changed" for value in VALUES]
        for path, value in drawn.sample(changes, min(len(changes), EXAMPLES // len(cases))):
            started = time.monotonic()
            reading = reading_of(case.what, case.plane, READER, changed(case.said, path, value))
            if reading.refused is not None:
                refused += 1
                assert READER in reading.refused, (path, value)
                assert reading.refused.isprintable()
                assert len(reading.refused) < 1500
            for findings in case.use(reading).values():
                assert all(each.observed.isprintable() for each in findings), (path, value)
            calls += 1
            slowest = max(slowest, (time.monotonic() - started, f"{name}: {'.'.join(map(str, path))}"))
    with capsys.disabled():
        print(f"\n  {calls} changes (seed {seed}) in {time.monotonic() - begun:.1f} s: {refused} refused at the door; slowest {slowest}")
    assert calls / 2 < refused < 0.98 * calls


def test_what_the_reader_makes_is_admitted_as_it_is(cases: dict[str, Case]) -> None:
    for case in cases.values():
        reading = reading_of(case.what, case.plane, READER, case.said)
        assert reading.refused is None
        assert {key: value for key, value in reading.to_dict().items() if key != "refused"} == {
            key: value for key, value in case.said.items() if key != "changed"
        }


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("read_at",), float("nan"), "read_at: expected seconds since 1970, got nan"),
        (("read_at",), float("inf"), "read_at"),
        (("read_at",), -1, "read_at"),
        (("graph",), None, "graph: not the tree of a graph: TypeError expected dict, got None"),
        (("graph", "schema"), True, "expected int, got True"),
        (("graph", "schema"), 2, "schema 2, expected 1"),
        (("graph", "source"), "x", "source 'x', expected one of ibnetdiscover, lldp"),
        (("graph", "complete"), 1, "expected bool, got 1"),
        (("graph", "nodes", GUID), {"kind": "spy", "name": "x", "ports": {}}, "kind 'spy'"),
        (("graph", "nodes", "../../etc"), {"kind": "host", "name": "x", "ports": {}}, "GUID '../../etc', expected the form"),
        (("graph", "nodes", GUID), {"kind": "host", "name": "x", "lid": 65536, "ports": {}}, "from 0 to 65535, got 65536"),
        (("graph", "nodes", GUID), {"kind": "host", "name": "x", "lid": -1, "ports": {}}, "from 0 to 65535, got -1"),
        (("graph", "nodes", GUID), {"kind": "host", "name": "x", "ports": {"256": {}}}, "port '256', expected a number up to 255"),
        (("graph", "nodes", GUID), {"kind": "host", "name": "x", "ports": {"01": {}}}, "port '01'"),
        (("graph", "nodes", GUID), {"kind": "host", "name": "x", "ports": {"1": {"width": 1.5}}}, "expected int, got 1.5"),
        (("graph", "nodes", GUID), {"kind": "host", "name": "x", "ports": {"1": {"counters": [0, *[1] * 100]}}}, "100 counters of"),
        (("graph", "links", 0, 1), 99, "which is not a port"),
        (("graph", "links", 0), [], "not enough values"),
        (("subnet_managers",), {}, "subnet_managers: expected a list"),
        (
            ("subnet_managers", 1, "lid"),
            10**30,
            "subnet_managers[1].lid: expected a number from 0 to 65535, got an integer of more than 64 bits",
        ),
        (("subnet_managers", 1, "priority"), True, "subnet_managers[1].priority: expected a number from 0 to 15, got True"),
        (("subnet_managers", 1, "guid"), "0x1", "subnet_managers[1].guid: expected the form"),
        (("subnet_managers", 0, "state"), "GOD", "subnet_managers[0].state: expected one of NOTACT"),
        (("subnet_managers", 0, "state"), [], "subnet_managers[0].state: expected one of NOTACT"),
        (("subnet_managers", 0, "activity"), REMOVED, "subnet_managers[0].activity: missing"),
        (("subnet_managers",), managers(MOST_MANAGERS + 1), f"expected a list of at most {MOST_MANAGERS}"),
    ],
)
def test_what_is_refused_is_named(cases: dict[str, Case], path: tuple[Any, ...], value: Any, words: str) -> None:
    with pytest.raises(GraphError) as refused:
        admitted(changed(cases["captured"].said, path, value), graph=True)
    assert words in str(refused.value)


def test_a_graph_with_problems_is_not_complete(cases: dict[str, Case]) -> None:
    reading = admitted(changed(cases["captured"].said, ("graph", "problems"), ["lost"]), graph=True)
    assert reading.graph is not None
    assert not reading.graph.complete


@pytest.mark.parametrize("said", [None, [], "x", 5, {}, {"graph": {}}])
def test_no_answer_at_all_is_refused(said: Any) -> None:
    with pytest.raises(GraphError):
        admitted(said, graph=True)


def test_names_are_one_printable_line_and_problems_are_few() -> None:
    evil = "x\x1b]0;title\x07\n  error link.state" * 100
    said = answer(replace(captured(), complete=False, problems=[evil] * 10_000))
    said["subnet_managers"][0]["description"] = evil
    guid = next(iter(said["graph"]["nodes"]))
    said["graph"]["nodes"][guid]["name"] = evil
    reading = admitted(said, graph=True)
    assert reading.graph is not None
    assert reading.managers is not None
    texts = [*reading.graph.problems, reading.graph.nodes[guid].name, str(reading.managers[0].description)]
    assert all(text.isprintable() and len(text) <= 1000 for text in texts)
    assert reading.graph.problems[MOST_PROBLEMS:] == ["9800 more problems"]


def test_the_plane_is_the_one_that_was_asked_and_no_host_says_that_it_was_refused() -> None:
    said = {**answer(replace(captured(), plane="../../x")), "refused": "\x1b"}
    reading = reading_of(GRAPHS, "blue", READER, said)
    assert reading.graph is not None
    assert (reading.graph.plane, reading.refused) == ("blue", None)


@pytest.mark.parametrize("message", [None, "", " \n ", 5, ["x"], "\x1b[2K\nline 2"])
def test_a_module_that_failed_has_read_nothing(message: Any) -> None:
    reading = reading_of(MANAGERS, "blue", READER, {"failed": True, "msg": message})
    assert (reading.graph, reading.managers, reading.refused) == (None, None, None)
    assert reading.why_not
    assert reading.why_not.isprintable()


def test_the_fabric_gate_names_the_host_and_the_plane_is_unknown(tmp_path: Path) -> None:
    fabric = rail(hosts=4, rails=2, spines=2, cables=1)
    (tmp_path / RUNS[1]).mkdir()
    folder, hosts = RunFolder(tmp_path / RUNS[1]), known(fabric)
    bad = reading_of(GRAPHS, "default", "node2", {**answer(fabric.graph()), "read_at": float("inf")})
    folder.write_json("fabric/default/graphs/node2.json", bad.to_dict())
    found = FabricGate(folder, known_of(hosts), RUNS[1], no_plan).judge()
    (plane,) = [each for each in found.planes["default"] if each.status == UNKNOWN]
    assert plane.observed == "rejected the answer of node2: read_at: expected seconds since 1970, got inf"
    unknown = {host: [each.observed for each in of if each.status == UNKNOWN] for host, of in found.hosts.items()}
    assert unknown == {"node1": [], "node2": [plane.observed], "node3": [], "node4": []}
    # Another host has read the plane: it is judged, and the first one stays unknown.
    folder.write_json("fabric/default/graphs/node3.json", reading_of(GRAPHS, "default", "node3", answer(fabric.graph())).to_dict())
    found = FabricGate(folder, known_of(hosts), RUNS[1], no_plan).judge()
    assert [each for each in found.planes["default"] if each.status == UNKNOWN] == []
    assert [each.status for each in found.hosts["node2"]] == ["ok", UNKNOWN]


def test_the_load_of_pairs_names_the_host(tmp_path: Path) -> None:
    fabric = rail(hosts=4, rails=2, spines=2, cables=1)
    folder, hosts = RunFolder(tmp_path), known(fabric)
    folder.write_json("fabric/default/graphs/node1.json", reading_of(GRAPHS, "default", "node1", answer(fabric.graph())).to_dict())
    folder.write_json("fabric/default/loaded/node2.json", reading_of(LOADED, "default", "node2", {}).to_dict())
    (doubt,) = judge_load(folder, known_of(hosts))
    assert doubt.finding.status == UNKNOWN
    assert doubt.finding.observed.endswith("the whole plane: rejected the answer of node2: graph: missing")


def test_the_link_gate_names_the_host_and_other_hosts_keep_their_findings(tmp_path: Path) -> None:
    folder, hosts = RunFolder(tmp_path), lab()
    for number, each in enumerate(hosts.values(), 1):
        planes = {"default": {"subnet_manager": {"kind": "hosts", "hosts": ["node1"]}}}
        each["intent"]["fabric"] = {**each["intent"]["fabric"], "planes": planes}
        each["intent"]["rails"][0].update(link_layer="infiniband", plane="default")
        each["facts"]["devices"]["rxe_rail0"]["ports"]["1"].update(link_layer="InfiniBand", lid=number, sm_lid=1)
    bad = reading_of(MANAGERS, "default", "node3", {**answer(), "subnet_managers": [{}]})
    folder.write_json("fabric/default/managers/node3.json", bad.to_dict())
    found = {host: [each for each in of if each.check == "link.sm"] for host, of in compared("link", known_of(hosts), folder).items()}
    assert [each.observed for each in found["node3"] if each.status == UNKNOWN] == [
        "rejected the answer of node3: subnet_managers[0].lid: missing"
    ]
    # The host that speaks for the plane has no other answer.
    assert [each.observed for each in found["node1"] if each.status == UNKNOWN] == [bad.why_not]
    assert [each.status for each in found["node2"]] == ["ok"]
    alone = {**answer(), "subnet_managers": managers(1)}
    folder.write_json("fabric/default/managers/node2.json", reading_of(MANAGERS, "default", "node2", alone).to_dict())
    found = {host: [each for each in of if each.check == "link.sm"] for host, of in compared("link", known_of(hosts), folder).items()}
    unknown = {host: [each.status for each in of if each.status == UNKNOWN] for host, of in found.items()}
    assert unknown == {host: [UNKNOWN] * (host == "node3") for host in hosts}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"graph": 5}'])
def test_a_damaged_file_is_an_answer_that_is_refused(tmp_path: Path, text: str) -> None:
    fabric = rail(hosts=4, rails=2, spines=2, cables=1)
    (tmp_path / RUNS[1]).mkdir()
    folder, hosts = RunFolder(tmp_path / RUNS[1]), known(fabric)
    for what in (GRAPHS, LOADED, MANAGERS):
        folder.write(f"fabric/default/{what}/node2.json", text)
    found = FabricGate(folder, known_of(hosts), RUNS[1], no_plan).judge()
    assert [each.status for each in found.planes["default"] if each.check == "fabric.graph"] == [UNKNOWN]
    assert UNKNOWN in [each.status for each in found.hosts["node2"]]
    assert list(judge_load(folder, known_of(hosts)))
    assert seen_managers(folder)["default"].managers is None


def test_a_neighbors_name_of_a_port_makes_a_number_of_63_bits() -> None:
    assert port_number("swp1s2") == 1002
    assert port_number("/".join(["999999999"] * 20)) < 2**63
