# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Many-to-one load judged, from what its runners leave."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.counters import PRIORITY_FIELDS
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.loads.qos import check_load
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.loads.qos_plan import Funnel, load_plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.matrix.matrix import Failure, Matrix
from tests.unit.builders.hosts import lab_intent

HOSTS = ["node1", "node2", "node3", "node4"]
FUNNEL = Funnel("rail0", "node1", ("node2", "node3", "node4"))
RAILS = ["rail0<node2", "rail0<node3", "rail0<node4"]
NONE: dict[str, int | None] = dict.fromkeys(PRIORITY_FIELDS)
STILL = {**NONE, "rx_bytes": 10**9, "tx_bytes": 10**9, "rx_pause": 0, "tx_pause": 0, "rx_discards": 0}
Brief = dict[str, dict[str, Any]]


def plan() -> dict[str, Any]:
    endpoint = {"device": "mlx5_0", "port": 1, "gid_index": 3, "numa_node": 0, "gpu": None}
    of = {host: {"rail0": {"address": f"192.168.100.{host[-1]}", **endpoint}} for host in HOSTS}
    return load_plan("R1-qos", [FUNNEL], of, lab_intent(roce={}), forks=5)


def counters(priority: dict[str, Any] | None = None, cnps: dict[str, int] | None = None, **of: dict[str, Any]) -> Brief:
    """What each host counted: of nodeN what is given, of the others priority."""
    found: Brief = {}
    for host in HOSTS:
        reported = of.get(host, STILL if priority is None else priority)
        names = RAILS if host == "node1" else [f"rail0<{host}"]
        priorities = {"3": {**NONE, **reported}} if reported else {}
        port = {"seconds": 30.0, "risen": {}, "netdev": "ens1", "priorities": priorities, "cnps": cnps or {}}
        found[host] = dict.fromkeys(names, port)
    return found


def measured(*gbps: float | None, kind: str = "dead") -> Matrix:
    """Of each source its rate, None if it failed."""
    made = Matrix.of(HOSTS, RAILS, [(number, 0, number + 1, value) for number, value in enumerate(gbps)])
    return Matrix(**{**vars(made), "failures": {at: Failure(kind) for at, value in enumerate(gbps) if value is None}})


SHARED = measured(32.0, 33.0, 31.0)


def judged(reported: Brief, matrix: Matrix = SHARED, capacity: float | None = 98.0) -> Finding:
    (found,) = check_load(plan(), matrix, reported, {"node1": 3}, lambda host, rail: capacity)
    assert (found.stage, found.check, found.host, found.subject) == ("pairs", "qos.load", "node1", "rail0")
    return found


def test_pause_frames_that_move_are_well() -> None:
    found = judged(counters(node1={**STILL, "tx_pause": 12}, node3={**STILL, "rx_pause": 7}))
    assert (found.status, found.remedy) == ("ok", "")
    assert found.observed == (
        "3 of 3 sources sent 96 of 98 Gb/s together; pause frames: node1 12, node3 7; CNPs: not counted; discards: none"
    )
    assert found.expected == "pause frames of priority 3 or CNPs, and no discards, while 3 send to one"


def test_notifications_that_move_are_well_and_those_of_all_count() -> None:
    found = judged(counters(cnps={"np_cnp_sent": 5, "np_ecn_marked_roce_packets": 9}))
    assert (found.status, "CNPs: np_cnp_sent 20" in found.observed) == ("ok", True)


def test_packets_that_were_marked_and_answered_by_nobody_hold_nobody_back() -> None:
    assert judged(counters(cnps={"np_ecn_marked_roce_packets": 9, "np_cnp_sent": 0})).status == "warning"


def test_a_full_line_that_held_nobody_back_is_a_warning() -> None:
    found = judged(counters())
    assert (found.status, found.observed) == (
        "warning",
        "nothing slowed the senders down: no pause frames, no CNPs and no loss; 3 of 3 sources sent 96 of 98 Gb/s together",
    )
    assert found.remedy.startswith("1. Check the switch ports of rail0: PFC and ECN of priority 3")
    assert "on node1, node2, node3, node4" in found.remedy


@pytest.mark.parametrize(
    ("gbps", "capacity"),
    [((98.0, 97.0, 98.0), 98.0), ((10.0, 10.0, 10.0), 98.0), ((49.0, 49.0), 98.0), ((32.0, 33.0, 31.0), None)],
    ids=["one after the other", "slow", "two", "line unknown"],
)
def test_sources_that_did_not_share_a_full_line_prove_nothing(gbps: tuple[float, ...], capacity: float | None) -> None:
    found = judged(counters(), measured(*gbps), capacity)
    assert (found.status, "nothing had to slow them down" in found.observed) == ("not_applicable", True)


@pytest.mark.parametrize("field", ["rx_discards", "rx_buffer_discards", "rx_congestion_discards"])
@pytest.mark.parametrize("host", ["node1", "node4"])
def test_what_was_dropped_is_an_error_whatever_moved(host: str, field: str) -> None:
    found = judged(counters({**STILL, "rx_pause": 4}, **{host: {**STILL, field: 5}}))
    assert (found.status, f"discards: {host} 5" in found.observed) == ("error", True)
    assert "PFC and ECN of priority 3" in found.remedy


def test_discards_of_another_priority_are_not_rdma_s() -> None:
    reported = counters({**STILL, "rx_pause": 4})
    for of_host in reported.values():
        for of_rail in of_host.values():
            of_rail["priorities"]["0"] = {**NONE, "rx_discards": 99}
    assert judged(reported).status == "ok"


def test_packets_lost_until_perftest_gave_up_are_an_error() -> None:
    found = judged(counters({**STILL, "rx_pause": 4}), measured(32.0, 33.0, None, kind="retry_exceeded"))
    assert (found.status, "2 of 3 sources sent 65 of 98 Gb/s together, 1 failed (retry_exceeded)" in found.observed) == ("error", True)


def test_without_two_sources_nothing_is_known() -> None:
    found = judged(counters({**STILL, "rx_pause": 4}), measured(32.0, None))
    assert (found.status, "1 of 3 sources sent 32 of 98 Gb/s together, 1 failed (dead), 1 left no record" in found.observed) == (
        "unknown",
        True,
    )


def test_counters_that_are_not_there_are_unknown() -> None:
    found = judged({})
    assert (found.status, "before and after the load cannot be compared" in found.observed) == ("unknown", True)
    one_lost = counters({})
    host, _of = one_lost.popitem()
    assert (judged(one_lost).status, f"the counters of {host} before" in judged(one_lost).observed) == ("unknown", True)


@pytest.mark.parametrize("reported", [counters({}), counters({"rx_bytes": 10**9, "tx_bytes": 10**9})], ids=["virtio", "bytes alone"])
def test_counters_that_are_not_reported_say_nothing(reported: Brief) -> None:
    found = judged(reported)
    assert (found.status, "the drivers report neither pause frames by priority nor CNPs" in found.observed) == ("not_applicable", True)


def test_a_target_whose_profile_is_not_known_is_not_judged() -> None:
    assert list(check_load(plan(), SHARED, counters(), {}, lambda host, rail: 98.0)) == []
