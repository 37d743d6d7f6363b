# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which hosts are measured with each other: first runs, new hosts, meshes, parts of a fleet."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.fleet import Fleet, Standings
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.plan.choice import Choice, Lane, choose
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.plan.plan import make_plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.proofs import Proof, Standing
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.schedule import planned_meetings
from tests.unit.builders.hosts import lab_intent

PAIRS = {**lab_intent()["pairs"], "schedule": "full", "partners": 4, "seed": None}
PROVEN = Standing(Proof({}, 0.0, "R0", 3, {"bandwidth": 390.0}, 0.99))
UNPROVEN = Standing(None, "never measured, or not proven good")
Rails = Mapping[str, Collection[str]]


def endpoint(host: str, rail: str) -> dict[str, Any]:
    address = f"127.{rail}.{host}"
    return {"address": address, "device": "mlx5_0", "port": 1, "gid_index": 3, "numa_node": 0, "gpu": None}


def met(rails: Rails) -> dict[str, dict[str, Any]]:
    return {host: {rail: endpoint(host, rail) for rail in of} for host, of in rails.items()}


def fleet_of(rails: Rails) -> Fleet:
    """host → the rails on which it can be measured."""
    intents = {host: {"rails": [{"name": rail} for rail in of]} for host, of in rails.items()}
    return Fleet(intents, {host: from_dict(None) for host in rails}, met(rails))


def standings(rails: Rails, unproven: Iterable[tuple[str, str]]) -> Standings:
    wanting = set(unproven)
    return {host: {rail: UNPROVEN if (host, rail) in wanting else PROVEN for rail in of} for host, of in rails.items()}


def chosen(
    rails: Rails, unproven: Iterable[tuple[str, str]], *, remeasure: bool = False, outside: Rails | None = None, **pairs: Any
) -> Choice | None:
    return choose(fleet_of(rails), standings(rails, unproven), {**PAIRS, **pairs}, remeasure=remeasure, outside=met(outside or {}))


def on(*rails: str) -> tuple[Lane, ...]:
    """Rails without partitions."""
    return tuple((rail, None) for rail in rails)


def sure(choice: Choice | None) -> Choice:
    assert choice is not None
    return choice


def hosts(count: int, *rails: str, first: int = 1) -> dict[str, tuple[str, ...]]:
    return {f"node{number}": rails or ("rail0", "rail1") for number in range(first, first + count)}


def both(*numbers: int) -> list[tuple[str, str]]:
    """The endpoints of these hosts on two rails."""
    return [(f"node{number}", rail) for number in numbers for rail in ("rail0", "rail1")]


def partners(choice: Choice, rails: Rails, outside: Rails | None = None) -> dict[tuple[str, str], set[str]]:
    """(host, rail) → its partners there, by the very plan that would be swept."""
    schedule = dict(choice.schedule)
    if schedule["kind"] == "sample" and schedule["seed"] is None:
        schedule["seed"] = 4711
    endpoints = {**met(outside or {}), **met(rails)}
    plan = make_plan("s", hosts=choice.hosts, rails=choice.rails, of=endpoints, tests=[], schedule=schedule)
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for rail, _round, server, client in planned_meetings(plan):
        for one, other in ((server, client), (client, server)):
            found[choice.hosts[one], choice.rails[rail]].add(choice.hosts[other])
    return found


MESH = {"a": ("ab", "ac", "ad"), "b": ("ab", "bc", "bd"), "c": ("ac", "bc", "cd"), "d": ("ad", "bd", "cd")}


@pytest.mark.parametrize("schedule", ["full", "ring"])
def test_the_first_run_measures_everybody_by_the_schedule_of_the_intent(schedule: str) -> None:
    rails = hosts(4)
    assert chosen(rails, both(1, 2, 3, 4), schedule=schedule) == Choice(tuple(rails), on("rail0", "rail1"), {"kind": schedule})


