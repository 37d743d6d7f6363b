# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The schedule: every pair once, nobody twice in a round."""

from __future__ import annotations

import time
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.module_utils._pair_schedule import pairs_of_round, partner, round_count, rounds_of


@given(st.integers(min_value=0, max_value=65))
def test_each_pair_meets_exactly_once_and_no_endpoint_twice_in_a_round(n: int) -> None:
    met: list[tuple[int, int]] = []
    for number in range(round_count(n)):
        pairs = list(pairs_of_round(number, n))
        endpoints = [endpoint for pair in pairs for endpoint in pair]
        assert len(endpoints) == len(set(endpoints)) == n - n % 2
        met += pairs
    assert sorted(met) == list(combinations(range(n), 2))


@given(st.data(), st.integers(min_value=2, max_value=5000))
def test_partners_agree(data: st.DataObject, n: int) -> None:
    index = data.draw(st.integers(min_value=0, max_value=n - 1))
    number = data.draw(st.integers(min_value=0, max_value=round_count(n) - 1))
    other = partner(index, number, n)
    if other is None:
        assert n % 2 == 1
    else:
        assert other != index
        assert partner(other, number, n) == index


@given(st.data(), st.integers(min_value=1, max_value=200))
def test_a_hosts_own_rounds_name_everybody_else_once(data: st.DataObject, n: int) -> None:
    index = data.draw(st.integers(min_value=0, max_value=n - 1))
    rounds = rounds_of(index, n)
    assert sorted(other for _number, other in rounds) == [other for other in range(n) if other != index]
    assert [number for number, _other in rounds] == sorted({number for number, _other in rounds})


def test_the_number_of_rounds_is_the_least_possible() -> None:
    assert [round_count(n) for n in range(8)] == [0, 0, 1, 3, 3, 5, 5, 7]


@pytest.mark.parametrize(("index", "number", "n"), [(4, 0, 4), (-1, 0, 4), (0, 3, 4), (0, -1, 4), (0, 0, 1)])
def test_no_such_host_or_round(index: int, number: int, n: int) -> None:
    with pytest.raises(ValueError, match="no host"):
        partner(index, number, n)


def test_the_closed_form_is_fast() -> None:
    begun = time.perf_counter()
    assert len(rounds_of(4095, 4096)) == 4095
    assert time.perf_counter() - begun < 0.5
