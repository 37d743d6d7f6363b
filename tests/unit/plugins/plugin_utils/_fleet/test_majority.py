# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The odd one out among claims."""

from __future__ import annotations

import time

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._fleet.majority import Claim, Odd, group_by, odd_ones, some


def claims(*values: object) -> list[Claim]:
    return [Claim(f"node{number}", "rail 0", value) for number, value in enumerate(values, 1)]


@pytest.mark.parametrize("values", [(), ("a",), ("a", "a", "a"), (None, None)])
def test_claims_that_agree_have_no_odd_one(values: tuple[object, ...]) -> None:
    assert list(odd_ones(claims(*values))) == []


def test_the_blame_is_on_the_odd_one() -> None:
    answer = claims("a", "b", "a")
    assert list(odd_ones(answer)) == [Odd(answer[1], True, "a", "a on 2 of 3 hosts (node1, node3)")]


def test_none_may_be_what_most_say() -> None:
    answer = claims(None, "b", None)
    assert list(odd_ones(answer, "NICs")) == [Odd(answer[1], True, None, "None on 2 of 3 NICs (node1, node3)")]


@pytest.mark.parametrize("values", [("a", "b"), ("a", "a", "b", "b"), ("a", "a", "b", "c")], ids=["one each", "half", "half against two"])
def test_without_more_than_half_nobody_can_decide_which_is_odd(values: tuple[str, ...]) -> None:
    answer = claims(*values)
    found = list(odd_ones(answer))
    assert [odd.claim for odd in found] == answer
    assert {odd.has_majority for odd in found} == {False}
    assert found[0].others.startswith("a on node1")
    assert "b on node" in found[0].others


def test_a_host_that_claims_twice_is_named_once() -> None:
    answer = [*claims("a", "b"), Claim("node1", "rail 1", "a"), Claim("node1", "rail 2", "a")]
    assert [odd.others for odd in odd_ones(answer)] == ["a on 3 of 4 hosts (node1)"]


def test_many_names_are_some() -> None:
    names = [f"node{number}" for number in range(1, 8)]
    assert some(names[:4]) == "node1, node2, node3, node4"
    assert some(names) == "node1, node2, node3, node4 and 3 more"
    assert some(names, without="node2") == "node1, node3, node4, node5 and 2 more"
    assert some(["node1"], without="node1") == ""


def test_groups_keep_the_order() -> None:
    assert group_by([3, 1, 4, 1, 5], lambda number: number % 2) == {1: [3, 1, 1, 5], 0: [4]}


def test_ten_thousand_claims_that_all_differ_are_quick() -> None:
    answer = claims(*range(10_000))
    begun = time.monotonic()
    assert len(list(odd_ones(answer))) == 10_000
    assert time.monotonic() - begun < 2
