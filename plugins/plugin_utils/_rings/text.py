# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan of rings for a person."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.view import View
from ansible_collections.rdma.cluster.plugins.plugin_utils._fleet.majority import some
from ansible_collections.rdma.cluster.plugins.plugin_utils._rings.cables import PlaneLoad
from ansible_collections.rdma.cluster.plugins.plugin_utils._rings.hops import RING, TREE, Route, Unknown
from ansible_collections.rdma.cluster.plugins.plugin_utils._rings.order import Order
from ansible_collections.rdma.cluster.plugins.plugin_utils._rings.plan import Loads, RingPlan, worst_cables
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import natural

#: The number of routes and of unknown items in the text; the JSON has all of them.
SHOWN_ROUTES, SHOWN_UNKNOWN = 16, 12
_TIMES = {1: "once", 2: "twice"}
_LEVELS = ("leaf", "group of spines", "group of cores")


def plan_text(plan: RingPlan, source: str, file: str) -> str:
    """Return the text. source: the log or the hostfile; file: the proposed hostfile's path."""
    ranks = f"{plan.hops.ranks} ranks on " if plan.hops.ranks else ""
    hosts = len(plan.hops.order) or len({port.host for hop in plan.hops.hops for port in (hop.source, hop.target)})
    lines = [f"Rings on the cables: {ranks}{hosts} hosts ({source})"]
    lines.append(f"  {plan.mapped} of {plan.hops.between} hops between hosts are on known cables")
    for name in sorted({plane for planes in plan.before.values() for plane in planes}, key=natural):
        lines += [f"Plane {name}, graph of run {plan.planes[name].run}:", *_plane(plan, name)]
    lines += [*_order(plan, file), *_unknown(plan.unknown)]
    return "\n".join(lines)


def _plane(plan: RingPlan, name: str) -> Iterator[str]:
    view = plan.view(name)
    for kind in (RING, TREE):
        load = plan.before.get(kind, {}).get(name)
        if load is None:
            continue
        yield f"  {kind}s: {load.hops} hops, {load.away} of them leave their leaf"
        worst = worst_cables(plan, plan.before, kind).get(name)
        if worst is not None:
            here, there = worst.direction
            yield (
                f"    busiest cable between switches: {view.end(here)} to {view.end(there)}, {flows_of(worst.flows)}; "
                f"{worst.imbalance:.1f} times the mean of the {worst.loaded} loaded ones"
            )
        yield from _routes(load, view)
    yield f"    {_spread(view)}"


def _spread(view: View) -> str:
    if view.graph.source == "ibnetdiscover":
        return "Flows count as spread evenly over equal paths: the graph has no forwarding tables, which choose one path for each address."
    return "Flows count as spread evenly over equal paths: a hash chooses one path for each flow."


def _routes(load: PlaneLoad, view: View) -> Iterator[str]:
    """Yield a line for all routes that cross the same switches as often."""
    alike: dict[tuple[tuple[str, Fraction], ...], list[Route]] = defaultdict(list)
    for route, crossed in sorted(load.crossings.items(), key=lambda item: (item[0].communicator, natural(item[0].channel))):
        alike[tuple(sorted(((view.name(guid), flows) for guid, flows in crossed.items()), key=lambda item: natural(item[0])))].append(route)
    for shares, routes in list(alike.items())[:SHOWN_ROUTES]:
        verb = "crosses" if len(routes) == 1 else "each cross"
        what = _crossed(shares) if shares else "no switch above the leaves"
        yield f"    {_named(routes)} {verb} {what}"
    if len(alike) > SHOWN_ROUTES:
        yield f"    … {len(alike) - SHOWN_ROUTES} more kinds in rings.json"


