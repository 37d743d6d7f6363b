# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reading a fabric from one of its hosts: the graph, its counters and its subnet manager, by the tools of infiniband-diags.

A tool that is missing, may not open the port, or was not answered by all leaves a graph that is not complete, and says why.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ansible_collections.rdma.cluster.plugins.module_utils._command import CommandError, Completed, Runner
from ansible_collections.rdma.cluster.plugins.module_utils._errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._fabric_build import SOURCE, fabric_graph
from ansible_collections.rdma.cluster.plugins.module_utils._fabric_graph import Graph
from ansible_collections.rdma.cluster.plugins.module_utils._iblinkinfo import parse_iblinkinfo
from ansible_collections.rdma.cluster.plugins.module_utils._ibnetdiscover import Discovery, parse_ibnetdiscover
from ansible_collections.rdma.cluster.plugins.module_utils._ibqueryerrors import QueriedErrors, parse_ibqueryerrors
from ansible_collections.rdma.cluster.plugins.module_utils._node_name_map import parse_node_name_map
from ansible_collections.rdma.cluster.plugins.module_utils._sminfo import SmInfo, parse_sminfo
from ansible_collections.rdma.cluster.plugins.module_utils._sysroot import SysRoot

T = TypeVar("T")
#: Thresholds of zero: with the file of the distribution, counters below its thresholds are not told.
_ALL_ERRORS = ("--threshold-file", "/dev/null")
#: What ibqueryerrors tells of a port unless it is zero; PortXmitWait is left out, which not every port counts.
ERROR_COUNTERS = (
    "SymbolErrorCounter", "LinkErrorRecoveryCounter", "LinkDownedCounter", "PortRcvErrors", "PortRcvRemotePhysicalErrors",
    "PortRcvSwitchRelayErrors", "PortXmitDiscards", "PortXmitConstraintErrors", "PortRcvConstraintErrors", "LocalLinkIntegrityErrors",
    "ExcessiveBufferOverrunErrors", "VL15Dropped",
)  # fmt: skip
_TIMED_OUT = re.compile(r"bad status 110|Connection timed out")
_CLOSED = re.compile(r"can't open UMAD port|can't open MAD port|Failed to open")
_NO_SM = "No SM/SA found"
_NO_MODULE = "is ib_umad module loaded"
_PACKAGE = "infiniband-diags"
_ENDED_WELL = {"ibqueryerrors": (0, 1)}


@dataclass(frozen=True)
class Asked:
    """What to read. device and port: from where; the tools take the first active port where they are None.

    links: states and what links could be, by iblinkinfo; errors and data: counters, by ibqueryerrors; timeout_seconds: of each tool.
    """

    plane: str = "default"
    device: str | None = None
    port: int | None = None
    links: bool = True
    errors: bool = True
    data: bool = False
    node_name_map: str | None = None
    timeout_seconds: float = 120.0


@dataclass(frozen=True)
class FabricFacts:
    """subnet_manager: the master that the port knows; None if none answers, and why_not says what was seen."""

    graph: Graph
    subnet_manager: SmInfo | None
    why_not: str | None


