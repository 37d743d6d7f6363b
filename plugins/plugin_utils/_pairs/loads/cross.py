# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The cross-rail part of the pairs gate: the pairs across rails that a run has planned and measured."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import (
    ERROR,
    NOT_APPLICABLE,
    OK,
    UNKNOWN,
    WARNING,
    Finding,
)
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent, Rail
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.graph import Graph
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._fleet.majority import some
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.rules.cross import apart
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.evidence import CROSS_RAILS, SWEEP, Evidence
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.fabric import ends, leaves
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.fleet import Fleet
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.loads.cross_faults import CrossEnd, CrossFault, CrossResult, cross_faults
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.loads.cross_plan import (
    CrossPort,
    CrossSchedule,
    column_name,
    cross_schedule,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.loads.spines import graphs_of, place_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.loads.spines_plan import plane_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.matrix.matrix import Matrix
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.proofs import Doubt
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder, natural

STAGE, CHECK = "pairs", "pair.cross"
declare(
    {
        CHECK: Check(
            "pairs",
            "with `schedule: full+cross`, pairs of ports of different rails of a plane: what both ports reach on their own rails. It names "
            "the path, leaf, rails or route, not the ports",
            "perftest after the sweep, among ports that it has found good; the leaves in the graph of this run's fabric stage",
            "check the spines and uplinks between the named leaves, and the routes between the rails' subnets",
            sources=(reads.result("pairs across rails"),),
        ),
    }
)

FILE = f"{CROSS_RAILS}.json"
EXPECTED = "at least {least:.0%} of what both ports reach on their own rails"
FEWEST_HOSTS = 2
#: perftest's calibration of the clock, and a stopped runner: they show nothing about a path.
NO_EVIDENCE = ("clock", "signal")


@dataclass(frozen=True)
class CrossRails:
    """The planned pairs of a plane, or why there are none. rails: their names. left_out: pairs of rails without a way, with the reason."""

    rails: Sequence[str]
    schedule: CrossSchedule | None
    left_out: Mapping[str, str]
    why: str = ""


def cross_rails(sweep: Evidence, good: Mapping[str, Sequence[str]], graphs: Mapping[str, Graph], partners: int) -> dict[str, CrossRails]:
    """Return plane → its pairs across rails. good: rail → the hosts without a verdict of the sweep. graphs: plane → its graph."""
    planes: dict[str, list[str]] = defaultdict(list)
    for rail in sweep.plan["rails"]:
        planes[plane_of(sweep.intents, rail["name"])].append(rail["name"])
    return {plane: _cross_rails(sweep, rails, good, graphs.get(plane), partners) for plane, rails in planes.items()}


def _cross_rails(
    sweep: Evidence, rails: Sequence[str], good: Mapping[str, Sequence[str]], graph: Graph | None, partners: int
) -> CrossRails:
    planned = {rail: _planned(sweep.intents, rail) for rail in rails}
    pairs = [(one, other) for at, one in enumerate(rails) for other in rails[at + 1 :]]
    left_out = {f"{one} and {other}": why for one, other in pairs if (why := _apart(planned[one], planned[other]))}
    reach = {each for one, other in pairs if not _apart(planned[one], planned[other]) for each in ((one, other), (other, one))}
    if not reach:
        return CrossRails(rails, None, left_out, next(iter(left_out.values()), "the plane has one rail"))
    ports = list(_ports(sweep, {one for one, _other in reach}, good, graph))
    if len({port.host for port in ports}) < FEWEST_HOSTS:
        return CrossRails(rails, None, left_out, f"fewer than {FEWEST_HOSTS} hosts without a verdict have these rails")
    order = [rail for rail in rails if any(rail == one for one, _other in reach)]
    return CrossRails(rails, cross_schedule(ports, order, reach, partners), left_out)


def _planned(intents: Mapping[str, Intent], rail: str) -> tuple[Rail, Intent] | None:
    """Return a rail of the first host that has it, with the host's intent."""
    return next(((each, intent) for intent in intents.values() for each in intent["rails"] if each["name"] == rail), None)


def _apart(one: tuple[Rail, Intent] | None, other: tuple[Rail, Intent] | None) -> str:
    return "not in the intent" if one is None or other is None else apart(one[0], other[0], one[1]["fabric"]["topology"])


def _ports(sweep: Evidence, rails: set[str], good: Mapping[str, Sequence[str]], graph: Graph | None) -> Iterator[CrossPort]:
    hosts = sweep.plan["hosts"]
    below = None if graph is None else ends(graph, sweep.plan, sweep.facts)
    for number, rail in enumerate(sweep.plan["rails"]):
        name = rail["name"]
        switches = [None] * len(hosts) if graph is None or below is None else leaves(graph, below[number])
        for host, switch in enumerate(switches):
            if name in rails and hosts[host] in good.get(name, ()):
                leaf = None if graph is None or switch is None else graph.nodes[switch].name or switch
                yield CrossPort(host, name, leaf, sweep.partitions[name, hosts[host]])


def record(found: Mapping[str, CrossRails], hosts: Sequence[str]) -> dict[str, Any]:
    """Return the content of FILE. hosts: those of the positions."""
    planes = {}
    for plane, each in found.items():
        columns = {}
        for number, ports in enumerate(each.schedule.columns if each.schedule else ()):
            columns[column_name(plane, number)] = {hosts[port.host]: [port.rail, port.leaf] for port in ports}
        uncovered = [str(one) for one in each.schedule.uncovered] if each.schedule else []
        planes[plane] = {"rails": list(each.rails), "columns": columns, "uncovered": uncovered, "left_out": each.left_out, "why": each.why}
    return planes


def _least(fleet: Fleet, *, software: bool) -> float:
    """Return the share of the expected rate below which a pair fails; the same for all hosts."""
    settings = next(iter(fleet.intents.values()))["pairs"]
    return settings["software_fail_below"] if software else settings["fail_below"]


def check_cross(folder: RunFolder, fleet: Fleet) -> Iterator[Doubt]:
    """Yield the findings `pair.cross` of each plane that this run has planned. They put no port in doubt."""
    stored, sweep = folder.read_if_there(FILE), Evidence.of(folder, SWEEP, fleet.intents, fleet.facts)
    if stored is None or sweep is None:
        return
    load, graphs = Evidence.of(folder, CROSS_RAILS, fleet.intents, fleet.facts), graphs_of(folder)
    levels = _levels(sweep.measured) if load is not None else {}
    least = _least(fleet, software=sweep.software)
    for plane, planned in stored.items():
        place = place_of(fleet, planned["rails"][0], graphs)
        if planned["why"] or load is None:
            why = planned["why"] or "nothing was measured"
            yield Doubt(Finding(STAGE, CHECK, place, _subject(plane), NOT_APPLICABLE, f"not measured: {why}", EXPECTED.format(least=least)))
            continue
        results, lost = _results(load.measured, planned["columns"], levels)
        for finding in cross_findings(place, plane, results, lost=lost, planned=planned, least=least):
            yield Doubt(finding)


def _subject(plane: str) -> str:
    return f"rails of plane {plane}"


def _levels(matrix: Matrix) -> dict[tuple[str, str], float]:
    """Return (host, rail) → the median of what the sweep has measured at this port, in 10^9 bit/s."""
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for at, value in enumerate(matrix.value):
        if not math.isnan(value):
            for host in (matrix.server[at], matrix.client[at]):
                found[matrix.hosts[host], matrix.rails[matrix.rail[at]]].append(value)
    return {port: statistics.median(values) for port, values in found.items()}


def _results(
    matrix: Matrix, columns: Mapping[str, Mapping[str, Sequence[Any]]], levels: Mapping[tuple[str, str], float]
) -> tuple[list[CrossResult], int]:
    """Return the pairs, and how many left no record or show nothing about the path."""
    found, lost = [], len(matrix.missing)
    for at, value in enumerate(matrix.value):
        column, failure = columns[matrix.rails[matrix.rail[at]]], matrix.failures.get(at)
        sends, receives = (
            CrossEnd(host, *column[host]) for host in (matrix.hosts[each] for each in (matrix.client[at], matrix.server[at]))
        )
        known = [levels.get((end.host, end.rail)) for end in (sends, receives)]
        expected = min((each for each in known if each), default=None)
        if expected is None or (failure is not None and failure.kind in NO_EVIDENCE) or (failure is None and math.isnan(value)):
            lost += 1
            continue
        found.append(CrossResult(sends, receives, 0.0 if failure is not None else value / expected, failure.kind if failure else ""))
    return found, lost


def cross_findings(
    place: str, plane: str, results: Sequence[CrossResult], *, lost: int, planned: Mapping[str, Any], least: float
) -> Iterator[Finding]:
    """Yield a finding for each cause, or one for the whole plane if all pairs are well. lost: pairs without a result."""
    expected, subject = EXPECTED.format(least=least), _subject(plane)
    faults = cross_faults(results, least)
    for fault in faults:
        observed = f"{_slow(fault)}; the ports are healthy on their own rails"
        yield Finding(STAGE, CHECK, place, _name(fault.place), ERROR, observed, expected, _remedy(fault))
    if not results:
        remedy = "1. Read pairs/cross in the run folder. 2. Measure again with `-e rdma_measure=true`."
        yield Finding(STAGE, CHECK, place, subject, UNKNOWN, f"none of {lost} pairs across rails left a usable result", expected, remedy)
        return
    gaps = _gaps(planned, lost)
    if not faults or gaps:
        well = sum(each.share >= least for each in results)
        observed = "; ".join([f"{well} of {len(results)} pairs across rails are well", *gaps])
        # Too few hosts leave combinations out in every run, so these are a note; lost results are not.
        status, remedy = (WARNING, "Measure again with `-e rdma_measure=true`.") if lost else (OK, "")
        yield Finding(STAGE, CHECK, place, subject, status, observed, expected, remedy)


def _gaps(planned: Mapping[str, Any], lost: int) -> list[str]:
    uncovered, left_out = planned["uncovered"], planned["left_out"]
    first = next(iter(left_out.items()), ("", ""))
    return [
        *([f"{lost} left no usable result"] if lost else []),
        *([f"{len(uncovered)} combinations were not measured ({some(sorted(uncovered, key=natural))})"] if uncovered else []),
        *([f"{len(left_out)} pairs of rails were left out ({first[0]}: {first[1]})"] if left_out else []),
    ]


#: Kind of a place → its name in findings.
_NAMES = {
    "leaves": "path from {} to {}",
    "from": "uplinks of {}",
    "to": "downlinks to {}",
    "rails": "paths from {} to {}",
    "port": "paths between {} {} and other rails",
    "host": "paths between {} and other rails",
    "pair": "path from {} to {}",
    "spread": "spines between rails",
    "all": "all paths between rails",
}


def _name(place: Sequence[str]) -> str:
    kind, *names = place
    return _NAMES[kind].format(*names)


def _slow(fault: CrossFault) -> str:
    failed = [each.why for each in fault.slow if each.why]
    words = f"{len(failed)} failed ({failed[0]})" if failed else f"median {fault.share:.0%} of what their ports reach"
    first = fault.slow[0]
    leaf, other = first.sends.leaf, first.receives.leaf
    below = f" ({leaf} to {other})" if fault.place[0] == "pair" and leaf and other else ""
    example = f"for example {first.sends} to {first.receives}"
    return f"{len(fault.slow)} of {fault.pairs} pairs across rails are slow or fail{below}: {words}, {example}"


def _remedy(fault: CrossFault) -> str:
    kind, first = fault.place[0], fault.slow[0]
    if kind == "spread":
        return (
            "1. Look for a bad spine or uplink that carries some pairs of every leaf: errors, discards and speed of the links between "
            "switches (`fabric.link`, `fabric.counters`). 2. Run the fabric stage, then measure again with `-e rdma_measure=true`."
        )
    if kind in ("port", "host", "pair", "rails", "all"):
        trace = (
            f"On {first.sends.host}, run `ip route get` with the address of {first.receives} and the source address of {first.sends.rail}."
        )
        second = "Check the gateways and `routes` of both rails in rdma_rails, and the routes of the switches between them."
        return f"1. {trace} 2. {second} 3. Check the spines that connect both leaves: errors and speed of the links between switches."
    return (
        "1. Check the links between the named leaves and the spines: speed, errors, discards (`fabric.link`, `fabric.counters`). "
        "2. Check the routes between the rails' subnets on these switches. 3. Run the fabric stage, then measure again with "
        "`-e rdma_measure=true`."
    )
