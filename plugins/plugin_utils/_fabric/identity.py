# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a discovered graph is complete and its nodes are unique: read errors, and duplicate names, GUIDs and LIDs."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, UNKNOWN, WARNING
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.cabling.wanted import Wanted
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.causes import Cause, Reporter, counted
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.view import View
from ansible_collections.rdma.cluster.plugins.plugin_utils._fleet.majority import some
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import natural

declare(
    {
        "fabric.graph": Check(
            "fabric",
            "the graph of each plane: whether it is complete; duplicate switch names, GUIDs and LIDs",
            "`ibnetdiscover`, `iblinkinfo`, `smpquery` if two nodes may have one GUID, `/etc/rdma/ib-node-name-map`; `lldpcli` on Ethernet",
            "fix the part that could not be read, then run again; correct the node-name map; look for two subnet managers",
            sources=(reads.result("ibnetdiscover"), reads.result("iblinkinfo"), reads.GRAPH),
        ),
    }
)

CHECK = "fabric.graph"
DISCOVERY = "discovery"
#: The tools of rdma-core read this file by default.
MAP = "/etc/rdma/ib-node-name-map of every host that reads the plane (one GUID and quoted name per line)"
EXPECTED = "a complete graph: every switch has a unique name, every port a unique GUID and LID"
_BURNT = (
    "One card was burned with the GUID of another. 1. Read both with `mstflint -d PCI query`. "
    "2. Burn the right GUID with the subcommand `sg`."
)
#: Default names of switches; "quantum-leaf1" is a real name.
DEFAULT_NAME = re.compile(
    r"(?:Infiniscale|SwitchX|Switch[- ]?IB|Quantum|MT[0-9]+|Mellanox|NVIDIA)(?:-[0-9IVX]{1,4})?(?: .*)?|0x[0-9a-f]{16}|", re.IGNORECASE
)


def check_graph(reporter: Reporter, wanted: Wanted | None) -> list[Cause]:
    """Return the findings fabric.graph."""
    view = reporter.view
    planned = unmatched_switches(view, wanted)
    causes = [*_partial(reporter), *_names(reporter, planned), *_twins(reporter), *_guids(reporter), *_lids(reporter)]
    if wanted is not None and wanted.ambiguous:
        names = some(sorted(wanted.ambiguous, key=natural))
        remedy = "Give each switch a unique name, or write the GUIDs into the plan."
        causes.append(reporter.cause(CHECK, UNKNOWN, names, f"planned once, but several in the graph: {names}", EXPECTED, remedy))
    sizes = f"{counted(view.switches, 'switch').replace('switchs', 'switches')}, {counted(view.hcas, 'HCA')}, {counted(view.links, 'link')}"
    return causes or [reporter.well(CHECK, f"{sizes} (by {view.graph.source})", EXPECTED)]


def _partial(reporter: Reporter) -> Iterator[Cause]:
    graph, view = reporter.view.graph, reporter.view
    remedy = f"Fix this, then rerun the discovery of {view.plane}. Until then, unseen elements count neither as ok nor as missing."
    if graph.problems or not (graph.complete or graph.doubles):
        observed = "; ".join(graph.problems[:4]) + (f"; and {len(graph.problems) - 4} more" if len(graph.problems) > 4 else "")
        yield reporter.cause(CHECK, UNKNOWN, DISCOVERY, observed or "the discovery did not finish", EXPECTED, remedy)
    elif not view.seen:
        missing = "cable" if view.mesh else "switch"
        yield reporter.cause(CHECK, UNKNOWN, DISCOVERY, f"found {counted(view.hcas, 'HCA')}, but no {missing}", EXPECTED, remedy)


def _unnamed(view: View) -> list[str]:
    return [guid for guid in view.switches if DEFAULT_NAME.fullmatch(view.nodes[guid].name)]


def unmatched_switches(view: View, wanted: Wanted | None) -> list[str]:
    """Return the switches that a plan knows only by name, if most of its switches may be among the unnamed ones."""
    if wanted is None:
        return []
    gone = [guid for guid in wanted.switches if guid not in view.nodes]
    by_name = sorted((wanted.names[key] for key in gone if not key.startswith("0x")), key=natural)
    return by_name if 2 * len(gone) > len(wanted.switches) and 0 < len(by_name) <= len(_unnamed(view)) else []


