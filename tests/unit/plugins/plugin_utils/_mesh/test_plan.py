# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Subnets and addresses of any mesh: what is there is kept, what is new is the lowest that is free."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.keys import NAME, is_form
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.mesh import CableEnd, Pool, split_end
from ansible_collections.rdma.cluster.plugins.plugin_utils._mesh.plan import Cable, PlannedCable, PoolError, plan_cables
from tests.unit.builders.inventories import load

POOL = Pool.of("192.168.100.0/16", 24)


def cables_of(pairs: Iterable[tuple[str, str]]) -> list[Cable]:
    """A cable for each pair; each host numbers its ports in the order of the pairs."""
    ports: dict[str, Any] = defaultdict(itertools.count)
    return [(CableEnd(a, f"0000:{next(ports[a]):02x}:00.0"), CableEnd(b, f"0000:{next(ports[b]):02x}:00.0")) for a, b in map(sorted, pairs)]


def full(count: int) -> list[Cable]:
    """A full mesh; the port of a host has the number of the other host, so that a further host changes no port of the others."""
    pairs = itertools.combinations(range(1, count + 1), 2)
    return [(CableEnd(f"n{i}", f"0000:{j:02x}:00.0"), CableEnd(f"n{j}", f"0000:{i:02x}:00.0")) for i, j in pairs]


def rails_of(plan: Iterable[PlannedCable]) -> dict[str, list[dict[str, Any]]]:
    """The rails that an inventory has after the plan was taken over."""
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for cable in plan:
        for end, address in zip(cable.ends, cable.addresses, strict=True):
            found[end.host].append({"name": cable.name, "nic": {end.key: end.nic}, "address": address})
    return dict(found)


def test_the_table_of_the_seed_comes_out_digit_for_digit() -> None:
    """It is the example inventory: A is spark1, B spark2, C spark3."""
    rails: Any = {host: intent["rails"] for host, intent in load("mesh").items()}
    names = defaultdict(list)
    for host, of in rails.items():
        for rail in of:
            names[rail["name"]].append(CableEnd(host, rail["nic"]["pci"]))
    cables: Any = list(names.values())
    plan = plan_cables(cables, POOL, rails)
    table = {(a.host, b.host): (str(cable.network), *cable.addresses) for cable in plan for a, b in [cable.ends]}
    assert table == {
        ("spark1", "spark2"): ("192.168.101.0/24", "192.168.101.2/24", "192.168.101.3/24"),
        ("spark1", "spark3"): ("192.168.100.0/24", "192.168.100.2/24", "192.168.100.3/24"),
        ("spark2", "spark3"): ("192.168.102.0/24", "192.168.102.2/24", "192.168.102.3/24"),
    }
    assert [(cable.name, cable.kept) for cable in plan] == [("cable12", True), ("cable13", True), ("cable23", True)]


def test_without_addresses_the_same_rule_begins_with_the_first_cable() -> None:
    plan = plan_cables(reversed(full(3)), POOL, {})
    assert [(cable.name, *cable.addresses, cable.kept) for cable in plan] == [
        ("n1-n2", "192.168.100.2/24", "192.168.100.3/24", False),
        ("n1-n3", "192.168.101.2/24", "192.168.101.3/24", False),
        ("n2-n3", "192.168.102.2/24", "192.168.102.3/24", False),
    ]


@pytest.mark.parametrize(
    ("prefix_length", "addresses"),
    [
        (30, [("192.168.100.1/30", "192.168.100.2/30"), ("192.168.100.5/30", "192.168.100.6/30")]),
        (31, [("192.168.100.0/31", "192.168.100.1/31"), ("192.168.100.2/31", "192.168.100.3/31")]),
        (29, [("192.168.100.2/29", "192.168.100.3/29"), ("192.168.100.10/29", "192.168.100.11/29")]),
    ],
)
def test_short_subnets(prefix_length: int, addresses: list[tuple[str, str]]) -> None:
    plan = plan_cables(cables_of([("a", "b"), ("b", "c")]), Pool.of("192.168.100.0/16", prefix_length), {})
    assert [cable.addresses for cable in plan] == addresses


def test_a_fifth_node_changes_only_its_own_cables() -> None:
    four = plan_cables(full(4), POOL, {})
    five = plan_cables(full(5), POOL, rails_of(four))
    own = [cable for cable in five if "n5" in {end.host for end in cable.ends}]
    assert [each.addresses for each in five if each not in own] == [each.addresses for each in four]
    assert [(str(each.network), each.kept) for each in own] == [(f"192.168.{third}.0/24", False) for third in (106, 107, 108, 109)]
    assert [each.addresses for each in plan_cables(full(4), POOL, rails_of(five))] == [each.addresses for each in four]


def test_two_cables_between_two_hosts_have_two_names_and_subnets() -> None:
    plan = plan_cables(cables_of([("n2", "n10"), ("n2", "n10"), ("n2", "n10")]), POOL, {})
    assert [cable.name for cable in plan] == ["n2-n10", "n2-n10_2", "n2-n10_3"]
    assert len({cable.network for cable in plan}) == 3
    assert plan[0].ends[0].host == "n2"


