# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs whose hosts hang on a fabric, with sweeps and loads that nobody measured: what a pair gets is reckoned from the uplinks."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ansible_collections.rdma.cluster.plugins.action import gate, pair_plan
from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.read import normalize
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.evidence import Evidence
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.fleet import Fleet, measurable_hosts
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.plan import plan as plan_plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.schedule import planned_meetings
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder
from tests.unit.builders.fabrics import Fabric
from tests.unit.builders.hosts import lab_facts

#: What a pair of these cards reaches alone.
GBPS = 390.0
FACTS = lab_facts()
IDLE: dict[str, Any] = {"gpu_processes": [], "jobs": []}
BUSY = {"gpu_processes": [], "jobs": [{"pid": 815, "name": "slurmstepd"}]}


def of_host(fabric: Fabric, host: str, table: Sequence[int] | None = None, **pairs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Intent and facts of a host with the HCAs that a fabric has of it: NDR behind Gen5 x16, rails mlx5_0 → rail0 of plane "default".

    table: the P_Keys of its ports.
    """
    rails, devices = [], {}
    for name, its in fabric.nodes.items():
        if its["kind"] == "host" and its["name"] == host:
            device, guid = name.split()[1], str(its["guid"])[2:]
            link = {"address": f"0000:{16 + len(rails):02x}:00.0", "speed_gtps": 32.0, "width": 16}
            known = {"link_layer": "InfiniBand", "netdev": None, "rate_gbps": 400.0, "width": 4, "speed": "NDR", "rocev2": {}, "gids": []}
            soft = FACTS["devices"]["rxe_rail0"]
            keys = None if table is None else {str(index): key for index, key in enumerate(table)}
            port = {**soft["ports"]["1"], **known, "pkeys": keys}
            devices[device] = {
                **soft, "software": False, "driver": "mlx5_core", "node_guid": ":".join(guid[at : at + 4] for at in range(0, 16, 4)),
                "pci": {**link, "narrowest": link}, "ports": {"1": port},
            }  # fmt: skip
            rails.append({"name": f"rail{device[-1]}", "nic": {"pci": link["address"]}, "link_layer": "infiniband"})
    intent = normalize({"rdma_rails": rails, "rdma_pairs": {"latency_command": "none", **pairs}})
    return intent, {
        **FACTS,
        "load": IDLE,
        "devices": devices,
        "session": {"address": f"10.0.0.{host.removeprefix('node')}", "netdev": "eth0"},
    }


class FabricRun:
    """A run that has begun the pairs stage. graph: whether its fabric stage has read the graph; pairs: of rdma_pairs.

    tables: host → the P_Keys of its ports, where they have any.
    """

    def __init__(
        self, path: Path, fabric: Fabric, *, graph: bool = True, tables: Mapping[str, Sequence[int]] | None = None, **pairs: Any
    ) -> None:
        path.mkdir(exist_ok=True)
        self.folder, self.fabric = RunFolder(path), fabric
        self.load_allowed: set[str] = set()
        self.hosts = list(dict.fromkeys(its["name"] for its in fabric.nodes.values() if its["kind"] == "host"))
        for host in self.hosts:
            self.intent, facts = of_host(fabric, host, (tables or {}).get(host), **pairs)
            self.folder.write_json(self.folder.host_file("intent", host), self.intent)
            self.folder.write_json(self.folder.host_file("facts", host), facts)
            self.folder.write_findings("pairs", host, [])
        if graph:
            self.saw(fabric)

    def works(self, host: str, load: Mapping[str, Any] | None) -> FabricRun:
        """Let a job have begun on a host."""
        name = self.folder.host_file("facts", host)
        self.folder.write_json(name, {**self.folder.read_json(name), "load": load})
        return self

    def saw(self, *planes: Fabric, **changed: Any) -> None:
        """Let the fabric stage have read these; changed: in what it has written of each."""
        known = [{**plane.graph().to_dict(), **changed} for plane in planes]
        self.folder.write_json("fabric.json", {"schema": 1, "planes": known})

    @property
    def fleet(self) -> Fleet:
        return Fleet.of(measurable_hosts(self.folder, self.folder.hosts_of("pairs")))

    def sweep(
        self, slow: Iterable[str] = (), *, finished: bool = True, schedule: Any = None, gpu: Mapping[str, float | None] | None = None
    ) -> FabricRun:
        """Let it have measured all pairs, one after the other; slow: hosts that reach a tenth.

        gpu: host → the share that it reaches from its GPU, None: registration is refused; 1 where it is not named.
        """
        fleet = self.fleet
        tests = plan_plan.tests_of(self.intent)
        plan = plan_plan.make_plan(
            "S1", hosts=fleet.hosts, rails=fleet.rails, of=fleet.endpoints, tests=tests, schedule=schedule or {"kind": "full"}
        )
        self.folder.write_json("pairs/plan.json", plan)
        bad = {fleet.hosts.index(host) for host in slow}
        rows = [[*where, 0, 0, GBPS * (0.1 if bad & {*where[2:]} else 1.0), 9.0, 0.1] for where in planned_meetings(plan)]
        for where in planned_meetings(plan) if gpu is not None else ():
            shares = [gpu.get(fleet.hosts[end], 1.0) for end in where[2:]]
            least = None if None in shares else min(each for each in shares if each is not None)
            refused = [None, 9.0, 0.1, "gpu_memory", "Couldn't allocate MR"]
            rows.append([*where, 1, 0, *(refused if least is None else [GBPS * least, 9.0, 0.1])])
        self._write("pairs", plan, rows, finished=finished)
        return self

    def _write(self, name: str, plan: dict[str, Any], rows: list[list[Any]], *, finished: bool = True) -> None:
        for number, host in enumerate(plan["hosts"]):
            text = "".join(json.dumps(row) + "\n" for row in rows if row[3] == number)
            self.folder.write(self.folder.host_file(name, host, ".jsonl"), text)
            self.folder.write_json(self.folder.host_file(name, host, ".end.json"), {"finished": finished, "seconds": 9.0, "reason": ""})
            rails = [each["name"] for each in plan["rails"]]
            quiet = {rail: {"seconds": 40.0, "risen": {}, "netdev": rail, "priorities": {}, "cnps": {}} for rail in rails}
            self.folder.write_json(self.folder.host_file(name, host, ".counters.json"), quiet)

    def plan(self, playing: Iterable[str] | None = None) -> dict[str, Any]:
        """What the action plans."""
        return self._action(pair_plan, playing).work({"kind": "spines"})

    def part(self, playing: Iterable[str] | None = None) -> dict[str, Any]:
        """What the action plans between partitions."""
        return self._action(pair_plan, playing).work({"kind": "isolation"})

    def across(self) -> dict[str, Any]:
        """What the action plans across rails."""
        return self._action(pair_plan).work({"kind": "cross"})  # type: ignore[no-any-return]

    def cross_measured(self, share: Callable[[Sequence[str], Sequence[str]], float | None]) -> FabricRun:
        """Let what was planned across rails be measured. share: (rail, leaf) of the sender and of the receiver → of GBPS, None: none."""
        plan = self.folder.read_json("pairs/cross/plan.json")
        columns = {name: of for each in self.folder.read_json("pairs/cross.json").values() for name, of in each["columns"].items()}
        rows = []
        for where in planned_meetings(plan):
            of = columns[plan["rails"][where[0]]["name"]]
            gbps = share(of[plan["hosts"][where[3]]], of[plan["hosts"][where[2]]])
            rows.append([*where, 0, 0, *([None, 9.0, 0.1, "dead", "no route"] if gbps is None else [GBPS * gbps, 9.0, 0.1])])
        self._write("pairs/cross", plan, rows)
        return self

    def tried(
        self, through: Iterable[tuple[str, str]] = (), kind: str = "retry_exceeded", lost: Iterable[tuple[str, str]] = ()
    ) -> FabricRun:
        """Let what was planned between partitions be tried. through, lost: (column, server) of what succeeds, and of what has no record."""
        plan = self.folder.read_json("pairs/isolation/plan.json")
        rows = []
        for where in planned_meetings(plan):
            named = plan["rails"][where[0]]["name"], plan["hosts"][where[2]]
            good, bad = [0, 0, GBPS, 9.0, 0.1], [0, 0, None, 9.0, 0.1, kind, "Failed status 12"]
            rows += [] if named in lost else [[*where, *(good if named in through else bad)]]
        self._write("pairs/isolation", plan, rows)
        return self

    def _action(self, module: Any, playing: Iterable[str] | None = None) -> Any:
        action = module.ActionModule.__new__(module.ActionModule)
        action.folder, action._task = self.folder, SimpleNamespace(check_mode=False)
        action._templar = SimpleNamespace(template=lambda value: value)
        hosts = self.hosts if playing is None else list(playing)
        play = {"ansible_play_hosts": hosts, "ansible_play_hosts_all": self.hosts, "inventory_hostname": hosts[0]}
        hostvars = {host: {"rdma_load_allowed": host in self.load_allowed} for host in self.hosts}
        action.variables = {**play, "hostvars": hostvars}
        return action

    def load(self, spread: float = 1.0, lost: Iterable[tuple[int, int]] = ()) -> FabricRun:
        """Let what was planned be measured. spread: what the fabric carries of what its uplinks could.

        lost: what left no record, (-1 for the last round, pair).
        """
        plan, rows = self.folder.read_json("pairs/spines/plan.json"), []
        uplinks = Counter(a[0] for a, b in self.fabric.cables.items() if a[0].startswith("leaf") and b[0].startswith("spine"))
        count = len(plan["schedule"]["rails"][0])
        for number in range(count):
            ends = [
                (rail, server, client, *(self._leaf(plan, rail, host) for host in (client, server)))
                for rail, rounds in enumerate(plan["schedule"]["rails"])
                for server, client in rounds[number]
            ]
            sent, received = Counter(each[3] for each in ends), Counter(each[4] for each in ends)
            for pair, (rail, server, client, one, other) in enumerate(ends):
                share = min(1.0, spread * min(uplinks[one] / sent[one], uplinks[other] / received[other]))
                if (number - count, pair) not in set(lost):
                    rows.append([rail, number, server, client, 0, 0, GBPS * share, 9.0, 0.1])
        self._write("pairs/spines", plan, rows)
        return self

    def _leaf(self, plan: dict[str, Any], rail: int, host: int) -> str:
        return self.fabric.cables[f"{plan['hosts'][host]} mlx5_{plan['rails'][rail]['name'][-1]}", 1][0]

    def judged(self, check: str = "pair.oversubscription") -> list[Finding]:
        """What the gate of the pairs stage says of a whole rail, of hosts and then of planes."""
        by_host = self._action(gate)._judge_pairs(measurable_hosts(self.folder, self.folder.hosts_of("pairs")))
        planes = [finding for plane in self.folder.groups_of("pairs") for finding in self.folder.read_findings("pairs", plane)]
        return [each for each in (*(each for of in by_host.values() for each in of), *planes) if each.check == check]

    def evidence(self, name: str) -> Evidence:
        found = Evidence.of(self.folder, name, self.fleet.intents, self.fleet.facts)
        assert found is not None
        return found
