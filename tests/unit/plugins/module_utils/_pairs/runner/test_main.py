# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pair runner: real processes on loopback addresses, with a stand-in for perftest.

Of two hosts, node2 serves.
"""

from __future__ import annotations

import gzip
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from itertools import combinations, permutations, product
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._pairs.perftest.bandwidth import parse_bandwidth
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.main import load_token, own_names
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.meeting import ATTEMPTS, CLOCK_SOURCE, FAILED_ENDING_SECONDS
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.perftest import ENDING_SECONDS, LOST_CLOCK
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.plan import read_plan
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.probes import listens
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.schedule import serves
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.wire import CONNECT_TIMEOUT_SECONDS, MeetingError, Wire
from tests.unit.builders.pair_runners import BANDWIDTH, LATENCY, PACKAGE, STANDIN_SECONDS, Fleet, eventually

CLOCKS_VARIABLE = "STANDIN_CLOCKS"
ON_GPU = {**BANDWIDTH, "name": "gpu", "memory": "gpu"}
SKEWED = """
import itertools, runpy, sys, time
real, jumps = time.time, itertools.cycle((3600, -86400, 7200))
time.time = lambda: real() + next(jumps)
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
ABORTING = """
import ctypes, runpy, sys
libc = ctypes.CDLL(None)
libc.__cxa_atexit(ctypes.cast(libc.abort, ctypes.c_void_p), None, None)
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.fixture
def blackhole() -> Iterator[Any]:
    """Makes an address take no more connections and refuse none: what listens there has a full queue."""
    with ExitStack() as stack:

        def make(address: str, port: int = 18500) -> None:
            listener = stack.enter_context(socket.create_server((address, port), backlog=0))
            for _number in range(3):
                sock = stack.enter_context(socket.socket())
                sock.setblocking(False)
                sock.connect_ex(listener.getsockname())

        yield make


@pytest.mark.parametrize("fleet", [(4, 2)], indirect=True)
def test_full_sweep_measures_every_pair_on_every_rail_once(fleet: Fleet) -> None:
    fleet.run()
    everything = [(host, record) for host in fleet.hosts for record in fleet.records(host)]
    pairs = {("node3", "node1"), ("node2", "node4"), ("node1", "node4"), ("node2", "node1"), ("node3", "node2"), ("node4", "node3")}
    pairs = {(server, client) if serves(int(server[4]), int(client[4])) else (client, server) for server, client in pairs}
    for rail, role, place in [(rail, role, place) for rail in ("rail0", "rail1") for role, place in (("server", 0), ("client", 1))]:
        seen = [(record["server"], record["client"]) for host, record in everything if (record["rail"], record["role"]) == (rail, role)]
        assert sorted(tuple(sorted(pair)) for pair in seen) == list(combinations(fleet.hosts, 2))
        assert set(seen) == pairs
        assert all(host == (record["server"], record["client"])[place] for host, record in everything if record["role"] == role)
    for _host, record in everything:
        assert (record["schema"], record["sweep"], record["exit_code"], record["error"]) == (2, fleet.plan["sweep"], 0, None), record
        assert record["test"] == "bandwidth"
        assert parse_bandwidth(record["stdout"]).average_gbps == 97.5
        assert record["seconds"] > STANDIN_SECONDS
        assert abs(record["started"] - time.time()) < 60
    record = next(record for record in fleet.records("node1") if (record["rail"], record["server"]) == ("rail1", "node2"))
    expected = f"ib_write_bw -d standin_{fleet.prefix}.21 -i 1 -x 1 -s 65536 -q 1 -D 1 --report_gbits -F -p 18516 {fleet.prefix}.22"
    assert record["argv"] == expected.split()
    assert not fleet.left_behind()


@pytest.mark.parametrize("fleet", [(3, 2)], indirect=True)
def test_odd_count_and_a_host_without_a_nic_on_one_rail(fleet: Fleet) -> None:
    fleet.move("node2", None, rail=1)
    fleet.run()
    assert fleet.errors("node1") == {("rail0", "node2"): None, ("rail0", "node3"): None, ("rail1", "node3"): None}
    assert fleet.errors("node2") == {("rail0", "node1"): None, ("rail0", "node3"): None}
    assert [(record["round"], record["role"]) for record in fleet.records("node3") if record["rail"] == "rail1"] == [
        (0, "server"),
        (1, "client"),
    ]


@pytest.mark.parametrize(
    ("fleet", "schedule", "met"),
    [
        ((3, 1), {"kind": "ring"}, {("node1", "node2"), ("node2", "node3"), ("node3", "node1")}),
        ((3, 1), {"kind": "against", "new": 1}, {("node2", "node1"), ("node1", "node3")}),
        (
            (4, 1),
            {"kind": "meetings", "rails": [[[[0, 3]], [[3, 0], [1, 2]]]]},
            {("node1", "node4"), ("node4", "node1"), ("node2", "node3")},
        ),
    ],
    indirect=["fleet"],
    ids=["ring", "against", "meetings"],
)
def test_other_schedules(fleet: Fleet, schedule: dict[str, Any], met: set[tuple[str, str]]) -> None:
    fleet.plan["schedule"] = schedule
    fleet.run()
    records = [record for host in fleet.hosts for record in fleet.records(host)]
    assert {record["exit_code"] for record in records} == {0}
    assert sorted((record["server"], record["client"]) for record in records) == sorted([*met, *met])


@pytest.mark.parametrize("fleet", [(4, 3)], indirect=True)
def test_a_host_serves_many_at_once_where_each_of_them_has_a_rail_of_its_own(fleet: Fleet) -> None:
    first = fleet.plan["rails"][0]
    of = list(zip(first["addresses"], first["profiles"]))
    for number, rail in enumerate(fleet.plan["rails"]):
        here = [each if host in (0, number + 1) else (None, None) for host, each in enumerate(of)]
        rail["addresses"], rail["profiles"] = (list(column) for column in zip(*here))
    fleet.plan["schedule"] = {"kind": "meetings", "rails": [[[[0, number + 1]]] * 2 for number in range(3)]}
    fleet.environment["STANDIN_SECONDS"] = "1"
    fleet.run()
    records = [record for record in fleet.records("node1") if record["round"] == 1]
    assert [record["error"] for record in records] == [None] * 3
    assert max(record["started"] for record in records) < min(record["started"] + record["seconds"] for record in records)
    assert {record["client"] for record in records} == {"node2", "node3", "node4"}
    assert {record["argv"][record["argv"].index("-p") + 1] for record in records} == {"18515", "18516", "18517"}


@pytest.mark.parametrize("fleet", [(6, 1)], indirect=True)
def test_pairs_that_exchange_partners_before_measure_at_once_however_late_one_of_them_is(fleet: Fleet) -> None:
    """The rounds that _spine_load_plan lists for three pairs: two exchanges, all at once, one alone."""
    rounds = [[[0, 3], [1, 4], [2, 5]], [[0, 5], [1, 3], [2, 4]], [[3, 0], [4, 1], [5, 2]], [[4, 0]]]
    fleet.plan["schedule"] = {"kind": "meetings", "rails": [rounds]}
    fleet.environment["STANDIN_SECONDS"] = "1"
    for host in fleet.hosts[:5]:
        fleet.start(host)
    time.sleep(2.5)
    fleet.start("node6")
    assert [fleet.end(host) for host in fleet.hosts] == [0] * 6
    records = [record for host in fleet.hosts for record in fleet.records(host) if record["role"] == "client"]
    spans = [[(each["started"], each["started"] + each["seconds"]) for each in records if each["round"] == number] for number in range(4)]
    first, _second, together, alone = spans
    assert [len(each) for each in spans] == [3, 3, 3, 1]
    assert max(begun for begun, _ended in first) > min(ended for _begun, ended in first)
    assert max(begun for begun, _ended in together) < min(ended for _begun, ended in together)
    assert max(ended for _begun, ended in together) - alone[0][0] < 0.5


def test_several_tests_in_one_meeting(fleet: Fleet) -> None:
    fleet.plan["tests"] = [dict(BANDWIDTH), dict(LATENCY), {**BANDWIDTH, "name": "both", "bidirectional": True}]
    fleet.run()
    for host in fleet.hosts:
        records = fleet.records(host)
        assert [(record["test"], record["exit_code"], record["error"]) for record in records] == [
            ("bandwidth", 0, None),
            ("latency", 0, None),
            ("both", 0, None),
        ]
    assert "t_avg[usec]" in fleet.records("node1")[1]["stdout"]
    assert "-b" in fleet.records("node1")[2]["argv"]


@pytest.mark.parametrize("fleet", [(2, 2)], indirect=True)
@pytest.mark.parametrize("host", ["node1", "node2"])
def test_a_test_that_fails_does_not_keep_the_next_one_from_being_tried(fleet: Fleet, host: str) -> None:
    """It has no GPU on rail0, and no CUDA on rail1."""
    fleet.plan["tests"] = [dict(ON_GPU), dict(BANDWIDTH)]
    for rail, gpu in enumerate((None, {"bus_id": "0000:1b:00.0", "dmabuf": True})):
        for each in fleet.hosts:
            fleet.endpoint(each, rail)["gpu"] = gpu if each == host else {"bus_id": "0000:2b:00.0", "dmabuf": False}
        fleet.behave(host, "nogpu", rail)
    fleet.run()
    for each, rail in product(fleet.hosts, ("rail0", "rail1")):
        first, second = (record for record in fleet.records(each) if record["rail"] == rail)
        assert (first["test"], second["test"]) == ("gpu", "bandwidth")
        assert first["seconds"] < ENDING_SECONDS
        assert (second["exit_code"], second["error"]) == (0, None)
        assert first["exit_code"] != 0 or first["error"]
    without_gpu, without_cuda = sorted((each for each in fleet.records(host) if each["test"] == "gpu"), key=itemgetter("rail"))
    assert without_gpu["error"]["class"] == "start"
    assert "the plan names no GPU" in without_gpu["error"]["detail"]
    assert "unrecognized option" in without_cuda["stderr"]


def test_a_late_client_is_waited_for_and_strangers_disturb_nothing(fleet: Fleet) -> None:
    fleet.start("node2")
    place = (f"{fleet.prefix}.2", 18500)
    eventually(lambda: socket.socket().connect_ex(place) == 0)
    texts = (b"GET / HTTP/1.0\r\n\r\n", b"0 {}\n", b"\n", b"0 [" * 3000, b'0 {"round": true, "host": ["x"]}\n', b'0 {"round": 0}\n')
    with ExitStack() as stack:
        for text in (*texts, b"silence"):
            stack.enter_context(socket.create_connection(place)).sendall(text)
        time.sleep(0.5)
        fleet.start("node1")
        assert [fleet.end("node1"), fleet.end("node2")] == [0, 0]
    assert fleet.errors("node2") == {("rail0", "node1"): None}
    assert fleet.records("node2")[0]["waited_seconds"] >= 0.5


def test_a_late_server_is_waited_for(fleet: Fleet) -> None:
    fleet.start("node1")
    eventually(lambda: socket.socket().connect_ex((f"{fleet.prefix}.1", 18500)) == 0)
    time.sleep(0.3)
    fleet.start("node2")
    assert [fleet.end("node1"), fleet.end("node2")] == [0, 0]
    assert fleet.errors("node1") == {("rail0", "node2"): None}
    assert fleet.records("node1")[0]["waited_seconds"] >= 0.3


@pytest.mark.parametrize("other", [{"token": "another"}, {"plan": {"start_deadline_seconds": 21}}], ids=["token", "plan"])
@pytest.mark.parametrize("late", ["node1", "node2"])
def test_another_token_or_plan_is_an_error_of_its_own_on_both_sides(fleet: Fleet, other: dict[str, Any], late: str) -> None:
    kind = next(iter(other))
    more = other if kind == "token" else {"plan": {**fleet.plan, **other["plan"]}}
    begun = time.monotonic()
    for host in sorted(fleet.hosts, key=late.__eq__):
        time.sleep(0.2 if host == late else 0)
        fleet.start(host, **(more if host == "node2" else {}))
    assert [fleet.end(host) for host in fleet.hosts] == [0, 0]
    assert time.monotonic() - begun < 5
    assert fleet.errors("node1") == {("rail0", "node2"): kind}
    assert fleet.errors("node2") == {("rail0", "node1"): kind}
    assert "secret" not in "".join(fleet.results_file(host).read_text(encoding="utf-8") for host in fleet.hosts)


@pytest.mark.parametrize("fleet", [(4, 1)], indirect=True)
@pytest.mark.parametrize("dead", ["node1", "node4"])
def test_a_host_that_never_starts_costs_its_own_pairs_only(fleet: Fleet, dead: str) -> None:
    fleet.plan["start_deadline_seconds"] = 1
    living = [host for host in fleet.hosts if host != dead]
    begun = time.monotonic()
    for host in living:
        fleet.start(host)
    assert [fleet.end(host) for host in living] == [0, 0, 0]
    assert time.monotonic() - begun < 6
    for host in living:
        assert fleet.errors(host) == {("rail0", other): "dead" if other == dead else None for other in fleet.hosts if other != host}


@pytest.mark.parametrize("fleet", [(4, 1)], indirect=True)
def test_a_host_that_cannot_be_reached_costs_one_connect_timeout(fleet: Fleet, blackhole: Any) -> None:
    """A host that hears that it is dead tries it for a short time only."""
    fleet.plan["start_deadline_seconds"] = 1
    blackhole(f"{fleet.prefix}.4")
    begun = time.monotonic()
    for host in fleet.hosts[:3]:
        fleet.start(host)
    assert [fleet.end(host) for host in fleet.hosts[:3]] == [0, 0, 0]
    assert time.monotonic() - begun < CONNECT_TIMEOUT_SECONDS + 5
    records = [record for host in fleet.hosts[:3] for record in fleet.records(host)]
    dead = {record["round"]: record for record in records if "node4" in (record["server"], record["client"])}
    assert [dead[number]["error"]["class"] for number in range(3)] == ["dead"] * 3
    assert "no answer within 5 seconds" in dead[0]["error"]["detail"]
    assert "no answer within 1 seconds" in dead[2]["error"]["detail"]
    assert dead[2]["waited_seconds"] < 2
    assert [record["error"] for record in records if "node4" not in (record["server"], record["client"])] == [None] * 6
    fleet.started.clear()
    fleet.plan["rails"] = []  # what listens at node4 is ours


@pytest.mark.parametrize("fleet", [(3, 2)], indirect=True)
def test_a_false_rumour_stops_no_measurement(fleet: Fleet) -> None:
    """node3 answers on rail0 only: on rail1 its port is another's, who takes no connections.

    node2 has found it dead there when they meet on rail0 again, and has informed node1.
    """
    serving_2, serving_1, between = [[2, 1]], [[2, 0]], [[0, 1]]
    on_rails = [[serving_2, *[between] * 4, serving_1, serving_2], [serving_2, between, serving_2, between]]
    fleet.plan["schedule"] = {"kind": "meetings", "rails": on_rails}
    with socket.socket() as other:
        other.bind((f"{fleet.prefix}.23", 18501))
        fleet.run()
    ends = {
        host: sorted((each["rail"], each["round"], each["error"] and each["error"]["class"]) for each in fleet.records(host))
        for host in fleet.hosts
    }
    whole = [[("rail0", number, None) for number in rounds] for rounds in ((1, 2, 3, 4, 5), (0, 1, 2, 3, 4, 6), (0, 5, 6))]
    assert ends["node1"] == [*whole[0], ("rail1", 1, None), ("rail1", 3, None)]
    assert ends["node2"] == [*whole[1], ("rail1", 0, "dead"), ("rail1", 1, None), ("rail1", 2, "dead"), ("rail1", 3, None)]
    assert ends["node3"] == [*whole[2], ("rail1", 0, "start"), ("rail1", 2, "start")]


@pytest.mark.parametrize("fleet", [(4, 1)], indirect=True)
def test_a_host_that_is_killed_in_mid_sweep(fleet: Fleet) -> None:
    fleet.plan["start_deadline_seconds"] = 1.5  # until then, who has not met node4 takes it for late
    for host in fleet.hosts:
        fleet.start(host)
    eventually(lambda: fleet.lines("node4"))
    fleet.started["node4"].kill()
    killed = time.monotonic()
    met = [(record["server"], record["client"]) for record in fleet.lines("node4")]
    assert [fleet.end(host) for host in fleet.hosts[:3]] == [0, 0, 0]
    assert time.monotonic() - killed < CONNECT_TIMEOUT_SECONDS + 3
    for host in fleet.hosts[:3]:
        errors = fleet.errors(host)
        assert set(errors) == {("rail0", other) for other in fleet.hosts if other != host}
        bad = [other for (_rail, other), error in errors.items() if error]
        assert bad == ([] if {(host, "node4"), ("node4", host)} & set(met) else ["node4"])
        assert set(errors.values()) <= {None, "dead"}
    assert not fleet.left_behind()


@pytest.mark.parametrize("killed", ["node1", "node2"])
def test_perftest_dies_with_its_runner_and_the_tests_that_were_left_are_lost(fleet: Fleet, killed: str) -> None:
    fleet.plan["tests"] = [dict(BANDWIDTH), dict(LATENCY)]
    fleet.hang()
    fleet.started[killed].kill()
    other = "node2" if killed == "node1" else "node1"
    assert fleet.end(other) == 0
    found = [(record["rail"], record["test"], record["error"]["class"]) for record in fleet.records(other)]
    assert found == [("rail0", "bandwidth", "dead"), ("rail0", "latency", "dead")]
    eventually(lambda: not fleet.left_behind(), 2)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_everything_and_says_so(fleet: Fleet, number: signal.Signals) -> None:
    fleet.hang()
    begun = time.monotonic()
    for host in fleet.hosts:
        fleet.started[host].send_signal(number)
    assert [fleet.end(host) for host in fleet.hosts] == [128 + number] * 2
    assert time.monotonic() - begun < 3
    assert not fleet.left_behind()
    for host in fleet.hosts:
        *records, last = fleet.lines(host)
        assert (last["finished"], last["reason"]) == (False, number.name)
        assert {record["error"]["class"] for record in records} <= {"signal", "dead"}


def test_a_perftest_that_hangs_is_killed_at_its_deadline(fleet: Fleet) -> None:
    fleet.plan["tests"][0]["deadline_seconds"] = 0.5
    fleet.behave("node2", "hang")
    fleet.run()
    client, server = (fleet.records(host)[0] for host in fleet.hosts)
    assert (server["error"]["class"], server["exit_code"]) == ("timeout", -signal.SIGKILL)
    assert client["exit_code"] != 0
    assert all(0.45 < record["seconds"] < 4 for record in (server, client))


@pytest.mark.parametrize(("times", "measured"), [(0, 1), (1, 2), (2, 3)])
def test_a_client_that_lost_its_clock_measures_again_at_once(fleet: Fleet, times: int, measured: int) -> None:
    clocks = fleet.folder / "clocks"
    fleet.environment[CLOCKS_VARIABLE] = str(clocks)
    fleet.plan["tests"].append({**BANDWIDTH, "name": "both", "bidirectional": True})
    fleet.behave("node1", f"clock{times}")
    fleet.run()
    for host in fleet.hosts:
        assert [(record["test"], record["exit_code"], record["error"]) for record in fleet.records(host)] == [
            ("bandwidth", 0, None),
            ("both", 0, None),
        ]
    assert [parse_bandwidth(record["stdout"]).average_gbps for record in fleet.records("node1")] == [97.5, 97.5]
    assert len(clocks.read_text()) == measured + 1


def test_a_clock_that_stays_lost_is_recorded_after_the_last_attempt(fleet: Fleet) -> None:
    clocks = fleet.folder / "clocks"
    fleet.environment[CLOCKS_VARIABLE] = str(clocks)
    fleet.behave("node1", "clock9")
    fleet.run()
    (client,), (server,) = (fleet.records(host) for host in fleet.hosts)
    assert (client["exit_code"], client["error"], server["exit_code"], server["error"]) == (0, None, 0, None)
    assert LOST_CLOCK in client["stderr"]
    assert len(clocks.read_text()) == ATTEMPTS
    source = CLOCK_SOURCE
    assert client.get("clock_source") == (source.read_text(encoding="ascii").strip() if source.exists() else None)


def test_the_server_s_clock_is_not_asked(fleet: Fleet) -> None:
    clocks = fleet.folder / "clocks"
    fleet.environment[CLOCKS_VARIABLE] = str(clocks)
    fleet.behave("node2", "clock9")
    fleet.run()
    assert parse_bandwidth(fleet.records("node1")[0]["stdout"]).average_gbps == 97.5
    assert len(clocks.read_text()) == 1


def test_a_server_that_ends_before_it_listens(fleet: Fleet) -> None:
    fleet.behave("node2", "nodevice")
    fleet.run()
    client, server = fleet.records("node1")[0], fleet.records("node2")[0]
    assert (server["error"]["class"], server["exit_code"]) == ("listen", 1)
    assert "Unable to find the Infiniband/RoCE device" in server["stderr"]
    assert (client["error"]["class"], client["exit_code"]) == ("listen", None)
    answer = "perftest's server ended with exit code 1 before it listened: Did not detect devices"
    assert server["error"]["detail"] == answer
    assert client["error"]["detail"] == f"node2: {answer}"


@pytest.mark.parametrize("probe", [True, False])
def test_after_a_failure_the_partner_is_probed_if_the_plan_says_so(fleet: Fleet, probe: bool) -> None:
    fleet.plan.update({"probe": True} if probe else {}, start_deadline_seconds=1)
    fleet.start("node1")
    assert fleet.end("node1") == 0
    (record,) = fleet.records("node1")
    assert record["error"]["class"] == "dead"
    echo = True if os.geteuid() == 0 else None
    assert record.get("probe") == ({"echo": echo, "arp": {}} if probe else None)


def test_a_good_measurement_is_not_followed_by_a_probe(fleet: Fleet) -> None:
    fleet.plan["probe"] = True
    fleet.run()
    assert "probe" not in fleet.records("node1")[0]


@pytest.mark.parametrize("fleet", [(2, 3)], indirect=True)
def test_a_client_that_fails_does_not_leave_the_server_waiting(fleet: Fleet) -> None:
    """It fails in another way on each rail."""
    for rail, behavior in enumerate(("nodevice", "memory", "killed")):
        fleet.behave("node1", behavior, rail)
    fleet.run()
    clients = sorted(fleet.records("node1"), key=itemgetter("rail"))
    ends = [(1, "Unable to find the Infiniband/RoCE device"), (1, "Couldn't allocate MR"), (-signal.SIGKILL, "")]
    for client, (exit_code, answer) in zip(clients, ends):
        assert (client["error"], client["exit_code"]) == (None, exit_code)
        assert answer in client["stderr"]
    servers = fleet.records("node2")
    assert len(servers) == 3
    for server in servers:
        assert server["exit_code"] != 0
        assert server["seconds"] < FAILED_ENDING_SECONDS + 2


@pytest.mark.parametrize("old", ["node1", "node2"])
def test_another_version_of_perftest_is_refused_by_perftest(fleet: Fleet, old: str) -> None:
    fleet.behave(old, "old")
    fleet.run()
    new = "node1" if old == "node2" else "node2"
    assert "not compatible with versions older than 5.70" in fleet.records(new)[0]["stderr"]
    assert [fleet.records(host)[0]["exit_code"] != 0 for host in fleet.hosts] == [True, True]


@pytest.mark.parametrize("fleet", [(3, 4)], indirect=True)
def test_what_fails_on_one_host_costs_others_nothing(fleet: Fleet) -> None:
    """It fails in another way on each rail."""
    for rail, behavior in enumerate(("nodevice", "memory", "killed", "old")):
        fleet.behave("node3", behavior, rail)
    begun = time.monotonic()
    fleet.run()
    assert time.monotonic() - begun < CONNECT_TIMEOUT_SECONDS + 3
    records = [record for host in fleet.hosts for record in fleet.records(host)]
    assert len(records) == 4 * 6
    for record in records:
        good = record["exit_code"] == 0 and record["error"] is None
        assert good == ("node3" not in (record["server"], record["client"]))


def test_a_port_that_is_taken(fleet: Fleet) -> None:
    with socket.create_server((f"{fleet.prefix}.2", 18515)):
        fleet.run()
    assert fleet.errors("node1") == {("rail0", "node2"): "listen"}
    assert fleet.errors("node2") == {("rail0", "node1"): "listen"}
    assert "18515" in fleet.records("node1")[0]["error"]["detail"]


@pytest.mark.parametrize("without", ["node1", "node2"])
def test_perftest_is_missing_on_one_host(fleet: Fleet, without: str) -> None:
    for host in fleet.hosts:
        fleet.environment = {"PATH": "/nonexistent"} if host == without else {}
        fleet.start(host)
    assert [fleet.end(host) for host in fleet.hosts] == [0, 0]
    assert fleet.records(without)[0]["error"]["class"] == "start"
    assert "cannot start ib_write_bw" in fleet.records(without)[0]["error"]["detail"]
    assert {error for host in fleet.hosts for error in fleet.errors(host).values()} == {"start"}


def test_the_rails_own_address_is_missing(fleet: Fleet) -> None:
    fleet.move("node1", "192.0.2.1")
    fleet.plan["start_deadline_seconds"] = 0
    fleet.start("node1")
    assert fleet.end("node1") == 0
    assert fleet.errors("node1") == {("rail0", "node2"): "start"}


def test_long_output_is_kept_at_both_ends(fleet: Fleet) -> None:
    fleet.behave("node1", "flood")
    fleet.run()
    record = fleet.records("node1")[0]
    assert record["exit_code"] == 0
    assert len(record["stdout"]) < 64 * 1024 + 100
    assert "bytes left out]" in record["stdout"]
    assert parse_bandwidth(record["stdout"]).average_gbps == 97.5


@pytest.mark.parametrize("fleet", [(3, 1)], indirect=True)
def test_a_clock_that_is_off_and_jumps_changes_nothing_but_the_time_in_the_records(fleet: Fleet) -> None:
    begun = time.monotonic()
    for host in fleet.hosts:
        fleet.start(host, how=("-c", SKEWED) if host == "node2" else ())
    assert [fleet.end(host) for host in fleet.hosts] == [0] * 3
    assert time.monotonic() - begun < 8
    assert {error for host in fleet.hosts for error in fleet.errors(host).values()} == {None}
    records = fleet.records("node2")
    assert [record["round"] for record in records] == sorted(record["round"] for record in records)
    assert all(STANDIN_SECONDS < record["seconds"] < 5 and record["waited_seconds"] < 5 for record in records)
    assert all(abs(record["started"] - time.time()) > 1800 for record in records)


def test_the_host_and_the_token_come_from_the_environment(fleet: Fleet) -> None:
    fleet.endpoint("node1")["numa_node"] = None
    plan = fleet.folder / "plan.json.gz"
    plan.write_bytes(gzip.compress(json.dumps(fleet.plan).encode()))
    for host in fleet.hosts:
        environment = {**os.environ, "SLURMD_NODENAME": host, "RDMA_PAIRS_TOKEN": "top-secret", "STANDIN_SECONDS": str(STANDIN_SECONDS)}
        environment["PATH"] = f"{fleet.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
        argv = [sys.executable, "-ISB", str(fleet.program), "--plan", str(plan), "--results", str(fleet.folder)]
        fleet.started[host] = subprocess.Popen(argv, env=environment, stderr=subprocess.PIPE, text=True)
    assert [fleet.end(host) for host in fleet.hosts] == [0, 0]
    assert fleet.errors("node1") == {("rail0", "node2"): None}


def test_the_token_does_not_stay_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RDMA_PAIRS_TOKEN", " secret\n")
    assert load_token(None) == b"secret"
    assert "RDMA_PAIRS_TOKEN" not in os.environ


def test_no_token_at_all(fleet: Fleet) -> None:
    plan = fleet.folder / "plan.json"
    plan.write_text(json.dumps(fleet.plan), encoding="utf-8")
    argv = [sys.executable, "-ISB", str(fleet.program), "--plan", str(plan), "--results", str(fleet.folder), "--host", "node1"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=20)
    assert (done.returncode, done.stderr) == (2, "pair runner: no --token-file, no RDMA_PAIRS_TOKEN\n")


@pytest.mark.parametrize(
    ("slurm", "name", "expected"),
    [("node1", "login", ["node1", "login", "login"]), (None, "node1.example.org", ["node1.example.org", "node1"]), ("", "n", ["n", "n"])],
)
def test_a_hosts_own_names(monkeypatch: pytest.MonkeyPatch, slurm: str | None, name: str, expected: list[str]) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: name)
    monkeypatch.delenv("SLURMD_NODENAME", raising=False)
    if slurm is not None:
        monkeypatch.setenv("SLURMD_NODENAME", slurm)
    assert own_names() == expected


@pytest.mark.parametrize("fleet", [(3, 1)], indirect=True)
def test_resume_measures_what_is_lacking_and_no_more(fleet: Fleet) -> None:
    """All three were killed in the second round: whole lines stay, a torn one does not."""
    fleet.plan["tests"] = [dict(BANDWIDTH), dict(LATENCY)]
    fleet.run()
    before = {host: [record for record in fleet.records(host) if record["round"] == 0] for host in fleet.hosts}
    for host in fleet.hosts:
        lines = fleet.results_file(host).read_bytes().splitlines(keepends=True)
        kept = [line for line in lines if json.loads(line).get("round") == 0]
        fleet.results_file(host).write_bytes(b"".join([*kept, lines[-2][:100]]))
    fleet.arguments = ("--resume",)
    fleet.run()
    for host in fleet.hosts:
        records = fleet.records(host)
        assert records[: len(before[host])] == before[host]
        measured = [(record["round"], record["test"]) for record in records]
        assert sorted(set(measured)) == sorted(measured)
        assert len(measured) == 4
        assert {(record["exit_code"], record["error"]) for record in records} == {(0, None)}


def test_resume_of_what_is_complete_measures_nothing_and_ends_soon(fleet: Fleet) -> None:
    fleet.run()
    before = {host: fleet.records(host) for host in fleet.hosts}
    fleet.arguments = ("--resume",)
    begun = time.monotonic()
    fleet.run()
    assert time.monotonic() - begun < 3
    assert {host: fleet.records(host) for host in fleet.hosts} == before


def test_resume_where_the_server_lost_its_record(fleet: Fleet) -> None:
    """The client has the value: nobody measures, whichever of the two is late."""
    lost, kept = "node2", "node1"
    fleet.run()
    before, text = fleet.records(kept), fleet.results_file(kept).read_bytes()
    fleet.arguments = ("--resume",)
    for early, late in permutations(fleet.hosts):
        fleet.results_file(lost).write_bytes(b"")
        fleet.results_file(kept).write_bytes(text)
        fleet.start(early)
        time.sleep(0.6)
        begun = time.monotonic()
        fleet.start(late)
        assert [fleet.end(host) for host in fleet.hosts] == [0, 0]
        assert time.monotonic() - begun < 2
        assert fleet.records(kept) == before
        assert fleet.errors(lost) == {("rail0", kept): "refused"}
        assert "good record" in fleet.records(lost)[0]["error"]["detail"]


@pytest.mark.parametrize("fleet", [(3, 1)], indirect=True)
def test_resume_where_the_client_has_gone_on(fleet: Fleet) -> None:
    """node2 lost its record of round 1, in which it serves node1; node1 waits in round 2 for node3."""
    fleet.run()
    for host, lost in (("node2", 1), ("node1", 2), ("node3", 2)):
        kept = [record for record in fleet.records(host) if record["round"] != lost]
        fleet.results_file(host).write_text("".join(json.dumps(record) + "\n" for record in kept), encoding="utf-8")
    fleet.arguments = ("--resume",)
    fleet.start("node1")
    fleet.start("node2")
    eventually(lambda: len(fleet.lines("node2")) > 1)
    fleet.start("node3")
    assert [fleet.end(host) for host in fleet.hosts] == [0, 0, 0]
    assert fleet.errors("node2") == {("rail0", "node1"): "refused", ("rail0", "node3"): None}
    assert fleet.records("node2")[-1]["waited_seconds"] < 2
    assert {**fleet.errors("node1"), **fleet.errors("node3")} == {("rail0", f"node{number}"): None for number in (1, 2, 3)}


def test_resume_where_one_of_two_lost_the_last_test(fleet: Fleet) -> None:
    """They measure what the client lacks."""
    fleet.plan["tests"] = [dict(BANDWIDTH), dict(LATENCY), {**BANDWIDTH, "name": "large"}]
    fleet.run()
    measured = {host: fleet.results_file(host).read_bytes().splitlines(keepends=True) for host in fleet.hosts}
    fleet.arguments = ("--resume",)
    for kept, lost in permutations(fleet.hosts):
        fleet.results_file(kept).write_bytes(b"".join(measured[kept][:2]))
        fleet.results_file(lost).write_bytes(measured[lost][0])
        fleet.run()
        again = ["latency"] if lost == "node1" else []
        assert [record["test"] for record in fleet.records(kept)] == ["bandwidth", "latency", *again, "large"]
        assert {record["exit_code"] for record in fleet.records(kept)} == {0}
        found = [(record["test"], record["error"] and record["error"]["class"]) for record in fleet.records(lost)]
        assert found == [("bandwidth", None), ("latency", None if again else "refused"), ("large", None)]


def test_resume_refuses_the_results_of_another_sweep(fleet: Fleet) -> None:
    text = json.dumps({"schema": 2, "sweep": "another", "rail": "rail0", "round": 0, "test": "x", "exit_code": 0, "error": None}) + "\n"
    fleet.results_file("node1").write_text(text, encoding="utf-8")
    fleet.arguments = ("--resume",)
    process = fleet.start("node1")
    assert "of sweep another" in process.communicate(timeout=20)[1]
    assert process.returncode == 2
    assert fleet.results_file("node1").read_text(encoding="utf-8") == text


def test_two_runners_do_not_write_to_one_file(fleet: Fleet) -> None:
    first = fleet.start("node1")
    eventually(lambda: socket.socket().connect_ex((f"{fleet.prefix}.1", 18500)) == 0)
    second = fleet.start("node1")
    assert "another runner writes to it" in second.communicate(timeout=20)[1]
    assert second.returncode == 2
    first.kill()
    first.communicate()


def test_runners_may_share_a_device(fleet: Fleet) -> None:
    for host in fleet.hosts:
        fleet.results_file(host).symlink_to("/dev/null")
    fleet.run()
    assert all(fleet.results_file(host).is_char_device() for host in fleet.hosts)


def test_no_exit_handler_of_a_library_runs_beside_threads_that_still_end(fleet: Fleet) -> None:
    """OpenSSL's exit handler frees memory that such a thread frees too. The exit handler of this test aborts."""
    for host in fleet.hosts:
        fleet.start(host, how=("-c", ABORTING))
    assert [fleet.end(host) for host in fleet.hosts] == [0, 0]
    assert [len(fleet.records(host)) for host in fleet.hosts] == [1, 1]


