# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Confidence intervals of a rate of rare events, from their number (Poisson statistics)."""

from __future__ import annotations

import math
from statistics import NormalDist

CONFIDENCE = 0.95
#: Above this number of events Wilson and Hilferty's approximation is used. Its relative error there is below 1e-5.
MOST_EXACT = 200
STEPS = 100


def interval(events: int) -> tuple[float, float]:
    """Return the lowest and the highest mean number of events that fit an observed number, with a confidence of 95 %.

    It is Garwood's exact interval (Biometrika 28, 1936): each end has a probability of 2.5 %. Events must be independent; errors of one
    burst are not, so an interval of bursts is too narrow. Raises ValueError for a negative number.
    """
    if events < 0:
        raise ValueError(f"a number of events is not negative, got {events}")
    tail = (1 - CONFIDENCE) / 2
    return (0.0 if events == 0 else _gamma_quantile(tail, events)), _gamma_quantile(1 - tail, events + 1)


def bound_of_none() -> float:
    """Return the mean number of events below which the truth is with a confidence of 95 %, if no event was seen: 3.0."""
    return -math.log(1 - CONFIDENCE)


def _gamma_quantile(probability: float, shape: int) -> float:
    """Return the quantile of a gamma distribution with a whole shape and scale 1: half of chi-square's with 2 × shape degrees."""
    if shape > MOST_EXACT:
        normal = NormalDist().inv_cdf(probability)
        return float(shape * (1 - 1 / (9 * shape) + normal / (3 * math.sqrt(shape))) ** 3)
    low, high = 0.0, shape + 20 * math.sqrt(shape) + 20
    for _step in range(STEPS):
        middle = (low + high) / 2
        # A gamma variable exceeds x if a Poisson variable with mean x is below its shape.
        if 1 - _poisson_below(shape, middle) < probability:
            low = middle
        else:
            high = middle
        if high - low < high * 1e-12:
            break
    return (low + high) / 2


def _poisson_below(count: int, mean: float) -> float:
    """Return the probability of fewer events than count."""
    if mean <= 0:
        return 1.0
    logarithm = math.log(mean)
    return math.fsum(math.exp(number * logarithm - mean - math.lgamma(number + 1)) for number in range(count))
