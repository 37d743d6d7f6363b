# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What has answered a fault: only what is worse than before counts, on the right host and rail; all else is other or false."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._drill.turned import (
    Alert,
    Answers,
    Turned,
    added,
    answers_of,
    judge_answers,
    ranks,
    summary,
    verdict_words,
    worse,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import FLEET

RAIL = "rail 1 (rail1, 0000:21:00.0, ens1)"
STATE = Turned("node1", "link.state", RAIL, "error", 11.6)


def finding(status: str, check: str = "link.state", host: str = "node1", **more: str) -> Finding:
    return Finding("link", check, host, RAIL, status, "seen", "expected", **more)


def test_only_what_is_worse_than_before_has_turned() -> None:
    before = ranks([finding("ok"), finding("warning", "link.rate"), finding("error", "link.width"), finding("not_applicable", "link.mtu")])
    now = [finding("error"), finding("error", "link.rate"), finding("error", "link.width"), finding("unknown", "link.mtu")]
    turned = worse(before, [*now, finding("warning", "link.flaps"), finding("error", host="node2", silenced_by="ops")], 11.62)
    assert [(each.check, each.status, each.seconds) for each in turned] == [
        ("link.state", "error", 11.6),
        ("link.rate", "error", 11.6),
        ("link.mtu", "unknown", 11.6),
        ("link.flaps", "warning", 11.6),
    ]


def test_what_was_silenced_before_and_no_longer_is_has_turned() -> None:
    before = ranks([finding("error", silenced_by="ops")])
    assert len(worse(before, [finding("error")], 1)) == 1


def test_an_answer_keeps_the_time_at_which_it_was_first_seen() -> None:
    later = replace(STATE, seconds=20.0)
    assert added([STATE], [later, replace(later, check="link.rate")]) == [STATE, replace(later, check="link.rate")]


def test_the_expected_check_of_this_rail_has_seen_the_fault_and_all_else_is_other_or_false() -> None:
    answers = Answers(
        [replace(STATE, subject="rail 0 (rail0, ens0)"), replace(STATE, check="link.rate"), STATE, replace(STATE, host="node2")],
        [
            Alert("RdmaPortDown", "node1", "rail0", 40.0),
            Alert("RdmaPortDown", "node2", None, 41.0),
            Alert("RdmaPortDown", "node1", "rail1", 47.2),
        ],
        asked=True,
        quiet=8.0,
        resolved=62.0,
    )
    verdict = judge_answers("node1", "rail1", ("link.state",), answers)
    assert (verdict.gate, verdict.alert) == (STATE, answers.alerts[2])
    assert verdict.others == ["link.state", "link.rate"]
    assert verdict.false == [f"link.state of node2: {RAIL}", "alert RdmaPortDown of node2"]
    assert verdict_words("rail_down node1 rail1", ("link.state",), verdict, answers) == (
        "rail_down node1 rail1: gate link.state (error) after 12 s; alert RdmaPortDown after 47 s, ended after 62 s; the gates were quiet "
        f"8 s after the end; also seen: link.state, link.rate; FALSE on other hosts: link.state of node2: {RAIL}, "
        "alert RdmaPortDown of node2."
    )


def test_a_finding_of_the_fleet_sees_the_fault_and_accuses_nobody() -> None:
    tie = Turned(FLEET, "alike.gid_index", RAIL, "warning", 8.0)
    verdict = judge_answers("node1", "rail1", ("alike.gid_index",), Answers([tie, replace(tie, host="plane a", check="fabric.bgp")]))
    assert (verdict.gate, verdict.others, verdict.false) == (tie, ["fabric.bgp"], [])


def test_a_name_that_contains_the_rails_name_is_another_rail() -> None:
    answers = Answers([replace(STATE, subject="rail 10 (rail10, ens10)")])
    assert judge_answers("node1", "rail1", ("link.state",), answers).gate is None


def words(answers: Answers) -> str:
    return verdict_words("f", ("a", "b"), judge_answers("node1", "rail1", ("link.state",), answers), answers)


def test_what_was_not_seen_not_asked_and_not_read() -> None:
    assert words(Answers()) == "f: NOT SEEN by a gate (a or b); alert not asked."
    assert words(Answers([STATE], asked=True)) == "f: gate link.state (error) after 12 s; NO ALERT."
    assert words(Answers([STATE], asked=True, problem="refused")) == "f: gate link.state (error) after 12 s; alert unknown: refused."
    fired = Answers([STATE], [Alert("A", "node1", None, 5.0)], asked=True)
    assert words(fired) == "f: gate link.state (error) after 12 s; alert A after 5 s, did not end in time."


def test_the_count_of_all_faults() -> None:
    seen, alert = Answers([STATE], [Alert("A", "node1", None, 47.0)], asked=True), Answers([replace(STATE, host="node2")], asked=True)
    verdicts = {name: (judge_answers("node1", "rail1", ("link.state",), each), each) for name, each in (("a", seen), ("b", alert))}
    assert summary(verdicts) == (
        "1 of 2 faults were seen by a gate, the slowest after 12 s; 1 of 2 by an alert, the slowest after 47 s; 1 false answers on other "
        "hosts. Draining was not asked."
    )
    assert summary({}) == "No fault was made."
    quiet = Answers([STATE])
    assert summary({"a": (judge_answers("node1", "rail1", ("link.state",), quiet), quiet)}) == (
        "1 of 1 faults were seen by a gate, the slowest after 12 s; alerts were not asked; none false. Draining was not asked."
    )


def test_the_record_of_answers_is_read_again() -> None:
    answers = Answers([STATE], [Alert("A", "node1", None, 1.0)], asked=True, problem="p", quiet=1.0, resolved=2.0, left=[STATE])
    assert answers_of(json.loads(json.dumps(asdict(answers)))) == answers
