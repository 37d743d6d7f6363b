# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The outage of a step, from what two streams report, and what cannot be an outage."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.plugin_utils._drill.judge import Outage, Received, judge_step, outage_words, parse_result

#: As two hosts of a network of namespaces reported, of 14 flows; the holes are cut.
ANSWER: dict[str, Any] = {
    "packets": 31402, "flows": 14, "lost": 738, "hole_count": 9, "holes": [[3, 82, 4120.5, 819.9], [5, 81, 4130.2, 811.2]],
    "unfinished": [], "silent_ms": 8.1, "rounds": 2301, "refused": 0, "pause_ms": 20.1,
}  # fmt: skip


def received(**changes: Any) -> Received:
    return parse_result({**ANSWER, **changes})


def judged(one: Received | str, other: Received | str, hold_ms: float = 12000, ended_ms: float = 15000) -> Outage:
    return judge_step({"host1": one, "host2": other}, hold_ms, ended_ms, 14)


def test_the_longest_hole_of_both_directions_counts() -> None:
    outage = judged(received(), received(holes=[[1, 90, 4100.0, 890.0], [1, 3, 16000.0, 30.0]]))
    assert (outage.problem, outage.fault_ms, outage.restore_ms, outage.healed) == ("", 890.0, 30.0, True)
    assert (outage.flows, outage.of_flows, outage.lost) == (3, 28, 1476)
    assert outage_words("silence leaf1 swp1", outage) == (
        "silence leaf1 swp1: traffic stopped for 0.89 s, and 0.03 s after the fault was ended; 1476 packets of 3 of 28 flows were lost; "
        "precision 20 ms."
    )


def test_a_hole_that_lasts_as_long_as_the_fault_has_not_healed() -> None:
    outage = judged(received(holes=[[1, 1180, 4100.0, 11800.0]]), received())
    assert (outage.problem, outage.healed) == ("", False)
    assert (
        outage_words("cut leaf1 swp1", outage)
        == "cut leaf1 swp1: traffic stopped for 11.80 s, and came back only when the fault was ended."
    )


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ("its stream has no result", "host2: its stream has no result"),
        (received(packets=0, flows=0, holes=[], silent_ms=None), "host2 received no packet, not even before the fault"),
        (received(flows=9), "host2 received 9 of 14 flows"),
        (received(unfinished=[[3, 4100.0]]), "traffic to host2 had not come back when the stream ended"),
        (received(silent_ms=5000.0), "traffic to host2 had not come back when the stream ended"),
    ],
)
def test_what_is_no_measurement(other: Received | str, words: str) -> None:
    outage = judged(received(), other)
    assert words in outage.problem
    assert outage_words("cut leaf1 swp1", outage).startswith("cut leaf1 swp1: not measured: ")


def test_a_fault_without_a_lost_packet_is_not_a_short_outage() -> None:
    late = received(holes=[[1, 3, 16000.0, 30.0]])
    assert "no packet was lost: no flow uses this port" in judged(received(holes=[]), late).problem


@pytest.mark.parametrize(
    "changes",
    [
        {"packets": -1}, {"packets": True}, {"packets": "many"}, {"holes": "x"}, {"holes": [[1, 2, 3]]}, {"holes": [[1, 2, 3, "4"]]},
        {"holes": [[0, 1, 1.0, 1.0]] * 2001}, {"holes": [[0, 1, 1.0, float("inf")]]}, {"unfinished": None}, {"silent_ms": float("nan")},
    ],
)  # fmt: skip
def test_another_form_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ParseError, match="not the result of a stream"):
        received(**changes)


@pytest.mark.parametrize("name", ["packets", "flows", "lost", "holes", "unfinished", "silent_ms", "rounds", "pause_ms"])
def test_a_missing_part_is_refused(name: str) -> None:
    with pytest.raises(ParseError):
        parse_result({key: value for key, value in ANSWER.items() if key != name})
