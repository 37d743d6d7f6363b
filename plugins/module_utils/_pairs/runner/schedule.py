# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The schedules of a sweep: which two hosts meet in each round of a rail, and which of them serves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, repeat
from typing import Any, NamedTuple, Optional

Meetings = dict[int, tuple[int, bool]]
"""The meetings of one endpoint: round → (partner, whether the endpoint serves), in the order of the rounds."""


def round_count(n: int) -> int:
    """Return how many rounds it takes until each of n hosts has met each other one: n-1, or n if n is odd."""
    return 0 if n < 2 else n - 1 + n % 2


def partner(index: int, round_number: int, n: int) -> int | None:
    """Return the partner of a host (0 to n-1) in a round (0 to round_count(n)-1), None for a bye.

    The circle method in closed form: with m rounds, i and j meet when i + j = round (mod m). A host that would meet itself
    meets the last host if n is even, and has a bye if n is odd.
    """
    rounds = round_count(n)
    if not 0 <= index < n or not 0 <= round_number < rounds:
        raise ValueError(f"no host {index} of {n} in round {round_number} of {rounds}")
    if n % 2 == 0 and index == n - 1:
        return round_number * n // 2 % rounds  # n/2 is the inverse of 2 modulo n-1
    other = (round_number - index) % rounds
    if other != index:
        return other
    return n - 1 if n % 2 == 0 else None


def serves(index: int, other: int) -> bool:
    """Return whether a host serves in a meeting with another: the lower one serves if the sum is even, else the higher one.

    The client sends, so that every host sends in half of its meetings and receives in the other half.
    """
    return (index < other) == ((index + other) % 2 == 0)


class Schedule:
    """The meetings on one rail, in positions 0 to n-1; rounds: their number; meetings: of all hosts together.

    With three or more endpoints, each one sends to some and receives from others; only a listed schedule may differ. Two endpoints
    have only one partner each, so they meet twice, with swapped roles (BothWays). Otherwise one direction would never be measured.
    """

    n = 0
    rounds = 0
    meetings = 0

    def meet(self, index: int, round_number: int) -> tuple[int, bool] | None:
        """Return the partner of an endpoint in a round and whether the endpoint serves, None for a bye."""
        raise NotImplementedError

    def of(self, index: int) -> Meetings:
        """Return all meetings of one endpoint."""
        met = ((number, self.meet(index, number)) for number in range(self.rounds))
        return {number: found for number, found in met if found is not None}

    def pairs(self, round_number: int) -> Iterator[tuple[int, int]]:
        """Yield the (server, client) of a round."""
        for index in range(self.n):
            found = self.meet(index, round_number)
            if found is not None and found[1]:
                yield index, found[0]


class Full(Schedule):
    """Every endpoint meets every other one once."""

    def __init__(self, n: int) -> None:
        self.n, self.rounds, self.meetings = n, round_count(n), n * (n - 1) // 2

    def meet(self, index: int, round_number: int) -> tuple[int, bool] | None:
        """See Schedule."""
        other = partner(index, round_number, self.n)
        return None if other is None else (other, serves(index, other))

    def of(self, index: int) -> Meetings:
        """Return the same as Schedule.of, four times as fast: a sweep of thousands of hosts begins with it."""
        odd, last = index % 2, self.n - 1
        if self.n % 2 == 0 and index == last:
            return super().of(index)
        others = chain(range(self.rounds - index, self.rounds), range(self.rounds - index))
        met = {number: (other, (index < other) == (other % 2 == odd)) for number, other in enumerate(others)}
        alone = 2 * index % self.rounds if self.rounds else None
        if alone is not None:
            found = self.meet(index, alone)
            if found is None:
                del met[alone]
            else:
                met[alone] = found
        return met


