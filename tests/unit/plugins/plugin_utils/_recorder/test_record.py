# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Records of hosts on one time axis, in words, and what a host may not send."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.plugin_utils._recorder.record import Change, Clock, HostRecord, from_stored, read_answer
from ansible_collections.rdma.cluster.plugins.plugin_utils._recorder.text import changed_text
from ansible_collections.rdma.cluster.plugins.plugin_utils._recorder.words import bad_counters, change_words, outages

T = 1795442700.0
RAILS = {"0000:3d:00.0": "rail1", "mlx5_0": "rail1", "ens1": "rail1"}


def answer(*events: dict[str, Any], **more: Any) -> dict[str, Any]:
    """What recorder_read of a host whose clock is 100 s ahead answers."""
    tree = {"recorded": True, "since": T - 500, "until": T + 400, "middle": T + 100, "events": list(events), "gaps": [], "damaged": 0}
    return {**tree, "cut": False, "journal": None, "now": {}, **more}


def event(**more: Any) -> dict[str, Any]:
    return {"kind": "carrier", "of": "ens1", "was": "up", "now": "no carrier", "time": T + 62.0, "earliest": T + 60.0, **more}


def change(kind: str, of: str, was: Any, now: Any, time: float = T, **more: Any) -> Change:
    return Change(time, time - 2, kind, of, was, now, **more)


def test_the_offset_of_a_host_s_clock_is_taken_off() -> None:
    record = read_answer("node1", answer(event(), gaps=[[T + 10, T + 20]]), Clock(100.0, 0.01))
    assert (record.since, record.until, record.middle) == (T - 600, T + 300, T)
    assert (record.changes[0].time, record.changes[0].earliest, record.gaps) == (T - 38, T - 40, [(T - 90, T - 80)])
    assert from_stored(json.loads(json.dumps(record.to_dict()))) == replace(record, gaps=[(T - 90, T - 80)])


@pytest.mark.parametrize(
    "tree",
    [
        None,
        [],
        answer(event(kind="evil")),
        answer(event(time="now")),
        answer(event(time=float("nan"))),
        answer(event(now=[1])),
        answer(event(now={"a": {"b": 1}})),
        answer(event(now=2**70)),
        answer(*[event()] * 5001),
        answer(gaps=[[1]]),
        answer(since=True),
        answer(journal={"lines": [{}], "cut": False}),
        answer(journal=[]),
    ],
)
def test_an_answer_of_another_form_is_refused(tree: Any) -> None:
    with pytest.raises(ParseError):
        read_answer("node1", tree, Clock(0.0, 0.0))


def test_texts_of_a_host_reach_no_terminal_as_they_are() -> None:
    record = read_answer("node1", answer(event(of="ens1\x1b[31m", now="up\n\u202e" + "x" * 999)), Clock(0.0, 0.0))
    assert record.changes[0].of == "ens1?[31m"
    assert str(record.changes[0].now).isprintable()
    assert len(str(record.changes[0].now)) <= 200


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (change("carrier", "ens1", "up", "no carrier"), "rail1 (ens1) lost its carrier"),
        (change("carrier", "ens1", "no carrier", "up"), "rail1 (ens1) has carrier again"),
        (change("carrier", "ens1", "up", "down"), "rail1 (ens1) was set down"),
        (change("carrier", "ens1 losses", 3, 5), "rail1 (ens1) lost its carrier 2 times, and had it again before the next reading"),
        (change("state", "mlx5_0/1", "4: ACTIVE", "1: DOWN"), "port state of rail1 (mlx5_0/1): 4: ACTIVE → 1: DOWN"),
        (change("interface", "renamed", None, "0000:3d:00.0", pci="0000:3d:00.0"), "interface rail1 (renamed) appeared"),
        (change("device", "mlx5_0", "0000:3d:00.0", None), "RDMA device rail1 (mlx5_0) vanished"),
        (change("module", "mlx5_ib", "loaded", None), "module mlx5_ib was unloaded"),
        (change("kernel", "kernel", "6.1", "6.8"), "kernel: 6.1 → 6.8"),
        (change("counters", "mlx5_0/1", {"symbol_error": 1}, {"symbol_error": 1501}), "rail1 (mlx5_0/1): symbol_error +1,500"),
        (change("gid", "mlx5_0/1", {"3": "fe80::1"}, {"3": None}), "GID table of rail1 (mlx5_0/1): index 3 fe80::1 → none"),
        (change("irq_affinity", "ens1", {"7": "0"}, {"7": "1"}, more=3), "4 interrupts of rail1 (ens1) moved to other CPUs"),
        (change("boot", "recorder", "a", "b"), "the host booted"),
        (change("clock_step", "recorder", None, "+3600.000 s"), "the clock was stepped by +3600.000 s"),
    ],
)
def test_a_change_in_words(given: Change, words: str) -> None:
    assert change_words(given, RAILS) == words


def test_outages_have_a_start_and_an_end() -> None:
    found = outages(
        [
            change("carrier", "ens1", "up", "no carrier", T),
            change("state", "mlx5_0/1", "4: ACTIVE", "1: DOWN", T + 1),
            change("carrier", "ens1", "no carrier", "up", T + 4),
            change("carrier", "ens2 losses", 1, 2, T + 9),
        ],
        RAILS,
    )
    assert [(each.of, each.start[1] - T, each.end and each.end - T) for each in found] == [
        ("rail1 (ens1)", 0.0, 4.0),
        ("rail1 (mlx5_0/1)", 1.0, None),
        ("ens2", 9.0, 9.0),
    ]


def test_only_counters_of_faults_are_bad() -> None:
    was, now = {"symbol_error": 1, "out_of_sequence": 1}, {"symbol_error": 3, "out_of_sequence": 9}
    assert bad_counters(change("counters", "mlx5_0/1", was, now)) == ["symbol_error +2"]


def test_the_text_of_a_fleet_is_one_sorted_axis_with_what_is_unknown() -> None:
    one = HostRecord("node1", True, T - 600, T, Clock(100.0, 0.01), [change("kernel", "kernel", "6.1", "6.8", T - 5)], rails=RAILS)
    down = change("carrier", "ens1", "up", "no carrier", T - 38)
    two = HostRecord("node2", True, T - 600, T, Clock(-0.2, 0.004), [down], [(T - 600, T - 500)])
    three = HostRecord("node3", False, T - 600, T, Clock(None, None))
    text = changed_text([one, replace(two, rails=RAILS), three], T - 600, T)
    assert text.splitlines() == [
        "between 2026-11-23 13:55:00 UTC and 2026-11-23 14:05:00 UTC:",
        "2 changes on 2 of 3 hosts: carrier: node2; kernel: node1",
        "clocks: at most +100.000 s off the control node's (node1), measured to ± 0.010 s, corrected",
        "! The clock of node3 was not measured: its times are not corrected.",
        "! unknown: there is no record on node3. Set `rdma_recorder: {manage: true}` and run the host stage.",
        "! unknown: node2 recorded nothing from 2026-11-23 13:55:00 UTC to 13:56:40.000",
        "",
        "EVENTS (UTC, by the clock of the control node)",
        "  14:04:22.000 (-2.0 s)   node2             rail1 (ens1) lost its carrier",
        "  14:04:55.000 (-2.0 s)   node1             kernel: 6.1 → 6.8",
    ]
