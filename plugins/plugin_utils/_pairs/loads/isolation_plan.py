# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Measurements that must fail: ports of different partitions try to reach each other, as a plan of the pair runner.

Each of two ports uses the key of its own partition. If both are limited members of a third one (usually the default partition), they try
that too. Only hosts without a verdict take part, so that a failure shows something about partitions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.plan.plan import Endpoint, make_plan, tests_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.plan.suspects import Meeting, rounds
from ansible_collections.rdma.cluster.plugins.plugin_utils._subnet_manager.plan import limited_places, partition_words

#: Up to this number, all pairs of partitions of a rail are tried; above it, each partition tries two others.
MOST_PAIRS = 28
ITERATIONS = 1000


@dataclass(frozen=True)
class Attempt:
    """Two hosts of different partitions on a rail. indexes: the P_Key index of each.

    key: the common partition of both ports, None if each uses its own.
    """

    rail: str
    server: str
    client: str
    indexes: Sequence[int]
    key: int | None = None

    @property
    def column(self) -> str:
        """The plan's name of the rail. In each such rail, a host's port uses one P_Key index."""
        return self.rail if self.key is None else f"{self.rail} in {partition_words(self.key)}"


@dataclass(frozen=True)
class Apart:
    """One rail: its partitions with hosts without a verdict, and those without such hosts."""

    rail: str
    well: Mapping[int, Sequence[str]]
    unknown: Sequence[int]

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Yield a host of each of two partitions; for large partitions, different hosts."""
        keys = list(self.well)
        all_pairs = list(combinations(keys, 2))
        for number, (one, other) in enumerate(all_pairs if len(all_pairs) <= MOST_PAIRS else pairwise([*keys, keys[0]])):
            yield self.well[one][number % len(self.well[one])], self.well[other][number % len(self.well[other])]


def apart(endpoints: Mapping[str, Mapping[str, Endpoint]], good: Mapping[str, Sequence[str]]) -> list[Apart]:
    """Return the rails with ports in several partitions. good: rail → hosts known to be good, the most recently measured first."""
    found = []
    for rail, hosts in good.items():
        pkeys = {host: of[rail].get("pkey") for host, of in endpoints.items() if rail in of}
        there = dict.fromkeys(pkey for pkey in pkeys.values() if pkey is not None)
        members = {pkey: [host for host in hosts if pkeys.get(host) == pkey] for pkey in there}
        if len(members) > 1:
            well = {pkey: hosts for pkey, hosts in members.items() if hosts}
            found.append(Apart(rail, well, [pkey for pkey, hosts in members.items() if not hosts]))
    return found


def attempts(rail: Apart, endpoints: Mapping[str, Mapping[str, Endpoint]], facts: Mapping[str, Facts]) -> Iterator[Attempt]:
    """Yield the attempts on a rail. endpoints: host → rail → endpoint. facts: of comparable(), by host."""
    for server, client in rail.pairs():
        ends = [endpoints[host][rail.rail] for host in (server, client)]
        yield Attempt(rail.rail, server, client, [end["pkey_index"] for end in ends])
        one, other = (_limited(facts[host], end) for host, end in zip((server, client), ends, strict=True))
        yield from (Attempt(rail.rail, server, client, [one[key], other[key]], key) for key in one if key in other)


def _limited(facts: Facts, endpoint: Endpoint) -> dict[int, int]:
    return limited_places(facts.devices[endpoint["device"]].ports[str(endpoint["port"])])


def isolation_plan(
    name: str, planned: Sequence[Attempt], of: Mapping[str, Mapping[str, Endpoint]], intent: Intent, forks: int
) -> dict[str, Any]:
    """Return the plan. of: host → rail → endpoint. intent: of a host, for the test."""
    test = {**tests_of(intent)[0], "iterations": ITERATIONS, "queue_pairs": 1, "bidirectional": False}
    met = {host for each in planned for host in (each.server, each.client)}
    hosts = [host for host in of if host in met]
    columns = list(dict.fromkeys(each.column for each in planned))
    endpoints: dict[str, dict[str, Endpoint]] = {host: {} for host in hosts}
    for each in planned:
        for host, index in zip((each.server, each.client), each.indexes, strict=True):
            endpoints[host][each.column] = {**of[host][each.rail], "pkey_index": index}
    meetings: list[Meeting] = [(each.column, each.server, each.client) for each in planned]
    schedule = {"kind": "meetings", "rails": rounds(meetings, hosts, columns)}
    return make_plan(name, hosts=hosts, rails=columns, of=endpoints, tests=[test], schedule=schedule, forks=forks)
