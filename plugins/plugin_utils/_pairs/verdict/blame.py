# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The best explanation of the low measurements of a matrix: the likelihood gained by calling a part bad, with its own share of low ones.

A cell is one direction of a NIC. Calling n measurements bad, k of them low, gains Σ w + k ln(k/n) + (n-k) ln(1-k/n). w is -ln of the chance
that a healthy one is as low. The part with the greatest gain is blamed first and explains its low ones; the rest is examined again.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.matrix.matrix import Matrix
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.verdict.crossings import PATH_LOW, RECEIVES, SENDS, Crossing, one_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.verdict.scale_few import NEARLY_ALL_LOW

#: The probability of blaming any part of a healthy matrix.
ALPHA = 0.005
#: A part with a smaller share of low measurements is not to blame; pairs may be.
LEAST_SHARE = 0.15
#: A host is bad as a whole if this share of its NICs is bad, and a rail likewise.
NEARLY_ALL = 0.8
#: A whole rail is bad under three conditions: it has this many NICs, each NIC's share of low measurements is at least this part of the
#: rail's share, and the rail's share is at least this.
LOSSY_NICS, LOSSY_ALIKE, LOSSY_SHARE = 8, 0.75, 0.3
DIRECTIONS = ("sends", "receives")
Cell = tuple[int, int, int]


@dataclass(frozen=True)
class Blamed:
    """kind, host, rail, direction, element as in a Verdict, and the low measurements that it explains."""

    kind: str
    gain: float
    lows: tuple[int, ...]
    host: int | None = None
    rail: int | None = None
    direction: str | None = None
    element: str | None = None

    def has(self, cell: Cell) -> bool:
        """Return whether a cell is part of the blamed part."""
        rail, host, direction = cell
        if self.kind == "path" or self.rail not in (None, rail) or self.host not in (None, host):
            return False
        return self.direction in (None, DIRECTIONS[direction])


