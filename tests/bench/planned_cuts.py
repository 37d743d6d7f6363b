# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cost of one failure, computed on a found fabric of 512 hosts, against what is found after the cut.

python -m tests.bench.planned_cuts CUTS SEED [HOSTS]: plan a plane of leaves and spines, run it by ibsim and the real opensm, cut random
switches and cables between switches one by one, and compare. After each cut the real ibtracert follows opensm's new routes between hosts
of different leaves.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.output.cabling import cables_of_planes
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.output.found import Cut, FoundPlane
from lab import fabric, fabric_faults
from lab.fabric_plan import End
from tests.verify.fabric import OnFabric
from tests.verify.planned import Planned, running

#: ibsim has HDR at most. Two levels, so that each leaf has several cables to each spine, and a fabric that survives a spine.
WISHES = {"nics_per_host": 1, "nic_gbps": 200, "switch": {"ports": 64, "gbps": 200}, "topology": "leaf_spine", "survive": {"spines": 1}}
TRACED = 4
#: opensm may still sweep when the first trace begins.
ATTEMPTS, PAUSE_SECONDS = 5, 1.0


def cuts_of(planned: Planned) -> dict[str, str]:
    """Row of the computed table → what to cut in ibsim: each switch, and each cable between two switches."""
    found = {switch.name: switch.name for switch in planned.design.switches}
    for cable in cables_of_planes(planned.design)[planned.plane]:
        if cable.a.rail is None:
            found[f"{cable.a.node} to {cable.b.node}, one cable"] = f"{cable.a.node}/{cable.a.port}"
    return found


def difference(row: Cut, before: FoundPlane, after: FoundPlane) -> list[str]:
    """What differs between the computed cost of a cut and the found one."""
    ratio = None if after.ratio is None else after.ratio[1]
    pairs = {
        "hosts cut": (row.hosts_cut, before.hosts - after.hosts),
        "ports cut": (row.ports_cut, before.ports - after.ports),
        "bisection": (row.gbps, after.gbps),
        "ratio": (row.ratio, ratio),
    }
    return [f"{row.part}: {what} {computed} computed, {found} found" for what, (computed, found) in pairs.items() if computed != found]


def routed(planned: Planned, cut: str, draw: random.Random) -> Iterator[str]:
    """Yield each pair of hosts without a route, or with one over what was cut."""
    there = fabric.load(planned.name)
    leaf = {cable.a.node: cable.b.node for cable in cables_of_planes(planned.design)[planned.plane] if cable.a.rail is not None}
    hosts = [host for host in planned.design.hosts if leaf[host] != cut]
    near = [host for host in hosts if leaf[host] == cut.partition("/")[0]] or hosts
    for _trace in range(TRACED):
        one = draw.choice(near)
        other = draw.choice([host for host in hosts if leaf[host] != leaf[one]])
        ends = [f"0x{there.plan.port_guid(End(f'{host} mlx5_0', 1)):016x}" for host in (one, other)]
        for _attempt in range(ATTEMPTS):
            done = OnFabric(there).run(["ibtracert", "-G", *ends])
            if done.rc == 0:
                break
            time.sleep(PAUSE_SECONDS)
        if done.rc or f'"{other} mlx5_0"' not in done.stdout:
            yield f"{cut}: no route from {one} to {other}: {done.stdout}{done.stderr}"
        if cut in planned_switches(planned) and f'"{cut}"' in done.stdout:
            yield f"{cut}: the route from {one} to {other} still uses it"


def planned_switches(planned: Planned) -> set[str]:
    return {switch.name for switch in planned.design.switches}


def main(count: str, seed: str, hosts: str = "512") -> None:
    draw = random.Random(int(seed))
    begun = time.perf_counter()
    problems: list[str] = []
    with tempfile.TemporaryDirectory() as folder, running("cuts", {**WISHES, "hosts": int(hosts)}, Path(folder)) as planned:
        before = planned.found_with_every_failure
        computed = {cut.part: cut for cut in before.cuts}
        by_row = cuts_of(planned)
        if set(computed) != set(by_row):
            raise RuntimeError(f"The computed table has other rows than the design: {set(computed) ^ set(by_row)}")
        # The fabric is read from the first host, where opensm runs. Without its leaf it sees itself only.
        own = next(cable.b.node for cable in cables_of_planes(planned.design)[planned.plane] if cable.a.node == planned.design.hosts[0])
        names = planned_switches(planned) - {own}
        # There are many more cables than switches: a third of the cuts are switches.
        chosen = draw.sample(sorted(names), min(len(names), int(count) // 3))
        chosen += draw.sample(sorted(set(by_row) - names - {own}), int(count) - len(chosen))
        for row in chosen:
            fabric_faults.cut(planned.name, by_row[row])
            after = planned.found
            problems += difference(computed[row], before, after)
            problems += routed(planned, by_row[row], draw)
            fabric_faults.restore(planned.name, by_row[row])
        if planned.found_with_every_failure != before:
            problems.append("after all cuts were restored, the fabric is not what it was")
    answer = {
        "hosts": before.hosts,
        "switches": dict(before.switches),
        "rows": len(computed),
        "cuts": len(chosen),
        "of switches": len(names & set(chosen)),
        "traces": TRACED * len(chosen),
        "problems": problems,
        "seconds": round(time.perf_counter() - begun),
    }
    print(json.dumps(answer, indent=1))
    if problems:
        raise SystemExit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
