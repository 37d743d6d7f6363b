# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The odd one out among claims."""

from __future__ import annotations

import time

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import NOT_APPLICABLE, WARNING
from ansible_collections.rdma.cluster.plugins.plugin_utils._fleet.majority import Claim, Odd, Tie, group_by, odd_ones, some, tied, undecided


def claims(*values: object) -> list[Claim]:
    return [Claim(f"node{number}", "rail 0", value) for number, value in enumerate(values, 1)]


@pytest.mark.parametrize("values", [(), ("a",), ("a", "a", "a"), (None, None)])
def test_claims_that_agree_have_no_odd_one(values: tuple[object, ...]) -> None:
    assert odd_ones(claims(*values)) == ([], None)


def test_the_blame_is_on_the_odd_one() -> None:
    answer = claims("a", "b", "a")
    assert odd_ones(answer) == ([Odd(answer[1], "a", "a on 2 of 3 hosts (node1, node3)")], None)


def test_none_may_be_what_most_say() -> None:
    answer = claims(None, "b", None)
    assert odd_ones(answer, "NICs") == ([Odd(answer[1], None, "None on 2 of 3 NICs (node1, node3)")], None)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (("a", "b"), "a on 1 of 2 hosts (node1), b on 1 of 2 hosts (node2)"),
        (("a", "a", "b", "b"), "a on 2 of 4 hosts (node1, node2), b on 2 of 4 hosts (node3, node4)"),
        (("c", "b", "a", "a"), "a on 2 of 4 hosts (node3, node4), c on 1 of 4 hosts (node1), b on 1 of 4 hosts (node2)"),
    ],
    ids=["one each", "half", "half against two"],
)
def test_without_more_than_half_nobody_can_decide_which_is_odd(values: tuple[str, ...], words: str) -> None:
    """No claim is odd: the tie has all of them, and names each value with its hosts."""
    answer = claims(*values)
    odds, tie = odd_ones(answer)
    assert odds == []
    assert tie == Tie(tuple(answer), words)
    assert tie is not None
    assert tie.hosts == [claim.host for claim in answer]


def test_the_finding_on_a_tie_is_that_of_the_fleet_and_accuses_no_host() -> None:
    finding = tied("driver", "alike.os", "distribution", WARNING, "a on node1, b on node2", "the same", "Install it on the other hosts.")
    assert (finding.host, finding.status, finding.subject) == ("the fleet", WARNING, "distribution")
    assert finding.remedy.startswith("1. Choose which of them is right: none is on more than half, so no host is known to be wrong. 2. ")
    own = undecided("driver", "alike.os", "node1", "distribution", "the same")
    assert (own.status, own.observed) == (NOT_APPLICABLE, "no value is on more than half of the hosts: see alike.os of the fleet")


def test_a_tie_on_a_rail_has_no_name_of_one_host() -> None:
    subjects = ("rail 0 (rail0, 0000:18:00.0, ens1np0)", "rail 0 (rail0, 0000:18:00.0, enp24s0)")
    _odds, tie = odd_ones([Claim("node1", subjects[0], "a"), Claim("node2", subjects[1], "b")])
    assert tie is not None
    assert tie.subject == "rail 0 (rail0)"


def test_a_host_that_claims_twice_is_named_once() -> None:
    answer = [*claims("a", "b"), Claim("node1", "rail 1", "a"), Claim("node1", "rail 2", "a")]
    assert [odd.others for odd in odd_ones(answer)[0]] == ["a on 3 of 4 hosts (node1)"]


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
    _odds, tie = odd_ones(answer)
    assert tie is not None
    assert len(tie.hosts) == 10_000
    assert tie.values.endswith("and 9996 more")
    assert time.monotonic() - begun < 2
