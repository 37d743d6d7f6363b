# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From a finding on a plane under load to what the next run measures: generated fabrics, loads and readings, two runs each."""

from __future__ import annotations

import time
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs import proofs as pairs_proofs
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.plan.choice import Choice, choose
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.proofs import Port
from tests.unit.builders.fabric_runs import FabricRun
from tests.unit.builders.fabrics import Fabric, leafspine, rail

Change = Callable[[Fabric], object]


def unproven(run: FabricRun) -> set[Port]:
    """The ports that have no proof after a run."""
    proofs = pairs_proofs.read(run.folder.read_json(pairs_proofs.FILE))
    return {(host, rail) for host, rails in run.fleet.endpoints.items() for rail in rails if rail not in proofs.get(host, {})}


def next_choice(run: FabricRun, **options: Any) -> Choice | None:
    """What the run after this one measures."""
    after = FabricRun(run.folder.path.parent / "R2", run.fabric, **options)
    standings = after.fleet.standings(pairs_proofs.read(after.folder.read_json(pairs_proofs.FILE)), time.time(), 168)
    return choose(after.fleet, standings, run.intent["pairs"], remeasure=False, outside={})


def below(*leaves: int, per_leaf: int = 4, rails: int = 1) -> set[Port]:
    hosts = [leaf * per_leaf - at for leaf in leaves for at in range(per_leaf)]
    return {(f"node{host}", f"rail{number}") for host in hosts for number in range(rails)}


def loaded(path: Path, change: Change, *, fabric: Fabric | None = None, **checks: Any) -> FabricRun:
    """A run that has measured all pairs over a fabric which changed meanwhile; checks: of rdma_checks."""
    before = fabric or leafspine(3, 2, 4, 2)
    after = deepcopy(before)
    change(after)
    run = FabricRun(path / "R1", before).sweep()
    rules = {name.replace("__", "."): rule for name, rule in checks.items()}
    for host in run.hosts:
        file = run.folder.host_file("intent", host)
        run.folder.write_json(file, {**run.folder.read_json(file), "checks": rules})
    for what, each, read_at in (("graphs", before, 100.0), ("loaded", after, 110.0)):
        graph = each.graph().to_dict()
        reported = {"graph": graph, "subnet_managers": None, "no_subnet_manager": None, "read_at": read_at}
        run.folder.write_json(f"fabric/default/{what}/node1.json", reported)
    run.judged()
    return run


def partly(fabric: Fabric) -> None:
    fabric.complete = False


@pytest.mark.parametrize(
    ("change", "lost"),
    [
        (lambda fabric: None, set()),
        (lambda fabric: fabric.slow(("leaf2", 5)), set()),
        (lambda fabric: fabric.cut(("leaf2", 5)), below(2)),
        (lambda fabric: fabric.cut(("node3 mlx5_0", 1)), {("node3", "rail0")}),
        (lambda fabric: fabric.remove("leaf3"), below(3)),
        (lambda fabric: fabric.remove("spine1"), below(1, 2, 3)),
        (partly, below(1, 2, 3)),
    ],
    ids=["nothing", "slower", "an uplink", "an HCA", "a leaf", "a spine", "not read whole"],
)
def test_what_hangs_on_a_cable_that_went_is_measured_again(tmp_path: Path, change: Change, lost: set[Port]) -> None:
    run = loaded(tmp_path, change)
    assert unproven(run) == lost
    choice = next_choice(run)
    again = set(choice.hosts[: choice.schedule.get("new", len(choice.hosts))]) if choice else set()
    assert again == {host for host, _rail in lost}


def test_a_cable_above_all_leaves_puts_its_plane_in_doubt(tmp_path: Path) -> None:
    fabric = leafspine(3, 2, 4, 2)
    fabric.node("core1", "switch")
    for spine in (1, 2):
        fabric.join((f"spine{spine}", 40), ("core1", spine))
    assert unproven(loaded(tmp_path, lambda each: each.cut(("core1", 1)), fabric=fabric)) == below(1, 2, 3)


def test_other_rails_of_the_hosts_stay_proven(tmp_path: Path) -> None:
    fabric = rail(hosts=4, rails=2, spines=2, cables=2)
    assert unproven(loaded(tmp_path, lambda each: each.cut(("leaf2", 5)), fabric=fabric)) == {
        (f"node{host}", "rail1") for host in range(1, 5)
    }


