# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read a fabric from one of its hosts: the graph, its counters and its subnet manager, with the tools of infiniband-diags.

If a tool is missing, may not open the port, or does not get all answers, the graph is incomplete and has the reason.
"""

from __future__ import annotations

from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Runner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.build import SOURCE, fabric_graph
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.doubles import find_doubles
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.graph import Graph
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.iblinkinfo import parse_iblinkinfo
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.ibnetdiscover import Discovery, parse_ibnetdiscover
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.ibqueryerrors import QueriedErrors, parse_ibqueryerrors
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.managers import Managers, read_managers
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.names import parse_node_name_map
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.tools import SAME_GUID, Asked, Tools

#: Thresholds of zero: with the distribution's file, ibqueryerrors omits counters below its thresholds.
_ALL_ERRORS = ("--threshold-file", "/dev/null")
#: The counters that ibqueryerrors prints for a port unless they are zero; PortXmitWait is omitted, because not every port counts it.
ERROR_COUNTERS = (
    "SymbolErrorCounter", "LinkErrorRecoveryCounter", "LinkDownedCounter", "PortRcvErrors", "PortRcvRemotePhysicalErrors",
    "PortRcvSwitchRelayErrors", "PortXmitDiscards", "PortXmitConstraintErrors", "PortRcvConstraintErrors", "LocalLinkIntegrityErrors",
    "ExcessiveBufferOverrunErrors", "VL15Dropped",
)  # fmt: skip


@dataclass(frozen=True)
class FabricFacts:
    """The report of one host on its plane."""

    graph: Graph
    managers: Managers


def read_fabric(runner: Runner, sys: SysRoot, asked: Asked) -> FabricFacts:
    """Return the plane as its host sees it.

    Never raises for a fault of the fabric or the tools: the graph is then incomplete, or has no nodes.
    """
    reader = Tools(runner, sys, asked)
    names = _names(sys, asked.node_name_map, reader.problems)
    discovery = reader.run("ibnetdiscover", [], parse_ibnetdiscover)
    if discovery is None:
        return FabricFacts(Graph(asked.plane, {}, [], SOURCE, False, reader.problems), Managers(None, None, reader.problems[-1]))
    linkinfo = reader.run("iblinkinfo", ["-l"], parse_iblinkinfo) if asked.links else None
    doubles = find_doubles(reader, discovery, linkinfo, asked.port) if linkinfo is not None else {}
    counters = _errors(reader, discovery) if asked.errors else {}
    if asked.data:
        for key, values in _data(reader).items():
            counters.setdefault(key, {}).update(values)
    # A problem that the library reports in every tool is reported once, with the names of the nodes.
    problems = [each for each in reader.problems if not doubles or SAME_GUID not in each]
    graph = fabric_graph(asked.plane, discovery, linkinfo=linkinfo, counters=counters, names=names, problems=problems, doubles=doubles)
    return FabricFacts(graph, read_managers(reader))


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


def _errors(reader: Tools, discovery: Discovery) -> dict[tuple[str, int], dict[str, int]]:
    """Return the error counters. If all ports were queried without a filter, a linked port that is not named has counted none."""
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


def _data(reader: Tools) -> dict[tuple[str, int], dict[str, int]]:
    queried = reader.run("ibqueryerrors", ["--counters"], parse_ibqueryerrors)
    if queried is None:
        return {}
    reader.problems += queried.problems
    return queried.counters
