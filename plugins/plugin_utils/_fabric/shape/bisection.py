# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The bisection of a fabric: the bandwidth from one half of the hosts to the other, in Gb/s per direction."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, WARNING
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.causes import Cause, Reporter
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.networkx import nx
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.shape.repaired import Shape

declare(
    {
        "fabric.bisection": Check(
            "fabric",
            "the bandwidth from one half of the hosts to the other",
            "the graph, with known faults counted as repaired; `rdma_fabric.planes.NAME.ratio`",
            "add links to the tier that has too few",
            sources=(reads.GRAPH,),
        ),
    }
)

CHECK = "fabric.bisection"
TOLERANCE = 0.03
#: As for fabric.ratio, if no ratio is intended.
UNPLANNED_TOLERANCE = 0.15


@dataclass(frozen=True)
class Bisection:
    """gbps: per direction between two halves of the leaves. hosts_gbps: the maximum that the hosts of the smaller half can send.

    way: the method.
    """

    gbps: float
    hosts_gbps: float
    way: str


def bisection(shape: Shape) -> Bisection | None:
    """Return the bisection of the leaves, halved in the order of their names by the rates of their hosts.

    None with fewer than two leaves, or if rates are unknown. With two tiers in closed form: over every spine the smaller of what each half
    can send to it, no leaf more than its hosts send. Else the minimum cut between the halves. This is the bisection of these halves; the
    worst halves of a graph are not feasible to compute.
    """
    leaves = [leaf for leaf in shape.of_tier("leaf") if sum(shape.hosts.get(leaf, ()))]
    if len(leaves) < 2 or not shape.known:
        return None
    first, second = _halves(shape, leaves)
    hosts_gbps = min(sum(_down(shape, leaf) for leaf in half) for half in (first, second))
    if shape.of_tier("core") or any(
        other in shape.tier and shape.tier[other] == "leaf" for leaf in leaves for other in shape.joined.get(leaf, {})
    ):
        return Bisection(_min_cut(shape, first, second), hosts_gbps, "least cut between the halves")
    spines = shape.of_tier("spine")
    through = sum(min(sum(_share(shape, leaf, spine) for leaf in half) for half in (first, second)) for spine in spines)
    return Bisection(through, hosts_gbps, "closed form for two tiers")


def _down(shape: Shape, leaf: str) -> float:
    return sum(shape.hosts.get(leaf, ()))


def _share(shape: Shape, leaf: str, spine: str) -> float:
    """Return the bandwidth from a leaf to a spine if its hosts send at full rate, spread over its uplinks."""
    up, down = shape.gbps(leaf, shape.above(leaf)), _down(shape, leaf)
    return shape.gbps(leaf, [spine]) * min(1.0, down / up) if up else 0.0


def _halves(shape: Shape, leaves: Sequence[str]) -> tuple[list[str], list[str]]:
    first: list[str] = []
    total, sent = sum(_down(shape, leaf) for leaf in leaves), 0.0
    for leaf in leaves[:-1]:
        if first and sent + _down(shape, leaf) / 2 > total / 2:
            break
        first.append(leaf)
        sent += _down(shape, leaf)
    return first, [leaf for leaf in leaves if leaf not in first]


def _min_cut(shape: Shape, first: Sequence[str], second: Sequence[str]) -> float:
    graph: nx.DiGraph[str] = nx.DiGraph()
    for switch, others in shape.joined.items():
        for other, rates in others.items():
            graph.add_edge(switch, other, capacity=sum(rates))
    for half, source in ((first, True), (second, False)):
        for leaf in half:
            edge = ("from", leaf) if source else (leaf, "to")
            graph.add_edge(*edge, capacity=_down(shape, leaf))
    value: float = nx.maximum_flow_value(graph, "from", "to")
    return value


def check_bisection(
    repaired: Shape, found: Shape, intended: float | None, named: Collection[str], reporter: Reporter, *, compute: bool = True
) -> list[Cause]:
    """Return the finding fabric.bisection, as if known faults were fixed: against N × B / 2 divided by the intended ratio.

    The finding also has the current value. Without an intended ratio, it is 1 on a plane with compute rails, and less is a warning. named:
    switches that already have a finding on their uplinks. compute: whether the plane has compute rails.
    """
    expected = "half of the hosts can send to the other half at full rate, divided by the intended oversubscription"
    whole, now = bisection(repaired), bisection(found)
    if whole is None:
        return [reporter.skip(CHECK, "fewer than two leaves with hosts, or unknown link rates", expected)]
    enough = whole.hosts_gbps / (intended or 1 + UNPLANNED_TOLERANCE)
    # Without a plan, known faults are differences from the last run: a fabric that was recabled since then may carry more as it is.
    reached_gbps = max(whole.gbps, now.gbps if now is not None else 0.0)
    as_found = f"{(now or whole).gbps:g} Gb/s per direction ({whole.way}), of {whole.hosts_gbps:g} that the hosts could send"
    if intended is None and (named or not compute) and reached_gbps < enough * (1 - TOLERANCE):
        why = "see fabric.ratio and fabric.symmetry" if named else "no compute rail on the plane, and no intended ratio"
        return [reporter.skip(CHECK, f"{why}; measured: {as_found}", expected)]
    if named or reached_gbps >= enough * (1 - TOLERANCE):
        return [
            reporter.well(
                CHECK,
                as_found + ("; see the other findings for missing links" if (now is not None and now.gbps < whole.gbps) or named else ""),
                expected,
            )
        ]
    remedy = "Find the tier with too few links (leaves to spines, spines to core) and add links there. More hosts or leaves make it worse."
    status = WARNING if intended is None else ERROR
    return [reporter.cause(CHECK, status, reporter.view.plane, as_found, f"{enough:g} Gb/s", remedy, absence=True)]
