# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who is measured again before the gate fails."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.matrix.matrix import Matrix
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.plan.suspects import MOST, Meeting, meetings, reach, rounds
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.schedule import planned_meetings
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.verdict.verdict import Verdict

HOSTS = ("a", "b", "c", "d", "e")
RAILS = ["rail0", "rail1", "rail2"]
A, B, C, D, E = range(5)
#: (rail, suspect, first partner, second one) → their meetings.
Met = Callable[[str, str, str, str], set[Meeting]]


def matrix_of(rails: dict[int, str] | None = None, hosts: str = "abcde") -> Matrix:
    """rails: number → its hosts, which have all met each other."""
    members = dict.fromkeys(range(3), hosts) if rails is None else rails
    places = {host: at for at, host in enumerate(HOSTS)}
    met = [(rail, places[one], places[other], 1.0) for rail, of in members.items() for at, one in enumerate(of) for other in of[at + 1 :]]
    return Matrix.of(HOSTS, RAILS, met)


WHOLE = matrix_of()


def planned(*verdicts: Verdict, matrix: Matrix = WHOLE, available: Collection[str] = HOSTS, tenants: str = "") -> list[Meeting]:
    """tenants: hosts whose ports are in a partition of their own on all rails."""
    partitions = {(rail, host): 1 if host in tenants else 2 for rail in RAILS for host in HOSTS}
    return meetings(verdicts, matrix, reach(matrix, verdicts, available, partitions))


def both_ways(rail: str, one: str, *others: str) -> set[Meeting]:
    return {meeting for other in others for meeting in ((rail, one, other), (rail, other, one))}


def receives(rail: str, suspect: str, *partners: str) -> set[Meeting]:
    """It serves: the client sends."""
    return {(rail, suspect, partner) for partner in partners}


def sends(rail: str, suspect: str, *partners: str) -> set[Meeting]:
    return {(rail, partner, suspect) for partner in partners}


def once_each_way(rail: str, suspect: str, first: str, second: str) -> set[Meeting]:
    return receives(rail, suspect, first) | sends(rail, suspect, second)


@pytest.mark.parametrize(
    ("verdict", "on"),
    [
        (Verdict("nic", B, 1), once_each_way),
        (Verdict("direction", B, 1, "sends"), sends),
        (Verdict("direction", B, 1, "receives"), receives),
    ],
    ids=["nic", "sends", "receives"],
)
def test_a_nic_meets_two_good_ones_once_each_on_its_rail_and_on_another(verdict: Verdict, on: Met) -> None:
    found = planned(verdict)
    assert set(found) == on("rail1", "b", "a", "c") | on("rail0", "b", "a", "c")
    assert len(found) == 4


@pytest.mark.parametrize(
    ("verdict", "on"),
    [
        (Verdict("host", B), once_each_way),
        (Verdict("direction", B, None, "sends"), sends),
        (Verdict("direction", B, None, "receives"), receives),
    ],
    ids=["host", "sends on all rails", "receives on all rails"],
)
def test_a_host_is_met_on_all_of_its_rails(verdict: Verdict, on: Met) -> None:
    found = planned(verdict)
    assert set(found) == on("rail0", "b", "a", "c") | on("rail1", "b", "a", "c") | on("rail2", "b", "a", "c")
    assert len(found) == 6


def test_a_host_is_met_on_the_rails_that_it_has() -> None:
    """The first rails of the fleet are not its own."""
    matrix = matrix_of({0: "abc", 1: "abc", 2: "abcd"})
    assert set(planned(Verdict("host", D), matrix=matrix)) == once_each_way("rail2", "d", "a", "b")


def test_a_nic_of_a_mesh_is_met_at_the_other_end_of_its_cable_and_on_another_cable_of_its_host() -> None:
    """There is one host to meet at each cable: from that one it receives, and sends to it."""
    matrix = matrix_of({0: "bc", 1: "ab", 2: "ac"})
    assert set(planned(Verdict("nic", A, 1), matrix=matrix)) == both_ways("rail1", "a", "b") | both_ways("rail2", "a", "c")
    sending = Verdict("direction", A, 1, "sends")
    assert set(planned(sending, matrix=matrix)) == sends("rail1", "a", "b") | sends("rail2", "a", "c")


def test_where_there_is_one_rail_it_is_met_there() -> None:
    assert set(planned(Verdict("nic", A, 0), matrix=matrix_of({0: "abcd"}))) == once_each_way("rail0", "a", "b", "c")


