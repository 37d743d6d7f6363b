# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan of a many-to-one load, as the pair runner reads it."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.perftest import perftest_argv
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.schedule import own_meetings
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.loads.qos_plan import Funnel, funnels, load_plan, planned_funnels
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.plan.plan import PERFTEST_PORT, RENDEZVOUS_PORT
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.schedule import plan_rounds, planned_meetings
from tests.unit.builders.hosts import lab_intent

HOSTS = ["node1", "node2", "node3", "node4"]
RAILS = ["rail0", "rail1"]
EVERYBODY = dict.fromkeys(RAILS, HOSTS)
TWO = [Funnel("rail0", "node1", ("node2", "node3", "node4")), Funnel("rail1", "node1", ("node2", "node3"))]


def endpoint(host: str, rail: str) -> dict[str, Any]:
    number = RAILS.index(rail)
    where = {"device": f"mlx5_{number}", "port": 1, "gid_index": 3, "numa_node": number, "gpu": None}
    return {"address": f"192.168.{100 + number}.{host[-1]}", **where}


def plan(planned: list[Funnel], **pairs: Any) -> dict[str, Any]:
    of = {host: {rail: endpoint(host, rail) for rail in RAILS} for host in HOSTS}
    return load_plan("R1-qos", planned, of, lab_intent(roce={}, pairs=pairs), forks=5)


def test_the_first_host_of_each_rail_is_the_target_of_the_others() -> None:
    assert funnels(RAILS, HOSTS, EVERYBODY, 8) == [Funnel(rail, "node1", ("node2", "node3", "node4")) for rail in RAILS]
    assert funnels(["rail0"], HOSTS, EVERYBODY, 2) == [Funnel("rail0", "node1", ("node2", "node3"))]


def test_a_host_with_a_finding_takes_no_part_and_a_rail_needs_three_hosts() -> None:
    good = {"rail0": ["node4", "node3", "node2"], "rail1": ["node2", "node4"]}
    assert funnels(RAILS, HOSTS, good, 8) == [Funnel("rail0", "node2", ("node3", "node4"))]
    assert funnels(RAILS, HOSTS, {}, 8) == []


@pytest.mark.parametrize(("rails", "sources"), [(1, 85), (8, 10), (16, 5)])
def test_ports_of_perftest_never_reach_those_where_partners_meet(rails: int, sources: int) -> None:
    names = [f"rail{number}" for number in range(rails)]
    hosts = [f"node{number}" for number in range(200)]
    found = funnels(names, hosts, dict.fromkeys(names, hosts), 1000)
    assert {len(each.sources) for each in found} == {sources}
    assert PERFTEST_PORT + rails * sources <= RENDEZVOUS_PORT


def test_each_source_has_a_rail_of_its_own_and_all_meet_the_target_in_the_same_rounds() -> None:
    made = plan(TWO)
    assert [rail["name"] for rail in made["rails"]] == ["rail0<node2", "rail0<node3", "rail0<node4", "rail1<node2", "rail1<node3"]
    assert made["rails"][1]["addresses"] == ["192.168.100.1", None, "192.168.100.3", None]
    assert plan_rounds(made) == 2
    # The target (position 0) serves each source in every round.
    assert set(planned_meetings(made)) == {(rail, number, 0, source) for number in (0, 1) for rail, source in enumerate((1, 2, 3, 1, 2))}


def test_the_runner_of_the_target_serves_all_at_once_and_a_source_is_on_its_own_rails_alone() -> None:
    made = plan(TWO)
    assert own_meetings(made, 0) == [{0: (source, True), 1: (source, True)} for source in (1, 2, 3, 1, 2)]
    assert own_meetings(made, 3) == [{}, {}, {0: (0, False), 1: (0, False)}, {}, {}]


def test_who_reads_receives_so_the_target_reads() -> None:
    assert next(planned_meetings(plan(TWO[:1], command="ib_read_bw"))) == (0, 0, 1, 0)


def test_it_is_marked_and_goes_one_way_and_bandwidth_is_all_that_is_measured() -> None:
    made = plan(TWO, bidirectional=True, iterations=200)
    (test,) = made["tests"]
    assert (test["name"], test["bidirectional"], test["iterations"], test["traffic_class"]) == ("bandwidth", False, 200, 106)
    argv = perftest_argv(test, made["profiles"][made["rails"][0]["profiles"][1]], PERFTEST_PORT, "192.168.100.1")
    assert argv[0] == "ib_write_bw"
    assert "--tclass=106" in argv


@pytest.mark.parametrize("command", ["ib_write_bw", "ib_read_bw"])
def test_a_plan_reports_what_it_was_made_of(command: str) -> None:
    assert planned_funnels(plan(TWO, command=command)) == TWO
