# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes that cannot be distinguished, or are on another plane than planned: small fabrics with the real opensm and the real tools."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.read import read_fabric
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.tools import Asked
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.gate import FabricGate
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder
from lab import fabric, fabric_faults
from lab.fabric import Fabric, FabricRequest
from lab.fabric_plan import Shape
from tests.unit.builders.known import known_of
from tests.verify.fabric import PLANE, OnFabric, Stage, brief, known

#: Two planes, whose hosts have a rail on each; and a fabric whose switches nobody has named.
ONE, OTHER, UNNAMED = "mfabric4", "mfabric5", "mfabric6"
SHAPE = Shape("leafspine", 4, 2)
HOSTS = [f"node{number}" for number in range(1, 5)]
SWITCHES = f"plane {PLANE}"


def there_is(name: str, shape: Shape, request: FabricRequest | None = None) -> Iterator[Fabric]:
    fabric.up(name, shape, request)
    yield fabric.load(name)
    fabric.down(name)


@pytest.fixture(scope="module")
def one() -> Iterator[Fabric]:
    yield from there_is(ONE, SHAPE)


@pytest.fixture(scope="module")
def other() -> Iterator[Fabric]:
    yield from there_is(OTHER, SHAPE, FabricRequest(node="node1 mlx5_1"))


@pytest.fixture(scope="module")
def unnamed() -> Iterator[Fabric]:
    yield from there_is(UNNAMED, Shape("leafspine", 4, 1), FabricRequest(named=False))


def planned(there: Fabric, folder: Path, text: str | None = None) -> Stage:
    return Stage(folder, there, {"plan": "cabling.yml", "ratio": 1.0}, text or there.folder.cabling.read_text())


@pytest.mark.parametrize("with_plan", [True, False], ids=["planned", "unplanned"])
@pytest.mark.parametrize(
    ("given", "places"),
    [
        (("leaf1", "leaf2"), "leaf1 behind spine1 port 1 and leaf2 behind spine1 port 3"),
        (("spine1", "spine2"), "spine1 behind leaf1 port 5 and spine2 behind leaf1 port 7"),
        (("node4 mlx5_0", "node2 mlx5_0"), "node2 mlx5_0 behind leaf1 port 3 and node4 mlx5_0 behind leaf2 port 3"),
        (("node2 mlx5_1", "node2 mlx5_0"), "node2 mlx5_0 behind leaf1 port 3 and node2 mlx5_1 behind leaf1 port 4"),
    ],
    ids=["two leaves", "two spines", "two hosts", "two cards of a host"],
)
def test_two_nodes_with_one_guid_are_one_finding_by_their_names(
    one: Fabric, tmp_path: Path, given: tuple[str, str], places: str, with_plan: bool
) -> None:
    """given: the second node is given the GUID of the first."""
    of, to = given
    host = SWITCHES if to in {"leaf2", "spine2"} else "node2"
    stage = planned(one, tmp_path) if with_plan else Stage(tmp_path, one, {"ratio": 1.0})
    assert brief(stage.run()) == []
    guid = f"{one.plan.guid(of):#x}"
    fabric_faults.console(ONE, f'Guid "{to}" {guid}')
    try:
        found = stage.run()
    finally:
        fabric_faults.console(ONE, f'Guid "{to}" {one.plan.guid(to):#x}')
    assert brief(found) == [(host, "fabric.graph", "error", ", ".join(sorted((of, to))))]
    (answer,) = [each.observed for each in (*found.hosts.get(host, ()), *found.planes[PLANE]) if each.status == "error"]
    assert answer.startswith(f"{places} have the same GUID {one.plan.guid(of):#018x}")
    assert brief(stage.run()) == []