def test_a_pair_meets_again_and_each_of_the_two_meets_good_ones() -> None:
    found = set(planned(Verdict("pair", A, 1, other=C)))
    assert found >= both_ways("rail1", "a", "c")
    assert found - both_ways("rail1", "a", "c") == {
        meeting for rail in ("rail0", "rail1") for host in "ac" for meeting in once_each_way(rail, host, "b", "d")
    }


def test_a_pair_that_is_bad_on_all_rails_meets_again_on_all_of_them() -> None:
    found = set(planned(Verdict("pair", A, None, other=C)))
    everywhere = {meeting for rail in RAILS for meeting in both_ways(rail, "a", "c")}
    assert {meeting for meeting in found if set(meeting[1:]) == {"a", "c"}} == everywhere


def test_devices_that_scatter_are_measured_both_ways_and_beside_two_good_ones() -> None:
    found = meetings([Verdict("nic", B, 1)], WHOLE, reach(WHOLE, [Verdict("nic", B, 1)], HOSTS, {}), controls=True)
    for rail in ("rail0", "rail1"):
        own = {meeting for meeting in found if meeting[0] == rail and "b" in meeting[1:]}
        assert own == both_ways(rail, "b", "a", "c")
    assert set(found) >= both_ways("rail1", "a", "c")
    assert len(found) == len(set(found))


@pytest.mark.parametrize(("suspect", "pairs"), [(B, ["ac", "de"]), (E, ["ab", "cd"])])
def test_two_pairs_of_good_hosts_without_a_common_one_are_measured_beside_suspects(suspect: int, pairs: list[str]) -> None:
    verdict = Verdict("host", suspect)
    found = meetings([verdict], WHOLE, reach(WHOLE, [verdict], HOSTS, {}), controls=True)
    own = "abcde"[suspect]
    assert {meeting for meeting in found if own not in meeting[1:]} == {
        meeting for rail in RAILS for pair in pairs for meeting in both_ways(rail, *pair)
    }


def test_two_hosts_are_compared_with_themselves_on_another_rail() -> None:
    matrix, verdict = matrix_of(hosts="ab"), Verdict("pair", A, 1, other=B)
    found = meetings([verdict], matrix, reach(matrix, [verdict], HOSTS, {}), controls=True)
    assert set(found) == both_ways("rail0", "a", "b") | both_ways("rail1", "a", "b")


def test_three_good_hosts_make_two_pairs() -> None:
    matrix = matrix_of({0: "abcd"}, hosts="abcd")
    verdict = Verdict("host", B)
    found = meetings([verdict], matrix, reach(matrix, [verdict], HOSTS, {}), controls=True)
    assert {meeting for meeting in found if "b" not in meeting[1:]} == both_ways("rail0", "a", "c", "d")


def test_without_two_good_hosts_there_is_nothing_to_compare_with() -> None:
    matrix = matrix_of({0: "ab"})
    found = meetings([Verdict("pair", A, 0, other=B)], matrix, reach(matrix, [Verdict("pair", A, 0, other=B)], HOSTS, {}), controls=True)
    assert set(found) == both_ways("rail0", "a", "b")


def test_two_hosts_that_are_alone_meet_again() -> None:
    matrix = matrix_of(hosts="ab")
    assert set(planned(Verdict("pair", A, 0, other=B), matrix=matrix)) == both_ways("rail0", "a", "b")
    assert set(planned(Verdict("pair", A, None, other=B), matrix=matrix)) == {
        meeting for rail in RAILS for meeting in both_ways(rail, "a", "b")
    }


def test_of_a_rail_one_host_is_met_there_and_on_another() -> None:
    found = planned(Verdict("rail", rail=2))
    assert set(found) == once_each_way("rail2", "a", "b", "c") | once_each_way("rail0", "a", "b", "c")


def test_a_path_has_no_host_to_meet() -> None:
    assert planned(Verdict("path", element="spine1")) == []


@pytest.mark.parametrize(
    "accused",
    [
        Verdict("nic", A, 0),
        Verdict("host", A),
        Verdict("pair", A, 0, other=E),
        Verdict("pair", E, 0, other=A),
        Verdict("direction", A, 0, "sends"),
    ],
    ids=["nic", "host", "pair", "other of a pair", "direction"],
)
def test_another_suspect_is_no_partner(accused: Verdict) -> None:
    found = [meeting for meeting in planned(Verdict("nic", B, 0), accused) if meeting[0] == "rail0" and "b" in meeting]
    assert set(found) == once_each_way("rail0", "b", "c", "d")