MILDER, STRICTER = {"severity": "warning"}, {"severity": "error"}
SILENCED = {"silenced_by": "ops", "reason": "cable 17 is ordered", "until": "2099-01-01"}


@pytest.mark.parametrize(
    ("change", "rule", "lost"),
    [
        (lambda fabric: fabric.cut(("leaf2", 5)), MILDER, set()),
        (lambda fabric: fabric.cut(("leaf2", 5)), SILENCED, set()),
        (lambda fabric: fabric.slow(("leaf2", 5)), STRICTER, below(2)),
    ],
    ids=["milder", "silenced", "stricter"],
)
def test_what_does_not_stop_the_gate_takes_no_proof(tmp_path: Path, change: Change, rule: dict[str, str], lost: set[Port]) -> None:
    assert unproven(loaded(tmp_path, change, fabric__under_load=rule)) == lost


@pytest.mark.parametrize(("spread", "lost"), [(1.0, set()), (0.8, set()), (0.5, below(1, 2))], ids=["ok", "warning", "error"])
def test_a_rail_that_its_uplinks_do_not_carry_is_measured_again(tmp_path: Path, spread: float, lost: set[Port]) -> None:
    run = FabricRun(tmp_path / "R1", leafspine(2, 2, 4, 1)).sweep()
    run.plan()
    run.load(spread).judged()
    assert unproven(run) == lost
    choice = next_choice(run)
    assert (choice.hosts if choice else ()) == tuple(run.hosts if lost else ())


def test_a_load_without_a_figure_puts_its_own_rail_in_doubt(tmp_path: Path) -> None:
    run = FabricRun(tmp_path / "R1", rail(hosts=8, rails=2, spines=2, cables=2, per_leaf=4)).sweep()
    run.plan()
    rails = [each["name"] for each in run.folder.read_json("pairs/spines/plan.json")["rails"]]
    bad, well = run.load(lost=[(-2, 0)]).judged()
    assert (rails, bad.subject, bad.status, well.status) == (["rail0", "rail1"], "rail0", "unknown", "ok")
    assert unproven(run) == {(f"node{host}", "rail0") for host in range(1, 9)}
    choice = next_choice(run)
    assert choice is not None
    assert choice.rails == ("rail0",)


TENANTS = {f"node{host}": (0x7FFF, 0x8001 if host <= 4 else 0x8002) for host in range(1, 9)}


def test_who_gets_through_to_another_partition_tries_again(tmp_path: Path) -> None:
    run = FabricRun(tmp_path / "R1", leafspine(1, 1, 8), tables=TENANTS).sweep()
    run.part()
    (found,) = run.tried(through=[("rail0", "node1")]).judged("pair.isolation")
    assert (found.host, found.status) == ("plane default", "error")
    assert unproven(run) == {("node1", "rail0"), ("node5", "rail0")}
    choice = next_choice(run, tables=TENANTS)
    assert choice is not None
    assert {"node1", "node5"} <= set(choice.hosts)


def test_a_rail_without_a_graph_is_in_doubt_by_the_finding_on_its_first_host(tmp_path: Path) -> None:
    run = FabricRun(tmp_path / "R1", leafspine(1, 1, 8), graph=False, tables=TENANTS).sweep()
    run.part()
    (found,) = run.tried(lost=[("rail0", "node1")]).judged("pair.isolation")
    assert (found.host, found.status) == ("node1", "unknown")
    assert unproven(run) == {("node1", "rail0"), ("node5", "rail0")}


def test_partitions_that_refuse_each_other_stay_proven(tmp_path: Path) -> None:
    run = FabricRun(tmp_path / "R1", leafspine(1, 1, 8), tables=TENANTS).sweep()
    run.part()
    assert [each.status for each in run.tried().judged("pair.isolation")] == ["ok"]
    assert unproven(run) == set()


def test_a_partition_that_nobody_could_try_is_tried_again(tmp_path: Path) -> None:
    run = FabricRun(tmp_path / "R1", leafspine(1, 1, 8), tables=TENANTS).sweep()
    run.part(playing=[f"node{host}" for host in range(1, 5)])
    (found,) = run.judged("pair.isolation")
    assert found.observed == "no host is known to be healthy in partition 0x8002"
    assert unproven(run) == {(f"node{host}", "rail0") for host in range(5, 9)}
