# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The load across spines: on each rail all pairs at once, then one of them alone, as a plan of the pair runner.

The runners of different pairs are not synchronized. So the pairs exchange partners for some rounds first: each round waits for its
partner's previous one, and after log2(pairs) rounds for that of all. All pairs then begin and end the last but one round together.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.graph import Graph
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.shape.uplink_share import between_switches, has_rates
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.evidence import Evidence
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.expected import is_software
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.fabric import ends, leaves
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.plan.plan import Endpoint, make_plan, meeting, tests_of

#: One pair at once would be the same as one alone.
FEWEST_PAIRS = 2
SOFTWARE = "Soft-RoCE has no fabric of its own"
NO_GRAPH = "this run has no graph of the fabric of its ports"
NO_UPLINKS = "the graph has nothing above the leaves: LLDP shows hosts only their own neighbors"
NO_RATES = "the graph is incomplete, or lacks link rates: see the findings of the fabric stage"
ONE_LEAF = "all its ports are on one leaf: nothing crosses spines"
TOO_FEW = f"fewer than {2 * FEWEST_PAIRS} hosts without a verdict could be paired across spines"
Rounds = list[list[list[int]]]


@dataclass(frozen=True)
class Crossing:
    """A rail whose pairs cross spines: the names of the senders and of their receivers, all in one partition."""

    rail: str
    senders: tuple[str, ...]
    receivers: tuple[str, ...]


def plane_of(intents: Mapping[str, Intent], rail: str) -> str:
    """Return the plane of a rail: that of the first host with a rail of this name."""
    planned = (each for intent in intents.values() for each in intent["rails"] if each["name"] == rail)
    return next((str(each.get("plane") or "default") for each in planned), "default")


def crossing(sweep: Evidence, rail: str, graph: Graph | None, good: Sequence[str]) -> Crossing | str:
    """Return the pairs of a rail, or why there are none. graph: of its plane. good: hosts without a verdict."""
    if any(is_software(of[rail]) for of in sweep.limits.values() if rail in of):
        return SOFTWARE
    why = NO_GRAPH if graph is None else not_crossed(graph)
    return _pairs(sweep, rail, graph, set(good)) if graph is not None and not why else why


def not_crossed(graph: Graph) -> str:
    """Return why this graph cannot be compared with, "" if it can."""
    if len(graph.leaves()) < 2:
        return ONE_LEAF
    if not between_switches(graph):
        return NO_UPLINKS
    return "" if has_rates(graph) else NO_RATES


def _pairs(sweep: Evidence, rail: str, graph: Graph, good: Container[str]) -> Crossing | str:
    hosts = sweep.plan["hosts"]
    number = next(at for at, each in enumerate(sweep.plan["rails"]) if each["name"] == rail)
    below = leaves(graph, ends(graph, sweep.plan, sweep.facts)[number])
    if len({leaf for leaf in below if leaf is not None}) < 2:
        return ONE_LEAF if any(below) else NO_GRAPH
    keys = [sweep.partitions[rail, host] for host in hosts]
    groups = [
        [leaf if host in good and key == one else None for host, leaf, key in zip(hosts, below, keys, strict=True)]
        for one in dict.fromkeys(keys)
    ]
    pairs = max(map(across, groups), key=len)
    if len(pairs) < FEWEST_PAIRS:
        return TOO_FEW
    return Crossing(rail, tuple(hosts[one] for one, _other in pairs), tuple(hosts[other] for _one, other in pairs))


def across(below: Sequence[str | None]) -> list[tuple[int, int]]:
    """Return as many pairs of different leaves as possible, the sender first. A leaf as a whole sends or receives, except for one.

    below: the leaf of each host, None if it does not take part.
    """
    members: dict[str, list[int]] = {}
    for host, leaf in enumerate(below):
        if leaf is not None:
            members.setdefault(leaf, []).append(host)
    while (count := sum(map(len, members.values()))) % 2 or 2 * max(map(len, members.values()), default=0) > count:
        max(members.values(), key=len).pop()
    order = [host for hosts in members.values() for host in hosts]
    # Hosts of a leaf are consecutive and at most half of all: no pair is within a leaf.
    return list(zip(order[: count // 2], order[count // 2 :], strict=True))


def exchanged(pairs: Sequence[tuple[int, int]], most: int) -> Rounds:
    """Return rounds of [sends, receives]: exchanges of partners, all pairs at once, and a single one. most: pairs of the largest rail.

    Results do not show their round. So data flows the other way in the exchanges, and the single pair is not one of the others.
    """
    receivers = [receives for _sends, receives in pairs]
    rounds = []
    for turn in range((most - 1).bit_length(), 0, -1):
        shift = 2**turn - 1
        rounds.append([[receivers[(at - shift) % len(pairs)], sends] for at, (sends, _receives) in enumerate(pairs)])
    return [*rounds, [list(pair) for pair in pairs], [[pairs[0][0], receivers[1]]]]


def spine_load_plan(
    name: str, planned: Sequence[Crossing], of: Mapping[str, Mapping[str, Endpoint]], intent: Intent, forks: int
) -> dict[str, Any]:
    """Return the plan of these rails. of: host → rail → endpoint. intent: of a host, for the test, which is unidirectional and timed."""
    test = tests_of({**intent, "pairs": {**intent["pairs"], "iterations": None, "bidirectional": False}})[0]
    met = {host for each in planned for host in (*each.senders, *each.receivers)}
    hosts = [host for host in of if host in met]
    at = {host: number for number, host in enumerate(hosts)}
    most = max(len(each.senders) for each in planned)
    rails = []
    for each in planned:
        pairs = [(at[sends], at[receives]) for sends, receives in zip(each.senders, each.receivers, strict=True)]
        rails.append([[meeting(test, *pair) for pair in turn] for turn in exchanged(pairs, most)])
    schedule = {"kind": "meetings", "rails": rails}
    return make_plan(name, hosts=hosts, rails=[each.rail for each in planned], of=of, tests=[test], schedule=schedule, forks=forks)


def planned_rounds(plan: Mapping[str, Any]) -> dict[str, Rounds]:
    """Return rail → [the pairs at once, the single one], each [sends, receives] in positions of the plan's hosts."""
    rails = zip(plan["rails"], plan["schedule"]["rails"], strict=True)
    # `meeting` also converts a listed meeting back.
    return {rail["name"]: [[meeting(plan["tests"][0], *pair) for pair in turn] for turn in rounds[-2:]] for rail, rounds in rails}