class Court:
    """The unexplained low measurements. weights: position of a low one → w. crossed: by element."""

    def __init__(self, matrix: Matrix, weights: Mapping[int, float], crossed: Mapping[str, Crossing]) -> None:
        self.matrix, self.weights, self.crossed = matrix, weights, crossed
        self.n = Counter(_cells(matrix))
        self.total = Counter(matrix.rail)
        self.rails_of: dict[int, set[int]] = defaultdict(set)
        for rail, host, _direction in self.n:
            self.rails_of[host].add(rail)
        self.open = set(weights)
        self.lows: dict[Cell, set[int]] = defaultdict(set)
        for at in weights:
            for cell in self.cells(at):
                self.lows[cell].add(at)
        self.need = math.log(3 * len(self.n) + len(crossed) + 1) - math.log(ALPHA)

    def cells(self, at: int) -> tuple[Cell, Cell]:
        rail = self.matrix.rail[at]
        return (rail, self.matrix.client[at], SENDS), (rail, self.matrix.server[at], RECEIVES)

    def partners(self, host: int, lows: Iterable[int]) -> set[int]:
        """Return the hosts at the other end of these."""
        server, client = self.matrix.server, self.matrix.client
        return {client[at] if server[at] == host else server[at] for at in lows}

    def judge(self) -> list[Blamed]:
        """Return all blamed parts, the greatest gain first."""
        found = []
        queue = [(-gain, *where) for where in self._suspects() if (gain := sum(each.gain for each in self._best(*where))) > 0]
        heapq.heapify(queue)
        # A group of spines may explain more once a nearer cause is known.
        groups = [(1, element) for element, crossing in self.crossed.items() if crossing.alternatives > 1]
        while queue:
            _gain, order, name = heapq.heappop(queue)
            best = self._best(order, name)
            gain = sum(each.gain for each in best)
            if gain <= 0:
                continue
            if queue and -gain > queue[0][0]:
                heapq.heappush(queue, (-gain, order, name))
                continue
            found += best
            self._explained(at for each in best for at in each.lows)
            for group in groups:
                if (gain := sum(each.gain for each in self._best(*group))) > 0:
                    heapq.heappush(queue, (-gain, *group))
        return _needed(self, _whole_rails(self, found))

    def _suspects(self) -> Iterator[tuple[int, int | str]]:
        """Yield (order, name) of rails (0), elements (1) and hosts (2) with low measurements."""
        yield from ((0, rail) for rail in sorted({rail for rail, _host, _direction in self.lows}))
        yield from ((1, element) for element in sorted(self.crossed))
        yield from ((2, host) for host in sorted({host for _rail, host, _direction in self.lows}))

    def _best(self, order: int, name: int | str) -> list[Blamed]:
        if order == 2:
            return _best_of_host(self, int(name))
        if order == 0:
            rail = int(name)
            lows = [at for cell, each in self.lows.items() if cell[0] == rail and cell[2] == SENDS for at in each]
            share = LOSSY_SHARE if self._is_lossy(rail) else NEARLY_ALL_LOW
            return self._shared(Blamed("rail", 0, tuple(lows), rail=rail), self.total[rail], share)
        return self._best_of_element(str(name))

    def _best_of_element(self, name: str) -> list[Blamed]:
        crossing = self.crossed[name]
        lows = tuple(at for at in crossing.lows if at in self.open)
        blamed = Blamed("path", 0, lows, element=name)
        if crossing.alternatives == 1:
            return self._shared(blamed, crossing.rest(lows), PATH_LOW)
        gain, explained = one_of(crossing, self.matrix, self.weights, self._uncontested(crossing, lows))
        gain -= self.need
        return [replace(blamed, gain=gain, lows=tuple(explained))] if gain > 0 and not self._have_one_end(explained) else []

    def _uncontested(self, crossing: Crossing, lows: Sequence[int]) -> list[int]:
        """Return the low ones of a group without a nearer cause: an element that is nearly all low, or an end that is bad elsewhere too."""
        taken: set[int] = set()
        for other in self.crossed.values():
            own = [at for at in other.lows if at in self.open] if other.alternatives == 1 else []
            if own and len(own) >= PATH_LOW * other.rest(own):
                taken.update(own)
        rest = [at for at in lows if at not in taken]
        low, low_rest = (Counter(cell for at in of for cell in self.cells(at)) for of in (lows, rest))
        gone = Counter(cell for at in crossing.lows if at not in self.open for cell in self.cells(at))
        bad = set()
        for cell, number in low_rest.items():
            crosses = crossing.ends[cell] - gone[cell]
            beyond, low_beyond = self.n[cell] - crosses, len(self.lows[cell]) - low[cell]
            if number >= PATH_LOW * (crosses - low[cell] + number) and low_beyond >= max(1, PATH_LOW * beyond):
                bad.add(cell)
        return [at for at in rest if not bad & {*self.cells(at)}]

    def _is_lossy(self, rail: int) -> bool:
        """Return whether nearly all of many NICs of a rail have about the same share of low ones, which a few NICs cannot cause."""
        nics: dict[int, list[int]] = defaultdict(lambda: [0, 0])
        for host in (host for host, rails in self.rails_of.items() if rail in rails):
            for cell in ((rail, host, SENDS), (rail, host, RECEIVES)):
                nics[host][0] += len(self.lows.get(cell, ()))
                nics[host][1] += self.n[cell]
        low, n = (sum(each[at] for each in nics.values()) for at in (0, 1))
        alike = sum(1 for own_low, own_n in nics.values() if own_low * n >= LOSSY_ALIKE * low * own_n)
        return len(nics) >= LOSSY_NICS and alike >= NEARLY_ALL * len(nics)

    def _shared(self, blamed: Blamed, n: int, share: float) -> list[Blamed]:
        """Return a part that many endpoints share, if nearly all is low and no endpoint is at an end of all of it."""
        lows = blamed.lows
        if not lows or len(lows) < share * n or self._have_one_end(lows):
            return []
        gain = self.gain(lows, n) - self.need
        return [replace(blamed, gain=gain)] if gain > 0 else []

    def _have_one_end(self, lows: Iterable[int]) -> bool:
        """Return whether one host is at an end of all of them."""
        return bool(set.intersection(*({self.matrix.server[at], self.matrix.client[at]} for at in lows)))

    def gain(self, lows: Sequence[int], n: int) -> float:
        k = len(lows)
        good = (n - k) * math.log1p(-k / n) if n > k else 0.0
        return sum(self.weights[at] for at in lows) + k * math.log(k / n) + good

    def _explained(self, lows: Iterable[int]) -> None:
        for at in set(lows) & self.open:
            self.open.discard(at)
            self.total[self.matrix.rail[at]] -= 1
            for cell in self.cells(at):
                self.lows[cell].discard(at)
                self.n[cell] -= 1


