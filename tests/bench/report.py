# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report of a large run, in a process of its own: python -m tests.bench.report FOLDER [HOSTS] prints a line of JSON.

FOLDER: an empty or missing folder. Facts are recorded and results simulated: fleet.py and verdict_fleet.py.
"""

from __future__ import annotations

import json
import random
import sys
import time
from pathlib import Path
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import STAGES
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.schedule import make_schedule
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html.report import report_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder
from tests.bench import fleet
from tests.bench.watch import peak_mib
from tests.simulator.sweeps import NOISE

RUN, RAILS, GBPS, USEC = "20261126T120000Z-1", 8, 385.0, 2.1
#: A host at 0.6 on one rail, and one that fails there with every partner.
SLOW, DEAD = (3, 2), (5, 7)


def write(folder: Path, hosts: int) -> RunFolder:
    """The folder of a run that has ended: facts, findings of all stages, and a full sweep of two tests."""
    run = RunFolder(folder / RUN)
    fleet.write_run(run, hosts)
    names = [fleet.name(number) for number in range(1, hosts + 1)]
    for stage in STAGES:
        for host in names:
            run.write_findings(stage, host, [Finding(stage, f"{stage}.check", host, "host", "ok", "as planned", "as planned")])
    slow, dead = names[SLOW[0]], names[DEAD[0]]
    bad = Finding(
        "pairs", "pair.bandwidth", slow, f"rail{SLOW[1]}", "error", "all partners at 231 of 385 Gb/s", "at least 308 Gb/s", "Replace it."
    )
    run.write_findings("pairs", slow, [bad])
    run.write_findings(
        "pairs", dead, [Finding("pairs", "pair.bandwidth", dead, f"rail{DEAD[1]}", "unknown", "no result", "a result", "Look.")]
    )
    run.write_json("pairs/plan.json", plan(names))
    _write_results(run, names)
    run.write_json("summary.json", {"schema": 1, "run": RUN, "outcome": "failed", "check_mode": False, "failed": [], "unreachable": []})
    return run


def plan(names: list[str]) -> dict[str, Any]:
    """A plan of schema 2."""
    common = {"bidirectional": False, "mtu_bytes": None, "memory": "host", "iterations": None, "qp_timeout": None, "traffic_class": None}
    profiles = [{"device": f"mlx5_{rail}", "port": 1, "gid_index": 3, "numa_node": rail // 4, "gpu": None} for rail in range(RAILS)]
    return {
        "schema": 2, "sweep": RUN, "perftest_port": 18515, "rendezvous_port": 18600, "hosts": names, "schedule": {"kind": "full"},
        "profiles": profiles,
        "rails": [
            {
                "name": f"rail{rail}",
                "addresses": [fleet.address(number, rail) for number in range(1, len(names) + 1)],
                "profiles": [rail] * len(names),
            }
            for rail in range(RAILS)
        ],
        "tests": [
            {**common, "name": "bandwidth", "command": "ib_write_bw", "size_bytes": 2**20, "queue_pairs": 4, "duration_seconds": 10},
            {**common, "name": "latency", "command": "ib_write_lat", "size_bytes": 2, "queue_pairs": 1, "duration_seconds": 1},
        ],
    }  # fmt: skip


def _write_results(run: RunFolder, names: list[str]) -> None:
    chance = random.Random(4711)
    schedule = make_schedule({"kind": "full"}, len(names))
    for client, name in enumerate(names):
        lines = []
        for number, (server, serving) in schedule.of(client).items():
            for rail in range(RAILS) if not serving else ():
                if DEAD[0] in (server, client) and rail == DEAD[1]:
                    lines.append(f'[{rail},{number},{server},{client},0,0,null,9.5,0.1,"retry_exceeded","Failed status 12"]\n')
                    continue
                share = 0.6 if SLOW[0] in (server, client) and rail == SLOW[1] else 1.0
                lines.append(f"[{rail},{number},{server},{client},0,0,{GBPS * share * chance.gauss(1.0, NOISE):.2f},6.2,0.1]\n")
                lines.append(f"[{rail},{number},{server},{client},1,0,{USEC * chance.gauss(1.0, NOISE):.2f},1.2,0.1]\n")
        run.write(run.host_file("pairs", name, ".jsonl"), "".join(lines))


def measure(folder: Path) -> dict[str, Any]:
    """{"seconds", "cpu_seconds", "mib", "bytes"} of writing the report."""
    begun, cpu = time.monotonic(), time.process_time()
    path = report_of(folder, RUN)
    times = {"seconds": time.monotonic() - begun, "cpu_seconds": time.process_time() - cpu}
    return {**times, "mib": peak_mib("self"), "bytes": path.stat().st_size}


def main(words: list[str]) -> None:
    """Write the run if the folder is missing, then measure in a process that has not written it."""
    folder, hosts = Path(words[0]), int(words[1]) if len(words) > 1 else 512
    if not (folder / RUN).exists():
        write(folder, hosts)
        print(f"{hosts} hosts × {RAILS} rails are written. Run the same command again to measure.")
        return
    print(json.dumps(measure(folder)))


if __name__ == "__main__":
    main(sys.argv[1:])
