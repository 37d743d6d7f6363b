# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A sweep's plan mapped to the discovered fabrics: the place of each endpoint, and the path between two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from random import Random
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._fabric.graph import Graph
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.expected import graph_guid
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.schedule import partitions, serves
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.verdict.crossings import Paths
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.verdict.paths import End, FabricPaths

#: The share of rounds below single leaves. Without them, a leaf cannot be distinguished from its uplinks.
BELOW = 0.25
#: The number of pairings tried for a round; the one with the most new pairs is used.
TRIES = 8

Round = list[list[int]]


def crossing_rounds(leaves: Sequence[str | None], partners: int, seed: int) -> list[Round]:
    """Return the rounds of one rail: each endpoint gets about `partners` partners, first below other leaves, none twice.

    leaves: the leaf of each host, None if it has no endpoint on the rail or is not in the graph. Such hosts have no partners.
    """
    members: dict[str, list[int]] = {}
    for host, leaf in enumerate(leaves):
        if leaf is not None:
            members.setdefault(leaf, []).append(host)
    chance, met = Random(seed), set[frozenset[int]]()  # noqa: S311
    below = 0 if len(members) < 2 and partners else min(partners // 2, max(1, round(BELOW * partners)))
    if len(members) < 2:
        below = partners
    rounds = []
    for number in range(partners):
        pairs = _below(members, chance, met) if number >= partners - below else _across(members, chance, met)
        if pairs:
            met |= {frozenset(pair) for pair in pairs}
            rounds.append([list(pair) if serves(*pair) else [pair[1], pair[0]] for pair in sorted(pairs)])
    return rounds


def _across(members: dict[str, list[int]], chance: Random, met: set[frozenset[int]]) -> list[tuple[int, int]]:
    """Return pairs in leaf order, each host with the one half of all hosts further: below another leaf, unless one has more than half."""
    leaf_of = {host: leaf for leaf, hosts in members.items() for host in hosts}
    best: list[tuple[int, int]] = []
    for _try in range(TRIES):
        leaves = chance.sample(sorted(members), len(members))
        order = [host for leaf in leaves for host in chance.sample(members[leaf], len(members[leaf]))]
        half = len(order) // 2
        pairs = [(min(pair), max(pair)) for pair in zip(order[:half], order[half:], strict=False)]
        new = [pair for pair in pairs if frozenset(pair) not in met and leaf_of[pair[0]] != leaf_of[pair[1]]]
        best = max(best, new, key=len)
    return best


def _below(members: dict[str, list[int]], chance: Random, met: set[frozenset[int]]) -> list[tuple[int, int]]:
    """Return pairs of hosts of the same leaf."""
    best: list[tuple[int, int]] = []
    for _try in range(TRIES):
        orders = (chance.sample(hosts, len(hosts)) for _leaf, hosts in sorted(members.items()))
        pairs = [(min(pair), max(pair)) for order in orders for pair in zip(order[::2], order[1::2], strict=False)]
        best = max(best, [pair for pair in pairs if frozenset(pair) not in met], key=len)
    return best


#: With fewer endpoints, the plain sample is used.
FEWEST = 4


@dataclass(frozen=True)
class PlanePaths:
    """Several planes without cables between them."""

    planes: Sequence[FabricPaths]

    def elements(self, rail: int, server: int, client: int) -> tuple[str, ...]:
        """See Paths."""
        return next((found for plane in self.planes if (found := plane.elements(rail, server, client))), ())

    def alternatives(self, element: str) -> int:
        """See Paths."""
        return max((plane.alternatives(element) for plane in self.planes), default=1)


def paths_of(fabric: Mapping[str, Any], plan: Mapping[str, Any], facts: Mapping[str, Facts], *, bidirectional: bool = False) -> Paths:
    """Return the paths. fabric: the content of FABRIC. plan: of the sweep. facts: of comparable(), by host."""
    planes = []
    for graph_data in fabric["planes"]:
        graph, routes = Graph.from_dict(graph_data), fabric.get("routes", {}).get(graph_data["plane"], {})
        tables = {guid: {int(lid): port for lid, port in table.items()} for guid, table in routes.items()}
        planes.append(FabricPaths(graph, ends(graph, plan, facts), tables, bidirectional=bidirectional))
    return planes[0] if len(planes) == 1 else PlanePaths(planes)


def ends(graph: Graph, plan: Mapping[str, Any], facts: Mapping[str, Facts]) -> list[list[End | None]]:
    """Return [rail][host] of a plan: the port of the HCA in the graph, by device GUID; None if it is not in the graph."""
    return [
        [_end(graph, facts.get(host), plan["profiles"], number) for host, number in zip(plan["hosts"], rail["profiles"], strict=True)]
        for rail in plan["rails"]
    ]


def crossing_schedule(fabric: Mapping[str, Any], plan: Mapping[str, Any], facts: Mapping[str, Facts]) -> dict[str, Any] | None:
    """Return the requested sample as a list that crosses spines first.

    None unless each rail has FEWEST endpoints in each of its partitions, and the graph has all of them, below several leaves.
    """
    schedule, graphs = plan["schedule"], [Graph.from_dict(graph_data) for graph_data in fabric["planes"]]
    if schedule["kind"] != "sample" or schedule["seed"] is None:
        return None
    rails = []
    for number, rail in enumerate(plan["rails"]):
        planned = [host for host, profile in enumerate(rail["profiles"]) if profile is not None]
        below = next(
            (of for graph in graphs if all((of := leaves(graph, ends(graph, plan, facts)[number]))[host] for host in planned)), None
        )
        if below is None or len({below[host] for host in planned}) < 2:
            return None
        groups = _by_partition(below, partitions(plan, dict(rail)))
        if any(sum(leaf is not None for leaf in of) < FEWEST for of in groups):
            return None
        apart = [crossing_rounds(of, int(schedule["partners"]), int(schedule["seed"])) for of in groups]
        rails.append([list(chain.from_iterable(of)) for of in zip_longest(*apart, fillvalue=[])])
    return {"kind": "meetings", "rails": rails}


def _by_partition(below: Sequence[str | None], keys: Sequence[int | None]) -> list[list[str | None]]:
    """Return the leaves of a rail's ports, once for each partition, without the unreachable ports of other partitions."""
    there = dict.fromkeys(key for key, leaf in zip(keys, below, strict=True) if leaf is not None)
    return [[leaf if key == one else None for leaf, key in zip(below, keys, strict=True)] for one in there]


def leaves(graph: Graph, of: Sequence[End | None]) -> list[str | None]:
    """Return the GUIDs of the switches to which the ends of a rail are connected."""
    peers = [None if end is None else graph.peer(*end) for end in of]
    return [None if peer is None else peer[0] for peer in peers]


def _end(graph: Graph, facts: Facts | None, profiles: Sequence[Mapping[str, Any]], number: int | None) -> End | None:
    if facts is None or number is None:
        return None
    device = facts.devices.get(profiles[number]["device"])
    guid, port = graph_guid(device.node_guid if device else None), int(profiles[number]["port"])
    return (guid, port) if guid and graph.peer(guid, port) is not None else None
