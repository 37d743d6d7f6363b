# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What each endpoint reached, with the partners that are not to blame themselves."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable
from dataclasses import replace

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.figures import Blame, Figure, figures, too_fast
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.matrix.matrix import Matrix
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.verdict.verdict import Verdict

HOSTS, RAILS = ["a", "b", "c", "d"], ["rail0", "rail1"]
A, B, C, D = range(4)
NOBODY = Blame({}, {}, {})
#: (rail, server, client, Gb/s or None)
Row = tuple[int, int, int, float | None]


def matrix_of(*rows: Row, expected: float = 100.0) -> Matrix:
    matrix = Matrix.of(HOSTS, RAILS, rows)
    return replace(matrix, ratio=array("d", [value / expected for value in matrix.value]))


def every(value: float = 90.0, rails: Iterable[int] = (0,)) -> dict[tuple[int, int, int], float | None]:
    return {(rail, server, client): value for rail in rails for server in range(4) for client in range(server + 1, 4)}


def rows(of: dict[tuple[int, int, int], float | None]) -> list[Row]:
    return [(*where, value) for where, value in of.items()]


#: a is slow with everybody.
SLOW_A = matrix_of(*rows(every() | {(0, A, B): 40.0, (0, A, C): 41.0, (0, A, D): 42.0}))


def test_where_nobody_is_to_blame_all_measurements_count() -> None:
    found = figures(matrix_of((0, A, B, 80.0), (0, C, A, 90.0), (0, A, D, 95.0)), NOBODY)
    assert found == {
        (0, A): Figure(3, 0, 0, 3, 90.0, 80.0, 95.0, 0.9),
        (0, B): Figure(1, 0, 0, 1, 80.0, 80.0, 80.0, 0.8),
        (0, C): Figure(1, 0, 0, 1, 90.0, 90.0, 90.0, 0.9),
        (0, D): Figure(1, 0, 0, 1, 95.0, 95.0, 95.0, 0.95),
    }


def test_of_an_even_number_the_middle_of_the_two_counts() -> None:
    assert figures(matrix_of((0, A, B, 80.0), (0, A, C, 90.0)), NOBODY)[0, A].median == 85.0


def test_the_ratio_is_a_median_of_its_own() -> None:
    """With an end that allows less, half the rate is all that can be."""
    matrix = replace(matrix_of((0, A, B, 50.0), (0, A, C, 95.0), (0, A, D, 96.0)), ratio=array("d", [0.99, 0.95, 0.96]))
    assert (figures(matrix, NOBODY)[0, A].median, figures(matrix, NOBODY)[0, A].ratio) == (95.0, 0.96)


@pytest.mark.parametrize(
    "verdict",
    [
        Verdict("nic", A, 0),
        Verdict("host", A),
        Verdict("direction", A, 0, "sends"),
        Verdict("direction", A, 0, "receives"),
        Verdict("direction", A, None, "sends"),
    ],
    ids=["nic", "host", "sends", "receives", "sends on all rails"],
)
def test_a_good_port_is_not_judged_by_a_bad_partner(verdict: Verdict) -> None:
    found = figures(SLOW_A, Blame.of([verdict], SLOW_A))
    assert found[0, B] == Figure(3, 0, 0, 2, 90.0, 90.0, 90.0, 0.9)
    assert (found[0, A].partners, found[0, A].median) == (3, 41.0)


def test_without_the_verdict_it_is() -> None:
    assert figures(SLOW_A, NOBODY)[0, B].lowest == 40.0


def test_a_verdict_on_one_rail_says_nothing_of_another() -> None:
    matrix = matrix_of(*rows(every(rails=[0, 1])))
    found = figures(matrix, Blame.of([Verdict("nic", A, 0)], matrix))
    assert (found[0, B].partners, found[1, B].partners) == (2, 3)


@pytest.mark.parametrize("rail", [0, None], ids=["of the rail", "of all rails"])
@pytest.mark.parametrize("ends", [(A, B), (B, A)], ids=["as measured", "the other way round"])
def test_a_bad_pair_is_left_out_at_both_ends_and_nobody_else_suffers(rail: int | None, ends: tuple[int, int]) -> None:
    matrix = matrix_of(*rows(every() | {(0, A, B): 10.0}))
    found = figures(matrix, Blame.of([Verdict("pair", ends[0], rail, other=ends[1])], matrix))
    assert [found[0, host].partners for host in range(4)] == [2, 2, 3, 3]
    assert {figure.lowest for figure in found.values()} == {90.0}


