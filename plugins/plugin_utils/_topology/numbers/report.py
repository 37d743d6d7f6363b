# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whole reports of the numbers, from a normalized rdma_plan: the printed text, and the values for a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.design import Cable, Candidate
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.numbers.collectives import Network
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.numbers.compare import Basis, alternatives, assumed_parts
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.numbers.cost import cable_kinds, cost, parts_of, prices_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.numbers.text import (
    comparison_text,
    cost_text,
    training_text,
    uplink_text,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.numbers.training import read_training, training
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.numbers.uplink import (
    LINK_RATES,
    checkpoint_write,
    demand,
    management,
    size_uplink,
    transfers,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.wishes import PlanRequest

UPLINK, TRAINING = "uplink", "training"
KINDS = (UPLINK, TRAINING)
HOURS_PER_DAY = 24


def report(kind: str, plan: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the text and the values of "uplink" or "training". Raises ValueError if that section of rdma_plan is missing or impossible."""
    if plan[kind] is None:
        raise ValueError(f"rdma_plan.{kind} is not given: there is nothing to compute. Its keys are in docs/intent.md (rdma_plan)")
    return _uplink(plan) if kind == UPLINK else _training(plan)


def _training(plan: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    found = training(*read_training(plan))
    values = {
        "model": asdict(found.model),
        "gradient_bytes": found.model.gradient_bytes,
        "network": asdict(found.network),
        "all_reduce": {name: asdict(time) for name, time in found.times.items()},
        "steps": {
            name: {which: {**asdict(step), "share": step.share, "utilization": step.utilization} for which, step in _named(pair)}
            for name, pair in found.steps.items()
        },
        "messages": [asdict(each) for each in found.messages],
        "required_gbytes_per_s": found.required_gbytes_per_s,
    }
    return training_text(found), values


def _named(pair: Sequence[Any]) -> list[tuple[str, Any]]:
    return list(zip(("without_overlap", "with_overlap"), pair, strict=True))


def _uplink(plan: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    given = plan[UPLINK]
    found = size_uplink(demand(given, plan["hosts"] * plan["gpus_per_host"]), given)
    written = checkpoint_write(given, None if found.chosen is None else found.chosen.total_gbps)
    moved = transfers(given, sorted(set(given["link_gbps"] or LINK_RATES)))
    plane = management(given["management"], plan["hosts"], None)
    values = {
        **asdict(found),
        "needed_gbps": found.demand.needed_gbps,
        "not_given": found.demand.missing,
        "checkpoint": None if written is None else asdict(written),
        "transfers": [asdict(each) for each in moved],
        "management": asdict(plane),
    }
    return uplink_text(found, written, moved, plane), values


def plan_of(request: PlanRequest) -> dict[str, Any]:
    """Return the values of a request in the form of the normalized rdma_plan."""
    cables = request.cables
    return {
        **request.sections,
        "hosts": request.hosts,
        "gpus_per_host": request.gpus_per_host,
        "nics_per_host": request.nics_per_host,
        "nic_gbps": request.nic_gbps,
        "oversubscription": request.oversubscription,
        "cables": {"prices": {"dac": cables.dac, "aoc": cables.aoc, "optic": cables.optic}},
    }


def decision_text(
    request: PlanRequest, candidates: Sequence[Candidate], length_m: Callable[[Cable], float | None] | Mapping[Cable, float] | None = None
) -> str:
    """Return the cost of the chosen candidate and the comparison of all by their numbers, "" if neither prices nor training are given.

    length_m: the length of each cable of the chosen design in meters; without it, the kinds of cables are assumed.
    """
    plan = plan_of(request)
    prices = prices_of(plan, request.switch)
    if not prices.parts and plan[TRAINING] is None:
        return ""
    nics = request.hosts * request.nics_per_host if plan["prices"]["nics"] else 0
    model, network = None, _network(request)
    if plan[TRAINING] is not None:
        model, network, _sizes = read_training(plan)
    rows = alternatives(candidates, Basis(prices, request.switch.name, network, model, nics))
    gpu_day = None if plan["gpu_hour"] is None else plan["gpu_hour"] * HOURS_PER_DAY * network.ranks
    parts = [comparison_text(rows, prices.currency, gpu_day)]
    chosen = next((candidate for candidate in candidates if candidate.chosen), None)
    if chosen is not None and chosen.design is not None and length_m is not None:
        kinds = cable_kinds(chosen.design.cables, length_m, request.cables.dac_max_m, plan["prices"]["aoc_max_m"])
        parts.append(cost_text(cost(parts_of(chosen.design, kinds, nics), prices)))
    elif chosen is not None and chosen.measures is not None:
        parts.append(cost_text(cost(assumed_parts(chosen.measures, request.switch.name, prices, nics), prices)))
    return "\n\n".join(parts)


def _network(request: PlanRequest) -> Network:
    return Network(
        request.hosts, max(1, request.gpus_per_host), request.nics_per_host, request.nic_gbps, oversubscription=request.oversubscription
    )
