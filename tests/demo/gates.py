# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One run of the demo's gates: the actions that a playbook calls, on recorded facts, a simulated fabric and a simulated sweep."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ansible_collections.rdma.cluster.plugins.action import fabric_discover, gate, pair_plan
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.managers import read_managers
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.read import read_fabric
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.tools import Asked, Tools
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.readings import (
    FABRIC,
    GRAPHS,
    MANAGERS,
    READERS,
    folder_of,
    is_whole,
    reading_of,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.evidence import AGAIN, SWEEP
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.expected import Limit, limits
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.schedule import planned_meetings
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.end import RunEnd
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.summary import stage_block
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.stages import under_way
from lab.fabric_state import Fabric
from tests.simulator.actions import act
from tests.simulator.sweeps import EFFICIENCY, NOISE
from tests.verify.fabric import OnFabric

STAGES = ("preflight", "driver", "link", "fabric", "pairs")
PLANE = "compute"
LATENCY_USEC = 1.9


class Run:
    """One run. measured: how many pairs its simulated sweep had."""

    def __init__(
        self,
        base: Path,
        number: int,
        intents: Mapping[str, Intent],
        facts: Mapping[str, Mapping[str, Any]],
        fabric: Fabric,
        *,
        slow: Mapping[tuple[str, str], float] | None = None,
    ) -> None:
        """base: the folder of all runs; number: of the run; intents, facts: by host.

        slow: (host, rail) → the share of its bandwidth that a port reaches in the simulated sweep, where that is not 1.
        """
        self.folder = RunFolder(base / f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{number}")
        self.folder.path.mkdir()
        self.intents, self.facts, self.fabric, self.slow = intents, facts, fabric, slow or {}
        self.measured = 0
        self._chance = random.Random(number)
        for host, intent in intents.items():
            self.folder.write_json(self.folder.host_file("intent", host), intent)
            self.folder.write_json(self.folder.host_file("facts", host), facts[host])

    def judge(self, say: Callable[[str], None], *, measure: str = "auto") -> RunEnd:
        """Run every gate, hand its block of the summary to `say`, and write the report. measure: as rdma_measure."""
        for stage in STAGES:
            begun = time.monotonic()
            for host in self.intents:
                self.folder.write_findings(stage, host, [under_way(stage, host)])
            if stage == "link":
                self._read(MANAGERS)
            elif stage == "fabric":
                self._read(GRAPHS)
            elif stage == "pairs":
                self._measure(measure)
            self._act(gate, stage=stage, scope="fleet")
            for host in self.intents:
                self._act(gate, host, stage=stage, scope="host", fail_host=True)
            decision = self._act(gate, stage=stage, scope="decide", batch=False)["msg"]
            names = (*self.folder.hosts_of(stage), *self.folder.groups_of(stage))
            findings = [finding for name in names for finding in self.folder.read_findings(stage, name)]
            say(stage_block(stage, findings, decision, time.monotonic() - begun))
        end = RunEnd(self.folder, [], check_mode=False, unreachable=[])
        end.write()
        self._act(fabric_discover, graphs=self.folder.read_json(FABRIC)["planes"], planes=[PLANE])
        self.folder.link_latest()
        return end

    def _act(self, module: Any, host: str = "", **options: Any) -> dict[str, Any]:
        """The result of an action for a host; one that runs once, for the first."""
        return act(module, self.folder, [*self.intents], host, **options)

    def _read(self, what: str) -> None:
        """Read the fabric with the real tools and store the answer: from one host, and from another if that one did not see all of it."""
        for host in list(self.intents)[:READERS]:
            runner, asked = OnFabric(self.fabric, f"{host} mlx5_0"), Asked(PLANE, data=True)
            # The hosts are not this machine: none of its files is about them.
            root, graph = SysRoot(str(self.folder.path)), None
            if what == GRAPHS:
                read = read_fabric(runner, root, asked)
                graph, managers = read.graph.to_dict(), read.managers
            else:
                managers = read_managers(Tools(runner, root, asked), identify=True)
            known = None if managers.known is None else [asdict(each) for each in managers.known]
            answer = {"graph": graph, "subnet_managers": known, "no_subnet_manager": managers.why_not, "read_at": time.time()}
            reading = reading_of(what, PLANE, host, answer)
            self.folder.write_json(self.folder.host_file(folder_of(what, PLANE), host), reading.to_dict())
            if is_whole(what, reading):
                break

    def _measure(self, measure: str) -> None:
        """What is not proven, then its suspects again."""
        for name, kind in ((SWEEP, "sweep"), (AGAIN, "suspects")):
            planned = self._act(pair_plan, kind=kind, measure=measure, outside=[], sources=8)
            if planned["hosts"]:
                self._sweep(name)

    def _sweep(self, name: str) -> None:
        """Results that nobody measured for a plan: what link and PCIe path of both ends allow, less noise and the slow ports."""
        plan = self.folder.read_json(f"{name}/plan.json")
        allowed = limits(plan, self.intents, {host: from_dict(facts) for host, facts in self.facts.items()})
        lines: dict[str, list[str]] = {host: [] for host in plan["hosts"]}
        for rail, number, server, client in planned_meetings(plan):
            ends = [(plan["hosts"][end], plan["rails"][rail]["name"]) for end in (server, client)]
            best = min(limit.gbps for host, of in ends if isinstance(limit := allowed[host][of], Limit))
            left = min(self.slow.get(end, 1.0) for end in ends)
            figures = [min(best, best * EFFICIENCY[1] * left * self._chance.gauss(1.0, NOISE)), LATENCY_USEC]
            self.measured += 1
            for test, figure in enumerate(figures[: len(plan["tests"])]):
                lines[plan["hosts"][client]].append(f"[{rail},{number},{server},{client},{test},0,{figure:.2f},6.21,0.1]\n")
        for host, of_host in lines.items():
            self.folder.write(self.folder.host_file(name, host, ".jsonl"), "".join(of_host))
            self.folder.write_json(self.folder.host_file(name, host, ".end.json"), {"finished": True, "seconds": 9.0, "reason": ""})
            quiet = {"seconds": 40.0, "risen": {}, "netdev": None, "priorities": {}, "cnps": {}}
            counters = {each["name"]: quiet for each in plan["rails"]}
            self.folder.write_json(self.folder.host_file(name, host, ".counters.json"), counters)
