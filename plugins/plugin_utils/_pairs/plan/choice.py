# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who is measured with whom: everybody at first, later only what is new or has changed, against hosts that are proven."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.fleet import Fleet, Standings
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.plan.plan import Endpoint

#: Nobody is judged by one partner, where there are more.
FEWEST_PARTNERS = 2

#: Proven hosts that are not in the play: host → rail → endpoint.
Outside = Mapping[str, Mapping[str, Endpoint]]
#: A rail and one partition of its ports, as Endpoint's pkey has it: who can meet there.
Lane = tuple[str, int | None]
Lanes = Mapping[str, frozenset[Lane]]


@dataclass(frozen=True)
class Choice:
    """What a sweep is about. hosts: in the order that the schedule counts by; outside: those of them that are not in the play.

    lanes: the rails and partitions that are measured; an endpoint on another one would meet nobody.
    """

    hosts: tuple[str, ...]
    lanes: tuple[Lane, ...]
    schedule: Mapping[str, Any]
    outside: tuple[str, ...] = ()

    @property
    def rails(self) -> tuple[str, ...]:
        """In the order of the lanes."""
        return tuple(dict.fromkeys(rail for rail, _pkey in self.lanes))

    def measured(self, endpoints: Outside) -> dict[str, dict[str, Endpoint]]:
        """Of these endpoints (host → rail → endpoint), those that meet somebody."""
        lanes = set(self.lanes)
        return {host: {rail: each for rail, each in endpoints[host].items() if lane(rail, each) in lanes} for host in self.hosts}


@dataclass(frozen=True)
class Field:
    """Who could be measured. here: host of the play → its lanes; valid: those of them that are proven; outside: of proven hosts beyond."""

    here: Lanes
    valid: Lanes
    outside: Lanes

    def having(self, where: Lane) -> list[str]:
        """The hosts of the play that can be met there."""
        return _having(where, self.here)


def lane(rail: str, endpoint: Endpoint) -> Lane:
    """Where an endpoint can be met."""
    return rail, endpoint.get("pkey")


def choose(fleet: Fleet, standings: Standings, pairs: Mapping[str, Any], *, anew: bool, outside: Outside) -> Choice | None:
    """The sweep that proves what is not proven; None if there is nothing to measure, or nobody to measure it with.

    pairs: the intent's rdma_pairs. anew: measure everything, whatever is proven. outside: proven hosts that may serve as partners.
    """
    field = _field(fleet, standings, outside, anew=anew)
    order = {rail: number for number, rail in enumerate(fleet.rails)}
    there = dict.fromkeys(each for of in field.here.values() for each in sorted(of, key=_number))
    unproven = {each for host, of in field.here.items() for each in of - field.valid[host]}
    wanted = sorted((each for each in there if each in unproven), key=lambda each: (order[each[0]], _number(each)))
    lanes = tuple(each for each in wanted if len(field.having(each)) + len(_having(each, field.outside)) > 1)
    new = [host for host, of in field.here.items() if (of - field.valid[host]) & set(lanes)]
    if not new:
        return None
    few = any(len(field.having(each)) <= FEWEST_PARTNERS for each in lanes)
    partners = [] if anew and not few else _partners(field, new, lanes, int(pairs["partners"]))
    if partners and len(new) <= max(len(partners), len(fleet.hosts) - len(new)):
        beyond = tuple(host for host in partners if host not in fleet.intents)
        return Choice((*new, *partners), lanes, {"kind": "against", "new": len(new)}, beyond)
    return _everybody(field, lanes, pairs)


def _number(where: Lane) -> int:
    return -1 if where[1] is None else where[1]


def _field(fleet: Fleet, standings: Standings, outside: Outside, *, anew: bool) -> Field:
    valid = {
        host: frozenset(lane(rail, fleet.endpoints[host][rail]) for rail, each in of.items() if each.valid and not anew)
        for host, of in standings.items()
    }
    return Field(_lanes(fleet.endpoints), valid, _lanes(outside))


def _lanes(endpoints: Outside) -> Lanes:
    return {host: frozenset(lane(rail, each) for rail, each in of.items()) for host, of in endpoints.items()}


def _everybody(field: Field, lanes: tuple[Lane, ...], pairs: Mapping[str, Any]) -> Choice | None:
    guests = _guests(field, lanes)
    counts = {each: len(field.having(each)) + sum(each in field.outside[host] for host in guests) for each in lanes}
    measurable = tuple(each for each in lanes if counts[each] > 1)
    hosts = tuple(host for host, of in field.here.items() if of & set(measurable))
    odd = any(counts[each] % 2 for each in measurable)
    return Choice((*hosts, *guests), measurable, _schedule(pairs, odd=odd), guests) if hosts else None


def _guests(field: Field, lanes: Sequence[Lane]) -> tuple[str, ...]:
    """Proven hosts where the fleet alone has too few. No two share a lane: guests are not measured with one another."""
    wanting = {each for each in lanes if len(field.having(each)) <= FEWEST_PARTNERS}
    found, taken = [], set[Lane]()
    for host, of in field.outside.items():
        on = of & set(lanes)
        if on & wanting and not on & taken:
            found.append(host)
            taken |= on
    return tuple(found)


def _schedule(pairs: Mapping[str, Any], *, odd: bool) -> dict[str, Any]:
    """The intent's schedule; a sample whose seed is not given has None, and whoever begins the sweep draws one.

    odd: somewhere somebody has nobody to meet in each round; one round more gives everybody the partners that are asked for.
    """
    if pairs["schedule"] != "sample":
        return {"kind": pairs["schedule"]}
    return {"kind": "sample", "partners": pairs["partners"] + odd, "seed": pairs["seed"]}


def _partners(field: Field, new: Sequence[str], lanes: Sequence[Lane], most: int) -> list[str]:
    """Proven hosts for each lane of the new ones, as far apart in the order of hosts as can be; none if a lane has too few."""
    proven = {host: of for host, of in field.here.items() if host not in new}
    found: dict[str, None] = {}
    for where in lanes:
        wanting = [host for host in new if where in field.here[host]]
        inside, beyond = _having(where, proven), _having(where, field.outside)
        having = inside if len(inside) >= FEWEST_PARTNERS else [*inside, *beyond]
        if wanting and len(having) < min(FEWEST_PARTNERS, len(field.having(where)) + len(beyond) - 1):
            return []
        found.update(dict.fromkeys(_spread(having, most)))
    return list(found)


def _having(where: Lane, hosts: Lanes) -> list[str]:
    return [host for host, of in hosts.items() if where in of]


def _spread(hosts: Sequence[str], most: int) -> list[str]:
    """At most so many of the hosts, evenly spread: neighbours in a list often hang on one switch."""
    count = min(most, len(hosts))
    return [hosts[number * len(hosts) // count] for number in range(count)]
