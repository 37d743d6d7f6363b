# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The healthy measurements of a small matrix: what remains after removing sets of one cause that are lower than the rest.

Each step removes a set: all of a rail, host, NIC or direction, or a single measurement. Candidates have a mean significantly below that of
the rest by Student's t, with the rest's variance. The one that explains most of the sum of squares is removed. It ends without candidates.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from statistics import NormalDist

from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.matrix.matrix import Matrix

#: The probability of removing anything from a healthy matrix.
ALPHA = 0.015
#: With fewer degrees of freedom, the measurements do not show the scatter.
DOF_LEAST = 8
#: Nothing above this share of the healthy level is blamed.
BLAMED_BELOW = 0.90
#: For a whole rail, or an element between endpoints, this share is low.
NEARLY_ALL_LOW = 0.9
#: The minimum scatter of healthy measurements.
SIGMA_LEAST = 0.01
Key = tuple[str, int, int]


@dataclass(frozen=True)
class Split:
    """level, sigma: mean and standard deviation of ln ratio of the healthy ones. dof: infinite if sigma was not estimated from them."""

    level: float
    sigma: float
    dof: float
    slow_rails: frozenset[int]


class _Sums:
    """Count, sum and sum of squares."""

    def __init__(self, values: Iterable[float] = ()) -> None:
        self.n, self.sum, self.squares = 0, 0.0, 0.0
        for value in values:
            self.n, self.sum, self.squares = self.n + 1, self.sum + value, self.squares + value * value

    def without(self, other: _Sums) -> _Sums:
        rest = _Sums()
        rest.n, rest.sum, rest.squares = self.n - other.n, self.sum - other.sum, self.squares - other.squares
        return rest

    @property
    def mean(self) -> float:
        return self.sum / self.n

    def noise(self, scatter: float) -> tuple[float, float]:
        """Return (sigma, dof) of these."""
        dof = self.n - 1
        sigma = math.sqrt(max(0.0, self.squares - self.sum * self.sum / self.n) / dof) if dof else 0.0
        return (max(sigma, SIGMA_LEAST), dof) if dof >= DOF_LEAST else (max(sigma, scatter), math.inf)


def normal_of_t(t: float, dof: float) -> float:
    """Return the normal deviate that is as rare as t of Student's distribution (D. L. Wallace's approximation, 1959)."""
    if math.isinf(dof):
        return t
    return math.copysign((8 * dof + 1) / (8 * dof + 3) * math.sqrt(dof * math.log1p(t * t / dof)), t)


def t_of_normal(z: float, dof: float) -> float:
    """Return the inverse of normal_of_t."""
    if math.isinf(dof):
        return z
    return math.copysign(math.sqrt(dof * math.expm1((z * (8 * dof + 3) / (8 * dof + 1)) ** 2 / dof)), z)


def split_few(matrix: Matrix, scatter: float) -> Split:
    """Return the healthy measurements of a small matrix; if none succeeded, the level is the expected one."""
    healthy = {at: math.log(ratio) for at, ratio in enumerate(matrix.ratio) if ratio > 0}
    if not healthy:
        return Split(0.0, scatter, math.inf, frozenset())
    slow_rails = set()
    while (taken := _most_below(matrix, healthy, scatter)) is not None:
        key, members = taken
        if key[0] == "rail":
            slow_rails.add(key[1])
        for at in members:
            del healthy[at]
    sums = _Sums(healthy.values())
    return Split(sums.mean, *sums.noise(scatter), frozenset(slow_rails))


def _most_below(matrix: Matrix, healthy: dict[int, float], scatter: float) -> tuple[Key, list[int]] | None:
    total = _Sums(healthy.values())
    sets = _sets(matrix, healthy)
    enough = NormalDist().inv_cdf(ALPHA / max(2, len(sets)))
    best, most = None, 0.0
    for key, members in sets.items():
        if len(members) == total.n or not _may_be_one_cause(matrix, key, members):
            continue
        own = _Sums(healthy[at] for at in members)
        rest = total.without(own)
        apart = rest.mean - own.mean
        between = own.n * rest.n / total.n * apart * abs(apart)
        if key[0] == "rail" and not _is_low(sorted(healthy[at] for at in members), rest.mean):
            continue
        if between > most and _deviate(own, rest, scatter) < enough:
            best, most = (key, members), between
    return best


def _is_low(ordered: list[float], level: float) -> bool:
    """Return whether nearly all of them are below BLAMED_BELOW of the level."""
    return ordered[int(NEARLY_ALL_LOW * len(ordered))] < level + math.log(BLAMED_BELOW)


def _deviate(own: _Sums, rest: _Sums, scatter: float) -> float:
    """Return how far, in standard deviations, the mean of some is from that of the rest."""
    sigma, dof = rest.noise(scatter)
    return normal_of_t((own.mean - rest.mean) / (sigma * math.sqrt(1 / own.n + 1 / rest.n)), dof)


def _sets(matrix: Matrix, healthy: Iterable[int]) -> dict[Key, list[int]]:
    sets: dict[Key, list[int]] = defaultdict(list)
    for at in healthy:
        for key in _keys(at, matrix.rail[at], matrix.server[at], matrix.client[at]):
            sets[key].append(at)
    return sets


def _keys(at: int, rail: int, server: int, client: int) -> Iterator[Key]:
    yield from (("single", at, 0), ("rail", rail, 0), ("host", server, 0), ("host", client, 0))
    yield from (("nic", rail, server), ("nic", rail, client))
    yield from (("receives", rail, server), ("sends", rail, client), ("host_receives", server, 0), ("host_sends", client, 0))


def _may_be_one_cause(matrix: Matrix, key: Key, members: list[int]) -> bool:
    """Return whether a set may have one cause: at least two partners, unless it is one measurement; for a rail, no host in all of them."""
    if key[0] == "single":
        return True
    pairs = [{matrix.server[at], matrix.client[at]} for at in members]
    return not set.intersection(*pairs) if key[0] == "rail" else len(set.union(*pairs)) > 2
