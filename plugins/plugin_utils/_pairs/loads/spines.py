# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The spine-load part of the pairs gate: the planned and measured load of a run, by rail, with its graph."""

from __future__ import annotations

import math
import statistics
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.graph import Graph
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.readings import FABRIC
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.shape.uplink_share import Pair, allowed_shares
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.evidence import SPINES, SWEEP, Evidence
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.fabric import ends
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.fleet import Fleet
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.loads.spines_plan import plane_of, planned_rounds
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.proofs import Doubt
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import PLANE, RunFolder

declare(
    {
        "pair.oversubscription": Check(
            "pairs",
            "each rail of a plane: the bandwidth of all pairs across the spines at once, against a single pair and each pair's share of "
            "the uplinks; an error below 0.7 of it, a warning below 0.9",
            "perftest after the sweep, among hosts that it has found good; the rates in the graph of this run's fabric stage",
            "check the distribution of flows over the spines: routing engine, adaptive routing, `fabric.balance`; congestion control",
            sources=(reads.result("load across spines"),),
        ),
    }
)

STAGE, CHECK = "pairs", "pair.oversubscription"
#: The tolerance for all pairs at once against the graph: a fabric without adaptive routing does not spread its flows evenly.
WARN_BELOW, FAIL_BELOW = 0.9, 0.7
EXPECTED = "as much as the uplinks allow"


@dataclass(frozen=True)
class Measured:
    """In 10^9 bit/s: one pair alone, and each of all pairs at once; failed pairs are None."""

    alone_gbps: float | None
    together_gbps: Sequence[float | None]

    @property
    def share(self) -> float | None:
        """The average share that a pair keeps when all send at once; None if it was not measured."""
        known = [each for each in self.together_gbps if each is not None]
        return statistics.fmean(known) / self.alone_gbps if known and len(known) == len(self.together_gbps) and self.alone_gbps else None


def oversubscription(host: str, subject: str, measured: Measured, allowed: float | None) -> Finding:
    """Return the finding `pair.oversubscription`. host: "plane default". subject: the rail.

    allowed: the share of these pairs (allowed_shares).
    """
    expected = EXPECTED if allowed is None else f"at most {_ratio(allowed)}, by the graph"
    if measured.share is None or allowed is None:
        why = "the graph does not show the allowed share" if measured.share is not None else _not_whole(measured)
        remedy = "1. Read pairs/spines in the run folder and the fabric stage's findings. 2. Measure again with `-e rdma_measure=true`."
        return Finding(STAGE, CHECK, host, subject, UNKNOWN, why, expected, remedy)
    alone = f"{measured.alone_gbps:.3g} Gb/s"
    seen = f"one pair alone {alone}, {len(measured.together_gbps)} pairs at once {measured.share:.0%} of it each: {_ratio(measured.share)}"
    reached = measured.share / allowed
    if reached >= WARN_BELOW:
        return Finding(STAGE, CHECK, host, subject, OK, seen, expected)
    remedy = (
        "1. Check how flows are spread over the spines: the counters of the uplinks (fabric.balance), and the routing engine of the subnet "
        "manager, or ECMP and adaptive routing of the switches. 2. Check congestion control."
    )
    return Finding(STAGE, CHECK, host, subject, ERROR if reached < FAIL_BELOW else WARNING, seen, expected, remedy)


def not_measured(host: str, subject: str, why: str) -> Finding:
    """Return the same finding if there is nothing to measure."""
    return Finding(STAGE, CHECK, host, subject, NOT_APPLICABLE, why, EXPECTED)


def _not_whole(measured: Measured) -> str:
    lost = sum(each is None for each in measured.together_gbps)
    return f"{lost} of {len(measured.together_gbps)} simultaneous pairs were not measured" if lost else "the single pair was not measured"


def _ratio(share: float) -> str:
    """ "2:1" for a half."""
    return f"{1 / share:.2g}:1" if share else "nothing"


#: Rail → why it has no load across spines, from the plan of the load.
WHY_NOT = f"{SPINES}.json"


def graphs_of(folder: RunFolder) -> dict[str, Graph]:
    """Return plane → its graph in this run."""
    graph_data = (folder.read_if_there(FABRIC) or {"planes": []})["planes"]
    return {each["plane"]: Graph.from_dict(each) for each in graph_data}


def check_spines(folder: RunFolder, fleet: Fleet) -> Iterator[Doubt]:
    """Yield a finding on each rail that this run has measured: on its plane, or without a graph on the first host with the rail.

    around: the rail's ports.
    """
    why_not, sweep = folder.read_if_there(WHY_NOT), Evidence.of(folder, SWEEP, fleet.intents, fleet.facts)
    if why_not is None or sweep is None:
        return
    graphs = graphs_of(folder)
    for rail, why in why_not.items():
        if any(sweep.has(host, rail) for host in fleet.hosts):
            yield Doubt(not_measured(place_of(fleet, rail, graphs), rail, why))
    load = Evidence.of(folder, SPINES, fleet.intents, fleet.facts)
    if load is not None:
        yield from _measured(load, graphs, fleet)


def place_of(fleet: Fleet, rail: str, graphs: Container[str]) -> str:
    """Return the host of a finding on a whole rail: its plane, or without a graph in this run the first host with the rail."""
    plane = plane_of(fleet.intents, rail)
    return f"{PLANE}{plane}" if plane in graphs else fleet.having(rail)[0]


def _measured(load: Evidence, graphs: Mapping[str, Graph], fleet: Fleet) -> Iterator[Doubt]:
    planes = {rail: plane_of(load.intents, rail) for rail in planned_rounds(load.plan)}
    results = _results(load)
    for plane in dict.fromkeys(planes.values()):
        rails = [rail for rail in planes if planes[rail] == plane]
        graph = graphs.get(plane)
        allowed = {} if graph is None else _allowed(load, graph, rails)
        for rail in rails:
            ports = frozenset((host, rail) for host in fleet.having(rail))
            yield Doubt(oversubscription(f"{PLANE}{plane}", rail, results[rail], allowed.get(rail)), around=ports)


def _results(load: Evidence) -> dict[str, Measured]:
    """Return rail → the results of its pairs; None if a pair failed or left no record."""
    matrix = load.measured
    rows = zip(matrix.rail, matrix.client, matrix.server, matrix.value, strict=True)
    gbps = {(matrix.rails[rail], sends, receives): value for rail, sends, receives, value in rows if not math.isnan(value)}
    return {
        rail: Measured(gbps.get((rail, alone[0], alone[1])), [gbps.get((rail, sends, receives)) for sends, receives in together])
        for rail, (together, (alone,)) in planned_rounds(load.plan).items()
    }


def _allowed(load: Evidence, graph: Graph, rails: list[str]) -> Mapping[str, float | None]:
    """Return the share that the graph allows the pairs of each rail of one plane."""
    places = dict(zip((rail["name"] for rail in load.plan["rails"]), ends(graph, load.plan, load.facts), strict=True))
    rounds = planned_rounds(load.plan)
    pairs: dict[str, list[Pair]] = {}
    for rail in rails:
        found = [(places[rail][sends], places[rail][receives]) for sends, receives in rounds[rail][0]]
        known = [(one, other) for one, other in found if one is not None and other is not None]
        if len(known) == len(found):
            pairs[rail] = known
    return allowed_shares(graph, pairs) if len(pairs) == len(rails) else {}