@pytest.mark.parametrize(("plan", "complaint"), [({"schema": 1}, "schema 2"), ({"rails": None}, "TypeError")], ids=["schema", "rails"])
def test_a_bad_plan_ends_the_runner_before_anything_starts(fleet: Fleet, plan: dict[str, Any], complaint: str) -> None:
    process = fleet.start("node1", plan={**fleet.plan, **plan})
    _stdout, stderr = process.communicate(timeout=20)
    assert process.returncode == 2
    assert complaint in stderr
    assert len(stderr.splitlines()) == 1
    assert not fleet.results_file("node1").exists()


def test_an_empty_token_is_refused(fleet: Fleet) -> None:
    process = fleet.start("node1", token=" ")
    assert "the token is empty" in process.communicate(timeout=20)[1]
    assert process.returncode == 2


def limit_files() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (1500, 1500))


@pytest.mark.parametrize("fleet", [(4, 1)], indirect=True)
def test_a_full_disk_costs_no_partner_anything(fleet: Fleet) -> None:
    """It is full from the start on node2, on node3 in the middle of a line."""
    fleet.results_file("node2").symlink_to("/dev/full")
    more: dict[str, dict[str, Any]] = {"node3": {"preexec_fn": limit_files}}
    for host in fleet.hosts:
        fleet.start(host, **more.get(host, {}))
    for host in ("node2", "node3"):
        _stdout, stderr = fleet.started[host].communicate(timeout=30)
        assert fleet.started[host].returncode == 1
        assert "lines of the results could not be written" in stderr
        assert len(stderr.splitlines()) == 1
    for host in ("node1", "node4"):
        assert fleet.end(host) == 0
        assert fleet.errors(host) == {("rail0", other): None for other in fleet.hosts if other != host}
    *records, last = fleet.lines("node3")  # whole lines, for else they could not be read
    assert [record["exit_code"] for record in records] == [0]
    assert (last["finished"], last["records"]) == (False, 1)
    assert "2 records could not be written" in last["reason"]


