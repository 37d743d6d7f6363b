# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is judged by graphs and measurements: each tool and each file of the run's folder is taken away, and nothing stays `ok`.

Fabrics and measurements are made up, or were printed by the real tools over a stand-in of a fabric; readers and gates are the real ones.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import OK, UNKNOWN, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._collectives.judge import judge as judge_nccl
from ansible_collections.rdma.cluster.plugins.module_utils._collectives.result import Expected
from ansible_collections.rdma.cluster.plugins.module_utils._collectives.start import read_output
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.managers import read_managers
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.read import read_fabric
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.tools import Asked, Tools
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import all_checks
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.sources import COMMAND, RESULT, Source
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.gate import FabricGate
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.manager_views import Seen
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.managers import check_managers
from ansible_collections.rdma.cluster.plugins.plugin_utils._mesh.judge import check_cables
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.gate.qos_proof import check_traffic
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.path_mtu import FOLDER as PATH_MTU
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.path_mtu import check_path_mtu
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.schedule import planned_meetings
from ansible_collections.rdma.cluster.plugins.plugin_utils._plugin_transfer.plan import FOLDER as TRANSFERS
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder
from lab.clos_plan import ClosShape, cabling
from tests.unit.builders.blind_hosts import FAILING, GARBAGE, GARBLED, MISSING, TIMEOUT, Damage, TableRunner
from tests.unit.builders.clos import settings
from tests.unit.builders.fabric_runs import FabricRun
from tests.unit.builders.fabric_texts import fabric_text
from tests.unit.builders.fabrics import leafspine
from tests.unit.builders.fabrics import rail as rail_fabric
from tests.unit.builders.known import known_of
from tests.unit.builders.mesh import asked
from tests.unit.builders.nccl_texts import H200, Job
from tests.unit.builders.soaks import SoakRun
from tests.unit.builders.transfer_runs import moved, users, verdicts
from tests.unit.plugins.plugin_utils._collectives.test_gate import climbed, judged
from tests.unit.plugins.plugin_utils._fabric.test_gate import RUNS, known, no_plan
from tests.unit.plugins.plugin_utils._mesh.test_judge import WELL as RING_NEIGHBORS
from tests.unit.plugins.plugin_utils._mesh.test_judge import mesh
from tests.unit.plugins.plugin_utils._pairs.gate.test_qos_proof import SENT, WELL, counted, profile
from tests.unit.plugins.plugin_utils._pairs.loads.test_fabric import Run, brief
from tests.unit.plugins.plugin_utils._pairs.loads.test_qos import STILL, counters
from tests.unit.plugins.plugin_utils._pairs.loads.test_qos import judged as judged_load
from tests.unit.plugins.plugin_utils._pairs.plan.test_pair_gpu import measured as measured_from_gpus
from tests.unit.plugins.plugin_utils._pairs.test_path_mtu import fleet as lab_fleet
from tests.unit.plugins.plugin_utils._pairs.test_path_mtu import probed

FRR = Path(__file__).parents[3] / "fixtures/frr"
TRUNCATED = "truncated"
FILE_WAYS = (MISSING, GARBLED, TRUNCATED)
TOOL_WAYS = (MISSING, TIMEOUT, FAILING, GARBLED)
#: source, way, an empty folder → what the gate says; both "" for a run that is well.
Scene = Callable[[str, str, Path], list[Finding]]


def hurt(path: Path, way: str) -> None:
    """Take a file away."""
    if way == MISSING:
        path.unlink()
    elif way == GARBLED:
        path.write_bytes(GARBAGE)
    elif way == TRUNCATED:
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def tools(source: str, way: str) -> TableRunner:
    """The tools of infiniband-diags over the stand-in of a fabric, one of which fails."""
    answers = {
        ("ibnetdiscover",): fabric_text("ibnetdiscover"),
        ("iblinkinfo",): fabric_text("iblinkinfo-l"),
        ("ibqueryerrors",): fabric_text("ibqueryerrors"),
        ("sminfo",): fabric_text("sminfo"),
        ("saquery",): "IsSM ports\nPortInfoRecord dump:\n\t\tEndPortLid..............1\n\nIsSMdisabled ports\n",
    }
    return TableRunner(answers, (), Damage(Source(COMMAND, (source,)), way) if source else None)


