# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keeps the stand-ins in the containers' /sys equal to the simulated ports.

There is one process for each fabric: `python -m lab.fabric_refresh FOLDER LAB`.

ibsim's console and the subnet managers change ports, and write to files when they do. If one of these files has grown, all ports are
queried. They are also queried every SLOW_SECONDS, because ibportstate may have changed one; ibsim then also drops its dead clients.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from lab import cluster, fabric_hosts, fabric_state, ibsim, process
from lab.cluster import Lab
from lab.errors import LabError
from lab.fabric_plan import FabricPlan
from lab.paths import FabricFolder

LOOK_SECONDS, SLOW_SECONDS = 0.5, 5.0


def start(folder: FabricFolder, lab: str) -> None:
    """Start the process for a running fabric."""
    with (folder.path / "refresh.log").open("wb") as output:
        started = subprocess.Popen(
            ["nice", "-n", "10", sys.executable, "-m", "lab.fabric_refresh", str(folder.path), lab], cwd=Path(__file__).parent.parent,
            stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
        )  # fmt: skip
    (folder.path / "refresh.pid").write_text(str(started.pid))


def stop(folder: FabricFolder) -> None:
    process.end(folder.path / "refresh.pid", str(folder.path))


def is_running(folder: FabricFolder) -> bool:
    return process.is_ours(folder.path / "refresh.pid", str(folder.path))


def signs(folder: FabricFolder, roots: Sequence[Path]) -> list[tuple[str, int]]:
    """Return path and size of each file that grows when a port may have changed. roots: of the containers."""
    return [(str(path), path.stat().st_size) for path in _written(folder, roots) if path.exists()]


def _written(folder: FabricFolder, roots: Sequence[Path]) -> Iterator[Path]:
    yield folder.simulator / "out"
    yield from sorted(folder.path.glob("opensm*/log"))
    for root in roots:
        yield from sorted((root / "var/log").glob("opensm*.log"))


def refresh(folder: FabricFolder, lab: Lab, plan: FabricPlan) -> None:
    """Query all ports of all running containers, and update their stand-ins."""
    for node in lab.plan.nodes:
        root = lab.folder.node(node.name) / "root"
        if (root / fabric_hosts.BASE).exists():
            fabric_hosts.refresh_host(root, fabric_hosts.hcas_of(plan, node.name), folder)


def forget(folder: FabricFolder) -> None:
    """Remove ibsim's dead clients. A host that lost power leaves one, which would get the packets for the port's next client."""
    with fabric_state.locked(folder.path.name):
        ibsim.forget_the_dead(folder)


def main(path: str, name: str) -> None:
    folder = FabricFolder(Path(path))
    lab, plan = cluster.load(name), fabric_state.load(folder.path.name).plan
    roots = [lab.folder.node(node.name) / "root" for node in lab.plan.nodes]
    before, asked = None, 0.0
    while True:
        slow = time.monotonic() - asked > SLOW_SECONDS
        try:
            if slow:
                forget(folder)
            now = signs(folder, roots)
            if slow or now != before:
                before, asked = now, time.monotonic()
                refresh(folder, lab, plan)
        except LabError as error:
            # A port that does not answer now is queried again later.
            asked = time.monotonic()
            print(error, flush=True)
        time.sleep(LOOK_SECONDS)


if __name__ == "__main__":
    main(*sys.argv[1:])