def test_a_plan_with_one_guid_twice_is_reported_by_its_line(one: Fabric, tmp_path: Path) -> None:
    first, second = (f"{one.plan.guid(name):#018x}" for name in ("leaf1", "leaf2"))
    found = planned(one, tmp_path, one.folder.cabling.read_text().replace(second, first)).run()
    assert brief(found) == [(SWITCHES, "intent.value", "error", "rdma_fabric.planes.default.plan")]
    assert "line 3: leaf2 and leaf1 have the same GUID" in found.planes[PLANE][0].observed


def test_switches_that_nobody_has_named_are_reported_once(unnamed: Fabric, tmp_path: Path) -> None:
    found = planned(unnamed, tmp_path).run()
    assert brief(found) == [(SWITCHES, "fabric.graph", "warning", "switches without a name")]
    assert [each.status for each in found.planes[PLANE] if each.check == "fabric.cabling"] == ["ok"]


def test_a_plan_by_names_does_not_find_them_and_says_so(unnamed: Fabric, tmp_path: Path) -> None:
    nameless = re.sub(r'guid: "\w+", ', "", unnamed.folder.cabling.read_text())
    found = planned(unnamed, tmp_path, nameless).run()
    assert brief(found) == [(SWITCHES, "fabric.graph", "unknown", "switches without a name")]
    assert "the planned leaf1, leaf2, spine1, spine2 cannot be matched" in found.planes[PLANE][0].observed


PLANES = {"blue": (ONE, "mlx5_0"), "red": (OTHER, "mlx5_1")}


def two_planes(folder: Path, fabrics: dict[str, Fabric]) -> Any:
    """The stage over both planes: a host's first rail is planned on blue, its second one on red."""
    hosts = known(fabrics["blue"])
    for its in hosts.values():
        its["intent"]["fabric"]["planes"] = {plane: {"ratio": None, "plan": None, "subnet_manager": None} for plane in PLANES}
        for rail, plane in zip(its["intent"]["rails"], PLANES, strict=True):
            rail["plane"] = plane
    where = RunFolder(folder)
    for plane, there in fabrics.items():
        facts = read_fabric(OnFabric(there, f"node1 {PLANES[plane][1]}"), SysRoot("/"), Asked(plane))
        reading = {"graph": facts.graph.to_dict(), "subnet_managers": None, "no_subnet_manager": None, "read_at": 3600.0}
        where.write_json(f"fabric/{plane}/graphs/node1.json", reading)
    return FabricGate(where, known_of(hosts), "20261122T120000Z-1", str).judge()


@pytest.fixture(scope="module")
def planes(one: Fabric, other: Fabric) -> dict[str, Fabric]:
    """Each fabric keeps the cables of one rail; no test after these needs the others."""
    for name, device in ((ONE, "mlx5_1"), (OTHER, "mlx5_0")):
        for host in HOSTS:
            fabric_faults.cut(name, f"{host} {device}")
    return {"blue": one, "red": other}


def test_hosts_whose_ports_are_on_the_planned_planes_have_no_finding(planes: dict[str, Fabric], tmp_path: Path) -> None:
    assert brief(two_planes(tmp_path, planes)) == []


def test_ports_on_each_others_plane_are_reported_by_their_places(planes: dict[str, Fabric], tmp_path: Path) -> None:
    """node3's two cables are exchanged between the planes."""
    for name, (out, back) in {ONE: ("mlx5_0", "mlx5_1"), OTHER: ("mlx5_1", "mlx5_0")}.items():
        fabric_faults.cut(name, f"node3 {out}")
        fabric_faults.restore(name, f"node3 {back}")
    found = two_planes(tmp_path, planes)
    assert [(each.check, each.status, each.observed) for each in found.hosts["node3"] if each.status == "error"] == [
        ("fabric.cabling", "error", "node3 mlx5_0 (rail0) is on plane red (leaf2 port 1), planned plane blue"),
        ("fabric.cabling", "error", "node3 mlx5_1 (rail1) is on plane blue (leaf2 port 2), planned plane red"),
    ]
    assert {host for host, *_rest in brief(found)} == {"node3"}
