# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How grave a verdict is, and what measuring its suspect again with good partners makes of it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ansible_collections.rdma.cluster.plugins.module_utils._findings import ERROR, OK, UNKNOWN, WARNING
from ansible_collections.rdma.cluster.plugins.plugin_utils._pair_matrix import Matrix
from ansible_collections.rdma.cluster.plugins.plugin_utils._pair_verdict import Verdict
from ansible_collections.rdma.cluster.plugins.plugin_utils._pair_words import describe

CONFIRMED, CLEARED = "confirmed", "cleared"


@dataclass(frozen=True)
class Judged:
    """A verdict with what stands in a finding of it. again: what measuring it again said, CONFIRMED, CLEARED or "" where nothing did.

    stands_out: it was found by what sets it apart from the others; False where it is below a bar and nothing more.
    """

    verdict: Verdict
    status: str
    observed: str
    expected: str
    remedy: str
    again: str = ""
    stands_out: bool = True

    @property
    def words(self) -> str:
        """One line for a person."""
        return f"{self.observed} ({self.status}, confidence {self.verdict.confidence:.2f}{f', {self.again}' if self.again else ''})"


def judged(verdicts: Iterable[Verdict], matrix: Matrix, settings: Mapping[str, Any], *, software: bool) -> list[Judged]:
    """The verdicts that matter. settings: the intent's rdma_pairs; software: devices without line rate, which scatter."""
    found = []
    for verdict in verdicts:
        status = _status(verdict, matrix, settings, software)
        if status != OK:
            found.append(Judged(verdict, status, *describe(verdict, matrix)))
    return found


def _status(verdict: Verdict, matrix: Matrix, settings: Mapping[str, Any], software: bool) -> str:
    if verdict.failed or verdict.ratio is None:
        return UNKNOWN
    if software:
        return ERROR if verdict.ratio < settings["software_fail_below"] else OK
    reached = statistics.median(ratio for at in verdict.evidence if not math.isnan(ratio := matrix.ratio[at]))
    return ERROR if reached < settings["fail_below"] else WARNING


def after_again(suspects: Sequence[Judged], matrix: Matrix, again: Matrix, settings: Mapping[str, Any], *, software: bool) -> list[Judged]:
    """The verdicts after their suspects were measured again. matrix: the sweep, of which they are; again: with its own positions.

    A suspect is cleared only if every measurement of it is well: below none of the bars and, where it stood out among the others, nearer
    to healthy ones than to its own.
    """
    least_ratio = settings["software_fail_below"] if software else settings["fail_below"]
    bars = _Bars(settings["floor_gbps"], least_ratio, _level(matrix) if software else None)
    return [_after(suspect, matrix, again, bars) for suspect in suspects]


class _Bars(NamedTuple):
    """What a suspect has to reach: Gb/s, a share of what should be, and what that is where the fleet's own level counts."""

    floor_gbps: float
    least_ratio: float
    level: float | None


def _after(suspect: Judged, matrix: Matrix, again: Matrix, bars: _Bars) -> Judged:
    found = _of_suspect(suspect.verdict, matrix, again)
    if not found:
        return suspect
    values = [again.value[at] for at in found]
    words = f"; again: {', '.join('failed' if math.isnan(value) else f'{value:.3g} Gb/s' for value in values[:8])}"
    ratios = [again.ratio[at] if bars.level is None else again.value[at] / bars.level for at in found]
    least = max(bars.floor_gbps, _between(suspect.verdict, matrix) if suspect.stands_out else 0.0)
    if all(value >= least and ratio >= bars.least_ratio for value, ratio in zip(values, ratios, strict=True)):
        remedy = f"It was well when it was measured again; if it comes back: {suspect.remedy}"
        return replace(suspect, status=WARNING, observed=suspect.observed + words, remedy=remedy, again=CLEARED)
    return replace(suspect, observed=suspect.observed + words, again=CONFIRMED)


def _level(matrix: Matrix) -> float:
    """What a ratio of 1 is, in a matrix that is held against its fleet's own level."""
    known = (value / ratio for value, ratio in zip(matrix.value, matrix.ratio, strict=True) if ratio > 0)
    return next(known, math.inf)


def _between(verdict: Verdict, matrix: Matrix) -> float:
    """What parts a bad measurement from a good one: the geometric mean of what its own and healthy ones reach; 0 where all failed."""
    bad = [matrix.value[at] for at in verdict.evidence if not math.isnan(matrix.value[at])]
    if not bad or not verdict.ratio:
        return 0.0
    return statistics.median(bad) / math.sqrt(verdict.ratio)


def _of_suspect(verdict: Verdict, matrix: Matrix, again: Matrix) -> list[int]:
    """The positions of what was measured again of a verdict's own subject."""
    rail = None if verdict.rail is None else matrix.rails[verdict.rail]
    host, other = (None if each is None else matrix.hosts[each] for each in (verdict.host, verdict.other))
    if verdict.kind == "path":
        own = {(matrix.rails[matrix.rail[at]], *_ends(matrix, at)) for at in verdict.evidence}
        return [at for at in range(len(again)) if (again.rails[again.rail[at]], *_ends(again, at)) in own]
    found = []
    for at, (on, server, client) in enumerate(zip(again.rail, again.server, again.client, strict=True)):
        ends = (again.hosts[server], again.hosts[client])
        if rail not in (None, again.rails[on]) or (host is not None and host not in ends):
            continue
        if (other is not None and other not in ends) or (verdict.direction and ends[verdict.direction == "sends"] != host):
            continue
        found.append(at)
    return found


def _ends(matrix: Matrix, at: int) -> tuple[str, str]:
    """Who receives, and who sends."""
    return matrix.hosts[matrix.server[at]], matrix.hosts[matrix.client[at]]