def _names(reporter: Reporter, planned: Sequence[str]) -> Iterator[Cause]:
    """Yield findings on names. planned: names in the plan that cannot be matched."""
    view = reporter.view
    unnamed = _unnamed(view)
    if unnamed and planned:
        observed = f"{len(unnamed)} switches have default names, so the planned {some(planned)} cannot be matched"
        remedy = f"Write their GUIDs into the plan, or name them: on the switch, or in {MAP}."
        yield reporter.cause(CHECK, UNKNOWN, "switches without a name", observed, EXPECTED, remedy)
    elif unnamed:
        observed = f"{len(unnamed)} with a default name: {some(sorted(view.name(guid) for guid in unnamed))}"
        remedy = f"Name them on the switch, or in {MAP}."
        yield reporter.cause(CHECK, WARNING, "switches without a name", observed, EXPECTED, remedy)
    same: dict[str, list[str]] = defaultdict(list)
    for guid in view.switches:
        if guid not in unnamed:
            same[view.nodes[guid].name].append(guid)
    for name, guids in same.items():
        if len(guids) > 1:
            remedy = f"Give each a unique name on the switch, or in {MAP}."
            yield reporter.cause(CHECK, WARNING, name, f"{len(guids)} switches are named {name}: {some(sorted(guids))}", EXPECTED, remedy)


def _twins(reporter: Reporter) -> Iterator[Cause]:
    """Yield findings on nodes with the same GUID, which the tools have merged."""
    view = reporter.view
    for guid, twins in sorted(view.graph.doubles.items()):
        names = [twin.description or f"the node behind {view.end(twin.behind)}" for twin in twins]
        places = [f"{name} behind {view.end(twin.behind)}" if twin.description else name for name, twin in zip(names, twins, strict=True)]
        observed = f"{' and '.join(places)} have the same GUID {guid}: the tools merge them and drop some of their cables"
        if view.is_host(guid):
            yield reporter.cause(CHECK, ERROR, some(names), observed, EXPECTED, _BURNT, host=names[0].split()[0], nodes=[guid])
        else:
            remedy = "1. Unplug one of them: neither can be addressed. 2. Compare the GUID of each with its label. 3. Burn the right GUID."
            yield reporter.cause(CHECK, ERROR, some(names), observed, EXPECTED, remedy, nodes=[guid])


def _guids(reporter: Reporter) -> Iterator[Cause]:
    view = reporter.view
    owners: dict[str, set[str]] = defaultdict(set)
    for guid in view.hcas:
        for port in view.nodes[guid].ports.values():
            if port.guid is not None:
                owners[port.guid].add(guid)
    for port_guid, guids in sorted(owners.items()):
        if len(guids) > 1:
            names = sorted((view.name(guid) for guid in guids), key=natural)
            hosts = sorted((view.host(guid) for guid in guids), key=natural)
            yield reporter.cause(
                CHECK, ERROR, some(names), f"{some(names)} have the same port GUID {port_guid}", EXPECTED, _BURNT, host=hosts[0]
            )


def _lids(reporter: Reporter) -> Iterator[Cause]:
    view = reporter.view
    owners: dict[int, set[str]] = defaultdict(set)
    for guid, node in view.nodes.items():
        for lid in {node.lid, *(port.lid for port in node.ports.values() if node.kind != "switch")} - {None, 0}:
            owners[int(lid or 0)].add(guid)
    twice = {lid: guids for lid, guids in owners.items() if len(guids) > 1}
    if twice:
        names = some([f"{lid} belongs to {some(sorted(map(view.name, guids), key=natural))}" for lid, guids in sorted(twice.items())])
        remedy = "Two subnet managers assign LIDs, or two fabrics were joined. Run `sminfo` and read the log of each subnet manager."
        yield reporter.cause(CHECK, ERROR, "LIDs", f"duplicate LIDs: {names}", EXPECTED, remedy)
