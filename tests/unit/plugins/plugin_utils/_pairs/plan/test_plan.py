# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan of a sweep: where hosts are met, what is measured, how it travels."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.perftest import perftest_argv
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.schedule import own_meetings
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.digest import comparable
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.plan.plan import (
    endpoints,
    fingerprint,
    make_plan,
    pack,
    plain,
    runtime_max_seconds,
    traffic_class,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.plan.plan import tests_of as measured_of
from tests.unit.builders.cards import card_facts, card_rails, infiniband_rails
from tests.unit.builders.hosts import lab_facts, lab_intent

FULL = {"kind": "full"}
Endpoints = Mapping[str, Mapping[str, dict[str, Any]]]


def met_at(intent: dict[str, Any], facts: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return endpoints(intent, from_dict(facts))


def lab_endpoints(nodes: Sequence[int] = (1, 2, 3, 4)) -> dict[str, dict[str, dict[str, Any]]]:
    return {f"node{node}": met_at(lab_intent(node), lab_facts(node)) for node in nodes}


def plan_of(
    of: Endpoints | None = None,
    hosts: Sequence[str] | None = None,
    sweep: str = "s1",
    schedule: Mapping[str, Any] | None = None,
    rails: Sequence[str] = ("rail0", "rail1"),
    **pairs: Any,
) -> dict[str, Any]:
    of = lab_endpoints() if of is None else of
    return make_plan(
        sweep, hosts=hosts or list(of), rails=rails, of=of, tests=measured_of(lab_intent(pairs=pairs)), schedule=schedule or FULL
    )


def cards(link_layer: str = "Ethernet") -> dict[str, Any]:
    """The facts of a host with two cards on NUMA node 1, and its session."""
    facts = card_facts(link_layer)
    for number, device in enumerate(facts["devices"].values()):
        device["numa_node"] = 1
        device["ports"]["1"]["rocev2"] = {f"192.168.{number}.1": 3} if link_layer == "Ethernet" else {}
    return {**facts, "session": {"address": "192.0.2.7", "netdev": "eno1"}}


def test_the_endpoints_of_a_lab_machine() -> None:
    assert met_at(lab_intent(3), lab_facts(3)) == {
        f"rail{rail}": {
            "address": f"192.168.{100 + rail}.3",
            "device": f"rxe_rail{rail}",
            "port": 1,
            "gid_index": 1,
            "numa_node": rail,
            "gpu": None,
        }
        for rail in (0, 1)
    }


def test_what_is_kept_of_the_facts_of_a_lab_machine_is_enough() -> None:
    assert met_at(lab_intent(), comparable(lab_facts())) == met_at(lab_intent(), lab_facts())


def test_what_is_kept_of_the_facts_of_an_infiniband_host_is_enough() -> None:
    facts = {**cards("InfiniBand"), "stack": lab_facts()["stack"]}
    intent = {"rails": infiniband_rails()}
    assert list(met_at(intent, comparable(facts))) == ["rail0", "rail1"]


def test_a_card_is_pinned_to_its_own_node() -> None:
    found = met_at({"rails": card_rails()}, cards())
    assert found["rail1"] == {
        "address": "192.168.1.1",
        "device": "mlx5_1",
        "port": 1,
        "gid_index": 3,
        "numa_node": 1,
        "gpu": None,
    }


def without_device(intent: dict[str, Any], facts: dict[str, Any]) -> None:
    del facts["devices"]["rxe_rail0"]


def without_gid(intent: dict[str, Any], facts: dict[str, Any]) -> None:
    facts["devices"]["rxe_rail0"]["ports"]["1"]["rocev2"] = {}


def without_address(intent: dict[str, Any], facts: dict[str, Any]) -> None:
    intent["rails"][0]["address"] = None


def with_another_address(intent: dict[str, Any], facts: dict[str, Any]) -> None:
    intent["rails"][0]["address"] = "192.168.100.9/24"


@pytest.mark.parametrize("fault", [without_device, without_gid, without_address, with_another_address])
def test_what_cannot_be_measured_has_no_endpoint(fault: Callable[[dict[str, Any], dict[str, Any]], None]) -> None:
    intent, facts = lab_intent(), comparable(lab_facts())
    fault(intent, facts)
    assert list(met_at(intent, facts)) == ["rail1"]


def test_infiniband_without_an_address_meets_where_our_session_came_in_and_has_no_gid_index() -> None:
    found = met_at({"rails": infiniband_rails()}, cards("InfiniBand"))
    assert [(of["address"], of["gid_index"], of["device"]) for of in found.values()] == [
        ("192.0.2.7", None, "mlx5_0"),
        ("192.0.2.7", None, "mlx5_1"),
    ]


def test_perftest_gets_the_option_of_an_ipv6_address_at_both_ends() -> None:
    """It connects by IPv4 unless an option says otherwise, and does not take an IPv6 address then."""
    facts = {**cards("InfiniBand"), "session": {"address": "2001:db8::7", "netdev": "eno1"}}
    found = met_at({"rails": infiniband_rails()}, facts)
    assert [of["address"] for of in found.values()] == ["2001:db8::7"] * 2
    [by_ipv4, *_rest] = met_at({"rails": infiniband_rails()}, cards("InfiniBand")).values()
    for test in measured_of(lab_intent()):
        for server_address in (None, "2001:db8::8"):
            assert all("--ipv6-addr" in perftest_argv(test, profile, 18515, server_address) for profile in found.values())
        assert "--ipv6-addr" not in perftest_argv(test, by_ipv4, 18515, None)


def six_rails(intent: dict[str, Any], facts: dict[str, Any], further: Sequence[str] = ()) -> dict[str, dict[str, Any]]:
    """The endpoints of a lab machine whose rail0 has an IPv6 address with GID 5."""
    intent["rails"][0].update(address="2001:db8:100::1/64", addresses=list(further))
    facts["devices"]["rxe_rail0"]["ports"]["1"]["rocev2"] = {"2001:db8:100::1": 5, "192.168.100.1": 1}
    return met_at(intent, facts)


def test_an_ipv6_rail_is_measured_by_the_gid_of_its_address() -> None:
    rail0 = six_rails(lab_intent(), lab_facts())["rail0"]
    assert (rail0["address"], rail0["gid_index"], rail0["ipv6"]) == ("2001:db8:100::1", 5, True)
    assert "gid_address" not in rail0


def test_partners_meet_at_a_further_ipv4_address_which_old_perftest_needs() -> None:
    rail0 = six_rails(lab_intent(), lab_facts(), ["2001:db8:200::1/64", "192.168.100.1/24"])["rail0"]
    assert (rail0["address"], rail0["gid_index"], rail0["gid_address"]) == ("192.168.100.1", 5, "2001:db8:100::1")
    assert "ipv6" not in rail0
    plan = plan_of({"node1": {"rail0": rail0}}, rails=["rail0"])
    assert plan["rails"][0]["addresses"] == ["192.168.100.1"]
    assert "gid_address" not in plan["profiles"][0]
    argv = perftest_argv(plan["tests"][0], plan["profiles"][0], 18515, "192.168.100.2")
    assert argv[argv.index("-x") + 1] == "5"


def test_infiniband_with_an_address_meets_there() -> None:
    rails = card_rails(link_layer="infiniband", mtu_bytes=2044)
    found = met_at({"rails": rails}, cards("InfiniBand"))
    assert [(of["address"], of["gid_index"]) for of in found.values()] == [("192.168.0.1", None), ("192.168.1.1", None)]


@pytest.mark.parametrize(
    "session",
    [None, {}, {"address": None, "netdev": None}, {"address": "127.0.0.1", "netdev": "lo"}, {"address": "::1", "netdev": None}],
    ids=["none", "empty", "no address", "loopback", "loopback, IPv6"],
)
def test_infiniband_without_any_address_cannot_meet(session: Any) -> None:
    assert met_at({"rails": infiniband_rails()}, {**cards("InfiniBand"), "session": session}) == {}


def test_a_plan_is_of_the_shape_that_the_runner_reads() -> None:
    plan = plan_of(lab_endpoints([1, 2]))
    assert plan == {
        "schema": 2,
        "sweep": "s1",
        "rendezvous_port": 18600,
        "perftest_port": 18515,
        "start_deadline_seconds": 80,
        "tests": plan["tests"],
        "hosts": ["node1", "node2"],
        "schedule": {"kind": "full"},
        "profiles": [
            {"device": "rxe_rail0", "port": 1, "gid_index": 1, "numa_node": 0, "gpu": None},
            {"device": "rxe_rail1", "port": 1, "gid_index": 1, "numa_node": 1, "gpu": None},
        ],
        "rails": [
            {"name": "rail0", "addresses": ["192.168.100.1", "192.168.100.2"], "profiles": [0, 0]},
            {"name": "rail1", "addresses": ["192.168.101.1", "192.168.101.2"], "profiles": [1, 1]},
        ],
    }


def test_hosts_and_rails_are_in_the_order_given() -> None:
    plan = plan_of(hosts=["node3", "node1"], rails=["rail1", "rail0"])
    assert plan["hosts"] == ["node3", "node1"]
    assert [rail["addresses"] for rail in plan["rails"]] == [["192.168.101.3", "192.168.101.1"], ["192.168.100.3", "192.168.100.1"]]


def test_like_hosts_share_profiles_and_another_one_has_its_own() -> None:
    of = lab_endpoints()
    of["node3"]["rail1"]["gid_index"] = 5
    plan = plan_of(of)
    assert [rail["profiles"] for rail in plan["rails"]] == [[0, 0, 0, 0], [1, 1, 2, 1]]
    assert [profile["gid_index"] for profile in plan["profiles"]] == [1, 1, 5]


def test_a_host_without_an_endpoint_has_nothing_there_and_meets_nobody() -> None:
    of = lab_endpoints()
    del of["node2"]["rail1"]
    plan = plan_of(of)
    assert plan["rails"][1] == {
        "name": "rail1",
        "addresses": ["192.168.101.1", None, "192.168.101.3", "192.168.101.4"],
        "profiles": [1, None, 1, 1],
    }
    on_rail0, on_rail1 = own_meetings(plan, 1)
    assert (len(on_rail0), len(on_rail1)) == (3, 0)


def test_a_rail_that_one_host_alone_has_has_one_endpoint() -> None:
    of = lab_endpoints([1, 2])
    del of["node2"]["rail1"]
    assert own_meetings(plan_of(of), 0)[1] == {}


def test_rails_on_a_vlan_are_measured_with_the_priority_of_their_tag() -> None:
    intent = lab_intent(roce={})
    intent["rails"][1]["vlan"] = {"id": 100, "pcp": 3}
    assert {test["service_level"] for test in measured_of(intent)} == {3}


def test_what_is_measured_comes_from_the_intent() -> None:
    pairs = {"mtu_bytes": 1024, "qp_timeout": 20, "bidirectional": True, "duration_seconds": 7}
    bandwidth, latency = measured_of(lab_intent(roce={}, pairs=pairs))
    common = {"mtu_bytes": 1024, "qp_timeout": 20, "traffic_class": 106, "memory": "host", "deadline_seconds": 60}
    assert bandwidth == {
        "name": "bandwidth",
        "command": "ib_write_bw",
        "size_bytes": 1048576,
        "queue_pairs": 4,
        "duration_seconds": 7,
        "iterations": None,
        "bidirectional": True,
        **common,
    }
    assert latency == {
        "name": "latency",
        "command": "ib_write_lat",
        "size_bytes": 2,
        "queue_pairs": 1,
        "duration_seconds": 0,
        "iterations": 1000,
        "bidirectional": False,
        **common,
    }


def test_without_latency_bandwidth_alone_is_measured() -> None:
    assert [test["name"] for test in measured_of(lab_intent(pairs={"latency_command": "none"}))] == ["bandwidth"]


def test_of_latency_perftest_gets_no_option_that_it_does_not_take() -> None:
    """-q, -b and --report_gbits are not for latency tests."""
    plan = plan_of(bidirectional=True)
    commands = [perftest_argv(test, plan["profiles"][0], 18515, "192.168.100.1") for test in plan["tests"]]
    assert [argv[0] for argv in commands] == ["ib_write_bw", "ib_write_lat"]
    assert {"-q", "-b", "--report_gbits"} <= set(commands[0])
    assert not {"-q", "-b", "--report_gbits"} & set(commands[1])


@pytest.mark.parametrize(("duration", "deadline", "expected"), [(5, 60, 60), (100, 60, 130), (100, 131, 131)])
def test_a_measurement_has_its_whole_duration(duration: int, deadline: int, expected: int) -> None:
    pairs = {"duration_seconds": duration, "deadline_seconds": deadline}
    assert [test["deadline_seconds"] for test in measured_of(lab_intent(pairs=pairs))] == [expected, expected]


@pytest.mark.parametrize(
    ("layers", "roce", "expected"),
    [
        (("roce", "roce"), {}, 106),
        (("roce", "roce"), {"ecn": False}, 104),
        (("roce", "roce"), {"dscp": 46}, 186),
        (("roce", "roce"), {"dscp": 0, "ecn": False}, 0),
        (("infiniband", "roce"), {}, 106),
        (("infiniband", "infiniband"), {}, None),
        (("roce", "roce"), None, None),
    ],
    ids=["with ECN", "without ECN", "another DSCP", "none", "one rail of two", "InfiniBand", "no rdma_roce"],
)
def test_the_traffic_class_is_dscp_and_ecn(layers: tuple[str, str], roce: dict[str, Any] | None, expected: int | None) -> None:
    intent = lab_intent(roce=roce)
    for rail, layer in zip(intent["rails"], layers, strict=True):
        rail["link_layer"] = layer
    assert traffic_class(intent) == expected
    assert {test["traffic_class"] for test in measured_of(intent)} == {expected}


def test_the_time_limit_has_every_test_of_every_round_at_its_deadline() -> None:
    """Four hosts meet in three rounds, a test of bandwidth and one of latency in each."""
    assert runtime_max_seconds(plan_of(deadline_seconds=100)) == 100 + 3 * 200
    assert runtime_max_seconds(plan_of(deadline_seconds=100, latency_command="none")) == 100 + 3 * 100


def test_the_time_limit_grows_with_the_rounds() -> None:
    ring, full = ({"kind": "ring"}, FULL)
    limits = [runtime_max_seconds(plan_of(schedule=each)) for each in (ring, full)]
    assert limits == [100 + 2 * 120, 100 + 3 * 120]
    assert runtime_max_seconds(plan_of(lab_endpoints(range(1, 9)))) == 140 + 7 * 120


def test_the_longest_rail_counts() -> None:
    of = lab_endpoints()
    for node in (2, 3, 4):
        del of[f"node{node}"]["rail0"]
    assert runtime_max_seconds(plan_of(of)) == runtime_max_seconds(plan_of())


def test_a_plan_of_nothing_has_no_rounds() -> None:
    assert runtime_max_seconds(plan_of({}, rails=[])) == 60


def test_a_plan_comes_out_of_its_package_as_it_went_in() -> None:
    plan = plan_of()
    unpacked = gzip.decompress(base64.b64decode(pack(plan)))
    assert unpacked == plain(plan)
    assert json.loads(unpacked) == plan
    assert b", " not in unpacked


def test_the_package_is_the_same_at_any_time(monkeypatch: pytest.MonkeyPatch) -> None:
    first = pack(plan_of())
    monkeypatch.setattr("time.time", lambda: 2_000_000_000.0)
    assert pack(plan_of()) == first


def test_the_fingerprint_is_that_of_the_plan_whatever_the_sweep_is_called() -> None:
    assert fingerprint(plan_of()) == fingerprint(plan_of(sweep="s2"))
    assert len(fingerprint(plan_of())) == 64


def short(rail: str) -> Endpoints:
    of = lab_endpoints()
    del of["node4"][rail]
    return of


@pytest.mark.parametrize(
    "other",
    [
        {"hosts": ["node2", "node1", "node3", "node4"]},
        {"hosts": ["node1", "node2", "node3"]},
        {"of": short("rail0")},
        {"rails": ["rail0"]},
        {"rails": ["rail1", "rail0"]},
        {"schedule": {"kind": "ring"}},
        {"size_bytes": 65536},
        {"latency_command": "none"},
        {"deadline_seconds": 61},
    ],
    ids=["order", "hosts", "endpoint", "rails", "order of rails", "schedule", "size", "tests", "deadline"],
)
def test_the_fingerprint_of_any_other_plan_is_another(other: dict[str, Any]) -> None:
    assert fingerprint(plan_of(**other)) != fingerprint(plan_of())


def test_the_fingerprint_of_a_sample_gives_the_seed() -> None:
    seeds = [{"kind": "sample", "partners": 2, "seed": seed} for seed in (None, 1, 2)]
    assert len({fingerprint(plan_of(schedule=each)) for each in seeds}) == 3


def test_a_large_plan_travels_small() -> None:
    """4096 hosts of 8 rails: what every host is sent once."""
    hosts = [f"node{number}" for number in range(4096)]
    same = {"device": "mlx5_0", "port": 1, "gid_index": 3, "numa_node": 0, "gpu": None}
    of = {
        host: {f"rail{rail}": {**same, "device": f"mlx5_{rail}", "address": f"10.{rail}.{n >> 8}.{n & 255}"} for rail in range(8)}
        for n, host in enumerate(hosts)
    }
    plan = plan_of(of, rails=[f"rail{rail}" for rail in range(8)])
    assert len(plan["profiles"]) == 8
    assert len(pack(plan)) < 200_000


def test_a_late_host_is_waited_for_as_long_as_ansible_may_need_to_start_the_last_one() -> None:
    of = {f"n{number}": {"rail0": {"address": f"10.0.0.{number}", "device": "mlx5_0"}} for number in range(1, 101)}
    limits = [
        make_plan("s", hosts=list(of), rails=["rail0"], of=of, tests=[], schedule=FULL, forks=forks)["start_deadline_seconds"]
        for forks in (1, 50)
    ]
    assert limits == [60 + 100 * 10, 60 + 2 * 10]


def in_tables(*tables: dict[str, int] | None) -> dict[str, Any]:
    """The facts of the InfiniBand cards with these tables of P_Keys."""
    facts = cards("InfiniBand")
    for device, table in zip(facts["devices"].values(), tables, strict=True):
        device["ports"]["1"]["pkeys"] = table
    return facts


def test_an_infiniband_port_is_measured_in_its_partition() -> None:
    intent = {"rails": infiniband_rails(), "partitions": {"red": {"key": 1}}}
    found = met_at(intent, in_tables({"0": 0x7FFF, "3": 0x8001}, {"0": 0xFFFF}))
    assert [(each["pkey"], each["pkey_index"]) for each in found.values()] == [(1, 3), (0x7FFF, 0)]
    kept = comparable({**lab_facts(), **in_tables({"0": 0x7FFF, "3": 0x8001}, {"0": 0xFFFF})})
    assert met_at(intent, kept) == found


def test_a_port_that_reaches_nobody_like_itself_is_not_measured() -> None:
    intent = {"rails": infiniband_rails(), "partitions": {"red": {"key": 1}}}
    assert list(met_at(intent, in_tables({"0": 0x7FFF}, {"0": 0x7FFF, "1": 0x8001}))) == ["rail1"]


def test_perftest_gets_another_entry_than_the_first() -> None:
    test = measured_of(lab_intent())[0]
    common = {"device": "mlx5_0", "port": 1, "gid_index": None}
    commands = [perftest_argv(test, {**common, "pkey": 1, "pkey_index": index}, 18515, None) for index in (None, 0, 3)]
    assert commands[0] == commands[1]
    assert [each for each in commands[2] if each not in commands[0]] == ["--pkey_index=3"]
