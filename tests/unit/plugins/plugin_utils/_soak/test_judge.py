# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which port the errors of a soak belong to, and what the findings report."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, OK, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._soak.findings import NEVER, check_soak
from ansible_collections.rdma.cluster.plugins.plugin_utils._soak.judge import Tally, tallies
from ansible_collections.rdma.cluster.plugins.plugin_utils._soak.slices import NOT_READ, PortSlice

RAIL = "rail0"
#: Each pair meets so often; a port counts so many packets in a slice.
TURNS, PACKETS = 20, 10**9


def soak(
    hosts: int = 4, bad: Mapping[tuple[str, str], int] | None = None, own: Mapping[str, dict[str, int]] | None = None, **of: Any
) -> list[PortSlice]:
    """All pairs in turn. bad: pair → the packets that both ends count as lost, in the first turn. own: host → its errors there."""
    names = [f"node{number + 1}" for number in range(hosts)]
    found, number = [], 0
    for turn in range(TURNS):
        for pair in combinations(names, 2):
            lost = (bad or {}).get(pair, 0) if turn == 0 else 0
            for host, partner, counter in ((*pair, "packet_seq_err"), (*pair[::-1], "out_of_sequence")):
                errors = {**({counter: lost} if lost else {}), **((own or {}).get(host, {}) if turn == 0 else {})}
                changes = of.get(host, {}) if turn == 0 else {}
                port = {"seconds": 30.0, "packets": PACKETS, "errors": errors, **changes}
                found.append(PortSlice(number, 1000.0 + 300 * number, host, RAIL, partner, **port))
            number += 1
    return found


def judged(ports: list[PortSlice], limit: float = 1.0, hosts: int = 4) -> dict[str, Finding]:
    planned = {f"node{number + 1}": [RAIL] for number in range(hosts)}
    return {each.host: each for each in check_soak(tallies(ports), planned, limit, 24.0)}


def statuses(found: Mapping[str, Finding]) -> list[str]:
    return [each.status for each in found.values()]


def test_a_quiet_soak_states_the_bound_of_what_it_could_see() -> None:
    found = judged(soak())
    assert statuses(found) == [OK] * 4
    assert found["node1"].observed == "none in 6e+10 packets of 60 slices: below 0.0499 per 10^9 packets with 95 % confidence"


def test_too_few_packets_prove_nothing() -> None:
    found = judged(soak(), limit=0.01)
    assert statuses(found) == [UNKNOWN] * 4
    assert "3e+11 without an error are needed" in found["node1"].remedy
    assert "`-e rdma_soak_hours=120`" in found["node1"].remedy


def test_a_port_with_errors_with_several_partners_is_named_and_its_partners_are_not() -> None:
    found = judged(soak(bad={("node1", "node2"): 300, ("node2", "node3"): 200, ("node2", "node4"): 100}))
    assert statuses(found) == [OK, ERROR, OK, OK]
    assert found["node2"].observed.startswith(
        "600 in 6e+10 packets: 10 per 10^9 packets (95 %: 9.22 to 10.8), in 3 of 60 slices, with node1,"
    )
    assert (
        "most in slice 0: 300; slices that began at 00:16:40 (slice 0), 00:31:40 (slice 3), 00:36:40 (slice 4) UTC"
        in found["node2"].observed
    )
    assert "out_of_sequence 600" in found["node2"].observed
    # A slice with the bad port shows nothing about its partner.
    assert found["node1"].observed.startswith("none in 5.9e+10 packets of 59 slices")
    assert found["node1"].observed.endswith("1 slice with errors of its partner left out")
    assert "Clean and reseat the cable of rail0" in found["node2"].remedy


def test_two_bad_ports_are_both_named() -> None:
    bad = {("node1", "node3"): 90, ("node1", "node4"): 90, ("node1", "node5"): 90, ("node2", "node3"): 90, ("node2", "node4"): 90}
    found = judged(soak(5, bad={**bad, ("node1", "node2"): 90}), hosts=5, limit=0.1)
    assert statuses(found) == [ERROR, ERROR, OK, OK, OK]


def test_errors_with_one_partner_only_may_be_of_either_end() -> None:
    found = judged(soak(bad={("node1", "node4"): 900}))
    assert statuses(found) == [ERROR, OK, OK, ERROR]
    assert "either end may be the cause" in found["node1"].remedy


def test_errors_of_the_cable_are_the_ports_own() -> None:
    found = judged(soak(own={"node3": {"symbol_error": 400, "port_rcv_errors": 100}}))
    assert statuses(found) == [OK, OK, ERROR, OK]
    # One damaged packet raises several counters: they are not added up.
    assert found["node3"].observed.startswith("1200 in 6e+10 packets")


def test_errors_below_the_limit_are_ok_and_an_interval_with_the_limit_is_a_warning() -> None:
    bad = {("node1", "node2"): 20, ("node2", "node3"): 20}
    assert statuses(judged(soak(bad=bad))) == [OK] * 4
    found = judged(soak(bad=bad), limit=0.7)
    assert statuses(found) == [OK, WARNING, OK, OK]
    assert found["node2"].remedy.startswith("The interval includes the limit: soak longer. 1. ")


def test_slices_whose_counters_were_cleared_do_not_count_and_are_named() -> None:
    found = judged(soak(node2={"unknown": "counters were cleared or are full: symbol_error"}))
    assert statuses(found) == [OK] * 4
    assert found["node2"].observed.startswith("none in 5.7e+10 packets of 57 slices")
    assert found["node2"].observed.endswith("; 3 slices not counted: counters were cleared or are full: symbol_error")
    seen = judged(soak(node2={"unknown": "cleared", "errors": {"symbol_error": 5}}))
    assert (seen["node2"].status, statuses(seen).count(OK)) == (WARNING, 3)
    assert seen["node2"].observed.endswith("3 slices not counted: cleared; 15 errors in them")


def test_a_port_that_no_slice_counts_is_unknown() -> None:
    unread = [port for port in soak() if port.host != "node1"]
    unread += [PortSlice(0, 1000.0, "node1", RAIL, "node2", None, None, unknown=NOT_READ)]
    found = judged(unread)
    assert (found["node1"].status, found["node1"].observed) == (UNKNOWN, f"1 slice not counted: {NOT_READ}")
    assert judged([])["node2"].observed == NEVER


def test_failures_of_perftest_are_kept() -> None:
    assert tallies(soak(node1={"failure": "retry_exceeded"}))[RAIL, "node1"].failures == {"retry_exceeded": 3}
    assert tallies([]) == {}
    assert Tally().interval is None


@pytest.mark.parametrize(("names", "word"), [({"port_xmit_discards": 9000}, "PFC and ECN"), ({"packet_seq_err": 9000}, "cable")])
def test_the_remedy_fits_the_counters(names: dict[str, int], word: str) -> None:
    assert word in judged(soak(node2={"errors": names}))["node2"].remedy