def test_resume_where_the_client_lost_its_record(fleet: Fleet) -> None:
    """Its value is measured again, whichever of the two is late, although the server has a good record, and nobody waits for a deadline."""
    begun = time.monotonic()
    fleet.run()
    usual = time.monotonic() - begun
    text = fleet.results_file("node2").read_bytes()
    fleet.arguments = ("--resume",)
    for early, late in permutations(fleet.hosts):
        fleet.results_file("node1").unlink()
        fleet.results_file("node2").write_bytes(text)
        fleet.start(early)
        time.sleep(0.6)
        begun = time.monotonic()
        fleet.start(late)
        assert [fleet.end(host) for host in fleet.hosts] == [0, 0]
        assert time.monotonic() - begun < 3 * usual
        assert [(record["role"], record["error"], record["exit_code"]) for record in fleet.records("node1")] == [("client", None, 0)]
        assert [(record["role"], record["error"], record["exit_code"]) for record in fleet.records("node2")] == [("server", None, 0)] * 2


@pytest.mark.parametrize("fleet", [(4, 2)], indirect=True)
def test_resume_where_a_host_lost_everything(fleet: Fleet) -> None:
    """What it sends is measured again; what it receives, its clients hold."""
    fleet.run()
    before = {host: len(fleet.records(host)) for host in fleet.hosts}
    fleet.results_file("node2").unlink()
    fleet.arguments = ("--resume",)
    for host in reversed(fleet.hosts):
        fleet.start(host)
    assert [fleet.end(host) for host in fleet.hosts] == [0] * 4
    found = {(record["role"], record["error"] and record["error"]["class"]) for record in fleet.records("node2")}
    assert (len(fleet.records("node2")), found) == (6, {("client", None), ("server", "refused")})
    again = sum(record["role"] == "client" for record in fleet.records("node2"))
    assert sum(len(fleet.records(host)) - before[host] for host in ("node1", "node3", "node4")) == again