def test_a_suspect_of_another_rail_is_a_partner() -> None:
    assert ("rail0", "b", "a") in planned(Verdict("nic", B, 0), Verdict("nic", A, 1))


def test_where_all_are_suspects_they_meet_one_another() -> None:
    matrix = matrix_of({0: "abc"})
    found = set(planned(*(Verdict("nic", host, 0) for host in (A, B, C)), matrix=matrix))
    partners = (("a", "b", "c"), ("b", "a", "c"), ("c", "a", "b"))
    assert found == {meeting for each in partners for meeting in once_each_way("rail0", *each)}


def test_a_suspect_that_is_gone_is_not_met() -> None:
    assert planned(Verdict("nic", B, 1), available=["a", "c", "d", "e"]) == []
    assert planned(Verdict("host", B), available=["a", "c"]) == []


def test_who_is_gone_is_no_partner() -> None:
    assert set(planned(Verdict("nic", B, 0), available=["b", "d", "e"])) == {
        meeting for rail in ("rail0", "rail1") for meeting in once_each_way(rail, "b", "d", "e")
    }


@pytest.mark.parametrize(
    "verdict",
    [Verdict("nic", B, 0), Verdict("host", B), Verdict("pair", A, 0, other=B), Verdict("pair", A, other=B), Verdict("rail", rail=0)],
)
@pytest.mark.parametrize("available", [[], ["b"]], ids=["nobody", "the suspect alone"])
def test_where_nobody_can_be_met_nobody_is(verdict: Verdict, available: list[str]) -> None:
    assert planned(verdict, available=available) == []


def test_without_suspects_nobody_is_met() -> None:
    assert planned() == []


@pytest.mark.parametrize(("suspects", "is_measured"), [(MOST, True), (MOST + 1, False)])
def test_more_suspects_than_that_are_not_single_ones(suspects: int, is_measured: bool) -> None:
    verdicts = [Verdict("nic", at % 2, at % 3) for at in range(suspects)]
    assert bool(planned(*verdicts)) == is_measured


def test_who_is_there_and_who_is_good() -> None:
    matrix = matrix_of({0: "abc", 1: "ab"})
    of = reach(matrix, [Verdict("nic", A, 0)], ["a", "b", "x"], {})
    assert (of.available, of.good) == ({"rail0": ["a", "b"], "rail1": ["a", "b"]}, {"rail0": ["b"], "rail1": ["a", "b"]})


def flat(table: list[list[list[list[int]]]], hosts: list[str], rails: list[str]) -> list[Meeting]:
    return [(rails[at], hosts[server], hosts[client]) for at, of in enumerate(table) for each in of for server, client in each]


def test_rounds_are_as_few_as_the_meetings_of_one_host() -> None:
    wanted = planned(Verdict("nic", B, 1))
    table = rounds(wanted, ["a", "b", "c"], ["rail0", "rail1"])
    assert [len(of) for of in table] == [2, 2]
    assert table[0][0] == [[1, 0]]


def test_others_meet_meanwhile() -> None:
    wanted = [("rail0", "a", "b"), ("rail0", "c", "d"), ("rail0", "b", "a"), ("rail0", "d", "c")]
    assert rounds(wanted, ["a", "b", "c", "d"], ["rail0", "rail1"]) == [[[[0, 1], [2, 3]], [[1, 0], [3, 2]]], []]


MEETINGS = st.lists(
    st.tuples(st.sampled_from(RAILS), st.sampled_from(HOSTS), st.sampled_from(HOSTS)).filter(lambda each: each[1] != each[2]), unique=True
)


@given(MEETINGS)
def test_nobody_is_twice_in_a_round_and_everything_is_met_once(wanted: Iterable[Meeting]) -> None:
    table = rounds(wanted, HOSTS, RAILS)
    assert Counter(flat(table, HOSTS, RAILS)) == Counter(wanted)
    plan = {
        "hosts": HOSTS,
        "rails": [{"name": rail, "addresses": HOSTS} for rail in RAILS],
        "schedule": {"kind": "meetings", "rails": table},
    }
    assert len(list(planned_meetings(plan))) == len(list(wanted))


def test_a_partner_is_of_the_same_partition() -> None:
    found = planned(Verdict("nic", B, 1), tenants="bde")
    assert set(found) == once_each_way("rail1", "b", "d", "e") | once_each_way("rail0", "b", "d", "e")
    assert planned(Verdict("nic", B, 1), tenants="b") == []