@pytest.mark.parametrize("seed", [None, 0, 4711])
def test_a_sample_has_the_seed_of_the_intent_or_none_yet(seed: int | None) -> None:
    choice = sure(chosen(hosts(4), both(1, 2, 3, 4), schedule="sample", partners=2, seed=seed))
    assert choice.schedule == {"kind": "sample", "partners": 2, "seed": seed}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("count", [3, 5, 7])
def test_in_a_sample_of_an_odd_number_everybody_has_the_partners_that_are_asked_for(count: int, seed: int) -> None:
    """An odd number leaves somebody out of each round."""
    rails = hosts(count)
    choice = sure(chosen(rails, both(*range(1, count + 1)), schedule="sample", partners=2, seed=seed))
    assert min(len(of) for of in partners(choice, rails).values()) >= 2


def test_where_everything_is_proven_nothing_is_measured() -> None:
    assert chosen(hosts(4), []) is None


def test_one_new_host_of_four_meets_each_of_the_others() -> None:
    choice = sure(chosen(hosts(4), both(3)))
    assert choice == Choice(("node3", "node1", "node2", "node4"), on("rail0", "rail1"), {"kind": "against", "new": 1})
    found = partners(choice, hosts(4))
    assert found["node3", "rail1"] == {"node1", "node2", "node4"}
    assert found["node1", "rail0"] == {"node3"}


def test_one_new_host_of_many_meets_as_many_as_the_intent_says_far_apart() -> None:
    choice = sure(chosen(hosts(64), both(10), partners=4))
    others = [host for host in hosts(64) if host != "node10"]
    assert choice.hosts == ("node10", others[0], others[15], others[31], others[47])


def test_only_rails_that_want_it_are_measured() -> None:
    assert sure(chosen(hosts(4), [("node2", "rail1")])).rails == ("rail1",)


def test_half_of_a_large_fleet_that_is_new_meets_the_other_half() -> None:
    choice = sure(chosen(hosts(8), both(1, 2, 3, 4)))
    assert choice.schedule == {"kind": "against", "new": 4}
    found = partners(choice, hosts(8))
    assert found["node1", "rail0"] == {"node5", "node6", "node7", "node8"}


def test_where_more_are_new_than_proven_everybody_is_measured() -> None:
    assert sure(chosen(hosts(8), both(1, 2, 3, 4, 5))) == Choice(tuple(hosts(8)), on("rail0", "rail1"), {"kind": "full"})


def test_where_one_alone_is_proven_the_new_ones_meet_one_another_as_well() -> None:
    found = partners(sure(chosen(hosts(3), both(1, 2))), hosts(3))
    assert found["node1", "rail0"] == {"node2", "node3"}


def test_a_rail_of_few_hosts_in_a_large_fleet_is_not_judged_by_the_one_that_is_proven_there() -> None:
    rails = {**hosts(64, "rail0"), **hosts(4, "rail0", "rail1")}
    choice = sure(chosen(rails, [(f"node{number}", "rail1") for number in (1, 2, 3)]))
    assert choice.rails == ("rail1",)
    assert partners(choice, rails)["node1", "rail1"] == {"node2", "node3", "node4"}


def test_a_rail_that_all_hosts_have_got_is_measured_alone() -> None:
    rails = hosts(4, "rail0", "rail1", "rail2")
    assert chosen(rails, [(host, "rail2") for host in rails]) == Choice(tuple(rails), on("rail2"), {"kind": "full"})


def test_a_rail_that_one_host_alone_has_does_not_measure_the_fleet_again() -> None:
    rails = {**hosts(64), "node65": ("rail0", "rail1", "storage")}
    unproven = [("node65", rail) for rail in rails["node65"]]
    choice = sure(chosen(rails, unproven))
    assert (choice.rails, choice.schedule) == (("rail0", "rail1"), {"kind": "against", "new": 1})
    assert len(choice.hosts) == 5
    assert chosen(rails, [("node65", "storage")]) is None


