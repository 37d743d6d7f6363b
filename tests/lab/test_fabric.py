# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A simulated fabric of eight hosts with the real ibsim, opensm and tools, where they are installed. No root, seconds."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.graph import Graph
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.read import read_fabric
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.tools import Asked as Reading
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.judge import Asked, judge
from lab import fabric, fabric_faults, preflight
from lab.fabric import FabricRequest
from lab.fabric_plan import Shape
from lab.paths import FabricFolder
from lab.shell import ENVIRONMENT
from tests.verify.fabric import OnFabric

NAME = "test"
CABLE = re.compile(r"^(?:SW|CA) +\d+ +(\d+) 0x[0-9a-f]{16} (\d+x \w+) - .*? \d+ +(\d+) 0x[0-9a-f]{16} \( '(.*?)' - '(.*?)' \)$")

MISSING = [name for name in preflight.FABRIC_COMMANDS if shutil.which(name, path=ENVIRONMENT["PATH"]) is None]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FabricFolder]:
    patch = pytest.MonkeyPatch()
    patch.setenv("RDMA_LAB_DIR", str(tmp_path_factory.mktemp("lab")))
    fabric.up(NAME, Shape("rail", 8, 2), FabricRequest(named=False))
    yield FabricFolder.of(NAME)
    fabric.down(NAME)
    patch.undo()


