# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Soaks that nobody measured: plans, lines and findings are those of the real actions; the counters of each slice are made up."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.action import soak_plan, soak_result
from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.read import normalize
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.schedule import planned_meetings
from tests.unit.builders.fabric_runs import FabricRun
from tests.unit.builders.fabrics import leafspine

#: A port sends and receives so many packets in a slice, and the counters of a quiet one.
PACKETS = 10**9
QUIET: dict[str, Any] = {
    "seconds": 32.0, "risen": {}, "netdev": None, "priorities": None, "cnps": {}, "packets": {"sent": PACKETS, "received": PACKETS},
    "counted": 12, "uncounted": [],
}  # fmt: skip
RAIL = {"name": "rail0", "nic": {"pci": "0000:10:00.0"}, "link_layer": "infiniband"}
#: (slice, host, partner) → changes of the counters of that port; None: they cannot be read.
Counted = Callable[[int, str, str], Mapping[str, Any] | None]
#: The clock of the control node before the first run, in seconds since 1970.
START = 1_795_000_000.0


def quiet(_number: int, _host: str, _partner: str) -> Mapping[str, Any]:
    return {}


class Clock:
    """The control node's."""

    def __init__(self) -> None:
        self.now = START

    def time(self) -> float:
        return self.now


class SoakRun:
    """One run of the playbook soak. number: of the run, from 1; all runs of a folder are beside each other."""

    def __init__(self, folder: Path, number: int = 1, *, hosts: int = 4, clock: Clock | None = None, **settings: Any) -> None:
        path = folder / f"20261127T12000{number}Z-{number}"
        self.fabric = FabricRun(path, leafspine(1, 1, hosts), graph=False)
        self.folder, self.hosts = self.fabric.folder, self.fabric.hosts
        self.playing, self.check_mode, self.clock = list(self.hosts), False, clock or Clock()
        soak = normalize({"rdma_rails": [RAIL], "rdma_soak": settings})["soak"]
        for host in self.hosts:
            name = self.folder.host_file("intent", host)
            self.folder.write_json(name, {**self.folder.read_json(name), "soak": soak})
            self.fabric.works(host, {"gpu_processes": [], "jobs": [], "qps": [], "qps_error": None})

    def act(self, module: Any, kind: str, hours: float | None = None) -> dict[str, Any]:
        """The result of an action, at the time of the clock."""
        action = self.fabric._action(module, self.playing)
        action._task = SimpleNamespace(check_mode=self.check_mode)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "time", self.clock)
            patch.setattr(type(action), "forks", 5, raising=False)
            return dict(action.work({"kind": kind, "hours": hours}))

    def begin(self, hours: float | None = None) -> dict[str, Any]:
        return self.act(soak_plan, "begin", hours)

    def plan(self, hours: float | None = None) -> dict[str, Any]:
        """The next slice; the time until its start passes."""
        answer = self.act(soak_plan, "slice", hours)
        self.clock.now += answer.get("wait_seconds", 0)
        return answer

    def measured(self, counted: Counted = quiet) -> None:
        """Let the slice that was planned be measured: the files that pair_results writes."""
        plan = self.folder.read_json("soak/slice/plan.json")
        number = int(plan["sweep"].rsplit("-", 1)[1])
        counters: dict[str, dict[str, Any]] = {host: {} for host in plan["hosts"]}
        for rail, _round, *ends in planned_meetings(plan):
            for one, other in (ends, ends[::-1]):
                host, partner = plan["hosts"][one], plan["hosts"][other]
                changes = counted(number, host, partner)
                if changes is not None:
                    counters[host][plan["rails"][rail]["name"]] = {**QUIET, **changes}
        for host, of_host in counters.items():
            self.folder.write_json(self.folder.host_file("soak/slice", host, ".counters.json"), of_host)
        self.clock.now += 40

    def record(self, hours: float | None = None) -> dict[str, Any]:
        return self.act(soak_result, "slice", hours)

    def slices(self, count: int, counted: Counted = quiet, hours: float | None = None) -> None:
        """Measure so many slices, or fewer if the soak ends."""
        for _turn in range(count):
            if self.plan(hours)["over"]:
                return
            self.measured(counted)
            self.record(hours)

    def result(self, hours: float | None = None) -> dict[str, Any]:
        return self.act(soak_result, "all", hours)

    def findings(self) -> list[Finding]:
        """The findings of all hosts, after result()."""
        return [each for host in self.hosts for each in self.folder.read_findings("pairs", host)]

    def lines(self) -> list[dict[str, Any]]:
        file = self.folder.path / "soak/slices.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
