# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The figures of each endpoint in a sweep, with partners that are not to blame themselves."""

from __future__ import annotations

import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.matrix.matrix import Matrix
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.verdict.verdict import Verdict

#: (rail, host): positions in the matrix.
Where = tuple[int, int]
Meetings = defaultdict[Where, "array[int]"]


@dataclass(frozen=True)
class Figure:
    """One endpoint in one test. measured, failed, missing: counts of its measurements. partners: the number of partners in the figures.

    median, lowest, highest: Gb/s or µs. ratio: median of measured / expected (1 is as expected). None if nothing was measured.
    """

    measured: int
    failed: int
    missing: int
    partners: int
    median: float | None
    lowest: float | None
    highest: float | None
    ratio: float | None


@dataclass(frozen=True)
class Blame:
    """The parts named by verdicts. endpoints: of hosts, NICs and directions. pairs: (rail, lower host, higher host). rails."""

    endpoints: dict[Where, Verdict]
    pairs: dict[tuple[int, int, int], Verdict]
    rails: dict[int, Verdict]

    @classmethod
    def of(cls, verdicts: Iterable[Verdict], matrix: Matrix) -> Blame:
        """Return the blame of some verdicts. The first verdict on an endpoint counts."""
        found = cls({}, {}, {})
        for verdict in reversed(list(verdicts)):
            found._add(verdict, len(matrix.rails))
        return found

    def _add(self, verdict: Verdict, rails: int) -> None:
        on = range(rails) if verdict.rail is None else [verdict.rail]
        if verdict.kind == "rail":
            self.rails.update(dict.fromkeys(on, verdict))
        elif verdict.kind == "pair" and verdict.host is not None and verdict.other is not None:
            low, high = sorted((verdict.host, verdict.other))
            self.pairs.update({(rail, low, high): verdict for rail in on})
        elif verdict.host is not None:
            self.endpoints.update({(rail, verdict.host): verdict for rail in on})


def figures(matrix: Matrix, blame: Blame) -> dict[Where, Figure]:
    """Return the figure of every endpoint that was measured, failed or missing.

    A measurement with a partner or path to blame does not count for an endpoint, unless it has no other.
    """
    clean, spoilt, failed = _meetings(matrix, blame)
    missing = _missing(matrix, blame)
    nothing = _positions()
    return {
        where: _figure(matrix, clean.get(where, nothing), spoilt.get(where, nothing), failed[where], missing[where])
        for where in dict.fromkeys([*clean, *spoilt, *failed, *missing])
    }


def positions(matrix: Matrix, blame: Blame) -> dict[Where, Sequence[int]]:
    """Return endpoint → the measurements in its figure."""
    clean, spoilt, _failed = _meetings(matrix, blame)
    return {**spoilt, **clean}


def _meetings(matrix: Matrix, blame: Blame) -> tuple[Meetings, Meetings, Counter[Where]]:
    """Return the measurements that count for each endpoint, those that count for a partner or path, and the number of failures."""
    clean, spoilt = Meetings(_positions), Meetings(_positions)
    failed: Counter[Where] = Counter()
    for at, (rail, server, client, value) in enumerate(zip(matrix.rail, matrix.server, matrix.client, matrix.value, strict=True)):
        ends = (rail, server), (rail, client)
        if math.isnan(value):
            failed.update(ends)
            continue
        bad_path = bool(blame.pairs) and (rail, min(server, client), max(server, client)) in blame.pairs
        for where, partner in (ends, ends[::-1]):
            (spoilt if bad_path or partner in blame.endpoints else clean)[where].append(at)
    return clean, spoilt, failed


def _missing(matrix: Matrix, blame: Blame) -> Counter[Where]:
    """Return the number of planned measurements without a record, by client. A partner that is to blame may have caused it."""
    owed = ((rail, server, client) if matrix.is_read else (rail, client, server) for rail, server, client in matrix.missing)
    return Counter((rail, owing) for rail, owing, partner in owed if (rail, partner) not in blame.endpoints)


def _positions() -> array[int]:
    return array("I")


def _figure(matrix: Matrix, clean: Sequence[int], spoilt: Sequence[int], failed: int, missing: int) -> Figure:
    used = clean or spoilt
    values, ratios = sorted(matrix.value[at] for at in used), sorted(matrix.ratio[at] for at in used)
    measured = len(clean) + len(spoilt)
    if not used:
        return Figure(measured, failed, missing, 0, None, None, None, None)
    return Figure(measured, failed, missing, len(used), _median(values), values[0], values[-1], _median(ratios))


def _median(ordered: Sequence[float]) -> float:
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def too_fast(matrix: Matrix, ceilings: Mapping[Where, float]) -> dict[Where, int]:
    """Return the number of measurements of each endpoint above its maximum. ceilings: Gb/s of each endpoint that has one.

    The client reports the figure. If it is above the client's own maximum, it counts against the server only if at least half of all
    measurements of the server's endpoint are.
    """
    found: Counter[Where] = Counter()
    if max((value for value in matrix.value if not math.isnan(value)), default=0.0) <= min(ceilings.values(), default=math.inf):
        return found
    measured, flagged = Counter[Where](), Counter[Where]()
    for rail, server, client, value in zip(matrix.rail, matrix.server, matrix.client, matrix.value, strict=True):
        measured.update(((rail, server), (rail, client)))
        of_server = value > ceilings.get((rail, server), math.inf)
        if value > ceilings.get((rail, client), math.inf):
            found[rail, client] += 1
            flagged[rail, server] += of_server
        elif of_server:
            found[rail, server] += 1
    found.update({where: number for where, number in flagged.items() if 2 * number >= measured[where]})
    return found
