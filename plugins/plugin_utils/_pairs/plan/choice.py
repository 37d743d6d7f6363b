# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The choice of pairs: at first all hosts, later only new or changed ones, against proven hosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.fleet import Fleet, Standings, measured_pairs
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.plan.plan import Endpoint

#: A host is not judged by a single partner if there are more.
FEWEST_PARTNERS = 2

#: Proven hosts that are not in the play: host → rail → endpoint.
Outside = Mapping[str, Mapping[str, Endpoint]]
#: A rail and one partition of its ports, as in Endpoint's pkey: the hosts in it can reach each other.
Lane = tuple[str, int | None]
Lanes = Mapping[str, frozenset[Lane]]


@dataclass(frozen=True)
class Choice:
    """The subject of a sweep. hosts: in the order used by the schedule. outside: those that are not in the play.

    lanes: the measured rails and partitions. An endpoint on another lane would have no partner.
    """

    hosts: tuple[str, ...]
    lanes: tuple[Lane, ...]
    schedule: Mapping[str, Any]
    outside: tuple[str, ...] = ()

    @property
    def rails(self) -> tuple[str, ...]:
        """The rails, in the order of the lanes."""
        return tuple(dict.fromkeys(rail for rail, _pkey in self.lanes))

    def measured(self, endpoints: Outside) -> dict[str, dict[str, Endpoint]]:
        """Return those of these endpoints (host → rail → endpoint) that have a partner."""
        lanes = set(self.lanes)
        return {host: {rail: each for rail, each in endpoints[host].items() if lane(rail, each) in lanes} for host in self.hosts}


@dataclass(frozen=True)
class Field:
    """The candidates. here: host of the play → its lanes. valid: its proven lanes. outside: lanes of proven hosts outside the play."""

    here: Lanes
    valid: Lanes
    outside: Lanes

    def having(self, where: Lane) -> list[str]:
        """Return the hosts of the play in a lane."""
        return _having(where, self.here)


def lane(rail: str, endpoint: Endpoint) -> Lane:
    """Return the lane of an endpoint."""
    return rail, endpoint.get("pkey")


def choose(fleet: Fleet, standings: Standings, pairs: Mapping[str, Any], *, remeasure: bool, outside: Outside) -> Choice | None:
    """Return the sweep that proves the unproven endpoints; None if there is nothing to measure, or no partner.

    pairs: the intent's rdma_pairs. remeasure: measure all endpoints, even proven ones. outside: proven hosts that may serve as partners.
    """
    field = _field(fleet, standings, outside, remeasure=remeasure)
    order = {rail: number for number, rail in enumerate(fleet.rails)}
    there = dict.fromkeys(each for of in field.here.values() for each in sorted(of, key=_number))
    unproven = {each for host, of in field.here.items() for each in of - field.valid[host]}
    wanted = sorted((each for each in there if each in unproven), key=lambda each: (order[each[0]], _number(each)))
    lanes = tuple(each for each in wanted if len(field.having(each)) + len(_having(each, field.outside)) > 1)
    new = [host for host, of in field.here.items() if (of - field.valid[host]) & set(lanes)]
    if not new:
        return None
    few = any(len(field.having(each)) <= FEWEST_PARTNERS for each in lanes)
    partners = [] if remeasure and not few else _partners(field, new, lanes, int(pairs["partners"]))
    if partners and len(new) <= max(len(partners), len(fleet.hosts) - len(new)):
        beyond = tuple(host for host in partners if host not in fleet.intents)
        return Choice((*new, *partners), lanes, {"kind": "against", "new": len(new)}, beyond)
    return _everybody(field, lanes, pairs)


def _number(where: Lane) -> int:
    return -1 if where[1] is None else where[1]


def _field(fleet: Fleet, standings: Standings, outside: Outside, *, remeasure: bool) -> Field:
    valid = {
        host: frozenset(lane(rail, fleet.endpoints[host][rail]) for rail, each in of.items() if each.valid and not remeasure)
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
    """Return proven hosts for lanes where the fleet alone has too few. No two share a lane: guests are not measured with one another."""
    wanting = {each for each in lanes if len(field.having(each)) <= FEWEST_PARTNERS}
    found, taken = [], set[Lane]()
    for host, of in field.outside.items():
        on = of & set(lanes)
        if on & wanting and not on & taken:
            found.append(host)
            taken |= on
    return tuple(found)


def _schedule(pairs: Mapping[str, Any], *, odd: bool) -> dict[str, Any]:
    """Return the intent's schedule. A sample without a seed has None, and the code that begins the sweep draws one.

    odd: a lane has an odd number of hosts, so one has no partner in each round. One more round gives all hosts the requested partners.
    """
    if pairs["schedule"] != "sample":
        return {"kind": measured_pairs(pairs["schedule"])}
    return {"kind": "sample", "partners": pairs["partners"] + odd, "seed": pairs["seed"]}


def _partners(field: Field, new: Sequence[str], lanes: Sequence[Lane], most: int) -> list[str]:
    """Return proven hosts for each lane of the new ones, as far apart in the order of hosts as possible; none if a lane has too few."""
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
    """Return at most this many of the hosts, evenly spread: neighbors in a list are often on the same switch."""
    count = min(most, len(hosts))
    return [hosts[number * len(hosts) // count] for number in range(count)]
