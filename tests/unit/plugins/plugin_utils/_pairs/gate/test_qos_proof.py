# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Proof with traffic. What ports counted has the shape that _pair_counters gives it."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.counters import PRIORITY_FIELDS
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.gate.qos_proof import check_traffic, payloads
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.matrix.matrix import Matrix
from ansible_collections.rdma.cluster.plugins.plugin_utils._roce.profile import roce_profile
from tests.unit.builders.hosts import lab_intent

GB = 10**9
SENT = {"node1": {"rail0": {"tx": 10.0 * GB, "rx": 5.0 * GB}}}
ITERATIONS = {"iterations": 1000, "size_bytes": 65536, "queue_pairs": 4, "duration_seconds": 10}
DURATION = {**ITERATIONS, "iterations": None}


def profile(**roce: Any) -> dict[str, Any]:
    found = roce_profile(lab_intent(roce=roce))
    assert found is not None
    return found


def counted(netdev: str = "ens1", **priorities: dict[str, Any]) -> dict[str, Any]:
    """p3={"tx_bytes": 1}: what a priority counted; an mlx5 that has all eight, with PFC for priority 3 alone."""
    none = dict.fromkeys(PRIORITY_FIELDS)
    every = {str(number): {**none, "rx_bytes": 0, "tx_bytes": 0, "rx_discards": 0} for number in range(8)}
    every["3"].update(rx_pause=0, tx_pause=0)
    for name, of in priorities.items():
        every[name[1:]].update(of)
    return {"seconds": 40.0, "risen": {}, "netdev": netdev, "priorities": every, "cnps": {}}


def judged(of_rail: dict[str, Any] | None, sent: Any = None, **roce: Any) -> Finding:
    counters = {} if of_rail is None else {"rail0": of_rail}
    (found,) = check_traffic("node1", ["rail0"], profile(**roce), counters, SENT if sent is None else sent)
    assert (found.stage, found.check, found.host, found.subject) == ("pairs", "qos.traffic", "node1", "rail0")
    return found


WELL = {"tx_bytes": int(10.2 * GB), "rx_bytes": int(5.1 * GB)}


def test_traffic_that_is_counted_in_its_own_priority() -> None:
    found = judged(counted(p3=WELL))
    assert (found.status, found.remedy) == ("ok", "")
    assert found.observed == (
        "sent 10.2 GB in priority 3 (100.0% of what it sent), perftest 10 GB; received 5.1 GB in priority 3 (100.0% of what it received), "
        "perftest 5 GB"
    )
    assert found.expected == "99% of perftest's traffic, and of the port's traffic without CNPs, in priority 3"


def test_another_priority_of_the_profile() -> None:
    assert judged(counted(p3=WELL), priority=5).status == "error"
    assert judged(counted(p5={**WELL, "rx_pause": 0, "tx_pause": 0}), priority=5).status == "ok"


@pytest.mark.parametrize(("other", "status"), [(0.1, "ok"), (0.11, "error")])
def test_what_else_the_port_carries_is_at_most_one_percent(other: float, status: str) -> None:
    assert judged(counted(p3={**WELL, "tx_bytes": int(10.2 * GB)}, p0={"tx_bytes": int(other * GB)})).status == status


def test_cnps_are_no_traffic_that_is_marked_wrongly() -> None:
    found = judged(counted(p3=WELL, p6={"tx_bytes": int(0.3 * GB), "rx_bytes": int(0.3 * GB)}))
    assert (found.status, "(100.0% of what it sent)" in found.observed) == ("ok", True)
    assert judged(counted(p3=WELL, p5={"tx_bytes": int(0.3 * GB)})).status == "error"
    assert judged(counted(p3=WELL, p5={"tx_bytes": int(0.3 * GB)}), cnp_priority=5).status == "ok"


def test_what_perftest_sent_does_not_pass_for_cnps() -> None:
    found = judged(counted(p6=WELL))
    assert found.status == "error"
    assert "100.0% in priority 6: a different DSCP, or a different map" in found.observed


def test_a_little_that_is_elsewhere_must_not_be_missing_of_what_was_sent() -> None:
    found = judged(counted(p3={**WELL, "tx_bytes": int(9.85 * GB)}, p0={"tx_bytes": int(0.06 * GB)}))
    assert (found.status, "sent 9.85 GB in priority 3 (99.4% of what it sent), perftest 10 GB" in found.observed) == ("error", True)


@pytest.mark.parametrize(("most", "why"), [("0", "unmarked, or DSCP is not trusted"), ("4", "a different DSCP, or a different map")])
def test_traffic_elsewhere_is_found_where_it_is(most: str, why: str) -> None:
    found = judged(counted(p3={**WELL, "tx_bytes": int(0.02 * GB)}, **{f"p{most}": {"tx_bytes": int(9.98 * GB)}}))
    assert found.status == "error"
    assert f"sent 0.02 GB in priority 3 (0.2% of what it sent), perftest 10 GB; 99.8% in priority {most}: {why}" in found.observed
    assert found.remedy == "Run the QoS stage for node1. `ethtool -S ens1 | grep prio` on node1 shows where traffic is counted."


def test_a_port_that_sends_well_and_receives_elsewhere_points_at_the_others_too() -> None:
    found = judged(counted(p3={**WELL, "rx_bytes": 0}, p0={"rx_bytes": 5 * GB}))
    assert (found.status, "the DSCP marks of its partners" in found.remedy) == ("error", True)


