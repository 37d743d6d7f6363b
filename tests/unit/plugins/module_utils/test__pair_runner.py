# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pair runner: real processes on loopback addresses, with a stand-in for perftest."""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils import _pair_runner as runner
from ansible_collections.rdma.cluster.plugins.module_utils._perftest import parse_bandwidth

STANDIN = Path(__file__).parents[2] / "standins" / "ib_write_bw"
FLEET_VARIABLE = "TEST_FLEET"


class Fleet:
    """Hosts on loopback addresses of their own: addresses[rail][host]."""

    def __init__(self, folder: Path, hosts: int, rails: int = 1) -> None:
        self.folder = folder
        self.name = uuid.uuid4().hex
        self.hosts = [f"node{number + 1}" for number in range(hosts)]
        self.prefix = f"127.{secrets.randbelow(200) + 20}.{secrets.randbelow(250) + 1}"
        self.started: dict[str, subprocess.Popen[str]] = {}
        endpoints = [
            {host: self.endpoint(f"{self.prefix}.{rail * 20 + number + 1}") for number, host in enumerate(self.hosts)}
            for rail in range(rails)
        ]
        self.plan: dict[str, Any] = {
            "schema": 1,
            "sweep": "20261120T120000-123",
            "rendezvous_port": 18500,
            "start_deadline_seconds": 20,
            "test": {"command": "ib_write_bw", "size_bytes": 65536, "queue_pairs": 1, "duration_seconds": 1, "port": 18515}
            | {"mtu_bytes": None, "traffic_class": None},
            "hosts": self.hosts,
            "rails": [{"name": f"rail{number}", "endpoints": found} for number, found in enumerate(endpoints)],
        }
        (folder / "bin").mkdir()
        program = folder / "bin" / "ib_write_bw"
        program.write_text(f"#!{sys.executable} -ISB\n" + STANDIN.read_text(encoding="utf-8"), encoding="utf-8")
        program.chmod(0o755)

    @staticmethod
    def endpoint(address: str) -> dict[str, Any]:
        return {"address": address, "device": f"standin_{address}", "port": 1, "gid_index": 1, "numa_node": 0}

    def behave(self, host: str, behaviour: str, rail: int = 0) -> None:
        self.plan["rails"][rail]["endpoints"][host]["device"] += f"_{behaviour}"

    def start(self, host: str, token: str = "secret", plan: dict[str, Any] | None = None) -> subprocess.Popen[str]:
        plan_file, token_file = self.folder / f"{host}.plan", self.folder / f"{host}.token"
        plan_file.write_text(json.dumps(plan or self.plan), encoding="utf-8")
        token_file.write_text(token + "\n", encoding="utf-8")
        path = f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
        argv = [sys.executable, "-ISB", runner.__file__, "--plan", str(plan_file), "--token-file", str(token_file)]
        self.started[host] = subprocess.Popen(
            [*argv, "--host", host, "--results", str(self.results_file(host))],
            env={**os.environ, "PATH": path, "STANDIN_SECONDS": "0.2", FLEET_VARIABLE: self.name},
            stderr=subprocess.PIPE,
            text=True,
        )
        return self.started[host]

    def hang(self) -> None:
        """Start everything with a perftest that does not end, and wait until it runs."""
        for host in self.hosts:
            self.behave(host, "hang")
        for host in self.hosts:
            self.start(host)
        eventually(lambda: sum("standin" in line for line in self.left_behind()) >= 2)

    def results_file(self, host: str) -> Path:
        return self.folder / f"{host}.jsonl"

    def end(self, host: str) -> int:
        _stdout, stderr = self.started[host].communicate(timeout=30)
        assert not stderr, stderr
        return self.started[host].returncode

    def run(self) -> None:
        for host in self.hosts:
            self.start(host)
        assert [self.end(host) for host in self.hosts] == [0] * len(self.hosts)

    def lines(self, host: str) -> list[dict[str, Any]]:
        file = self.results_file(host)
        return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []

    def records(self, host: str) -> list[dict[str, Any]]:
        *records, last = self.lines(host)
        assert last["finished"] is True
        assert last["records"] == len(records)
        return records

    def errors(self, host: str) -> dict[tuple[str, str], str | None]:
        """The class of each error, by rail and partner."""
        return {
            (record["rail"], next(name for name in (record["server"], record["client"]) if name != host)): record["error"]
            and record["error"]["class"]
            for record in self.records(host)
        }

    def left_behind(self) -> list[str]:
        mark, found = f"{FLEET_VARIABLE}={self.name}".encode(), []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if mark in (process / "environ").read_bytes():
                    found.append((process / "cmdline").read_text(encoding="utf-8"))
            except OSError:
                continue
        listening = Path("/proc/net/tcp").read_text(encoding="ascii")
        for rail in self.plan["rails"]:
            for port in (18500, 18515, 18516):
                found += [
                    f"{endpoint['address']}:{port}"
                    for endpoint in rail["endpoints"].values()
                    if runner.listens(listening, port, endpoint["address"])
                ]
        return found


