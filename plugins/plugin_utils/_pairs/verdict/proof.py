# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The content of a verdict, and its evidence."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.matrix.matrix import Matrix
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.verdict.blame import NEARLY_ALL, Blamed
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.verdict.crossings import Crossing
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.verdict.scale import NORMAL, Scale

#: The probability of blaming a pair in a healthy matrix, if its noise were normal; it is less normal far out.
PAIR_ALPHA = 1e-5
EVIDENCE = 8


@dataclass(frozen=True)
class Verdict:
    """The blamed part. kind: host, nic, rail, direction, pair or path.

    host: position, for host, nic, direction and pair. rail: position, None for all rails of a host or pair. direction: "sends" or
    "receives". other: the second host of a pair, after host. element: of a path. failed: most of its bad measurements failed, rather than
    being slow. ratio: median of the slow ones relative to healthy ones, None if all failed. partners: the number of distinct partners that
    prove it (for rail or path: pairs). explained: bad measurements. evidence: the positions of some of them. measured: all its partners,
    bad or not (for rail or path: measurements). confidence: the probability that it is bad with the next partner too, (bad ones + 1) /
    (measured + 2).
    """

    kind: str
    host: int | None = None
    rail: int | None = None
    direction: str | None = None
    other: int | None = None
    element: str | None = None
    failed: bool = False
    ratio: float | None = None
    confidence: float = 0.0
    partners: int = 0
    explained: int = 0
    evidence: tuple[int, ...] = ()
    measured: int = 0


def partners_of(matrix: Matrix, blamed: Sequence[Blamed]) -> list[set[int]]:
    """Return all partners of each of the blamed endpoints."""
    by_host: dict[int, list[int]] = defaultdict(list)
    for number, each in enumerate(blamed):
        if each.host is not None:
            by_host[each.host].append(number)
    found: list[set[int]] = [set() for _each in blamed]
    for rail, server, client in zip(matrix.rail, matrix.server, matrix.client, strict=True) if by_host else ():
        if server in by_host or client in by_host:
            for host, other, direction in ((client, server, 0), (server, client, 1)):
                for number in by_host.get(host, ()):
                    if blamed[number].has((rail, host, direction)):
                        found[number].add(other)
    return found


def verdict_of(matrix: Matrix, scale: Scale, blamed: Blamed, met: set[int], crossed: Mapping[str, Crossing]) -> Verdict:
    pairs = {at: _pair(matrix, at) for at in blamed.lows}
    if blamed.host is not None:
        bad, total = len({other for pair in pairs.values() for other in pair if other != blamed.host}), len(met)
    elif blamed.kind == "path":
        bad, total = len(blamed.lows), crossed[str(blamed.element)].total
    else:
        bad, total = len(blamed.lows), sum(1 for rail in matrix.rail if rail == blamed.rail)
    return Verdict(
        blamed.kind,
        blamed.host,
        blamed.rail,
        blamed.direction,
        element=blamed.element,
        failed=_has_failed(matrix, blamed.lows),
        ratio=_reached(matrix, scale, blamed),
        confidence=(bad + 1) / (total + 2),
        partners=bad if blamed.host is not None else len(set(pairs.values())),
        explained=len(blamed.lows),
        evidence=_evidence(matrix, blamed.lows),
        measured=total,
    )


def _pair(matrix: Matrix, at: int) -> tuple[int, int]:
    server, client = matrix.server[at], matrix.client[at]
    return (server, client) if server < client else (client, server)


def _has_failed(matrix: Matrix, lows: Sequence[int]) -> bool:
    return 2 * sum(1 for at in lows if not matrix.ratio[at] > 0) > len(lows)


def _reached(matrix: Matrix, scale: Scale, blamed: Blamed) -> float | None:
    """Return the median of the measurements that did not fail, relative to healthy ones."""
    if blamed.kind == "rail" and blamed.rail in scale.slow_rails:
        return scale.slow_rails[blamed.rail]
    reached = [matrix.ratio[at] / scale.level[matrix.rail[at]] for at in blamed.lows if matrix.ratio[at] > 0]
    return median(reached) if reached else None


def _evidence(matrix: Matrix, lows: Iterable[int]) -> tuple[int, ...]:
    """Return a few of them, each of another pair if possible."""
    by_pair: dict[tuple[int, int], int] = {}
    more = []
    for at in lows:
        if by_pair.setdefault(_pair(matrix, at), at) != at:
            more.append(at)
        if len(by_pair) == EVIDENCE:
            break
    return (*by_pair.values(), *more)[:EVIDENCE]


def pairs_of(matrix: Matrix, scale: Scale, left: Iterable[int]) -> list[Verdict]:
    """Return pairs with a failed measurement, or one lower than any in a healthy matrix; one verdict if that is so on nearly all rails."""
    rare = NORMAL.inv_cdf(PAIR_ALPHA / max(2, len(matrix)))
    bad: dict[tuple[int, int], dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for at in left:
        if not matrix.ratio[at] > 0 or scale.z(matrix.rail[at], matrix.ratio[at]) < rare:
            bad[_pair(matrix, at)][matrix.rail[at]].append(at)
    return [verdict for pair, rails in bad.items() for verdict in _of_pair(matrix, scale, pair, rails)]


def _of_pair(matrix: Matrix, scale: Scale, pair: tuple[int, int], rails: Mapping[int, list[int]]) -> Iterator[Verdict]:
    parts: list[tuple[int | None, list[int]]] = list(rails.items())
    if len(rails) > 1:
        met = {rail for at, rail in enumerate(matrix.rail) if matrix.server[at] in pair and matrix.client[at] in pair}
        parts = [(None, [at for each in rails.values() for at in each])] if len(rails) >= NEARLY_ALL * len(met) else parts
    for rail, lows in parts:
        reached = _reached(matrix, scale, Blamed("pair", 0, tuple(lows)))
        failed = _has_failed(matrix, lows)
        yield Verdict("pair", pair[0], rail, None, pair[1], None, failed, reached, 2 / 3, 1, len(lows), _evidence(matrix, lows), 1)