class Ring(Schedule):
    """Every endpoint serves the next one, and the last one serves the first."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.rounds, self.meetings = (0, 0) if n < 2 else (2 + n % 2, n)

    def _round_with_next(self, index: int) -> int:
        return 2 if index == self.n - 1 and self.n % 2 else index % 2

    def meet(self, index: int, round_number: int) -> tuple[int, bool] | None:
        """See Schedule."""
        before = (index - 1) % self.n
        if self._round_with_next(index) == round_number:
            return (index + 1) % self.n, True
        return (before, False) if self._round_with_next(before) == round_number else None


class Sample(Schedule):
    """Some rounds of Full over a random order: the same ones for the same seed, on every Python."""

    def __init__(self, n: int, partners: int, seed: int) -> None:
        from random import Random  # noqa: PLC0415 # pylint: disable=import-outside-toplevel # only this kind needs it

        draw = Random(seed).random  # noqa: S311
        self._order = _shuffled(n, draw)
        self._place = {position: place for place, position in enumerate(self._order)}
        self._rounds = _shuffled(round_count(n), draw)[:partners]
        self.n, self.rounds, self.meetings = n, len(self._rounds), len(self._rounds) * (n // 2)

    def meet(self, index: int, round_number: int) -> tuple[int, bool] | None:
        """See Schedule."""
        place = self._place[index]
        other = partner(place, self._rounds[round_number], self.n)
        return None if other is None else (self._order[other], serves(place, other))


def _shuffled(n: int, draw: Any) -> list[int]:
    keys = [draw() for _number in range(n)]
    return sorted(range(n), key=keys.__getitem__)


class Against(Schedule):
    """The first hosts, new or repaired, meet each of the proven others; there are no other meetings."""

    def __init__(self, n: int, new: int) -> None:
        self._new, self._proven = new, n - new
        self.n, self.meetings = n, new * (n - new)
        self.rounds = max(new, n - new) if self.meetings else 0

    def meet(self, index: int, round_number: int) -> tuple[int, bool] | None:
        """See Schedule. New i and proven j meet when i + j = round (mod rounds)."""
        is_new = index < self._new
        other = (round_number - (index if is_new else index - self._new)) % self.rounds
        if other >= (self._proven if is_new else self._new):
            return None
        other += self._new if is_new else 0
        return other, serves(index, other)


class BothWays(Schedule):
    """The one meeting of two endpoints, repeated in a second round with swapped roles."""

    def __init__(self, once: Schedule) -> None:
        self._once = once
        self.n, self.rounds, self.meetings = once.n, 2, 2

    def meet(self, index: int, round_number: int) -> tuple[int, bool] | None:
        """See Schedule."""
        found = self._once.meet(index, 0)
        return found if found is None or round_number == 0 else (found[0], not found[1])


class Listed(Schedule):
    """Meetings as a plan lists them: rounds of (server, client)."""

    def __init__(self, n: int, rounds: Sequence[Sequence[Sequence[int]]]) -> None:
        self._met: list[dict[int, tuple[int, bool]]] = []
        for pairs in rounds:
            met = {server: (client, True) for server, client in pairs}
            met.update({client: (server, False) for server, client in pairs})
            if len(met) != 2 * len(pairs) or not all(0 <= index < n for index in met):
                raise ValueError(f"round {len(self._met)} of the listed meetings has a host twice, or one that is none")
            self._met.append(met)
        self.n, self.rounds, self.meetings = n, len(rounds), sum(map(len, rounds))

    def meet(self, index: int, round_number: int) -> tuple[int, bool] | None:
        """See Schedule."""
        return self._met[round_number].get(index)


class Apart(Schedule):
    """Groups that do not reach each other, in parallel, each with its own schedule; groups: [(schedule, its positions)]."""

    def __init__(self, groups: Sequence[tuple[Schedule, Sequence[int]]]) -> None:
        self._of = {index: (schedule, places, place) for schedule, places in groups for place, index in enumerate(places)}
        self.n = len(self._of)
        self.rounds = max((schedule.rounds for schedule, _places in groups), default=0)
        self.meetings = sum(schedule.meetings for schedule, _places in groups)

    def meet(self, index: int, round_number: int) -> tuple[int, bool] | None:
        """See Schedule."""
        schedule, places, place = self._of[index]
        found = schedule.meet(place, round_number) if round_number < schedule.rounds else None
        return None if found is None else (places[found[0]], found[1])

    def of(self, index: int) -> Meetings:
        """Return the meetings that the group's schedule gives."""
        schedule, places, place = self._of[index]
        return {number: (places[other], serving) for number, (other, serving) in schedule.of(place).items()}


def make_schedule(wanted: Mapping[str, Any], n: int, new: int = 0) -> Schedule:
    """Return the schedule of a plan's kind for n endpoints; new: how many of the first ones, for "against".

    Where two endpoints would meet once, they meet in both directions.
    """
    made = _make_schedule(wanted, n, new)
    return BothWays(made) if n == 2 and made.rounds == 1 else made