def ask(*words: str, node: str | None = None, status: int = 0) -> str:
    """What a real tool prints on the fabric; AssertionError with what it said if it ends otherwise."""
    there = fabric.load(NAME)
    argv, environment = fabric.tool(there, words, node=node)
    done = subprocess.run(argv, env=environment, cwd=there.folder.clients, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


def cables(folder: FabricFolder) -> dict[str, str]:
    """ "leaf1/9 spine1/1" → "4x HDR", as the real ibnetdiscover finds them, each cable from both sides."""
    found = [CABLE.match(line) for line in ask("ibnetdiscover", "-p", "--node-name-map", str(folder.name_map)).splitlines()]
    return {f"{m[4]}/{m[1]} {m[5]}/{m[3]}": m[2] for m in found if m}


def test_what_is_discovered_is_what_was_planned(folder: FabricFolder) -> None:
    plan = fabric.load(NAME).plan
    both = {f"{a} {b}" for a, b in plan.cables()} | {f"{b} {a}" for a, b in plan.cables()}
    assert len(both) == 64
    assert cables(folder) == dict.fromkeys(both, "4x HDR")
    assert "0 bad nodes found" in ask("ibqueryerrors")


def test_the_real_manager_is_master_where_it_was_put(folder: FabricFolder) -> None:
    guid = fabric.load(NAME).plan.guid("node1 mlx5_0") + 1
    assert f"sm guid {guid:#x}" in ask("sminfo", node="node8 mlx5_1")
    assert "SMINFO_MASTER" in ask("sminfo")


def test_a_cable_is_cut_and_restored(folder: FabricFolder) -> None:
    before = cables(folder)
    fabric_faults.cut(NAME, "leaf1/9")
    assert set(before) - set(cables(folder)) == {"leaf1/9 spine1/1", "spine1/1 leaf1/9"}
    fabric_faults.restore(NAME, "leaf1/9")
    assert cables(folder) == before


def test_a_switch_is_cut_and_restored(folder: FabricFolder) -> None:
    before = cables(folder)
    fabric_faults.cut(NAME, "spine2")
    assert not [cable for cable in cables(folder) if "spine2" in cable]
    fabric_faults.restore(NAME, "spine2")
    assert cables(folder) == before


def test_a_cable_stays_degraded_through_a_sweep_until_it_is_restored(folder: FabricFolder) -> None:
    before = cables(folder)
    fabric_faults.degrade(NAME, "node3 mlx5_1", 1, "EDR")
    fabric_faults.cut(NAME, "leaf1/9")
    fabric_faults.restore(NAME, "leaf1/9")
    changed = {cable: now for cable, now in cables(folder).items() if now != before[cable]}
    assert changed == dict.fromkeys(("node3 mlx5_1/1 leaf2/3", "leaf2/3 node3 mlx5_1/1"), "1x EDR")
    fabric_faults.restore(NAME, "node3 mlx5_1")
    assert cables(folder) == before


def test_two_cables_are_swapped_and_swapped_back(folder: FabricFolder) -> None:
    before = cables(folder)
    fabric_faults.swap(NAME, "node3 mlx5_0", "node4 mlx5_1")
    assert {"node3 mlx5_0/1 leaf2/4", "node4 mlx5_1/1 leaf1/3"} <= set(cables(folder))
    fabric_faults.swap(NAME, "node3 mlx5_0", "node4 mlx5_1")
    assert cables(folder) == before


def test_counters_are_what_they_were_set_to(folder: FabricFolder) -> None:
    fabric_faults.counter(NAME, "leaf2", 3, "SymbolErrorCounter", 4711)
    fabric_faults.counter(NAME, "node5 mlx5_0", 1, "PortUnicastXmitPkts", 12345678901)
    assert "port 3: [SymbolErrorCounter == 4711]" in ask("ibqueryerrors", status=1)
    guid = fabric.load(NAME).plan.guid("node5 mlx5_0") + 1
    assert "PortUnicastXmitPkts:.............12345678901" in ask("perfquery", "-x", "-G", f"{guid:#x}", "1")


def test_a_second_manager_stands_by_and_takes_over(folder: FabricFolder) -> None:
    fabric.second_manager(NAME, None, {"sm_priority": "0"})
    assert fabric.opensm.role_of(fabric.opensm.read_log(folder.manager(2))) == "standby"
    fabric.second_manager(NAME, "node3 mlx5_0", {"sm_priority": "9"})
    guid = fabric.load(NAME).plan.guid("node3 mlx5_0") + 1
    assert f"sm guid {guid:#x}" in ask("sminfo")


def test_a_killed_tool_does_not_keep_its_place(folder: FabricFolder) -> None:
    there = fabric.load(NAME)
    for _client in range(12):
        argv, environment = fabric.tool(there, ["saquery", "-p"])
        child = subprocess.Popen(argv, env=environment, cwd=folder.clients, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        child.kill()
        child.wait()
    assert "SMINFO_MASTER" in ask("sminfo")


def test_two_fabrics_are_up_side_by_side(folder: FabricFolder) -> None:
    fabric.up("other", Shape("leafspine", 4, 1))
    try:
        argv, environment = fabric.tool(fabric.load("other"), ["ibnetdiscover", "-p"])
        clients = FabricFolder.of("other").clients
        answer = subprocess.run(argv, env=environment, cwd=clients, capture_output=True, text=True, timeout=30, check=True).stdout
        assert len([line for line in answer.splitlines() if line.startswith("CA")]) == 4
        assert len(cables(folder)) == 64
    finally:
        fabric.down("other")
    assert not FabricFolder.of("other").path.exists()


# What the fabric stage makes of it, without a plan and without a ratio


@pytest.fixture(scope="module", params=[8, 4], ids=["even", "thin"])
def two_leaves(request: pytest.FixtureRequest, folder: FabricFolder) -> Iterator[int]:
    """Sixteen hosts on two leaves below two spines, with so many uplinks of a leaf; the folder of the lab is the other fabric's."""
    fabric.up("leaves", Shape("leafspine", 16, 1, spines=2, uplinks=request.param, ports=20))
    yield request.param
    fabric.down("leaves")


def read(node: str | None = None) -> Graph:
    return read_fabric(OnFabric(fabric.load("leaves"), node), SysRoot("/"), Reading("default")).graph


def troubles(graph: Graph, **asked: float) -> list[tuple[str, str, str]]:
    found = judge(graph, Asked(**asked)).findings  # type: ignore[arg-type]
    return [(each.check, each.status, each.observed) for each in found if each.status not in ("ok", "not_applicable")]


def test_an_oversubscription_that_nobody_has_planned_is_a_warning(two_leaves: int) -> None:
    graph = read()
    assert graph.complete
    thin = [("fabric.ratio", "warning", "leaf1, leaf2: 1600 Gb/s from below, 800 Gb/s up: 2")]
    assert troubles(graph) == ([] if two_leaves == 8 else thin)
    assert troubles(graph, ratio=2.0) == []


def test_exchanged_uplinks_are_one_error(two_leaves: int) -> None:
    if two_leaves != 8:
        pytest.skip("of the even fabric")
    first, second = (f"leaf{leaf}/{port}" for leaf, port in ((1, uplink(1, "spine1")), (2, uplink(2, "spine2"))))
    fabric_faults.swap("leaves", first, second)
    try:
        ((check, status, observed),) = troubles(read())
    finally:
        fabric_faults.swap("leaves", first, second)
    assert (check, status) == ("fabric.symmetry", "error")
    assert observed.startswith("leaf1 has 3 × 200 Gb/s to spine1, 5 × 200 Gb/s to spine2, instead of 4 × 200 Gb/s to each; leaf2 has")


def uplink(leaf: int, spine: str) -> int:
    """The first port of a leaf that leads to a spine."""
    ends = [both for both in fabric.load("leaves").plan.cables() if {f"leaf{leaf}", spine} == {end.node for end in both}]
    return min(end.port for both in ends for end in both if end.node == f"leaf{leaf}")


def test_a_host_whose_cable_is_cut_has_not_seen_the_fabric(two_leaves: int) -> None:
    fabric_faults.cut("leaves", "node1 mlx5_0")
    try:
        graph = read("node1 mlx5_0")
    finally:
        fabric_faults.restore("leaves", "node1 mlx5_0")
    assert (len(graph.nodes), graph.links, graph.complete) == (1, [], False)
    assert any("the discovery found no link, only node1" in problem for problem in graph.problems), graph.problems
    assert ("fabric.graph", "unknown") in [(check, status) for check, status, _observed in troubles(graph)]