def test_resume_ends_soon_where_nothing_is_lacking_and_the_partner_has_ended(fleet: Fleet) -> None:
    fleet.run()
    fleet.arguments = ("--resume",)
    for host in fleet.hosts:
        begun = time.monotonic()
        fleet.start(host)
        assert fleet.end(host) == 0
        assert time.monotonic() - begun < 0.1 * fleet.plan["start_deadline_seconds"] + 1
        assert len(fleet.records(host)) == 1


def test_two_hosts_measure_both_directions(fleet: Fleet) -> None:
    fleet.plan["schedule"] = {"kind": "full"}
    fleet.run()
    for host in fleet.hosts:
        assert {record["role"] for record in fleet.records(host)} == {"server", "client"}
        assert [record["exit_code"] for record in fleet.records(host)] == [0, 0]


PATCHED = """
import os, sys, time
sys.path.insert(0, sys.argv[1])
from PACKAGE import main
constants, stuck = CONSTANTS, set()
for name, value in constants.items():
    having = [module for key, module in sys.modules.items() if key.startswith("PACKAGE.") and hasattr(module, name)]
    assert having, name
    for module in having:
        setattr(module, name, value)
spawn, waitpid, waitid = os.posix_spawnp, os.waitpid, os.waitid
def spawned(program, argv, *rest, **more):
    pid = spawn(program, argv, *rest, **more)
    if any(word.endswith("_hang") for word in argv) and STUCK:
        stuck.add(pid)
    return pid
def waited(pid, flags):
    while pid in stuck and not flags & os.WNOHANG:
        time.sleep(1)
    return (0, 0) if pid in stuck else waitpid(pid, flags)
os.posix_spawnp, os.waitpid = spawned, waited
os.waitid = lambda kind, pid, flags: None if pid in stuck else waitid(kind, pid, flags)
sys.argv = sys.argv[1:]
sys.exit(main.main())
"""
SHORT = {"LISTEN_TIMEOUT_SECONDS": 2.0, "ENDING_SECONDS": 0.5, "FAILED_ENDING_SECONDS": 0.2, "KILL_SECONDS": 0.5, "HOP_SECONDS": 0.5}


