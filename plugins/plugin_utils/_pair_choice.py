# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who is measured with whom: everybody at first, later only what is new or has changed, against hosts that are proven."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.plugin_utils._pair_fleet import Fleet, Standings
from ansible_collections.rdma.cluster.plugins.plugin_utils._pair_plan import Endpoint

#: Nobody is judged by one partner, where there are more.
FEWEST_PARTNERS = 2

#: Proven hosts that are not in the play: host → rail → endpoint.
Outside = Mapping[str, Mapping[str, Endpoint]]


@dataclass(frozen=True)
class Choice:
    """What a sweep is about. hosts: in the order that the schedule counts by; outside: those of them that are not in the play."""

    hosts: tuple[str, ...]
    rails: tuple[str, ...]
    schedule: Mapping[str, Any]
    outside: tuple[str, ...] = ()


def choose(fleet: Fleet, standings: Standings, pairs: Mapping[str, Any], *, anew: bool, outside: Outside) -> Choice | None:
    """The sweep that proves what is not proven; None if there is nothing to measure, or nobody to measure it with.

    pairs: the intent's rdma_pairs. anew: measure everything, whatever is proven. outside: proven hosts that may serve as partners.
    """
    unproven = (rail for rail in fleet.rails if anew or any(not of[rail].valid for of in standings.values() if rail in of))
    rails = tuple(rail for rail in unproven if fleet.having(rail) and len(fleet.having(rail)) + len(_having(rail, outside)) > 1)
    new = [host for host, of in standings.items() if any(anew or not each.valid for rail, each in of.items() if rail in rails)]
    if not new:
        return None
    few = any(len(fleet.having(rail)) <= FEWEST_PARTNERS for rail in rails)
    partners = [] if anew and not few else _partners(fleet, new, rails, int(pairs["partners"]), outside)
    if partners and len(new) <= max(len(partners), len(fleet.hosts) - len(new)):
        beyond = tuple(host for host in partners if host not in fleet.intents)
        return Choice((*new, *partners), rails, {"kind": "against", "new": len(new)}, beyond)
    return _everybody(fleet, rails, pairs, outside)


def _everybody(fleet: Fleet, rails: tuple[str, ...], pairs: Mapping[str, Any], outside: Outside) -> Choice | None:
    guests = _guests(fleet, rails, outside)
    counts = {rail: len(fleet.having(rail)) + sum(rail in outside[host] for host in guests) for rail in rails}
    measurable = tuple(rail for rail in rails if counts[rail] > 1)
    hosts = tuple(host for host in fleet.hosts if any(rail in fleet.endpoints[host] for rail in measurable))
    odd = any(counts[rail] % 2 for rail in measurable)
    return Choice((*hosts, *guests), measurable, _schedule(pairs, odd=odd), guests) if hosts else None


def _guests(fleet: Fleet, rails: Sequence[str], outside: Outside) -> tuple[str, ...]:
    """Proven hosts for rails on which the fleet alone has too few. No two share a rail: guests are not measured with one another."""
    wanting = {rail for rail in rails if len(fleet.having(rail)) <= FEWEST_PARTNERS}
    found, taken = [], set[str]()
    for host, of in outside.items():
        on = of.keys() & set(rails)
        if on & wanting and not on & taken:
            found.append(host)
            taken |= on
    return tuple(found)


def _schedule(pairs: Mapping[str, Any], *, odd: bool) -> dict[str, Any]:
    """The intent's schedule; a sample whose seed is not given has None, and whoever begins the sweep draws one.

    odd: on a rail somebody has nobody to meet in each round; one round more gives everybody the partners that are asked for.
    """
    if pairs["schedule"] != "sample":
        return {"kind": pairs["schedule"]}
    return {"kind": "sample", "partners": pairs["partners"] + odd, "seed": pairs["seed"]}


def _partners(fleet: Fleet, new: Sequence[str], rails: Sequence[str], most: int, outside: Outside) -> list[str]:
    """Proven hosts for each rail of the new ones, as far apart in the order of hosts as can be; none if a rail has too few."""
    proven = {host: fleet.endpoints[host] for host in fleet.hosts if host not in new}
    found: dict[str, None] = {}
    for rail in rails:
        wanting = [host for host in new if rail in fleet.endpoints[host]]
        inside, beyond = _having(rail, proven), _having(rail, outside)
        having = inside if len(inside) >= FEWEST_PARTNERS else [*inside, *beyond]
        if wanting and len(having) < min(FEWEST_PARTNERS, len(fleet.having(rail)) + len(beyond) - 1):
            return []
        found.update(dict.fromkeys(_spread(having, most)))
    return list(found)


def _having(rail: str, hosts: Outside) -> list[str]:
    return [host for host, of in hosts.items() if rail in of]


def _spread(hosts: Sequence[str], most: int) -> list[str]:
    """At most so many of the hosts, evenly spread: neighbours in a list often hang on one switch."""
    count = min(most, len(hosts))
    return [hosts[number * len(hosts) // count] for number in range(count)]
