# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Oversubscription as it is measured: one pair alone against all pairs across the spines at once, beside what the graph allows."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._fabric_graph import Graph
from ansible_collections.rdma.cluster.plugins.module_utils._findings import ERROR, OK, UNKNOWN, WARNING, Finding

STAGE, CHECK = "pairs", "pair.oversubscription"
#: What all pairs at once may reach less than the graph allows: a fabric without adaptive routing does not spread its flows evenly.
WARN_BELOW, FAIL_BELOW = 0.9, 0.7


@dataclass(frozen=True)
class Measured:
    """In 10^9 bit/s: one pair alone, and each of all pairs at once; pairs that failed are None."""

    alone_gbps: float | None
    together_gbps: Sequence[float | None]

    @property
    def share(self) -> float | None:
        """What a pair has left, on average, when all measure at once; None where that was not measured."""
        known = [each for each in self.together_gbps if each is not None]
        return statistics.fmean(known) / self.alone_gbps if known and len(known) == len(self.together_gbps) and self.alone_gbps else None


def allowed_share(graph: Graph, leaf: str, ports: int) -> float | None:
    """What the uplinks of a leaf (GUID) leave to each of so many of its host ports that all send to other leaves; 1 at the most.

    None where a rate is not told. Ports are taken as the fastest of that leaf's.
    """
    up_gbps, down_gbps = 0.0, 0.0
    for link in graph.links:
        for end, other in ((link.a, link.b), (link.b, link.a)):
            if end[0] != leaf or other[0] not in graph.nodes:
                continue
            kind = graph.nodes[other[0]].kind
            if link.rate_gbps is None and kind in ("host", "switch"):
                return None
            up_gbps += (link.rate_gbps or 0.0) if kind == "switch" else 0.0
            down_gbps = max(down_gbps, (link.rate_gbps or 0.0) if kind == "host" else 0.0)
    return min(1.0, up_gbps / (ports * down_gbps)) if ports and down_gbps else None


def oversubscription(host: str, subject: str, measured: Measured, allowed: float | None) -> Finding:
    """The finding `pair.oversubscription`. subject: of what ("default, rail0"); allowed: allowed_share, the least of all leaves."""
    expected = "as much as the uplinks allow" if allowed is None else f"{_ratio(allowed)}, as the graph has it"
    if measured.share is None or allowed is None:
        why = "the graph does not tell the rates of all links" if measured.share is not None else "not all pairs were measured at once"
        return Finding(STAGE, CHECK, host, subject, UNKNOWN, why, expected, "Measure again, or see what fabric.graph says.")
    alone = f"{measured.alone_gbps:.3g} Gb/s"
    seen = f"one pair alone {alone}, {len(measured.together_gbps)} pairs at once {measured.share:.0%} of it each: {_ratio(measured.share)}"
    reached = measured.share / allowed
    if reached >= WARN_BELOW:
        return Finding(STAGE, CHECK, host, subject, OK, seen, expected)
    remedy = (
        "See whether flows are spread over the spines: the counters of the leaves' uplinks (fabric.balance), the routing engine of the "
        "subnet manager or ECMP and adaptive routing of the switches; then congestion control."
    )
    return Finding(STAGE, CHECK, host, subject, ERROR if reached < FAIL_BELOW else WARNING, seen, expected, remedy)


def _ratio(share: float) -> str:
    """ "2:1" of a half."""
    return f"{1 / share:.2g}:1"


def alone_and_together(leaves: Sequence[str | None], most: int | None = None) -> list[list[list[int]]]:
    """Two rounds of one rail: one pair across the spines, then all pairs that cross them, each host once.

    leaves: see crossing_rounds; most: hosts of a leaf that take part. [] where all hosts are below one leaf.
    """
    members: dict[str, list[int]] = {}
    for host, leaf in enumerate(leaves):
        if leaf is not None and (most is None or len(members.get(leaf, ())) < most):
            members.setdefault(leaf, []).append(host)
    order = [host for _leaf, hosts in sorted(members.items()) for host in hosts]
    half = len(order) // 2
    pairs = [[one, other] for one, other in zip(order, order[half:], strict=False)][:half]
    crossing = [pair for pair in pairs if leaves[pair[0]] != leaves[pair[1]]]
    return [crossing[:1], crossing] if crossing else []
