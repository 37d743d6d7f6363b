# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From the matrix of a sweep to the smallest explanation of the bad measurements. docs/pairs.md has the method and its limits."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.matrix.matrix import Matrix
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.verdict.blame import Blamed, Court
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.verdict.crossings import Crossing, Paths, crossings
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.verdict.proof import EVIDENCE, Verdict, pairs_of, partners_of, verdict_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.verdict.scale import NORMAL, Scale, calm_scale, scale_of

__all__ = ["Paths", "Verdict", "beside_proven", "localize"]

#: The maximum weight of one measurement, -ln of a chance: noise is never normal that far out.
MOST_WEIGHT = 14.0
#: Measurements below one leaf scatter by this factor less than all do, if those between leaves are not healthy.
CALM = 0.75
#: The allowed share of unexplained low measurements, of those that elements of the fabric explain.
UNEXPLAINED = 0.05


def localize(matrix: Matrix, *, paths: Paths | None = None, scatter: float = 0.35) -> list[Verdict]:
    """Return the verdicts of a matrix, the largest explanation first; none if nothing is bad.

    scatter: the assumed relative noise (of the logarithm) if too few measurements are healthy to show it.
    """
    if not len(matrix):
        return []
    found = _explained(matrix, scale_of(matrix, scatter), paths)
    if paths is not None:
        found = _by_the_fabric(matrix, found, paths, scatter) or found
    blamed, scale = found.blamed, found.scale
    totals = partners_of(matrix, blamed)
    verdicts = [verdict_of(matrix, scale, each, totals[number], found.crossed) for number, each in enumerate(blamed)]
    return sorted(verdicts, key=lambda verdict: -verdict.explained) + pairs_of(matrix, scale, found.left)


@dataclass(frozen=True)
class Explained:
    """The blamed parts by a scale. left: the unexplained low measurements."""

    scale: Scale
    crossed: Mapping[str, Crossing]
    blamed: list[Blamed]
    left: list[int]


def _explained(matrix: Matrix, scale: Scale, paths: Paths | None) -> Explained:
    weights = _weights(matrix, scale)
    crossed = crossings(matrix, weights, paths) if paths is not None else {}
    blamed, left = _judged(matrix, weights, crossed)
    most = _most_weight(matrix, scale, left)
    if most < MOST_WEIGHT:
        weights = {at: min(weight, most) for at, weight in weights.items()}
        blamed, left = _judged(matrix, weights, crossed)
    return Explained(scale, crossed, _slow_rails(matrix, scale, blamed) + blamed, left)


def _by_the_fabric(matrix: Matrix, found: Explained, paths: Paths, scatter: float) -> Explained | None:
    """Return an explanation by the fabric for apparent noise: if half of the spines are bad, so are half of all measurements.

    It applies if measurements below single leaves scatter much less, and good ones between leaves scatter no more than these. Elements of
    the fabric must also explain the low ones by that scale.
    """
    is_below = [len(tuple(paths.elements(*where))) == 1 for where in zip(matrix.rail, matrix.server, matrix.client, strict=True)]
    below, between = (matrix.part([at for at, each in enumerate(is_below) if each is wanted]) for wanted in (True, False))
    scale = calm_scale(below, between, scatter)
    if scale is None or scale.sigma > CALM * found.scale.sigma:
        return None
    other = _explained(matrix, scale, paths)
    lows = sum(len(each.lows) for each in other.blamed if each.kind == "path")
    return other if len(other.left) < UNEXPLAINED * lows else None


def _weights(matrix: Matrix, scale: Scale) -> dict[int, float]:
    """Return position of each low measurement → -ln of the chance that a healthy one is as low."""
    below = [scale.low_below(rail) for rail in range(len(matrix.rails))]
    lows = [at for at, (rail, ratio) in enumerate(zip(matrix.rail, matrix.ratio, strict=True)) if not ratio >= below[rail]]
    return {at: _weight(scale.z(matrix.rail[at], matrix.ratio[at])) for at in lows}


def _weight(z: float) -> float:
    chance = 0.5 * math.erfc(-z / math.sqrt(2)) if not math.isnan(z) else 0.0
    return min(MOST_WEIGHT, -math.log(chance)) if chance > 0 else MOST_WEIGHT