@pytest.mark.parametrize(
    ("hosts", "name"),
    [
        (("node1.example.com", "node2.example.com"), "node1-node2"),
        (("10.0.0.131", "10.0.0.132"), "m10_0_0_131-10_0_0_132"),
        (("the-first-of-all-machines", "the-second-of-all-machines"), "the-first-of-all-ma_56007880"),
    ],
)
def test_names_of_rails_fit_the_intent(hosts: tuple[str, str], name: str) -> None:
    (cable,) = plan_cables(cables_of([hosts]), POOL, {})
    assert cable.name == name
    assert is_form(NAME, f"{name}_99")


def rail(name: str, address: str | None, nic: str = "0000:00:00.0") -> dict[str, Any]:
    return {"name": name, "nic": {"pci": nic}, "address": address}


@pytest.mark.parametrize(
    ("a", "b", "addresses", "kept"),
    [
        ("10.0.0.7/24", "10.0.0.9/24", ("10.0.0.7/24", "10.0.0.9/24"), True),
        ("10.0.0.7/24", "10.0.1.9/24", None, False),
        ("10.0.0.7/24", "10.0.0.7/24", None, False),
        ("10.0.0.1/30", "10.0.0.2/30", None, False),
        ("fd00::1/24", "fd00::2/24", None, False),
        ("10.0.0.7/24", None, None, False),
    ],
)
def test_what_both_ends_have_is_kept(a: str | None, b: str | None, addresses: Any, kept: bool) -> None:
    (cable,) = plan_cables(cables_of([("a", "b")]), POOL, {"a": [rail("x", a)], "b": [rail("x", b)]})
    assert (cable.addresses, cable.kept) == (addresses or ("192.168.100.2/24", "192.168.100.3/24"), kept)
    assert cable.name == "x"


def test_one_subnet_on_two_cables_is_kept_by_the_first() -> None:
    rails = {
        host: [rail(f"r{port}", f"10.0.0.{number + port}/24", f"0000:0{port}:00.0") for port in (0, 1)]
        for host, number in (("a", 2), ("b", 4))
    }
    plan = plan_cables(cables_of([("a", "b"), ("a", "b")]), POOL, rails)
    assert [(cable.name, str(cable.network)) for cable in plan] == [("r0", "10.0.0.0/24"), ("r1", "192.168.100.0/24")]


def test_rails_beside_the_cables_keep_their_names_and_subnets() -> None:
    others = [rail("a-b", "192.168.100.9/25"), rail("c", None)]
    (cable,) = plan_cables(cables_of([("a", "b")]), POOL, {}, others)
    assert (cable.name, str(cable.network)) == ("a-b_2", "192.168.101.0/24")


def test_a_pool_without_room_says_how_many_fit() -> None:
    plan = plan_cables(full(3), Pool.of("10.0.0.0/22", 24), {})
    with pytest.raises(PoolError, match=r"10.0.0.0/22 has room for 4 subnets of /24, of which 1 are free; 3 cables need one"):
        plan_cables(full(4), Pool.of("10.0.0.0/22", 24), rails_of(plan))


PAIRS = st.lists(st.lists(st.sampled_from(["n1", "n2", "n3", "n10", "x"]), min_size=2, max_size=2, unique=True).map(tuple), max_size=14)


def facts(plan: Sequence[PlannedCable]) -> dict[Any, Any]:
    return {cable.ends: (cable.name, cable.addresses) for cable in plan}


@given(PAIRS, st.sampled_from([24, 29, 30, 31]))
def test_no_two_cables_of_a_multigraph_share_a_subnet_or_a_name(pairs: Any, prefix_length: int) -> None:
    plan = plan_cables(cables_of(pairs), Pool.of("192.168.100.0/16", prefix_length), {})
    assert len(plan) == len(pairs)
    assert not any(a.network.overlaps(b.network) for a, b in itertools.combinations(plan, 2))
    assert len({cable.name for cable in plan}) == len({address for cable in plan for address in cable.addresses}) / 2 == len(plan)
    again = plan_cables(cables_of(pairs), Pool.of("192.168.100.0/16", prefix_length), rails_of(plan))
    assert facts(again) == facts(plan)
    assert all(cable.kept for cable in again)


@given(PAIRS, st.sampled_from(["n1", "n2", "n3", "n10", "x"]))
def test_a_node_that_goes_and_comes_back_restores_the_plan(pairs: Any, node: str) -> None:
    cables = cables_of(pairs)
    plan = plan_cables(cables, POOL, {})
    left = [cable for cable in cables if node not in {end.host for end in cable}]
    without = plan_cables(left, POOL, rails_of(plan))
    assert facts(without) == {ends: of for ends, of in facts(plan).items() if node not in {end.host for end in ends}}
    assert facts(plan_cables(cables, POOL, rails_of(without))) == facts(plan)


@given(PAIRS, st.randoms())
def test_the_order_of_cables_and_ends_does_not_count(pairs: Any, random: Any) -> None:
    cables = cables_of(pairs)
    mixed = [(b, a) if random.random() < 0.5 else (a, b) for a, b in cables]
    random.shuffle(mixed)
    assert facts(plan_cables(mixed, POOL, {})) == facts(plan_cables(cables, POOL, {}))


def test_an_end_is_named_by_pci_or_mac() -> None:
    assert [split_end(f"a/{nic}").key for nic in ("0000:01:00.0", "52:54:00:00:00:01")] == ["pci", "mac"]
