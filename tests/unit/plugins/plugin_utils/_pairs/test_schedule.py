# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The schedules: the pairs of each round, no host twice in a round, and both ends agree."""

from __future__ import annotations

import gzip
import json
import time
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.filter.pairs import FilterModule
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.plan import load_plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.schedule import (
    Schedule,
    make_schedule,
    own_meetings,
    pairs_of_round,
    partner,
    plan_meetings,
    plan_rounds,
    planned_meetings,
    round_count,
)

pair_rounds = FilterModule().filters()["pair_rounds"]
SIZES = st.integers(min_value=0, max_value=65)
KINDS = st.one_of(
    st.just({"kind": "full"}),
    st.just({"kind": "ring"}),
    st.builds(
        lambda partners, seed: {"kind": "sample", "partners": partners, "seed": seed},
        st.integers(min_value=0, max_value=70),
        st.integers(min_value=0, max_value=2**32),
    ),
    st.builds(lambda new: {"kind": "against", "new": new}, st.integers(min_value=0, max_value=70)),
)


def make(wanted: dict[str, Any], n: int) -> Schedule:
    return make_schedule(wanted, n, min(wanted.get("new", 0), n))


def everything(schedule: Schedule) -> list[tuple[int, int]]:
    return [pair for number in range(schedule.rounds) for pair in pairs_of_round(schedule, number)]


@given(KINDS, SIZES)
def test_nobody_occurs_twice_in_a_round_and_only_two_alone_meet_twice(wanted: dict[str, Any], n: int) -> None:
    schedule = make(wanted, n)
    for number in range(schedule.rounds):
        endpoints = [endpoint for pair in pairs_of_round(schedule, number) for endpoint in pair]
        assert len(endpoints) == len(set(endpoints))
        assert set(endpoints) <= set(range(n))
    met = everything(schedule)
    assert len(met) == len({pair if n == 2 else tuple(sorted(pair)) for pair in met}) == schedule.meetings


BOTH = [[(1, 0)], [(0, 1)]]


@pytest.mark.parametrize(
    ("wanted", "rounds"),
    [
        ({"kind": "full"}, BOTH),
        ({"kind": "ring"}, BOTH[::-1]),
        ({"kind": "sample", "partners": 1, "seed": 1}, None),
        ({"kind": "sample", "partners": 8, "seed": 2}, None),
        ({"kind": "sample", "partners": 0, "seed": 2}, []),
        ({"kind": "against", "new": 1}, BOTH),
        ({"kind": "against", "new": 0}, []),
        ({"kind": "against", "new": 2}, []),
    ],
    ids=str,
)
def test_two_endpoints_send_and_receive_each(wanted: dict[str, Any], rounds: list[list[tuple[int, int]]] | None) -> None:
    schedule = make(wanted, 2)
    found = [list(pairs_of_round(schedule, number)) for number in range(schedule.rounds)]
    assert found in ([rounds] if rounds is not None else [BOTH, BOTH[::-1]])
    assert schedule.meetings == len(found)


@pytest.mark.parametrize("kind", [{"kind": "full"}, {"kind": "ring"}, {"kind": "against", "new": 2}], ids=lambda kind: str(kind["kind"]))
def test_each_cable_of_a_mesh_is_measured_in_both_directions(kind: dict[str, Any]) -> None:
    """Rails of two endpoints: their rounds and meetings are counted, and the hosts agree on them."""
    plan = plan_of(kind, [0, 2], [1, 3], [1])
    planned = list(planned_meetings(plan))
    for rail, pair in ((0, (0, 2)), (1, (1, 3))):
        assert sorted((server, client) for on, _number, server, client in planned if on == rail) == [pair, pair[::-1]]
    assert (plan_rounds(plan), plan_meetings(plan), len(planned)) == (2, 4, 4)
    own = own_meetings(plan, 3)
    assert own[0] == own[2] == {}
    assert sorted(own[1].values()) == [(1, False), (1, True)]


