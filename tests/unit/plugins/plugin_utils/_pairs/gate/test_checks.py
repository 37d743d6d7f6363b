# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the gate of the pairs stage asks of each port."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.expected import LatencyBounds, Limit
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.figures import Figure
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.gate.checks import (
    ORDER,
    Port,
    check_bandwidth,
    check_errors,
    check_latency,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.plan.endpoint import NoLimit
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.verdict.judged import Judged
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.verdict.verdict import Verdict
from tests.unit.builders.hosts import lab_intent

SETTINGS = {**lab_intent()["pairs"], "fail_below": 0.8, "warn_below": 0.95, "software_fail_below": 0.25, "floor_gbps": 0.0}
#: A hundred can be reached, more than 104 is not possible.
HARD = Limit(100.0, 104.0, "link", "why")
SOFT = NoLimit(NOT_APPLICABLE, "Soft-RoCE has no line rate")
NO_RATE = NoLimit(UNKNOWN, "mlx5_0/1 reports no rate")
NOTHING = Figure(0, 0, 0, 0, None, None, None, None)


def figure(ratio: float, level: float = 100.0, partners: int = 3, missing: int = 0, spread: float = 0.0) -> Figure:
    """level: in Gb/s, what would be a ratio of 1."""
    gbps = ratio * level
    return Figure(partners, 0, missing, partners, gbps, gbps * (1 - spread), gbps * (1 + spread), ratio)


def checked(limit: Limit | NoLimit = HARD, of: Figure = NOTHING, settings: dict[str, Any] | None = None, **more: Any) -> Finding:
    return check_bandwidth(Port("node1", "rail0", limit, of, **more), {**SETTINGS, **(settings or {})})


@pytest.mark.parametrize(
    ("ratio", "status"),
    [(1.0, OK), (0.95, OK), (0.949, WARNING), (0.8, WARNING), (0.799, ERROR), (0.01, ERROR), (1.04, OK), (1.06, ERROR)],
)
def test_a_port_is_held_against_what_its_link_and_path_allow(ratio: float, status: str) -> None:
    finding = checked(of=figure(ratio))
    assert (finding.stage, finding.check, finding.host, finding.subject) == ("pairs", "pair.bandwidth", "node1", "rail0")
    assert finding.status == status
    assert finding.expected.endswith("(why)")
    assert bool(finding.remedy) == (status != OK)


def test_what_it_reached_with_lesser_partners_is_held_against_what_they_allow() -> None:
    """Partners of half the rate: 49 of 50 Gb/s."""
    assert checked(of=Figure(3, 0, 0, 3, 49.0, 48.0, 50.0, 0.98)).status == OK


def test_the_fractions_are_those_of_the_intent() -> None:
    assert checked(of=figure(0.9), settings={"warn_below": 0.9}).status == OK
    assert checked(of=figure(0.9), settings={"fail_below": 0.91}).status == ERROR


def test_a_slow_port_is_to_be_looked_at_in_the_order_of_what_is_likely() -> None:
    finding = checked(of=figure(0.5, spread=0.1))
    assert finding.observed == "50 Gb/s with 3 partners, lowest 45, highest 55"
    assert finding.expected == "at least 80 Gb/s, 0.8 of the limit (why)"
    assert ORDER in finding.remedy
    assert "rail0" in finding.remedy
    assert "All partners" not in finding.remedy
    assert "All partners are equally slow" in checked(of=figure(0.5, spread=0.05)).remedy


def test_one_partner_is_one_partner() -> None:
    assert checked(of=figure(1.0, partners=1)).observed == "100 Gb/s with 1 partner"


@pytest.mark.parametrize("limit", [HARD, SOFT, NO_RATE], ids=["card", "software", "no limit known"])
def test_where_nothing_was_measured_nothing_is_good(limit: Limit | NoLimit) -> None:
    finding = checked(limit, Figure(0, 2, 1, 0, None, None, None, None), settings={"floor_gbps": 0.0})
    assert finding.status == UNKNOWN
    assert finding.observed == "nothing measured: 2 measurements failed, 1 left no record"
    assert finding.expected == "a measurement with at least one good partner"
    assert "node1" in finding.remedy


@pytest.mark.parametrize("ratio", [1.0, 0.9, 0.1], ids=["well", "slow", "very slow"])
@pytest.mark.parametrize("limit", [HARD, SOFT], ids=["card", "software"])
def test_while_planned_meetings_have_no_record_it_is_unknown(limit: Limit | NoLimit, ratio: float) -> None:
    finding = checked(limit, figure(ratio, missing=2))
    assert (finding.status, finding.expected) == (UNKNOWN, "a result for every planned measurement")
    assert finding.observed.endswith(", 2 planned measurements left no record")
    assert finding.remedy.startswith("1. Run the pairs stage again")


def test_more_than_is_possible_is_an_error_though_the_median_is_well() -> None:
    finding = checked(of=figure(1.0, missing=1), too_fast=1)
    assert (finding.status, finding.expected) == (ERROR, "at most 104 Gb/s; more is impossible (why)")
    assert "1 of them above the possible maximum" in finding.observed
    assert finding.remedy.startswith("Something else was measured")


def test_a_limit_that_nobody_can_read_is_not_ok() -> None:
    finding = checked(NO_RATE, figure(1.0))
    assert (finding.status, finding.expected) == (UNKNOWN, "a limit to compare with: mlx5_0/1 reports no rate")


@pytest.mark.parametrize(
    ("ratio", "floor_gbps", "status"),
    [
        (1.0, 0.0, OK),
        (0.26, 0.0, OK),
        (0.24, 0.0, ERROR),
        (1.0, 0.21, ERROR),
        (1.0, 0.19, OK),
        (0.26, 0.06, ERROR),
    ],
    ids=["as the fleet", "somewhat below", "far below", "all below the floor", "above the floor", "below the floor"],
)
def test_software_is_held_against_its_fleet_and_the_floor(ratio: float, floor_gbps: float, status: str) -> None:
    finding = checked(SOFT, figure(ratio, level=0.2), settings={"floor_gbps": floor_gbps})
    assert finding.status == status
    assert "Soft-RoCE has no line rate" in finding.expected


def test_what_software_must_reach_is_reported() -> None:
    expected = "at least 0.05 Gb/s (Soft-RoCE has no line rate: compared with the fleet's level)"
    assert checked(SOFT, figure(0.9, level=0.2)).expected == expected


def test_the_floor_holds_for_cards_as_well() -> None:
    finding = checked(of=figure(1.0), settings={"floor_gbps": 101.0})
    assert (finding.status, finding.expected) == (ERROR, "at least 101 Gb/s (rdma_pairs.floor_gbps)")
    assert checked(of=figure(1.0), settings={"floor_gbps": 100.0}).status == OK


def test_a_proof_says_of_which_run_it_is() -> None:
    finding = checked(of=figure(0.99), run="R0")
    assert (finding.status, finding.observed) == (OK, "99 Gb/s with 3 partners, proven by run R0")


def test_a_proof_is_judged_by_what_is_asked_now() -> None:
    assert checked(of=figure(0.9), run="R0", settings={"fail_below": 0.92}).status == ERROR


def judged(status: str) -> Judged:
    return Judged(Verdict("nic", 0, 0), status, f"observed {status}", f"expected {status}", f"remedy {status}")


@pytest.mark.parametrize(
    ("statuses", "status"),
    [
        ([WARNING], WARNING),
        ([UNKNOWN], UNKNOWN),
        ([WARNING, ERROR], ERROR),
        ([UNKNOWN, ERROR], ERROR),
        ([WARNING, UNKNOWN], UNKNOWN),
    ],
    ids="-".join,
)
def test_a_port_that_verdicts_name_has_the_gravest_of_them(statuses: list[str], status: str) -> None:
    finding = checked(of=figure(1.0), verdicts=tuple(map(judged, statuses)))
    assert (finding.status, finding.observed, finding.expected, finding.remedy) == (
        status,
        f"observed {status}",
        f"expected {status}",
        f"remedy {status}",
    )


def test_what_is_impossible_is_reported_whatever_the_verdict() -> None:
    finding = checked(of=figure(1.0), verdicts=(judged(WARNING),), too_fast=1)
    assert (finding.status, "above the possible maximum" in finding.observed) == (ERROR, True)


@pytest.mark.parametrize(
    ("usec", "status", "observed"),
    [
        (1.5, OK, "1.5 µs (median of rail0)"),
        (3.5, WARNING, "3.5 µs (median of rail0)"),
        (5.5, ERROR, "5.5 µs (median of rail0)"),
        (None, UNKNOWN, "not measured"),
    ],
)
def test_latency_is_held_against_its_bounds(usec: float | None, status: str, observed: str) -> None:
    finding = check_latency(Port("node1", "rail0", HARD, NOTHING), usec, LatencyBounds(3.0, 5.0))
    assert (finding.check, finding.subject, finding.status, finding.observed) == ("pair.latency", "rail0", status, observed)
    assert ("node1" in finding.remedy) == (status != OK)


def test_latency_of_software_is_not_applicable_and_needs_no_remedy() -> None:
    bounds = NoLimit(NOT_APPLICABLE, "the latency of a software device is that of its CPU")
    finding = check_latency(Port("node1", "rail0", SOFT, NOTHING), 180.0, bounds)
    assert (finding.status, finding.expected, finding.remedy) == (NOT_APPLICABLE, bounds.reason, "")


def errors(risen: dict[str, int] | None, *, software: bool = False) -> Finding:
    counters = {} if risen is None else {"rail0": {"seconds": 61.4, "risen": risen}}
    (finding,) = check_errors("node1", counters, [("rail0", software)])
    return finding


@pytest.mark.parametrize(
    ("risen", "status", "observed"),
    [
        ({}, OK, "none in 61 s of load"),
        ({"symbol_error": 9}, OK, "none in 61 s of load"),
        ({"symbol_error": 10}, ERROR, "symbol_error 10 in 61 s of load"),
        ({"port_xmit_discards": 5000}, WARNING, "port_xmit_discards 5000 in 61 s of load"),
        ({"port_xmit_discards": 50, "rx_crc_errors_phy": 70}, ERROR, "rx_crc_errors_phy 70, port_xmit_discards 50 in 61 s of load"),
        ({"link_downed": 2}, OK, "none in 61 s of load"),
        ({"link_downed": 3}, ERROR, "link_downed 3 in 61 s of load"),
        ({"out_of_sequence": 99}, OK, "out_of_sequence 99 in 61 s of load"),
    ],
    ids=["none", "few", "cable", "congestion", "both", "a hand at the cable", "flaps", "of no kind that is judged"],
)
def test_errors_under_load_count_against_the_port(risen: dict[str, int], status: str, observed: str) -> None:
    finding = errors(risen)
    assert (finding.check, finding.host, finding.subject) == ("pair.errors", "node1", "rail0")
    assert (finding.status, finding.observed) == (status, observed)
    assert (ORDER in finding.remedy) == (status != OK)


def test_counters_that_cannot_be_compared_are_not_none() -> None:
    finding = errors(None)
    assert finding.status == UNKNOWN
    assert "cannot be compared" in finding.observed
    assert finding.remedy.startswith("1. On node1, check whether it rebooted")
    software = errors(None, software=True)
    assert (software.status, software.remedy) == (NOT_APPLICABLE, "")


def test_what_software_counts_is_reported_and_not_judged() -> None:
    finding = errors({"symbol_error": 500}, software=True)
    assert (finding.status, finding.remedy) == (NOT_APPLICABLE, "")
    assert finding.observed == "symbol_error 500 in 61 s of load; a software device resends what a busy CPU drops"


def test_each_rail_has_its_own_counters() -> None:
    counters = {"rail1": {"seconds": 5.0, "risen": {"symbol_error": 100}}}
    found = list(check_errors("node1", counters, [("rail0", False), ("rail1", False), ("rail2", True)]))
    assert [(finding.subject, finding.status) for finding in found] == [
        ("rail0", UNKNOWN),
        ("rail1", ERROR),
        ("rail2", NOT_APPLICABLE),
    ]