def patched(*, stuck: bool = False, **constants: float) -> tuple[str, str]:
    """How to run with shorter times.

    stuck: a stand-in for state D, which no test can make: the kernel does not give back perftests that hang.
    """
    return "-c", PATCHED.replace("PACKAGE", PACKAGE).replace("CONSTANTS", repr({**SHORT, **constants})).replace("STUCK", repr(stuck))


@pytest.mark.parametrize("fleet", [(4, 2)], indirect=True)
def test_a_perftest_that_hangs_in_the_kernel_costs_its_rail_only(fleet: Fleet) -> None:
    """H4. State D is emulated (a stand-in): after SIGKILL, waitpid does not return the perftests of node2 on rail0."""
    fleet.plan["tests"] = [{**BANDWIDTH, "deadline_seconds": 3}, dict(LATENCY)]
    fleet.behave("node2", "hang", rail=0)
    begun = time.monotonic()
    for host in fleet.hosts:
        fleet.start(host, how=patched(stuck=True))
    assert [fleet.end(host) for host in fleet.hosts] == [0] * 4
    assert time.monotonic() - begun < 20
    for host in fleet.hosts:
        for record in fleet.records(host):
            good = record["exit_code"] == 0 and record["error"] is None
            assert good == (record["rail"] == "rail1" or "node2" not in (record["server"], record["client"])), record
        assert len(fleet.records(host)) == 2 * 2 * 3
    first, *others = (record for record in fleet.records("node2") if record["rail"] == "rail0")
    assert (first["error"]["class"], first["exit_code"]) == ("timeout", None)
    assert all(record["error"]["class"] == "start" for record in others)
    assert all(
        "of perftest hangs in the kernel: it did not end within 0.5 seconds of SIGKILL" in each["error"]["detail"]
        for each in (first, *others)
    )
    reported = [each for host in ("node1", "node3", "node4") for each in fleet.records(host) if each["rail"] == "rail0" and each["error"]]
    assert any("node2: process" in record["error"]["detail"] for record in reported)
    assert {record["error"]["class"] for record in reported} <= {"start", "timeout", "dead"}


