# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""When a line of progress is due, and what it says."""

from __future__ import annotations

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._report.progress import Progress

BEGUN = 1000.0


def under_way(*hosts: str) -> Progress:
    progress = Progress()
    progress.begin("Read the host", BEGUN)
    for host in hosts:
        progress.host_begins(host)
    return progress


def reports(progress: Progress, seconds: range) -> list[int]:
    """The seconds after the beginning at which there was a line, asked once a second."""
    return [second for second in seconds if progress.due(BEGUN + second)]


def test_every_ten_seconds_in_the_first_minute_and_then_every_thirty() -> None:
    assert reports(under_way("node1"), range(200)) == [10, 20, 30, 40, 50, 60, 90, 120, 150, 180]


@pytest.mark.parametrize("seconds", [0.0, 1.0, 9.9])
def test_a_short_task_says_nothing(seconds: float) -> None:
    assert under_way("node1").due(BEGUN + seconds) is None


def test_the_line_names_task_time_and_those_it_waits_for() -> None:
    progress = under_way("node1", "node2", "node3")
    progress.host_ends("node2")
    assert progress.due(BEGUN + 10.4) == "  … Read the host: 10 s, 1 hosts done, waiting for node1, node3"


def test_of_many_hosts_a_few_are_named() -> None:
    progress = under_way(*(f"node{number}" for number in range(1, 9)))
    assert progress.due(BEGUN + 30) == "  … Read the host: 30 s, 0 hosts done, waiting for node1, node2, node3, node4, node5 and 3 more"


def test_nobody_is_waited_for() -> None:
    progress = under_way("node1")
    progress.host_ends("node1")
    assert progress.due(BEGUN + 30) is None
    assert Progress().due(BEGUN) is None


def test_a_host_that_ends_twice_or_never_began_is_not_counted() -> None:
    progress = under_way("node1", "node2")
    for host in ("node1", "node1", "node9"):
        progress.host_ends(host)
    assert progress.due(BEGUN + 10) == "  … Read the host: 10 s, 1 hosts done, waiting for node2"


def test_a_new_task_begins_again() -> None:
    progress = under_way("node1", "node2")
    progress.host_ends("node2")
    assert progress.due(BEGUN + 55)
    progress.begin("Plan the sweep", BEGUN + 58)
    progress.host_begins("node3")
    assert progress.due(BEGUN + 67) is None
    assert progress.due(BEGUN + 68) == "  … Plan the sweep: 10 s, 0 hosts done, waiting for node3"


def test_what_a_watch_sees_stands_in_place_of_the_hosts_waited_for() -> None:
    seen = iter([None, "pairs: 4 of 6 measured"])
    progress = Progress()
    progress.begin("Collect", BEGUN, lambda now: next(seen))
    progress.host_begins("node1")
    assert progress.due(BEGUN + 10) == "  … Collect: 10 s, 0 hosts done, waiting for node1"
    assert progress.due(BEGUN + 20) == "  … Collect: 20 s, pairs: 4 of 6 measured"
    progress.begin("Read the host", BEGUN + 21)
    progress.host_begins("node1")
    assert progress.due(BEGUN + 31) == "  … Read the host: 10 s, 0 hosts done, waiting for node1"
