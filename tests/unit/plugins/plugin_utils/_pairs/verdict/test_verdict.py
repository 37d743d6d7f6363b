# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Verdicts on matrices whose faults are known."""

from __future__ import annotations

import dataclasses
import json
import math
import random
from collections.abc import Callable, Iterable, Iterator
from itertools import permutations
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.matrix.matrix import Matrix
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.verdict.verdict import Verdict, localize
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.verdict.words import describe

Row = tuple[int, int, int]
Fault = Callable[[int, int, int], "float | None"]
Named = tuple[str, "int | None", "int | None", "str | None", "int | None"]
SOFTWARE, HARDWARE = 0.35, 0.03


def full(hosts: int, rails: int) -> Iterator[Row]:
    """(rail, server, client): every pair once; everyone sends in half of its meetings."""
    for rail in range(rails):
        for low in range(hosts):
            for high in range(low + 1, hosts):
                yield (rail, low, high) if (low + high) % 2 == 0 else (rail, high, low)


def ring(hosts: int, rails: int) -> Iterator[Row]:
    yield from ((rail, host, (host + 1) % hosts) for rail in range(rails) for host in range(hosts))


def sample(hosts: int, rails: int, partners: int) -> Iterator[Row]:
    yield from ((rail, at, (at + step) % hosts) for rail in range(rails) for at in range(hosts) for step in range(1, partners // 2 + 1))


def measured(rows: Iterable[Row], *faults: Fault, noise: float = HARDWARE, seed: int = 1, hosts: int = 600) -> Matrix:
    """The worst fault that a measurement meets decides; a fault gives the share that is left, None if it fails."""
    chance = random.Random(seed)
    found = []
    for row in rows:
        left = [fault(*row) for fault in faults]
        found.append((*row, None if None in left else chance.lognormvariate(-0.03, noise) * min((x for x in left if x), default=1.0)))
    rails = 1 + max(row[0] for row in found)
    return Matrix.of([f"node{number}" for number in range(hosts)], [f"rail{number}" for number in range(rails)], found)


def nic(bad_rail: int, host: int, left: float | None = 0.3) -> Fault:
    return lambda rail, server, client: left if rail == bad_rail and host in (server, client) else 1.0


def of_host(host: int, left: float | None = 0.3) -> Fault:
    return lambda _rail, server, client: left if host in (server, client) else 1.0


def of_rail(bad: int, left: float | None = 0.3) -> Fault:
    return lambda rail, _server, _client: left if rail == bad else 1.0


def sends(bad_rail: int | None, host: int, left: float | None = 0.3) -> Fault:
    return lambda rail, _server, client: left if bad_rail in (None, rail) and client == host else 1.0


def receives(bad_rail: int | None, host: int, left: float | None = 0.3) -> Fault:
    return lambda rail, server, _client: left if bad_rail in (None, rail) and server == host else 1.0


def pair(bad_rail: int | None, one: int, other: int, left: float | None = 0.3) -> Fault:
    return lambda rail, server, client: left if bad_rail in (None, rail) and {server, client} == {one, other} else 1.0


def named(verdicts: Iterable[Verdict]) -> set[Named]:
    return {(each.kind, each.host, each.rail, each.direction, each.other) for each in verdicts}


HOST2, NIC2, RAIL1 = ("host", 2, None, None, None), ("nic", 2, 1, None, None), ("rail", None, 1, None, None)
SENDS2, RECEIVES2 = ("direction", 2, 1, "sends", None), ("direction", 2, 1, "receives", None)
ALL_SENDS2, PAIR23, ALL_PAIR23 = ("direction", 2, None, "sends", None), ("pair", 2, 1, None, 3), ("pair", 2, None, None, 3)


@pytest.mark.parametrize("left", [0.3, 0.8, None], ids=["slow", "little slower", "failed"])
@pytest.mark.parametrize(
    ("fault", "verdict"),
    [
        (of_host, HOST2),
        (lambda _host, left: nic(1, 2, left), NIC2),
        (lambda _host, left: of_rail(1, left), RAIL1),
        (lambda _host, left: sends(1, 2, left), SENDS2),
        (lambda _host, left: receives(1, 2, left), RECEIVES2),
        (lambda _host, left: sends(None, 2, left), ALL_SENDS2),
        (lambda _host, left: pair(1, 2, 3, left and 0.7 * left), PAIR23),
        (lambda _host, left: pair(None, 2, 3, left and 0.7 * left), ALL_PAIR23),
    ],
    ids=["host", "nic", "rail", "sends", "receives", "host sends", "pair", "pair on all rails"],
)
@pytest.mark.parametrize(
    "rows", [list(full(8, 4)), list(full(40, 4)), list(sample(64, 4, 16))], ids=["8 hosts", "40 hosts", "16 partners of 64"]
)
def test_one_fault_has_one_name(
    rows: Iterable[Row], fault: Callable[[int, float | None], Fault], verdict: Named, left: float | None
) -> None:
    found = localize(measured(rows, fault(2, left)))
    assert named(found) == {verdict}
    assert found[0].failed is (left is None)
    if left is None:
        assert found[0].ratio is None
    else:
        assert found[0].ratio == pytest.approx(left * (0.7 if verdict[0] == "pair" else 1), rel=0.12)


@pytest.mark.parametrize("hosts", [8, 40])
@pytest.mark.parametrize(
    ("faults", "verdicts"),
    [
        ([of_host(2, None), nic(0, 5), of_rail(1, 0.5)], {HOST2, ("nic", 5, 0, None, None), RAIL1}),
        ([nic(1, 2, 0.1), nic(1, 4, 0.5)], {NIC2, ("nic", 4, 1, None, None)}),
        ([nic(1, 2, 0.1), nic(2, 2, 0.5)], {NIC2, ("nic", 2, 2, None, None)}),
        ([of_host(2, None), of_host(3, None)], {HOST2, ("host", 3, None, None, None)}),
        ([nic(1, 2, None), pair(0, 5, 6, None)], {NIC2, ("pair", 5, 0, None, 6)}),
        ([sends(1, 2), receives(0, 3)], {SENDS2, ("direction", 3, 0, "receives", None)}),
    ],
    ids=["host, nic and rail", "two NICs of a rail", "two NICs of a host", "two dead hosts", "nic and pair", "sends and receives"],
)
def test_several_faults_at_once(hosts: int, faults: list[Fault], verdicts: set[Named]) -> None:
    assert named(localize(measured(full(hosts, 4), *faults))) == verdicts


def test_a_host_whose_nics_are_nearly_all_bad_is_bad() -> None:
    assert named(localize(measured(full(16, 8), *(nic(rail, 2) for rail in range(7))))) == {HOST2}
    assert len(localize(measured(full(16, 8), *(nic(rail, 2) for rail in range(4))))) == 4


def test_a_rail_whose_nics_are_nearly_all_bad_is_bad() -> None:
    chance = random.Random(7)

    def loses(rail: int, _server: int, _client: int) -> float | None:
        return None if rail == 1 and chance.random() < 0.6 else 1.0

    assert named(localize(measured(full(30, 4), loses))) == {RAIL1}


def test_a_slow_nic_in_a_slow_rail() -> None:
    assert named(localize(measured(full(40, 4), of_rail(1, 0.5), nic(1, 2, 0.1)))) == {RAIL1, NIC2}


def test_a_third_of_the_hosts_is_bad() -> None:
    bad = [of_host(host, 0.3) for host in range(10)]
    assert named(localize(measured(full(30, 4), *bad))) == {("host", host, None, None, None) for host in range(10)}


@pytest.mark.parametrize("left", [0.1, None], ids=["slow", "failed"])
@pytest.mark.parametrize(
    ("hosts", "rails", "fault", "verdict"),
    [
        (2, 1, nic(0, 1, None), ("pair", 0, 0, None, 1)),
        (2, 2, nic(0, 1), ("pair", 0, 0, None, 1)),
        (2, 2, of_host(1, None), ("pair", 0, None, None, 1)),
        (3, 1, nic(0, 1), ("nic", 1, 0, None, None)),
        (3, 2, nic(0, 1), ("nic", 1, 0, None, None)),
        (3, 2, of_host(1), ("host", 1, None, None, None)),
        (3, 2, of_rail(1), RAIL1),
        (4, 1, nic(0, 1), ("nic", 1, 0, None, None)),
        (4, 2, nic(0, 1), ("nic", 1, 0, None, None)),
        (4, 2, of_host(1), ("host", 1, None, None, None)),
        (4, 2, of_rail(1), RAIL1),
    ],
)
def test_few_hosts(hosts: int, rails: int, fault: Fault, verdict: Named, left: float | None) -> None:
    """fault shows where; what is left there is the test's."""

    def there(rail: int, server: int, client: int) -> float | None:
        return 1.0 if fault(rail, server, client) == 1.0 else left

    if left is not None and fault(0, 0, 1) is None:
        pytest.skip("where nothing is healthy, slow is what failed only")
    for noise in (HARDWARE, 0.1):
        assert named(localize(measured(full(hosts, rails), there, noise=noise))) == {verdict}


@pytest.mark.parametrize("hosts", [3, 8, 100])
def test_a_ring_names_who_is_bad_with_both_neighbors_and_else_the_pair(hosts: int) -> None:
    assert named(localize(measured(ring(hosts, 4), nic(1, 2, None)))) == {NIC2}
    assert named(localize(measured(ring(hosts, 4), nic(1, 2, 0.2)))) == {NIC2}
    assert named(localize(measured(ring(hosts, 4), receives(1, 1, None)))) == {("pair", 1, 1, None, 2)}


def test_nobody_is_blamed_for_one_partner() -> None:
    found = localize(measured(full(30, 8), *(pair(rail, 2, 3, None) for rail in range(4))))
    assert named(found) == {("pair", 2, rail, None, 3) for rail in range(4)}
    assert {each.confidence for each in found} == {2 / 3}


def test_a_nic_that_is_bad_now_and_then() -> None:
    chance = random.Random(3)

    def flaps(rail: int, server: int, client: int) -> float:
        return 0.5 if rail == 1 and 2 in (server, client) and chance.random() < 0.5 else 1.0

    (found,) = localize(measured(full(40, 4), flaps))
    assert named([found]) == {NIC2}
    assert 0.3 < found.confidence < 0.7


def test_unequal_rails_and_what_is_missing() -> None:
    chance = random.Random(5)
    rows = [row for row in full(20, 4) if chance.random() < 0.8 and not (row[0] == 3 and {0, 1, 2, 3} & set(row[1:])) and 7 not in row[1:]]
    assert named(localize(measured(rows, of_host(2), nic(3, 9, None)))) == {HOST2, ("nic", 9, 3, None, None)}


def test_what_a_verdict_says() -> None:
    matrix = measured(full(8, 4), nic(1, 2, 0.25))
    (verdict,) = localize(matrix)
    assert (verdict.partners, verdict.measured, verdict.explained, verdict.confidence) == (7, 7, 7, 8 / 9)
    assert len(verdict.evidence) == 7
    assert all(matrix.rail[at] == 1 and 2 in (matrix.server[at], matrix.client[at]) for at in verdict.evidence)
    (verdict,) = localize(measured(full(20, 4), of_host(2, None)))
    assert (verdict.partners, verdict.explained, len(verdict.evidence), verdict.ratio) == (19, 76, 8, None)
    assert len({matrix.server[at] for at in verdict.evidence}) > 1


@pytest.mark.parametrize("matrix", [Matrix.of([], [], []), measured(full(30, 8)), measured(full(2, 1)), measured(ring(3, 1))])
def test_a_healthy_fleet_has_no_verdict(matrix: Matrix) -> None:
    assert localize(matrix) == []


def test_software_devices_that_scatter() -> None:
    """200 seeds of a healthy fleet, and with node2's NIC at a tenth: at most 1 % false verdicts, at least 98 % found."""
    healthy = [localize(measured(full(4, 2), noise=SOFTWARE, seed=seed, hosts=4)) for seed in range(200)]
    slow = [localize(measured(full(4, 2), nic(0, 1, 0.1), noise=SOFTWARE, seed=seed, hosts=4)) for seed in range(200)]
    assert sum(map(bool, healthy)) <= 2
    assert sum(named(found) == {("nic", 1, 0, None, None)} for found in slow) >= 196


@pytest.mark.parametrize("noise", [HARDWARE, SOFTWARE])
def test_large_fleets_without_faults(noise: float) -> None:
    assert [localize(measured(full(24, 8), noise=noise, seed=seed)) for seed in range(10)] == [[]] * 10


class Leaves:
    """Two leaves: hosts below 8 hang on leaf0; what goes from one to the other crosses both, and a spine by parity."""

    def elements(self, rail: int, server: int, client: int) -> list[str]:
        ends = sorted({server // 8, client // 8})
        spine = [f"rail{rail} spine{(server + client) % 2}"] if len(ends) > 1 else []
        return [f"rail{rail} leaf{end}" for end in ends] + spine

    def alternatives(self, element: str) -> int:
        return 1


@pytest.mark.parametrize("left", [0.4, None], ids=["slow", "failed"])
@pytest.mark.parametrize("element", ["rail1 leaf1", "rail1 spine0"])
def test_an_element_that_measurements_cross(element: str, left: float | None) -> None:
    paths = Leaves()

    def crosses(*row: int) -> float | None:
        return left if element in paths.elements(*row) else 1.0

    (found,) = localize(measured(full(16, 4), crosses), paths=paths)
    assert (found.kind, found.element, found.host, found.failed) == ("path", element, None, left is None)


def test_endpoints_explain_before_elements() -> None:
    assert named(localize(measured(full(16, 4), nic(1, 2)), paths=Leaves())) == {NIC2}
    assert named(localize(measured(full(16, 4), of_rail(1)), paths=Leaves())) == {RAIL1}


def test_zero_and_less_are_failures() -> None:
    rows = [(*row, 0.0 if row[0] == 1 and 2 in row[1:] else 1.0) for row in full(8, 4)]
    (found,) = localize(Matrix.of([f"node{number}" for number in range(8)], ["a", "b", "c", "d"], rows))
    assert (found.kind, found.host, found.rail, found.failed) == ("nic", 2, 1, True)


def test_time_of_many_culprits() -> None:
    """Half a large fleet bad ends in seconds; nothing is asked of what it says but that rails and hosts are not all well."""
    matrix = measured(sample(512, 4, 16), *(nic(host % 4, host, None) for host in range(0, 512, 2)))
    assert len(localize(matrix)) >= 200
    assert math.isfinite(sum(each.confidence for each in localize(matrix)))


ALL_RECEIVES2 = ("direction", 2, None, "receives", None)


@pytest.mark.parametrize("left", [0.3, None], ids=["slow", "failed"])
@pytest.mark.parametrize(
    ("fault", "reported", "both_ways"),
    [(sends, SENDS2, NIC2), (receives, RECEIVES2, NIC2), (sends, ALL_SENDS2, HOST2), (receives, ALL_RECEIVES2, HOST2), (nic, NIC2, NIC2)],
    ids=["sends", "receives", "sends on all rails", "receives on all rails", "both"],
)
@pytest.mark.parametrize("size", [(8, 4), (32, 8)])
def test_no_direction_can_be_named_where_data_goes_both_ways_at_once(
    fault: Callable[..., Fault], reported: Named, both_ways: Named, left: float | None, size: tuple[int, int]
) -> None:
    """A port that is bad only as server or as client is bad: nothing shows the direction."""
    matrix = measured(full(*size), fault(reported[2], 2, left))
    assert named(localize(matrix)) == {reported}
    assert named(localize(dataclasses.replace(matrix, is_bidirectional=True))) == {both_ways}


@pytest.mark.parametrize(("command", "direction"), [("ib_write_bw", "sends"), ("ib_send_bw", "sends"), ("ib_read_bw", "receives")])
def test_a_client_that_reads_receives(tmp_path: Path, command: str, direction: str) -> None:
    """node2's NIC of rail1 is slow whenever perftest's client is there."""
    rows = list(full(12, 2))
    hosts = [f"node{number}" for number in range(12)]
    schedule = {"kind": "meetings", "rails": [[[pair] for pair in permutations(range(12), 2)]] * 2}
    rounds = {pair: number for number, pair in enumerate(permutations(range(12), 2))}
    files = {host: tmp_path / f"{host}.jsonl" for host in hosts}
    for rail, server, client in rows:
        line = [rail, rounds[server, client], server, client, 0, 0, 30.0 if (rail, client) == (1, 2) else 100.0, 5.0, 0.0]
        with files[hosts[client]].open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps(line)}\n")
    tests = [{"name": "bandwidth", "command": command, "bidirectional": False}]
    rails = [{"name": name, "addresses": [""] * 12} for name in ("rail0", "rail1")]
    plan = {"hosts": hosts, "schedule": schedule, "rails": rails, "tests": tests}
    matrix = Matrix.read([(plan, files)], ["bandwidth"])["bandwidth"].with_level()
    assert (len(matrix), matrix.refused) == (len(rows), {})
    assert named(localize(matrix)) == {("direction", 2, 1, direction, None)}
    assert describe(localize(matrix)[0], matrix)[0].startswith(f"node2, rail1, {direction}: ")
