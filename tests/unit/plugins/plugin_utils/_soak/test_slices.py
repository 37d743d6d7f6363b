# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lines of slices: what is read back, also from a file whose writer was killed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.plugin_utils._soak.slices import (
    NO_PACKETS,
    NO_TRAFFIC,
    NONE_KNOWN,
    NOT_READ,
    PortSlice,
    SliceEnd,
    ports_of,
    read_slices,
    to_lines,
)

PLAN = {
    "hosts": ["node1", "node2", "node3"],
    "profiles": [{"device": "mlx5_0", "port": 1}],
    "rails": [{"name": "rail0", "addresses": ["10.0.0.1", "10.0.0.2", "10.0.0.3"], "profiles": [0, 0, 0]}],
    "schedule": {"kind": "meetings", "rails": [[[[0, 1]]]]},
}


def read(**changes: Any) -> dict[str, Any]:
    """What a host counts on rail0 in a quiet slice, with changes."""
    quiet = {"seconds": 12.5, "risen": {}, "packets": {"sent": 600, "received": 400}, "counted": 9, "uncounted": []}
    return {"rail0": {**quiet, **changes}}


def lines_of(number: int, *hosts: str) -> list[str]:
    ports = [PortSlice(number, 100.0 + number, host, "rail0", "node9", 12.5, 1000, {"symbol_error": 2}) for host in hosts]
    return to_lines(ports, SliceEnd(number, 100.0 + number, 30.0))


def test_what_was_written_is_read_back() -> None:
    found = read_slices([[*lines_of(0, "node1", "node2"), *lines_of(1, "node1")]])
    assert [(each.number, each.host, each.errors) for each in found.ports] == [
        (0, "node1", {"symbol_error": 2}),
        (0, "node2", {"symbol_error": 2}),
        (1, "node1", {"symbol_error": 2}),
    ]
    assert (found.seconds, found.next_number) == (60.0, 2)


def test_a_slice_whose_writer_was_killed_is_measured_again_and_counts_once() -> None:
    killed = [*lines_of(0, "node1"), *lines_of(1, "node1", "node2")[:-1], lines_of(1, "node3")[0][:40]]
    found = read_slices([killed])
    assert (len(found.ports), found.next_number, found.seconds) == (1, 1, 30.0)
    found = read_slices([killed, lines_of(1, "node4")])
    assert [(each.number, each.host) for each in found.ports] == [(0, "node1"), (1, "node4")]


@pytest.mark.parametrize(
    "line",
    ["null", "[]", '{"number": 1}', '{"number": -1, "at": 1, "lasted_seconds": 1}', '{"number": true, "at": 1, "lasted_seconds": 1}',
     lines_of(0, "node1")[0].replace("1000", '"many"'), lines_of(0, "node1")[0].replace('"node9"', "9")],
)  # fmt: skip
def test_a_line_of_another_form_is_refused(line: str) -> None:
    with pytest.raises(ParseError, match="not a line of a soak"):
        read_slices([[line]])


def ports(counters: dict[str, Any], results: dict[str, list[str]] | None = None) -> dict[str, PortSlice]:
    return {each.host: each for each in ports_of(3, 100.0, PLAN, counters, results or {})}


def test_each_port_that_met_a_partner_has_a_line() -> None:
    found = ports({"node1": read(risen={"out_of_sequence": 4, "np_cnp_sent": 7}), "node2": read(), "node3": read()})
    assert found == {
        "node1": PortSlice(3, 100.0, "node1", "rail0", "node2", 12.5, 1000, {"out_of_sequence": 4}),
        "node2": PortSlice(3, 100.0, "node2", "rail0", "node1", 12.5, 1000),
    }


@pytest.mark.parametrize(
    ("counters", "why"),
    [
        (None, NOT_READ),
        ({}, NOT_READ),
        (read(counted=0), NONE_KNOWN),
        (read(uncounted=["symbol_error"]), "counters were cleared or are full: symbol_error"),
        (read(packets={"sent": None, "received": 4}), NO_PACKETS),
        (read(packets={"sent": 0, "received": 0}), NO_TRAFFIC),
        ({"rail0": {"seconds": 1.0, "risen": {}, "netdev": None, "priorities": None}}, NONE_KNOWN),
    ],
)
def test_counters_that_do_not_show_all_errors_are_unknown_and_not_zero(counters: Any, why: str) -> None:
    found = ports({"node1": counters, "node2": read()})
    assert (found["node1"].unknown, found["node2"].unknown) == (why, "")


def test_a_failed_transfer_is_noted_for_the_host_that_reports_it_about_itself() -> None:
    failed = json.dumps([0, 0, 0, 1, 0, 1, None, 9.0, 0.1, "retry_exceeded", "Failed status 12"])
    found = ports({"node1": read(), "node2": read()}, {"node1": [failed, "garbage"], "node3": [failed]})
    assert (found["node1"].failure, found["node2"].failure) == ("retry_exceeded", "")