def test_traffic_that_no_priority_has_is_not_known_to_be_wrong() -> None:
    found = judged(counted(p3={"tx_bytes": 300, "rx_bytes": 200}))
    assert (found.status, "`ethtool -S ens1 | grep prio` on node1" in found.remedy) == ("unknown", True)


def test_a_pause_counter_that_is_missing_says_that_pfc_is_off() -> None:
    off = counted(p3={**WELL, "rx_pause": None, "tx_pause": None})
    found = judged(off)
    assert found.status == "error"
    assert found.observed.startswith("PFC is disabled: the driver has no pause counters for priority 3; sent 10.2 GB in priority 3")
    assert found.remedy.startswith("Run the QoS stage for node1 with `-e roce_qos_link_toggle_allowed=true`")
    assert judged(off, pfc=False).status == "ok"


def test_a_driver_that_counts_pauses_and_not_that_they_are_off_is_well() -> None:
    assert judged(counted(p3={**WELL, "tx_pause": None})).status == "ok"


@pytest.mark.parametrize(
    "of_rail", [None, {**counted(), "priorities": None}, {"seconds": 1.0, "risen": {}}], ids=["none", "other port", "earlier version"]
)
def test_counters_that_cannot_be_compared_are_unknown(of_rail: dict[str, Any] | None) -> None:
    found = judged(of_rail)
    assert (found.status, found.observed) == ("unknown", "its counters before and after the sweep cannot be compared")
    assert found.remedy


@pytest.mark.parametrize(
    ("of_rail", "why"),
    [
        ({**counted(), "priorities": {}}, "the driver of ens1 does not count by priority"),
        ({**counted(), "priorities": {"3": {"rx_pause": 7}}}, "the driver of ens1 does not count bytes by priority"),
        (counted(p3={**WELL, "rx_bytes": None}), "the driver of ens1 does not report the bytes of each direction: sent 10.2 GB"),
    ],
    ids=["virtio", "ice", "one way"],
)
def test_what_is_not_reported_is_not_judged(of_rail: dict[str, Any], why: str) -> None:
    found = judged(of_rail)
    assert (found.status, found.observed[: len(why)]) == ("not_applicable", why)


def test_a_rail_on_which_nothing_was_measured_well_is_not_judged() -> None:
    assert judged(counted(), sent={}).observed == "no successful measurement here"


def test_a_direction_that_was_not_measured_is_not_asked_for() -> None:
    found = judged(counted(p3={"tx_bytes": 11 * GB}), sent={"node1": {"rail0": {"tx": 10.0 * GB, "rx": 0.0}}})
    assert (found.status, "received" in found.observed) == ("ok", False)


def test_what_rails_of_one_interface_sent_is_counted_together() -> None:
    sent = {"node1": {"rail0": {"tx": 6.0 * GB, "rx": 0.0}, "rail1": {"tx": 4.0 * GB, "rx": 0.0}, "rail2": {"tx": 50.0 * GB, "rx": 0.0}}}
    port = counted(p3={"tx_bytes": int(6.1 * GB)})
    counters = {"rail0": port, "rail1": port, "rail2": counted("ens2")}
    found = list(check_traffic("node1", ["rail0", "rail1"], profile(), counters, sent))
    assert [(each.subject, each.status) for each in found] == [("rail0", "unknown"), ("rail1", "unknown")]
    assert "perftest 10 GB" in found[0].observed
    counters["rail1"] = counted("ens3")
    assert next(iter(check_traffic("node1", ["rail0"], profile(), counters, sent))).status == "ok"


# What was sent


def matrix(*rows: tuple[int, int, int, float | None], **how: bool) -> Matrix:
    """(rail, who receives, who sends, Gb/s)."""
    made = Matrix.of(["a", "b", "c"], ["rail0", "rail1"], rows)
    return Matrix(**{**vars(made), **how})


def test_iterations_say_exactly_what_was_sent() -> None:
    each = 1000 * 65536 * 4
    assert payloads(ITERATIONS, matrix((0, 0, 1, 80.0), (0, 0, 2, 90.0), (1, 1, 2, 70.0), (1, 0, 1, None))) == {
        "a": {"rail0": {"tx": 0.0, "rx": 2.0 * each}},
        "b": {"rail0": {"tx": each, "rx": 0.0}, "rail1": {"tx": 0.0, "rx": each}},
        "c": {"rail0": {"tx": each, "rx": 0.0}, "rail1": {"tx": each, "rx": 0.0}},
    }


def test_of_a_duration_at_least_the_half_that_perftest_counts_was_sent() -> None:
    assert payloads(DURATION, matrix((0, 0, 1, 80.0)))["b"]["rail0"]["tx"] == 80e9 / 8 * 5


def test_both_directions_at_once() -> None:
    each = 1000 * 65536 * 4
    both = matrix((0, 0, 1, 160.0), is_bidirectional=True)
    assert payloads(ITERATIONS, both) == {"a": {"rail0": {"tx": each, "rx": each}}, "b": {"rail0": {"tx": each, "rx": each}}}
    assert payloads(DURATION, both)["a"]["rail0"]["tx"] == 80e9 / 8 * 5
