# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan of rings: the load of the cables by the present order of hosts, and by the order with the fewest crossings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.view import View
from ansible_collections.rdma.cluster.plugins.plugin_utils._rings.cables import Busiest, Paths, PlaneLoad, busiest, loads
from ansible_collections.rdma.cluster.plugins.plugin_utils._rings.hops import RING, TREE, Hop, Hops, Unknown, reordered
from ansible_collections.rdma.cluster.plugins.plugin_utils._rings.order import Order, best_order
from ansible_collections.rdma.cluster.plugins.plugin_utils._rings.ports import Ports
from ansible_collections.rdma.cluster.plugins.plugin_utils._scheduler.proven import StoredPlane
from ansible_collections.rdma.cluster.plugins.plugin_utils._scheduler.tree import tree_of

SCHEMA = 1
#: Kind of route → plane → its load.
Loads = Mapping[str, Mapping[str, PlaneLoad]]


@dataclass(frozen=True)
class RingPlan:
    """The plan. before, after: the loads; after: None without a better order. order: None if the order of hosts is unknown.

    plane: whose leaves decide the order. why_not: why the loads of the better order are unknown, else "".
    """

    hops: Hops
    planes: Mapping[str, StoredPlane]
    unknown: tuple[Unknown, ...]
    before: Loads
    after: Loads | None
    order: Order | None
    plane: str | None
    why_not: str = ""

    @property
    def mapped(self) -> int:
        """The number of hops on cables."""
        return sum(load.hops for of_planes in self.before.values() for load in of_planes.values())

    def view(self, plane: str) -> View:
        return self.planes[plane].view

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as JSON: every cable with its flows in each direction, and every route with the switches that it crosses."""
        order = self.order
        return {
            "schema": SCHEMA,
            "ranks": self.hops.ranks,
            "hops_between_hosts": self.hops.between,
            "hops_mapped": self.mapped,
            "unknown": [{"what": each.what, "why": each.why} for each in self.unknown],
            "plane_of_the_order": self.plane,
            "order": None
            if order is None
            else {
                "before": list(order.before),
                "after": list(order.after),
                "out_of_order": list(order.moved),
                "not_in_the_graph": list(order.unplaced),
                "crossings": [{"before": before, "after": after} for before, after in order.crossings],
            },
            "before": self._loads(self.before),
            "after": None if self.after is None else self._loads(self.after),
        }

    def _loads(self, of: Loads) -> dict[str, Any]:
        return {kind: {plane: _load(load, self.view(plane)) for plane, load in planes.items()} for kind, planes in of.items()}


def _load(load: PlaneLoad, view: View) -> dict[str, Any]:
    worst = busiest(load, view)
    cables = sorted(load.flows.items(), key=lambda item: (-item[1], item[0]))
    return {
        "hops": load.hops,
        "hops_between_leaves": load.away,
        "imbalance": None if worst is None else round(worst.imbalance, 3),
        "cables": [{"from": view.end(here), "to": view.end(there), "flows": round(float(flows), 6)} for (here, there), flows in cables],
        "crossings": [
            {
                "kind": route.kind,
                "communicator": route.communicator,
                "channel": route.channel,
                "switches": {view.name(guid): round(float(flows), 6) for guid, flows in sorted(crossed.items())},
            }
            for route, crossed in sorted(load.crossings.items())
        ],
    }


def ring_plan(hops: Hops, ports: Ports, planes: Mapping[str, StoredPlane], plane: str | None = None) -> RingPlan:
    """Return the plan. plane: the one whose leaves decide the order, None for the one with the most hops."""
    paths = {name: Paths(stored.view) for name, stored in planes.items()}
    before, unknown = _by_kind(hops.hops, paths)
    decides = plane or _decisive(hops)
    order = _order(hops, planes[decides].view) if decides is not None and hops.order else None
    after, why_not = None, ""
    if order is not None and order.better:
        moved = reordered(hops.hops, ports, dict(zip(order.before, order.after, strict=True)))
        if isinstance(moved, str):
            why_not = moved
        else:
            after, _without_path = _by_kind(moved, paths)
    return RingPlan(hops, planes, (*hops.unknown, *unknown), before, after, order, decides, why_not)


def _by_kind(hops: tuple[Hop, ...] | list[Hop], paths: Mapping[str, Paths]) -> tuple[dict[str, dict[str, PlaneLoad]], list[Unknown]]:
    """Return the loads of rings and of trees: a collective uses one of them."""
    found: dict[str, dict[str, PlaneLoad]] = {}
    unknown: list[Unknown] = []
    for kind in (RING, TREE):
        own, lost = loads([hop for hop in hops if hop.route.kind == kind], paths)
        unknown += lost
        if own:
            found[kind] = own
    return found, unknown


def _decisive(hops: Hops) -> str | None:
    counts = Counter(hop.source.plane for hop in hops.hops)
    return min(counts, key=lambda plane: (-counts[plane], plane)) if counts else None


def _order(hops: Hops, view: View) -> Order:
    return best_order(hops.order, tree_of(view, hops.order).paths())


def worst_cables(plan: RingPlan, of: Loads, kind: str) -> dict[str, Busiest]:
    """Return plane → its busiest cable between switches, for rings or for trees."""
    found = {plane: busiest(load, plan.view(plane)) for plane, load in of.get(kind, {}).items()}
    return {plane: each for plane, each in found.items() if each is not None}