def fabric_hosts() -> dict[str, Any]:
    """Intent and facts of the hosts of the outputs in fixtures/fabric."""
    hosts: dict[str, Any] = {}
    for host in (1, 2):
        rails, devices = [], {}
        for rail in (0, 1):
            pci = f"0000:{rail + 1:02x}:00.0"
            guid = f"e09d:7303:0000:0{rail}{host}0"
            port = {"netdev": None, "state": "ACTIVE", "physical_state": "LinkUp", "lid": 6 if rail else (1, 7)[host - 1], "sm_lid": 1}
            rails.append({"name": f"rail{rail}", "nic": {"pci": pci}, "link_layer": "infiniband", "plane": "default", "rate_gbps": None})
            devices[f"mlx5_{rail}"] = {"node_guid": guid, "pci": {"address": pci}, "ports": {"1": port}}
        manager = {"kind": "hosts", "hosts": ["node1"]}
        planes = {"default": {"ratio": None, "plan": None, "subnet_manager": manager}}
        hosts[f"node{host}"] = {"intent": {"rails": rails, "fabric": {"planes": planes}}, "facts": {"netdevs": {}, "devices": devices}}
    return hosts


def discovery(source: str, way: str, folder: Path) -> list[Finding]:
    """Two runs, of which the first was whole; in the second a tool fails, or the file with the graph."""
    found: list[Finding] = []
    for number, run in enumerate(RUNS[:2]):
        of_run = RunFolder(folder / run)
        of_run.path.mkdir()
        failing = source if number and source not in ("", "graph") else ""
        graph = read_fabric(tools(failing, way), SysRoot(str(folder)), Asked()).graph
        reading = {"graph": graph.to_dict(), "subnet_managers": None, "no_subnet_manager": None, "read_at": 1000.0 * (number + 1)}
        path = of_run.write_json("fabric/default/graphs/node1.json", reading)
        if number and source == "graph":
            hurt(path, way)
        brief = FabricGate(of_run, known_of(fabric_hosts()), run, no_plan).judge()
        found = [each for of in (*brief.hosts.values(), *brief.planes.values()) for each in of]
    return found


def leaves_and_spines(source: str, way: str, folder: Path) -> list[Finding]:
    """A fabric whose leaves have the same uplinks, and as many as hosts."""
    run = RunFolder(folder / RUNS[0])
    run.path.mkdir()
    fabric = leafspine()
    reading = {"graph": fabric.graph().to_dict(), "subnet_managers": None, "no_subnet_manager": None, "read_at": 1000.0}
    path = run.write_json("fabric/default/graphs/node1.json", reading)
    if source:
        hurt(path, way)
    brief = FabricGate(run, known_of(known(fabric, ratio=1.0)), RUNS[0], no_plan).judge()
    return [each for of in (*brief.hosts.values(), *brief.planes.values()) for each in of]


def managers(source: str, way: str, folder: Path) -> list[Finding]:
    seen = read_managers(Tools(tools(source, way), SysRoot(str(folder)), Asked()))
    return [each for of in check_managers(known_of(fabric_hosts()), {"default": Seen(seen.known, seen.why_not)}).values() for each in of]