class Liar:
    """A host that knows the token, answers every ping with a signed pong, takes every hello, and never measures."""

    def __init__(self, fleet: Fleet, host: str, **says: Any) -> None:
        self.says, self.plan, self.open = says, fleet.plan, True
        address = fleet.plan["rails"][0]["addresses"][fleet.hosts.index(host)]
        self._listener = socket.create_server((address, 18500), backlog=64)
        self._wires: list[Wire] = []
        threading.Thread(target=self._answer, daemon=True).start()

    def _answer(self) -> None:
        while self.open:
            try:
                wire = Wire(self._listener.accept()[0], b"secret")
            except OSError:
                return
            with suppress(MeetingError):
                message, _authentic = wire.receive()
                wire.nonce = str(message.get("nonce"))
                if message["kind"] == "ping":
                    wire.send({"kind": "pong", "at": 0, "lacks": [0], **self.says})
                    wire.close()
            self._wires.append(wire)

    def close(self) -> None:
        self.open = False
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for wire in self._wires:
            wire.close()


@pytest.fixture
def lie(fleet: Fleet) -> Iterator[Any]:
    with ExitStack() as stack:

        def make(host: str, **says: Any) -> None:
            stack.enter_context(closing(Liar(fleet, host, **says)))

        yield make


LIES: dict[str, dict[str, Any]] = {"stays": {}, "says that it waits": {"hops": 10**9, "low": 0}, "says nonsense": {"low": "x", "hops": []}}