def _make_schedule(wanted: Mapping[str, Any], n: int, new: int) -> Schedule:
    kind = wanted["kind"]
    if kind == "full":
        return Full(n)
    if kind == "ring":
        return Ring(n)
    if kind == "sample":
        return Sample(n, int(wanted["partners"]), int(wanted["seed"]))
    if kind == "against":
        return Against(n, new)
    raise ValueError(f"no such kind of schedule: {kind!r}")


class RailSchedule(NamedTuple):
    """A rail's schedule over its own endpoints, and which of the plan's hosts they are (None: all, in their order)."""

    schedule: Schedule
    places: tuple[int, ...] | None

    def of(self, host: int) -> Meetings:
        """Return the meetings of a host, in positions of the plan's hosts."""
        if self.places is None:
            return self.schedule.of(host)
        met = self.schedule.of(self.places.index(host)) if host in self.places else {}
        return {number: (self.places[other], serving) for number, (other, serving) in met.items()}

    def pairs(self, round_number: int) -> Iterator[tuple[int, int]]:
        """Yield the (server, client) of a round, in positions of the plan's hosts."""
        for server, client in self.schedule.pairs(round_number):
            yield (server, client) if self.places is None else (self.places[server], self.places[client])


Made = dict[tuple[Optional[tuple[int, ...]], tuple[Optional[int], ...]], RailSchedule]


def rail_schedules(plan: Mapping[str, Any]) -> list[RailSchedule]:
    """Return the schedule of each rail of a plan; rails with the same endpoints have the same one. Raises ValueError.

    Except for listed meetings, ports in different partitions (profile's pkey) do not meet.
    """
    wanted, hosts = plan["schedule"], len(plan["hosts"])
    if wanted["kind"] == "meetings":
        listed = [*wanted["rails"], *repeat((), len(plan["rails"]) - len(wanted["rails"]))]
        found = [RailSchedule(Listed(hosts, rounds), None) for rounds in listed]
        for rail, schedule in zip(plan["rails"], found):
            _check_listed(rail, schedule)
        return found
    made: Made = {}
    return [_rail_schedule(wanted, rail["addresses"], _several(plan, rail), made) for rail in plan["rails"]]


def _check_listed(rail: Mapping[str, Any], schedule: RailSchedule) -> None:
    for number in range(schedule.schedule.rounds):
        for host in chain.from_iterable(schedule.pairs(number)):
            if rail["addresses"][host] is None:
                raise ValueError(f"a meeting is listed of host {host}, which has no endpoint on {rail['name']}")


def partitions(plan: Mapping[str, Any], rail: Mapping[str, Any]) -> list[int | None]:
    """Return the partition of each host's port on a rail; ports of different ones do not reach each other."""
    return [None if profile is None else plan["profiles"][profile].get("pkey") for profile in rail["profiles"]]


def _several(plan: Mapping[str, Any], rail: Mapping[str, Any]) -> tuple[int | None, ...]:
    """Return the partitions of a rail's ports, () if all ports are in the same one."""
    keys = partitions(plan, rail)
    there = {key for key, address in zip(keys, rail["addresses"]) if address is not None}
    return tuple(keys) if len(there) > 1 else ()


def _rail_schedule(wanted: Mapping[str, Any], addresses: list[str | None], apart: tuple[int | None, ...], made: Made) -> RailSchedule:
    places = None
    if None in addresses:
        places = tuple(index for index, address in enumerate(addresses) if address is not None)
    if (places, apart) not in made:
        here = range(len(addresses)) if places is None else places
        groups: dict[int | None, list[int]] = {}
        for place, index in enumerate(here):
            groups.setdefault(apart[index] if apart else None, []).append(place)
        first = [sum(here[place] < int(wanted.get("new", 0)) for place in group) for group in groups.values()]
        found = [(make_schedule(wanted, len(group), new), group) for group, new in zip(groups.values(), first)]
        made[places, apart] = RailSchedule(found[0][0] if len(found) == 1 else Apart(found), places)
    return made[places, apart]


def own_meetings(plan: Mapping[str, Any], host: int) -> list[Meetings]:
    """Return the meetings of one host on each rail; rails with the same schedule share them. Raises ValueError."""
    schedules = rail_schedules(plan)
    made = {id(schedule): schedule.of(host) for schedule in {id(each): each for each in schedules}.values()}
    return [made[id(schedule)] for schedule in schedules]
