# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compare the candidates of a plan in one table: cost, parts, bisection, time of an all_reduce, and what a failed spine costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.design import Candidate, Measures
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.numbers.collectives import (
    ALL_REDUCE,
    RING,
    CollectiveTime,
    Network,
    collective_time,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.numbers.cost import AOC, DAC, FIBER, NIC, OPTIC, Cost, Prices, cost
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.numbers.training import Model, step
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.wishes import OPTICS_PER_CABLE

HOST_CABLES = ("host-leaf", "host-host")
#: Families without switches, in which hosts send to their neighbors.
NEIGHBORS = ("mesh", "ring")
SPINE = "spine"


@dataclass(frozen=True)
class Basis:
    """What all rows of a comparison share. nics: NICs to be counted as a part, 0 if they are not.

    network: of the job, with the oversubscription that was requested; model: the trained one, None if not given.
    """

    prices: Prices
    switch_model: str
    network: Network
    model: Model | None = None
    nics: int = 0


@dataclass(frozen=True)
class Alternative:
    """One row of the comparison. A value that is not known is None.

    all_reduce_seconds: of the model's gradients by ring, at the bisection of the candidate. spine_seconds: the same after one spine has
    failed. spine_step_share: how much longer a step then is, as a part of it; None without the compute time. bisection_gbps: of all planes.
    """

    family: str
    chosen: bool
    why_not: str
    cost: Cost | None = None
    switches: int | None = None
    cables: int | None = None
    free_ports: Mapping[str, int] | None = None
    bisection_gbps: float | None = None
    all_reduce_seconds: float | None = None
    spine_seconds: float | None = None
    spine_step_share: float | None = None


def assumed_parts(measures: Measures, model: str, prices: Prices, nics: int = 0) -> dict[str, int]:
    """Return the pieces of each part without lengths: cables at hosts are copper, those between switches active optical cables.

    If prices has no active optical cable, but fibers and transceivers, the cables between switches are fibers with two transceivers.
    measures.cables: "host-leaf" and others. nics: to be counted as a part, 0 if they are not.
    """
    hosts = sum(number for kind, number in measures.cables.items() if kind in HOST_CABLES)
    between = measures.cable_count - hosts
    counts = {model: measures.switch_count, DAC: hosts, NIC: nics}
    if AOC not in prices.parts and {FIBER, OPTIC} <= set(prices.parts):
        counts |= {FIBER: between, OPTIC: between * OPTICS_PER_CABLE}
    else:
        counts[AOC] = between
    return {name: count for name, count in counts.items() if count}


def oversubscription(family: str, measures: Measures, requested: float, kept: float = 1.0) -> float | None:
    """Return r of the r:1 at the bisection of a plane: half of its NICs at full rate / bisection, at least 1. None if the fabric is cut.

    requested: r of the request, by which wanted_gbps is divided; kept: the part of the bisection that is left after a failure. Between
    neighbors of a mesh or ring each cable joins two NICs, so a ring of hosts is not slowed: r is 1.
    """
    left = measures.plane_bisection_gbps * kept
    if left <= 0:
        return None
    return 1.0 if family in NEIGHBORS else max(1.0, requested * measures.wanted_gbps / left)


def alternatives(candidates: Sequence[Candidate], basis: Basis) -> list[Alternative]:
    """Return a row for each candidate, in their order."""
    return [_row(candidate, basis) for candidate in candidates]


def _row(candidate: Candidate, basis: Basis) -> Alternative:
    model = basis.model
    measures = candidate.measures
    row = Alternative(candidate.family, candidate.chosen, candidate.why_not or "")
    if measures is None:
        return row
    row = replace(
        row,
        cost=cost(assumed_parts(measures, basis.switch_model, basis.prices, basis.nics), basis.prices),
        switches=measures.switch_count,
        cables=measures.cable_count,
        free_ports=dict(measures.free_ports),
        bisection_gbps=measures.bisection_gbps,
    )
    if model is None:
        return row
    whole = _seconds(candidate.family, measures, basis.network, model)
    shares = [failure.plane_share for failure in measures.failures if failure.part == SPINE]
    lost = _seconds(candidate.family, measures, basis.network, model, min(shares)) if shares else None
    longer = None
    if whole is not None and lost is not None and model.compute_seconds is not None:
        before, after = (step(model.compute_seconds, seconds, model.overlap).seconds for seconds in (whole, lost))
        longer = (after - before) / before
    return replace(row, all_reduce_seconds=whole, spine_seconds=lost, spine_step_share=longer)


def _seconds(family: str, measures: Measures, network: Network, model: Model, kept: float = 1.0) -> float | None:
    """Return the time of an all_reduce, None if the fabric is cut or there is no time."""
    ratio = oversubscription(family, measures, network.oversubscription, kept)
    if ratio is None:
        return None
    found = collective_time(replace(network, oversubscription=ratio), ALL_REDUCE, model.gradient_bytes, RING)
    return found.seconds if isinstance(found, CollectiveTime) else None