def _judged(matrix: Matrix, weights: Mapping[int, float], crossed: Mapping[str, Crossing]) -> tuple[list[Blamed], list[int]]:
    """Return the blamed parts, and the unexplained low ones. A group of spines is blamed only if all is explained better with it."""
    single = {element: crossing for element, crossing in crossed.items() if crossing.alternatives == 1}
    court = Court(matrix, weights, single)
    blamed = court.judge()
    if len(single) < len(crossed):
        other = Court(matrix, weights, crossed)
        found = other.judge()
        if sum(each.gain for each in found) > sum(each.gain for each in blamed):
            court, blamed = other, found
    explained = {at for each in blamed for at in each.lows}
    left = [at for at in weights if at not in explained and not any(each.has(cell) for each in blamed for cell in court.cells(at))]
    return blamed, left


def _most_weight(matrix: Matrix, scale: Scale, left: Sequence[int]) -> float:
    """Return the maximum weight of a low measurement: if many more are unexplained than noise makes, low ones are not rare."""
    expected = len(matrix) * NORMAL.cdf(scale.cut)
    return -math.log(len(left) / len(matrix)) if len(left) > 3 + 3 * expected else MOST_WEIGHT


def _slow_rails(matrix: Matrix, scale: Scale, blamed: Sequence[Blamed]) -> list[Blamed]:
    """Return rails with all measurements below those of the other rails."""
    dead = {each.rail for each in blamed if each.kind == "rail"}
    slow = [rail for rail in scale.slow_rails if rail not in dead]
    members: dict[int, list[int]] = {rail: [] for rail in slow}
    for at, rail in enumerate(matrix.rail if slow else ()):
        if rail in members and matrix.ratio[at] > 0:
            members[rail].append(at)
    return [Blamed("rail", math.inf, tuple(members[rail]), rail=rail) for rail in slow]


def beside_proven(found: Sequence[Verdict], matrix: Matrix, new: int, least_ratio: float, share: float) -> list[Verdict]:
    """Return the verdicts of a sweep of the first `new` hosts against proven ones.

    If everything that a new port measures is slow, nothing in its sweep is healthy.

    found: the verdicts of the sweep by itself, without whole rails, because this sweep has only a few of their hosts. least_ratio: a
    measurement below it is bad. share: the ratio of 1 relative to the partners' earlier results. A new port is to blame if most of its
    measurements, with two partners or with all, are bad: its partners are proven.
    """
    kept = [verdict for verdict in found if verdict.kind != "rail"]
    named = {(verdict.rail, verdict.host) for verdict in kept if verdict.kind != "pair"}
    added = []
    for rail in range(len(matrix.rails)):
        for host in range(new):
            if not {(rail, host), (None, host)} & named and (verdict := _of_port(matrix, rail, host, least_ratio, share)) is not None:
                added.append(verdict)
    convicted = {(verdict.rail, verdict.host) for verdict in added}
    return [*added, *(each for each in kept if each.kind != "pair" or (each.rail, each.host) not in convicted)]


def _of_port(matrix: Matrix, rail: int, host: int, least_ratio: float, share: float) -> Verdict | None:
    ends = zip(matrix.rail, matrix.server, matrix.client, strict=True)
    own = [at for at, (on, server, client) in enumerate(ends) if on == rail and host in (server, client)]
    bad = [at for at in own if math.isnan(matrix.ratio[at]) or matrix.ratio[at] * share < least_ratio]
    if not own or len(bad) * 2 <= len(own):
        return None
    slow = [matrix.ratio[at] * share for at in bad if not math.isnan(matrix.ratio[at])]
    partners = {matrix.server[at] + matrix.client[at] - host for at in bad}
    return replace(
        Verdict("nic", host, rail),
        failed=len(slow) * 2 < len(bad),
        ratio=statistics.median(slow) if slow else None,
        confidence=(len(partners) + 1) / (len(own) + 2),
        partners=len(partners),
        explained=len(bad),
        evidence=tuple(bad[:EVIDENCE]),
    )
