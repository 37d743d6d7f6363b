# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Beds of fabrics: generated graphs, captured outputs of infiniband-diags and FRR, and the cables of a mesh."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.read import read_fabric
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.tools import Asked
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.gate import FabricGate
from ansible_collections.rdma.cluster.plugins.plugin_utils._gate.fleet_checks import compared
from ansible_collections.rdma.cluster.plugins.plugin_utils._mesh.judge import check_cables
from ansible_collections.rdma.cluster.plugins.plugin_utils._mesh.reach import check_mesh
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder
from lab.clos_plan import ClosShape, cabling
from tests.faults.beds.scene import Inject, Scene
from tests.unit.builders.blind_hosts import TableRunner
from tests.unit.builders.clos import settings
from tests.unit.builders.fabric_texts import fabric_text
from tests.unit.builders.fabrics import Fabric, leafspine, rail
from tests.unit.builders.known import known_of
from tests.unit.builders.mesh import asked
from tests.unit.plugins.plugin_utils._catalogue.test_sources_results import fabric_hosts
from tests.unit.plugins.plugin_utils._fabric.cabling.test_equal_paths import clos, intent
from tests.unit.plugins.plugin_utils._fabric.test_gate import RUNS, known, no_plan
from tests.unit.plugins.plugin_utils._mesh.test_judge import WELL, mesh
from tests.unit.plugins.plugin_utils._mesh.test_reach import hosts as mesh_hosts

FRR = Path(__file__).parents[2] / "unit/fixtures/frr"
#: The order of a cable's change, as methods of tests.unit.builders.fabrics.Fabric.
CHANGES = ("cut", "swap", "join", "slow", "count", "remove", "name", "guid", "incomplete", "islands")


def _changed(fabric: Fabric, changes: Any) -> Fabric:
    """A fabric after changes: [METHOD, ARGUMENT, …], an end is [NODE, PORT]."""
    for method, *arguments in changes or ():
        ends = [tuple(each) if isinstance(each, list) else each for each in arguments]
        if method not in CHANGES:
            raise ValueError(f"no change {method} of a fabric; they are {', '.join(CHANGES)}")
        if method == "count":
            fabric.count(ends[0], **ends[1])
        elif method == "name":
            fabric.nodes[ends[0]]["name"] = ends[1]
        elif method == "guid":
            fabric.nodes[ends[0]]["guid"] = fabric.nodes[ends[1]]["guid"]
        elif method == "islands":
            _recabled(fabric)
        elif method == "incomplete":
            fabric.complete, fabric.problems = False, [str(ends[0])]
        else:
            getattr(fabric, method)(*ends)
    return fabric


def _recabled(fabric: Fabric) -> None:
    """Connect the first two of four leaves to the first two of four spines only, and the others to the others, by as many cables."""
    for end in [end for end in fabric.cables if end[0].startswith("leaf") and fabric.cables.get(end, ("", 0))[0].startswith("spine")]:
        fabric.cut(end)
    for leaf in range(1, 5):
        spines = (1, 2) if leaf <= 2 else (3, 4)
        for cable in range(8):
            fabric.join((f"leaf{leaf}", 9 + cable), (f"spine{spines[cable // 4]}", (leaf - 1) % 2 * 4 + cable % 4 + 1))


def _counted(fabric: Fabric) -> Fabric:
    """A fabric in which every port counts, nothing yet."""
    for end in fabric.cables:
        fabric.count(end, SymbolErrorCounter=0, LinkDownedCounter=0, PortRcvErrors=0, PortXmitWait=0)
    return fabric


def _graphs(make: Any, inject: Inject, earlier: Inject, folder: Path, *, planned: bool) -> list[Finding]:
    """Two runs, of which the first one is the earlier one. always: whether it was as broken."""
    healthy, earlier = make(), inject if inject.get("always") else earlier
    hosts = known_of(known(healthy, ratio=1.0, plan="cables.yml" if planned else None))
    plan, found = healthy.plan_text(), None
    for number, changes in enumerate((earlier, inject)):
        run = RunFolder(folder / RUNS[number])
        run.path.mkdir()
        fabric = _changed(_counted(make()), changes.get("fabric"))
        reading = {"graph": fabric.graph().to_dict(), "subnet_managers": None, "no_subnet_manager": None, "read_at": 1000.0 + 3600 * number}
        run.write_json("fabric/default/graphs/node1.json", reading)
        found = FabricGate(run, hosts, RUNS[number], (lambda _file: plan) if planned else no_plan).judge()
    assert found is not None
    return [each for of in (*found.hosts.values(), *found.planes.values()) for each in of]


