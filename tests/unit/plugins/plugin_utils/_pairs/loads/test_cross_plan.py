# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The pairs across rails: no port twice in a round, each port in one column, every rail and leaf covered, few meetings."""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.loads.cross_plan import (
    MOST_TIMES,
    CrossPort,
    CrossSchedule,
    cross_schedule,
    shifts,
)


def pods(hosts: int, rails: int, per_leaf: int | None) -> list[CrossPort]:
    """Ports of hosts below a leaf for each rail and pod; without a graph if per_leaf is None."""
    leaf = "pod{}-leaf{}".format
    return [
        CrossPort(host, f"rail{rail}", leaf(host // per_leaf, rail) if per_leaf else None) for host in range(hosts) for rail in range(rails)
    ]


def all_reach(rails: int) -> set[tuple[str, str]]:
    return set(permutations([f"rail{number}" for number in range(rails)], 2))


def planned(ports: list[CrossPort], rails: int, partners: int = 4, reach: set[tuple[str, str]] | None = None) -> CrossSchedule:
    return cross_schedule(ports, [f"rail{number}" for number in range(rails)], all_reach(rails) if reach is None else reach, partners)


def flows(found: CrossSchedule) -> list[list[list[tuple[CrossPort, CrossPort]]]]:
    """Column → rounds of (sending port, receiving port)."""
    at = [{port.host: port for port in of} for of in found.columns]
    return [[[(of[one], of[other]) for one, other in turn] for turn in rounds] for of, rounds in zip(at, found.rounds, strict=True)]


@given(
    hosts=st.integers(2, 24), rails=st.integers(2, 8), per_leaf=st.none() | st.integers(1, 8), partners=st.integers(2, 6), data=st.data()
)
def test_no_port_is_used_twice_in_a_round(hosts: int, rails: int, per_leaf: int | None, partners: int, data: st.DataObject) -> None:
    ports = pods(hosts, rails, per_leaf)
    ports = [port for port in ports if port not in data.draw(st.sets(st.sampled_from(ports), max_size=5))]
    reach = all_reach(rails) - {
        each for pair in data.draw(st.sets(st.sampled_from(sorted(all_reach(rails))))) for each in (pair, pair[::-1])
    }
    found = planned(ports, rails, partners, reach)
    assert sorted((port for of in found.columns for port in of), key=repr) == sorted(ports, key=repr)
    load: Counter[CrossPort] = Counter()
    for of, rounds in zip(found.columns, flows(found), strict=True):
        assert len({port.host for port in of}) == len(of)
        for turn in rounds:
            used = [port for pair in turn for port in pair]
            assert len(set(used)) == len(used)
            load.update(used)
            assert all(one.host != other.host and (one.rail, other.rail) in reach for one, other in turn)
        pairs = [pair for turn in rounds for pair in turn]
        assert len(set(pairs)) == len(pairs)
    assert max(load.values(), default=0) <= MOST_TIMES * partners
    sent = {(one.rail, other.rail) for rounds in flows(found) for turn in rounds for one, other in turn}
    assert {(each.sends, each.receives) for each in found.uncovered if each.kind == "rail"} == reach - sent


@pytest.mark.parametrize(("hosts", "rails", "per_leaf"), [(4, 2, 2), (4, 8, None), (16, 8, 8), (64, 8, 16), (256, 8, 32), (5, 3, 5)])
def test_every_rail_and_leaf_is_covered(hosts: int, rails: int, per_leaf: int | None) -> None:
    ports = pods(hosts, rails, per_leaf)
    found = planned(ports, rails)
    assert found.uncovered == []
    pairs = [pair for rounds in flows(found) for turn in rounds for pair in turn]
    assert {(one.rail, other.rail) for one, other in pairs} == all_reach(rails)
    leaves = {(one.leaf, other.leaf) for one, other in pairs if one.leaf}
    expected = {(one, other) for one in {port.leaf for port in ports} for other in {port.leaf for port in ports} if one and other}
    assert leaves == {(one, other) for one, other in expected if one[-1] != other[-1]}


def test_the_load_is_balanced_and_bounded() -> None:
    found = planned(pods(64, 8, 16), 8)
    load, sent = Counter[CrossPort](), Counter[CrossPort]()
    for one, other in (pair for rounds in flows(found) for turn in rounds for pair in turn):
        load.update((one, other))
        sent[one] += 1
    assert (len(load), min(load.values()), max(load.values())) == (512, 3, 4)
    assert all(abs(2 * sent[port] - load[port]) <= 4 for port in load)


def test_the_same_input_gives_the_same_plan() -> None:
    assert planned(pods(16, 8, 8), 8) == planned(pods(16, 8, 8), 8)


def test_two_hosts_leave_out_combinations_and_name_them() -> None:
    found = planned(pods(2, 8, None), 8)
    assert "rail0 to rail2" in {str(each) for each in found.uncovered}
    assert "rail0 to rail1" not in {str(each) for each in found.uncovered}


@pytest.mark.parametrize("rails", range(2, 17))
def test_few_shifts_have_all_differences(rails: int) -> None:
    for hosts in (rails - 1, rails, 3 * rails):
        found = shifts(hosts, rails)
        differences = {(one - other) % rails for one in found for other in found}
        assert differences == set(range(rails)) or hosts < rails
    assert len(set(shifts(rails - 1, rails))) <= max(1, 2 * round(rails**0.5))


def test_ports_of_different_partitions_do_not_meet() -> None:
    ports = [CrossPort(host, f"rail{rail}", None, 0x7FFF if host < 3 else 0x1) for host in range(6) for rail in range(2)]
    pairs = [pair for rounds in flows(planned(ports, 2)) for turn in rounds for pair in turn]
    assert pairs
    assert all(one.key == other.key for one, other in pairs)
