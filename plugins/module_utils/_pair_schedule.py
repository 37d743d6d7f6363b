# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who measures against whom in which round.

The closed form itself stands in the pair runner, which travels alone to the hosts; here is what plans need beside it.
"""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.rdma.cluster.plugins.module_utils._pair_runner import partner, round_count

__all__ = ["pairs_of_round", "partner", "round_count", "rounds_of"]


def rounds_of(index: int, n: int) -> list[tuple[int, int]]:
    """Return the (round, partner's index) of one host, in order; the round of a bye is left out."""
    met = ((number, partner(index, number, n)) for number in range(round_count(n)))
    return [(number, other) for number, other in met if other is not None]


def pairs_of_round(round_number: int, n: int) -> Iterator[tuple[int, int]]:
    """Yield the pairs of a round as (lower index, higher index); the lower one is perftest's server."""
    for index in range(n):
        other = partner(index, round_number, n)
        if other is not None and index < other:
            yield index, other