@given(KINDS, SIZES)
def test_both_ends_know_of_a_meeting_and_one_of_them_serves(wanted: dict[str, Any], n: int) -> None:
    schedule = make(wanted, n)
    own = {index: schedule.of(index) for index in range(n)}
    for number in range(schedule.rounds):
        pairs = list(pairs_of_round(schedule, number))
        assert all(own[server][number] == (client, True) and own[client][number] == (server, False) for server, client in pairs)
        assert sum(number in meetings for meetings in own.values()) == 2 * len(pairs)
    assert all(list(meetings) == sorted(meetings) for meetings in own.values())


@given(SIZES)
def test_full_is_everybody_with_everybody(n: int) -> None:
    schedule = make({"kind": "full"}, n)
    assert sorted(tuple(sorted(pair)) for pair in everything(schedule)) == list(combinations(range(n), 2)) * (2 if n == 2 else 1)
    assert schedule.rounds == (2 if n == 2 else round_count(n))
    assert all(len(list(pairs_of_round(schedule, number))) == n // 2 for number in range(schedule.rounds))


@given(SIZES)
def test_in_full_every_host_serves_in_half_of_its_meetings(n: int) -> None:
    for index in range(n):
        serving = [serves for _other, serves in make({"kind": "full"}, n).of(index).values()]
        assert abs(2 * sum(serving) - len(serving)) <= 1


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


def test_the_number_of_rounds_is_the_least_possible() -> None:
    assert [round_count(n) for n in range(8)] == [0, 0, 1, 3, 3, 5, 5, 7]


@pytest.mark.parametrize(("index", "number", "n"), [(4, 0, 4), (-1, 0, 4), (0, 3, 4), (0, -1, 4), (0, 0, 1)])
def test_no_such_host_or_round(index: int, number: int, n: int) -> None:
    with pytest.raises(ValueError, match="no host"):
        partner(index, number, n)


@pytest.mark.parametrize(("n", "rounds"), [(0, 0), (1, 0), (2, 2), (3, 3), (4, 2), (5, 3), (64, 2), (65, 3)])
def test_a_ring_takes_two_or_three_rounds(n: int, rounds: int) -> None:
    schedule = make({"kind": "ring"}, n)
    assert schedule.rounds == rounds
    assert sorted(everything(schedule)) == [(index, (index + 1) % n) for index in range(n if n > 1 else 0)]


@given(st.integers(min_value=3, max_value=65), st.integers(min_value=0, max_value=70), st.integers(min_value=0, max_value=2**64))
def test_a_sample_gives_each_its_partners(n: int, partners: int, seed: int) -> None:
    schedule = make({"kind": "sample", "partners": partners, "seed": seed}, n)
    assert schedule.rounds == min(partners, round_count(n))
    for index in range(n):
        others = [other for other, _serves in schedule.of(index).values()]
        assert len(set(others)) == len(others)
        assert schedule.rounds - n % 2 <= len(others) <= schedule.rounds


def test_a_sample_is_of_its_seed() -> None:
    """Recorded once; it must be the same on every host, whatever its Python."""
    drawn = [everything(make({"kind": "sample", "partners": 2, "seed": seed}, 6)) for seed in (4711, 4711, 4712)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert drawn[0] == [(1, 0), (2, 3), (5, 4), (0, 3), (1, 5), (4, 2)]


@pytest.mark.parametrize(
    ("new", "proven", "rounds"), [(0, 5, 0), (5, 0, 0), (1, 1, 2), (1, 2, 2), (2, 5, 5), (5, 2, 5), (3, 3, 3), (1, 63, 63)]
)
def test_new_hosts_meet_each_proven_one_and_nobody_else_meets(new: int, proven: int, rounds: int) -> None:
    schedule = make({"kind": "against", "new": new}, new + proven)
    met = sorted({tuple(sorted(pair)) for pair in everything(schedule)})
    assert met == [(first, new + second) for first in range(new) for second in range(proven)]
    assert schedule.rounds == rounds


def plan_of(schedule: dict[str, Any], *rails: list[int], hosts: int = 4) -> dict[str, Any]:
    """A plan whose rails have the endpoints of some hosts."""
    addresses = [[f"10.{rail}.0.{host}" if host in there else None for host in range(hosts)] for rail, there in enumerate(rails)]
    profiles = [[None if address is None else 0 for address in each] for each in addresses]
    return {
        "hosts": [f"n{number}" for number in range(hosts)],
        "schedule": schedule,
        "profiles": [{"device": "mlx5_0"}],
        "rails": [{"name": f"rail{rail}", "addresses": addresses[rail], "profiles": profiles[rail]} for rail in range(len(rails))],
    }


@given(KINDS, st.lists(st.sets(st.integers(min_value=0, max_value=11)), max_size=4))
def test_a_rail_has_the_schedule_of_its_own_endpoints(wanted: dict[str, Any], rails: list[set[int]]) -> None:
    plan = plan_of(wanted, *map(sorted, rails), hosts=12)
    planned = list(planned_meetings(plan))
    assert len(planned) == plan_meetings(plan)
    assert max((number + 1 for _rail, number, _server, _client in planned), default=0) <= plan_rounds(plan)
    for rail, there in enumerate(rails):
        found = {(number, server, client) for which, number, server, client in planned if which == rail}
        assert {host for _number, *pair in found for host in pair} <= there
        own = {(number, host, other) for host in range(12) for number, (other, serves) in own_meetings(plan, host)[rail].items() if serves}
        assert own == found
        if wanted["kind"] == "full":
            met = sorted(sorted((server, client)) for _number, server, client in found)
            assert met == [[*pair] for pair in combinations(sorted(there), 2) for _time in range(2 if len(there) == 2 else 1)]
        if wanted["kind"] == "against":
            assert all((server < wanted["new"]) != (client < wanted["new"]) for _number, server, client in found)


def test_rails_with_the_same_endpoints_share_their_schedule() -> None:
    meetings = own_meetings(plan_of({"kind": "full"}, [0, 1, 2, 3], [0, 1, 2, 3], [1, 3, 0], [0, 1, 3]), 1)
    assert meetings[0] is meetings[1] is not meetings[2]
    assert meetings[2] is meetings[3]


def test_listed_meetings_may_repeat_a_pair_in_both_directions() -> None:
    plan = plan_of({"kind": "meetings", "rails": [[[[0, 3]], [[3, 0], [1, 2]]], []]}, [0, 1, 2, 3], [0, 1], [2])
    assert list(planned_meetings(plan)) == [(0, 0, 0, 3), (0, 1, 1, 2), (0, 1, 3, 0)]
    assert (plan_rounds(plan), plan_meetings(plan)) == (2, 3)
    assert own_meetings(plan, 3) == [{0: (0, False), 1: (0, True)}, {}, {}]


@pytest.mark.parametrize(
    ("schedule", "complaint"),
    [
        ({"kind": "meetings", "rails": [[[[0, 1], [1, 2]]]]}, "a host twice"),
        ({"kind": "meetings", "rails": [[[[0, 4]]]]}, "one that is none"),
        ({"kind": "meetings", "rails": [[[[0, 3]]]]}, "host 3, which has no endpoint on rail0"),
        ({"kind": "star"}, "no such kind of schedule: 'star'"),
    ],
)
def test_a_schedule_that_is_none(schedule: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        own_meetings(plan_of(schedule, [0, 1, 2]), 0)


def test_a_large_plan_is_read_and_scheduled_fast(tmp_path: Path) -> None:
    """Ten times what it takes, for the machine that runs the tests may be busy."""
    plan = plan_of({"kind": "full"}, *[list(range(4096))] * 8, hosts=4096)
    test = {"name": "x", "command": "ib_write_bw", "size_bytes": 2, "queue_pairs": 1, "duration_seconds": 1}
    profile = {"device": "mlx5_0", "port": 1, "gid_index": 3, "numa_node": 0, "gpu": None}
    plan |= {"schema": 2, "sweep": "x", "rendezvous_port": 1, "perftest_port": 2, "start_deadline_seconds": 1, "tests": [test]}
    plan["profiles"] = [profile]
    for rail in plan["rails"]:
        rail["profiles"] = [0] * 4096
    path = tmp_path / "plan"
    path.write_bytes(gzip.compress(json.dumps(plan).encode()))
    begun = time.process_time()
    loaded = load_plan(path, ["n4095"])
    assert time.process_time() - begun < 0.2
    assert [len(meetings) for meetings in loaded.meetings] == [4095] * 8


def test_the_filter_names_the_hosts_of_each_round() -> None:
    assert pair_rounds(["a", "b", "c", "d"], "ring") == [
        [{"server": "a", "client": "b"}, {"server": "c", "client": "d"}],
        [{"server": "b", "client": "c"}, {"server": "d", "client": "a"}],
    ]
    assert len(pair_rounds(list("abcdefgh"))) == 7
    assert len(pair_rounds(list("abcdefgh"), "sample", partners=3, seed=1)) == 3
    met = [pair for pairs in pair_rounds(["a", "b", "c"], "against", against=["a", "c"]) for pair in pairs]
    assert sorted(sorted(pair.values()) for pair in met) == [["a", "b"], ["b", "c"]]
    assert pair_rounds([]) == []


@pytest.mark.parametrize(
    ("hosts", "more", "complaint"),
    [
        (["a", "a"], {}, "twice"),
        (["a", "b"], {"schedule": "against", "against": ["c"]}, "against has names that are not in the list of hosts: c"),
        (["a", "b"], {"schedule": "all"}, "no such kind"),
    ],
)
def test_the_filter_refuses_what_makes_no_sense(hosts: list[str], more: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        pair_rounds(hosts, **more)


def in_partitions(keys: list[int | None], schedule: dict[str, Any]) -> dict[str, Any]:
    """A plan of one rail, whose ports are in these partitions; None: a host without an endpoint."""
    there = [key for key in dict.fromkeys(keys) if key is not None]
    addresses = [None if key is None else f"10.0.0.{host}" for host, key in enumerate(keys)]
    rail = {"name": "rail0", "addresses": addresses, "profiles": [None if key is None else there.index(key) for key in keys]}
    profiles = [{"pkey": key, "pkey_index": 1} for key in there]
    return {"hosts": [f"node{host}" for host in range(len(keys))], "rails": [rail], "profiles": profiles, "schedule": schedule}


@given(st.lists(st.one_of(st.none(), st.integers(min_value=1, max_value=3)), max_size=20), KINDS)
def test_each_partition_meets_as_if_it_were_alone(keys: list[int | None], wanted: dict[str, Any]) -> None:
    plan = in_partitions(keys, wanted)
    expected = set()
    for key in set(keys) - {None}:
        members = [host for host, each in enumerate(keys) if each == key]
        alone = make_schedule(wanted, len(members), sum(host < wanted.get("new", 0) for host in members))
        expected |= {
            (0, number, members[one], members[other]) for number in range(alone.rounds) for one, other in pairs_of_round(alone, number)
        }
    assert set(planned_meetings(plan)) == expected
    assert plan_meetings(plan) == len(expected)
    for host in range(len(keys)):
        mine = {(number, other) for _rail, number, *ends in expected for one, other in (ends, ends[::-1]) if one == host}
        assert {(number, other) for number, (other, _serving) in own_meetings(plan, host)[0].items()} == mine


def test_two_ports_of_a_partition_meet_in_both_directions_beside_larger_ones() -> None:
    plan = in_partitions([1, 2, 2, 1, 2], {"kind": "full"})
    assert {(one, other) for _rail, _round, one, other in planned_meetings(plan) if {one, other} == {0, 3}} == {(0, 3), (3, 0)}
    assert plan_rounds(plan) == 3