def eventually(condition: Any, seconds: float = 15.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


@pytest.fixture
def fleet(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Fleet]:
    made = Fleet(tmp_path, *getattr(request, "param", (2, 1)))
    yield made
    for process in made.started.values():
        process.kill()
        process.communicate()
    eventually(lambda: not made.left_behind(), 5)


@pytest.mark.parametrize("fleet", [(4, 2)], indirect=True)
def test_full_sweep_measures_every_pair_on_every_rail_once(fleet: Fleet) -> None:
    fleet.run()
    everything = [(host, record) for host in fleet.hosts for record in fleet.records(host)]
    for rail, role, place in [(rail, role, place) for rail in ("rail0", "rail1") for role, place in (("server", 0), ("client", 1))]:
        seen = [(record["server"], record["client"]) for host, record in everything if (record["rail"], record["role"]) == (rail, role)]
        assert sorted(seen) == list(combinations(fleet.hosts, 2))
        assert all(host == (record["server"], record["client"])[place] for host, record in everything if record["role"] == role)
    for _host, record in everything:
        assert (record["schema"], record["sweep"], record["exit_code"], record["error"]) == (1, fleet.plan["sweep"], 0, None), record
        assert parse_bandwidth(record["stdout"]).average_gbps == 97.5
        assert record["seconds"] > 0.2
        assert abs(record["started"] - time.time()) < 60
    record = next(record for record in fleet.records("node2") if (record["rail"], record["server"]) == ("rail1", "node1"))
    expected = f"ib_write_bw -d standin_{fleet.prefix}.22 -i 1 -x 1 -s 65536 -q 1 -D 1 --report_gbits -F -p 18516 {fleet.prefix}.21"
    assert record["argv"] == expected.split()
    assert not fleet.left_behind()


@pytest.mark.parametrize("fleet", [(3, 2)], indirect=True)
def test_odd_count_and_a_host_without_a_nic_on_one_rail(fleet: Fleet) -> None:
    del fleet.plan["rails"][1]["endpoints"]["node2"]
    fleet.run()
    assert fleet.errors("node1") == {("rail0", "node2"): None, ("rail0", "node3"): None, ("rail1", "node3"): None}
    assert fleet.errors("node2") == {("rail0", "node1"): None, ("rail0", "node3"): None}


def test_a_late_partner_is_waited_for_and_strangers_disturb_nothing(fleet: Fleet) -> None:
    fleet.start("node1")
    place = (f"{fleet.prefix}.1", 18500)
    eventually(lambda: socket.socket().connect_ex(place) == 0)
    for text in (b"GET / HTTP/1.0\r\n\r\n", b"0 {}\n", b"\n", b"0 [" * 3000, b'0 {"round": true, "host": ["x"]}\n'):
        with socket.create_connection(place) as stranger:
            stranger.sendall(text)
    time.sleep(0.5)
    fleet.start("node2")
    assert [fleet.end("node1"), fleet.end("node2")] == [0, 0]
    assert fleet.errors("node1") == {("rail0", "node2"): None}
    assert fleet.records("node1")[0]["waited_seconds"] >= 0.5


def test_a_late_server_is_waited_for(fleet: Fleet) -> None:
    fleet.start("node2")
    time.sleep(0.7)
    fleet.start("node1")
    assert [fleet.end("node1"), fleet.end("node2")] == [0, 0]
    assert fleet.errors("node2") == {("rail0", "node1"): None}


def test_another_token_is_an_error_of_its_own_on_both_sides(fleet: Fleet) -> None:
    fleet.start("node1")
    fleet.start("node2", token="another")
    assert [fleet.end("node1"), fleet.end("node2")] == [0, 0]
    assert fleet.errors("node1") == {("rail0", "node2"): "token"}
    assert fleet.errors("node2") == {("rail0", "node1"): "token"}
    assert "secret" not in "".join(fleet.results_file(host).read_text(encoding="utf-8") for host in fleet.hosts)


def test_another_plan_is_an_error_of_its_own_on_both_sides(fleet: Fleet) -> None:
    fleet.start("node1", plan=fleet.plan | {"start_deadline_seconds": 21})
    fleet.start("node2")
    assert [fleet.end("node1"), fleet.end("node2")] == [0, 0]
    assert fleet.errors("node1") == {("rail0", "node2"): "plan"}
    assert fleet.errors("node2") == {("rail0", "node1"): "plan"}


@pytest.mark.parametrize("fleet", [(4, 1)], indirect=True)
@pytest.mark.parametrize("dead", ["node1", "node4"])
def test_a_host_that_never_starts_costs_its_own_pairs_only(fleet: Fleet, dead: str) -> None:
    fleet.plan["start_deadline_seconds"] = 1
    living = [host for host in fleet.hosts if host != dead]
    begun = time.monotonic()
    for host in living:
        fleet.start(host)
    assert [fleet.end(host) for host in living] == [0, 0, 0]
    assert time.monotonic() - begun < 12
    for host in living:
        assert fleet.errors(host) == {("rail0", other): "dead" if other == dead else None for other in fleet.hosts if other != host}


@pytest.mark.parametrize("fleet", [(4, 1)], indirect=True)
def test_a_host_that_is_killed_in_mid_sweep(fleet: Fleet) -> None:
    fleet.plan["start_deadline_seconds"] = 3
    for host in fleet.hosts:
        fleet.start(host)
    eventually(lambda: fleet.lines("node4"))
    fleet.started["node4"].kill()
    met = [(record["server"], record["client"]) for record in fleet.lines("node4")]
    assert [fleet.end(host) for host in fleet.hosts[:3]] == [0, 0, 0]
    for host in fleet.hosts[:3]:
        errors = fleet.errors(host)
        assert set(errors) == {("rail0", other) for other in fleet.hosts if other != host}
        assert [other for (_rail, other), error in errors.items() if error] == ([] if (host, "node4") in met else ["node4"])
        assert set(errors.values()) <= {None, "dead"}
    assert not fleet.left_behind()


@pytest.mark.parametrize("killed", ["node1", "node2"])
def test_perftest_dies_with_its_runner(fleet: Fleet, killed: str) -> None:
    fleet.hang()
    fleet.started[killed].kill()
    other = "node2" if killed == "node1" else "node1"
    assert fleet.end(other) == 0
    assert fleet.errors(other) == {("rail0", killed): "dead"}


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
    fleet.plan["test"]["deadline_seconds"] = 1
    fleet.behave("node1", "hang")
    fleet.run()
    server, client = (fleet.records(host)[0] for host in fleet.hosts)
    assert (server["error"]["class"], server["exit_code"]) == ("timeout", -signal.SIGKILL)
    assert client["exit_code"] != 0
    assert all(0.9 < record["seconds"] < 4 for record in (server, client))


def test_a_server_that_ends_before_it_listens(fleet: Fleet) -> None:
    fleet.behave("node1", "nodevice")
    fleet.run()
    server, client = fleet.records("node1")[0], fleet.records("node2")[0]
    assert (server["error"]["class"], server["exit_code"]) == ("listen", 1)
    assert "Unable to find the Infiniband/RoCE device" in server["stderr"]
    assert (client["error"]["class"], client["exit_code"]) == ("listen", None)


def test_a_client_that_fails_does_not_leave_the_server_waiting(fleet: Fleet) -> None:
    fleet.behave("node2", "nodevice")
    fleet.run()
    server, client = fleet.records("node1")[0], fleet.records("node2")[0]
    assert (client["error"], client["exit_code"]) == (None, 1)
    assert (server["error"]["class"], server["exit_code"]) == ("timeout", -signal.SIGKILL)
    assert server["seconds"] < runner.FAILED_ENDING_SECONDS + 2


def test_a_port_that_is_taken(fleet: Fleet) -> None:
    with socket.create_server((f"{fleet.prefix}.1", 18515)):
        fleet.run()
    assert fleet.errors("node1") == {("rail0", "node2"): "listen"}
    assert fleet.errors("node2") == {("rail0", "node1"): "listen"}
    assert "18515" in fleet.records("node2")[0]["error"]["detail"]


def test_perftest_is_missing_and_the_rail_has_no_address(fleet: Fleet) -> None:
    fleet.plan["test"]["command"] = "ib_no_such_bw"
    fleet.run()
    assert fleet.errors("node1") == {("rail0", "node2"): "start"}
    assert fleet.errors("node2") == {("rail0", "node1"): "start"}


def test_the_rails_own_address_is_missing(fleet: Fleet) -> None:
    fleet.plan["rails"][0]["endpoints"]["node1"]["address"] = "192.0.2.1"
    fleet.plan["start_deadline_seconds"] = 0
    fleet.start("node1")
    assert fleet.end("node1") == 0
    assert fleet.errors("node1") == {("rail0", "node2"): "start"}


def test_long_output_is_kept_at_both_ends(fleet: Fleet) -> None:
    fleet.behave("node2", "flood")
    fleet.run()
    record = fleet.records("node2")[0]
    assert record["exit_code"] == 0
    assert len(record["stdout"]) < 64 * 1024 + 100
    assert "bytes left out]" in record["stdout"]
    assert parse_bandwidth(record["stdout"]).average_gbps == 97.5


@pytest.mark.parametrize(
    ("plan", "complaint"),
    [
        ({"schema": 2}, "schema 1"),
        ({"hosts": ["node2"]}, "'node1' is not among"),
        ({"hosts": ["node1", "node1"]}, "twice"),
        ({"test": {"port": 1}}, "KeyError 'command'"),
        ({"rails": [{}]}, "KeyError"),
        ({"rails": None}, "TypeError"),
        ({"rendezvous_port": None}, "TypeError"),
    ],
)
def test_a_bad_plan_is_refused_before_anything_starts(fleet: Fleet, plan: dict[str, Any], complaint: str) -> None:
    process = fleet.start("node1", plan=fleet.plan | plan)
    _stdout, stderr = process.communicate(timeout=20)
    assert process.returncode == 2
    assert complaint in stderr
    assert len(stderr.splitlines()) == 1
    assert not fleet.results_file("node1").exists()


def test_an_empty_token_is_refused(fleet: Fleet) -> None:
    process = fleet.start("node1", token=" ")
    assert "the token is empty" in process.communicate(timeout=20)[1]
    assert process.returncode == 2


def test_results_that_cannot_be_written(fleet: Fleet) -> None:
    fleet.results_file("node1").symlink_to("/dev/full")
    fleet.start("node1")
    fleet.start("node2")
    _stdout, stderr = fleet.started["node1"].communicate(timeout=30)
    assert fleet.started["node1"].returncode == 1
    assert "No space left" in stderr
    assert fleet.end("node2") == 0


TCP = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 18210 1 0000000000000000 100 0 0 10 0
   1: 0164A8C0:4853 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 18211 1 0000000000000000 100 0 0 10 0
   2: 0164A8C0:4854 0264A8C0:9C40 01 00000000:00000000 00:00000000 00000000     0        0 18212 1 0000000000000000 20 4 30 10 -1
"""
TCP6 = """\
  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid
   0: 00000000000000000000000000000000:4855 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0
   1: 0000000000000000FFFF00000164A8C0:4856 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0
   2: B80D0120000000000000000001000000:4857 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0
"""


@pytest.mark.skipif(sys.byteorder == "big", reason="the captured tables are of a little-endian machine")
@pytest.mark.parametrize(
    ("port", "address", "expected"),
    [
        (22, "192.168.100.1", True),  # on any address
        (18515, "192.168.100.1", True),
        (18515, "192.168.100.2", False),  # another host's, on the same machine
        (18516, "192.168.100.1", False),  # a connection, not a listener
        (18517, "192.168.100.1", True),  # on any address of both families
        (18518, "192.168.100.1", True),
        (18518, "192.168.100.2", False),
        (18519, "2001:db8::1", True),
        (18519, "2001:db8::2", False),
        (18517, "2001:db8::1", True),
        (22, "2001:db8::1", False),
    ],
)
def test_who_listens_is_read_from_the_kernels_tables(port: int, address: str, expected: bool) -> None:
    assert runner.listens(TCP + TCP6, port, address) is expected


@pytest.mark.parametrize(
    ("node", "cpulist", "expected"),
    [(0, "0-3,8\n", {0, 1, 2, 3, 8}), (1, "\n", set()), (None, "0\n", set()), (-1, "0\n", set()), (7, None, set())],
)
def test_cpus_of_a_numa_node(tmp_path: Path, node: int | None, cpulist: str | None, expected: set[int]) -> None:
    if cpulist is not None:
        (tmp_path / f"node{node}").mkdir()
        (tmp_path / f"node{node}" / "cpulist").write_text(cpulist, encoding="ascii")
    assert runner.node_cpus(node, tmp_path) == expected


def test_every_option_of_the_test_reaches_the_command_line() -> None:
    test = {"command": "ib_write_bw", "size_bytes": 2, "queue_pairs": 4, "duration_seconds": 3, "mtu_bytes": 4096, "traffic_class": 106}
    endpoint = {"address": "192.0.2.1", "device": "mlx5_0", "port": 2, "gid_index": None, "numa_node": None}
    argv = runner.perftest_argv(test, endpoint, 18520, None)
    assert " ".join(argv) == "ib_write_bw -d mlx5_0 -i 2 -s 2 -q 4 -D 3 --report_gbits -F -p 18520 -m 4096 --tclass=106"


def test_iterations_take_the_place_of_the_duration() -> None:
    test = {"command": "ib_write_bw", "size_bytes": 2, "queue_pairs": 1, "duration_seconds": 3, "iterations": 200, "qp_timeout": 20}
    endpoint = {"address": "192.0.2.1", "device": "mlx5_0", "port": 1, "gid_index": 3, "numa_node": None}
    argv = runner.perftest_argv(test, endpoint, 18515, "192.0.2.2")
    assert " ".join(argv) == "ib_write_bw -d mlx5_0 -i 1 -x 3 -s 2 -q 1 -n 200 --report_gbits -F -p 18515 -u 20 192.0.2.2"


def test_the_digest_is_of_the_content() -> None:
    assert runner.plan_digest({"a": 1, "b": [2]}) == runner.plan_digest({"b": [2], "a": 1}) != runner.plan_digest({"a": 1, "b": [3]})
