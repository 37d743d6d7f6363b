# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The printed text of a plan: the compared families, the chosen one, and the cost of one failure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.design import Candidate, Measures
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.families.figures import HOST_M, NIC_NS, NS_PER_M, SWITCH_M, SWITCH_NS
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.wishes import PlanRequest

TIERS = ("leaf", "spine", "core")


def plan_text(request: PlanRequest, candidates: Sequence[Candidate]) -> str:
    """Return the text of a plan."""
    chosen = next(candidate for candidate in candidates if candidate.chosen)
    return "\n".join([*head_lines(request), "", *comparison(candidates), *price_lines(request), "", *_chosen(request, chosen)])


def price_lines(request: PlanRequest) -> Iterator[str]:
    """Yield why prices do not decide, if some of them are given and others are not."""
    missing, cables = request.prices_not_given, request.cables
    given = [each for each in (request.switch.price, cables.dac, cables.aoc, cables.optic, cables.fiber) if each is not None]
    if missing and given:
        names = " and ".join(f"rdma_plan.{key}" for key in missing)
        verb = "is" if len(missing) == 1 else "are"
        yield f"Prices do not decide, because {names} {verb} not given. The fewest switches decide, then the fewest cables."


def head_lines(request: PlanRequest) -> Iterator[str]:
    """Yield the request in words."""
    nics = request.hosts * request.nics_per_host
    yield f"Plan for {request.hosts} hosts with {request.nics_per_host} NICs of {request.nic_gbps:g} Gb/s each: {nics} NICs"
    if request.hosts_later != request.hosts:
        yield f"It also holds for {request.hosts_later} hosts, and no cable moves until then."
    switch = request.switch
    yield f"Switch: {switch.name}, {switch.ports} ports of {switch.gbps:g} Gb/s"
    for parts, which in ((request.host_parts, "to hosts"), (request.uplink_parts, "between switches")):
        if parts > 1:
            yield f"Each port {which} is split into {parts} × {switch.gbps / parts:g} Gb/s (breakout cables)."
    if switch.has_unknown_breakout and switch.gbps > request.nic_gbps:
        yield (
            f"Ports to hosts are not split, although they are faster than a NIC: no source states how the ports of {switch.name} can be "
            "split. If your data sheet does, add this model with breakout to rdma_plan.models."
        )


def comparison(candidates: Sequence[Candidate]) -> list[str]:
    """Return the table of all compared families, as lines."""
    return table(comparison_rows(candidates))


def comparison_rows(candidates: Sequence[Candidate]) -> list[list[str]]:
    """Return the cells of the same table, the head first. The price counts the later hosts too; the other figures are those of today."""
    has_prices = any(candidate.cost is not None for candidate in candidates)
    grows = any(each.measures_later is not None and each.measures_later != each.measures for each in candidates)
    price = ["price later" if grows else "price"] if has_prices else []
    head = ["", "family", "switches", *TIERS, "cables", "bisection Gb/s", "after failures", *price, "why not"]
    return [head, *(_row(candidate, has_prices) for candidate in candidates)]


def _row(candidate: Candidate, has_prices: bool) -> list[str]:
    measures, mark = candidate.measures, "*" if candidate.chosen else ""
    why = candidate.why_not or ""
    if measures is None:
        return [mark, candidate.family, *["-"] * (6 + has_prices + 1), why]
    tiers = [str(measures.switches.get(tier, 0)) for tier in TIERS]
    price = ["-" if candidate.cost is None else f"{candidate.cost:,.0f}"] if has_prices else []
    worst = f"{measures.worst_gbps / measures.wanted_gbps:.0%}" if measures.wanted_gbps else "-"
    counts = [str(measures.switch_count), *tiers, str(measures.cable_count)]
    return [mark, candidate.family, *counts, f"{measures.bisection_gbps:,.0f}", worst, *price, why]


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as lines with aligned columns: the first two and the last one to the left, numbers to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    last = len(widths) - 1

    def cell(column: int, text: str) -> str:
        return text.ljust(widths[column]) if column in {0, 1, last} else text.rjust(widths[column])

    return ["  ".join(cell(column, text) for column, text in enumerate(row)).rstrip() for row in rows]


def _chosen(request: PlanRequest, chosen: Candidate) -> Iterator[str]:
    measures = chosen.measures
    if measures is None:
        return
    yield f"Chosen: {chosen.family}"
    yield from (f"  {line}" for line in figure_lines(request, measures))
    later = chosen.measures_later
    if later is not None and request.hosts_later != request.hosts:
        yield f"  With {request.hosts_later} hosts: {_counts(later.switches)}; {later.cable_count} cables"
    yield ""
    yield "One failure costs (NICs cut: NICs without a link; left: bisection of all planes, and as a share of the plane of the failure):"
    yield from table(failure_rows(measures))


def failure_rows(measures: Measures) -> list[list[str]]:
    """Return the cells of the N-1 table, the head first."""
    head = ["", "part", "count", "hosts cut", "NICs cut", "left Gb/s", "left", "example"]
    rows = [
        [
            "",
            each.part,
            str(each.count),
            str(each.hosts_cut),
            str(each.nics_cut),
            f"{each.bisection_gbps:,.0f}",
            f"{each.plane_share:.1%}",
            each.example,
        ]
        for each in measures.failures
    ]
    return [head, *rows]


def figure_lines(request: PlanRequest, measures: Measures) -> Iterator[str]:
    """Yield the figures of a design in words."""
    if measures.switches:
        yield f"switches: {_counts(measures.switches)}"
    yield f"cables: {_counts(measures.cables)}"
    wanted = measures.wanted_gbps
    yield f"bisection of a plane: {measures.plane_bisection_gbps:,.0f} Gb/s per direction, requested {wanted:,.0f}"
    survive = request.survive
    if survive.spines or survive.links:
        failed = f"switches above the leaves: {survive.spines}, cables between switches: {survive.links}"
        yield f"bisection of a plane after the worst failures ({failed}): {measures.worst_gbps:,.0f} Gb/s"
    for tier, ratio in measures.ratio.items():
        yield f"oversubscription of a {tier}: {ratio:.3g}:1"
    if len(measures.switches) > 1:
        yield f"links between a leaf and each spine: equal (imbalance {measures.imbalance:g})"
    if measures.free_ports:
        yield f"free ports of a switch: {_counts(measures.free_ports)}"
    if measures.switches:
        model = request.switch.latency_ns
        switch_ns = SWITCH_NS[request.fabric] if model is None else model
        assumed = (
            f"{NIC_NS:g} ns a NIC, {switch_ns:g} ns a switch, {NS_PER_M:g} ns/m, {HOST_M:g} m to hosts, {SWITCH_M:g} m between switches"
        )
        yield f"longest path: {measures.diameter} switches, about {measures.latency_ns / 1000:.1f} µs ({assumed})"
    else:
        yield f"longest path: {measures.diameter} hosts that forward, about {measures.latency_ns / 1000:.1f} µs"


def _counts(counts: object) -> str:
    return ", ".join(f"{count} {name}" for name, count in dict(counts).items())  # type: ignore[call-overload]
