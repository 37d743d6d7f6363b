# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A simulated fabric as the stages see it: read by the real tools, with our own reading, parsing and judging."""

from __future__ import annotations

import dataclasses
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Completed
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import NOT_APPLICABLE, OK, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.managers import Managers, read_managers
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.read import read_fabric
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.tools import Asked, Tools
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.gate import FabricGate, Found
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder
from lab import fabric
from lab.fabric import Fabric
from tests.faults.machines import said_of
from tests.unit.builders.known import known_of

PLANE = "default"
#: HDR, as the lab makes its fabrics.
RATE_GBPS = 200.0
ATTEMPTS = 4


class OnFabric:
    """A Runner of the real tools, seen from one of the fabric's nodes."""

    def __init__(self, there: Fabric, node: str | None = None) -> None:
        self.there, self.node = there, node

    def run(self, argv: Sequence[str], *, timeout_seconds: float = 30.0) -> Completed:
        words, environment = fabric.tool(self.there, argv, node=self.node)
        done = subprocess.run(
            words, env=environment, cwd=self.there.folder.clients, capture_output=True, text=True, timeout=timeout_seconds, check=False
        )
        return Completed(tuple(argv), done.returncode, done.stdout, done.stderr)


class Meanwhile(OnFabric):
    """Does something to the fabric just before a tool is run for the first time."""

    def __init__(self, there: Fabric, tool: str, do: Callable[[], object], node: str | None = None) -> None:
        super().__init__(there, node)
        self.tool, self.do = tool, [do]

    def run(self, argv: Sequence[str], *, timeout_seconds: float = 30.0) -> Completed:
        if argv[0] == self.tool and self.do:
            self.do.pop()()
        return super().run(argv, timeout_seconds=timeout_seconds)


def managers(there: Fabric, runner: OnFabric | None = None) -> Managers:
    """Who the subnet managers are, as the link stage reads it."""
    return read_managers(Tools(runner or OnFabric(there), SysRoot("/"), Asked()))


def known(there: Fabric, **settings: Any) -> dict[str, Any]:
    """Intent and facts of every host, as far as the stage looks at them; settings: of the plane."""
    hosts: dict[str, Any] = {}
    planes = {PLANE: {"ratio": None, "plan": None, "subnet_manager": None, **settings}}
    for hca in there.plan.hcas:
        host, device = hca.name.split()
        rail = int(device.rpartition("_")[2])
        pci = f"0000:{rail + 1:02x}:00.0"
        its = hosts.setdefault(host, {"intent": {"rails": [], "fabric": {"planes": planes}}, "facts": {"netdevs": {}, "devices": {}}})
        nic = {"name": f"rail{rail}", "nic": {"pci": pci}, "link_layer": "infiniband", "plane": PLANE, "rate_gbps": RATE_GBPS}
        its["intent"]["rails"].append(nic)
        guid = f"{hca.guid:016x}"
        port = {"netdev": None, "link_layer": "InfiniBand", "state": "ACTIVE", "physical_state": "LinkUp"}
        grouped = ":".join(guid[at : at + 4] for at in range(0, 16, 4))
        its["facts"]["devices"][device] = {"node_guid": grouped, "pci": {"address": pci}, "ports": {"1": port}}
    return hosts


@dataclasses.dataclass
class Stage:
    """The fabric stage, run after run. settings: of the plane; text: of the plan's file."""

    folder: Path
    there: Fabric
    settings: dict[str, Any]
    text: str | None = None
    runs: int = 0

    def run(self, attempts: int = ATTEMPTS) -> Found:
        """Read the fabric, and judge it against the plan and the run before. While opensm sweeps a reading may not be whole."""
        self.runs += 1
        run = f"20261122T120000Z-{self.runs}"
        folder = RunFolder(self.folder / run)
        folder.path.mkdir(parents=True)
        for _attempt in range(attempts):
            facts = read_fabric(OnFabric(self.there), SysRoot("/"), Asked(PLANE, data=True))
            # Nodes with one GUID leave no whole graph, and are no reason to read again.
            if not facts.graph.problems:
                break
        reading = {"graph": facts.graph.to_dict(), "subnet_managers": None, "no_subnet_manager": None, "read_at": 3600.0 * self.runs}
        folder.write_json(f"fabric/{PLANE}/graphs/node1.json", reading)
        return FabricGate(folder, known_of(known(self.there, **self.settings)), run, self._plan).judge()

    def _plan(self, name: str) -> str:
        if self.text is None:
            raise ParseError(f"there is no {name}")
        return self.text


def brief(found: Found) -> list[tuple[str, str, str, str]]:
    """What is not well: (host or plane, check, status, subject)."""
    return sorted((each.host, each.check, each.status, each.subject) for each in _bad(found))


def said(found: Found) -> str:
    """What is not well, with each remedy, as text."""
    return "\n".join(said_of(each.to_dict()) for each in _bad(found))


def _bad(found: Found) -> list[Finding]:
    every = [each for findings in (*found.hosts.values(), *found.planes.values()) for each in findings]
    return [each for each in every if each.status not in (OK, NOT_APPLICABLE)]
