# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From the matrix of a sweep to the smallest explanation of what is bad in it. docs/pairs.md tells the method and its limits."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from ansible_collections.rdma.cluster.plugins.plugin_utils._pair_blame import Blamed, Court
from ansible_collections.rdma.cluster.plugins.plugin_utils._pair_matrix import Matrix
from ansible_collections.rdma.cluster.plugins.plugin_utils._pair_scale import NORMAL, Scale, scale_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._pair_verdict_proof import Verdict, pairs_of, partners_of, verdict_of

__all__ = ["Paths", "Verdict", "localise"]

#: The most that one measurement can say, -ln of a chance: noise is never normal as far out as that.
MOST_WEIGHT = 14.0


class Paths(Protocol):
    """What a measurement crosses besides its two endpoints: leaves, spines, links, each by a name of its own in the fabric."""

    def elements(self, rail: int, server: int, client: int) -> Iterable[str]:
        """The elements between two endpoints of a rail, by their positions in the matrix; empty if unknown."""


def localise(matrix: Matrix, *, paths: Paths | None = None, scatter: float = 0.35) -> list[Verdict]:
    """The verdicts of a matrix, the largest explanation first; none if nothing is bad.

    scatter: relative noise (of the logarithm) to reckon with where so few measurements are healthy that it cannot be seen in them.
    """
    if not len(matrix):
        return []
    scale = scale_of(matrix, scatter)
    weights = _weights(matrix, scale)
    crossed = _crossed(matrix, weights, paths)
    blamed, left = _judged(matrix, weights, crossed)
    most = _most_weight(matrix, scale, left)
    if most < MOST_WEIGHT:
        weights = {at: min(weight, most) for at, weight in weights.items()}
        blamed, left = _judged(matrix, weights, crossed)
    blamed = _slow_rails(matrix, scale, blamed) + blamed
    totals = partners_of(matrix, blamed)
    verdicts = [verdict_of(matrix, scale, each, totals[number], crossed) for number, each in enumerate(blamed)]
    return sorted(verdicts, key=lambda verdict: -verdict.explained) + pairs_of(matrix, scale, left)


def _weights(matrix: Matrix, scale: Scale) -> dict[int, float]:
    """Position of each low measurement → -ln of the chance that a healthy one is as low."""
    below = [scale.low_below(rail) for rail in range(len(matrix.rails))]
    lows = [at for at, (rail, ratio) in enumerate(zip(matrix.rail, matrix.ratio, strict=True)) if not ratio >= below[rail]]
    return {at: _weight(scale.z(matrix.rail[at], matrix.ratio[at])) for at in lows}


def _weight(z: float) -> float:
    chance = 0.5 * math.erfc(-z / math.sqrt(2)) if not math.isnan(z) else 0.0
    return min(MOST_WEIGHT, -math.log(chance)) if chance > 0 else MOST_WEIGHT


def _crossed(matrix: Matrix, lows: Mapping[int, float], paths: Paths | None) -> dict[str, tuple[int, list[int]]]:
    """Element → how many measurements cross it, and which low ones."""
    if paths is None:
        return {}
    total: Counter[str] = Counter()
    low: dict[str, list[int]] = defaultdict(list)
    for at, where in enumerate(zip(matrix.rail, matrix.server, matrix.client, strict=True)):
        elements = set(paths.elements(*where))
        total.update(elements)
        if at in lows:
            for element in elements:
                low[element].append(at)
    return {element: (total[element], low[element]) for element in low}


def _judged(
    matrix: Matrix, weights: Mapping[int, float], crossed: Mapping[str, tuple[int, Sequence[int]]]
) -> tuple[list[Blamed], list[int]]:
    """Who is to blame, and the low measurements that nobody explains."""
    court = Court(matrix, weights, crossed)
    blamed = court.judge()
    explained = {at for each in blamed for at in each.lows}
    left = [at for at in weights if at not in explained and not any(each.has(cell) for each in blamed for cell in court.cells(at))]
    return blamed, left


def _most_weight(matrix: Matrix, scale: Scale, left: Sequence[int]) -> float:
    """What a low measurement says at the most: where many more are left unexplained than noise makes, low ones are no rarity."""
    expected = len(matrix) * NORMAL.cdf(scale.cut)
    return -math.log(len(left) / len(matrix)) if len(left) > 3 + 3 * expected else MOST_WEIGHT


def _slow_rails(matrix: Matrix, scale: Scale, blamed: Sequence[Blamed]) -> list[Blamed]:
    """Rails all of whose measurements are below those of the other rails."""
    dead = {each.rail for each in blamed if each.kind == "rail"}
    slow = [rail for rail in scale.slow_rails if rail not in dead]
    members: dict[int, list[int]] = {rail: [] for rail in slow}
    for at, rail in enumerate(matrix.rail if slow else ()):
        if rail in members and matrix.ratio[at] > 0:
            members[rail].append(at)
    return [Blamed("rail", math.inf, tuple(members[rail]), rail=rail) for rail in slow]