def test_a_host_without_an_endpoint_on_a_rail_is_measured_on_the_other() -> None:
    rails = {**hosts(4), "node2": ("rail0",)}
    unproven = [(host, rail) for host, of in rails.items() for rail in of]
    found = partners(sure(chosen(rails, unproven)), rails)
    assert ("node2", "rail1") not in found
    assert found["node2", "rail0"] == {"node1", "node3", "node4"}
    assert found["node1", "rail1"] == {"node3", "node4"}


def test_a_new_host_without_an_endpoint_on_a_rail_meets_good_ones_on_the_other() -> None:
    rails = {**hosts(6), "node1": ("rail0",)}
    choice = sure(chosen(rails, [("node1", "rail0"), ("node2", "rail1")]))
    found = partners(choice, rails)
    assert (choice.schedule["kind"], len(found["node1", "rail0"]), len(found["node2", "rail1"])) == ("against", 4, 4)


def test_partners_are_those_of_the_rail() -> None:
    """Half of the hosts have one rail, half of them the other."""
    rails = {**hosts(4, "rail0"), **hosts(4, "rail1", first=5), "node9": ("rail0", "rail1")}
    found = partners(sure(chosen(rails, both(9))), rails)
    assert found["node9", "rail0"] == set(hosts(4))
    assert found["node9", "rail1"] == set(hosts(4, first=5))


@pytest.mark.parametrize("new", [(1,), (2,), (1, 2)])
def test_two_hosts_have_but_one_another(new: tuple[int, ...]) -> None:
    found = partners(sure(chosen(hosts(2), both(*new))), hosts(2))
    assert found["node1", "rail0"] == {"node2"}


@pytest.mark.parametrize("remeasure", [False, True])
def test_one_host_has_nobody(remeasure: bool) -> None:
    assert chosen(hosts(1), both(1), remeasure=remeasure) is None


def test_an_empty_fleet_has_nobody() -> None:
    assert chosen({}, [], remeasure=True) is None


@pytest.mark.parametrize("remeasure", [False, True])
def test_a_part_of_one_host_meets_proven_ones_outside_of_it(remeasure: bool) -> None:
    """--limit node5; "remeasure" is rdma_measure=true."""
    one, outside = hosts(1, first=5), hosts(4)
    choice = sure(chosen(one, [] if remeasure else both(5), remeasure=remeasure, outside=outside, partners=2))
    assert choice == Choice(("node5", "node1", "node3"), on("rail0", "rail1"), {"kind": "against", "new": 1}, ("node1", "node3"))
    assert partners(choice, one, outside)["node5", "rail1"] == {"node1", "node3"}


def test_a_proven_host_that_is_played_alone_is_left_in_peace() -> None:
    assert chosen(hosts(1, first=5), [], outside=hosts(4)) is None


def test_a_part_of_two_hosts_meets_those_outside_or_one_another_and_one_of_them() -> None:
    two = hosts(2)
    unproven = both(1, 2)
    found = partners(sure(chosen(two, unproven, outside=hosts(3, first=3))), two, hosts(3, first=3))
    assert found["node1", "rail0"] == {"node3", "node4", "node5"}
    choice = sure(chosen(two, unproven, outside=hosts(1, first=3)))
    assert (choice.outside, choice.schedule) == (("node3",), {"kind": "full"})
    assert partners(choice, two, hosts(1, first=3))["node1", "rail0"] == {"node2", "node3"}


def test_those_outside_are_not_needed_where_two_are_good_inside() -> None:
    assert sure(chosen(hosts(4), both(1), outside=hosts(4, first=5))).outside == ()


def test_a_rail_that_nobody_outside_has_does_not_hinder_the_other() -> None:
    choice = sure(chosen(hosts(1), both(1), outside=hosts(3, "rail0", first=2)))
    assert (choice.rails, choice.outside) == (("rail0",), ("node2", "node3", "node4"))


@pytest.mark.parametrize("outside", [{}, hosts(3, "rail7", first=2)], ids=["nobody", "on another rail"])
def test_nobody_outside_to_meet_is_nothing_to_measure(outside: Rails) -> None:
    assert chosen(hosts(1), both(1), outside=outside) is None