class _Reader:
    """Runs the tools, and collects what went wrong."""

    def __init__(self, runner: Runner, sys: SysRoot, asked: Asked) -> None:
        self._runner, self._sys, self._asked = runner, sys, asked
        self.problems: list[str] = []
        self.where = ["-C", asked.device] if asked.device is not None else []
        self.where += ["-P", str(asked.port)] if asked.port is not None else []

    def run(self, tool: str, options: Sequence[str], parse: Callable[[str], T]) -> T | None:
        """What a tool tells, or None; every reason for which it may not have told all is a problem."""
        try:
            done = self._runner.run([tool, *options, *self.where], timeout_seconds=self._asked.timeout_seconds)
        except CommandError as exc:
            missing = str(exc).startswith("command not found")
            self.problems.append(f"{tool} is not installed on this host: install {_PACKAGE}" if missing else str(exc))
            return None
        said = self._complaints(tool, done)
        self.problems += said
        if done.rc not in _ENDED_WELL.get(tool, (0,)):
            self.problems += [] if said else [f"{tool} ended with exit status {done.rc} and said nothing of it"]
            return None
        try:
            return parse(done.stdout)
        except ParseError as exc:
            self.problems += [] if said else [str(exc)]
            return None

    def _complaints(self, tool: str, done: Completed) -> list[str]:
        failed = done.rc not in _ENDED_WELL.get(tool, (0,))
        # IBEXIT prints "iberror: failed: …" on standard output.
        lines = [line for line in done.stderr.splitlines() + (done.stdout.splitlines()[-1:] if failed else []) if line.strip()]
        text = "\n".join(lines)
        if _NO_MODULE in text:
            return [f"{tool} cannot ask: the kernel module ib_umad is not loaded on this host (modprobe ib_umad)"]
        if _CLOSED.search(text):
            return [f"{tool} cannot ask: {self._why_closed()}"]
        if _NO_SM in text:
            return [f"{tool} found no subnet manager on {self._port_words()}, and asked nobody"]
        silent = [line for line in lines if _TIMED_OUT.search(line)]
        other = [line for line in lines if line not in silent]
        said = (
            [f"{len(silent)} queries of {tool} were not answered, so that nodes or ports are missing: {silent[0].strip()}"]
            if silent
            else []
        )
        return [*said, f"{tool} complains: {'; '.join(line.strip() for line in other[:3])}"] if other else said

    def _port_words(self) -> str:
        device, port = self._asked.device, self._asked.port
        return f"{device or 'the first device'} port {port}" if port is not None else device or "the first active port"

    def _why_closed(self) -> str:
        device, port = self._asked.device, self._asked.port
        folder = f"/sys/class/infiniband/{device}"
        if device is not None and not self._sys.exists(folder):
            return f"there is no RDMA device {device}"
        if device is not None and port is not None:
            if not self._sys.exists(f"{folder}/ports/{port}"):
                return f"{device} has no port {port}"
            if self._sys.text(f"{folder}/ports/{port}/link_layer") == "Ethernet":
                return f"{device} port {port} is an Ethernet port, behind which there is no InfiniBand fabric"
        return f"it may not open /dev/infiniband/umad* for {self._port_words()} (permission denied: become root), or no port is active"


def read_fabric(runner: Runner, sys: SysRoot, asked: Asked) -> FabricFacts:
    """The plane as its host sees it. Never raises for what the fabric or the tools do: the graph is then not complete, or has no nodes."""
    reader = _Reader(runner, sys, asked)
    names = _names(sys, asked.node_name_map, reader.problems)
    discovery = reader.run("ibnetdiscover", [], parse_ibnetdiscover)
    if discovery is None:
        return FabricFacts(Graph(asked.plane, {}, [], SOURCE, False, reader.problems), None, reader.problems[-1])
    linkinfo = reader.run("iblinkinfo", ["-l"], parse_iblinkinfo) if asked.links else None
    counters = _errors(reader, discovery) if asked.errors else {}
    if asked.data:
        for key, values in _data(reader).items():
            counters.setdefault(key, {}).update(values)
    graph = fabric_graph(asked.plane, discovery, linkinfo=linkinfo, counters=counters, names=names, problems=reader.problems)
    before = len(reader.problems)
    manager = reader.run("sminfo", [], parse_sminfo)
    why_not = None if manager is not None else "; ".join(reader.problems[before:])
    return FabricFacts(graph, manager, why_not)


def _names(sys: SysRoot, path: str | None, problems: list[str]) -> dict[str, str]:
    if path is None:
        return {}
    try:
        text = sys.read(path)
        if text is None:
            problems.append(f"there is no node-name map {path} on this host")
        return parse_node_name_map(text or "")
    except (ParseError, OSError) as exc:
        problems.append(f"{path}: {exc}")
        return {}


def _errors(reader: _Reader, discovery: Discovery) -> dict[tuple[str, int], dict[str, int]]:
    """The error counters; where all ports were asked and nothing was filtered out, a linked port that is not named has counted none."""
    before = len(reader.problems)
    queried = reader.run("ibqueryerrors", _ALL_ERRORS, parse_ibqueryerrors)
    if queried is None:
        return {}
    reader.problems += queried.problems
    counters = dict(queried.counters)
    if len(reader.problems) > before or not _unfiltered(queried):
        return counters
    for node in discovery.nodes:
        for port in node.ports:
            if port.end is not None:
                key = (port.guid or node.guid, port.number)
                counters[key] = {**dict.fromkeys(ERROR_COUNTERS, 0), **counters.get(key, {})}
    return counters


def _unfiltered(queried: QueriedErrors) -> bool:
    summary = queried.summary
    return summary is not None and not summary.thresholds and not summary.suppressed and not summary.failures


def _data(reader: _Reader) -> dict[tuple[str, int], dict[str, int]]:
    queried = reader.run("ibqueryerrors", ["--counters"], parse_ibqueryerrors)
    if queried is None:
        return {}
    reader.problems += queried.problems
    return queried.counters
