# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Result files of a large sweep, read and judged in a process of its own: python -m tests.bench.verdict_fleet FOLDER"""

from __future__ import annotations

import json
import random
import sys
import time
from pathlib import Path
from typing import Any

from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.matrix.matrix import Matrix
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.schedule import make_schedule
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.verdict.verdict import localize
from tests.bench.watch import peak_mib
from tests.simulator.sweeps import EFFICIENCY, EXPECTED_GBPS, NOISE

SLOW_HOST, SLOW_NIC, DEAD_NIC = 17, (3, 400), (5, 401)
"""What is wrong with the fleet: a host at 0.6, a NIC (rail, host) at 0.5, one that fails with everybody."""


def write(folder: Path, hosts: int, rails: int) -> dict[str, Any]:
    """The plan and the hosts' files of a full sweep, as they lie in a run folder; {"bytes", "results"} of the files."""
    chance = random.Random(4711)
    plan: dict[str, Any] = {
        "hosts": [f"node{number:04}" for number in range(hosts)],
        "schedule": {"kind": "full"},
        "profiles": [{}],
        "rails": [{"name": f"rail{number}", "addresses": [""] * hosts, "profiles": [0] * hosts} for number in range(rails)],
        "tests": [{"name": "bandwidth", "command": "ib_write_bw"}],
    }
    (folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    written = {"bytes": 0, "results": 0}
    schedule = make_schedule(plan["schedule"], hosts)
    for client, name in enumerate(plan["hosts"]):
        lines = [
            _line(chance, rail, number, server, client)
            for number, (server, serving) in schedule.of(client).items()
            if not serving
            for rail in range(rails)
        ]
        text = "".join(line + "\n" for line in lines)
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
        written = {"bytes": written["bytes"] + len(text), "results": written["results"] + len(lines)}
    return written


def _line(chance: random.Random, rail: int, number: int, server: int, client: int) -> str:
    waited = round(chance.uniform(0, 2), 2)
    if DEAD_NIC in ((rail, server), (rail, client)):
        line = "Failed status 12: wr_id 0 syndrom 0x81, transport retry counter exceeded"
        return json.dumps([rail, number, server, client, 0, 0, None, 9.51, waited, "retry_exceeded", line], separators=(",", ":"))
    factor = 0.6 if SLOW_HOST in (server, client) else 0.5 if SLOW_NIC in ((rail, server), (rail, client)) else 1.0
    gbps = min(EXPECTED_GBPS, EXPECTED_GBPS * EFFICIENCY[0] * factor * chance.gauss(1.0, NOISE))
    return f"[{rail},{number},{server},{client},0,0,{gbps:.2f},6.21,{waited}]"


def judge(folder: Path) -> dict[str, Any]:
    """Read and judge: {"seconds", of them "read_seconds", "cpu_seconds", "mib", "results", "verdicts"}."""
    plan = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
    begun, cpu = time.monotonic(), time.process_time()
    matrix = Matrix.read([(plan, {host: folder / f"{host}.jsonl" for host in plan["hosts"]})], ["bandwidth"])["bandwidth"]
    matrix = matrix.with_limits([[EXPECTED_GBPS] * len(matrix.hosts)] * len(matrix.rails))
    read = time.monotonic() - begun
    verdicts = [[each.kind, each.rail, each.host, each.failed] for each in localize(matrix)]
    seconds = time.monotonic() - begun
    cpu = time.process_time() - cpu
    times = {"seconds": seconds, "read_seconds": read, "cpu_seconds": cpu}
    return {**times, "mib": peak_mib("self"), "results": len(matrix), "verdicts": verdicts}


if __name__ == "__main__":
    print(json.dumps(judge(Path(sys.argv[1]))))
