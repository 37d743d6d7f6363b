# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The expected load of equal paths when a hash puts each flow on one of them (ECMP), as balls in bins."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

#: Up to this product of paths, flows and bits of a coefficient the largest share is exact; that takes up to about 0.1 s.
_MOST_BITS = 50_000
#: Terms below this are left out of sums over all loads.
_SMALLEST = 1e-12


@dataclass(frozen=True)
class HashForecast:
    """Expected values over all hashes. Both are shares from 0 to 1.

    largest_share: of all traffic, the part on the busiest path; 1 / paths if it were even. reached_share: of the line rate that the flows
    send together, the part that the paths carry.
    """

    largest_share: float
    reached_share: float


@cache
def forecast(paths: int, flows: int, flows_per_path: float | None = None) -> HashForecast:
    """Return the forecast for flows of equal rate that a uniform hash puts on equal paths, each flow on one path for all its packets.

    flows_per_path: the number of flows that fill one path; by default all flows together fill all paths. A path with more flows is full,
    and its flows lose the rest. Raises ValueError for less than one path or flow.

    reached_share is exact: paths / flows × E[min(K, flows_per_path)], with K binomial (flows, 1 / paths). largest_share is exact for small
    numbers: n! times the coefficient of x^n in (1 + x + … + x^k/k!)^m counts the hashes without a path of more than k flows. For large
    numbers it is an approximation with an error below 0.5 % of itself (B. Levin, Annals of Statistics 9 (1981), 1123: m Poisson
    loads of at most k, on condition of their sum, for whose distribution an Edgeworth series of one term is used).
    """
    if paths < 1 or flows < 1:
        raise ValueError(f"{paths} paths and {flows} flows: expected at least one of each")
    full = flows / paths if flows_per_path is None else flows_per_path
    reached = paths / flows * sum(min(load, full) * _binomial(load, flows, 1 / paths) for load in range(flows + 1))
    return HashForecast(_expected_largest(paths, flows) / flows, min(1.0, reached))


def _binomial(load: int, flows: int, chance: float) -> float:
    if chance == 1:
        return float(load == flows)
    ways = math.lgamma(flows + 1) - math.lgamma(load + 1) - math.lgamma(flows - load + 1)
    return math.exp(ways + load * math.log(chance) + (flows - load) * math.log1p(-chance))


@cache
def _expected_largest(paths: int, flows: int) -> float:
    """Return the expected number of flows on the busiest path: the sum over k of the chance that it has more than k."""
    if paths == 1:
        return float(flows)
    least = -(-flows // paths)
    exact = paths * flows * math.log2(math.factorial(min(flows, 2 * least + 8))) < _MOST_BITS
    expected = float(least)
    for most in range(least, flows):
        above = 1 - (_chance(paths, flows, most) if exact else _levin(paths, flows, most))
        if above < _SMALLEST:
            break
        expected += above
    return expected


def _chance(paths: int, flows: int, most: int) -> float:
    """Return the exact chance that no path has more than `most` flows."""
    scale = math.factorial(most)
    digits = paths * (scale.bit_length() + most.bit_length() + 2)
    # A polynomial as one number, with room for each coefficient of its power.
    row = sum(scale // math.factorial(load) << digits * load for load in range(most + 1))
    power = _power(row, paths, digits * (flows + 1))
    ways = power >> digits * flows & (1 << digits) - 1
    hashes: int = scale**paths * paths**flows
    return math.factorial(flows) * ways / hashes


def _power(base: int, exponent: int, bits: int) -> int:
    """Return a power without the bits from `bits` on, which higher terms of the polynomial fill."""
    mask, found = (1 << bits) - 1, 1
    while exponent:
        if exponent & 1:
            found = found * base & mask
        base, exponent = base * base & mask, exponent >> 1
    return found


def _levin(paths: int, flows: int, most: int) -> float:
    """Return Levin's approximation of the same chance."""
    mean = flows / paths
    loads = [math.exp(load * math.log(mean) - mean - math.lgamma(load + 1)) for load in range(most + 1)]
    within = math.fsum(loads)
    middle = math.fsum(load * each for load, each in enumerate(loads)) / within
    second, third = (paths * math.fsum((load - middle) ** power * each for load, each in enumerate(loads)) / within for power in (2, 3))
    off = (flows - paths * middle) / math.sqrt(second)
    skew = third / second**1.5
    density = math.exp(-off * off / 2) / math.sqrt(2 * math.pi * second) * (1 + skew / 6 * (off**3 - 3 * off))
    exactly = math.exp(flows * math.log(flows) - flows - math.lgamma(flows + 1))
    return float(min(1.0, max(0.0, density)) / exactly * within**paths)
