# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the plan of a large fabric costs: a process of its own prints its seconds and its peak of memory.

python -m tests.bench.fabric_plan HOSTS NICS [files]: all families compared, the chosen one with all its cables, its cable plans as text;
with "files", all its files.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.families.choose import plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.output.cabling import cable_plans
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.output.files import files_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.output.places import places
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.output.stored import to_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.request import read_request
from tests.bench.bars import Line, figure
from tests.bench.watch import peak_mib
from tests.child import environment

ROOT = Path(__file__).parents[2]
PLAN = ("python", "-m", "tests.bench.fabric_plan")
#: Names of figures → hosts, NICs of a host. Both need three levels of 64-port switches, all of whose ports are used.
SIZES = {"4096x8": (4096, 8), "32768x1": (32768, 1)}
CABLES = 98304


def plans(_folder: Path) -> Iterator[Line]:
    """The largest fabrics of 64-port switches, each planned in a process that does nothing else."""
    for name, (hosts, nics) in SIZES.items():
        command = (*PLAN, str(hosts), str(nics))
        done = subprocess.run([sys.executable, *command[1:]], stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT, env=environment())
        answer = json.loads(done.stdout)
        if answer["cables"] != CABLES:
            raise RuntimeError(f"Something else was planned: {answer}")
        yield figure(f"plan_s_{name}", answer["seconds"], command, note=f"{answer['family']}, {CABLES} cables")
        yield figure(f"plan_peak_mib_{name}", answer["mib"], command)
    command = (*PLAN, "512", "8", "files")
    done = subprocess.run([sys.executable, *command[1:]], stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT, env=environment())
    answer = json.loads(done.stdout)
    yield figure("plan_files_s_512x8", answer["seconds"], command, note=f"all files, {answer['bytes']} characters")


def main(hosts: str, nics: str, what: str = "") -> None:
    begun = time.perf_counter()
    given = {"hosts": int(hosts), "nics_per_host": int(nics), "switch": {"model": "qm9700"}, "survive": {"spines": 1}}
    request, _existing = read_request({"rdma_plan": given})
    candidates = plan(request)
    (chosen,) = [candidate for candidate in candidates if candidate.design is not None]
    assert chosen.design is not None
    if what == "files":
        size = sum(map(len, files_of(request, candidates).files.values()))
    else:
        stored = to_dict(request, candidates, places(chosen.design, request.room))
        size = sum(map(len, cable_plans(chosen.design).values())) + len(json.dumps(stored, indent=1))
    seconds = time.perf_counter() - begun
    answer = {"seconds": seconds, "mib": peak_mib("self"), "cables": len(chosen.design.cables), "family": chosen.family, "bytes": size}
    print(json.dumps(answer))


if __name__ == "__main__":
    main(*sys.argv[1:])
