# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ladder of collectives: 2, 4, 8 … hosts, and the blame if a set of them is slow.

The next run is a function of the previous runs: each step climbs the whole ladder again, and stops at the first set without a result. A bad
set is a good one plus the added hosts. The added part is halved, each half by itself or, if it is a single host, with a good one. One bad
host of N is named after at most 2·log2 N + 4 runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.plugin_utils._collectives.blame import (
    EVERYWHERE,
    NO_MORE,
    SETUP,
    UNCLEAR,
    Blame,
    convict,
    find,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._collectives.runs import (
    Hosts,
    MissingResultError,
    Result,
    Runs,
    SetupFaultError,
    TooManyRunsError,
)

#: The number of pairs to try before all are reported as bad.
PAIRS = 5


@dataclass(frozen=True)
class Ladder:
    """The state of the ladder. step: the hosts to run next, None at the end. well: the largest good set, if any.

    left_out: hosts that it continued without, blamed or not.
    """

    step: Hosts | None
    well: Hosts
    blames: tuple[Blame, ...]
    left_out: Hosts


class _Climb:
    """One climb of the ladder."""

    def __init__(self, runs: Runs, hosts: Hosts) -> None:
        self.runs = runs
        self.well: Hosts = ()
        self.rest = hosts
        self.blames: list[Blame] = []

    def go(self, repeats: int) -> None:
        """Climb. Raises MissingResultError at the first set without a result."""
        self._first_pair()
        while self.well and self.rest:
            added = self.rest[: len(self.well)]
            if self.runs.rung((*self.well, *added)):
                self.well = (*self.well, *added)
                self.rest = self.rest[len(added) :]
            else:
                self._blame(find(self.runs, self.well, added))
        if self.well:
            self.runs.repeated(self.well, repeats)

    def _blame(self, blame: Blame) -> None:
        self.blames.append(blame)
        self.rest = tuple(host for host in self.rest if host not in blame.left_out)

    def _first_pair(self) -> None:
        """Find two hosts that are good together: the others are compared with them."""
        tried: list[Hosts] = []
        for pair in _pairs(self.rest):
            if self.runs.rung(pair) if not tried else self.runs.is_well(pair):
                self.well = pair
                break
            tried.append(pair)
        if not self.well:
            named = tuple(dict.fromkeys(host for pair in tried for host in pair))
            kind = UNCLEAR if len(self.rest) == _PAIR else EVERYWHERE
            self._blame(Blame(kind, named, left_out=self.rest))
            return
        self.rest = tuple(host for host in self.rest if host not in self.well)
        for host in dict.fromkeys(host for pair in tried for host in pair if host not in self.well):
            blame = convict(self.runs, host, self.well)
            if blame is not None:
                self._blame(blame)


_PAIR = 2


def _pairs(hosts: Hosts) -> Sequence[Hosts]:
    """Return the pairs to try, in order: all three of the first three hosts, then pairs of hosts not tried before."""
    places = [(0, 1), (0, 2), (1, 2), *((at, at + 1) for at in range(3, len(hosts) - 1, 2))]
    return [(hosts[one], hosts[other]) for one, other in places if other < len(hosts)][:PAIRS]


def climb(hosts: Sequence[str], results: Sequence[Result], repeats: int = 1, most_runs: int | None = None) -> Ladder:
    """Return the state of the ladder.

    hosts: at least two, each good by itself, in the order in which they are added; known good ones first.

    results: of the previous runs. repeats: how often the last set is run. most_runs: the limit at which the ladder stops.
    """
    runs = Runs(results, tuple(hosts), most_runs_of(len(hosts), repeats) if most_runs is None else most_runs)
    way = _Climb(runs, tuple(hosts))
    step: Hosts | None = None
    try:
        way.go(repeats)
    except MissingResultError as need:
        step = need.hosts
    except SetupFaultError as fault:
        way.blames.append(Blame(SETUP, fault.hosts, left_out=way.rest))
    except TooManyRunsError:
        way.blames.append(Blame(NO_MORE, way.rest, left_out=way.rest))
    left_out = tuple(host for host in hosts if host not in way.well and host not in (way.rest if step else ()))
    return Ladder(step, way.well, tuple(way.blames), left_out)


def most_runs_of(hosts: int, repeats: int) -> int:
    """Return the maximum number of runs: enough to name several bad hosts, but not one run for each host of a broken cluster."""
    return 10 + 8 * max(1, (hosts - 1).bit_length()) + repeats