def sweep(source: str, way: str, folder: Path) -> list[Finding]:
    run = FabricRun(folder / "R1", leafspine(1, 1, 4), latency_command="ib_write_lat").sweep()
    plan = run.folder.read_json("pairs/plan.json")
    meetings = [*planned_meetings(plan)]
    for number, host in enumerate(plan["hosts"]):
        latencies = [[*where, 1, 0, 1.5, 1.2, 0.1] for where in meetings if where[3] == number]
        run.folder.append_lines(run.folder.host_file("pairs", host, ".jsonl"), [str(row).replace("'", '"') for row in latencies])
        of_rail = {"seconds": 60.0, "risen": {}, "netdev": None, "priorities": None, "cnps": {}}
        run.folder.write_json(run.folder.host_file("pairs", host, ".counters.json"), {"rail0": of_rail})
    if source == "sweep":
        for host in plan["hosts"]:
            hurt(run.folder.path / run.folder.host_file("pairs", host, ".jsonl"), way)
    if source == "port counters":
        for host in plan["hosts"]:
            hurt(run.folder.path / run.folder.host_file("pairs", host, ".counters.json"), way)
    return [each for check in ("pair.bandwidth", "pair.latency", "pair.errors") for each in run.judged(check)]


def sweep_from_gpus(source: str, way: str, folder: Path) -> list[Finding]:
    run = measured_from_gpus(folder)
    if source:
        for host in run.hosts:
            hurt(run.folder.path / run.folder.host_file("pairs", host, ".jsonl"), way)
    return run.judged("pair.gpu")


def isolation(source: str, way: str, folder: Path) -> list[Finding]:
    red, blue = (0x7FFF, 0x8001), (0x7FFF, 0x8002)
    run = FabricRun(folder / "R1", leafspine(1, 1, 4), tables={"node1": red, "node2": red, "node3": blue, "node4": blue}).sweep()
    run.part()
    run.tried()
    if source:
        for host in run.hosts:
            file = run.folder.path / run.folder.host_file("pairs/isolation", host, ".jsonl")
            if file.exists():
                hurt(file, way)
    return run.judged("pair.isolation")


def soak(source: str, way: str, folder: Path) -> list[Finding]:
    run = SoakRun(folder, errors_per_billion_packets=0.2)
    run.begin()
    run.slices(9)
    if source:
        hurt(run.folder.path / "soak/slices.jsonl", way)
    run.result()
    return run.findings()


def path_mtu(source: str, way: str, folder: Path) -> list[Finding]:
    run = probed(folder, 4, {})
    if source:
        hurt(run.path / run.host_file(PATH_MTU, "node1"), way)
    return [each.finding for each in check_path_mtu(run, lab_fleet(4))]


def plugin_transfer(source: str, way: str, folder: Path) -> list[Finding]:
    known = users(2)
    run = moved(folder, known)
    if source:
        hurt(run.path / run.host_file(TRANSFERS, "node1"), way)
    return [each for of in verdicts(run, known).findings.values() for each in of]


def neighbors(source: str, way: str, folder: Path) -> list[Finding]:
    run = RunFolder(folder / "R1")
    for host, answer in asked(**RING_NEIGHBORS).items():
        path = run.write_json(run.host_file("cables", host), answer.to_dict())
        if source:
            hurt(path, way)
    return [each for of in check_cables(known_of(mesh()), run).values() for each in of]


def spines(source: str, way: str, folder: Path) -> list[Finding]:
    run = FabricRun(folder / "R1", leafspine()).sweep()
    run.plan()
    run.load()
    if source:
        for file in (run.folder.path / "pairs/spines").glob("*.jsonl"):
            hurt(file, way)
    return run.judged()


def across_rails(source: str, way: str, folder: Path) -> list[Finding]:
    run = FabricRun(folder / "R1", rail_fabric(4, 2), schedule="full+cross").sweep()
    run.across()
    run.cross_measured(lambda _one, _other: 1.0)
    if source:
        for file in (run.folder.path / "pairs/cross").glob("*.jsonl"):
            hurt(file, way)
    return run.judged("pair.cross")


def under_load(source: str, way: str, folder: Path) -> list[Finding]:
    run = Run(folder)
    run.load({})
    found = run.judged()
    if not source:
        return found
    hurt(folder / "fabric/blue/loaded/n1.json", way)
    return brief(run.folder)