@pytest.mark.parametrize("verdict", [Verdict("rail", rail=0), Verdict("path", element="spine1")], ids=["rail", "path"])
def test_a_verdict_on_no_host_leaves_nothing_out(verdict: Verdict) -> None:
    assert figures(SLOW_A, Blame.of([verdict], SLOW_A)) == figures(SLOW_A, NOBODY)


def test_whose_partners_are_all_to_blame_is_judged_by_them() -> None:
    matrix = matrix_of((0, A, B, 40.0), (0, A, C, 50.0))
    found = figures(matrix, Blame.of([Verdict("nic", B, 0), Verdict("nic", C, 0)], matrix))
    assert found[0, A] == Figure(2, 0, 0, 2, 45.0, 40.0, 50.0, 0.45)


def test_what_failed_is_counted_and_has_no_figure() -> None:
    found = figures(matrix_of((0, A, B, None), (0, C, A, 90.0)), NOBODY)
    assert found[0, A] == Figure(1, 1, 0, 1, 90.0, 90.0, 90.0, 0.9)
    assert found[0, B] == Figure(0, 1, 0, 0, None, None, None, None)


def test_what_left_no_record_counts_against_the_client_that_owes_it() -> None:
    matrix = matrix_of((0, A, B, 90.0)).with_missing([(0, 0, A, B), (0, 1, C, A), (1, 0, C, D)])
    found = figures(matrix, NOBODY)
    assert (found[0, A].missing, found[0, A].measured) == (1, 1)
    assert found[1, D] == Figure(0, 0, 1, 0, None, None, None, None)
    assert found[0, B].missing == 0
    assert (0, C) not in found, "the client owes the record"


def test_of_nothing_there_is_no_figure() -> None:
    assert figures(matrix_of(), NOBODY) == {}


def test_of_two_verdicts_on_an_endpoint_the_first_counts() -> None:
    first, second = Verdict("host", A, explained=9), Verdict("nic", A, 0)
    blame = Blame.of([first, second], SLOW_A)
    assert blame.endpoints == {(0, A): first, (1, A): first}
    assert Blame.of([second, first], SLOW_A).endpoints == {(0, A): second, (1, A): first}


def test_blame_names_rails_and_pairs() -> None:
    rail, pair = Verdict("rail", rail=1), Verdict("pair", D, None, other=B)
    blame = Blame.of([rail, pair], SLOW_A)
    assert (blame.endpoints, blame.rails) == ({}, {1: rail})
    assert blame.pairs == {(0, B, D): pair, (1, B, D): pair}


CEILINGS = {(rail, host): 98.0 for rail in (0, 1) for host in range(4)}


def test_what_is_above_the_ceiling_of_both_ends_counts_at_both() -> None:
    matrix = matrix_of((0, A, B, 98.0), (0, A, C, 99.0), (1, A, C, 200.0), (0, B, C, None))
    assert too_fast(matrix, CEILINGS) == {(0, A): 1, (0, C): 1, (1, A): 1, (1, C): 1}


def test_a_good_port_that_met_one_which_is_not_what_it_should_be_is_not_too_fast() -> None:
    """c reports 50 Gb/s and does more: a and b, of 100, have done nothing impossible."""
    matrix = matrix_of((0, A, C, 90.0), (0, C, B, 90.0), (0, A, B, 97.0))
    assert too_fast(matrix, CEILINGS | {(0, C): 50.0}) == {(0, C): 2}


def test_one_client_that_says_the_impossible_does_not_accuse_its_server() -> None:
    matrix = matrix_of((0, A, B, 65536.0), (0, A, C, 97.0), (0, C, B, 97.0))
    assert too_fast(matrix, CEILINGS) == {(0, B): 1, (0, A): 1}
    of_more = matrix_of((0, A, B, 65536.0), (0, A, C, 97.0), (0, 3, A, 97.0), (0, C, B, 97.0))
    assert too_fast(of_more, CEILINGS) == {(0, B): 1}


@pytest.mark.parametrize("value", [98.0, None], ids=["at the ceiling", "failed"])
def test_what_is_possible_is_not_too_fast(value: float | None) -> None:
    assert too_fast(matrix_of((0, A, B, value)), CEILINGS) == {}


def test_without_a_ceiling_nothing_is_too_fast() -> None:
    matrix = matrix_of((0, A, B, 1e6), (0, C, D, 1e6))
    assert too_fast(matrix, {}) == {}
    assert too_fast(matrix, {(0, C): 98.0}) == {(0, C): 1}
    assert too_fast(matrix_of(), CEILINGS) == {}


def test_a_median_of_a_fleet_is_no_nan() -> None:
    found = figures(matrix_of(*rows(every() | {(0, A, B): None})), NOBODY)
    assert not any(math.isnan(figure.median or 0.0) or math.isnan(figure.ratio or 0.0) for figure in found.values())