def _captured(inject: Inject, earlier: Inject, folder: Path) -> list[Finding]:
    """Two runs over what infiniband-diags printed on a fabric of two hosts (tests/unit/fixtures/fabric)."""
    found: list[Finding] = []
    for number, changes in enumerate((earlier, inject)):
        texts = {name: fabric_text(file) for name, file in _FILES.items()}
        for name, replaced in (changes.get("output") or {}).items():
            for old, new in replaced.items():
                assert old in texts[name], f"{name} does not contain {old!r}"
                texts[name] = texts[name].replace(old, new)
        runner = TableRunner({(name,): text for name, text in texts.items()} | {("saquery",): _NO_OTHER_MANAGER}, ())
        run = RunFolder(folder / RUNS[number])
        run.path.mkdir()
        graph = read_fabric(runner, SysRoot(str(folder)), Asked()).graph
        reading = {"graph": graph.to_dict(), "subnet_managers": None, "no_subnet_manager": None, "read_at": 1000.0 + 3600 * number}
        run.write_json("fabric/default/graphs/node1.json", reading)
        brief = FabricGate(run, known_of(fabric_hosts()), RUNS[number], no_plan).judge()
        found = [each for of in (*brief.hosts.values(), *brief.planes.values()) for each in of]
    return found


_FILES = {"ibnetdiscover": "ibnetdiscover", "iblinkinfo": "iblinkinfo-l", "ibqueryerrors": "ibqueryerrors", "sminfo": "sminfo"}
_NO_OTHER_MANAGER = "IsSM ports\nPortInfoRecord dump:\n\t\tEndPortLid..............1\n\nIsSMdisabled ports\n"


def _routers(inject: Inject, _earlier: Inject, folder: Path) -> list[Finding]:
    """A routed plane as FRR 8.4.4 printed it on each switch. output: switch → command → {old: new} in its text."""
    run, shape = RunFolder(folder / RUNS[0]), ClosShape()
    run.path.mkdir()
    for switch in shape.switches:
        state = json.loads((FRR / f"8.4.4-{switch}.json").read_text(encoding="utf-8"))
        for command, replaced in (inject.get("output") or {}).get(switch, {}).items():
            for old, new in replaced.items():
                assert old in state["texts"][command], state["texts"][command][:600]
                state["texts"][command] = state["texts"][command].replace(old, new)
        state["sysctls"] = {**state.get("sysctls", {}), **(inject.get("sysctls") or {}).get(switch, {})}
        run.write_json(f"fabric/routers/{switch}.json", state)
    planes = {"fab": {"ratio": None, "plan": "cabling.yml", "subnet_manager": None, "routing": settings(spine_asn="own")}}
    intent = {"rails": [], "fabric": {"topology": "switched", "planes": planes, "management": None}}
    hosts = known_of({"host1": {"intent": intent, "facts": {"netdevs": {}, "devices": {}}}})
    brief = FabricGate(run, hosts, RUNS[0], lambda _file: cabling(shape)).judge()
    return [each for of in (*brief.hosts.values(), *brief.planes.values()) for each in of]


def _mesh_cables(inject: Inject, _earlier: Inject, folder: Path) -> list[Finding]:
    """A ring of four hosts with a second cable. ports: host → what its ports see."""
    run = RunFolder(folder / RUNS[0])
    for host, answer in asked(**{**WELL, **(inject.get("ports") or {})}).items():
        run.write_json(run.host_file("cables", host), answer.to_dict())
    return [each for of in check_cables(known_of(mesh()), run).values() for each in of]


def _mesh_plan(inject: Inject, _earlier: Inject, _folder: Path) -> list[Finding]:
    """Three hosts, each with a cable to each other one. cables: those of the rails; planned: those of rdma_fabric.mesh."""
    planned = [_cable(name) for name in inject.get("planned", FULL_MESH)]
    return [each for of in check_mesh(known_of(mesh_hosts(*inject.get("cables", FULL_MESH), mesh=planned))).values() for each in of]


FULL_MESH = ["a1-b2", "b1-c2", "c1-a2"]


def _cable(name: str) -> list[str]:
    return [f"{end[0]}/0000:{int(end[1:]):02x}:00.0" for end in name.split("-")]


def _queue_pairs(inject: Inject, _earlier: Inject, folder: Path) -> list[Finding]:
    """Two hosts of a RoCE plane of four spines. variables: those of NCCL."""
    run, hosts = RunFolder(folder / RUNS[0]), {}
    run.path.mkdir()
    for host in ("node1", "node2"):
        of_host = intent()
        of_host["nccl"]["variables"] = {"NCCL_IB_QPS_PER_CONNECTION": "16", **(inject.get("variables") or {})}
        hosts[host] = {"intent": of_host, "facts": {"netdevs": {}, "devices": {}}}
    found: Mapping[str, list[Finding]] = compared("nccl", known_of(hosts), run, lambda _file: clos(2, 4))
    return [each for of in found.values() for each in of if each.check == "nccl.queue_pairs"]


BEDS = {
    "leaves and spines": Scene(partial(_graphs, leafspine, planned=False), ("fabric", "always")),
    "planned leaves and spines": Scene(partial(_graphs, leafspine, planned=True), ("fabric", "always")),
    "rails": Scene(partial(_graphs, partial(rail, 16, 4), planned=False), ("fabric", "always")),
    "captured fabric": Scene(_captured, ("output",)),
    "routed fabric": Scene(_routers, ("output", "sysctls")),
    "cables of a mesh": Scene(_mesh_cables, ("ports",)),
    "plan of a mesh": Scene(_mesh_plan, ("cables", "planned")),
    "equal paths": Scene(_queue_pairs, ("variables",)),
}
