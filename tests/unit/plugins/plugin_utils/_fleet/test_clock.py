# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Clocks side by side: the odd one is named, and what reading them leaves uncertain accuses no host."""

from __future__ import annotations

import random
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._fleet.clock import check_clocks
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import FLEET
from tests.unit.builders.known import known_of

NOW = 1_800_000_000.0
HOURS = 3600.0


def host(ahead: float | None = 0.0, took: float = 1.0, at: float = 0.5, limit: float | None = None) -> dict[str, Any]:
    """A host whose clock is ahead of the control node's, read at some part of the time that the reading took."""
    clock = None if ahead is None else {"clock_seconds": NOW + took * at + ahead, "between_seconds": [NOW, NOW + took]}
    checks = {} if limit is None else {"host.clock": {"threshold": limit}}
    return {"intent": {"checks": checks}, "facts": {"time": clock}}


def found(*hosts: dict[str, Any]) -> list[Finding]:
    """One finding a host, in order."""
    by_host = check_clocks(known_of({f"node{number}": each for number, each in enumerate(hosts, start=1)}))
    assert {len(findings) for findings in by_host.values()} == {1}
    findings = [finding for (finding,) in by_host.values()]
    assert [(finding.stage, finding.check, finding.host) for finding in findings] == [
        ("host", "host.clock", f"node{number}") for number in range(1, len(hosts) + 1)
    ]
    return findings


def statuses(*hosts: dict[str, Any]) -> list[str]:
    return [finding.status for finding in found(*hosts)]


@pytest.mark.parametrize(
    ("ahead", "words"), [(3 * HOURS, "10799.5 s (3.0 h) ahead of"), (-300.0, "299.5 s (5 min) behind"), (2.0, "1.5 s ahead of")]
)
def test_one_clock_among_good_ones_is_named_with_its_offset(ahead: float, words: str) -> None:
    good = host(took=0.5)
    findings = found(good, good, host(ahead, took=0.5), good)
    assert [finding.status for finding in findings] == ["ok", "ok", "error", "ok"]
    assert findings[2].observed == f"{words} the other hosts"
    assert findings[2].expected == "within 1 s of the other hosts"
    assert findings[2].remedy.startswith("1. On node3, run `date` and `chronyc tracking`")


def test_of_two_hosts_the_control_node_reports_which_is_off() -> None:
    assert statuses(host(), host(3 * HOURS)) == ["ok", "error"]
    # It is not believed against two hosts that agree.
    good, late = found(host(-3 * HOURS), host(-3 * HOURS))
    assert (good.status, late.status) == ("ok", "ok")
    assert good.observed.startswith("agrees with the other hosts; the control node is 10799")
    assert good.observed.endswith("s (3.0 h) ahead of them")


def test_without_a_majority_the_fleet_gets_a_warning_and_no_host_is_accused() -> None:
    hosts = [host(), host(3 * HOURS, took=0.5), host(5 * HOURS), host(-7 * HOURS)]
    by_host = check_clocks(known_of({f"node{number}": each for number, each in enumerate(hosts, start=1)}))
    (finding,) = by_host.pop(FLEET)
    assert [each.status for findings in by_host.values() for each in findings] == ["not_applicable"] * 4
    assert (finding.host, finding.status, finding.subject) == (FLEET, "warning", "clocks")
    words = "no more than half of the clocks agree; against the control node: node1 agrees with it, node2 10799.8 s (3.0 h) ahead of it, "
    assert finding.observed.startswith(words)
    alone = check_clocks(known_of({"node1": host(3 * HOURS)}))
    assert {name: [each.status for each in findings] for name, findings in alone.items()} == {
        "node1": ["not_applicable"],
        FLEET: ["warning"],
    }


def test_a_slow_reading_accuses_nobody() -> None:
    # 8 s for the reading, the clock read at its end: it looks 4 s ahead, and may be right.
    assert statuses(host(), host(), host(took=8.0, at=1.0), host(took=8.0, at=0.0)) == ["ok"] * 4
    assert statuses(host(), host(), host(20.0, took=8.0, at=1.0)) == ["ok", "ok", "error"]


def test_random_readings_of_right_clocks_are_well_and_a_wrong_one_is_found() -> None:
    draw = random.Random(23)
    for _fleet in range(300):
        hosts = [host(draw.uniform(-0.2, 0.2), draw.uniform(0.3, 12.0), draw.random()) for _host in range(draw.randint(2, 9))]
        assert set(statuses(*hosts)) == {"ok"}
        off = draw.choice([-1, 1]) * draw.uniform(30, 20000)
        assert statuses(*hosts, host(off, draw.uniform(0.3, 12.0), draw.random())) == ["ok"] * len(hosts) + ["error"]


def test_a_site_has_its_own_limit() -> None:
    assert statuses(host(), host(), host(3.0, limit=10)) == ["ok", "ok", "ok"]
    assert statuses(host(), host(), host(3.0, limit=0.5)) == ["ok", "ok", "error"]


@pytest.mark.parametrize("clock", [None, {}, {"clock_seconds": None, "between_seconds": [NOW, NOW]}, {"clock_seconds": NOW}])
def test_a_clock_that_was_not_read_is_unknown(clock: Any) -> None:
    unread = {"intent": {"checks": {}}, "facts": {"time": clock}}
    assert statuses(host(), unread, host()) == ["ok", "unknown", "ok"]


def test_a_host_of_which_nothing_is_known_is_another_checks() -> None:
    hosts = {"node1": host(), "node2": {"intent": None, "facts": None}, "node3": {"intent": {"checks": {}}, "facts": None}}
    by_host = check_clocks(known_of(hosts))
    assert (by_host["node2"], by_host["node3"]) == ([], [])