def ladder(source: str, way: str, folder: Path) -> list[Finding]:
    run = RunFolder(folder / "R1")
    run.path.mkdir()
    climbed(run)
    if source:
        hurt(run.path / "collectives.json", way)
    return [each for of in judged(run).values() for each in of]


def nccl_tests(source: str, way: str, folder: Path) -> list[Finding]:
    text = (H200 / "all_reduce_perf_debug_info.txt").read_bytes()
    output = folder / "output"
    output.write_bytes(text if way != MISSING else b"")
    if way in (GARBLED, TRUNCATED):
        hurt(output, way)
    outcome = read_output(str(output), host="vm", subject="all_reduce_perf", exit_status=None if way == MISSING else 0)
    return judge_nccl(outcome, Expected(2, {"vm": "vm"}, gbytes_per_s=330.0, p2p=True))


def nccl_log(source: str, way: str, folder: Path) -> list[Finding]:
    output = folder / "output"
    output.write_text("".join(Job(hosts=2, gpus=2, hcas=2, per_peer=1, rings=2).lines()), encoding="utf-8")
    if way == MISSING:
        output.write_text("")
    elif way:
        hurt(output, way)
    outcome = read_output(str(output), host="node1", subject="all_reduce_perf", exit_status=0)
    hcas = frozenset({"mlx5_0", "mlx5_1"})
    expected = Expected(4, {"node1": "gpu001", "node2": "gpu002"}, hcas={"node1": hcas, "node2": hcas}, gdr=True)
    return [each for each in judge_nccl(outcome, expected) if each.check in ("collective.transport", "collective.hcas")]


def priority_counters(source: str, way: str, folder: Path) -> list[Finding]:
    of_rail = {"": counted(p3=WELL), MISSING: None, GARBLED: {**counted(p3=WELL), "priorities": None}}.get(way, counted())
    return list(check_traffic("node1", ["rail0"], profile(), {} if of_rail is None else {"rail0": of_rail}, SENT))


def many_to_one(source: str, way: str, folder: Path) -> list[Finding]:
    reported = counters(node1={**STILL, "tx_pause": 12})
    if way == MISSING:
        reported = {}
    elif way == GARBLED:
        reported = {host: {name: {**port, "priorities": None} for name, port in of.items()} for host, of in reported.items()}
    return [judged_load(reported)]


@dataclass(frozen=True)
class Brief:
    """A scene, how the results that it is made of can fail, and which checks it is for, all of them unless it says."""

    scene: Scene
    ways: Mapping[str, tuple[str, ...]]
    checks: frozenset[str] = frozenset(all_checks())


def routers(source: str, way: str, folder: Path) -> list[Finding]:
    """A routed plane as FRR printed it on each switch; the file of one is taken away."""
    run = RunFolder(folder / RUNS[0])
    run.path.mkdir()
    shape = ClosShape()
    for switch in shape.switches:
        run.write_json(f"fabric/routers/{switch}.json", json.loads((FRR / f"8.4.4-{switch}.json").read_text()))
    if source:
        hurt(run.path / "fabric/routers/leaf2.json", way)
    planes = {"fab": {"ratio": None, "plan": "cabling.yml", "subnet_manager": None, "routing": settings(spine_asn="own")}}
    intent = {"rails": [], "fabric": {"topology": "switched", "planes": planes, "management": None}}
    hosts = {"host1": {"intent": intent, "facts": {"netdevs": {}, "devices": {}}}}
    brief = FabricGate(run, known_of(hosts), RUNS[0], lambda _file: cabling(shape)).judge()
    return [each for of in (*brief.hosts.values(), *brief.planes.values()) for each in of]