def test_remeasuring_takes_every_host_whatever_is_proven_or_outside() -> None:
    choice = chosen(hosts(4), [], remeasure=True, outside=hosts(9, first=5))
    assert choice == Choice(tuple(hosts(4)), on("rail0", "rail1"), {"kind": "full"})


def test_a_changed_host_of_a_mesh_meets_the_other_end_of_each_of_its_cables() -> None:
    choice = sure(chosen(MESH, [("a", rail) for rail in MESH["a"]]))
    assert choice.rails == MESH["a"]
    found = partners(choice, MESH)
    assert {rail: found["a", rail] for rail in MESH["a"]} == {"ab": {"b"}, "ac": {"c"}, "ad": {"d"}}


@pytest.mark.parametrize("schedule", ["full", "ring", "sample"])
@pytest.mark.parametrize("remeasure", [False, True])
def test_a_whole_mesh_is_measured_on_each_cable(remeasure: bool, schedule: str) -> None:
    unproven = [] if remeasure else [(host, rail) for host, of in MESH.items() for rail in of]
    found = partners(sure(chosen(MESH, unproven, remeasure=remeasure, schedule=schedule)), MESH)
    assert len(found) == 12
    assert found["c", "cd"] == {"d"}


RING = {"a": ("ab", "ab_2", "da"), "b": ("ab", "ab_2", "bc"), "c": ("bc", "cd"), "d": ("cd", "da")}


@pytest.mark.parametrize("schedule", ["full", "ring", "sample"])
def test_hosts_of_a_ring_meet_their_neighbors_only_on_each_cable(schedule: str) -> None:
    found = partners(sure(chosen(RING, [(host, rail) for host, of in RING.items() for rail in of], schedule=schedule)), RING)
    other = {(host, rail): {each for each in RING if rail in RING[each] and each != host} for host in RING for rail in RING[host]}
    assert found == other


def test_a_part_of_a_mesh_is_measured_on_the_cables_that_lead_out_of_it_as_well() -> None:
    inside, outside = {host: MESH[host] for host in "ab"}, {host: MESH[host] for host in "cd"}
    found = partners(sure(chosen(inside, [(host, rail) for host in "ab" for rail in MESH[host]], outside=outside)), inside, outside)
    assert (found["a", "ab"], found["a", "ac"], found["b", "bd"]) == ({"b"}, {"c"}, {"d"})
    assert ("c", "cd") not in found


RAILS = ("r0", "r1", "r2")


@st.composite
def situations(draw: st.DrawFn) -> tuple[dict[str, list[str]], list[tuple[str, str]], dict[str, list[str]]]:
    count, beyond = draw(st.integers(1, 9)), draw(st.integers(0, 4))
    some = st.lists(st.sampled_from(RAILS), unique=True, max_size=3).map(sorted)
    inside = {f"h{number}": draw(some) for number in range(count)}
    there = [(host, rail) for host, of in inside.items() for rail in of]
    unproven = [each for each in there if draw(st.booleans())]
    outside = {f"o{number}": draw(some.filter(bool)) for number in range(beyond)}
    return inside, unproven, outside


@given(situations(), st.sampled_from(["full", "ring", "sample"]), st.integers(2, 5), st.booleans())
def test_what_is_unproven_and_can_be_measured_is_measured_with_two_where_there_are_two(
    situation: tuple[dict[str, list[str]], list[tuple[str, str]], dict[str, list[str]]], schedule: str, most: int, remeasure: bool
) -> None:
    inside, unproven, outside = situation
    wanted = [(host, rail) for host, of in inside.items() for rail in of] if remeasure else unproven
    choice = chosen(inside, unproven, remeasure=remeasure, outside=outside, schedule=schedule, partners=most)
    found = {} if choice is None else partners(choice, inside, outside)
    for host, rail in wanted:
        others = sum(rail in of for of in inside.values()) - 1
        assert len(found.get((host, rail), ())) >= min(2, others), (host, rail, choice)
    if choice is not None:
        assert set(choice.outside) == set(choice.hosts) - set(inside)
        assert {rail for _host, rail in wanted} >= set(choice.rails)
        assert not any(host in outside and of & set(outside) for (host, _rail), of in found.items())


