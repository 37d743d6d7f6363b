# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The order of hosts: as good as the best of all orders, and never worse than the given one."""

from __future__ import annotations

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.plugin_utils._rings.order import best_order, crossings


def test_two_of_sixteen_hosts_are_out_of_order() -> None:
    hosts = [f"node{number}" for number in range(1, 17)]
    above = {host: [f"leaf{number // 4}", "spine0"] for number, host in enumerate(hosts)}
    given_order = list(hosts)
    given_order[5], given_order[9] = "node10", "node6"
    found = best_order(given_order, above)
    assert found.moved == ("node10", "node6")
    assert found.crossings == ((8, 4), (0, 0))
    assert [above[host][0] for host in found.after] == [f"leaf{number // 4}" for number in range(16)]


def test_a_good_order_is_kept() -> None:
    above = {"a": ["x", "s"], "b": ["x", "s"], "c": ["y", "s"]}
    for order in (("b", "a", "c"), ("c", "b", "a"), ("a", "c", "b"), ("a",), ()):
        found = best_order(order, above)
        assert not found.better
        assert (found.after, found.moved) == (order, ())


def test_hosts_without_a_leaf_are_last() -> None:
    above = {"a": ["x"], "b": ["y"], "c": ["x"], "d": ["y"]}
    found = best_order(["a", "lost", "b", "c", "d"], above)
    assert found.after == ("a", "c", "b", "d", "lost")
    assert (found.unplaced, found.crossings) == (("lost",), ((4, 2),))


HOSTS = [f"node{number}" for number in range(6)]


@st.composite
def trees(draw: st.DrawFn, most: int = 6) -> tuple[list[str], dict[str, list[str]]]:
    """An order of hosts, and a tree of three levels above them."""
    count = draw(st.integers(0, most))
    pod_of = draw(st.lists(st.integers(0, 1), min_size=4, max_size=4))
    leaves = draw(st.lists(st.integers(0, 3), min_size=count, max_size=count))
    above = {f"node{host}": [f"leaf{leaf}", f"pod{pod_of[leaf]}", "core"] for host, leaf in enumerate(leaves)}
    return draw(st.permutations(list(above))), above


@given(trees())
def test_no_order_is_better(tree: tuple[list[str], dict[str, list[str]]]) -> None:
    order, above = tree
    found = best_order(order, above)
    for level, (before, after) in enumerate(found.crossings):
        assert before == crossings(order, above, level)
        assert after == crossings(found.after, above, level) == min(crossings(each, above, level) for each in permutations(order))


@given(trees(40))
def test_the_new_order_has_the_same_hosts_and_no_more_crossings(tree: tuple[list[str], dict[str, list[str]]]) -> None:
    order, above = tree
    found = best_order(order, above)
    assert sorted(found.after) == sorted(order)
    assert all(after <= before for before, after in found.crossings)
    assert found.better == any(after < before for before, after in found.crossings)
    stay = [host for host in order if host not in found.moved]
    assert [host for host in found.after if host not in found.moved] == stay
