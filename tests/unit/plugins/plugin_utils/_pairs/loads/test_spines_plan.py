# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The pairs across spines, and that all pairs begin the round that counts at once."""

from __future__ import annotations

import itertools
import random

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.loads.spines_plan import Rounds, across, exchanged


def leaves_of(*sizes: int) -> list[str]:
    return [f"leaf{number}" for number, size in enumerate(sizes) for _host in range(size)]


@pytest.mark.parametrize(
    ("sizes", "count"),
    [((4, 4), 4), ((4, 4, 4), 6), ((1, 1, 1, 1), 2), ((5, 3), 3), ((9, 1, 1), 2), ((3, 2, 2), 3), ((1, 1, 1), 1), ((8,), 0), ((), 0)],
    ids=str,
)
def test_every_pair_is_across_and_nobody_is_twice(sizes: tuple[int, ...], count: int) -> None:
    leaves = leaves_of(*sizes)
    pairs = across(leaves)
    assert len(pairs) == count
    assert all(leaves[one] != leaves[other] for one, other in pairs)
    assert len({*itertools.chain(*pairs)}) == 2 * count


def test_leaves_that_alternate_send_as_a_whole() -> None:
    leaves = ["a", "b", None, "a", "b", None]
    assert across(leaves) == [(0, 1), (3, 4)]


def ends(rounds: Rounds, begun: dict[int, float], seconds: float = 10.0) -> list[list[float]]:
    """When each meeting of each round begins, if everybody goes on as soon as both partners are free."""
    free, found = dict(begun), []
    for pairs in rounds:
        starts = [max(free[one], free[other]) for one, other in pairs]
        for (one, other), start in zip(pairs, starts, strict=True):
            free[one] = free[other] = start + seconds
        found.append(starts)
    return found


@pytest.mark.parametrize("count", range(2, 34))
@pytest.mark.parametrize("more", [0, 100], ids=["greatest rail", "small rail"])
def test_all_pairs_begin_the_round_that_counts_at_once(count: int, more: int) -> None:
    pairs = [(number, number + count) for number in range(count)]
    rounds = exchanged(pairs, count + more)
    assert rounds[-2] == [list(pair) for pair in pairs]
    for seed in range(5):
        late = {host: random.Random(f"{seed} {host}").uniform(0, 300) for host in range(2 * count)}
        starts = ends(rounds, late)
        assert len(set(starts[-2])) == 1
        assert starts[-1] == [starts[-2][0] + 10.0]
    assert all(len({*itertools.chain(*turn)}) == 2 * len(turn) for turn in rounds)


@pytest.mark.parametrize("count", range(2, 34))
def test_no_result_can_be_taken_for_another_round_s(count: int) -> None:
    """Results have sender and receiver, but no time."""
    *before, together, alone = exchanged([(number, number + count) for number in range(count)], count)
    met = [tuple(pair) for turn in (*before, together) for pair in turn]
    assert tuple(alone[0]) not in met
    assert alone[0][0] < count <= alone[0][1]
    assert not {tuple(pair) for pair in together} & {tuple(pair) for turn in before for pair in turn}


def test_rails_of_any_size_have_as_many_rounds() -> None:
    assert [len(exchanged([(0, 2), (1, 3)], most)) for most in (2, 3, 4, 5, 256)] == [3, 4, 4, 5, 10]