@pytest.mark.parametrize("fleet", [(4, 1)], indirect=True)
@pytest.mark.parametrize("says", LIES.values(), ids=LIES)
def test_a_partner_that_answers_and_never_measures_costs_each_partner_one_wait(fleet: Fleet, lie: Any, says: dict[str, Any]) -> None:
    """H4: node4 lives and does not measure, as client and as server."""
    fleet.plan.update(start_deadline_seconds=0.5, tests=[{**BANDWIDTH, "deadline_seconds": 1}])
    lie("node4", **says)
    begun = time.monotonic()
    for host in fleet.hosts[:3]:
        fleet.start(host, how=patched(LISTEN_TIMEOUT_SECONDS=1, HOP_SECONDS=0.2))
    assert [fleet.end(host) for host in fleet.hosts[:3]] == [0] * 3
    assert time.monotonic() - begun < 25
    for host in fleet.hosts[:3]:
        assert fleet.errors(host) == {("rail0", other): "dead" if other == "node4" else None for other in fleet.hosts if other != host}
        (record,) = (each for each in fleet.records(host) if each["error"])
        assert "node4 answers and has measured nothing for " in record["error"]["detail"]


NO_ROUNDS: list[Any] = ["x", "1", [], {}, None, True, 1.5, float("nan"), float("inf"), -float("inf")]


@pytest.mark.parametrize("fleet", [(3, 1)], indirect=True)
@pytest.mark.parametrize("at", NO_ROUNDS, ids=repr)
def test_a_partner_that_says_a_round_that_is_none_costs_its_own_meeting_only(fleet: Fleet, lie: Any, at: Any) -> None:
    """L1: node3 signs it."""
    lie("node3", at=at)
    for host in fleet.hosts[:2]:
        fleet.start(host)
    assert [fleet.end(host) for host in fleet.hosts[:2]] == [0, 0]
    for host, other in (("node1", "node2"), ("node2", "node1")):
        assert fleet.errors(host) == {("rail0", "node3"): "refused", ("rail0", other): None}


DEEP, HUGE = "[" * 100_000, "9" * 5000


@pytest.mark.parametrize("text", [DEEP, HUGE, f'{{"schema": 2, "x": {HUGE}}}', f'{{"schema": {DEEP}'], ids=lambda text: text[:12])
def test_a_plan_that_nobody_can_read_ends_the_runner_with_2(fleet: Fleet, text: str) -> None:
    """L4."""
    plan, token = fleet.folder / "plan", fleet.folder / "token"
    plan.write_text(text, encoding="utf-8")
    token.write_text("secret", encoding="utf-8")
    files = ["--plan", str(plan), "--token-file", str(token), "--results", str(fleet.folder / "r")]
    argv = [sys.executable, "-ISB", str(fleet.program), *files]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=20)
    assert done.returncode == 2
    assert done.stderr.startswith(f"pair runner: {plan}: not a plan of a sweep: ")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("changes", [{"start_deadline_seconds": 1e999}, {"perftest_port": 1e999}, {"hosts": [["node1"], "node1"]}], ids=str)
def test_a_plan_with_numbers_that_are_none_ends_the_runner_with_2(fleet: Fleet, changes: dict[str, Any]) -> None:
    process = fleet.start("node1", plan={**fleet.plan, **changes})
    _stdout, stderr = process.communicate(timeout=20)
    assert (process.returncode, len(stderr.splitlines())) == (2, 1), stderr


@pytest.mark.parametrize("line", [DEEP, f'{{"finished": {HUGE}}}'], ids=["deep", "huge"])
def test_results_that_nobody_can_read_are_not_resumed(fleet: Fleet, line: str) -> None:
    """L4: they are neither cut nor a traceback."""
    fleet.results_file("node1").write_text(line + "\n", encoding="utf-8")
    fleet.arguments = ("--resume",)
    process = fleet.start("node1")
    _stdout, stderr = process.communicate(timeout=20)
    assert process.returncode == 2
    assert stderr.startswith(f"pair runner: {fleet.results_file('node1')}: line 1 is no record of a sweep: ")
    assert len(stderr.splitlines()) == 1
    assert fleet.results_file("node1").read_text(encoding="utf-8") == line + "\n"


@pytest.mark.parametrize("changes", [{"rail": ["rail0"]}, {"round": {}}, {"round": "0"}, {"test": None}], ids=str)
def test_a_record_with_places_of_another_type_is_not_a_good_one(fleet: Fleet, changes: dict[str, Any]) -> None:
    place = {"rail": "rail0", "round": 0, "test": "bandwidth", "exit_code": 0, "error": None}
    record = {"schema": 2, "sweep": fleet.plan["sweep"], **place, **changes}
    fleet.results_file("node1").write_text(json.dumps(record) + "\n", encoding="utf-8")
    fleet.arguments = ("--resume",)
    fleet.run()
    *_first, last = fleet.records("node1")
    assert (last["round"], last["exit_code"], last["error"]) == (0, 0, None)


@pytest.mark.parametrize("host", ["../../evil", "/tmp/evil", "a/b", "a\0b"])
def test_a_file_of_results_does_not_leave_its_folder(fleet: Fleet, host: str) -> None:
    """L5."""
    inside = fleet.folder / "a" / "b" / "c"
    inside.mkdir(parents=True)
    plan, token = fleet.folder / "plan", fleet.folder / "token"
    plan.write_text(json.dumps({**fleet.plan, "hosts": [host, "node2"], "start_deadline_seconds": 0}), encoding="utf-8")
    token.write_text("secret", encoding="utf-8")
    before = set(fleet.folder.rglob("*"))
    argv = ["--plan", str(plan), "--token-file", str(token), "--results", str(inside)]
    code = (
        f"import sys; sys.argv[1:] = {argv!r}; sys.path.insert(0, {str(fleet.program)!r}); from {PACKAGE} import main; "
        f"main.own_names = lambda: [{host!r}]; sys.exit(main.main())"
    )
    done = subprocess.run([sys.executable, "-ISB", "-c", code], capture_output=True, text=True, check=False, timeout=20)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
    assert "cannot be the name of a file" in done.stderr
    assert set(fleet.folder.rglob("*")) == before


