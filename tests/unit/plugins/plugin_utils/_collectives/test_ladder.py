# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ladder over simulated clusters: what is run, who is named, and how many runs it takes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.plugin_utils._collectives.blame import (
    CONNECTION,
    EVERYWHERE,
    HOST,
    NO_MORE,
    SETUP,
    UNCLEAR,
    Blame,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._collectives.ladder import Ladder, climb, most_runs_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._collectives.runs import FAILED, SETUP_FAULT, SLOW, WELL, Hosts, Result

#: What a run on these hosts says, by how often they were run before.
Cluster = Callable[[frozenset[str], int], str]


def hosts(count: int) -> Hosts:
    return tuple(f"node{number}" for number in range(1, count + 1))


def bad(*names: str) -> Cluster:
    return lambda among, _times: SLOW if among & set(names) else WELL


def bad_between(left: Iterable[str], right: Iterable[str]) -> Cluster:
    one, other = set(left), set(right)
    return lambda among, _times: SLOW if among & one and among & other else WELL


def run(names: Hosts, cluster: Cluster, repeats: int = 1, most_runs: int | None = None) -> tuple[Ladder, list[Result]]:
    """Climb to the end."""
    results: list[Result] = []
    while (ladder := climb(names, results, repeats, most_runs)).step is not None:
        times = sum(set(result.hosts) == set(ladder.step) for result in results)
        results.append(Result(ladder.step, cluster(frozenset(ladder.step), times)))
        assert len(results) <= most_runs_of(len(names), repeats)
    return ladder, results


def blamed(ladder: Ladder) -> dict[str, Blame]:
    """host → what names it as the culprit."""
    return {host: blame for blame in ladder.blames if blame.kind == HOST for host in blame.hosts}


def until_named(names: Hosts, cluster: Cluster, host: str) -> int:
    """After how many runs a host is blamed."""
    _ladder, results = run(names, cluster)
    return next(count for count in range(len(results) + 1) if host in blamed(climb(names, results[:count])))


def test_a_clean_cluster_is_climbed_by_doubling() -> None:
    ladder, results = run(hosts(13), bad())
    assert [len(result.hosts) for result in results] == [2, 4, 8, 13]
    assert ladder == Ladder(None, hosts(13), (), ())


def test_the_last_set_is_repeated() -> None:
    ladder, results = run(hosts(4), bad(), repeats=3)
    assert [len(result.hosts) for result in results] == [2, 4, 4, 4]
    assert ladder.well == hosts(4)


@given(count=st.integers(3, 512), place=st.integers(0, 511))
def test_one_bad_host_is_named_in_few_runs(count: int, place: int) -> None:
    names = hosts(count)
    culprit = names[place % count]
    ladder, _results = run(names, bad(culprit))
    assert ladder.blames == (Blame(HOST, (culprit,), left_out=(culprit,)),)
    assert set(ladder.well) == set(names) - {culprit}
    assert ladder.left_out == (culprit,)
    assert until_named(names, bad(culprit), culprit) <= 2 * math.ceil(math.log2(count)) + 4


@given(count=st.integers(5, 128), places=st.sets(st.integers(0, 127), min_size=2, max_size=2))
def test_two_bad_hosts_are_both_named(count: int, places: set[int]) -> None:
    names = hosts(count)
    culprits = {names[place % count] for place in places}
    ladder, _results = run(names, bad(*culprits))
    assert set(blamed(ladder)) == culprits
    assert {blame.kind for blame in ladder.blames} == {HOST}
    assert set(ladder.well) == set(names) - culprits


@given(count=st.integers(4, 64), data=st.data())
def test_a_bad_pair_is_named_and_no_host_is(count: int, data: st.DataObject) -> None:
    names = hosts(count)
    pair = data.draw(st.lists(st.sampled_from(names), min_size=2, max_size=2, unique=True))
    ladder, _results = run(names, bad_between(pair[:1], pair[1:]))
    assert blamed(ladder) == {}
    assert [(blame.kind, {*blame.hosts, *blame.others}) for blame in ladder.blames] == [(CONNECTION, set(pair))]
    assert len(ladder.well) == count - 1


def test_an_uplink_between_two_leaves_is_a_connection_of_all_that_cross_it() -> None:
    names = hosts(16)
    ladder, _results = run(names, bad_between(names[:8], names[8:]))
    assert ladder.blames == (Blame(CONNECTION, names[:8], names[8:], left_out=names[8:]),)
    assert ladder.well == names[:8]
    assert ladder.blames[0].words == (
        "the connection between node1, node2, node3, node4 and 4 more and node9, node10, node11, node12 and 4 more: "
        "each side is good without the other"
    )


def test_an_uplink_that_only_all_together_fill_is_not_a_hosts_fault() -> None:
    names = hosts(8)
    ladder, _results = run(names, lambda among, _times: SLOW if len(among) > 6 else WELL)
    assert blamed(ladder) == {}
    assert ladder.blames == (Blame(CONNECTION, names[:4], names[4:], left_out=names[4:]),)


def test_two_hosts_alone_cannot_show_which_it_is() -> None:
    ladder, results = run(hosts(2), bad("node2"))
    assert ladder == Ladder(None, (), (Blame(UNCLEAR, hosts(2), left_out=hosts(2)),), hosts(2))
    assert len(results) == 2


def test_a_cluster_where_nothing_is_well_accuses_nobody() -> None:
    ladder, results = run(hosts(64), lambda _among, _times: FAILED)
    assert [blame.kind for blame in ladder.blames] == [EVERYWHERE]
    assert blamed(ladder) == {}
    assert len(results) == 6


def test_a_fault_of_the_launch_ends_the_ladder_at_once() -> None:
    ladder, results = run(hosts(8), lambda _among, _times: SETUP_FAULT)
    assert (len(results), ladder.well, [blame.kind for blame in ladder.blames]) == (1, (), [SETUP])


@pytest.mark.parametrize("first", [SLOW, FAILED])
def test_one_bad_figure_of_a_rung_is_measured_again(first: str) -> None:
    ladder, results = run(hosts(8), lambda among, times: first if len(among) == 4 and not times else WELL)
    assert [len(result.hosts) for result in results] == [2, 4, 4, 8]
    assert ladder == Ladder(None, hosts(8), (), ())


def test_a_host_that_the_output_accuses_needs_no_bisection() -> None:
    names = hosts(8)
    reported = [Result(names[:2], WELL), Result(names[:4], WELL), *[Result(names, FAILED, named=frozenset({"node6"}))] * 2]
    ladder = climb(names, reported)
    assert ladder.blames == (Blame(HOST, ("node6",), left_out=("node6",), by_itself=True),)
    assert ladder.step == (*names[:5], *names[6:])


def test_a_ladder_ends_where_it_would_cost_too_much() -> None:
    names = hosts(32)
    ladder, results = run(names, bad("node30"), most_runs=5)
    assert len(results) == 5
    assert [blame.kind for blame in ladder.blames] == [NO_MORE]
    assert ladder.well == names[:16]


def test_a_set_is_run_in_the_order_of_the_hosts_whatever_was_well_first() -> None:
    ladder, results = run(hosts(4), bad("node1"))
    assert [result.hosts for result in results] == [
        ("node1", "node2"),
        ("node1", "node2"),
        ("node1", "node3"),
        ("node2", "node3"),
        ("node2", "node3", "node4"),
    ]
    assert set(blamed(ladder)) == {"node1"}
