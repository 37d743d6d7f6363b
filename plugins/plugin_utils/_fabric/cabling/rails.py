# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rails without a cabling plan: in a rail-optimized fabric, each rail has its own leaves, and an HCA on a leaf of another rail is wrong."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, WARNING
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.causes import Cause, Reporter
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.view import End, View
from ansible_collections.rdma.cluster.plugins.plugin_utils._fleet.majority import some
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import natural

declare(
    {
        "fabric.rails": Check(
            "fabric",
            "whether the HCAs of each rail are on leaves of that rail, if no plan defines it",
            "the graph, `rdma_rails`",
            "move the cable, or correct the rails in the intent",
            sources=(reads.GRAPH,),
        ),
    }
)

CHECK = "fabric.rails"
EXPECTED = "each rail's HCAs on leaves of that rail"
#: A fabric counts as rail-optimized if this share of the HCAs is of the most common rail of their leaf.
PURE = 0.8


def check_rails(reporter: Reporter, planned: Collection[str] = ()) -> list[Cause]:
    """Return the findings fabric.rails: HCAs on a leaf of another rail, one finding for each host; a warning if only names show the rail.

    A rail whose HCAs are all on leaves of other rails has no leaf of its own, and is ignored: a few storage or login servers may use any
    free port. planned: HCAs that have a place in a plan.
    """
    view = reporter.view
    places = {guid: place for guid in view.hcas if (place := leaf_of(view, guid)) is not None and view.rail(guid) is not None}
    on_leaf: dict[str, Counter[str]] = defaultdict(Counter)
    for guid, (_here, (leaf, _port)) in places.items():
        on_leaf[leaf][str(view.rail(guid))] += 1
    why_not = _not_by_rail(on_leaf)
    if why_not is not None:
        return [reporter.skip(CHECK, why_not, EXPECTED)]
    rail_of = {leaf: rail for leaf, rails in on_leaf.items() if (rail := _majority(rails)) is not None}
    away = [guid for guid, (_here, (leaf, _port)) in places.items() if rail_of.get(leaf, view.rail(guid)) != view.rail(guid)]
    at_home = {view.rail(guid) for guid in places.keys() - set(away)}
    odd: dict[str, list[str]] = defaultdict(list)
    for guid in away:
        if guid not in planned and view.rail(guid) in at_home:
            odd[view.host(guid)].append(guid)
    if not odd:
        return [reporter.well(CHECK, f"{len(places)} HCAs of {len(set(rail_of.values()))} rails on {len(on_leaf)} leaves", EXPECTED)]
    return [_odd(reporter, host, hcas, places, rail_of) for host, hcas in odd.items()]


def leaf_of(view: View, hca: str) -> tuple[End, End] | None:
    """Return the port of an HCA that has a link to a switch, and the switch's port. If there are several, the planned one."""
    planned = view.planned(hca)
    numbers = sorted(view.linked.get(hca, ()), key=lambda number: (planned is None or number != planned.port, number))
    for number in numbers:
        there = view.peers.get((hca, number))
        if there is not None and view.is_switch(there[0]):
            return (hca, number), there
    return None


def _majority(rails: Counter[str]) -> str | None:
    """Return the rail of more than half of a leaf's HCAs, if it has at least two."""
    rail, count = min(rails.items(), key=lambda item: (-item[1], item[0]))
    return rail if count > 1 and 2 * count > sum(rails.values()) else None


def _not_by_rail(on_leaf: dict[str, Counter[str]]) -> str | None:
    rails = {rail for counts in on_leaf.values() for rail in counts}
    if len(rails) < 2 or len(on_leaf) < 2:
        return "only one rail, or only one leaf"
    pure = sum(max(counts.values()) for counts in on_leaf.values() if _majority(counts) is not None)
    if pure < PURE * sum(sum(counts.values()) for counts in on_leaf.values()):
        return "leaves carry several rails: the fabric is not rail-optimized"
    return None


def _odd(reporter: Reporter, host: str, hcas: list[str], places: dict[str, tuple[End, End]], rail_of: dict[str, str]) -> Cause:
    view = reporter.view
    words = []
    for hca in sorted(hcas, key=lambda guid: natural(view.name(guid))):
        rail, there = str(view.rail(hca)), places[hca][1]
        homes = some(sorted((view.name(leaf) for leaf, its in rail_of.items() if its == rail), key=natural)) or "no leaf"
        words.append(f"{view.name(hca)} ({rail}) is on {view.end(there)}, a leaf of {rail_of[there[0]]}; {rail} is on {homes}")
    subject = some([view.name(hca) for hca in sorted(hcas, key=lambda guid: natural(view.name(guid)))])
    remedy = f"Move the cables of {subject}, or correct the rails of {host} in the intent."
    ends = [end for hca in hcas for end in places[hca]]
    status = ERROR if all(view.planned(hca) for hca in hcas) else WARNING
    return reporter.cause(CHECK, status, subject, "; ".join(words), EXPECTED, remedy, host=host, nodes=hcas, ends=ends)
