# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Times as users write them, and what is refused with which advice."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._recorder.times import GivenTimeError, given_time, time_or_run, time_words
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder

#: 2026-11-23 14:05:00 UTC, and an hour later.
TIME, NOW = 1795442700.0, 1795446300.0


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-23 14:05 UTC",
        "2026-11-23T14:05:00Z",
        "2026-11-23 14:05:00.000 +00:00",
        "2026-11-23 15:05 +0100",
        "2026-11-23 15:05 Europe/Berlin",
        "2026-11-23 09:05 America/New_York",
        "  2026-11-23   14:05   utc ",
        "@1795442700",
    ],
)
def test_a_time_with_its_zone(text: str) -> None:
    assert given_time("rdma_job_time", text, NOW) == TIME
    assert time_words(TIME) == "2026-11-23 14:05:00 UTC"


@pytest.mark.parametrize(("text", "ago"), [("2h", 7200), ("90 min", 5400), ("3 days ago", 259200), ("45s", 45)])
def test_a_duration_is_before_now_where_it_is_allowed(text: str, ago: int) -> None:
    assert given_time("rdma_since", text, NOW, durations=True) == NOW - ago
    with pytest.raises(GivenTimeError, match="is not a time"):
        given_time("rdma_job_time", text, NOW)


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("2026-11-23 14:05", "has no time zone. Add one: '2026-11-23 14:05 UTC'"),
        ("2026-11-23", "has no time of day. Ansible splits a value at blanks: quote it twice"),
        ("2026-11-23 14:05 CET", "the time zone 'CET' is not known or not unique"),
        ("2026-11-23 14:05 Mars/Base", "the time zone 'Mars/Base' is not known"),
        ("2026-11-23 14:05 ../../etc/passwd", "is not known"),
        ("2026-11-23 17:05 UTC", "is 2 h 0 min in the future"),
        ("2026-13-23 14:05 UTC", "is not a time: month must be in 1..12"),
        ("2026-11-23 25:05 UTC", "is not a time"),
        ("yesterday", "is not a time. Use one of these forms"),
        ("", "is not a time"),
        ("2026-11-23 14:05 +99:00", "is not a time"),
    ],
)
def test_what_cannot_be_used_is_refused_with_advice(text: str, advice: str) -> None:
    with pytest.raises(GivenTimeError) as caught:
        given_time("rdma_job_time", text, NOW)
    assert str(caught.value).startswith(f"rdma_job_time '{text}'")
    assert advice in str(caught.value)


def ended_run(base: Path, run: str, **summary: object) -> RunFolder:
    """A run of this ID in a folder of runs; return the folder of a later one."""
    RunFolder(base / run).write_json("summary.json", {"schema": 1, **summary})
    return RunFolder(base / "20261123T150000Z-9")


def test_a_run_is_the_time_of_its_end(tmp_path: Path) -> None:
    folder = ended_run(tmp_path, "20261123T135800Z-4711", ended=TIME)
    assert time_or_run("rdma_since", " 20261123T135800Z-4711 ", NOW, folder) == TIME
    assert time_or_run("rdma_since", "2h", NOW, folder) == NOW - 7200


@pytest.mark.parametrize("summary", [{}, {"ended": None}, {"ended": True}, {"ended": "x"}, {"ended": -1.0}, {"ended": NOW + 1}])
def test_a_run_without_a_known_end_is_refused(tmp_path: Path, summary: dict[str, object]) -> None:
    folder = ended_run(tmp_path, "20261123T135800Z-4711", **summary)
    with pytest.raises(GivenTimeError, match="the end of run 20261123T135800Z-4711 is not known"):
        time_or_run("rdma_since", "20261123T135800Z-4711", NOW, folder)
    (tmp_path / "20261123T135900Z-1").mkdir()
    with pytest.raises(GivenTimeError, match="the end of run 20261123T135900Z-1 is not known"):
        time_or_run("rdma_since", "20261123T135900Z-1", NOW, folder)
    with pytest.raises(GivenTimeError, match=r"rdma_until '20261123T135901Z-1' is not a run in .* Use an ID of"):
        time_or_run("rdma_until", "20261123T135901Z-1", NOW, folder)
