# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The level of healthy measurements in a matrix, and their scatter, whatever else is bad in it.

Faults make measurements smaller, never larger, so the healthy level is searched in the upper part. All values are on a logarithmic scale,
because noise is proportional. Few measurements (EXACT_MOST) are split into healthy ones and sets of one cause by t tests; for many,
quartiles and medians give the same in one pass.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.matrix.matrix import Matrix
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.verdict.scale_few import (
    BLAMED_BELOW,
    SIGMA_LEAST,
    normal_of_t,
    split_few,
    t_of_normal,
)

NORMAL = NormalDist()
EXACT_MOST = 1000
#: The level of a slow rail is below that of others by at least this many standard errors.
RAIL_ERRORS = 8
#: A measurement is low from this many standard deviations on: one false one in all, but within these bounds.
CUT_LEAST, CUT_MOST = 2.0, 3.5
#: With more values, a sample of them determines the scatter.
SAMPLE = 200_000
#: The minimum number of measurements for a level; and the maximum scatter of good measurements between leaves, relative to those below one.
LEAST_BELOW, RESTLESS = 20, 1.5


@dataclass(frozen=True)
class Scale:
    """level[rail]: the ratio of healthy measurements there. slow_rails: rail → its share of the healthy rails' level.

    sigma: standard deviation of ln(ratio ÷ level), from dof + 1 values (infinite: assumed known). cut: the z below which a measurement is
    low.
    """

    level: Sequence[float]
    sigma: float
    dof: float
    cut: float
    slow_rails: dict[int, float]

    def z(self, rail: int, ratio: float) -> float:
        """Return by how many standard deviations a measurement differs from healthy: negative is slower; 0.0 or less is -inf."""
        if ratio <= 0:
            return -math.inf
        return normal_of_t(math.log(ratio / self.level[rail]) / self.sigma, self.dof)

    def low_below(self, rail: int) -> float:
        """Return the ratio below which a measurement is low; failures are low too."""
        return self.level[rail] * min(BLAMED_BELOW, math.exp(t_of_normal(self.cut, self.dof) * self.sigma))


def scale_of(matrix: Matrix, scatter: float) -> Scale:
    """Return the healthy level and its noise. scatter: the assumed noise if the matrix does not show it."""
    good = sum(1 for ratio in matrix.ratio if ratio > 0)
    cut = -min(CUT_MOST, max(CUT_LEAST, -NORMAL.inv_cdf(min(0.4, 1 / max(good, 1)))))
    return _few(matrix, scatter, cut) if good <= EXACT_MOST else _many(matrix, cut)


def calm_scale(below: Matrix, between: Matrix, scatter: float) -> Scale | None:
    """Return the scale of measurements below single leaves; None if good ones between leaves scatter more, or there are too few.

    Each endpoint has few partners there, whose upper quartile is too high: the level is the median of those that are not low.
    """
    if sum(1 for ratio in below.ratio if ratio > 0) < LEAST_BELOW:
        return None
    scale = scale_of(below, scatter)
    level = list(scale.level)
    for rail in range(len(level)):
        well = _well(below, scale, rail)
        level[rail] = well[len(well) // 2] if len(well) >= LEAST_BELOW else level[rail]
    scale = replace(scale, level=level)
    between_leaves = sorted(ratio / level[rail] for rail in range(len(level)) for ratio in _well(between, scale, rail))
    if len(between_leaves) < LEAST_BELOW:
        return None
    middle, upper = (between_leaves[int(len(between_leaves) * share)] for share in (0.5, 0.9))
    return scale if math.log(upper / middle) <= RESTLESS * scale.sigma * NORMAL.inv_cdf(0.9) else None


def _well(matrix: Matrix, scale: Scale, rail: int) -> list[float]:
    """Return the ratios of a rail that are not low, sorted."""
    least = scale.low_below(rail)
    return sorted(ratio for on, ratio in zip(matrix.rail, matrix.ratio, strict=True) if on == rail and ratio >= least)


def _few(matrix: Matrix, scatter: float, cut: float) -> Scale:
    split = split_few(matrix, scatter)
    level = [math.exp(split.level)] * len(matrix.rails)
    slow = {}
    for rail in split.slow_rails:
        own = sorted(ratio for where, ratio in zip(matrix.rail, matrix.ratio, strict=True) if where == rail and ratio > 0)
        slow[rail] = own[len(own) // 2] / level[rail]
        level[rail] = own[len(own) // 2]
    return Scale(level, split.sigma, split.dof, cut, slow)


def _many(matrix: Matrix, cut: float) -> Scale:
    """Return the scale for many: an endpoint's capability is the upper quartile of its results, that of a measurement its lower end's."""
    able, hosts = _capabilities(matrix), len(matrix.hosts)
    step = max(1, len(matrix) // SAMPLE) | 1
    rest = sorted(
        ratio / min(able[rail * hosts + server], able[rail * hosts + client])
        for rail, server, client, ratio in zip(*(column[::step] for column in _columns(matrix)), strict=True)
        if ratio > 0
    )
    middle = rest[len(rest) // 2]
    down, up = math.log(middle / rest[len(rest) // 4]), math.log(rest[(3 * len(rest)) // 4] / middle)
    sigma = max(SIGMA_LEAST, max(down, up) / NORMAL.inv_cdf(0.75))
    level = [
        middle * _upper_quartile([each for each in able[at : at + hosts] if not math.isnan(each)]) for at in range(0, len(able), hosts)
    ]
    return _with_slow_rails(level, Counter(matrix.rail), sigma, cut)


def _columns(matrix: Matrix) -> tuple[array[int], array[int], array[int], array[float]]:
    return matrix.rail, matrix.server, matrix.client, matrix.ratio


def _capabilities(matrix: Matrix) -> list[float]:
    """Return capabilities by rail × hosts + host; NaN for an endpoint without a good measurement."""
    hosts = len(matrix.hosts)
    ratios: list[list[float]] = [[] for _number in range(hosts * len(matrix.rails))]
    for rail, server, client, ratio in zip(*_columns(matrix), strict=True):
        if ratio > 0:
            ratios[rail * hosts + server].append(ratio)
            ratios[rail * hosts + client].append(ratio)
    return [_upper_quartile(each) for each in ratios]


def _upper_quartile(values: list[float]) -> float:
    return sorted(values)[(3 * len(values)) // 4] if values else math.nan


def _with_slow_rails(level: list[float], measured: Mapping[int, int], sigma: float, cut: float) -> Scale:
    known = sorted(each for each in level if not math.isnan(each))
    healthy = known[math.ceil(0.75 * len(known)) - 1] if len(known) != 2 else known[1]
    enough = {rail: min(BLAMED_BELOW, math.exp(-RAIL_ERRORS * sigma / math.sqrt(number))) for rail, number in measured.items()}
    slow = {rail: each / healthy for rail, each in enumerate(level) if each < enough.get(rail, 0.0) * healthy}
    return Scale([healthy if math.isnan(each) else each for each in level], sigma, math.inf, cut, slow)
