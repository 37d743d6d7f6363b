# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, OK, UNKNOWN, WARNING, Finding, stopping
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.policy import apply_rules, decide

TODAY = date(2026, 11, 21)
SILENCE = {"severity": None, "threshold": None, "silenced_by": "ada", "reason": "cable ordered", "until": "2026-11-21"}


def finding(status: str, check: str = "link.state") -> Finding:
    return Finding("link", check, "node1", "rail 0", status, "DOWN", "ACTIVE", "Look at the cable.")


RULES = [
    (ERROR, {"severity": "warning"}, WARNING),
    (WARNING, {"severity": "error"}, ERROR),
    (UNKNOWN, {"severity": "warning"}, UNKNOWN),
    (OK, {"severity": "error"}, OK),
    (ERROR, {"severity": None}, ERROR),
]


@pytest.mark.parametrize(("status", "rule", "expected"), RULES)
def test_severity(status: str, rule: dict[str, Any], expected: str) -> None:
    assert [each.status for each in apply_rules([finding(status)], {"link.state": rule}, TODAY)] == [expected]


def test_a_rule_touches_its_own_check_only() -> None:
    other = finding(ERROR, "link.layer")
    assert apply_rules([other], {"link.state": SILENCE}, TODAY) == [other]


@pytest.mark.parametrize("status", [ERROR, UNKNOWN])
def test_a_silence_holds_through_its_last_day_and_says_who_and_why(status: str) -> None:
    silenced = apply_rules([finding(status)], {"link.state": SILENCE}, TODAY)
    assert stopping(silenced) == []
    assert silenced[0].status == status
    assert silenced[0].silenced_by == "ada until 2026-11-21: cable ordered"


def test_a_silence_that_is_over_silences_nothing_and_is_reported() -> None:
    over = apply_rules([finding(ERROR)], {"link.state": SILENCE}, date(2026, 11, 22))
    assert [each.observed for each in stopping(over)] == ["DOWN (silenced by ada until 2026-11-21, which has passed)"]


def test_what_is_well_is_not_silenced() -> None:
    assert apply_rules([finding(OK)], {"link.state": SILENCE}, TODAY)[0].silenced_by is None


STOP = {"policy": "stop", "max_failed_percent": None}
QUARANTINE = {"policy": "quarantine", "max_failed_percent": 10}
REPORT = {"policy": "report", "max_failed_percent": None}
#: (settings, hosts, hosts out, check mode, stops)
DECISIONS = [
    (STOP, 1000, 0, False, False),
    (STOP, 1000, 1, False, True),
    (STOP, 1000, 1, True, False),
    (QUARANTINE, 10, 1, False, False),
    (QUARANTINE, 10, 2, False, True),
    (QUARANTINE, 10, 2, True, False),
    ({"policy": "quarantine", "max_failed_percent": 100}, 3, 3, False, True),
    ({"policy": "quarantine", "max_failed_percent": 0}, 10, 1, False, True),
    (REPORT, 10, 10, False, False),
    ({"policy": "stop", "max_failed_percent": 50}, 10, 1, False, True),
]


@pytest.mark.parametrize(("settings", "hosts", "out", "check_mode", "stops"), DECISIONS)
def test_decide(settings: dict[str, Any], hosts: int, out: int, check_mode: bool, stops: bool) -> None:
    decision = decide("link", settings, hosts, {f"node{i}": "link.state: DOWN" for i in range(out)}, check_mode=check_mode)
    assert decision.stops is stops
    assert ("The build stops" in decision.words) is stops


def test_the_words_name_the_hosts_that_are_out() -> None:
    decision = decide("link", QUARANTINE, 10, {"node7": "link.state: DOWN"}, check_mode=False)
    assert decision.words == (
        "link gate: 1 of 10 hosts do not pass (10 %); policy quarantine allows 10 %. The build continues without node7."
    )


def test_the_words_say_why_no_host_is_stopped() -> None:
    out = {"node7": "link.state: DOWN"}
    share = "link gate: 1 of 10 hosts do not pass (10 %): node7"
    assert decide("link", STOP, 10, out, check_mode=True).words == f"{share}; check mode stops no host."
    assert decide("link", QUARANTINE, 10, out, check_mode=True).words == f"{share}; check mode stops no host."
    assert decide("link", REPORT, 10, out, check_mode=False).words == f"{share}; the policy report stops no host."
    planes = {"plane a": "fabric.link: slow", "plane b": "fabric.link: slow"}
    assert decide("fabric", STOP, 10, {}, planes, check_mode=True).words == (
        "fabric gate: plane a, plane b do not pass; check mode stops no host."
    )


PLANES = {"plane default": "fabric.cabling: spine1 is gone"}


@pytest.mark.parametrize(("settings", "stops"), [(STOP, True), (QUARANTINE, True), (REPORT, False)])
def test_a_plane_is_beyond_any_limit_and_no_host(settings: dict[str, Any], stops: bool) -> None:
    decision = decide("fabric", settings, 100, {}, PLANES, check_mode=False)
    assert (decision.stops, decision.out, decision.planes) == (stops, {}, PLANES)
    end = "excluding hosts cannot fix that. The build stops." if stops else "the policy report stops no host."
    assert decision.words == f"fabric gate: plane default does not pass; {end}"
    assert not decide("fabric", settings, 100, {}, PLANES, check_mode=True).stops


def test_the_words_name_planes_and_hosts() -> None:
    words = decide("fabric", QUARANTINE, 10, {"node7": "fabric.link: slow"}, PLANES, check_mode=False).words
    assert words.startswith("fabric gate: plane default does not pass, nor do 1 of 10 hosts: node7; excluding hosts cannot fix that")