def _crossed(crossed: Sequence[tuple[str, Fraction]]) -> str:
    """Return which switches a route crosses how often, those that it crosses alike together."""
    same: dict[Fraction, list[str]] = defaultdict(list)
    for name, flows in crossed:
        same[flows].append(name)
    parts = []
    for flows, names in sorted(same.items(), reverse=True):
        each = "" if len(names) == 1 else " each"
        often = _times(int(flows)) if flows.denominator == 1 else f"{number(flows)} times on average"
        parts.append(f"{some(names)}{each} {often}")
    return ", ".join(parts)


def number(flows: Fraction) -> str:
    """Return a number of flows: "2", "1.33"."""
    return str(flows) if flows.denominator == 1 else f"{float(flows):.2f}"


def flows_of(flows: Fraction) -> str:
    """Return a number of flows with its unit: "1 flow", "1.50 flows"."""
    return f"{number(flows)} flow{'' if flows == 1 else 's'}"


def _named(routes: Sequence[Route]) -> str:
    kind, communicator = routes[0].kind, {route.communicator for route in routes}
    if len(routes) == 1:
        return routes[0].words
    if len(communicator) == 1:
        of = f" of {routes[0].communicator}" if routes[0].communicator else ""
        return f"{kind}s {some([route.channel for route in routes])}{of}"
    return f"{kind}s {some([f'{route.channel} of {route.communicator}' for route in routes])}"


def _order(plan: RingPlan, file: str) -> Iterator[str]:
    order = plan.order
    if order is None:
        return
    if order.unplaced:
        yield f"Hosts without a place in the graph of plane {plan.plane}: {some(list(order.unplaced))}. They are last in any new order."
    if not order.better:
        yield f"No other order of the hosts is better for plane {plan.plane}: a ring over all hosts {_changes(order)}."
        return
    count, placed = len(order.moved), len(order.before) - len(order.unplaced)
    yield f"{count} of {placed} hosts {'is' if count == 1 else 'are'} out of order: {some(list(order.moved))}."
    yield f"With the new order, a ring over all hosts {_changes(order)}."
    if plan.after is None:
        yield f"The load of the cables with the new order is unknown: {plan.why_not}."
    else:
        yield from _compared(plan, plan.before, plan.after)
    yield f"Use the hostfile {file}, if your launcher numbers the ranks in its order."


def _changes(order: Order) -> str:
    """Return how often a ring over all hosts changes its leaf, and its group of spines if there are several."""
    # All hosts are below the highest level.
    levels = order.crossings[:-1] or order.crossings
    parts = []
    for name, (before, after) in zip(_LEVELS, levels, strict=False):
        instead = "" if before == after else f" instead of {_times(before)}"
        parts.append(f"changes its {name} {_times(after)}{instead}" if after else f"never changes its {name}{instead}")
    return " and ".join(parts)


def _times(count: int) -> str:
    return _TIMES.get(count, f"{count} times")


def _compared(plan: RingPlan, before: Loads, after: Loads) -> Iterator[str]:
    for kind in (RING, TREE):
        old, new = (worst_cables(plan, loads, kind) for loads in (before, after))
        for name in sorted(before.get(kind, {}), key=natural):
            away = [loads[kind][name].away for loads in (before, after)]
            flows = [flows_of(worst[name].flows) if name in worst else "no flow" for worst in (old, new)]
            yield (
                f"  plane {name}, {kind}s: {away[1]} hops leave their leaf instead of {away[0]}; "
                f"the busiest cable between switches has {flows[1]} instead of {flows[0]}"
            )


def _unknown(unknown: Iterable[Unknown]) -> Iterator[str]:
    """Yield the unknown items, those of one reason together."""
    by_reason: dict[str, list[str]] = defaultdict(list)
    for each in unknown:
        by_reason[each.why].append(each.what)
    if by_reason:
        yield "Unknown, and not counted:"
    for why, names in list(by_reason.items())[:SHOWN_UNKNOWN]:
        yield f"  {some(names)}: {why}"
    if len(by_reason) > SHOWN_UNKNOWN:
        yield f"  … {len(by_reason) - SHOWN_UNKNOWN} more reasons in rings.json"
