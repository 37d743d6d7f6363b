# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The line that says how far a sweep is, and where it comes from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.watch import PairWatch, Tally
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder

FULL = {"kind": "full"}
NOW = 5000.0


def plan(
    hosts: int = 4, schedule: dict[str, Any] | None = None, tests: int = 1, missing: int = 0, command: str = "ib_write_bw"
) -> dict[str, Any]:
    """Two rails; the first host has no endpoint on the second one if missing is 1."""
    addresses = [f"192.168.0.{number}" for number in range(hosts)]
    return {
        "hosts": [f"node{number}" for number in range(hosts)],
        "schedule": schedule or FULL,
        "tests": [{"name": f"t{number}", "command": command} for number in range(tests)],
        "profiles": [{"device": "mlx5_0"}],
        "rails": [
            {"name": "rail0", "addresses": addresses, "profiles": [0] * hosts},
            {
                "name": "rail1",
                "addresses": [*[None] * missing, *addresses[missing:]],
                "profiles": [*[None] * missing, *[0] * (hosts - missing)],
            },
        ],
    }


def good(rail: int, number: int, server: int, client: int, value: float = 100.0) -> str:
    return json.dumps([rail, number, server, client, 0, 0, value, 6.2, 0.01])


def bad(rail: int, number: int, server: int, client: int, role: int) -> str:
    return json.dumps([rail, number, server, client, 0, role, None, 0.0, 5.0, "dead", "it does not answer"])


def alone(count: int) -> list[str]:
    return [good(0, number, 1, 0) for number in range(count)]


@pytest.mark.parametrize(
    ("schedule", "hosts", "missing", "expected"),
    [
        (FULL, 4, 0, 12),
        (FULL, 5, 1, 16),
        (FULL, 1, 1, 0),
        ({"kind": "ring"}, 5, 1, 9),
        ({"kind": "ring"}, 2, 1, 2),
        ({"kind": "sample", "partners": 2, "seed": 1}, 6, 1, 10),
        ({"kind": "against", "new": 2}, 6, 1, 12),
        ({"kind": "meetings", "rails": [[[[0, 1], [2, 3]], [[1, 0]]], []]}, 4, 0, 3),
    ],
)
def test_what_is_planned(schedule: dict[str, Any], hosts: int, missing: int, expected: int) -> None:
    found = Tally(plan(hosts, schedule, missing=missing, tests=2))
    for host in range(hosts):
        found.add(host, [])
    assert found.line(NOW) == f"pairs: 0 of {2 * expected} measured"


def tally(lines: list[str], asked: int = 4, **options: Any) -> Tally:
    """All lines come from the first host; the others that were asked have none."""
    found = Tally(plan(**options))
    found.add(0, lines)
    for host in range(1, asked):
        found.add(host, [])
    return found


def test_measured_failed_and_slow_are_counted() -> None:
    lines = [*alone(5), good(0, 7, 2, 3, 49.0), good(1, 0, 2, 3, 1.0), bad(0, 9, 1, 2, 0), bad(0, 9, 1, 2, 1), "[", "", "{}"]
    assert tally(lines, tests=2).line(NOW) == "pairs: 7 of 24 measured, 1 failed, 1 slow so far"


@pytest.mark.parametrize(
    ("command", "values", "slow"),
    [
        ("ib_write_bw", [100, 100, 100, 100, 40], 1),
        ("ib_write_bw", [100, 100, 100, 40], 0),
        ("ib_write_bw", [100, 100, 100, 100, 400], 0),
        ("ib_write_bw", [100, 100, 100, 100, 60], 0),
        ("ib_write_lat", [2, 2, 2, 2, 5], 1),
        ("ib_write_lat", [2, 2, 2, 2, 0.5], 0),
    ],
)
def test_slow_is_half_of_the_median_once_there_are_five(command: str, values: list[float], slow: int) -> None:
    lines = [good(0, number, 1, 0, value) for number, value in enumerate(values)]
    expected = f", {slow} slow so far" if slow else " measured"
    assert tally(lines, command=command).line(NOW).endswith(expected)


def test_the_time_that_is_left_is_that_of_the_last_results() -> None:
    found = tally(alone(2))
    assert "left" not in found.line(NOW)
    assert "left" not in found.line(NOW + 10)
    found.add(0, alone(2))
    assert found.line(NOW + 20) == "pairs: 4 of 12 measured, about 80 s left"
    found.add(0, alone(8))
    assert found.line(NOW + 30) == "pairs: 12 of 12 measured"


def test_hosts_that_were_not_asked_are_taken_to_be_as_far_as_the_others() -> None:
    one_of_three_rounds = [good(0, 0, 1, 0), good(1, 0, 1, 0)]
    assert tally(one_of_three_rounds, asked=1).line(NOW) == "pairs: about 4 of 12 measured"
    assert tally(one_of_three_rounds, asked=4).line(NOW) == "pairs: 2 of 12 measured"


def test_a_line_of_a_rail_or_test_that_the_plan_does_not_have_hides_nothing() -> None:
    other_test = json.dumps([0, 0, 1, 0, 9, 0, 100.0, 6.2, 0.01])
    assert tally([good(9, 0, 1, 0), other_test, *alone(2)]).line(NOW).startswith("pairs: 2 of 12 measured")


def watched(folder: Path, name: str = "pairs", **options: Any) -> RunFolder:
    run = RunFolder(folder)
    run.write_json(f"{name}/plan.json", plan(**options))
    return run


def test_only_what_is_new_is_read_and_only_whole_lines(tmp_path: Path) -> None:
    run = watched(tmp_path, hosts=2)
    watch = PairWatch(run)
    assert watch.line(NOW) is None
    first, second = good(0, 0, 1, 0), good(0, 1, 0, 1)
    run.append_lines("pairs/node0.jsonl", [])
    run.append_lines("pairs/node1.jsonl", [first])
    with (tmp_path / "pairs/node0.jsonl").open("a") as stream:
        stream.write(second[:20])
        stream.flush()
        assert watch.line(NOW) == watch.line(NOW) == "pairs: 1 of 4 measured"
        stream.write(second[20:] + "\n")
    assert watch.line(NOW + 10) == "pairs: 2 of 4 measured, about 20 s left"


def test_the_sweep_that_was_planned_last_is_watched(tmp_path: Path) -> None:
    watched(tmp_path, hosts=4)
    run = watched(tmp_path, "pairs/again", hosts=3)
    run.append_lines("pairs/again/node0.jsonl", [])
    assert PairWatch(run).line(NOW) == "pairs: about 0 of 6 measured"


@pytest.mark.parametrize("text", [None, "{", "[]", "{}", '{"hosts": ["node0"]}'])
def test_without_a_plan_that_can_be_read_nothing_is_reported(tmp_path: Path, text: str | None) -> None:
    run = RunFolder(tmp_path)
    if text is not None:
        run.write("pairs/plan.json", text)
    run.append_lines("pairs/node0.jsonl", [])
    assert PairWatch(run).line(NOW) is None
