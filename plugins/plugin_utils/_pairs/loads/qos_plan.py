# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Many-to-one load: the senders and the target on each RoCE rail, as a plan of the pair runner.

Each source has its own rail in that plan ("rail0<node2"), with only itself and the target as endpoints. So the target receives from all
sources at once, on one port each, on the same device.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import resolve
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.plan.plan import (
    PERFTEST_PORT,
    RENDEZVOUS_PORT,
    Endpoint,
    make_plan,
    meeting,
    tests_of,
)

#: At least two sources, because a single one is not slowed down.
FEWEST_SOURCES = 2
#: The number of rounds in which each source sends. Ansible starts the hosts one by one, so all of them run only from the second round on.
ROUNDS = 2
SENDER = "<"


@dataclass(frozen=True)
class Funnel:
    """A rail on which many hosts send to one."""

    rail: str
    target: str
    sources: tuple[str, ...]


def rails_with_queues(intent: Intent, facts: Facts) -> set[str]:
    """Return the RoCE rails of a host whose NIC has priorities (DCB). Other NICs (Soft-RoCE) cannot slow senders down."""
    states = facts.qos or {}
    rails = [rail for rail in resolve(intent["rails"], facts) if rail.rail["link_layer"] == "roce"]
    return {rail.name for rail in rails if (states.get(rail.netdev or "") or {}).get("backend") is not None}


def funnels(rails: Sequence[str], hosts: Sequence[str], good: Mapping[str, Sequence[str]], most: int) -> list[Funnel]:
    """Return a funnel for each rail with enough hosts. hosts: in the order of the sweep. good: rail → hosts without a verdict.

    most: sources of one target. Each source needs a perftest port and a rendezvous port, so all rails together have at most about 85.
    """
    most = min(most, (RENDEZVOUS_PORT - PERFTEST_PORT) // max(1, len(rails)))
    there = {rail: [host for host in hosts if host in good.get(rail, ())] for rail in rails}
    found = (Funnel(rail, of[0], tuple(of[1 : 1 + most])) for rail, of in there.items() if of)
    return [each for each in found if len(each.sources) >= FEWEST_SOURCES]


def load_plan(name: str, planned: Sequence[Funnel], of: Mapping[str, Mapping[str, Endpoint]], intent: Intent, forks: int) -> dict[str, Any]:
    """Return the plan of these funnels. of: host → rail → endpoint.

    intent: of a host, for the bandwidth test, which is unidirectional here.
    """
    tests = [{**tests_of(intent)[0], "bidirectional": False}]
    hosts = list(dict.fromkeys(host for each in planned for host in (each.target, *each.sources)))
    endpoints: dict[str, dict[str, Endpoint]] = {host: {} for host in hosts}
    meetings = []
    for each in planned:
        for source in each.sources:
            for host in (each.target, source):
                endpoints[host][_name(each.rail, source)] = of[host][each.rail]
            meetings.append([[meeting(tests[0], hosts.index(source), hosts.index(each.target))]] * ROUNDS)
    rails = [_name(each.rail, source) for each in planned for source in each.sources]
    schedule = {"kind": "meetings", "rails": meetings}
    return make_plan(name, hosts=hosts, rails=rails, of=endpoints, tests=tests, schedule=schedule, forks=forks)


def _name(rail: str, source: str) -> str:
    return f"{rail}{SENDER}{source}"


def planned_funnels(plan: Mapping[str, Any]) -> list[Funnel]:
    """Return the funnels that were given to load_plan."""
    found: dict[str, Funnel] = {}
    for rail, source, target in _sources(plan):
        before = found.get(rail)
        found[rail] = Funnel(rail, target, (*(before.sources if before else ()), source))
    return list(found.values())


def _sources(plan: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield (rail, source, target) of each rail of the plan."""
    for rail, rounds in zip(plan["rails"], plan["schedule"]["rails"], strict=True):
        name, _sender, source = rail["name"].rpartition(SENDER)
        one, other = (plan["hosts"][host] for host in rounds[0][0])
        yield name, source, other if one == source else one