def _cells(matrix: Matrix) -> Iterator[Cell]:
    yield from ((rail, host, SENDS) for rail, host in zip(matrix.rail, matrix.client, strict=True))
    yield from ((rail, host, RECEIVES) for rail, host in zip(matrix.rail, matrix.server, strict=True))


def _best_of_host(court: Court, host: int) -> list[Blamed]:
    """Return the best of: the host, one of its directions, or for each rail the NIC or a direction; directions if distinguishable."""
    rails = sorted(rail for rail in court.rails_of[host] if court.n[rail, host, SENDS] + court.n[rail, host, RECEIVES])
    both = (SENDS, RECEIVES)
    directions = () if court.matrix.is_bidirectional else (("direction", (SENDS,)), ("direction", (RECEIVES,)))
    single: list[Blamed] = []
    for rail in rails:
        single += max((_blame(court, kind, host, [rail], which) for kind, which in (("nic", both), *directions)), key=_gain)
    whole = [_blame(court, kind, host, rails, which) for kind, which in (("host", both), *directions)]
    best = max(whole, key=_gain) if len(rails) > 1 else []
    if len(rails) > 1 and len({each.rail for each in single}) >= NEARLY_ALL * len(rails):
        return best or single
    return best if _gain(best) > _gain(single) else single


def _gain(blamed: Iterable[Blamed]) -> float:
    return sum(each.gain for each in blamed)


def _blame(court: Court, kind: str, host: int, rails: Sequence[int], directions: Sequence[int]) -> list[Blamed]:
    """Return one if it is worth blaming, else none."""
    cells = [(rail, host, direction) for rail in rails for direction in directions]
    lows = [at for cell in cells for at in court.lows.get(cell, ())]
    n = sum(court.n[cell] for cell in cells)
    if len(lows) < 2 or len(lows) < LEAST_SHARE * n or len(court.partners(host, lows)) < 2:
        return []
    if len(rails) > 1 and not _on_nearly_all(court, host, rails, directions, len(lows) / n):
        return []
    gain = court.gain(lows, n) - court.need
    direction = DIRECTIONS[directions[0]] if len(directions) == 1 else None
    rail = rails[0] if len(rails) == 1 else None
    return [Blamed(kind, gain, tuple(sorted(lows)), host, rail, direction)] if gain > 0 else []


def _on_nearly_all(court: Court, host: int, rails: Sequence[int], directions: Sequence[int], share: float) -> bool:
    """Return whether the low ones are on nearly all rails of a host, not many on a few."""
    known = [(sum(court.n[rail, host, each] for each in directions), rail) for rail in rails]
    known = [(n, rail) for n, rail in known if n]
    bad = [rail for n, rail in known if sum(len(court.lows.get((rail, host, each), ())) for each in directions) >= share * n / 2]
    return len(bad) >= NEARLY_ALL * len(known)


def _whole_rails(court: Court, found: list[Blamed]) -> list[Blamed]:
    """Return the blamed parts. A rail with nearly all NICs blamed is to blame itself."""
    for rail in sorted({each.rail for each in found if each.rail is not None and each.kind != "rail"}):
        hosts = {host for host, rails in court.rails_of.items() if rail in rails}
        parts = [each for each in found if each.rail == rail and each.kind in ("nic", "direction")]
        if len(hosts) > 2 and len({each.host for each in parts}) >= NEARLY_ALL * len(hosts):
            lows = tuple(sorted({at for each in parts for at in each.lows}))
            found = [each for each in found if each not in parts] + [Blamed("rail", _gain(parts), lows, rail=rail)]
    return sorted(found, key=lambda each: -each.gain)


def _needed(court: Court, found: list[Blamed]) -> list[Blamed]:
    """Return the blamed parts without those whose low measurements others explain, except for a single partner."""
    kept = list(found)
    for each in sorted((one for one in found if one.host is not None), key=lambda one: one.gain):
        others = [one for one in kept if one is not each]
        own = [at for at in each.lows if not any(one.has(cell) for one in others for cell in court.cells(at))]
        if len(court.partners(each.host or 0, own)) < 2:
            kept = others
    return kept