def unsigned(fleet: Fleet, host: str, to: str, kind: str, number: int) -> None:
    """What any user of a host can send: it comes from the host's address, and names the host."""
    places = [fleet.plan["rails"][0]["addresses"][fleet.hosts.index(each)] for each in (to, host)]
    with suppress(ConnectionRefusedError), socket.create_connection((places[0], 18500), source_address=(places[1], 0)) as sock:
        body = json.dumps(
            {"kind": kind, "sweep": "x", "plan": "x", "rail": "rail0", "round": number, "host": host, "lacks": [0], "nonce": "n"}
        )
        sock.sendall(b"0" * 64 + b" " + body.encode() + b"\n")
        sock.settimeout(10)
        sock.recv(4096)


@pytest.mark.parametrize("fleet", [(4, 1)], indirect=True)
@pytest.mark.parametrize("early", [True, False], ids=["before the host starts", "while the host waits"])
def test_messages_without_the_token_change_nothing(fleet: Fleet, early: bool) -> None:
    """M7: a user of node1 sends to every other host, for every round, before node1's runner starts or while it waits for node4's."""
    others = fleet.hosts[1:3]
    for host in fleet.hosts[1:3] if early else fleet.hosts[:3]:
        fleet.start(host)
    eventually(lambda: all(socket.socket().connect_ex((f"{fleet.prefix}.{host[-1]}", 18500)) == 0 for host in others))
    for host, kind, number in product(others, ("hello", "ping", "failed"), range(3)):
        unsigned(fleet, "node1", host, kind, number)
    for host in fleet.hosts:
        if host not in fleet.started:
            fleet.start(host)
    assert [fleet.end(host) for host in fleet.hosts] == [0] * 4
    for host in fleet.hosts:
        assert fleet.errors(host) == {("rail0", other): None for other in fleet.hosts if other != host}


def heard_before(fleet: Fleet, stack: ExitStack, rail: int, *, port_of: int, nonce: str) -> None:
    """Send node2 a hello of node1 for round 0, as its runner has signed it, and stay; port_of: the rail at whose port."""
    address = fleet.plan["rails"][port_of]["addresses"][1]
    sock = stack.enter_context(socket.socket())
    eventually(lambda: sock.connect_ex((address, 18500 + port_of)) == 0)
    wire = Wire(sock, b"secret")
    wire.nonce = nonce
    _plan, digest = read_plan(fleet.folder / "node2.plan")
    about = {"rail": f"rail{rail}", "round": 0, "host": "node1", "lacks": [0], "dead": [0], "gone": [0]}
    wire.send({"kind": "hello", "sweep": fleet.plan["sweep"], "plan": digest, **about})


def test_calls_of_before_a_runner_was_resumed_change_nothing(fleet: Fleet) -> None:
    """A host that has heard node1's calls of before sends them again, before it is there."""
    fleet.arguments = ("--resume",)
    with ExitStack() as stack:
        fleet.start("node2")
        for nonce in ("first", "second", "first"):
            heard_before(fleet, stack, 0, port_of=0, nonce=nonce)
        time.sleep(0.7)
        heard_before(fleet, stack, 0, port_of=0, nonce="third")
        fleet.start("node1")
        assert [fleet.end(host) for host in fleet.hosts] == [0, 0]
    assert [fleet.errors(host) for host in fleet.hosts] == [{("rail0", other): None} for other in ("node2", "node1")]


@pytest.mark.parametrize("fleet", [(2, 2)], indirect=True)
def test_a_call_of_one_rail_that_is_sent_to_another_changes_nothing(fleet: Fleet) -> None:
    with ExitStack() as stack:
        fleet.start("node2")
        heard_before(fleet, stack, 0, port_of=1, nonce="any")
        time.sleep(0.3)
        fleet.start("node1")
        assert [fleet.end(host) for host in fleet.hosts] == [0, 0]
    for host, other in (("node1", "node2"), ("node2", "node1")):
        assert fleet.errors(host) == {("rail0", other): None, ("rail1", other): None}


class Stranger:
    """Connects to a port a few times as soon as somebody listens there, and keeps the connections or not."""

    def __init__(self, address: str, times: int, *, keeps: bool) -> None:
        self._left, self._keeps, self._kept, self.open = times, keeps, list[socket.socket](), True
        self._thread = threading.Thread(target=self._connect, args=((address, 18515),), daemon=True)
        self._thread.start()

    def _connect(self, place: tuple[str, int]) -> None:
        while self._left and self.open:
            sock = socket.socket()
            if sock.connect_ex(place):
                sock.close()
                time.sleep(0.0005)
                continue
            self._left -= 1
            if self._keeps:
                self._kept.append(sock)
            else:
                sock.close()
            while self.open and listens(Path("/proc/net/tcp").read_text(encoding="ascii"), place[1], place[0]):
                time.sleep(0.001)

    def close(self) -> None:
        self.open = False
        self._thread.join()
        for sock in self._kept:
            sock.close()


@pytest.mark.parametrize("keeps", [True, False], ids=["and stays", "and leaves"])
@pytest.mark.parametrize("times", [1, 2])
def test_a_handshake_that_a_stranger_took_is_measured_again_and_reported(fleet: Fleet, keeps: bool, times: int) -> None:
    """M7: somebody else connects to perftest's port before its client does."""
    fleet.plan["tests"].append(dict(LATENCY))
    with closing(Stranger(f"{fleet.prefix}.2", times, keeps=keeps)):
        fleet.run()
    for host in fleet.hosts:
        first, second = fleet.records(host)
        assert [(each["test"], each["exit_code"], each["error"]) for each in (first, second)] == [
            ("bandwidth", 0, None),
            ("latency", 0, None),
        ]
        assert "strangers" not in second
    assert parse_bandwidth(fleet.records("node1")[0]["stdout"]).average_gbps == 97.5
    assert max(fleet.records(host)[0].get("strangers", 0) for host in fleet.hosts) == times


def test_strangers_that_come_every_time_are_reported_with_the_failure(fleet: Fleet) -> None:
    begun = time.monotonic()
    with closing(Stranger(f"{fleet.prefix}.2", 50, keeps=True)):
        fleet.run()
    assert time.monotonic() - begun < 15
    client, server = (fleet.records(host)[0] for host in fleet.hosts)
    assert client["exit_code"] != 0
    assert ATTEMPTS <= server["strangers"] <= ATTEMPTS**2  # each attempt starts perftest's server up to ATTEMPTS times


def test_a_perftest_that_nobody_reaches_is_no_stranger_s_fault(fleet: Fleet) -> None:
    """The client calls another address, where nobody listens: the server still waits for its client."""
    fleet.install("ib_send_bw")
    program = fleet.folder / "bin" / "ib_send_bw"
    text = program.read_text(encoding="utf-8").replace('connect_once(options["server"], port)', 'connect_once(options["server"], 9)')
    program.write_text(text, encoding="utf-8")
    fleet.plan["tests"] = [{**BANDWIDTH, "command": "ib_send_bw"}]
    fleet.run()
    client, server = (fleet.records(host)[0] for host in fleet.hosts)
    assert "Couldn't connect to" in client["stderr"]
    assert "strangers" not in {**client, **server}
    assert server["error"]["class"] == "timeout"