@given(situations(), st.integers(2, 5))
def test_a_fleet_of_one_meets_those_outside(
    situation: tuple[dict[str, list[str]], list[tuple[str, str]], dict[str, list[str]]], most: int
) -> None:
    inside, _unproven, outside = situation
    one = {"h0": inside["h0"]}
    choice = chosen(one, [("h0", rail) for rail in one["h0"]], outside=outside, partners=most)
    found = {} if choice is None else partners(choice, one, outside)
    for rail in one["h0"]:
        assert len(found.get(("h0", rail), ())) >= min(2, sum(rail in of for of in outside.values()))


def tenants(keys: Mapping[str, int]) -> Fleet:
    """Hosts with one rail, each in the partition of a tenant."""
    met = {host: {"rail0": {**endpoint(host, "rail0"), "pkey": key, "pkey_index": 1}} for host, key in keys.items()}
    return Fleet({host: {"rails": [{"name": "rail0"}]} for host in keys}, {host: from_dict(None) for host in keys}, met)


def test_a_new_host_meets_proven_ones_of_its_own_partition() -> None:
    fleet = tenants({f"node{number}": 1 + number % 2 for number in range(1, 9)})
    proven = {host: {"rail0": UNPROVEN if host == "node3" else PROVEN} for host in fleet.hosts}
    choice = sure(choose(fleet, proven, PAIRS, remeasure=False, outside={}))
    assert choice == Choice(("node3", "node1", "node5", "node7"), (("rail0", 2),), {"kind": "against", "new": 1})
    assert choice.rails == ("rail0",)


def test_who_is_alone_in_a_partition_is_not_measured() -> None:
    fleet = tenants({"node1": 1, "node2": 2, "node3": 2, "node4": 2})
    proven = {host: {"rail0": UNPROVEN} for host in fleet.hosts}
    choice = sure(choose(fleet, proven, PAIRS, remeasure=False, outside={}))
    assert choice == Choice(("node2", "node3", "node4"), (("rail0", 2),), {"kind": "full"})
    assert list(choice.measured(fleet.endpoints)) == ["node2", "node3", "node4"]


def test_who_is_alone_in_a_partition_of_one_rail_is_measured_on_the_others() -> None:
    met = {host: {rail: endpoint(host, rail) for rail in ("rail0", "rail1")} for host in ("node1", "node2", "node3")}
    for host, of in met.items():
        of["rail1"].update(pkey=1 if host == "node1" else 2, pkey_index=1)
    fleet = Fleet(
        {host: {"rails": [{"name": rail} for rail in of]} for host, of in met.items()}, {host: from_dict(None) for host in met}, met
    )
    proven = {host: dict.fromkeys(of, UNPROVEN) for host, of in met.items()}
    choice = sure(choose(fleet, proven, PAIRS, remeasure=False, outside={}))
    assert (choice.hosts, choice.lanes) == (("node1", "node2", "node3"), (("rail0", None), ("rail1", 2)))
    assert {host: list(of) for host, of in choice.measured(met).items()} == {
        "node1": ["rail0"],
        "node2": ["rail0", "rail1"],
        "node3": ["rail0", "rail1"],
    }


def test_a_partner_outside_is_of_the_same_partition() -> None:
    fleet = tenants({"node9": 2})
    outside = tenants({f"node{number}": 1 + number % 2 for number in range(1, 5)}).endpoints
    choice = sure(choose(fleet, {"node9": {"rail0": UNPROVEN}}, PAIRS, remeasure=False, outside=outside))
    assert (choice.hosts, choice.outside) == (("node9", "node1", "node3"), ("node1", "node3"))