#: What only a fabric of more than two hosts can be well in.
SHAPE = frozenset({"fabric.symmetry", "fabric.ratio", "fabric.bisection"})
TOOLS = ("ibnetdiscover", "iblinkinfo", "ibqueryerrors")
SCENES = (
    Brief(discovery, {**dict.fromkeys(TOOLS, TOOL_WAYS), "graph": FILE_WAYS}, frozenset(all_checks()) - SHAPE),
    Brief(leaves_and_spines, {"graph": FILE_WAYS}, SHAPE),
    Brief(routers, {"routers": FILE_WAYS}, frozenset({"fabric.bgp"})),
    Brief(managers, dict.fromkeys(("sminfo", "saquery"), TOOL_WAYS)),
    Brief(sweep, dict.fromkeys(("sweep", "port counters"), FILE_WAYS)),
    Brief(sweep_from_gpus, {"sweep from GPUs": FILE_WAYS}),
    Brief(isolation, {"attempts between partitions": FILE_WAYS}),
    Brief(soak, {"slices of a soak": FILE_WAYS}),
    Brief(path_mtu, {"path MTU": FILE_WAYS}),
    Brief(plugin_transfer, {"plugin transfer": FILE_WAYS}),
    Brief(neighbors, {"neighbors of a mesh": FILE_WAYS}),
    Brief(spines, {"load across spines": FILE_WAYS}),
    Brief(across_rails, {"pairs across rails": FILE_WAYS}),
    Brief(under_load, {"graph under load": FILE_WAYS}),
    Brief(ladder, {"ladder": FILE_WAYS}),
    Brief(nccl_tests, {"nccl-tests": FILE_WAYS}),
    Brief(nccl_log, {"NCCL log": FILE_WAYS}),
    Brief(priority_counters, {"priority counters": (MISSING, GARBLED)}, frozenset({"qos.traffic"})),
    Brief(many_to_one, {"priority counters": (MISSING, GARBLED)}, frozenset({"qos.load"})),
)


#: What no scene shows; pair.clock is a warning or nothing, pair.results unknown or nothing, and neither is ever ok.
NOT_SHOWN = (
    ("pair.clock", "attempts of perftest"),
    ("pair.results", "lines of the results"),
    ("qos.load", "many-to-one load"),
    ("collective.pairs", "pair proofs"),
)


def results() -> Iterator[tuple[str, Source, Brief, str]]:
    for check, declared in all_checks().items():
        for source in declared.sources:
            for reported in SCENES:
                if source.kind == RESULT and source.names[0] in reported.ways and check in reported.checks:
                    yield from ((check, source, reported, way) for way in reported.ways[source.names[0]])


def _id(value: object) -> str:
    return value.scene.__name__ if isinstance(value, Brief) else value.words if isinstance(value, Source) else str(value)


@cache
def result_of(scene: Scene, source: str, way: str) -> tuple[Finding, ...] | str:
    """What a scene says, or why it is refused, with the name of what could not be read."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            return tuple(scene(source, way, Path(folder)))
        except ParseError as error:
            if folder not in str(error):
                raise
            return str(error)


@pytest.mark.parametrize(("check", "source", "reported", "way"), [*results()], ids=_id)
def test_a_result_that_is_not_there_is_not_ok(check: str, source: Source, reported: Brief, way: str) -> None:
    well = [each for each in result_of(reported.scene, "", "") if isinstance(each, Finding) and each.check == check]
    assert OK in {each.status for each in well}, f"the check is not ok where all is well: {well}"
    found = result_of(reported.scene, source.names[0], way)
    if isinstance(found, str):
        return
    after = [each for each in found if each.check == check]
    # Of what is cut off, what stands before the cut is known; then another finding stops the gate.
    judged_by = found if way == TRUNCATED else after
    assert OK not in {each.status for each in after} or UNKNOWN in {each.status for each in judged_by}, after
    assert all(each.observed for each in after)


def test_every_result_is_taken_away_somewhere() -> None:
    shown = {(check, source) for check, source, _reported, _way in results()}
    assert [
        (check, source.words)
        for check, declared in all_checks().items()
        for source in declared.sources
        if source.kind == RESULT and (check, source) not in shown
    ] == [*NOT_SHOWN]
